"""The claims of the pods to place: what each still needs, and where those that have their devices already bind it.

Devices that several nodes can use are no node's. Claims get them before anything is packed, pod by pod in the order of
the pods; what is packed then knows only where these devices can be used.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property

from joinery.decisions.scheduling.devices.allocation import allocate, taken_by
from joinery.decisions.scheduling.devices.needs import ClaimNeeds, Needs, UnusableClaimError, are_searchable, needs_of
from joinery.decisions.scheduling.devices.stock import (
    NOTHING,
    SHARES,
    CounterKey,
    DeviceKey,
    Published,
    Stock,
    Taken,
    published,
)
from joinery.objects.karpenter.labels import HOSTNAME
from joinery.objects.kubernetes import quantity
from joinery.objects.kubernetes.core import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodResourceClaim,
)
from joinery.objects.kubernetes.dynamic_resources import ResourceClaim, ResourceClaimSpec
from joinery.objects.snapshot.snapshot import Snapshot

#: By device that claims have, how much of its capacities and ``SHARES``, where they share it. An amount that is below
#: zero takes all (``_ENDLESS``).
Allocated = dict[DeviceKey, dict[str, Decimal]]


@dataclass(frozen=True)
class PodDevices:
    """What a pod's claims ask of its node.

    needs     the claims that get their devices on the node
    where     nodes that claims with devices can be used on: the node must match each
    problem   why the pod cannot be placed, for people; empty if it can
    """

    needs: Needs = ()
    where: tuple[NodeSelector, ...] = ()
    problem: str = ""


NONE = PodDevices()
_ENDLESS = Decimal("Infinity")


@dataclass
class _Open:
    """A claim that is still to be served. ``where``: where it is served already by devices of several nodes."""

    needs: ClaimNeeds
    key: str
    where: tuple[NodeSelector, ...] | None = None


@dataclass
class _Read:
    pod: Pod
    open: list[_Open] = field(default_factory=list)
    where: list[NodeSelector] = field(default_factory=list)


class Claims:
    """What the pods to place need of devices.

    ``claiming``: those with claims, in the order in which they are served. ``moving``: the names of all that have a
    node, and are placed anew. ``suits``: whether a pod may be on some node that a selector matches, as far as the pod
    says. ``stocks_sold``: the devices of the instance types. ``own_devices``: whether claims that a node could serve by
    itself get no devices of several nodes.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        claiming: Sequence[Pod],
        moving: frozenset[str],
        suits: Callable[[Pod, NodeSelector], bool],
        stocks_sold: Callable[[], Iterable[Stock]],
        *,
        own_devices: bool = False,
    ) -> None:
        self._suits, self._moving, self._stocks_sold = suits, moving, stocks_sold
        self._claims = {claim.key: claim for claim in snapshot.resource_claims}
        self._templates = {template.key: template.spec.spec for template in snapshot.resource_claim_templates}
        self._classes = {one.metadata.name: one for one in snapshot.device_classes}
        self._snapshot, self._own_devices = snapshot, own_devices
        #: Whether a claim got devices of several nodes that one node might have had for it.
        self.has_choice = False
        self._placed: dict[str, tuple[NodeSelector, ...]] = {}
        self._may_be_owned: dict[ClaimNeeds, bool] = {}
        self._hosts = {
            node.metadata.name: node.metadata.labels.get(HOSTNAME, node.metadata.name)
            for node in (snapshot.nodes if claiming else ())
        }
        self._users = _users(snapshot.pods) if claiming else {}
        self._of = {pod.key: self._read(pod) for pod in claiming}

    def of(self, pod: Pod) -> PodDevices:
        """What the pod's claims ask for."""
        return self._of.get(pod.key, NONE)

    def of_daemon(self, pod: Pod) -> Needs:
        """What a DaemonSet's pod claims of its node, by templates: a claim by name is one for all of its pods. Nothing
        where a claim cannot be read: such a pod waits.
        """
        namespace = pod.metadata.namespace or "default"
        made = [one for one in pod.spec.resource_claims if one.resource_claim_template_name]
        try:
            needs = tuple(needs_of(one.name, self._template(namespace, one), self._classes) for one in made)
        except UnusableClaimError:
            return ()
        return needs if are_searchable(needs) else ()

    @property
    def is_used(self) -> bool:
        """Whether any pod has a claim."""
        return bool(self._of)

    @cached_property
    def published(self) -> Published:
        """What drivers have published."""
        return self._snapshot.derived(_published).afresh()

    @cached_property
    def allocated(self) -> Allocated:
        """The devices that claims have, without those whose pods all move, and with what they get of several nodes'."""
        return _allocated(claim for claim in self._claims.values() if not self._is_released(claim))

    @cached_property
    def allocated_now(self) -> Allocated:
        """The devices that claims have while all pods are where they are."""
        return _allocated(self._claims.values())

    def _is_released(self, claim: ResourceClaim) -> bool:
        """Whether all who use it move: then its devices are free again."""
        namespace = claim.metadata.namespace or "default"
        users = claim.status.reserved_for
        return bool(users) and all(
            one.resource == "pods" and f"{namespace}/{one.name}" in self._moving for one in users
        )

    def _read(self, pod: Pod) -> PodDevices:
        read = _Read(pod)
        for reference in pod.spec.resource_claims:
            try:
                self._add(read, reference)
            except UnusableClaimError as error:
                return PodDevices(problem=f"its resource claim {reference.name}: {error}")
        if not are_searchable(tuple(claim.needs for claim in read.open)):
            return PodDevices(problem="its resource claims ask for too many devices together to be searched for")
        if read.open and self.published.shared.devices:
            if any(map(self._wants_all_of_both, read.open)):
                return PodDevices(problem="its resource claims ask for all devices, of a node and of several nodes")
            self._serve_elsewhere(read)
        where = [*read.where, *(one for claim in read.open for one in claim.where or ())]
        needs = tuple(claim.needs for claim in read.open if claim.where is None)
        return PodDevices(needs, tuple(where))

    def _add(self, read: _Read, reference: PodResourceClaim) -> None:
        namespace = read.pod.metadata.namespace or "default"
        key = self._key_of(read.pod, reference)
        if key == "":
            return
        claim = self._claims.get(key) if key else None
        if key and claim is None:
            raise UnusableClaimError(f"there is no ResourceClaim {key}")
        if claim is not None:
            _check(claim, None if reference.resource_claim_name else read.pod)
        if claim is not None and claim.status.allocation is not None and not self._is_released(claim):
            if claim.status.allocation.node_selector is not None:
                read.where.append(self._by_labels(claim.status.allocation.node_selector))
            return
        spec = claim.spec if claim is not None else self._template(namespace, reference)
        shared = key if key and self._users.get(key, 0) > 1 else ""
        needs = needs_of(reference.name, spec, self._classes, shared)
        read.open.append(_Open(needs, key or "", self._placed.get(key or "")))

    def _by_labels(self, selector: NodeSelector) -> NodeSelector:
        """The same, with hosts in place of nodes' names, which are no labels."""
        return NodeSelector(node_selector_terms=[self._term(term) for term in selector.node_selector_terms])

    def _term(self, term: NodeSelectorTerm) -> NodeSelectorTerm:
        named = [
            NodeSelectorRequirement(
                key=HOSTNAME, operator=field.operator, values=[self._hosts.get(name, name) for name in field.values]
            )
            for field in term.match_fields
        ]
        return NodeSelectorTerm(match_expressions=[*term.match_expressions, *named])

    def _key_of(self, pod: Pod, reference: PodResourceClaim) -> str | None:
        """Which claim it is: None for one to be made from a template, and empty where the pod needs none.

        A pod that moves is made anew, and so are the claims that were made for it.
        """
        namespace = pod.metadata.namespace or "default"
        if reference.resource_claim_name:
            return f"{namespace}/{reference.resource_claim_name}"
        made = next((one for one in pod.status.resource_claim_statuses if one.name == reference.name), None)
        if made is None or (pod.spec.node_name and made.resource_claim_name):
            return None
        return f"{namespace}/{made.resource_claim_name}" if made.resource_claim_name else ""

    def _template(self, namespace: str, reference: PodResourceClaim) -> ResourceClaimSpec:
        name = reference.resource_claim_template_name
        if not name:
            raise UnusableClaimError("it names neither a ResourceClaim nor a ResourceClaimTemplate")
        spec = self._templates.get(f"{namespace}/{name}")
        if spec is None:
            raise UnusableClaimError(f"there is no ResourceClaimTemplate {namespace}/{name}")
        return spec

    def _wants_all_of_both(self, claim: _Open) -> bool:
        """Whether what it asks for all of are devices of nodes and of several nodes, which are given apart here."""
        return any(
            self.published.shared.selected(way) and any(stock.selected(way) for stock in self._own_stocks)
            for way in claim.needs.wanting_all
        )

    def _may_be_own(self, claim: _Open) -> bool:
        """Whether some node, of those that there are or could be bought, has devices enough of its own for each of its
        requests. No search: who asks for combinations that there are not would make each node cost one. Remembered:
        many claims are made from one template.
        """
        needs = claim.needs
        if needs not in self._may_be_owned:
            self._may_be_owned[needs] = any(
                all(any(len(stock.selected(way)) >= way.least for way in request) for request in needs.requests)
                for stock in self._own_stocks
            )
        return self._may_be_owned[needs]

    def _wants_all_of_places(self, claim: _Open) -> bool:
        """Whether what it asks for all of differs from place to place."""
        shared = self.published.shared
        return any(
            shared.devices[index].where is not None for way in claim.needs.wanting_all for index in shared.selected(way)
        )

    @cached_property
    def _own_stocks(self) -> Sequence[Stock]:
        """The devices of one node each: of those that there are, and of those to be bought."""
        return tuple(dict.fromkeys([*self.published.by_node.values(), *self._stocks_sold()]))

    def _serve_elsewhere(self, read: _Read) -> None:
        """Give claims devices that several nodes can use: all of them at one place, or as many as there can be."""
        waiting = [claim for claim in read.open if claim.where is None]
        if self._own_devices:
            waiting = [claim for claim in waiting if not self._may_be_own(claim)]
        # What the devices of other places take of counters is taken at each of them.
        counters = taken_by(self.published.shared, self.allocated).counters
        ways = [
            (where, stock, *self._served(stock, counters, waiting))
            for where, stock in self._places.values()
            if all(self._suits(read.pod, one) for one in (where, *read.where) if one is not None)
            and (where is not None or not any(map(self._wants_all_of_places, waiting)))
        ]
        where, stock, taken, served = max(ways, key=lambda way: len(way[3]), default=(None, NOTHING, NOTHING.taken, []))
        if not served:
            return
        for index in taken.used:
            self.allocated.setdefault(stock.devices[index].key, {})
        for (index, name), amount in taken.consumed.items():
            self.allocated.setdefault(stock.devices[index].key, {})[name] = amount
        self.has_choice = self.has_choice or (where is not None and any(map(self._may_be_own, served)))
        for claim in served:
            claim.where = () if where is None else (where,)
            if claim.key:
                self._placed[claim.key] = claim.where

    def _served(
        self, stock: Stock, counters: Mapping[CounterKey, Decimal], claims: Sequence[_Open]
    ) -> tuple[Taken, list[_Open]]:
        """Those of the claims that get devices of the stock, and what is taken of it then: all of them, or one after
        another those that can. ``counters``: what is taken of these.
        """
        taken, served = replace(taken_by(stock, self.allocated), counters=counters), list[_Open]()
        asking = [claim for claim in claims if claim.needs.requests]
        together = allocate(stock, taken, tuple(claim.needs for claim in asking))
        if together is not None:
            return together, asking
        for claim in asking if len(asking) > 1 else ():
            after = allocate(stock, taken, (claim.needs,))
            if after is not None:
                taken = after
                served.append(claim)
        return taken, served

    @cached_property
    def _places(self) -> Mapping[str, tuple[NodeSelector | None, Stock]]:
        """Where devices of several nodes can be used, and all that can be used there; the whole cluster comes first."""
        shared = self.published.shared
        selectors = {"": None} | {repr(one.where): one.where for one in shared.devices if one.where is not None}
        return {
            name: (
                where,
                replace(shared, devices=tuple(d for d in shared.devices if d.where is None or repr(d.where) == name)),
            )
            for name, where in sorted(selectors.items())
        }


def _check(claim: ResourceClaim, made_for: Pod | None) -> None:
    """Raises ``UnusableClaimError`` for a claim that kube-scheduler gives to no pod, or not to the one that it was
    ``made_for`` from a template (`foreachPodResourceClaim`, `IsForPod`).
    """
    if claim.metadata.deletion_timestamp is not None:
        raise UnusableClaimError(f"the ResourceClaim {claim.key} is being deleted")
    if made_for is None:
        return
    pod, owners = made_for.metadata, (one for one in claim.metadata.owner_references if one.controller)
    if not any(one.uid == pod.uid if pod.uid else one.name == pod.name for one in owners if one.kind == "Pod"):
        raise UnusableClaimError(f"the ResourceClaim {claim.key} was not made for it")


def _published(snapshot: Snapshot) -> Published:
    """Read once for all packings of a plan: there may be thousands of devices."""
    return published(snapshot.resource_slices)


def _allocated(claims: Iterable[ResourceClaim]) -> Allocated:
    allocated: Allocated = {}
    for claim in claims:
        for one in claim.status.allocation.devices.results if claim.status.allocation else ():
            if not one.admin_access:
                amounts = allocated.setdefault(DeviceKey(one.driver, one.pool, one.device), {})
                if one.is_share:
                    amounts[SHARES] = amounts.get(SHARES, Decimal(0)) + 1
                for name, text in one.consumed_capacity.items():
                    with suppress(ValueError):  # the API server lets no such amount in
                        amount = quantity.parse(text)
                        amounts[name] = amounts.get(name, Decimal(0)) + (_ENDLESS if amount < 0 else amount)
    return allocated


def _users(pods: Iterable[Pod]) -> Mapping[str, int]:
    """How many pods name each claim (namespace/name)."""
    users: dict[str, int] = {}
    for pod in pods:
        for name in {one.resource_claim_name for one in pod.spec.resource_claims if one.resource_claim_name}:
            key = f"{pod.metadata.namespace or 'default'}/{name}"
            users[key] = users.get(key, 0) + 1
    return users


def without_allocated(stock: Stock, allocated: Allocated) -> Stock:
    """A node's stock, of which claims have these devices."""
    return (
        replace(stock, taken=taken_by(stock, allocated))
        if any(one.key in allocated for one in stock.devices)
        else stock
    )


def promised(stock: Stock, seen: Stock, allocated: Allocated) -> Stock:
    """What a node will have once its drivers have said it. ``stock``: that of its instance type; ``seen``: what they
    say by now: of that claims may have something, which is not found again in what the type says but for its driver.
    """
    gone = Counter(device.key.driver for device in seen.devices if device.key in allocated)
    used = frozenset(
        index
        for driver, count in gone.items()
        for index in [i for i, device in enumerate(stock.devices) if device.key.driver == driver][:count]
    )
    return replace(stock, taken=Taken(used)) if used else stock
