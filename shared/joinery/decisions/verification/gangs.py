"""Gangs: enough of each have a node, all in one domain where their PodGroup says so.

Sources: kube-scheduler GangScheduling (``minCount``) and TopologyPlacementGenerator (``schedulingConstraints``).
"""

from collections.abc import Iterator, Mapping

from joinery.decisions.scheduling.packing import Launch, placed_pods
from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.nodes import FinalNode
from joinery.decisions.verification.violation import Violation, ViolationCode, of_pod
from joinery.objects.karpenter.labels import HOSTNAME
from joinery.objects.snapshot.gangs import Gang


def check_gangs(state: FinalState) -> Iterator[Violation]:
    """A gang of which the plan places a pod has enough pods with a node, and all of them where it wants them."""
    if not (gangs := state.problem.snapshot.gangs):
        return
    packing = state.packing
    placed = frozenset(placed_pods(packing.existing, packing.launches))
    waiting = frozenset(unplaced.pod for unplaced in packing.unplaced)
    nodes = {name: node for node in state.nodes for names in node.planned.values() for name in names}
    for gang in gangs.values():
        planned = sorted(placed.intersection(gang.members))
        if planned:
            running = gang.seated - placed - waiting
            yield from _too_few(gang, planned, len(running))
            if gang.topology:
                yield from _apart(state, gang, planned, running, nodes)


def _too_few(gang: Gang, planned: list[str], running: int) -> Iterator[Violation]:
    """Every pod of the gang is at fault, because none of them may be placed."""
    if gang.minimum is None or len(planned) + running < gang.minimum:
        wanted = "an unknown number" if gang.minimum is None else gang.minimum
        template = "{gang} places {wanted} pods together, and {there} have a node"
        for name in planned:
            figures = {"gang": str(gang), "wanted": wanted, "there": len(planned) + running}
            yield Violation.of(ViolationCode.GANG, template, of_pod(name), **figures)


def _apart(
    state: FinalState, gang: Gang, planned: list[str], running: frozenset[str], nodes: Mapping[str, FinalNode]
) -> Iterator[Violation]:
    """The nodes of the planned pods, whatever EC2 picks for them, and of those that run, are of one domain."""
    labels = {view.node: view.labels for view in state.problem.snapshot.views}
    hosts = {gang.members[name].spec.node_name for name in running}
    domains = {labels[host].get(gang.topology, "") for host in hosts if host in labels}
    domains |= {nodes[name].labels.get(gang.topology, "") for name in planned if name in nodes}
    loose = [launch.name for launch, _ in state.launched if not _is_pinned(launch, gang, planned)]
    if len(domains) > 1 or "" in domains or loose:
        template = "{gang} wants all pods in one {topology}, and they are in {domains}"
        said = ", ".join(domain or "none" for domain in sorted(domains)) if len(domains) > 1 or not loose else loose[0]
        for name in planned:
            figures = {"gang": str(gang), "topology": gang.topology, "domains": said}
            yield Violation.of(ViolationCode.GANG, template, of_pod(name), **figures)


def _is_pinned(launch: Launch, gang: Gang, planned: list[str]) -> bool:
    """Whether the launch can only come up in one domain, if pods of the gang are on it."""
    if gang.topology == HOSTNAME or gang.topology in launch.labels or set(launch.pods).isdisjoint(planned):
        return True
    values = (rule.values for rule in launch.requirements if rule.key == gang.topology and rule.operator == "In")
    return any(len(of_key) == 1 for of_key in values)
