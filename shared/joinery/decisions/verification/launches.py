"""Launches: each is something that its NodePool may buy, at the price that it says, and whatever EC2 picks of it has
room for its pods.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence

from joinery.decisions.scheduling.packing import Launch
from joinery.decisions.scheduling.reason import Figure
from joinery.decisions.verification.closed_pools import why_unusable
from joinery.decisions.verification.defaults import check_defaults
from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.launch_options import LaunchOption, LaunchOptions
from joinery.decisions.verification.nodes import EquivalenceClass, FinalNode, sold
from joinery.decisions.verification.predicates import ports_clash, selects_nodes, unmet
from joinery.decisions.verification.purchasable import asks_for_gpus, has_parts_only, most_of
from joinery.decisions.verification.violation import Violation, ViolationCode, misplaced, of_launch
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.meta import Taint
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.quantity import Resources
from joinery.objects.snapshot.offerings import InstanceType

#: Prices are copied, so they agree to the last digit but for how they were written.
PRICE_TOLERANCE = 1e-6


def check_launches(state: FinalState, options: LaunchOptions) -> Iterator[Violation]:
    """Every launch, one rule after another. Launches identical to one that is right are skipped."""
    pools = {launch.node_pool for launch, _ in state.launched}
    unusable = {name: why_unusable(state, state.pools[name]) for name in pools}
    right: set[Hashable] = set()
    for launch, node in state.launched:
        likeness = _likeness(launch, node)
        if likeness not in right:
            violations = [*_check_launch(state, launch, node), *_check_options(state, launch, node, options=options)]
            if why := unusable[launch.node_pool]:
                violations.insert(0, Violation(ViolationCode.NODE_POOL, why, of_launch(launch)))
            yield from violations
            if not violations:
                right.add(likeness)


def _likeness(launch: Launch, node: FinalNode) -> Hashable:
    """Equal for launches that share all but their names and say nothing of names, and hold pods that ask for as much,
    and that say the same of what their nodes must be like.
    """
    shared = (launch.requirements, launch.labels, launch.taints, launch.startup_taints, launch.requests)
    named = keys.HOSTNAME in launch.labels or any(keys.canonical(r.key) == keys.HOSTNAME for r in launch.requirements)
    return (
        launch.node_pool,
        launch.offering,
        id(launch.instance_types),
        *map(id, shared),
        tuple(sorted(node.planned_requests.items())),
        frozenset(filter(_needs_more_than_room, node.planned)),
        launch.name if named else "",
    )


def _needs_more_than_room(pod_class: EquivalenceClass) -> bool:
    """Whether its pods care for more of a node than its room."""
    return selects_nodes(pod_class.pod.spec) or bool(pod_class.ports) or asks_for_gpus(pod_class)


def _check_launch(state: FinalState, launch: Launch, node: FinalNode) -> Iterator[Violation]:
    pool = state.pools[launch.node_pool]
    # A static NodePool launches for its replicas, the others for pods, and none for both.
    if launch.pods and pool.is_static:
        yield Violation(ViolationCode.NODE_POOL, "the NodePool is static", of_launch(launch))
    yield from _check_template(launch, node, pool)
    yield from _check_offering(launch, state.types_of(pool))
    if not launch.pods and not pool.is_static:
        yield Violation(ViolationCode.LAUNCH, "the launch is for no pods", of_launch(launch))


def _check_template(launch: Launch, node: FinalNode, pool: NodePool) -> Iterator[Violation]:
    """The launch is what its NodePool's template says (Karpenter `NodeClaimTemplate`)."""
    template, subject = pool.spec.template, of_launch(launch)
    for key, value in sorted(template.metadata.labels.items()):
        if launch.labels.get(key) != value:
            message = f"the NodePool's label {key}={value} is {launch.labels.get(key)!r}"
            yield Violation(ViolationCode.TEMPLATE, message, subject)
    for key, value in sorted(launch.labels.items()):
        if node.labels.get(key) != value:
            message = f"label {key}={value}, but its offering gives {node.labels.get(key)!r}"
            yield Violation(ViolationCode.LABELS, message, subject)
    for what, wanted, given in (
        ("taints", template.spec.taints, launch.taints),
        ("startup taints", template.spec.startup_taints, launch.startup_taints),
    ):
        if _as_set(wanted) != _as_set(given):
            yield Violation(ViolationCode.TEMPLATE, f"the {what} are not the NodePool's", subject)
    for whose, rules in (
        (f"NodePool {pool.metadata.name}", pool.requirements),
        ("the launch", launch.requirements),
    ):
        broken = unmet(rules, node.labels)
        if broken:
            message = f"{whose} requires {broken.key} {broken.operator} {','.join(broken.values)}"
            yield Violation(ViolationCode.REQUIREMENTS, message, subject)


def _as_set(taints: Sequence[Taint]) -> set[tuple[str, str, str]]:
    return {(t.key, t.value, t.effect) for t in taints}


def _check_offering(launch: Launch, types: Mapping[str, InstanceType]) -> Iterator[Violation]:
    """The offering that the launch counts on is in the catalogue, available, at that price."""
    chosen, subject = launch.offering, of_launch(launch)
    where = f"{chosen.instance_type} in {chosen.zone} as {chosen.capacity_type}"
    if chosen.instance_type not in launch.instance_types:
        message = f"the offering's type {chosen.instance_type} is not among the launch's instance types"
        yield Violation(ViolationCode.INSTANCE_TYPES, message, subject)
    offering = sold(types[chosen.instance_type], chosen)
    if offering is None:
        yield Violation(ViolationCode.OFFERING, f"{where} is not sold", subject)
    elif not offering.available:
        yield Violation(ViolationCode.OFFERING, f"{where} is not available", subject)
    elif not abs(offering.price - chosen.price) <= PRICE_TOLERANCE:
        figures = {"offering": where, "price": str(offering.price), "planned": str(chosen.price)}
        yield Violation.of(ViolationCode.PRICE, "{offering} costs {price}, not {planned}", subject, **figures)


def _check_options(
    state: FinalState, launch: Launch, node: FinalNode, *, options: LaunchOptions
) -> Iterator[Violation]:
    """Whatever EC2 picks of the launch's instance types (EC2 API CreateFleet, Overrides) holds its pods."""
    needs = node.planned_requests
    usable = options.usable(launch)
    for name, option in options.of(launch).items():
        if option is None:
            message = f"{name} has no available offering that the launch allows"
            yield Violation(ViolationCode.INSTANCE_TYPES, message, of_launch(launch))
    yield from _check_room(launch, needs, usable)
    yield from _check_cheapest(launch, usable)
    yield from _check_requests(launch, needs, usable, state.daemon_sets.most)
    yield from _check_ports(node, usable)
    yield from check_defaults(state.pools[launch.node_pool], node, usable)
    for pod_class in filter(_needs_more_than_room, node.planned):
        parts = [c.kind.name for c in usable if has_parts_only(c.kind, state.pools[launch.node_pool], pod_class)]
        if parts:
            message = f"{parts[0]} has parts of GPUs, and the pod asks for whole ones"
            yield misplaced(ViolationCode.RESOURCES, pod_class, node, message)
        if selects_nodes(pod_class.pod.spec):
            wrong = next((option.kind.name for option in usable if not options.suit(option, pod_class)), None)
            if wrong:
                message = f"the launch also allows {wrong}, where the pod may not run"
                yield misplaced(ViolationCode.ALTERNATIVES, pod_class, node, message)


def _check_room(launch: Launch, needs: Resources, options: Sequence[LaunchOption]) -> Iterator[Violation]:
    """Every type holds its DaemonSets' pods, and beside them those of the plan."""
    for name, amount in needs.items():
        tight = [option.kind.name for option in options if option.room.get(name, 0) < amount] if amount > 0 else []
        if tight:
            template = "{instance_type} cannot hold the pods: {wanted} {resource} wanted"
            yield Violation.of(
                ViolationCode.INSTANCE_TYPES,
                template,
                of_launch(launch),
                instance_type=tight[0],
                wanted=amount,
                resource=name,
            )
    for option in options:
        lacking = next((name for name, amount in option.room.items() if amount < 0), "")
        if lacking:
            template = "{instance_type} cannot hold its DaemonSets: {wanted} {resource} wanted"
            yield Violation.of(
                ViolationCode.DAEMON_SETS,
                template,
                of_launch(launch),
                instance_type=option.kind.name,
                wanted=most_of(option.daemons).get(lacking, 0),
                resource=lacking,
            )
            return


def _check_ports(node: FinalNode, options: Sequence[LaunchOption]) -> Iterator[Violation]:
    """On no type the DaemonSets' pods take a host port that a pod of the plan asks for (kube-scheduler NodePorts)."""
    for pod_class in (pod_class for pod_class in node.planned if pod_class.ports):
        for option in options:
            port = ports_clash(pod_class.ports, option.daemon_ports)
            if port:
                message = (
                    f"the launch also allows {option.kind.name}, where DaemonSets take host port {port[2]}/{port[0]}"
                )
                yield misplaced(ViolationCode.HOST_PORTS, pod_class, node, message)
                break


def _check_cheapest(launch: Launch, options: Sequence[LaunchOption]) -> Iterator[Violation]:
    """A plan's cost counts the cheapest offering that each launch allows."""
    cheaper = [option for option in options if option.cheapest < launch.offering.price - PRICE_TOLERANCE]
    if cheaper:
        message = f"{cheaper[0].kind.name} costs {cheaper[0].cheapest}, the offering {launch.offering.price}"
        yield Violation(ViolationCode.CHEAPEST, message, of_launch(launch))


def _check_requests(
    launch: Launch, needs: Resources, options: Sequence[LaunchOption], every: Resources
) -> Iterator[Violation]:
    """Requests are those of the pods and of the daemons, at least those that will run;
    which ones may depend on what EC2 picks.
    """
    daemons = list({id(one): one for option in options for one in option.daemons}.values()) or [{}]
    for name in sorted(needs.keys() | launch.requests.keys()):
        least = min(requests.get(name, 0) for requests in daemons)
        stated, most, wanted = launch.requests.get(name, 0), every.get(name, 0), needs.get(name, 0)
        if not least <= stated - wanted <= most:
            template = "{resource} is {stated}, but the pods ask {asked} and the daemons {least} to {most}"
            figures: dict[str, Figure] = {
                "resource": name,
                "stated": stated,
                "asked": wanted,
                "least": least,
                "most": most,
            }
            yield Violation.of(ViolationCode.REQUESTS, template, of_launch(launch), **figures)
            return
