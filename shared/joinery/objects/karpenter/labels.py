"""Labels, annotations, taints and finalizers: every key Joinery reads or writes, named once.

Karpenter's keys are unchanged, so that a cluster moves to Joinery and back without replacing a node. Keys of our own
live under ``joinery.dev``.
"""

from collections.abc import Mapping

CORE_GROUP = "karpenter.sh"
AWS_GROUP = "karpenter.k8s.aws"
OWN_GROUP = "joinery.dev"

# --- well-known node labels (Kubernetes) ---
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
HOSTNAME = "kubernetes.io/hostname"
WINDOWS_BUILD = "node.kubernetes.io/windows-build"
#: The build by the year in a Windows Server's name.
WINDOWS_BUILDS = {"2019": "10.0.17763", "2022": "10.0.20348", "2025": "10.0.26100"}
ZONE_ID = "topology.k8s.aws/zone-id"
COMPUTE_TYPE = "eks.amazonaws.com/compute-type"  # what EKS says of a node that it runs itself: auto, fargate
AUTO_MODE = "auto"

# --- Karpenter's labels ---
NODE_POOL = f"{CORE_GROUP}/nodepool"
PROVISIONER_NAME = f"{CORE_GROUP}/provisioner-name"  # what NODE_POOL was called up to v0.31
MANAGED_BY = f"{CORE_GROUP}/managed-by"  # a tag of instances, up to v0.37: the cluster's name
CAPACITY_TYPE = f"{CORE_GROUP}/capacity-type"
REGISTERED = f"{CORE_GROUP}/registered"
INITIALIZED = f"{CORE_GROUP}/initialized"
DO_NOT_SYNC_TAINTS = f"{CORE_GROUP}/do-not-sync-taints"
NODE_CLASS = f"{AWS_GROUP}/ec2nodeclass"
EXCLUDE_FROM_LOAD_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers"

ON_DEMAND, SPOT, RESERVED = "on-demand", "spot", "reserved"

# --- labels of a node that was launched in a capacity reservation ---
RESERVATION_ID = f"{AWS_GROUP}/capacity-reservation-id"
RESERVATION_TYPE = f"{AWS_GROUP}/capacity-reservation-type"
RESERVATION_INTERRUPTIBLE = f"{AWS_GROUP}/capacity-reservation-interruptible"
RESERVATION_LABELS = (RESERVATION_ID, RESERVATION_TYPE, RESERVATION_INTERRUPTIBLE)

# --- the placement group that a node is in, and its partition there ---
PLACEMENT_GROUP = f"{AWS_GROUP}/placement-group-id"
PARTITION = f"{AWS_GROUP}/placement-group-partition"

#: ``true`` on nodes that have parts of GPUs, such as g6f's (proposed in karpenter-provider-aws pull request 9322).
GPU_FRACTIONAL = f"{AWS_GROUP}/instance-gpu-fractional"
INSTANCE_FAMILY = f"{AWS_GROUP}/instance-family"
#: By these somebody says which kinds of instance types are meant.
KINDS = (
    INSTANCE_TYPE,
    INSTANCE_FAMILY,
    *(f"{AWS_GROUP}/instance-{name}" for name in ("category", "generation", "size")),
)
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")

# --- whether the hardware is shared with other accounts ---
TENANCY = f"{AWS_GROUP}/instance-tenancy"
SHARED_TENANCY, DEDICATED = "default", "dedicated"

# --- annotations ---
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
#: The node for which a claim's volume is being made (kube-scheduler VolumeBinding).
SELECTED_NODE = "volume.kubernetes.io/selected-node"
#: The older way to name a storage class; it goes before the field (component-helpers ``storage/volume``).
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
DISRUPTION_COST = f"{CORE_GROUP}/disruption-cost"
DO_NOT_DISRUPT = f"{CORE_GROUP}/do-not-disrupt"
DO_NOT_REPAIR = f"{CORE_GROUP}/do-not-repair"
NODE_POOL_HASH = f"{CORE_GROUP}/nodepool-hash"
NODE_POOL_HASH_VERSION = f"{CORE_GROUP}/nodepool-hash-version"
NODE_CLASS_HASH = f"{AWS_GROUP}/ec2nodeclass-hash"
NODE_CLASS_HASH_VERSION = f"{AWS_GROUP}/ec2nodeclass-hash-version"
TERMINATION_TIMESTAMP = f"{CORE_GROUP}/nodeclaim-termination-timestamp"
NODE_SIZE = f"{OWN_GROUP}/node-size"
MAX_NODE_SHARE = f"{OWN_GROUP}/max-node-share"
#: The drivers whose devices a claim was bought for, joined by commas: its node is not fit before they publish some.
DEVICE_DRIVERS = f"{CORE_GROUP}/requested-dra-drivers"
#: On a node class: how NVIDIA's driver lets claims share a GPU, as its setting ``consumableShares`` has it.
GPU_SHARING = f"{AWS_GROUP}/nvidia-consumable-capacity"
MIN_VALUES_RELAXED = f"{CORE_GROUP}/nodeclaim-min-values-relaxed"
INSTANCE_PROFILE = f"{AWS_GROUP}/instance-profile-name"
INSTANCE_TAGGED = f"{AWS_GROUP}/tagged"
EMPTY_SINCE = f"{CORE_GROUP}/emptiness-timestamp"  # on Nodes of a Provisioner, up to v0.31

#: The pods a claim was planned for, as a JSON list of namespace/name: its node is kept for them while they wait.
PLANNED_PODS = f"{OWN_GROUP}/planned-pods"
#: Their owners and needs, by which their twins are known: a JSON object of owner UID/digest to indices in that list.
PLANNED_NEEDS = f"{OWN_GROUP}/planned-needs"
#: Set on a claim whose node was kept for pods that did not come: the digests of the needs of those that kube-scheduler
#: did not bind there in their time, as a JSON list. Nothing is bought for such pods again and again.
UNSERVED_NEEDS = f"{OWN_GROUP}/unserved-needs"
#: On a NodeOverlay: the devices that drivers will publish of nodes of the types that match, as a JSON list of what
#: ResourceSlices have in ``spec``.
RESOURCE_SLICES = f"{OWN_GROUP}/resource-slices"
#: On a claim for pods that are placed together or not at all: which gangs, as messages name them, separated by commas.
GANGS = f"{OWN_GROUP}/gangs"
#: Set on a claim that EC2 will take away: its replacement starts before its drain does. Value: RFC3339 moment.
INTERRUPTED_AT = f"{OWN_GROUP}/interrupted-at"
#: Set on a claim that is retired though nothing forces it: its node keeps its pods until they are replaced. Value: a
#: ``DisruptionReason``.
RETIRED_FOR = f"{OWN_GROUP}/retired-for"
#: Set on an interrupted or expired claim once CreateFleet accepted what replaces it: the drain may start.
REPLACEMENT_LAUNCHED = f"{OWN_GROUP}/replacement-launched"
#: Set on a claim whose instance was rebooted because its node was unhealthy: it is not rebooted twice. Value: RFC3339
#: moment.
REBOOTED_AT = f"{OWN_GROUP}/rebooted-at"
#: On each candidate of a disruption command, the command itself: a JSON object
#: (``objects.annotations.disruption.CommandRecord``).
DISRUPTION_COMMAND = f"{OWN_GROUP}/disruption-command"
#: On an object of an older API, followed by a dot and the kind that it is in v1: the status that it would have there,
#: and our annotations, as a JSON object (``objects.karpenter.legacy.record``).
WRITTEN_AS = f"{OWN_GROUP}/written-as"
#: On each replacement of such a command, what it replaces: a JSON object (``objects.annotations.disruption.Replaces``).
REPLACES = f"{OWN_GROUP}/replaces"
#: On a node that a disruption command bought, what for: a JSON object (``objects.annotations.purchases.BoughtFor``).
BOUGHT_FOR = f"{OWN_GROUP}/bought-for"
#: On a node that was bought for pods which a consolidation had moved: JSON
#: (``objects.annotations.displacement.Displacement``).
BOUGHT_FOR_DISPLACED = f"{OWN_GROUP}/bought-for-displaced"
#: On a NodePool, the owners whose pods consolidation has just moved: JSON (``objects.annotations.displacement``).
MOVED_LATELY = f"{OWN_GROUP}/moved-lately"
#: Set on a claim whose drain waits for its pods: how many, since when, and when they were asked last, as JSON.
DRAIN_STALLED = f"{OWN_GROUP}/drain-stalled"
#: Set by a user on pods, ``true``: a drain waits for the pod's successor to be Ready before it evicts the pod.
SURGE_BEFORE_EVICTION = f"{OWN_GROUP}/surge-before-eviction"
#: Set on a claim that is leaving: the pods of its node that a rollout replaces, as a JSON list of namespace/name. Plans
#: do not look for another node for them, because their successors are pods of their own.
SURGED_PODS = f"{OWN_GROUP}/surged-pods"
#: What became of a NodePool's last launches, while one of them has failed: JSON
#: (``lifecycle.pools.registration_health``).
REGISTRATIONS = f"{OWN_GROUP}/registrations"
#: On a NodePool, what is done about rebalance recommendations: ``off``, ``drain`` or ``replace``.
REBALANCE = f"{OWN_GROUP}/rebalance"
#: On any NodePool, ``stop``: nothing is disrupted voluntarily in the whole cluster
#: (``objects.karpenter.disruption.stop_of``).
DISRUPTION = f"{OWN_GROUP}/disruption"
#: On a NodePool, how many of its nodes may be disrupted voluntarily in a time, such as ``10 nodes per 1h``.
DISRUPTION_RATE = f"{OWN_GROUP}/disruption-rate"
#: On a NodePool with a rate, its nodes that were disrupted lately: JSON (``objects.annotations.recent_disruptions``).
DISRUPTED_LATELY = f"{OWN_GROUP}/disrupted-lately"
#: On pods, how many of their workload may be evicted voluntarily in a time, such as ``2 pods per 1h``.
EVICTION_RATE = f"{OWN_GROUP}/eviction-rate"
#: On pods, how many of their workload run on demand, such as ``2 + 30%``; and the scheduling gate by which such a pod
#: waits until it is decided whether it is one of them. On a NodePool, how many of its nodes are on demand
#: (``objects.policies.OnDemandShare``).
ON_DEMAND_SHARE = f"{OWN_GROUP}/on-demand"
#: On a node class, how a new image is tried before all nodes move to it (``objects.karpenter.disruption.canary_of``).
CANARY = f"{OWN_GROUP}/canary"
#: On a NodePool, where its drifted nodes end before their replacements are launched (``objects.policies``).
TERMINATE_FIRST = f"{OWN_GROUP}/terminate-first"
#: On a NodePool or a Provisioner, ``true``: what its requirements list is what pods get that choose nothing else
#: (``objects.karpenter.nodepool.NodePool.defaults``).
OVERRIDES = f"{OWN_GROUP}/overrides"
#: When nothing is bought for a NodePool and its nodes go, and when a Namespace's buffers keep no room; and a person's
#: word about it (``objects.karpenter.pause``).
PAUSE = f"{OWN_GROUP}/pause"
PAUSED = f"{OWN_GROUP}/paused"
#: On a node class, ids of images that need no trial, separated by commas: a person has approved them.
CANARY_APPROVED = f"{OWN_GROUP}/canary-approved"
#: On a node class, which of its instances EC2 ended at launch, and why: JSON (``objects.annotations.deaths``).
DIED_AT_LAUNCH = f"{OWN_GROUP}/died-at-launch"
#: On a node class, what came of the trials of the images that it selects: JSON (``objects.annotations.canaries``).
CANARIES = f"{OWN_GROUP}/canaries"
#: On a replacement for a drifted node, the UIDs of the owners whose pods ran well there, as a JSON list.
RAN_WELL = f"{OWN_GROUP}/ran-well"
#: Dollars. On a pod, what its eviction counts as; on a NodePool, what that of an ordinary pod on its nodes does.
DISRUPTION_PRICE = f"{OWN_GROUP}/disruption-price"
#: On a NodePool, a duration: what disrupting its nodes saves must repay the moves within this time.
PAYBACK = f"{OWN_GROUP}/payback"
#: On a NodePool, ``false``: its new nodes may be consolidated before they have paid for themselves.
NEW_NODES_REPAY = f"{OWN_GROUP}/new-nodes-repay"
#: On a NodePool, ``true``: its expired nodes wait for its budgets (``disruption.expiration``).
EXPIRATION_OBEYS_BUDGETS = f"{OWN_GROUP}/expiration-obeys-budgets"
#: Set on a claim that EC2 recommends to rebalance and whose NodePool wants it replaced. Value: RFC3339 moment.
REBALANCE_RECOMMENDED_AT = f"{OWN_GROUP}/rebalance-recommended-at"
#: On a CapacityBuffer: when it counts, and of which capacity types its nodes are (``decisions.headroom.annotations``).
BUFFER_SCHEDULE = f"{OWN_GROUP}/buffer-schedule"
BUFFER_CAPACITY_TYPES = f"{OWN_GROUP}/buffer-capacity-types"
#: On the pods that stand for a CapacityBuffer in plans and in no cluster: that they do, and for which (Karpenter).
FAKE_POD = f"{CORE_GROUP}/capacity-buffer-fake-pod"
BUFFER_NAME = f"{CORE_GROUP}/capacity-buffer-name"
BUFFER_NAMESPACE = f"{CORE_GROUP}/capacity-buffer-namespace"
#: On the pods that stand for a ProvisioningRequest in the same way: for which, as namespace/name.
PROVISIONING_REQUEST = f"{OWN_GROUP}/provisioning-request"
#: The version of Joinery that wrote a claim. Nothing decides by it: it tells a person who launched what.
VERSION = f"{OWN_GROUP}/version"
#: The CreateFleet token of a claim, so that a retry returns the same instance.
LAUNCH_TOKEN = f"{OWN_GROUP}/launch-token"

#: What ``kubectl rollout restart`` writes into a pod template, and the number of a rollout (Kubernetes Deployments).
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
REVISION = "deployment.kubernetes.io/revision"

# --- finalizers and taints ---
TERMINATION_FINALIZER = f"{CORE_GROUP}/termination"
DISRUPTED_TAINT = f"{CORE_GROUP}/disrupted"  # NoSchedule
UNREGISTERED_TAINT = f"{CORE_GROUP}/unregistered"  # NoExecute
#: On a new node until the pods that it was bought for are there. NoSchedule; the value names the claim.
PLANNED_TAINT = f"{OWN_GROUP}/planned"
EFFECTS = NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"

#: Taints that a booting node loses by itself, by key and effect (kubelet, cloud provider, Karpenter).
EPHEMERAL_TAINTS = frozenset(
    {
        ("node.kubernetes.io/not-ready", NO_SCHEDULE),
        ("node.kubernetes.io/not-ready", NO_EXECUTE),
        ("node.kubernetes.io/unreachable", NO_SCHEDULE),
        ("node.cloudprovider.kubernetes.io/uninitialized", NO_SCHEDULE),
        (UNREGISTERED_TAINT, NO_EXECUTE),
    }
)
EPHEMERAL_TAINT_PREFIX = "readiness.k8s.io/"

#: EKS Auto Mode's CSI driver. It runs on Auto Mode's nodes alone, and no other node can attach its volumes (EKS User
#: Guide, "Create a storage class").
AUTO_MODE_DRIVER = "ebs.csi.eks.amazonaws.com"
#: What the EBS CSI driver calls a node's zone. It labels nodes as it starts there.
EBS_ZONE = "topology.ebs.csi.aws.com/zone"

#: Older or foreign names of a label (Karpenter `NormalizedLabels`). A new node gets them all: from the kubelet, the
#: cloud provider, and the EBS CSI driver. Requirements of NodePools are read as the canonical one; kube-scheduler knows
#: no aliases.
ALIASES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    EBS_ZONE: ZONE,
}

#: EC2's instance properties as labels, below karpenter.k8s.aws/ (Karpenter, Well-Known Labels).
AWS_WELL_KNOWN = frozenset(
    f"{AWS_GROUP}/{name}"
    for name in (
        "instance-category", "instance-generation", "instance-family", "instance-size", "instance-capability-flex",
        "instance-cpu", "instance-cpu-manufacturer", "instance-cpu-sustained-clock-speed-mhz", "instance-memory",
        "instance-ebs-bandwidth", "instance-network-bandwidth", "instance-local-nvme", "instance-hypervisor",
        "instance-encryption-in-transit-supported", "instance-gpu-name",
        "instance-gpu-manufacturer", "instance-gpu-count", "instance-gpu-memory", "instance-gpu-fractional",
        "instance-accelerator-name",
        "instance-accelerator-manufacturer", "instance-accelerator-count", "instance-tenancy",
        "capacity-reservation-id", "capacity-reservation-type", "capacity-reservation-interruptible",
        "placement-group-id", "placement-group-partition",
    )
)  # fmt: skip

#: A new node may satisfy a requirement on these although its NodePool does not mention them.
WELL_KNOWN = AWS_WELL_KNOWN | {
    NODE_POOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD, ZONE_ID,
}  # fmt: skip


def canonical(key: str) -> str:
    """The label's canonical key, for one that has aliases."""
    return ALIASES.get(key, key)


def with_aliases(given: Mapping[str, str]) -> dict[str, str]:
    """The labels that a node which is on its way will have: each that has several names under all of them."""
    labels = {canonical(key): value for key, value in given.items()} | dict(given)
    return labels | {alias: labels[key] for alias, key in ALIASES.items() if key in labels}


def is_restricted(key: str) -> bool:
    """Whether a user may neither set the label nor require it: it is of Karpenter's domains, or the hostname.

    (Karpenter `IsRestrictedLabel`.)
    """
    if key in WELL_KNOWN:
        return False
    domain = key.rpartition("/")[0]
    return key == HOSTNAME or any(domain == group or domain.endswith(f".{group}") for group in (CORE_GROUP, AWS_GROUP))


#: Who our Events say they are from: the webhook leaves them out, so that they never ring a bell.
REPORTER = f"{OWN_GROUP}/joinery"
