"""What expressions over devices are made of: values, and the functions that CEL and Kubernetes have for them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import total_ordering
from typing import Any

from joinery.objects.kubernetes import quantity
from joinery.objects.kubernetes.cel_tokens import ExpressionError

_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)
#: The longest text that patterns are sought in; what devices say of themselves has 64 characters at most.
_LONGEST_SEARCHED = 128
#: How many steps one evaluation may take: loops within loops over lists would not end otherwise, and what is joined
#: with itself again and again would fill the memory.
MOST_STEPS = 20_000
TOO_MANY_STEPS = f"it costs too much, more than {MOST_STEPS} steps"


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version (semver.org). ``numbers``: major, minor, patch. ``earlier``: what stands after a dash."""

    numbers: tuple[int, int, int]
    earlier: str = ""

    @classmethod
    def of(cls, text: str) -> "Version":
        """Raises ``ExpressionError``."""
        match = _VERSION.fullmatch(text)
        if match is None:
            raise ExpressionError(f"{text!r} is no semantic version")
        return cls((int(match[1]), int(match[2]), int(match[3])), match[4] or "")

    def __lt__(self, other: "Version") -> bool:
        return (self.numbers, self._rank) < (other.numbers, other._rank)

    @property
    def _rank(self) -> tuple[Any, ...]:
        parts = self.earlier.split(".") if self.earlier else []
        return (not parts, [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts])


@dataclass(frozen=True, slots=True)
class Maybe:
    value: Any = None
    is_there: bool = False


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ExpressionError("there is no bool where one should be")
    return value


def number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ExpressionError("there is no number where one should be")
    return value


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and any(isinstance(item, list) for item in one):
        raise ExpressionError("lists of lists are not compared")
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def compared(one: Any, other: Any) -> int:
    kinds = ((str,), (Decimal,), (Version,), (bool,), (int, float))
    is_ordered = isinstance(one, bool) == isinstance(other, bool) and any(
        isinstance(one, kind) and isinstance(other, kind) for kind in kinds
    )
    if is_ordered:
        return int(one > other) - int(one < other)
    raise ExpressionError("values of two kinds have no order")


def called(function: Callable[..., Any], name: str, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (TypeError, AttributeError, ArithmeticError) as error:
        raise ExpressionError(f"{name}() is not for these values") from error


def _quantity(text: Any) -> Decimal:
    try:
        return quantity.parse(_text(text))
    except ValueError as error:
        raise ExpressionError(str(error)) from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ExpressionError("there is no string where one should be")
    return value


def _converts(convert: Callable[[Any], Any], value: Any) -> bool:
    try:
        convert(value)
    except ExpressionError:
        return False
    return True


def _matches(text: Any, pattern: Any) -> bool:
    """RE2 takes no longer than the text is long. Python's patterns may: those that could are refused."""
    text, pattern = _text(text), _text(pattern)
    # What repeats, or may be one of several things, multiplies what is tried.
    if (
        max(len(text), len(pattern)) > _LONGEST_SEARCHED
        or len(re.findall(r"(?<!\\)(?:\((?:\?[:i])?|[*+{?])", pattern.removeprefix("(?i)"))) > 3
        or re.search(r"\)[*+{]|\\[1-9]|\(\?[^:i]", pattern)
    ):
        raise ExpressionError(f"a pattern such as {pattern[:80]!r} is not supported")
    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        raise ExpressionError(f"{pattern!r} is no pattern: {error}") from error


def _place(text: str, at: Any) -> int:
    if isinstance(at, bool) or not isinstance(at, int) or not 0 <= at <= len(text):
        raise ExpressionError(f"there is no place {at} in {text[:80]!r}")
    return at


def _replaced(text: Any, old: Any, new: Any, most: int = -1) -> str:
    text, old, new = _text(text), _text(old), _text(new)
    if len(text) + text.count(old) * len(new) > MOST_STEPS:
        raise ExpressionError(TOO_MANY_STEPS)
    return str(text.replace(old, new, most))


def _split(text: Any, sign: Any, most: int = -1) -> list[str]:
    if most in (0, 1) or not _text(sign):
        return [] if most == 0 else [_text(text)] if most == 1 else list(_text(text))
    return _text(text).split(sign, most - 1 if most > 0 else -1)


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ExpressionError("there is no list where one should be")
    return value


def _sought(value: Any, item: Any, *, last: bool = False) -> int:
    """Where a text or an item is for the first or last time; -1 where it is not."""
    if isinstance(value, str):
        return value.rfind(_text(item)) if last else value.find(_text(item))
    places = [at for at, one in enumerate(_listed(value)) if same(one, item)]
    return (places[-1] if last else places[0]) if places else -1


def _extreme(value: Any, order: int) -> Any:
    best = next(iter(_listed(value)), None)
    if best is None:
        raise ExpressionError("an empty list has neither least nor most")
    for one in value:
        best = one if compared(one, best) * order > 0 else best
    return best


def _has_all(value: Any, others: Any) -> bool:
    return all(any(same(one, other) for one in _listed(value)) for other in _listed(others))


def _normalized(text: Any, is_loose: Any = False) -> Version:
    """``is_loose``: a leading v, leading zeros and missing numbers are allowed."""
    text = _text(text)
    if truth(is_loose):
        numbers, dash, rest = text.removeprefix("v").partition("-" if "-" in text else "+")
        parts = [str(int(part)) if part.isdecimal() else part for part in numbers.split(".")]
        text = ".".join([*parts, "0", "0"][: max(len(parts), 3)]) + dash + rest
    return Version.of(text)


def _size(value: Any) -> int:
    if isinstance(value, (str, list, dict)):
        return len(value)
    raise ExpressionError("size() is for strings, lists and maps")


def _value_of(value: Any, default: Any) -> Any:
    return value.value if value.is_there else default


def _stated(value: Any) -> Any:
    if isinstance(value, Maybe) and value.is_there:
        return value.value
    raise ExpressionError("the device has no such value")


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "quantity": _quantity,
    "isQuantity": lambda value: _converts(_quantity, value),
    "semver": _normalized,
    "isSemver": lambda value, is_loose=False: _converts(lambda text: _normalized(text, is_loose), _text(value)),
    "dyn": lambda value: value,
    "sets.contains": _has_all,
    "sets.equivalent": lambda one, other: _has_all(one, other) and _has_all(other, one),
    "sets.intersects": lambda one, other: any(_has_all(other, [item]) for item in _listed(one)),
    "size": _size,
    "string": lambda value: value if isinstance(value, str) else str(number(value)),
    "int": lambda value: int(number(value)),
    "double": lambda value: float(number(value)),
    "matches": _matches,
}
METHODS: Mapping[str, Callable[..., Any]] = {
    "compareTo": compared,
    "isGreaterThan": lambda one, other: compared(one, other) > 0,
    "isLessThan": lambda one, other: compared(one, other) < 0,
    "add": lambda one, other: one + (Decimal(other) if isinstance(other, int) else other),
    "sub": lambda one, other: one - (Decimal(other) if isinstance(other, int) else other),
    "sign": lambda value: (value > Decimal(0)) - (value < Decimal(0)),
    "isInteger": lambda value: value == value.to_integral_value(),
    "asInteger": lambda value: int(value),
    "asApproximateFloat": lambda value: float(value),
    "major": lambda value: value.numbers[0],
    "minor": lambda value: value.numbers[1],
    "patch": lambda value: value.numbers[2],
    "startsWith": lambda one, other: _text(one).startswith(_text(other)),
    "endsWith": lambda one, other: _text(one).endswith(_text(other)),
    "contains": lambda one, other: _text(other) in _text(one),
    "matches": _matches,
    "charAt": lambda text, at: _text(text)[_place(text, at) :][:1],
    "substring": lambda text, start, end=None: _text(text)[
        _place(text, start) : _place(text, len(text) if end is None else end)
    ],
    "indexOf": _sought,
    "lastIndexOf": lambda value, item: _sought(value, item, last=True),
    "replace": _replaced,
    "split": _split,
    "trim": lambda text: _text(text).strip(),
    "join": lambda items, sign="": _text(sign).join(map(_text, _listed(items))),
    "min": lambda items: _extreme(items, -1),
    "max": lambda items: _extreme(items, 1),
    "or": lambda value, other: value if value.is_there else other,
    "lowerAscii": lambda value: _text(value).lower(),
    "upperAscii": lambda value: _text(value).upper(),
    "size": _size,
    "orValue": _value_of,
    "hasValue": lambda value: value.is_there,
    "value": _stated,
}
