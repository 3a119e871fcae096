"""What each name of ours below ``joinery.dev`` is for, in the words of the reference, which is generated from here.

``joinery.objects.karpenter.labels`` names them; how a value is read is said where it is read. The command line looks
here which kinds an annotation belongs on, and warns of a misplaced one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from joinery.objects.karpenter import labels

POD, NODE, NODE_CLAIM, NODE_POOL, NODE_CLASS = "Pod", "Node", "NodeClaim", "NodePool", "EC2NodeClass"
CAPACITY_BUFFER, NODE_OVERLAY, NAMESPACE = "CapacityBuffer", "NodeOverlay", "Namespace"


@dataclass(frozen=True, slots=True)
class OwnKey:
    """``about``: the kinds of object that have it. ``meaning``: of one that people set, its values first."""

    about: tuple[str, ...]
    meaning: str


#: Annotations that people set.
FOR_PEOPLE: Mapping[str, OwnKey] = MappingProxyType(
    {
        labels.RESOURCE_SLICES: OwnKey(
            (NODE_OVERLAY,), "JSON: the devices that drivers will publish of nodes of the instance types that match"
        ),
        labels.NODE_SIZE: OwnKey(
            (NODE_POOL,), "`cheapest`, `balanced` or `small`: how price is weighed against the size of a node"
        ),
        labels.MAX_NODE_SHARE: OwnKey(
            (NODE_POOL,), "`25%`: no new node holds more of the NodePool's pods, and no move makes an old one hold more"
        ),
        labels.REBALANCE: OwnKey(
            (NODE_POOL,), "`off`, `drain` or `replace`: what is done about EC2's rebalance recommendations"
        ),
        labels.DISRUPTION: OwnKey(
            (NODE_POOL,),
            "`stop`, on any NodePool: no node of the cluster is disrupted voluntarily; "
            "`stop from 0 9 * * mon-fri for 8h`: not in that window, in UTC",
        ),
        labels.DISRUPTION_RATE: OwnKey(
            (NODE_POOL,),
            "`10 nodes per 1h` or `5% per 30m`: so many of its nodes are disrupted voluntarily in that time at most",
        ),
        labels.DISRUPTION_PRICE: OwnKey(
            (POD, NODE_POOL),
            "`0.50`: moving the pod counts as so many dollars; on a NodePool, moving an ordinary pod of its nodes "
            "does. Default: one cent",
        ),
        labels.EVICTION_RATE: OwnKey(
            (POD,), "`2 pods per 1h` or `10% per 1h`: so many pods of its workload are moved in that time at most"
        ),
        labels.PAYBACK: OwnKey(
            (NODE_POOL,),
            "`4h`: what a disruption of its nodes saves must repay the moves within that time. Default: `1h`",
        ),
        labels.CANARY: OwnKey((NODE_CLASS,), "`1 node for 10m`, `5% for 1h` or `off`: how a new AMI is tried"),
        labels.CANARY_APPROVED: OwnKey(
            (NODE_CLASS,),
            "`ami-0123`: ids of AMIs, separated by commas, that nodes may move to whatever their trial says",
        ),
        labels.NEW_NODES_REPAY: OwnKey(
            (NODE_POOL,),
            '`"false"`: its new nodes may be consolidated before they have paid for themselves; `"true"`: not, '
            "whatever the stack's setting says",
        ),
        labels.EXPIRATION_OBEYS_BUDGETS: OwnKey(
            (NODE_POOL,),
            '`"true"`: its expired nodes wait for its budgets, for their `terminationGracePeriod` at most; `"false"`: '
            "not, whatever the stack's setting says",
        ),
        labels.TERMINATE_FIRST: OwnKey(
            (NODE_POOL,),
            "`off`, or some of `static`, `reserved`, `scarce`, separated by commas: where its drifted nodes end before "
            "their replacements are launched",
        ),
        labels.ON_DEMAND_SHARE: OwnKey(
            (POD, NODE_POOL),
            "`2`, `30%` or `2 + 30%`: so many pods of its workload run on demand, and the others where it is cheapest. "
            "Also a scheduling gate, by which its pods wait for that. On a NodePool: so many of its nodes are on "
            "demand, and the others where it is cheapest",
        ),
        labels.OVERRIDES: OwnKey(
            (NODE_POOL,),
            '`"true"`, also on a Provisioner: what its requirements list of instance types, zones, architectures and '
            "capacity types is for pods that choose none; what a pod chooses replaces it",
        ),
        labels.BUFFER_SCHEDULE: OwnKey(
            (CAPACITY_BUFFER,),
            "`from 30 7 * * mon-fri for 11h in Europe/Berlin`: when the buffer counts; several are separated by "
            "semicolons. Default: always",
        ),
        labels.BUFFER_CAPACITY_TYPES: OwnKey(
            (CAPACITY_BUFFER,),
            "`spot` or `spot,on-demand`: of which capacity types its nodes may be, in place of what its pods ask for",
        ),
        labels.PAUSE: OwnKey(
            (NODE_POOL, NAMESPACE),
            "`from 0 20 * * mon-fri for 11h in Europe/Berlin`: then nothing is bought for it, and its nodes go; "
            "`all from ...`: of the whole cluster; `never`: also not by that. On a Namespace: its buffers keep no room",
        ),
        labels.PAUSED: OwnKey(
            (NODE_POOL, NAMESPACE),
            "what `joinery pause` and `resume` write: `true`, or since when it runs again",
        ),
        labels.SURGE_BEFORE_EVICTION: OwnKey(
            (POD,), '`"true"`: its successor comes first; `"false"`: also not by `SurgeSingleReplicas`'
        ),
    }
)

#: What Joinery writes: annotations, a taint, types of conditions.
OF_JOINERY: Mapping[str, OwnKey] = MappingProxyType(
    {
        labels.PLANNED_TAINT: OwnKey(
            (NODE,), "a taint: the node is kept for the pods that it was bought for, which tolerate it"
        ),
        labels.PLANNED_PODS: OwnKey((NODE_CLAIM,), "the pods that it was bought for"),
        labels.PLANNED_NEEDS: OwnKey((NODE_CLAIM,), "what these pods need, to know pods like them"),
        labels.UNSERVED_NEEDS: OwnKey((NODE_CLAIM,), "the needs of pods that it was kept for and that never came"),
        labels.PROVISIONING_REQUEST: OwnKey(
            (POD,), "on pods that stand for a ProvisioningRequest in plans and records, and in no cluster: which it is"
        ),
        labels.GANGS: OwnKey(
            (NODE_CLAIM,), "the gangs that it was bought for: pods that are placed together or not at all"
        ),
        labels.LAUNCH_TOKEN: OwnKey(
            (NODE_CLAIM,), "also a tag of the instance: makes a second attempt of a launch return the same instance"
        ),
        labels.VERSION: OwnKey(
            (NODE_CLAIM,), "also a tag of the functions: the version of Joinery that wrote it; nothing is decided by it"
        ),
        labels.INTERRUPTED_AT: OwnKey((NODE_CLAIM,), "since when EC2 takes its instance away"),
        labels.REBALANCE_RECOMMENDED_AT: OwnKey(
            (NODE_CLAIM,), "since when its replacement is wanted for a recommendation"
        ),
        labels.REBOOTED_AT: OwnKey((NODE_CLAIM,), "when its instance was rebooted for its health"),
        labels.RETIRED_FOR: OwnKey((NODE_CLAIM,), "why it is retired, if nothing forces that"),
        labels.REPLACEMENT_LAUNCHED: OwnKey((NODE_CLAIM,), "EC2 has accepted what replaces it, so the drain may start"),
        labels.DISRUPTION_COMMAND: OwnKey(
            (NODE_CLAIM,),
            "on one that goes: which nodes, why, what replaces them, until when. Remove it, and the node stays",
        ),
        labels.REPLACES: OwnKey((NODE_CLAIM,), "on one that comes: which node it replaces"),
        labels.RAN_WELL: OwnKey(
            (NODE_CLAIM,), "on one that comes for drift: whose pods ran well on the node that it replaces"
        ),
        labels.DIED_AT_LAUNCH: OwnKey(
            (NODE_CLASS,), "which images EC2 did not let run, why, and since when: launches wait for that"
        ),
        labels.CANARIES: OwnKey(
            (NODE_CLASS,),
            "which of its AMIs have passed or failed their trial, and why. Remove it, and they are tried again",
        ),
        labels.BOUGHT_FOR: OwnKey(
            (NODE_CLAIM,), "on one that was bought to save money: what that saves, and what its moves count as"
        ),
        labels.BOUGHT_FOR_DISPLACED: OwnKey(
            (NODE_CLAIM,),
            "on one that was bought for pods which a consolidation had moved: their owners, and its price",
        ),
        labels.DRAIN_STALLED: OwnKey(
            (NODE_CLAIM,), "how many pods do not go, since when, and when they were asked last"
        ),
        labels.SURGED_PODS: OwnKey((NODE_CLAIM,), "the pods of its node that a rollout replaces"),
        labels.REGISTRATIONS: OwnKey((NODE_POOL,), "what became of its last launches, if one brought no node"),
        labels.DISRUPTED_LATELY: OwnKey(
            (NODE_POOL,), "where it has a `disruption-rate`: which of its nodes were disrupted within that time"
        ),
        labels.MOVED_LATELY: OwnKey((NODE_POOL,), "whose pods consolidation has moved within the last ten minutes"),
        labels.WRITTEN_AS: OwnKey(
            ("Provisioner", "AWSNodeTemplate", "Machine", "objects of v1beta1"),
            "a dot and a kind follow: the status that the object has as one of v1",
        ),
        f"{labels.OWN_GROUP}/part": OwnKey(
            ("what the installer writes",), "which custom resource of the stack wrote it: `preparation` or `connection`"
        ),
        f"{labels.OWN_GROUP}/stack": OwnKey(
            ("ClusterRole, webhook configuration",), "the ARN of the stack that runs the cluster"
        ),
        f"{labels.OWN_GROUP}/run": OwnKey(
            ("access entries of EKS, as a tag",),
            "which run of the installer made the entry, which is there only meanwhile",
        ),
        f"{labels.OWN_GROUP}/until": OwnKey(
            ("access entries of EKS, as a tag",), "the second (Unix time) at which that run of the installer has ended"
        ),
        f"{labels.OWN_GROUP}/applied": OwnKey(
            ("ClusterRole, webhook configuration",),
            "what was applied last, as a hash; absent while something is being applied",
        ),
        f"{labels.OWN_GROUP}/only-if": OwnKey(
            ("manifests",), "write the object only if a setting has that value; no object of the cluster has it"
        ),
        f"{labels.OWN_GROUP}/left-out": OwnKey(
            (NODE_POOL,), "in records of decisions only: stands for annotations of its template"
        ),
        f"{labels.OWN_GROUP}/DisruptionNotSupported": OwnKey(
            (NODE_POOL,), "a condition that older versions wrote: it is removed"
        ),
        f"{labels.OWN_GROUP}/Paused": OwnKey((NODE_POOL,), "a condition: until when it is paused"),
        f"{labels.OWN_GROUP}/OnDemandShareNotKept": OwnKey(
            (NODE_POOL,), "a condition: fewer of its nodes are on demand than `joinery.dev/on-demand` asks for"
        ),
        f"{labels.OWN_GROUP}/ZonalShift": OwnKey((NODE_POOL,), "a condition: the zones in which nothing is bought now"),
        f"{labels.OWN_GROUP}/Refused": OwnKey(
            (NODE_CLAIM,), "a condition: what was refused for it, by whom, and what helps; it is asked for again"
        ),
        f"{labels.OWN_GROUP}/PodsSeen": OwnKey(
            (NODE_CLAIM,), "a condition: stands for the pods that were on its node at the last look"
        ),
    }
)
