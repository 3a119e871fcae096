"""Whether the pods of each node get the devices that they claim (``resource.k8s.io``).

All pods that the plan puts on a node are asked for together, after what claims have already, and so are those of
DaemonSets for which it has devices. Of a launch that is asked of every instance type that it names. Sources: the API's
documentation of ``DeviceRequest`` and ``DeviceConstraint``, and kube-scheduler DynamicResources.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cached_property

from msgspec.structs import replace as with_fields

from joinery.decisions.verification.devices.inventory import Inventory, Key
from joinery.decisions.verification.devices.search import Ask, Effort, Search
from joinery.decisions.verification.final_state import FinalState, running_on
from joinery.decisions.verification.launch_options import LaunchOptions
from joinery.decisions.verification.nodes import EquivalenceClass, FinalNode
from joinery.decisions.verification.predicates import term_matches
from joinery.decisions.verification.violation import Violation, ViolationCode, misplaced
from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.core import NodeSelector, Pod
from joinery.objects.kubernetes.dynamic_resources import (
    AllocatedDevice,
    Device,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceSlice,
    ResourceSliceSpec,
)
from joinery.objects.kubernetes.quantity import parse
from joinery.objects.snapshot.nodes import NodeView


def check_devices(state: FinalState, options: LaunchOptions) -> Iterator[Violation]:
    """A violation for each node whose pods claim more than it has, and for each pod away from where its claims are."""
    if not any(pod_class.pod.spec.resource_claims for pod_class in state.classes.values()):
        return
    cluster = _Cluster(state)
    launches = {node.name: launch for launch, node in state.launched}
    served = set[tuple[bool, int, tuple[int, ...]]]()
    for node in state.nodes:
        if not node.claiming:
            continue
        asked, why = cluster.asked_on(node)
        launch = launches.get(node.name)
        ways = options.usable(launch) if launch else [None]
        for way in ways if not why else ():
            kind = way.kind if way else None
            slices = kind.slices if kind else cluster.slices_of(node)
            is_there = not kind and cluster.is_published(node)
            daemons = cluster.of_daemons(way.claiming if way else cluster.to_come(node), slices, is_there=is_there)
            # Nodes of one type for the same claims are alike, unless devices of several nodes run out.
            alike = (
                kind is not None and not cluster.common,
                id(slices),
                tuple(id(ask.spec) for ask in (*daemons, *asked)),
            )
            if alike[0] and alike in served:
                continue
            inventory = cluster.inventory(slices, cluster.elsewhere(node), is_there=is_there)
            search = Search(inventory, cluster.effort)
            if not search.serves([*daemons, *asked]):
                whose = f"a node of type {kind.name}" if kind else "the node"
                why = f"{whose} has too few devices for what its pods claim"
                if search.is_cut:
                    why = f"no devices of {whose} were found for what its pods claim, and a longer search is not made"
                break
            served.add(alike)
            if way is ways[-1]:
                cluster.take(inventory)
        if why:
            yield misplaced(ViolationCode.DEVICES, next(_claiming(node)), node, why)


def _claiming(node: FinalNode) -> Iterator[EquivalenceClass]:
    return (pods for pods in node.planned if pods.pod.spec.resource_claims)


class _Cluster:
    """The claims of the snapshot, and the devices that its claims have."""

    def __init__(self, state: FinalState) -> None:
        self._state, snapshot = state, state.problem.snapshot
        self._claims = {claim.key: claim for claim in snapshot.resource_claims}
        self._templates = {one.key: one.spec.spec for one in snapshot.resource_claim_templates}
        self.classes = {one.metadata.name: one for one in snapshot.device_classes}
        self._homes: dict[str, FinalNode] = {}
        self._moved = frozenset(key for key, pod in state.pods.items() if pod.spec.node_name)
        self.used: dict[Key, dict[str, Decimal]] = {}
        self.whole: set[Key] = set()  # those of which nothing is left for others
        for claim in self._claims.values():
            self._count(claim)
        self._current = self._newest()
        self._of_daemons: dict[tuple[int, tuple[int, ...]], list[Ask]] = {}
        self.effort = Effort()

    def inventory(
        self,
        slices: Sequence[ResourceSliceSpec],
        elsewhere: Iterable[tuple[ResourceSliceSpec, Device]] = (),
        *,
        is_there: bool,
    ) -> Inventory:
        return Inventory(self.classes, self.used, self.whole, slices, elsewhere, is_there=is_there)

    def _count(self, claim: ResourceClaim) -> None:
        for one in self._devices_of(claim):
            key = one.driver, one.pool, one.device
            amounts = self.used.setdefault(key, {})
            self.whole |= set() if one.is_share else {key}
            for name, amount in one.consumed_capacity.items():
                with suppress(ValueError):  # the API server lets no such amount in
                    amounts[name] = amounts.get(name, Decimal(0)) + parse(amount)
                    self.whole |= {key} if parse(amount) < 0 else set()

    def _devices_of(self, claim: ResourceClaim) -> list[AllocatedDevice]:
        if claim.status.allocation is None or self._is_given_back(claim):
            return []
        return [one for one in claim.status.allocation.devices.results if not one.admin_access]

    def _is_given_back(self, claim: ResourceClaim) -> bool:
        users = claim.status.reserved_for
        return bool(users) and all(
            user.resource == "pods" and f"{claim.metadata.namespace or 'default'}/{user.name}" in self._moved
            for user in users
        )

    def _newest(self) -> Mapping[str, Sequence[ResourceSliceSpec]]:
        """The slices that count, by the node that they are of; by an empty name those of several nodes."""
        slices = self._state.problem.snapshot.resource_slices
        pools: dict[tuple[str, str], list[ResourceSlice]] = {}
        for one in slices:
            pools.setdefault((one.spec.driver, one.spec.pool.name), []).append(one)
        current: dict[str, list[ResourceSliceSpec]] = {}
        for members in pools.values():
            last = max(one.spec.pool.generation for one in members)
            newest = [one for one in members if one.spec.pool.generation == last]
            listed = [(owner, one.spec, device) for one in newest for owner, device in _listed(one)]
            if len(newest) == newest[0].spec.pool.resource_slice_count and _agrees(newest, listed):
                for owner, spec in _by_owner(newest, listed):
                    current.setdefault(owner, []).append(spec)
        return current

    def slices_of(self, node: FinalNode) -> Sequence[ResourceSliceSpec]:
        """What a node publishes, and before it is initialised what its instance type says that it will."""
        if self.is_published(node):
            return self._current.get(node.name, ())
        pool = self._state.pools.get(node.pool)
        kind = self._state.types_of(pool).get(node.labels.get(keys.INSTANCE_TYPE, "")) if pool else None
        return kind.slices if kind else ()

    def is_published(self, node: FinalNode) -> bool:
        """Whether what it has is what drivers say, not what its type promises."""
        view = self._views.get(node.name)
        return view is None or view.is_initialized or not view.pool

    @cached_property
    def _views(self) -> Mapping[str, NodeView]:
        return {view.name: view for view in self._state.problem.snapshot.views}

    @cached_property
    def common(self) -> Sequence[tuple[ResourceSliceSpec, Device]]:
        """Devices of several nodes; those of few nodes come first."""
        common = [(spec, device) for spec in self._current.get("", ()) for device in spec.devices]
        return sorted(common, key=lambda one: (one[1].node_selector or one[0].node_selector) is None)

    def elsewhere(self, node: FinalNode) -> Iterator[tuple[ResourceSliceSpec, Device]]:
        """Devices of several nodes that this one can use."""
        for spec, device in self.common:
            if _is_usable_on(node, device.node_selector or spec.node_selector):
                yield spec, device

    def asked_on(self, node: FinalNode) -> tuple[list[Ask], str]:
        """What is still to be served of the claims of the planned pods; or why they may not be there."""
        asked, seen = list[Ask](), set[str]()
        for name in node.claiming:
            for spec, key, why in self._open(self._state.pods[name], node):
                if why or (key and self._homes.setdefault(key, node) is not node):
                    return [], why or f"the claim {key} has its devices on {self._homes[key].name}"
                if spec is not None and key not in seen:
                    asked.append(Ask(spec))
                seen |= {key} if key else set()
        return asked, ""

    def _open(self, pod: Pod, node: FinalNode) -> Iterator[tuple[ResourceClaimSpec | None, str, str]]:
        """Of each claim of the pod what it asks for, its key if it is one by name, and what is wrong."""
        namespace = pod.metadata.namespace or "default"
        made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
        for one in pod.spec.resource_claims:
            key = f"{namespace}/{one.resource_claim_name}" if one.resource_claim_name else ""
            if not key and one.name in made and (made[one.name] is None or not pod.spec.node_name):
                if made[one.name] is None:
                    continue
                key = f"{namespace}/{made[one.name]}"
            claim = self._claims.get(key)
            if key and claim is None:
                yield None, "", f"there is no claim {key}"
            elif claim is not None and claim.metadata.deletion_timestamp is not None:
                yield None, "", f"the claim {key} is being deleted"
            elif claim is not None and not one.resource_claim_name and not _is_made_for(pod, claim):
                yield None, "", f"the claim {key} is not the pod's"
            elif claim is not None and claim.status.allocation is not None and not self._is_given_back(claim):
                is_there = _is_usable_on(node, claim.status.allocation.node_selector)
                yield None, "", "" if is_there else f"the devices of claim {key} are not for the node"
            else:
                template = self._templates.get(f"{namespace}/{one.resource_claim_template_name}")
                spec = claim.spec if claim else template
                yield spec, key, "" if spec else f"its claim {one.name} asks for nothing that is known"

    def to_come(self, node: FinalNode) -> Sequence[EquivalenceClass]:
        """The DaemonSets' pods with claims that a node will run and does not run yet."""
        running = self._views[node.name].derived(running_on).daemons
        missing = self._state.daemon_sets.missing(node, running)
        return [daemon for daemon in missing if daemon.pod.spec.resource_claims]

    def of_daemons(
        self, daemons: Iterable[EquivalenceClass], slices: Sequence[ResourceSliceSpec], *, is_there: bool
    ) -> list[Ask]:
        """What DaemonSets' pods claim by templates, as far as a node has it: the others wait there."""
        in_order = sorted(daemons, key=lambda daemon: (daemon.namespace, daemon.pod.metadata.name))
        if not in_order:
            return []
        key = id(slices), tuple(daemon.index for daemon in in_order)
        if key not in self._of_daemons:
            search = Search(self.inventory(slices, is_there=is_there), self.effort)
            asked = (list(map(Ask, self._made(daemon))) for daemon in in_order)
            self._of_daemons[key] = [ask for claims in asked if search.serves(claims) for ask in claims]
        return self._of_daemons[key]

    def _made(self, daemon: EquivalenceClass) -> list[ResourceClaimSpec]:
        """The claims that are made for a DaemonSet's pod; none where a template is missing, so that it cannot run."""
        names = (one.resource_claim_template_name for one in daemon.pod.spec.resource_claims)
        templates = [f"{daemon.namespace}/{name}" for name in names if name]
        is_whole = all(name in self._templates for name in templates)
        return [self._templates[name] for name in templates] if is_whole else []

    def take(self, inventory: Inventory) -> None:
        """Note what was given of the devices of several nodes."""
        for device in inventory.devices:
            if device.is_elsewhere and (device.is_used or device.sharing):
                self.used[device.key] = dict(device.taken)


def _is_made_for(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether the pod controls it: by its UID, and in files without UIDs by its name."""
    owner = next((own for own in claim.metadata.owner_references if own.controller), None)
    if owner is None or owner.kind != "Pod":
        return False
    return owner.uid == pod.metadata.uid if pod.metadata.uid else owner.name == pod.metadata.name


def _is_usable_on(node: FinalNode, selector: NodeSelector | None) -> bool:
    return selector is None or any(term_matches(term, node.labels, node.name) for term in selector.node_selector_terms)


def _listed(one: ResourceSlice) -> Iterator[tuple[str, Device]]:
    """Its devices, each with the node that it is of; an empty name for those of several nodes."""
    for device in one.spec.devices:
        yield device.node_name if one.spec.per_device_node_selection else _node_of(one), device


def _agrees(slices: Sequence[ResourceSlice], listed: Sequence[tuple[str, ResourceSliceSpec, Device]]) -> bool:
    """Whether no name is used twice, and all counters that devices take of are there (Kubernetes `buildPool`)."""
    counters: dict[str, set[str]] = {}
    for one in (one for it in slices for one in it.spec.shared_counters):
        if one.name in counters:
            return False
        counters[one.name] = set(one.counters)
    consumed = [(one.counter_set, name) for _, _, it in listed for one in it.consumes_counters for name in one.counters]
    named = {(owner, device.name) for owner, _, device in listed}
    return len(named) == len(listed) and all(name in counters.get(which, ()) for which, name in consumed)


def _by_owner(
    slices: Sequence[ResourceSlice], listed: Sequence[tuple[str, ResourceSliceSpec, Device]]
) -> Iterator[tuple[str, ResourceSliceSpec]]:
    """What the pool has for each node. Counters that devices of several nodes take of are nobody's."""
    takers = {owner for owner, _, device in listed if device.consumes_counters}
    counters = [one for it in slices for one in it.spec.shared_counters] if len(takers) == 1 else []
    for owner, spec, device in listed:
        if len(takers) == 1 or not device.consumes_counters:
            yield owner, with_fields(spec, devices=[device], shared_counters=counters if owner in takers else [])


def _node_of(one: ResourceSlice) -> str:
    return one.spec.node_name or next((own.name for own in one.metadata.owner_references if own.kind == "Node"), "")
