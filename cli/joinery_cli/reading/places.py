"""In which line of its file an object or a field stands.

Looked up for what is printed only: a parser that marks every value makes nothing of JSON faster than YAML, and of YAML
half as fast again. So a part of the file in which something is wrong is parsed once more, with marks.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

#: A step of a path: a plain word, or in brackets an index or a key with dots and slashes.
_STEP = re.compile(r"\[(.*?)\](?=[.\[]|$)|([^.\[\]]+)")
_MERGE = "tag:yaml.org,2002:merge"
#: YAML's parser takes a second for two megabytes: of a larger object in JSON only the first line is named.
_LARGE = 2 * 2**20


class Place(NamedTuple):
    """Where an object stands in a file.

    text   the whole file
    part   the object's own text in JSON, or the line from 0 on which its document of YAML begins
    items  its way from there, where it is inside of lists
    """

    text: bytes
    part: msgspec.Raw | bytes | int
    items: tuple[str, ...] = ()

    def item(self, number: int, item: msgspec.Raw) -> "Place":
        """Of a member of the list that stands here."""
        if isinstance(self.part, int):
            return self._replace(items=(*self.items, "items", str(number)))
        return self._replace(part=item)

    def line(self, path: str) -> int:
        """The line, from 1, of the field at a path, or of the innermost part on the way to it that is there."""
        before, text = self._cut()
        root = _marked(text) if isinstance(self.part, int) or len(text) < _LARGE else None
        return before + 1 + (_line(root, (*self.items, *steps_of(path))) if root else 0)

    def _cut(self) -> tuple[int, bytes]:
        """How many lines there are before the part, and the text from there on."""
        if isinstance(self.part, int):
            return self.part, self.text.split(b"\n", self.part)[-1]
        part = bytes(self.part)
        return self.text.count(b"\n", 0, max(0, self.text.find(part))), part


def steps_of(path: str) -> list[str]:
    """``spec``, ``containers``, ``0`` of ``spec.containers[0]``."""
    return [bracketed or plain for bracketed, plain in _STEP.findall(path)]


@lru_cache(maxsize=1)
def _marked(text: bytes) -> Any:
    """The first document of YAML, of which JSON is a kind, as nodes that know their lines; None where it is neither."""
    import yaml

    try:
        return next(yaml.compose_all(text.decode(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)), None)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _line(node: Any, steps: Iterable[str]) -> int:
    line: int = node.start_mark.line
    for step in steps:
        line, node = _member(node, step) or (line, None)
    return line


def _member(node: Any, step: str) -> tuple[int, Any] | None:
    """Where the member begins, a map's with its key, and the member itself."""
    members = getattr(node, "value", None)
    if not isinstance(members, list):
        return None
    if node.id == "sequence":
        member = members[int(step)] if step.isdigit() and int(step) < len(members) else None
        return (member.start_mark.line, member) if member else None
    # Of keys that are there twice, the last one counts in JSON.
    for key, member in reversed(members):
        if key.value == step:
            return key.start_mark.line, member
    merged = (member for key, member in members if key.tag == _MERGE)
    return next((found for one in merged for part in _maps(one) if (found := _member(part, step))), None)


def _maps(node: Any) -> Iterable[Any]:
    return node.value if node.id == "sequence" else (node,)
