"""Selectors that were maps of tag to value, with special keys, as the lists of terms that replaced them.

In a map all entries have to match, and a value may list alternatives separated by commas; in a list each term is an
alternative. So comma lists multiply into terms.
"""

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

from joinery.objects.karpenter.legacy.names import NotConvertibleError

Document = dict[str, Any]

#: The fields whose selector has to be there.
SELECTORS = ("subnetSelector", "securityGroupSelector")
_IDS = ("aws-ids", "aws::ids")
#: Special keys that select images, and the field of a term that each became.
IMAGE_KEYS = {"aws::name": "name", "aws::owners": "owner"}
_MOST_TERMS = 30


def terms(given: object, where: str, notes: list[str]) -> list[Document]:
    """Subnets or security groups by id, or by tags. Raises ``NotConvertibleError``."""
    selector = _selector(given, where)
    if not selector:
        raise NotConvertibleError(f"{where}: is missing")
    return _terms(selector, {}, where, notes)


def image_terms(given: object, where: str, notes: list[str]) -> list[Document]:
    """Images by id, or by names, owners and tags; none where nothing is selected. Raises ``NotConvertibleError``."""
    selector = dict(_selector(given, where))
    special = {part: _split(selector.pop(key)) for key, part in IMAGE_KEYS.items() if key in selector}
    return _terms(selector, special, where, notes) if selector or special else []


def _selector(given: object, where: str) -> Mapping[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise NotConvertibleError(f"{where}: must be a map of texts")
    return given


def _terms(
    selector: Mapping[str, str], special: Mapping[str, list[str]], where: str, notes: list[str]
) -> list[Document]:
    ids = [one for key in _IDS if key in selector for one in _split(selector[key])]
    tags = {("tags", key): _split(value) for key, value in selector.items() if key not in _IDS}
    if ids and (tags or special):
        notes.append(f"{where}: what stands beside ids is dropped, because a term with an id takes nothing else")
    options = {**{(part, ""): listed for part, listed in special.items()}, **tags}
    # Counted before they are made: ten keys with ten values each make more than any memory holds.
    count = len(ids) or prod(map(len, options.values()))
    if count > _MOST_TERMS:
        raise NotConvertibleError(f"{where}: makes {count} terms, and a class takes {_MOST_TERMS} at most")
    return [{"id": one} for one in ids] or [_term(choice) for choice in _choices(options)]


def _choices(options: Mapping[tuple[str, str], list[str]]) -> list[dict[tuple[str, str], str]]:
    """Every combination of one value a key."""
    return [dict(zip(options, values, strict=True)) for values in product(*options.values())]


def _term(choice: Mapping[tuple[str, str], str]) -> Document:
    tags = {key: value for (part, key), value in choice.items() if part == "tags"}
    return {part: value for (part, _), value in choice.items() if part != "tags"} | ({"tags": tags} if tags else {})


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] or [text]
