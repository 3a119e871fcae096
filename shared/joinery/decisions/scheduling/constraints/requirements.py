"""The requirement algebra: which values a label may have, and what is left when several rules meet on one label.

A ``ValueSet`` is the set of values that one label may take. It is stored like Karpenter's `Requirement`: values, a flag
that says whether they are the allowed or the excluded ones, and integer bounds. So intersections give what Karpenter's
give, and messages name the same operators. ``Requirements`` maps labels to value sets. Both are immutable.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Literal, Protocol

from joinery.decisions.scheduling.devices.needs import Needs
from joinery.objects.karpenter.labels import ALIASES, canonical
from joinery.objects.karpenter.meta import Requirement

_MAX_INT = 2**63 - 1
_LONGEST_INT = len(str(_MAX_INT))

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]


class Expression(Protocol):
    """A node selector requirement, of a pod (apis.core) or of a NodePool (apis.meta)."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> list[str]: ...


class UnknownOperatorError(ValueError):
    """An operator that Kubernetes does not know, or bad values for one. The message names key and operator."""


def integer(value: str) -> int | None:
    """The integer that a label's value stands for; None if it stands for none.

    Only ASCII digits count, and what 64 bits hold. Python also reads ``1_000``, digits of other scripts and larger
    numbers, Go does not (kube-scheduler: ``strconv.ParseInt``).
    """
    sign, digits = value[: value.startswith("-")], value.removeprefix("-")
    significant = digits.lstrip("0")
    if not (digits.isascii() and digits.isdigit()) or len(significant) > _LONGEST_INT:
        return None
    number = int(f"{sign}{significant or 0}")
    return number if -_MAX_INT - 1 <= number <= _MAX_INT else None


@dataclass(frozen=True, slots=True)
class ValueSet:
    """The values that a label may take.

    complement   whether ``values`` are excluded rather than allowed
    values       with ``complement``, those that are not allowed; else all that are
    gte, lte     with ``complement``, inclusive integer bounds; None for no bound
    absent       whether a node without the label will do

    kube-scheduler lets NotIn and DoesNotExist pass on a node without the label. Intersections keep ``absent`` only if
    both sides have it, so ``NotIn [a]`` with ``Exists`` demands the label.
    """

    complement: bool
    values: frozenset[str] = frozenset()
    gte: int | None = None
    lte: int | None = None
    absent: bool = False

    def has(self, value: str) -> bool:
        """Whether a label with this value is allowed."""
        return (value in self.values) != self.complement and self._within(value)

    def _within(self, value: str) -> bool:
        if self.gte is None and self.lte is None:
            return True
        number = integer(value)
        return (
            number is not None and (self.gte is None or number >= self.gte) and (self.lte is None or number <= self.lte)
        )

    @property
    def is_empty(self) -> bool:
        """No value is allowed."""
        return not self.complement and not self.values

    @property
    def is_impossible(self) -> bool:
        """Nothing satisfies it: neither a value nor the label's absence."""
        return self.is_empty and not self.absent

    @property
    def operator(self) -> str:
        """The operator that describes the set, as Karpenter derives it (`Requirement.Operator`):
        Exists for a bounded one.
        """
        if self.complement:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    def intersect(self, other: "ValueSet") -> "ValueSet":
        """What both allow."""
        if self is other:
            return self
        absent, both = self.absent and other.absent, self._intersect_values(other)
        if self.gte is self.lte is other.gte is other.lte is None:  # nearly all have no bounds
            return ValueSet(*both, absent=absent)
        gte = max((bound for bound in (self.gte, other.gte) if bound is not None), default=None)
        lte = min((bound for bound in (self.lte, other.lte) if bound is not None), default=None)
        if gte is not None and lte is not None and gte > lte:
            return ValueSet(False, absent=absent)
        (complement, listed), bounds = both, ValueSet(True, gte=gte, lte=lte)
        values = frozenset(value for value in listed if bounds._within(value))
        return ValueSet(True, values, gte, lte, absent) if complement else ValueSet(False, values, absent=absent)

    def _intersect_values(self, other: "ValueSet") -> tuple[bool, frozenset[str]]:
        """``complement`` and ``values`` of what both allow, bounds apart."""
        if self.complement and other.complement:
            return True, self.values | other.values
        if self.complement:
            return False, other.values - self.values
        return False, self.values - other.values if other.complement else self.values & other.values

    def pick(self) -> str:
        """One allowed value, always the same one.

        A label that may have any value gets an invented one: the smallest integer that is allowed, from 0 or the lower
        bound on. Where all integers up to the upper bound are excluded, one of them is written with leading zeros:
        Kubernetes compares texts for NotIn, and numbers for bounds.
        """
        if not self.complement:
            return min(self.values, default="")
        return next(value for value in self._invented() if value not in self.values)

    def _invented(self) -> Iterator[str]:
        first = self.gte if self.gte is not None else min(0, self.lte if self.lte is not None else 0)
        last = first + len(self.values)
        yield from map(str, range(first, 1 + (last if self.lte is None else min(last, self.lte))))
        for width in count(len(str(first)) + 1):
            yield str(first).zfill(width)

    def __str__(self) -> str:
        if self.complement and (self.gte is not None or self.lte is not None):
            bounds = [f">= {self.gte}"] if self.gte is not None else []
            return " and ".join(bounds + ([f"<= {self.lte}"] if self.lte is not None else []))
        if self.is_impossible:
            return "with no value left"
        listed = sorted(self.values)
        # The empty text is a value like any other: node-role.kubernetes.io/worker has it.
        shown = ", ".join(value or '""' for value in listed[:5]) + (
            f" and {len(listed) - 5} others" if len(listed) > 5 else ""
        )
        return f"{self.operator} [{shown}]" if listed else self.operator


ANY = ValueSet(True, absent=True)
EXISTS = ValueSet(True)
ABSENT = ValueSet(False, absent=True)


def one_of(values: Iterable[str]) -> ValueSet:
    """``In`` with these values."""
    return ValueSet(False, frozenset(values))


def value_set(expression: Expression) -> ValueSet:
    """The values that one expression allows. Raises ``UnknownOperatorError``."""
    values = list(expression.values)
    match expression.operator:
        case "In" if values:
            return one_of(values)
        case "NotIn" if values:
            return ValueSet(True, frozenset(values), absent=True)
        case "Exists" if not values:
            return EXISTS
        case "DoesNotExist" if not values:
            return ABSENT
        case "Gt" | "Lt" | "Gte" | "Lte" if len(values) == 1 and (number := integer(values[0])) is not None:
            return _bounded(expression.operator, number)
    shown = f"{expression.key} {expression.operator} [{', '.join(values)}]"
    raise UnknownOperatorError(f"{shown} is not a valid requirement")


def _bounded(operator: str, number: int) -> ValueSet:
    match operator:
        case "Gt":
            return ValueSet(False) if number >= _MAX_INT else ValueSet(True, gte=number + 1)
        case "Lt":
            return ValueSet(True, lte=number - 1)
        case "Gte":
            return ValueSet(True, gte=number)
        case _:
            return ValueSet(True, lte=number)


@dataclass(frozen=True, slots=True)
class Requirements:
    """Labels, and the values that each may take. A label that is not in it may be absent or have any value.

    ``sets``: by label key, as it was written. kube-scheduler looks for exactly that label on an existing node. A new
    node carries a label under all its names (``failure-domain.beta.kubernetes.io/zone`` and
    ``topology.kubernetes.io/zone``), so the ``canonical`` form is what a new node is compared with.

    ``whole_gpus``: a new node with parts of GPUs will not do, unless its type is asked for (``gpus``). ``devices``:
    what claims need of a new node's devices.
    """

    sets: Mapping[str, ValueSet]
    whole_gpus: bool = False
    devices: Needs = ()

    def __iter__(self) -> Iterator[str]:
        return iter(self.sets)

    def __bool__(self) -> bool:
        return bool(self.sets)

    def get(self, key: str) -> ValueSet:
        """The values allowed for a key."""
        return self.sets.get(key, ANY)

    def intersect(self, other: "Requirements") -> "Requirements":
        """What satisfies both, key by key; a contradiction becomes an empty set, which nothing satisfies."""
        if not other.sets and not other.whole_gpus and not other.devices:
            return self
        if not self.sets and not self.whole_gpus and not self.devices:
            return other
        merged = dict(self.sets)
        for key, allowed in other.sets.items():
            own = merged.get(key)
            merged[key] = allowed if own is None else own.intersect(allowed)
        return Requirements(merged, self.whole_gpus or other.whole_gpus, self.devices or other.devices)

    def canonical(self) -> "Requirements":
        """The same, with the older names of labels replaced by the current ones."""
        if ALIASES.keys().isdisjoint(self.sets):
            return self
        merged: dict[str, ValueSet] = {}
        for key, allowed in self.sets.items():
            name = canonical(key)
            merged[name] = merged[name].intersect(allowed) if name in merged else allowed
        return Requirements(merged, self.whole_gpus, self.devices)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels satisfies all of it. A label that must exist may not be missing."""
        return self.first_unmet(labels) is None

    def first_unmet(self, labels: Mapping[str, str]) -> str | None:
        """The first key, in name order, that a node with these labels does not satisfy."""
        for key in sorted(self.sets):
            allowed, value = self.sets[key], labels.get(key)
            if not (allowed.absent if value is None else allowed.has(value)):
                return key
        return None

    def __str__(self) -> str:
        return ", ".join(f"{key} {self.sets[key]}" for key in sorted(self.sets))


NO_REQUIREMENTS = Requirements({})


def read(expressions: Iterable[Expression]) -> Requirements:
    """Several expressions, all of which must hold. Raises ``UnknownOperatorError``."""
    sets: dict[str, ValueSet] = {}
    for expression in expressions:
        key, allowed = expression.key, value_set(expression)
        sets[key] = sets[key].intersect(allowed) if key in sets else allowed
    return Requirements(sets)


def of_labels(labels: Mapping[str, str]) -> Requirements:
    """A node selector, or a template's labels: each key In its one value."""
    return read(_Equal(key, [value]) for key, value in labels.items())


@dataclass(frozen=True, slots=True)
class _Equal:
    key: str
    values: list[str]
    operator: str = "In"


def written(key: str, allowed: ValueSet, min_values: int | None = None) -> tuple[Requirement, ...]:
    """A value set as requirements of a NodeClaim: sorted values, and Gt and Lt for bounds.

    (Karpenter `Requirement.NodeSelectorRequirement`, which writes Gte and Lte. The definitions of Karpenter v0.32 to
    v1.8, which stay where they are, know neither.) "Not below 0" takes Gte, for no bound may be negative; but then no
    label's value is.
    """

    def entry(operator: Operator, *values: str) -> Requirement:
        return Requirement(key=key, operator=operator, values=sorted(values), min_values=min_values)

    if not allowed.complement:
        return (entry("In", *allowed.values),) if allowed.values else (entry("DoesNotExist"),)
    entries = [entry("NotIn", *allowed.values)] if allowed.values else []
    if allowed.gte is not None:
        entries.append(entry("Gt", str(allowed.gte - 1)) if allowed.gte > 0 else entry("Gte", "0"))
    if allowed.lte is not None:
        entries.append(entry("Lt", str(allowed.lte + 1)))
    if not allowed.absent and allowed.gte is None and allowed.lte is None:
        entries.append(entry("Exists"))
    return tuple(entries)
