"""Every setting of the kubelet (KubeletConfiguration v1beta1 of Kubernetes 1.37), by the shape of its value.

Joinery understands a dozen of them (``configuration``). The others are passed on to nodes whose image takes
them as they are. A name that the kubelet does not have it would ignore, and a value of the wrong shape keeps it from
starting, so both are reported before a node is launched, at every depth.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from joinery.objects.karpenter import duration
from joinery.objects.kubernetes.quantity import parse
from joinery.objects.spelling import meant_by

_BY_SHAPE = {
    "bool": """
        cgroupsPerQOS cpuCFSQuota enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler
        enableDebuggingHandlers enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery
        failCgroupV1 failSwapOn kernelMemcgNotification localStorageCapacityIsolation makeIPTablesUtilChains
        mergeDefaultEvictionSettings protectKernelDefaults registerNode rotateCertificates runOnce seccompDefault
        serializeImagePulls serverTLSBootstrap singleProcessOOMKill
    """,
    "int32": """
        containerLogMaxFiles containerLogMaxWorkers eventBurst eventRecordQPS evictionMaxPodGracePeriod healthzPort
        imageGCHighThresholdPercent imageGCLowThresholdPercent iptablesDropBit iptablesMasqueradeBit kubeAPIBurst
        kubeAPIQPS maxParallelImagePulls nodeLeaseDurationSeconds nodeStatusMaxImages oomScoreAdj podsPerCore
        port readOnlyPort registryBurst registryPullQPS
    """,
    "int64": "maxOpenFiles podPidsLimit",
    # Karpenter takes an expression, too, which no kubelet sees.
    "pods": "maxPods",
    "number": "memoryThrottlingFactor",
    # `apiVersion` and `kind` say of which type a KubeletConfiguration is; users copy them along.
    "text": """
        apiVersion kind
        address cgroupDriver cgroupRoot clusterDomain configMapAndSecretChangeDetectionStrategy containerLogMaxSize
        containerRuntimeEndpoint contentType cpuManagerPolicy hairpinMode healthzBindAddress
        imagePullCredentialsVerificationPolicy imageServiceEndpoint kubeReservedCgroup kubeletCgroups
        memoryManagerPolicy memoryReservationPolicy podCIDR podLogsDir providerID reservedSystemCPUs resolvConf
        showHiddenMetricsForVersion staticPodPath staticPodURL systemCgroups systemReservedCgroup tlsCertFile
        tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerScope volumePluginDir
    """,
    "duration": """
        containerLogMonitorInterval cpuCFSQuotaPeriod cpuManagerReconcilePeriod evictionPressureTransitionPeriod
        fileCheckFrequency httpCheckFrequency imageMaximumGCAge imageMinimumGCAge nodeStatusReportFrequency
        nodeStatusUpdateFrequency runtimeRequestTimeout shutdownGracePeriod shutdownGracePeriodCriticalPods
        streamingConnectionIdleTimeout syncFrequency volumeStatsAggPeriod
    """,
    "[text]": """
        allowedUnsafeSysctls clusterDNS enforceNodeAllocatable preloadedImagesVerificationAllowlist tlsCipherSuites
    """,
    "[int32]": "tlsCurvePreferences",
    "{text}": """
        cpuManagerPolicyOptions defaultPodSysctls evictionSoftGracePeriod qosReserved topologyManagerPolicyOptions
    """,
    # Amounts are texts to the kubelet, and numbers to many who write YAML. Joinery writes texts.
    "{amount}": "evictionHard evictionMinimumReclaim evictionSoft kubeReserved systemReserved",
    "{bool}": "featureGates",
}

#: A shape: ``[x]`` is a list of x, ``{x}`` a map to x; or the shapes of an object's fields, or a list with those of its
#: items.
Shape = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
_OUTPUT = {"splitStream": "bool", "infoBufferSize": "quantity"}
SHAPES: Mapping[str, Shape] = {
    **{name: shape for shape, names in _BY_SHAPE.items() for name in names.split()},
    "authentication": {
        "x509": {"clientCAFile": "text"},
        "webhook": {"enabled": "bool", "cacheTTL": "duration"},
        "anonymous": {"enabled": "bool"},
    },
    "authorization": {
        "mode": "text",
        "webhook": {"cacheAuthorizedTTL": "duration", "cacheUnauthorizedTTL": "duration"},
    },
    "crashLoopBackOff": {"maxContainerRestartPeriod": "duration"},
    "logging": {
        "format": "text",
        "flushFrequency": "anything",
        "verbosity": "int32",
        "vmodule": [{"filePattern": "text", "verbosity": "int32"}],
        "options": {"text": _OUTPUT, "json": _OUTPUT},
    },
    "memorySwap": {"swapBehavior": "text"},
    "registerWithTaints": [{"key": "text", "value": "text", "effect": "text", "timeAdded": "text"}],
    "reservedMemory": [{"numaNode": "int32", "limits": "{quantity}"}],
    "shutdownGracePeriodByPodPriority": [{"priority": "int32", "shutdownGracePeriodSeconds": "int64"}],
    "staticPodURLHeader": "{[text]}",
    "tracing": {"endpoint": "text", "samplingRatePerMillion": "int32"},
    "userNamespaces": {"idsPerPod": "int64"},
}
NAMES = frozenset(SHAPES)

_BITS = {"int32": 31, "int64": 63}
_WANTED = {
    "bool": "true or false",
    "int32": "a whole number",
    "int64": "a whole number",
    "number": "a number",
    "text": "a text",
    "duration": "a duration such as 1m30s",
    "quantity": "a quantity such as 100Mi",
    "amount": "a text",
    "pods": "a whole number, nor an expression",
}


def faults(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What the kubelet would ignore or refuse: each the path of a setting, with what is wrong with it."""
    yield from _faults_of_object("", given, SHAPES)


def _faults_of(path: str, value: object, shape: Any) -> Iterator[tuple[str, str]]:
    if isinstance(shape, Mapping):
        yield from _faults_of_object(path, value, shape)
    elif isinstance(shape, list) or shape.startswith("["):
        yield from _faults_of_list(path, value, shape[0] if isinstance(shape, list) else shape[1:-1])
    elif shape.startswith("{"):
        yield from _faults_of_map(path, value, shape[1:-1])
    elif shape != "anything" and not _fits(value, shape):
        yield path, f"{value!r} is not {_WANTED[shape]}"


def _faults_of_object(path: str, value: object, fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not isinstance(value, Mapping):
        yield path, f"{value!r} is not an object"
        return
    for name in sorted(value.keys() - fields.keys()):
        meant = meant_by(name, fields)
        yield _below(path, name), "the kubelet has no such setting" + (f"; is it {meant}?" if meant else "")
    for name in sorted(value.keys() & fields.keys()):
        if value[name] is not None:
            yield from _faults_of(_below(path, name), value[name], fields[name])


def _faults_of_list(path: str, value: object, shape: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(value, list):
        yield path, f"{value!r} is not a list"
        return
    for index, item in enumerate(value):
        yield from _faults_of(f"{path}[{index}]", item, shape)


def _faults_of_map(path: str, value: object, shape: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, Mapping):
        yield path, f"{value!r} is not an object"
        return
    for key, item in value.items():
        yield from _faults_of(f"{path}[{key}]", item, shape)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _fits(value: object, shape: str) -> bool:
    match shape:
        case "bool":
            return isinstance(value, bool)
        case "int32" | "int64":
            most = 1 << _BITS[shape]
            return isinstance(value, int) and not isinstance(value, bool) and -most <= value < most
        case "pods":
            return isinstance(value, str) or _fits(value, "int32")
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "amount":
            return isinstance(value, (str, int, float)) and not isinstance(value, bool)
        case "duration":
            return isinstance(value, str) and is_duration(value)
        case "quantity":
            return _fits(value, "number") or (isinstance(value, str) and is_quantity(value))
    return isinstance(value, str)


def is_duration(text: str) -> bool:
    """Whether Go reads it as a duration."""
    try:
        return duration.parse(text) is not None
    except ValueError:
        return False


def is_quantity(text: str) -> bool:
    """Whether Kubernetes reads it as an amount."""
    try:
        parse(text)
    except ValueError:
        return False
    return text == text.strip()
