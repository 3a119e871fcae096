"""What a pod's claims ask of a node's devices, in a form that is equal for pods that ask for the same."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from joinery.objects.kubernetes import quantity
from joinery.objects.kubernetes.cel_tokens import ExpressionError
from joinery.objects.kubernetes.core import Toleration
from joinery.objects.kubernetes.device_expressions import compiled
from joinery.objects.kubernetes.dynamic_resources import (
    DeviceAlternative,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    ResourceClaimSpec,
    expressions,
)

#: What a claim may have at most (Kubernetes `AllocationResultsMaxSize`).
MOST_DEVICES = 32
#: The number of devices of a request for all that there are.
ALL = 0
#: Characters of an expression that say which it is.
_SHOWN = 160
#: How deep a search for a pod's claims may go, in calls: a part of Python's stack.
_DEEPEST = 500


class UnusableClaimError(ValueError):
    """A claim that cannot be read, or asks for a class that there is not."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """So many devices that all of these expressions select.

    name         of the request, with that of the alternative after a slash
    of_class     the DeviceClass
    selectors    expressions, the class's first; ``class_selectors``: how many are the class's
    count        how many; ``ALL`` for every one that is selected
    capacity     by name: how much of a device's capacity
    is_admin     whether they are only looked at, and may be others' (adminAccess)
    tolerations  (key, operator, value, effect) of taints of devices
    """

    name: str
    of_class: str
    selectors: tuple[str, ...]
    count: int = 1
    class_selectors: int = 0
    capacity: tuple[tuple[str, Decimal], ...] = ()
    is_admin: bool = False
    tolerations: tuple[tuple[str, str, str, str], ...] = ()

    @property
    def least(self) -> int:
        """How many devices it takes at least: of all that there are, one."""
        return 1 if self.count == ALL else self.count


@dataclass(frozen=True, slots=True)
class Constraint:
    """What devices of these requests (all, if empty) have in common, or do not. ``attribute``: with its domain."""

    attribute: str
    requests: tuple[str, ...] = ()
    is_distinct: bool = False


@dataclass(frozen=True, slots=True)
class ClaimNeeds:
    """What one claim asks for.

    name         as the pod calls it
    requests     by request its alternatives, the best first
    constraints  what its devices have in common
    shared       the claim (namespace/name) if other pods use it too; empty for one of the pod's own
    """

    name: str
    requests: tuple[tuple[Wanted, ...], ...]
    constraints: tuple[Constraint, ...] = ()
    shared: str = ""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Whatever is remembered of nodes is remembered by the claims of their pods.
        object.__setattr__(self, "_hash", hash((self.name, self.requests, self.constraints, self.shared)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def wanting_all(self) -> Sequence[Wanted]:
        """The alternatives that ask for all devices that there are."""
        return [way for request in self.requests for way in request if way.count == ALL]


#: What a pod's claims ask for together, in their order.
Needs = tuple[ClaimNeeds, ...]


def needs_of(name: str, spec: ResourceClaimSpec, classes: Mapping[str, DeviceClass], shared: str = "") -> ClaimNeeds:
    """What a claim asks for. Raises ``UnusableClaimError``, for people."""
    requests = tuple(tuple(_alternatives(request, classes)) for request in spec.devices.requests)
    least = sum(min((one.count for one in alternatives), default=0) for alternatives in requests)
    if least > MOST_DEVICES:
        raise UnusableClaimError(f"it asks for {least} devices, and a claim may have {MOST_DEVICES}")
    return ClaimNeeds(name, requests, tuple(map(_constraint, spec.devices.constraints)), shared)


def are_searchable(needs: Needs) -> bool:
    """Whether a search for all of them ends within the stack: each claim, request and device is a step deeper."""
    return sum(2 + 4 * len(claim.requests) + min(_most_devices(claim), MOST_DEVICES) for claim in needs) <= _DEEPEST


def _most_devices(claim: ClaimNeeds) -> int:
    return sum(max((one.count or MOST_DEVICES for one in wanted), default=0) for wanted in claim.requests)


def _alternatives(request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> Iterator[Wanted]:
    if request.exactly is not None:
        yield _wanted(request.name, request.exactly, classes)
        return
    if not request.first_available:
        raise UnusableClaimError(f"request {request.name} says neither exactly nor firstAvailable")
    for alternative in request.first_available:
        yield _wanted(f"{request.name}/{alternative.name}", alternative, classes)


def _wanted(name: str, asked: DeviceAlternative, classes: Mapping[str, DeviceClass]) -> Wanted:
    device_class = classes.get(asked.device_class_name)
    if device_class is None:
        raise UnusableClaimError(f"request {name}: there is no DeviceClass {asked.device_class_name or '(unnamed)'}")
    of_class = tuple(expressions(device_class.spec.selectors))
    selectors = (*of_class, *expressions(asked.selectors))
    for text in selectors:
        try:
            compiled(text)
        except ExpressionError as error:
            raise UnusableClaimError(f"request {name}: the selector {shown(text)}: {error}") from error
    if asked.count < 0:
        raise UnusableClaimError(f"request {name}: it asks for {asked.count} devices")
    if asked.allocation_mode not in ("ExactCount", "All", ""):
        raise UnusableClaimError(f"request {name}: allocationMode {asked.allocation_mode} is not supported")
    return Wanted(
        name=name,
        of_class=asked.device_class_name,
        selectors=selectors,
        class_selectors=len(of_class),
        count=ALL if asked.allocation_mode == "All" else max(asked.count, 1),
        capacity=tuple(sorted(_capacity(name, asked))),
        is_admin=bool(asked.admin_access),
        tolerations=tuple(map(_toleration, asked.tolerations)),
    )


def shown(expression: str) -> str:
    """As much of an expression as says which it is: it may have ten thousand characters."""
    text = " ".join(expression.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _capacity(name: str, asked: DeviceAlternative) -> Iterator[tuple[str, Decimal]]:
    for of, text in (asked.capacity.requests if asked.capacity else {}).items():
        try:
            yield of, quantity.parse(text)
        except ValueError as error:
            raise UnusableClaimError(f"request {name}: capacity {of}: {error}") from error


def _toleration(one: Toleration) -> tuple[str, str, str, str]:
    return one.key, one.operator or "Equal", one.value, one.effect


def _constraint(one: DeviceConstraint) -> Constraint:
    return Constraint(
        one.match_attribute or one.distinct_attribute, tuple(sorted(one.requests)), not one.match_attribute
    )
