"""May each pod run on its node, as far as the node and what shares it decide: taints, labels, room, ports, attachments."""

from collections.abc import Iterator

from joinery.apis.quantity import total
from joinery.verification.final_state import World
from joinery.verification.nodes import FinalNode, PodClass
from joinery.verification.predicates import is_readable, ports_clash, refused_taint, selects_node
from joinery.verification.violation import Violation, ViolationCode, misplaced


def check_placements(world: World) -> Iterator[Violation]:
    """Every (class, node) pair of the plan, one rule after another. One reason a rule and pair, naming its first pod."""
    for node in world.nodes:
        if node.planned:
            yield from _check_node(world, node)
    for found in world.classes.values():
        if next(found.planned_on, None) is not None and _unsupported(found):
            yield misplaced(ViolationCode.NOT_SUPPORTED, found, next(found.planned_on), _unsupported(found))


def _check_node(world: World, node: FinalNode) -> Iterator[Violation]:
    used = total({name: amount * n for name, amount in held.requests.items()} for held, n in node.held.items())
    for found in node.planned:
        if node.is_leaving:
            yield misplaced(ViolationCode.NODE_LEAVING, found, node, "the node is being deleted")
        strangers = [] if node.reserved_for is None else [p for p in node.planned[found] if p not in node.reserved_for]
        if strangers:
            yield misplaced(
                ViolationCode.NODE_RESERVED, found, node, f"the claim is not launched yet, and not for {strangers[0]}"
            )
        taint = refused_taint(node.taints, found.pod.spec.tolerations)
        if taint is not None:
            yield misplaced(
                ViolationCode.TAINTS, found, node, f"does not tolerate {taint.key}={taint.value}:{taint.effect}"
            )
        if not selects_node(found.pod.spec, node.labels, node.name):
            yield misplaced(
                ViolationCode.NODE_AFFINITY, found, node, "the node does not match its nodeSelector or node affinity"
            )
        lacking = next((n for n, v in found.requests.items() if v > 0 and used[n] > node.room.get(n, 0)), None)
        if lacking is not None:
            wanted, there = used[lacking], node.room.get(lacking, 0)
            message = f"{lacking}: {wanted} wanted, {there} there"
            yield misplaced(ViolationCode.RESOURCES, found, node, message, resource=lacking, wanted=wanted, there=there)
        clash = found.ports and _clash(found, node)
        if clash:
            yield misplaced(ViolationCode.HOST_PORTS, found, node, f"host port {clash} is taken")


def _clash(found: PodClass, node: FinalNode) -> str:
    for other, count in node.held.items():
        port = ports_clash(found.ports, other.ports) if other.ports and (other is not found or count > 1) else None
        if port:
            return f"{port[2]}/{port[0]}"
    return ""


def _unsupported(found: PodClass) -> str:
    """What the scheduler could not even read, or nothing here can judge."""
    spec = found.pod.spec
    if spec.resource_claims:
        return "resource claims (DRA) are not supported"
    affinity = spec.affinity
    sides = [affinity.pod_affinity, affinity.pod_anti_affinity] if affinity else []
    terms = [t for side in sides if side for t in side.required_during_scheduling_ignored_during_execution]
    selectors = [s for term in terms for s in (term.label_selector, term.namespace_selector)]
    selectors += [c.label_selector for c in spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]
    return "" if all(map(is_readable, selectors)) else "a label selector cannot be read"
