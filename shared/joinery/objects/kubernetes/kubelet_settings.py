"""Every setting of the kubelet (KubeletConfiguration v1beta1 of Kubernetes 1.37), by the shape of its value.

Joinery understands a dozen of them (``objects.karpenter.kubelet``). The others are passed on to nodes whose image takes
them as they are. A name that the kubelet does not have it would ignore, and a value of the wrong shape keeps it from
starting, so both are reported before a node is launched.
"""

from collections.abc import Iterator, Mapping
from typing import Any

_BOOLEANS = """
    cgroupsPerQOS cpuCFSQuota enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler
    enableDebuggingHandlers enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery failCgroupV1
    failSwapOn kernelMemcgNotification localStorageCapacityIsolation makeIPTablesUtilChains
    mergeDefaultEvictionSettings protectKernelDefaults registerNode rotateCertificates runOnce seccompDefault
    serializeImagePulls serverTLSBootstrap singleProcessOOMKill
"""
_INTEGERS = """
    containerLogMaxFiles containerLogMaxWorkers eventBurst eventRecordQPS evictionMaxPodGracePeriod healthzPort
    imageGCHighThresholdPercent imageGCLowThresholdPercent iptablesDropBit iptablesMasqueradeBit kubeAPIBurst kubeAPIQPS
    maxOpenFiles maxParallelImagePulls maxPods nodeLeaseDurationSeconds nodeStatusMaxImages oomScoreAdj podPidsLimit
    podsPerCore port readOnlyPort registryBurst registryPullQPS
"""
_NUMBERS = "memoryThrottlingFactor"
_TEXTS = """
    address cgroupDriver cgroupRoot clusterDomain configMapAndSecretChangeDetectionStrategy containerLogMaxSize
    containerLogMonitorInterval containerRuntimeEndpoint contentType cpuCFSQuotaPeriod cpuManagerPolicy
    cpuManagerReconcilePeriod evictionPressureTransitionPeriod fileCheckFrequency hairpinMode healthzBindAddress
    httpCheckFrequency imageMaximumGCAge imageMinimumGCAge imagePullCredentialsVerificationPolicy imageServiceEndpoint
    kubeReservedCgroup kubeletCgroups memoryManagerPolicy memoryReservationPolicy nodeStatusReportFrequency
    nodeStatusUpdateFrequency podCIDR podLogsDir providerID reservedSystemCPUs resolvConf runtimeRequestTimeout
    showHiddenMetricsForVersion shutdownGracePeriod shutdownGracePeriodCriticalPods staticPodPath staticPodURL
    streamingConnectionIdleTimeout syncFrequency systemCgroups systemReservedCgroup tlsCertFile tlsMinVersion
    tlsPrivateKeyFile topologyManagerPolicy topologyManagerScope volumePluginDir volumeStatsAggPeriod
"""
_LISTS = """
    allowedUnsafeSysctls clusterDNS enforceNodeAllocatable preloadedImagesVerificationAllowlist registerWithTaints
    reservedMemory shutdownGracePeriodByPodPriority tlsCipherSuites tlsCurvePreferences
"""
_OBJECTS = """
    authentication authorization cpuManagerPolicyOptions crashLoopBackOff defaultPodSysctls evictionHard
    evictionMinimumReclaim evictionSoft evictionSoftGracePeriod featureGates kubeReserved logging memorySwap qosReserved
    staticPodURLHeader systemReserved topologyManagerPolicyOptions tracing userNamespaces
"""

_SHAPES: Mapping[str, tuple[str, type | tuple[type, ...]]] = {
    name: shape
    for names, shape in (
        (_BOOLEANS, ("true or false", bool)),
        (_INTEGERS, ("a whole number", int)),
        (_NUMBERS, ("a number", (int, float))),
        (_TEXTS, ("a text", str)),
        (_LISTS, ("a list", list)),
        (_OBJECTS, ("an object", dict)),
    )
    for name in names.split()
}
NAMES = frozenset(_SHAPES)


def misshapen(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The settings whose value is none, each with what it should be. Names that are none are not looked at."""
    for name in sorted(NAMES & given.keys()):
        wanted, kind = _SHAPES[name]
        value = given[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            yield name, wanted
