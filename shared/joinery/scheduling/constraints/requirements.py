"""The requirement algebra: which values a label may have, and what happens when several rules meet on one key.

A ``ValueSet`` is the set of values that one label key may take; it is written like Karpenter's requirement (complement
flag, values, integer bounds; Karpenter `Requirement`), because intersections and the names in messages must agree with
it. ``Requirements`` maps keys to value sets. Both are immutable.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from joinery.apis.labels import ALIASES, canonical
from joinery.apis.meta import Requirement

_MAX_INT = 2**63 - 1

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
    """The number that a label's value is, of digits only:
    Go reads neither ``1_000`` nor other scripts' digits as one.
    """
    digits = value.removeprefix("-")
    return int(value) if digits.isascii() and digits.isdigit() else None


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Values a label may take: those in ``values``, or with ``complement`` all others within the bounds (inclusive).

    ``absent`` tells whether a node without the label will do as well, which kube-scheduler allows for NotIn and
    DoesNotExist. It is kept through intersections, so that ``NotIn [a]`` with ``Exists`` still demands the label.
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
        """The derived operator name, as Karpenter names it: a bounded set is Exists."""
        if self.complement:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    def intersect(self, other: "ValueSet") -> "ValueSet":
        """What both allow."""
        absent = self.absent and other.absent
        gte = max((b for b in (self.gte, other.gte) if b is not None), default=None)
        lte = min((b for b in (self.lte, other.lte) if b is not None), default=None)
        if gte is not None and lte is not None and gte > lte:
            return ValueSet(False, absent=absent)
        bounds = ValueSet(True, gte=gte, lte=lte)
        if self.complement and other.complement:
            excluded = frozenset(v for v in self.values | other.values if bounds._within(v))
            return ValueSet(True, excluded, gte, lte, absent)
        if self.complement:
            values = other.values - self.values
        elif other.complement:
            values = self.values - other.values
        else:
            values = self.values & other.values
        return ValueSet(False, frozenset(v for v in values if bounds._within(v)), absent=absent)

    def pick(self) -> str:
        """One allowed value, always the same: invented for a label that must exist with any value."""
        if not self.complement:
            return min(self.values, default="")
        number = self.gte if self.gte is not None else min(0, self.lte if self.lte is not None else 0)
        while str(number) in self.values:
            number += 1 if self.lte is None or number < self.lte else -1
        return str(number)

    def __str__(self) -> str:
        if self.complement and (self.gte is not None or self.lte is not None):
            bounds = [f">= {self.gte}"] if self.gte is not None else []
            return " and ".join(bounds + ([f"<= {self.lte}"] if self.lte is not None else []))
        if self.is_impossible:
            return "with no value left"
        listed = sorted(self.values)
        shown = ", ".join(listed[:5]) + (f" and {len(listed) - 5} others" if len(listed) > 5 else "")
        return f"{self.operator} [{shown}]" if listed else self.operator


ANY = ValueSet(True, absent=True)
EXISTS = ValueSet(True)
ABSENT = ValueSet(False, absent=True)


def one_of(values: Iterable[str]) -> ValueSet:
    """In."""
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
        case "Gt" | "Lt" | "Gte" | "Lte" if len(values) == 1 and integer(values[0]) is not None:
            return _bounded(expression.operator, int(values[0]))
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
    """Label keys and the values each may take. A key that is not there is unconstrained.

    Keys are those that were written: kube-scheduler looks for just that label on a node that exists. A new node has a
    label under all its names, so what it must satisfy is the ``canonical`` form.
    """

    sets: Mapping[str, ValueSet]

    def __iter__(self) -> Iterator[str]:
        return iter(self.sets)

    def __bool__(self) -> bool:
        return bool(self.sets)

    def get(self, key: str) -> ValueSet:
        """The values allowed for a key."""
        return self.sets.get(key, ANY)

    def intersect(self, other: "Requirements") -> "Requirements":
        """What satisfies both, key by key; a contradiction becomes an empty set, which nothing satisfies."""
        if not other.sets:
            return self
        if not self.sets:
            return other
        merged = dict(self.sets)
        for key, allowed in other.sets.items():
            known = merged.get(key)
            merged[key] = allowed if known is None else known.intersect(allowed)
        return Requirements(merged)

    def canonical(self) -> "Requirements":
        """The same with every older name of a label read as the label."""
        if ALIASES.keys().isdisjoint(self.sets):
            return self
        merged: dict[str, ValueSet] = {}
        for key, allowed in self.sets.items():
            name = canonical(key)
            merged[name] = merged[name].intersect(allowed) if name in merged else allowed
        return Requirements(merged)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels satisfies all of it: no label may be missing that must exist."""
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
    """A value set as requirements of a NodeClaim: sorted values;
    Gte and Lte for bounds (Karpenter `Requirement.NodeSelectorRequirement`).
    """

    def entry(operator: Operator, *values: str) -> Requirement:
        return Requirement(key=key, operator=operator, values=sorted(values), min_values=min_values)

    if not allowed.complement:
        return (entry("In", *allowed.values),) if allowed.values else (entry("DoesNotExist"),)
    entries = [entry("NotIn", *allowed.values)] if allowed.values else []
    entries += [entry("Gte", str(allowed.gte))] if allowed.gte is not None else []
    entries += [entry("Lte", str(allowed.lte))] if allowed.lte is not None else []
    if not allowed.absent and allowed.gte is None and allowed.lte is None:
        entries.append(entry("Exists"))
    return tuple(entries)
