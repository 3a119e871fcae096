"""Expressions that select devices: CEL as ``resource.k8s.io`` writes it (Kubernetes `dynamic-resource-allocation/cel`).

An expression knows ``device`` and yields whether the device will do. Values are typed only as they come: a device says
of itself what its driver likes. So an expression is not checked before it is evaluated, and one without a value for a
device (an attribute that it lacks) selects it not. Cost is bounded, because whoever may make a claim writes these.

What Kubernetes adds is here: quantities, semantic versions, ``cel.bind``, optional fields, string functions. What has
no use for devices (timestamps, maps of one's own, messages) is refused like a misspelt name.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from joinery.objects.kubernetes.cel_tokens import PRECEDENCE, ExpressionError, tokens
from joinery.objects.kubernetes.device_functions import (
    FUNCTIONS,
    METHODS,
    MOST_STEPS,
    TOO_MANY_STEPS,
    Maybe,
    called,
    compared,
    number,
    same,
    truth,
)

_Scope = Mapping[str, Any]
_Value = Callable[[_Scope], Any]

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "`": "`", "?": "?"}
#: The longest that the API server takes (``CELSelectorExpressionMaxLength``), and how deep values may stand in values:
#: each takes some of Python's stack.
_LONGEST, _DEEPEST = 10 * 1024, 40


class _Domains(dict[str, Mapping[str, Any]]):
    """What a device says by domain. Of a domain that it does not speak of it says nothing, which is no error."""

    def __missing__(self, key: str) -> Mapping[str, Any]:
        return {}


@lru_cache(maxsize=1024)
def compiled(text: str) -> Callable[[Mapping[str, Any]], bool]:
    """The expression as a function of ``device``. Raises ``ExpressionError``; so does the function where the
    expression has no value for the device.
    """
    if len(text) > _LONGEST:
        raise ExpressionError("it is too long")
    value = _Parser([_read(kind, word) for kind, word in tokens(text)]).whole()

    def selects(device: Mapping[str, Any]) -> bool:
        answer = value({"device": device, "": [MOST_STEPS]})
        if not isinstance(answer, bool):
            raise ExpressionError("it yields no bool")
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


def _read(kind: str, word: str) -> tuple[str, Any]:
    return (kind, word) if kind in ("name", "sign", "end") else ("literal", _literal(kind, word))


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
            raise ExpressionError(f"there is {self._tokens[self._at][1]!r} where an end should be")
        return value

    def _takes(self, *words: str) -> str:
        kind, word = self._tokens[self._at]
        if kind in ("sign", "name") and word in words:
            self._at += 1
            return str(word)
        return ""

    def _take(self, word: str) -> None:
        if not self._takes(word):
            raise ExpressionError(f"there is {self._tokens[self._at][1] or 'an end'!r} where {word!r} should be")

    def _name(self) -> str:
        kind, word = self._tokens[self._at]
        if kind != "name":
            raise ExpressionError(f"there is {word or 'an end'!r} where a name should be")
        self._at += 1
        return str(word)

    def _stands_in(self, height: int = 0) -> None:
        """The value that was read last, and another of that height, stand in the next."""
        self._height = max(self._height, height) + 1
        if self._height > _DEEPEST:
            raise ExpressionError("it is nested too deeply")

    def _expression(self) -> _Value:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ExpressionError("it is nested too deeply")
        value = self._binary(1)
        if self._takes("?"):
            height, condition, yes = self._height, value, self._binary(1)
            self._stands_in(height)
            self._take(":")
            height, no = self._height, self._expression()
            self._stands_in(height)
            value = lambda scope: yes(scope) if truth(condition(scope)) else no(scope)  # noqa: E731
        self._depth -= 1
        return value

    def _binary(self, least: int) -> _Value:
        left = self._unary()
        while True:
            kind, sign = self._tokens[self._at]
            level = PRECEDENCE.get(sign, 0) if kind in ("sign", "name") else 0
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
            return lambda scope: truth(value(scope)) != is_odd
        return lambda scope: -number(value(scope)) if is_odd else number(value(scope))

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
            height, variables = self._height, [self._name()]
            self._take(",")
            # With a name and a comma a second variable begins: keys and values, or places and items.
            if self._tokens[self._at][0] == "name" and self._tokens[self._at + 1] == ("sign", ","):
                variables.append(self._name())
                self._take(",")
            begins, body = self._at, self._expression()
            self._take(")")
            self._stands_in(height)
            return _loop(name, value, variables, body, self._at - begins)
        height, arguments = self._height, self._list(")")
        self._stands_in(height)
        if name not in METHODS:
            raise ExpressionError(f"there is no .{name}()")
        method = METHODS[name]
        return lambda scope: called(method, name, value(scope), *(argument(scope) for argument in arguments))

    def _primary(self) -> _Value:
        kind, word = self._tokens[self._at]
        if kind == "end":
            raise ExpressionError("it ends too early")
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
            raise ExpressionError(f"there is {word!r} where a value should be")
        if word in ("true", "false"):
            return _constant(word == "true")
        if word == "cel" and self._takes("."):
            return self._bind()
        if word == "sets" and self._takes("."):
            word = f"sets.{self._name()}"
        return self._function(word) if self._takes("(") else _variable(word)

    def _bind(self) -> _Value:
        """``cel.bind(name, value, expression)``: the expression, with a name for the value."""
        if self._name() != "bind":
            raise ExpressionError("of cel there is bind alone")
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
        if name not in FUNCTIONS:
            raise ExpressionError(f"there is no {name}()")
        function = FUNCTIONS[name]
        return lambda scope: called(function, name, *(argument(scope) for argument in arguments))

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
            raise ExpressionError(f"{name!r} is unknown; there is device")
        return scope[name]

    return value


def _selected(value: _Value, key: _Value, *, is_optional: bool) -> _Value:
    def select(scope: _Scope) -> Any:
        whole, name = value(scope), key(scope)
        is_optional_now = is_optional or isinstance(whole, Maybe)
        if isinstance(whole, Maybe):
            whole = whole.value if whole.is_there else {}
        try:
            is_before = isinstance(whole, list) and name < 0  # CEL does not count from the end
            if isinstance(whole, (_Domains, dict, list)) and not isinstance(name, bool) and not is_before:
                return Maybe(whole[name], True) if is_optional_now else whole[name]
        except (LookupError, TypeError):
            pass
        if is_optional_now:
            return Maybe()
        raise ExpressionError(f"the device has no {name}")

    return select


def _is_there(value: _Value, scope: _Scope) -> bool:
    try:
        value(scope)
    except ExpressionError:
        return False
    return True


def _counted(scope: _Scope, made: Any, steps: int = 1) -> Any:
    """The list or text, of which each part takes so many steps. Raises ``ExpressionError``."""
    scope[""][0] -= len(made) * steps + 1
    if scope[""][0] < 0:
        raise ExpressionError(TOO_MANY_STEPS)
    return made


def _loop(name: str, value: _Value, variables: Sequence[str], body: _Value, steps: int) -> _Value:
    if len(variables) > 1 and name not in ("all", "exists", "existsOne"):
        raise ExpressionError(f".{name}() takes one variable")

    def run(scope: _Scope) -> Any:
        items = value(scope)
        if not isinstance(items, (list, dict)):
            raise ExpressionError(f".{name}() is for lists and maps")
        _counted(scope, items, steps)
        each: list[tuple[Any, ...]] = [(item,) for item in items]
        if len(variables) > 1:
            each = list(items.items()) if isinstance(items, dict) else list(enumerate(items))
        answers = ((one[0], body({**scope, **dict(zip(variables, one, strict=True))})) for one in each)
        if name == "map":
            return [answer for _, answer in answers]
        if name == "filter":
            return [item for item, answer in answers if truth(answer)]
        if name == "all":
            return all(truth(answer) for _, answer in answers)
        if name == "exists":
            return any(truth(answer) for _, answer in answers)
        return sum(truth(answer) for _, answer in answers) == 1

    return run


def _applied(sign: str, left: _Value, right: _Value) -> _Value:
    def act(scope: _Scope) -> Any:
        one, other = left(scope), right(scope)
        if sign in ("==", "!="):
            return (same(one, other)) == (sign == "==")
        if sign == "in":
            if isinstance(other, (list, dict)):
                return any(same(one, item) for item in other)
            raise ExpressionError("in is for lists and maps")
        if sign in ("<", "<=", ">", ">="):
            order = compared(one, other)
            return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[sign]
        if sign == "+" and isinstance(one, (str, list)):
            return _counted(scope, _joined(one, other))
        return _calculated(sign, number(one), number(other))

    return act


def _joined(one: Any, other: Any) -> Any:
    if type(one) is not type(other):
        raise ExpressionError(f"there is no {type(one).__name__} + {type(other).__name__}")
    return one + other


def _calculated(sign: str, one: int | float, other: int | float) -> int | float:
    if type(one) is not type(other):
        raise ExpressionError(f"there is no {type(one).__name__} {sign} {type(other).__name__}")
    if sign in ("/", "%") and not other:
        raise ExpressionError("it divides by zero")
    if sign in ("+", "-", "*"):
        value = {"+": one + other, "-": one - other, "*": one * other}[sign]
    elif isinstance(one, float):
        value = one / other if sign == "/" else one % other
    else:  # towards zero
        ratio = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
        value = ratio if sign == "/" else one - other * ratio
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ExpressionError("it yields a number of more than 64 bits")
    return value


def _either(sides: Sequence[_Value], *, decides: bool) -> _Value:
    """One of several decides even where others have no value, whichever comes first."""

    def either(scope: _Scope) -> bool:
        failed: ExpressionError | None = None
        for side in sides:
            try:
                if truth(side(scope)) == decides:
                    return decides
            except ExpressionError as error:
                failed = error
        if failed:
            raise failed
        return not decides

    return either
