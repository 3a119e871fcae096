"""YAML that anybody may have written, as the values of a Kubernetes object.

YAML can say much with little: aliases of aliases stand for gigabytes, brackets nest deeper than a parser's stack, a key
may be there twice. What no object needs is refused before it is built, with its line where there is one.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from joinery.objects.errors import ConfigurationError

#: What a file may hold: 32 MiB and two million values take a minute and a gigabyte to read as YAML, and a second as
#: JSON.
_MOST_BYTES, _MOST_VALUES = 32 * 2**20, 2_000_000
#: Documents of a file, empty ones too, each of which takes a parser's time: more than a cluster has pods.
_MOST_DOCUMENTS = 200_000
#: How deep values may be inside of each other, and how many characters aliases may stand for.
_DEEPEST, _LONGEST = 200, 32 * 2**20
_LONGEST_NUMBER = 100  # digits; Kubernetes has none of more than nineteen
_TEXT = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")
_OPEN = b"[{"
_INDENTED = re.compile(rb"^[ \t-]{%d}" % _DEEPEST, re.MULTILINE)


def split(source: str, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each document: the line from 0 on which it begins, and its JSON.

    Raises ``ConfigurationError`` naming file and line.
    """
    if len(data) > _MOST_BYTES or sum(data.count(sign) for sign in (b"\n", b",", b"[", b"{", b"- ")) > _MOST_VALUES:
        raise ConfigurationError(f"{source}: too large to be read as YAML: write it as JSON (kubectl get -o json)")
    if data.count(b"\n---") >= _MOST_DOCUMENTS:
        raise ConfigurationError(f"{source}: more than {_MOST_DOCUMENTS:,} documents: write it as JSON")
    try:
        if b"*" in data or _is_deep(data):
            _examine(source, data)
        loader = _loader()(data.decode())
        while loader.check_node():
            node = loader.get_node()
            if (value := loader.construct_document(node)) is not None:
                yield node.start_mark.line, msgspec.json.encode(value)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        hint = " (a tab? YAML takes spaces only)" if b"\t" in data else ""
        raise ConfigurationError(f"{source}{line}: not YAML: {error.problem or error.context}{hint}") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{source}: not YAML: {' '.join(str(error).split())}") from error
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise ConfigurationError(f"{source}: not a Kubernetes object: {error}") from error


def _is_deep(data: bytes) -> bool:
    """Whether it may be nested deeply: by brackets, wherever they are, or by indentation.

    Far cheaper than to parse it.
    """
    depth = 0
    for sign in re.findall(rb"[\[\]{}]", data):
        depth = depth + 1 if sign in _OPEN else max(0, depth - 1)
        if depth > _DEEPEST:
            return True
    return _INDENTED.search(data) is not None


def _examine(source: str, data: bytes) -> None:
    """Look at depth and aliases event by event, which takes no stack and no more memory than the file.

    Raises ``ConfigurationError``.
    """
    parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    sizes: dict[str, int] = {}
    inside: list[tuple[str | None, int]] = [(None, 0)]
    for event in yaml.parse(data.decode(), Loader=parser):
        at: Any = event.start_mark
        line = f"{source}:{at.line + 1}: not YAML that is read here"
        if isinstance(event, yaml.CollectionStartEvent):
            inside.append((event.anchor, 1))
            if len(inside) > _DEEPEST:
                raise ConfigurationError(f"{line}: nested more than {_DEEPEST} deep")
            continue
        anchor, size = None, 0
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = inside.pop()
        elif isinstance(event, yaml.ScalarEvent):
            anchor, size = event.anchor, 1 + len(event.value)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in {open_one for open_one, _ in inside}:
                raise ConfigurationError(f"{line}: the alias *{event.anchor} is inside of itself")
            size = sizes.get(event.anchor or "", 0)
        if anchor:
            sizes[anchor] = size
        inside[-1] = (inside[-1][0], inside[-1][1] + size)
        if inside[-1][1] > _LONGEST:
            raise ConfigurationError(f"{line}: its aliases stand for more than {_LONGEST >> 20} MiB")


def _loader() -> Any:
    """YAML as ``kubectl`` reads it (sigs.k8s.io/yaml), without keys that are there twice.

    A moment is text there, so is a single ``=`` (in the definitions of the Prometheus operator), and ``12:30`` is no
    number of base sixty. A number without bounds stays text, which is refused where it stands.
    """
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag not in _TEXT]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }

        def construct_yaml_int(self, node: Any) -> Any:
            is_text = ":" in node.value or len(node.value) > _LONGEST_NUMBER
            return node.value if is_text else super().construct_yaml_int(node)

        def construct_yaml_float(self, node: Any) -> Any:
            number = math.inf if ":" in node.value else super().construct_yaml_float(node)
            return number if math.isfinite(number) else node.value

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                    if key.value in seen:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"the key {key.value!r} is there twice", key.start_mark
                        )
                    seen.add(key.value)
            return super().construct_mapping(node, deep)

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
    Loader.add_constructor("tag:yaml.org,2002:float", Loader.construct_yaml_float)
    return Loader
