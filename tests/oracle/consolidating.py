"""One seeded cluster that has become too large, consolidated by the product until it finds nothing more to do.

Three acts: the product buys nodes for all replicas; most replicas go; disruption is let loose. What it plans in its
first decision is compared with what the cluster costs when the real scheduler has bound everything, and with the pods
that were evicted on the way.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.annotations.plans import is_kept
from joinery.objects.snapshot.claims import INITIALIZED
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.cloud.market import ZONES, market
from simulator.doors.doors import Call
from tests.oracle.living import Living, living
from tests.oracle.shrinking import FAMILIES, Shrinking, shrinking
from tools.controlplane.plane import ControlPlane

#: How much dearer than planned the cluster may end.
DEARER = 0.03
#: How many more pods than planned may be evicted, as a share.
MORE_EVICTIONS = 0.1
#: Ticks after which an act is given up: an hour or so of the doors' clock.
MOST_TICKS = 400
#: After which a new node may be given up again: the payback time, and a little more.
REPAID = timedelta(minutes=65)
#: For how long a quiet cluster is left alone, one after another: until new nodes have paid, and until what was in vain
#: is forgotten (``disruption.moves``).
LEFT_TO = (REPAID, timedelta(hours=25))
#: How many runs of disruption must find nothing, one after another.
QUIET_RUNS = 2


@dataclass
class Consolidated:
    """What became of one seed.

    before           $/h before the first decision
    planned, after   $/h as the first decision plans it, and in the end
    planned_evictions, evictions   of the first decision, and all that there were
    rounds           how many decisions began commands
    unbound          pods that have no node in the end
    nodes            before and in the end
    problems         what went wrong, in words
    """

    cluster: Shrinking
    before: float = 0.0
    planned: float = 0.0
    after: float = 0.0
    planned_evictions: int = 0
    evictions: int = 0
    rounds: int = 0
    unbound: int = 0
    nodes: tuple[int, int] = (0, 0)
    problems: list[str] = field(default_factory=list)

    @property
    def excess(self) -> float:
        """How much dearer the end is than planned: 0.02 is two percent."""
        return self.after / self.planned - 1 if self.planned else float(self.after > 0)

    @property
    def excess_evictions(self) -> float:
        """How many more pods were evicted than planned, as a share."""
        planned = self.planned_evictions
        return self.evictions / planned - 1 if planned else float(self.evictions > 0)

    @property
    def failures(self) -> list[str]:
        """What is wrong, in words."""
        failures = list(self.problems)
        if self.unbound:
            failures.append(f"{self.unbound} pods have no node")
        if self.excess > DEARER:
            failures.append(f"{self.excess:.1%} dearer than planned")
        return failures


def run(plane: ControlPlane, seed: int, **settings: str) -> Consolidated:
    """Try this seed, and leave the control plane empty. ``settings``: of the doors, by name."""
    result = Consolidated(shrinking(seed))
    with living(plane, market(FAMILIES, ZONES), **settings) as cluster:
        if _grow(cluster, result):
            shrink(cluster, result.cluster)
            _consolidate(cluster, result)
        result.problems += cluster.errors
    return result


def _grow(cluster: Living, result: Consolidated) -> bool:
    """Nodes for all replicas. Whether they came."""
    cluster.configure(result.cluster.pool(result.cluster.families))
    cluster.deploy(result.cluster)
    cluster.settle()
    if not _until(cluster, lambda calls: is_at_rest(cluster.look())):
        result.problems.append("the nodes for all replicas did not come")
        return False
    return True


def shrink(cluster: Living, seeded: Shrinking) -> None:
    """Most replicas go, and all families may be bought."""
    cluster.scale((workload.name, workload.left) for workload in seeded.workloads)
    if seeded.families != FAMILIES:
        cluster.allow(seeded.pool(FAMILIES))


def _consolidate(cluster: Living, result: Consolidated) -> None:
    """Decide and carry out until nothing is decided any more."""
    nodes = len(cluster.look().nodes)
    cluster.wait(REPAID)
    cluster.bells |= {Bell.DISRUPTION}
    quiet, waits = 0, list(LEFT_TO)

    def is_over(calls: tuple[Call, ...]) -> bool:
        nonlocal quiet, waits
        for decided in filter(None, map(_decided, calls)):
            _note(result, decided)
            quiet = quiet + 1 if not decided["decided"] and is_at_rest(cluster.look()) else 0
            waits = list(LEFT_TO) if decided["decided"] else waits
        if quiet == QUIET_RUNS and waits:
            cluster.wait(waits.pop(0))
            quiet = 0
        return quiet == QUIET_RUNS

    if not _until(cluster, is_over):
        result.problems.append("it does not come to rest")
    seen = cluster.look()
    result.evictions = cluster.evicted
    result.unbound = sum(not pod.spec.node_name for pod in seen.pods)
    result.nodes = nodes, len(seen.nodes)


def _note(result: Consolidated, decided: Mapping[str, Any]) -> None:
    """One decision. What all nodes cost before the last of them is what they cost in the end."""
    result.after = decided["before"]
    if decided["decided"]:
        if not result.rounds:
            result.before, result.planned = decided["before"], decided["after"]
            result.planned_evictions = decided["evictions"]
        result.rounds += 1
    elif not result.rounds:
        result.before = result.planned = decided["before"]


def _decided(call: Call) -> Mapping[str, Any] | None:
    """What disruption decided in that call, if it was one and came to a decision."""
    is_decision = call.door == "disruption" and isinstance(call.result, dict) and "decided" in call.result
    return call.result if is_decision else None


def _until(cluster: Living, is_over: Callable[[tuple[Call, ...]], bool]) -> bool:
    """Live on until that is so; False if it never is."""
    return any(is_over(cluster.tick()) for _ in range(MOST_TICKS))


def is_at_rest(seen: Snapshot) -> bool:
    """Whether every pod runs, every node is complete and open to all, and none is going."""
    return (
        all(pod.spec.node_name and pod.metadata.deletion_timestamp is None for pod in seen.pods)
        and all(claim.is_true(INITIALIZED) and not claim.is_deleting for claim in seen.node_claims)
        and not any(is_kept(taint) for node in seen.nodes for taint in node.spec.taints)
    )
