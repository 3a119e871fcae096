"""What a field must be, and what was written instead: in the words of YAML, for people who never heard of Python's
types.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from joinery.objects.spelling import meant_by

#: What a quantity or a duration looks like.
A_QUANTITY = "a quantity such as 500m, 2 or 4Gi"
A_DURATION = "hours, minutes and seconds, such as 720h or 1h30m"

_LONGEST = 80
#: Types by pydantic's names for the errors that a value is none of them.
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "mapping_type"), "a map"),
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid",
            "timezone_aware"),
        "a moment such as 2026-01-01T00:00:00Z",
    ),
}  # fmt: skip
#: Bounds, by the names of the errors and of their contexts.
_BOUNDS: Mapping[str, tuple[str, str]] = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
#: The same types as msgspec names them; a union begins with what people write.
_STRUCT_TYPES: Mapping[str, str] = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a map",
}
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<given>[^`]+)`")
_LACKING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")


#: Bytes of a text that others have a part in, wherever it is made public: as many as an Event's note may have
#: (Kubernetes API events.k8s.io/v1). A pod may name thousands of things, and each line and Event is paid for or stored.
MOST_PUBLIC = 1024
#: Bytes of others' words within a text of ours, so that the rest of it is not cut off.
MOST_QUOTED = 300


def shortened(text: str, most: int = MOST_PUBLIC) -> str:
    """The text, or its beginning and how long it is. ``most``: bytes."""
    length = len(text.encode(errors="replace"))
    if length <= most:
        return text
    rest = f"... ({length} bytes)"
    return text.encode(errors="replace")[: most - len(rest)].decode(errors="ignore") + rest


def shown(value: Any) -> str:
    """What was written, as in the file; of a list or a map only that it is one."""
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "empty"
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def must_be(wanted: str, given: Any) -> str:
    """``must be a whole number, is 'three'``."""
    return f"must be {wanted}, is {shown(given)}"


def must_be_text(given: Any) -> str:
    """What to write in place of a number or a truth value, which may only lack quotes."""
    if isinstance(given, bool | int | float):
        return f"{shown(given)} must be text: write it in quotes"
    return must_be("text", given)


def one_of(choices: list[str], given: Any) -> str:
    """A choice that is none, with the one that was probably meant."""
    listed = f"must be {choices[0]}" if len(choices) == 1 else f"must be one of {', '.join(choices)}"
    meant = meant_by(given, choices) if isinstance(given, str) else ""
    return f"{listed}, is {shown(given)}" + (f"; is it {meant}?" if meant else "")


def of_model_error(entry: Mapping[str, Any]) -> str:
    """One of pydantic's errors in our words; empty for one that has none here."""
    kind, given, context = entry["type"], entry["input"], entry.get("ctx", {})
    if kind == "missing":
        return "is missing"
    if kind == "string_type":
        return must_be_text(given)
    if kind in _TYPES:
        return must_be(_TYPES[kind], given)
    if kind in ("literal_error", "enum"):
        # Some fields may be empty, which is no choice to offer.
        return one_of([one for one in re.findall(r"'([^']*)'", context.get("expected", "")) if one], given)
    if kind in _BOUNDS:
        words, name = _BOUNDS[kind]
        return must_be(f"{words} {context[name]}", given)
    return _of_length(kind, given, context)


def _of_length(kind: str, given: Any, context: Mapping[str, Any]) -> str:
    bound = "at most" if kind.endswith("too_long") else "at least"
    number = context.get("max_length", context.get("min_length"))
    if kind == "string_too_short" and not given:
        return "must not be empty"
    if kind in ("string_too_long", "string_too_short"):
        return f"must have {bound} {number} characters, has {len(given)}"
    if kind in ("too_long", "too_short"):
        return f"must have {bound} {number} {'entry' if number == 1 else 'entries'}, has {context['actual_length']}"
    return ""


def of_struct_error(problem: str, given: Any) -> tuple[str, str]:
    """One of msgspec's errors in our words, and the name of the field that is missing below its path, or nothing.

    ``given`` is the value at the error's path.
    """
    if lacking := _LACKING.match(problem):
        return "is missing", lacking["name"]
    if expected := _EXPECTED.match(problem):
        wanted = [one for one in expected["wanted"].split(" | ") if one != "null"]
        if "str" in wanted and "int" in wanted:
            return must_be("text or a number", given), ""
        if wanted == ["str"]:
            return must_be_text(given), ""
        if all(one in _STRUCT_TYPES for one in wanted):
            return must_be(" or ".join(_STRUCT_TYPES[one] for one in wanted), given), ""
        if wanted == ["datetime"]:
            return must_be(_TYPES["datetime_type"], given), ""
    if problem.startswith("Invalid RFC3339"):
        return must_be(_TYPES["datetime_type"], given), ""
    if problem.startswith("Integer"):
        return must_be("a smaller number", given), ""
    return problem[:1].lower() + problem[1:], ""


def rfc3339(moment: datetime) -> str:
    """To the second, as in ``metadata.creationTimestamp``: ``2026-01-01T00:00:00Z``.

    Another zone than UTC stays as it was written: the first and the last moments that there are have no other.
    """
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
