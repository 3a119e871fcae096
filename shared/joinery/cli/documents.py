"""Files of Kubernetes objects, taken apart into single objects, still undecoded.

``kubectl`` prints one JSON ``List``; people write YAML with several documents; a recorded decision is gzipped. All of it
becomes the same thing here: the bytes of one object in JSON, with the file it came from. A list of 10,000 pods is split
without decoding them (30 ms); YAML costs what YAML costs.
"""

import gzip
import json
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from joinery.errors import ConfigurationError

_GZIP = b"\x1f\x8b"


class _Name(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""


class _Head(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    metadata: _Name | None = None
    items: list[msgspec.Raw] | None = None


_HEAD = msgspec.json.Decoder(_Head)


@dataclass(frozen=True, slots=True)
class Document:
    """One object: where it came from, what it says it is, and its JSON."""

    source: str
    group: str
    version: str
    kind: str
    namespace: str
    name: str
    raw: msgspec.Raw | bytes

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.source}: {self.kind} {name}".rstrip()


def read(path: str) -> bytes:
    """A file's bytes, or standard input's for ``-``, unzipped. Raises ``ConfigurationError`` naming the file."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    except OSError as error:
        raise ConfigurationError(f"{source_name(path)}: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise ConfigurationError(f"{source_name(path)}: not a whole gzip file: {error}") from error


def source_name(path: str) -> str:
    """What a message calls the file."""
    return "standard input" if path == "-" else path


def documents(source: str, data: bytes) -> Iterator[Document]:
    """Every object of a file, those inside lists one by one. Raises ``ConfigurationError`` for what is not one."""
    for raw in _split(source, data.removeprefix(b"\xef\xbb\xbf").strip()):
        yield from _documents(source, raw, default_kind="", default_version="")


def _split(source: str, data: bytes) -> Iterator[msgspec.Raw | bytes]:
    if not _is_text(data):
        raise ConfigurationError(f"{source}: neither text nor gzip")
    if data[:1] not in (b"{", b"["):
        yield from _split_yaml(source, data)
        return
    try:
        yield msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        yield from _split_stream(source, data, error)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _split_stream(source: str, data: bytes, first: msgspec.DecodeError) -> Iterator[bytes]:
    """JSON objects one after another, as ``kubectl get -o json`` prints them when called twice; or YAML in flow style."""
    try:
        text, decoder, at = data.decode(), json.JSONDecoder(), 0
        found = []
        while at < len(text):
            value, end = decoder.raw_decode(text, at)
            found.append(msgspec.json.encode(value))
            at = end + len(text[end:]) - len(text[end:].lstrip())
    except ValueError as error:
        if not source.endswith((".yaml", ".yml")):
            raise ConfigurationError(f"{source}: not JSON: {first}") from error
        yield from _split_yaml(source, data)
    else:
        yield from found


def _split_yaml(source: str, data: bytes) -> Iterator[bytes]:
    import yaml

    try:
        for value in yaml.load_all(data.decode(), Loader=_loader()):
            if value is not None:
                yield msgspec.json.encode(value)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise ConfigurationError(f"{source}: {line}not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{source}: not YAML: {' '.join(str(error).split())}") from error
    except (TypeError, msgspec.MsgspecError) as error:
        raise ConfigurationError(f"{source}: not a Kubernetes object: {error}") from error


def _loader() -> Any:
    """YAML without moments: a timestamp is a string in Kubernetes' JSON."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }

    return Loader


def _documents(source: str, raw: msgspec.Raw | bytes, *, default_kind: str, default_version: str) -> Iterator[Document]:
    try:
        head = _HEAD.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{source}: not a Kubernetes object: {error}") from error
    kind, version = head.kind or default_kind, head.api_version or default_version
    if not kind:
        raise ConfigurationError(
            f"{source}: not a Kubernetes object: kind is missing: {bytes(raw)[:60].decode(errors='replace')}"
        )
    if kind.endswith("List") and head.items is not None:
        # The API's own lists (PodList) leave kind and version off their items.
        for item in head.items:
            yield from _documents(source, item, default_kind=kind.removesuffix("List"), default_version=version)
        return
    group, _, short = version.rpartition("/")
    named = head.metadata or _Name()
    yield Document(source, group, short, kind, named.namespace, named.name, raw)
