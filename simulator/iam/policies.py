"""Whether statements of a policy allow a request (IAM User Guide, "Policy evaluation logic" and "Condition operators").

An explicit Deny wins, then any Allow, and else the request is denied. Of a condition all keys must be met, each by any
of its values. A key that the request does not have meets no positive operator, but it meets ``ForAllValues``.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Request:
    """One right that a call needs. ``context``: the values of its condition keys."""

    action: str
    resource: str
    context: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Statement:
    """``name``: of its policy, and its place in it or its Sid."""

    name: str
    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, tuple[str, ...]]]

    def applies(self, request: Request) -> bool:
        """Whether the statement is about the request."""
        return not self.lacking(request)

    def lacking(self, request: Request) -> str:
        """What of the statement the request does not meet, empty where it meets all of it."""
        if not any(is_like(request.action.lower(), one.lower()) for one in self.actions):
            return f"Action {request.action}"
        if not any(is_like(request.resource, one) for one in self.resources):
            return f"Resource {request.resource}"
        for operator, block in self.conditions.items():
            for key, wanted in block.items():
                given = _value(request.context, key)
                if not _OPERATORS[operator](given, wanted):
                    return f"Condition {operator} {key}: {', '.join(wanted)}, not {', '.join(given) or 'absent'}"
        return ""


def statements(name: str, document: Mapping[str, Any]) -> tuple[Statement, ...]:
    """The statements of a policy document."""
    return tuple(
        Statement(
            name=f"{name}, statement {one.get('Sid') or number}",
            effect=one["Effect"],
            actions=_texts(one["Action"]),
            resources=_texts(one["Resource"]),
            conditions={
                operator: {key: _texts(values) for key, values in block.items()}
                for operator, block in one.get("Condition", {}).items()
            },
        )
        for number, one in enumerate(document["Statement"], 1)
    )


def is_allowed(given: Iterable[Statement], request: Request) -> bool:
    """Whether a role with these statements may do it."""
    effects = {one.effect for one in given if one.applies(request)}
    return effects == {"Allow"}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(value) if isinstance(value, list) else (str(value),)


def _value(context: Mapping[str, Sequence[str]], key: str) -> Sequence[str]:
    """Names of keys are not case-sensitive."""
    return next((values for name, values in context.items() if name.lower() == key.lower()), ())


def is_like(text: str, pattern: str) -> bool:
    """Whether the text fits the pattern, whose ``*`` is any text and whose ``?`` any character."""
    return _compiled(pattern).fullmatch(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(char) or re.escape(char) for char in pattern), re.DOTALL)


def _any_like(given: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(is_like(value, pattern) for value in given for pattern in wanted)


_OPERATORS: Mapping[str, Callable[[Sequence[str], Sequence[str]], bool]] = {
    "StringEquals": lambda given, wanted: any(value in wanted for value in given),
    "StringLike": _any_like,
    "ArnEquals": _any_like,
    "Bool": lambda given, wanted: any(value in wanted for value in given),
    "Null": lambda given, wanted: str(not given).lower() in wanted,
    "ForAllValues:StringEquals": lambda given, wanted: all(value in wanted for value in given),
    "ForAllValues:StringLike": lambda given, wanted: all(_any_like([value], wanted) for value in given),
}
