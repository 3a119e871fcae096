"""Expressions that yield a number: the part of CEL that settings of the kubelet are written in.

CEL (cel.dev, language definition) is typed: an expression is checked as a whole before it is evaluated, and whole
numbers (64 bits) and numbers with a fraction do not mix, except in ``max`` and ``min``, which Karpenter for AWS adds.
What is not here, such as macros, maps, timestamps and regular expressions, is refused like a misspelt name.
"""

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from joinery.objects.kubernetes.cel_tokens import PRECEDENCE, RELATIONS, ExpressionError, tokens

INT, DOUBLE, BOOL, STRING = "int", "double", "bool", "string"

#: What an expression may know, by name: a whole number or a text each.
Variables = Mapping[str, int | str]
_Evaluate = Callable[[Variables], Any]

#: So that neither reading nor evaluating an expression is as deep as Python's stack.
_MOST_TOKENS, _DEEPEST = 300, 40
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class _Node:
    kind: str
    value: _Evaluate


@lru_cache(maxsize=256)
def compiled(text: str, variables: tuple[tuple[str, str], ...]) -> Callable[[Variables], int]:
    """The expression as a function of its variables. ``variables``: name and type of each.

    A number with a fraction is cut to a whole one. Raises ``ExpressionError`` for what is no expression of a number;
    the function raises it where there is no value: a division by zero, more than 64 bits.
    """
    read = list(islice(tokens(text), _MOST_TOKENS + 2))
    if len(read) > _MOST_TOKENS + 1:
        raise ExpressionError("it is too long")
    node = _Parser(read, dict(variables)).whole()
    if node.kind not in (INT, DOUBLE):
        raise ExpressionError(f"it yields {node.kind}, and must yield int or double")
    return lambda given: _whole(node.value(given))


def _whole(value: int | float) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise ExpressionError("it yields no finite number")
    return _checked(int(value))


def _checked(value: int) -> int:
    if not _SMALLEST <= value <= _LARGEST:
        raise ExpressionError("it yields a number of more than 64 bits")
    return value


class _Parser:
    """Reads tokens from the left. What each method reads is what the grammar of CEL calls it."""

    def __init__(self, tokens: list[tuple[str, str]], variables: Mapping[str, str]) -> None:
        self._tokens, self._variables, self._at, self._depth = tokens, variables, 0, 0

    def whole(self) -> _Node:
        node = self._expression()
        self._take("")
        return node

    def _next(self) -> str:
        return self._tokens[self._at][1]

    def _is(self, *words: str) -> bool:
        kind, word = self._tokens[self._at]
        return word in words and kind in ("sign", "name", "end")

    def _take(self, word: str) -> None:
        if not self._is(word):
            raise ExpressionError(f"there is {self._next() or 'an end'!r} where {word or 'an end'!r} should be")
        self._at += 1

    def _expression(self) -> _Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ExpressionError("it is nested too deeply")
        node = self._choice(self._binary(1))
        self._depth -= 1
        return node

    def _choice(self, condition: _Node) -> _Node:
        if not self._is("?"):
            return condition
        self._at += 1
        yes = self._binary(1)
        self._take(":")
        no = self._expression()
        if condition.kind != BOOL or yes.kind != no.kind:
            raise ExpressionError(f"{condition.kind} ? {yes.kind} : {no.kind} is no choice")
        return _Node(yes.kind, lambda given: (yes if condition.value(given) else no).value(given))

    def _binary(self, least: int) -> _Node:
        left = self._unary()
        while self._is(*PRECEDENCE) and (level := PRECEDENCE[self._next()]) >= least:
            sign = self._next()
            self._at += 1
            left = _applied(sign, left, self._binary(level + 1))
        return left

    def _unary(self) -> _Node:
        if not self._is("-", "!"):
            return self._member(self._primary())
        sign = self._next()
        self._at += 1
        inner = self._unary()
        if sign == "!" and inner.kind == BOOL:
            return _Node(BOOL, lambda given: not inner.value(given))
        if sign == "-" and inner.kind == INT:
            return _Node(INT, lambda given: _checked(-inner.value(given)))
        if sign == "-" and inner.kind == DOUBLE:
            return _Node(DOUBLE, lambda given: -inner.value(given))
        raise ExpressionError(f"there is no {sign}{inner.kind}")

    def _member(self, node: _Node) -> _Node:
        while self._is("."):
            self._at += 1
            name = self._next()
            if not name:
                raise ExpressionError("it ends too early")
            self._at += 1
            self._take("(")
            node = _called(name, [node, *self._list(")")], is_method=True)
        return node

    def _primary(self) -> _Node:
        kind, word = self._tokens[self._at]
        if kind == "end":
            raise ExpressionError("it ends too early")
        self._at += 1
        if kind in (INT, DOUBLE, STRING):
            return _literal(kind, word)
        if word == "(":
            node = self._expression()
            self._take(")")
            return node
        if word == "[":
            return _listed(list(self._list("]")))
        if kind == "name" and self._is("("):
            self._at += 1
            return _called(word, list(self._list(")")), is_method=False)
        return self._named(word)

    def _named(self, word: str) -> _Node:
        if word in ("true", "false"):
            return _Node(BOOL, lambda given: word == "true")
        if word not in self._variables:
            raise ExpressionError(f"{word!r} is unknown; there are {', '.join(sorted(self._variables))}")
        return _Node(self._variables[word], lambda given: given[word])

    def _list(self, end: str) -> Iterator[_Node]:
        while not self._is(end):
            yield self._expression()
            if not self._is(end):
                self._take(",")
        self._take(end)


def _literal(kind: str, word: str) -> _Node:
    if "\\" in word:  # an escape, which would count as the characters that it is written with
        raise ExpressionError(f"{word[:12]!r} is not understood")
    value: int | float | str = word[1:-1]
    if kind == INT:
        value = _checked(int(word, 0) if word.startswith("0x") else _decimal(word))
    elif kind == DOUBLE:
        value = float(word)
    return _Node(kind, lambda given: value)


def _decimal(word: str) -> int:
    """Python reads no number of thousands of digits, and none of them is one of 64 bits."""
    digits = word.lstrip("0")
    return int(digits or "0") if len(digits) < len(str(_LARGEST)) + 1 else _LARGEST + 1


def _listed(items: list[_Node]) -> _Node:
    kinds = {item.kind for item in items}
    if len(kinds) > 1:
        raise ExpressionError(f"a list of {', '.join(sorted(kinds))} is none")
    return _Node(f"list of {''.join(kinds)}", lambda given: [item.value(given) for item in items])


def _applied(sign: str, left: _Node, right: _Node) -> _Node:
    """Two values with a sign between them."""
    kinds = (left.kind, right.kind)
    if sign in ("&&", "||") and kinds == (BOOL, BOOL):
        return _Node(BOOL, lambda given: _either(left.value, right.value, given, decides=sign == "||"))
    if sign == "in" and right.kind in (f"list of {left.kind}", "list of "):
        return _Node(BOOL, lambda given: left.value(given) in right.value(given))
    act = _ACTS.get((sign, left.kind)) if left.kind == right.kind else None
    if act is None:
        raise ExpressionError(f"there is no {left.kind} {sign} {right.kind}")
    kind = BOOL if sign in RELATIONS else left.kind
    return _Node(kind, lambda given: act(left.value(given), right.value(given)))


def _either(left: _Evaluate, right: _Evaluate, given: Variables, *, decides: bool) -> bool:
    """One of two decides even where the other has no value, whichever comes first."""
    failed: ExpressionError | None = None
    for side in (left, right):
        try:
            if side(given) == decides:
                return decides
        except ExpressionError as error:
            failed = error
    if failed:
        raise failed
    return not decides


def _called(name: str, arguments: list[_Node], *, is_method: bool) -> _Node:
    kinds = tuple(argument.kind for argument in arguments)
    values = [argument.value for argument in arguments]
    if not is_method and name in ("max", "min") and len(kinds) == 2 and {*kinds} <= {INT, DOUBLE}:
        one, other = values
        kind = INT if kinds == (INT, INT) else DOUBLE
        as_kind, best = (int if kind == INT else float), (max if name == "max" else min)
        return _Node(kind, lambda given: best(as_kind(other(given)), as_kind(one(given))))
    if name == "size" and len(kinds) == 1 and (kinds[0] == STRING or kinds[0].startswith("list")):
        return _Node(INT, lambda given: len(values[0](given)))
    if not is_method and name in (INT, DOUBLE) and len(kinds) == 1 and kinds[0] in (INT, DOUBLE):
        return _Node(name, lambda given: (_whole if name == INT else float)(values[0](given)))
    if is_method and name in _METHODS and kinds == (STRING, STRING):
        method = _METHODS[name]
        return _Node(BOOL, lambda given: method(values[0](given), values[1](given)))
    raise ExpressionError(f"there is no {name}({', '.join(kinds)})")


_METHODS: Mapping[str, Callable[[str, str], bool]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": operator.contains,
}


def _divided(left: int, right: int) -> int:
    """Towards zero."""
    if right == 0:
        raise ExpressionError("it divides by zero")
    return _checked(left // right if (left < 0) == (right < 0) else -(-left // right))


def _ratio(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)


_ACTS: Mapping[tuple[str, str], Callable[[Any, Any], Any]] = {
    ("+", INT): lambda left, right: _checked(left + right),
    ("-", INT): lambda left, right: _checked(left - right),
    ("*", INT): lambda left, right: _checked(left * right),
    ("/", INT): _divided,
    ("%", INT): lambda left, right: left - right * _divided(left, right),
    ("+", DOUBLE): operator.add,
    ("-", DOUBLE): operator.sub,
    ("*", DOUBLE): operator.mul,
    ("/", DOUBLE): _ratio,
    ("+", STRING): operator.add,
    **{
        (sign, kind): act
        for sign, act in (("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge))
        for kind in (INT, DOUBLE, STRING, BOOL)
    },
    **{
        (sign, kind): act
        for sign, act in (("==", operator.eq), ("!=", operator.ne))
        for kind in (INT, DOUBLE, STRING, BOOL)
    },
}
