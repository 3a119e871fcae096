"""Expressions that select devices: CEL as ``resource.k8s.io`` writes it (Kubernetes `dynamic-resource-allocation/cel`).

An expression knows ``device`` and yields whether the device will do. Values are typed only as they come: a device says
of itself what its driver likes. So an expression is not checked before it is evaluated, and one without a value for a
device (an attribute that it lacks) selects it not. Cost is bounded, because whoever may make a claim writes these.

What Kubernetes adds is here: quantities, semantic versions, ``cel.bind``, optional fields, string functions. What has
no use for devices (timestamps, maps of one's own, messages) is refused like a misspelt name.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, total_ordering
from typing import Any

from joinery.objects.kubernetes import quantity

_Scope = Mapping[str, Any]
_Value = Callable[[_Scope], Any]

_BLANK = re.compile(r"(?:\s|//[^\n]*)*+", re.ASCII)
_TOKEN = re.compile(
    r"""(?:
    (?P<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)(?![\w.])
    |(?P<raw>[rR](?:"[^"\n]*"|'[^'\n]*'))
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>\|\||&&|[<>=!]=|\.\?|\[\?|[-+*/%<>!?:()\[\],.])
    )""",
    re.VERBOSE | re.ASCII,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "`": "`", "?": "?"}
#: The longest that the API server takes (``CELSelectorExpressionMaxLength``), and how deep values may stand in values:
#: each takes some of Python's stack.
_LONGEST, _DEEPEST = 10 * 1024, 40
#: How many steps one evaluation may take: loops within loops over lists would not end otherwise, and what is joined
#: with itself again and again would fill the memory.
_MOST_STEPS = 20_000
#: The longest text that patterns are sought in; what devices say of themselves has 64 characters at most.
_LONGEST_SEARCHED = 128
_PRECEDENCE = {
    "||": 1, "&&": 2, **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 3), "+": 4, "-": 4, "*": 5, "/": 5,
    "%": 5,
}  # fmt: skip
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)


class DeviceExpressionError(ValueError):
    """An expression that is none, or that has no value for a device."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version (semver.org). ``numbers``: major, minor, patch. ``earlier``: what stands after a dash."""

    numbers: tuple[int, int, int]
    earlier: str = ""

    @classmethod
    def of(cls, text: str) -> "Version":
        """Raises ``DeviceExpressionError``."""
        match = _VERSION.fullmatch(text)
        if match is None:
            raise DeviceExpressionError(f"{text!r} is no semantic version")
        return cls((int(match[1]), int(match[2]), int(match[3])), match[4] or "")

    def __lt__(self, other: "Version") -> bool:
        return (self.numbers, self._rank) < (other.numbers, other._rank)

    @property
    def _rank(self) -> tuple[Any, ...]:
        parts = self.earlier.split(".") if self.earlier else []
        return (not parts, [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts])


@dataclass(frozen=True, slots=True)
class _Optional:
    value: Any = None
    is_there: bool = False


class _Domains(dict[str, Mapping[str, Any]]):
    """What a device says by domain. Of a domain that it does not speak of it says nothing, which is no error."""

    def __missing__(self, key: str) -> Mapping[str, Any]:
        return {}


@lru_cache(maxsize=1024)
def compiled(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """The expression as a function of ``device``. Raises ``DeviceExpressionError``; so does the function where the
    expression has no value for the device.
    """
    if len(text) > _LONGEST:
        raise DeviceExpressionError("it is too long")
    value = _Parser(list(_tokens(text))).whole()

    def selects(device: Mapping[str, Any]) -> bool:
        answer = value({"device": device, "": [_MOST_STEPS]})
        if not isinstance(answer, bool):
            raise DeviceExpressionError("it yields no bool")
        return answer

    return selects


def device_of(
    driver: str, attributes: Mapping[str, Any], capacity: Mapping[str, Decimal], *, is_shared: bool
) -> Mapping[str, Any]:
    """A device as expressions know it. Names of attributes and capacities without a domain are in the driver's."""
    return {
        "driver": driver,
        "attributes": _by_domain(driver, attributes),
        "capacity": _by_domain(driver, capacity),
        "allowMultipleAllocations": is_shared,
    }


def qualified(driver: str, name: str) -> str:
    """The name of an attribute or capacity with its domain."""
    return name if "/" in name else f"{driver}/{name}"


def _by_domain(driver: str, values: Mapping[str, Any]) -> _Domains:
    domains = _Domains()
    for name, value in values.items():
        domain, _, last = qualified(driver, name).rpartition("/")
        domains[domain] = {**domains[domain], last: value}
    return domains


def _tokens(text: str) -> Iterator[tuple[str, Any]]:
    at = _after_blanks(text, 0)
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise DeviceExpressionError(f"{text[at : at + 12].strip()!r} is not understood")
        kind, word = match.lastgroup, match[0]
        yield ("literal", _literal(kind, word)) if kind not in ("name", "sign") else (kind, word)
        at = _after_blanks(text, match.end())
    yield "end", ""


def _after_blanks(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _literal(kind: str, word: str) -> Any:
    if kind == "int":
        return int(word, 16) if word[:2] == "0x" else int(word[:20])
    if kind == "double":
        return float(word)
    if kind == "raw":
        return word[2:-1]
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), word[1:-1])


class _Parser:
    """Reads tokens from the left. What each method reads is what the grammar of CEL calls it.

    ``_height``: how many values stand in one another in the one that was read last.
    """

    def __init__(self, tokens: list[tuple[str, Any]]) -> None:
        self._tokens, self._at, self._depth, self._height = tokens, 0, 0, 0

    def whole(self) -> _Value:
        value = self._expression()
        if self._tokens[self._at][0] != "end":
            raise DeviceExpressionError(f"there is {self._tokens[self._at][1]!r} where an end should be")
        return value

    def _takes(self, *words: str) -> str:
        kind, word = self._tokens[self._at]
        if kind in ("sign", "name") and word in words:
            self._at += 1
            return str(word)
        return ""

    def _take(self, word: str) -> None:
        if not self._takes(word):
            raise DeviceExpressionError(f"there is {self._tokens[self._at][1] or 'an end'!r} where {word!r} should be")

    def _name(self) -> str:
        kind, word = self._tokens[self._at]
        if kind != "name":
            raise DeviceExpressionError(f"there is {word or 'an end'!r} where a name should be")
        self._at += 1
        return str(word)

    def _stands_in(self, height: int = 0) -> None:
        """The value that was read last, and another of that height, stand in the next."""
        self._height = max(self._height, height) + 1
        if self._height > _DEEPEST:
            raise DeviceExpressionError("it is nested too deeply")

    def _expression(self) -> _Value:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise DeviceExpressionError("it is nested too deeply")
        value = self._binary(1)
        if self._takes("?"):
            height, condition, yes = self._height, value, self._binary(1)
            self._stands_in(height)
            self._take(":")
            height, no = self._height, self._expression()
            self._stands_in(height)
            value = lambda scope: yes(scope) if _bool(condition(scope)) else no(scope)  # noqa: E731
        self._depth -= 1
        return value

    def _binary(self, least: int) -> _Value:
        left = self._unary()
        while True:
            kind, sign = self._tokens[self._at]
            level = _PRECEDENCE.get(sign, 0) if kind in ("sign", "name") else 0
            if level < least:
                return left
            height, sides = self._height, [left]
            while self._takes(sign):
                sides.append(self._binary(level + 1))
                height = max(height, self._height)
                if sign not in ("&&", "||"):
                    break
            self._stands_in(height)
            left = _either(sides, decides=sign == "||") if sign in ("&&", "||") else _applied(sign, *sides)

    def _unary(self) -> _Value:
        signs = 0
        first = self._takes("-", "!")
        while first and self._takes(first):
            signs += 1
        value = self._member(self._primary())
        if not first:
            return value
        is_odd = signs % 2 == 0
        if first == "!":
            return lambda scope: _bool(value(scope)) != is_odd
        return lambda scope: -_number(value(scope)) if is_odd else _number(value(scope))

    def _member(self, value: _Value) -> _Value:
        while sign := self._takes(".", ".?", "[", "[?"):
            height = self._height
            if sign in ("[", "[?"):
                key = self._expression()
                self._take("]")
            else:
                name = self._name()
                if sign == "." and self._takes("("):
                    value = self._method(value, name)
                    continue
                key = _constant(name)
            self._stands_in(height)
            value = _selected(value, key, is_optional=sign.endswith("?"))
        return value

    def _method(self, value: _Value, name: str) -> _Value:
        if name in ("all", "exists", "exists_one", "existsOne", "map", "filter"):
            height, variable = self._height, self._name()
            self._take(",")
            begins, body = self._at, self._expression()
            self._take(")")
            self._stands_in(height)
            return _loop(name, value, variable, body, self._at - begins)
        height, arguments = self._height, self._list(")")
        self._stands_in(height)
        if name not in _METHODS:
            raise DeviceExpressionError(f"there is no .{name}()")
        method = _METHODS[name]
        return lambda scope: _called(method, name, value(scope), *(argument(scope) for argument in arguments))

    def _primary(self) -> _Value:
        kind, word = self._tokens[self._at]
        if kind == "end":
            raise DeviceExpressionError("it ends too early")
        self._at += 1
        self._height = 0
        if kind == "literal":
            return _constant(word)
        if word == "(":
            value = self._expression()
            self._take(")")
            return value
        if word == "[":
            items = self._list("]")
            return lambda scope: _counted(scope, [item(scope) for item in items])
        if kind != "name":
            raise DeviceExpressionError(f"there is {word!r} where a value should be")
        if word in ("true", "false"):
            return _constant(word == "true")
        if word == "cel" and self._takes("."):
            return self._bind()
        return self._function(word) if self._takes("(") else _variable(word)

    def _bind(self) -> _Value:
        """``cel.bind(name, value, expression)``: the expression, with a name for the value."""
        if self._name() != "bind":
            raise DeviceExpressionError("of cel there is bind alone")
        self._take("(")
        name = self._name()
        self._take(",")
        value = self._expression()
        self._take(",")
        height, body = self._height, self._expression()
        self._stands_in(height)
        self._take(")")
        return lambda scope: body({**scope, name: value(scope)})

    def _function(self, name: str) -> _Value:
        arguments = self._list(")")
        if name == "has" and len(arguments) == 1:
            return lambda scope: _is_there(arguments[0], scope)
        if name not in _FUNCTIONS:
            raise DeviceExpressionError(f"there is no {name}()")
        function = _FUNCTIONS[name]
        return lambda scope: _called(function, name, *(argument(scope) for argument in arguments))

    def _list(self, end: str) -> list[_Value]:
        values: list[_Value] = []
        height = 0
        while not self._takes(end):
            values.append(self._expression())
            height = max(height, self._height)
            if not self._takes(","):
                self._take(end)
                break
        self._height = height
        self._stands_in()
        return values


def _constant(value: Any) -> _Value:
    return lambda scope: value


def _variable(name: str) -> _Value:
    def value(scope: _Scope) -> Any:
        if not name or name not in scope:
            raise DeviceExpressionError(f"{name!r} is unknown; there is device")
        return scope[name]

    return value


def _selected(value: _Value, key: _Value, *, is_optional: bool) -> _Value:
    def select(scope: _Scope) -> Any:
        whole, name = value(scope), key(scope)
        is_optional_now = is_optional or isinstance(whole, _Optional)
        if isinstance(whole, _Optional):
            whole = whole.value if whole.is_there else {}
        try:
            if isinstance(whole, (_Domains, dict, list)) and not isinstance(name, bool):
                return _Optional(whole[name], True) if is_optional_now else whole[name]
        except (LookupError, TypeError):
            pass
        if is_optional_now:
            return _Optional()
        raise DeviceExpressionError(f"the device has no {name}")

    return select


def _is_there(value: _Value, scope: _Scope) -> bool:
    try:
        value(scope)
    except DeviceExpressionError:
        return False
    return True


def _counted(scope: _Scope, made: Any, steps: int = 1) -> Any:
    """The list or text, of which each part takes so many steps. Raises ``DeviceExpressionError``."""
    scope[""][0] -= len(made) * steps + 1
    if scope[""][0] < 0:
        raise DeviceExpressionError("it takes too many steps")
    return made


def _loop(name: str, value: _Value, variable: str, body: _Value, steps: int) -> _Value:
    def run(scope: _Scope) -> Any:
        items = value(scope)
        if not isinstance(items, (list, dict)):
            raise DeviceExpressionError(f".{name}() is for lists and maps")
        _counted(scope, items, steps)
        answers = ((item, body({**scope, variable: item})) for item in items)
        if name == "map":
            return [answer for _, answer in answers]
        if name == "filter":
            return [item for item, answer in answers if _bool(answer)]
        if name == "all":
            return all(_bool(answer) for _, answer in answers)
        if name == "exists":
            return any(_bool(answer) for _, answer in answers)
        return sum(_bool(answer) for _, answer in answers) == 1

    return run


def _applied(sign: str, left: _Value, right: _Value) -> _Value:
    def act(scope: _Scope) -> Any:
        one, other = left(scope), right(scope)
        if sign in ("==", "!="):
            return (_same(one, other)) == (sign == "==")
        if sign == "in":
            if isinstance(other, (list, dict)):
                return any(_same(one, item) for item in other)
            raise DeviceExpressionError("in is for lists and maps")
        if sign in ("<", "<=", ">", ">="):
            order = _compared(one, other)
            return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[sign]
        if sign == "+" and isinstance(one, (str, list)):
            return _counted(scope, _joined(one, other))
        return _calculated(sign, _number(one), _number(other))

    return act


def _joined(one: Any, other: Any) -> Any:
    if type(one) is not type(other):
        raise DeviceExpressionError(f"there is no {type(one).__name__} + {type(other).__name__}")
    return one + other


def _calculated(sign: str, one: int | float, other: int | float) -> int | float:
    if type(one) is not type(other):
        raise DeviceExpressionError(f"there is no {type(one).__name__} {sign} {type(other).__name__}")
    if sign in ("/", "%") and not other:
        raise DeviceExpressionError("it divides by zero")
    if sign in ("+", "-", "*"):
        value = {"+": one + other, "-": one - other, "*": one * other}[sign]
    elif isinstance(one, float):
        value = one / other if sign == "/" else one % other
    else:  # towards zero
        ratio = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
        value = ratio if sign == "/" else one - other * ratio
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise DeviceExpressionError("it yields a number of more than 64 bits")
    return value


def _either(sides: Sequence[_Value], *, decides: bool) -> _Value:
    """One of several decides even where others have no value, whichever comes first."""

    def either(scope: _Scope) -> bool:
        failed: DeviceExpressionError | None = None
        for side in sides:
            try:
                if _bool(side(scope)) == decides:
                    return decides
            except DeviceExpressionError as error:
                failed = error
        if failed:
            raise failed
        return not decides

    return either


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise DeviceExpressionError("there is no bool where one should be")
    return value


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DeviceExpressionError("there is no number where one should be")
    return value


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and any(isinstance(item, list) for item in one):
        raise DeviceExpressionError("lists of lists are not compared")
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _compared(one: Any, other: Any) -> int:
    kinds = ((str,), (Decimal,), (Version,), (bool,), (int, float))
    is_ordered = isinstance(one, bool) == isinstance(other, bool) and any(
        isinstance(one, kind) and isinstance(other, kind) for kind in kinds
    )
    if is_ordered:
        return int(one > other) - int(one < other)
    raise DeviceExpressionError("values of two kinds have no order")


def _called(function: Callable[..., Any], name: str, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (TypeError, AttributeError, ArithmeticError) as error:
        raise DeviceExpressionError(f"{name}() is not for these values") from error


def _quantity(text: Any) -> Decimal:
    try:
        return quantity.parse(_text(text))
    except ValueError as error:
        raise DeviceExpressionError(str(error)) from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise DeviceExpressionError("there is no string where one should be")
    return value


def _converts(convert: Callable[[Any], Any], value: Any) -> bool:
    try:
        convert(value)
    except DeviceExpressionError:
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
        raise DeviceExpressionError(f"a pattern such as {pattern[:80]!r} is not supported")
    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        raise DeviceExpressionError(f"{pattern!r} is no pattern: {error}") from error


def _size(value: Any) -> int:
    if isinstance(value, (str, list, dict)):
        return len(value)
    raise DeviceExpressionError("size() is for strings, lists and maps")


def _value_of(value: Any, default: Any) -> Any:
    return value.value if value.is_there else default


def _stated(value: Any) -> Any:
    if isinstance(value, _Optional) and value.is_there:
        return value.value
    raise DeviceExpressionError("the device has no such value")


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "quantity": _quantity,
    "isQuantity": lambda value: _converts(_quantity, value),
    "semver": lambda value: Version.of(_text(value)),
    "isSemver": lambda value: _converts(Version.of, _text(value)),
    "size": _size,
    "string": lambda value: value if isinstance(value, str) else str(_number(value)),
    "int": lambda value: int(_number(value)),
    "double": lambda value: float(_number(value)),
    "matches": _matches,
}
_METHODS: Mapping[str, Callable[..., Any]] = {
    "compareTo": _compared,
    "isGreaterThan": lambda one, other: _compared(one, other) > 0,
    "isLessThan": lambda one, other: _compared(one, other) < 0,
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
    "lowerAscii": lambda value: _text(value).lower(),
    "upperAscii": lambda value: _text(value).upper(),
    "size": _size,
    "orValue": _value_of,
    "hasValue": lambda value: value.is_there,
    "value": _stated,
}
