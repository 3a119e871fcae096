"""Files of Kubernetes objects, taken apart into single objects, still undecoded.

``kubectl`` prints one JSON ``List``; people write YAML with several documents; a recorded decision is gzipped. All of
it becomes the same thing here: the bytes of one object in JSON, with the file it came from. A list of 10,000 pods is
split without decoding them (30 ms); YAML costs what YAML costs.
"""

import codecs
import json
import math
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec

from joinery.objects.errors import ConfigurationError
from joinery.objects.wording import must_be, of_struct_error
from joinery_cli.reading.places import Place

_GZIP = b"\x1f\x8b"
_CHUNK = 2**20
#: Some 30,000 pods of an export.
_MOST_BYTES = 256 * 2**20
#: Digits; Kubernetes has no number of more than nineteen.
_LONGEST_NUMBER = 100
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WIDE = tuple(mark for mark, encoding in _MARKS if encoding != "utf-8-sig")
#: What Helm, Jinja and ApplicationSets fill in, and a line between two documents of YAML.
_TEMPLATE = re.compile(rb"\{\{.*?\}\}")
_SEPARATOR = re.compile(rb"^---(\s|$)", re.MULTILINE)


class _Name(msgspec.Struct, gc=False):
    name: str | None = None
    namespace: str | None = None


class _Head(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    metadata: _Name | None = None
    items: list[msgspec.Raw] | None = None


_HEAD = msgspec.json.Decoder(_Head)


class _Decided(msgspec.Struct):
    unserved: list[str] = []


class _Record(msgspec.Struct):
    joinery: _Decided = msgspec.field(default_factory=_Decided)


_RECORD = msgspec.json.Decoder(_Record)


@dataclass(frozen=True, slots=True)
class Document:
    """One object: where it came from, what it says it is, and its JSON."""

    source: str
    place: Place
    group: str
    version: str
    kind: str
    namespace: str
    name: str
    raw: msgspec.Raw | bytes

    @property
    def called(self) -> str:
        """``Pod shop/web``."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}".rstrip()

    def __str__(self) -> str:
        return f"{self.source}: {self.called}"

    def refusal(self, problem: str) -> str:
        """``pods.yaml:14: Pod shop/web: spec.nodeName: is …``. ``problem``: the path of a field, and what is wrong."""
        return f"{self.source}:{self.place.line(problem.partition(': ')[0])}: {self.called}: {problem}"


def read(path: str) -> bytes:
    """A file's bytes, or standard input's for ``-``, unzipped, as UTF-8. Raises ``ConfigurationError`` naming the file.

    Takes no more memory than ``_MOST_BYTES``, whatever a device or a gzip file would go on to give.
    """
    name = source_name(path)
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file:
            first = file.read(_CHUNK)
            # Standard input cannot be read again from its beginning.
            whole = chain([first], iter(lambda: file.read(_CHUNK), b""))
            return _as_utf8(name, _limited(name, _unzipped(whole) if first.startswith(_GZIP) else whole))
    except ValueError as error:
        raise ConfigurationError(f"{name}: {error}") from error
    except OSError as error:
        raise ConfigurationError(f"{name}: {error.strerror or error}") from error
    except zlib.error as error:
        raise ConfigurationError(f"{name}: not a whole gzip file: {error}") from error


def _unzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Piece by piece, one gzip stream after another. Raises ``zlib.error``."""
    inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    for chunk in chunks:
        rest = chunk
        while rest:
            if inflate.eof:
                # What follows a stream is another one, or padding.
                rest = rest.lstrip(b"\0")
                if not rest:
                    break
                inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            yield inflate.decompress(rest, _CHUNK)
            rest = inflate.unconsumed_tail or inflate.unused_data
    if not inflate.eof:
        raise zlib.error("it ends too early")


def _limited(name: str, chunks: Iterable[bytes]) -> bytes:
    parts, size = [], 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > _MOST_BYTES:
            raise ConfigurationError(f"{name}: more than {_MOST_BYTES >> 20} MiB: split it into several files")
        if b"\0" in chunk and not parts[0].startswith(_WIDE):
            raise ConfigurationError(f"{name}: neither text nor gzip: a NUL byte{_wide_hint(parts[0])}")
    return b"".join(parts)


def _wide_hint(first: bytes) -> str:
    return " (UTF-16 without a byte order mark? save it as UTF-8)" if first[:1] != b"\0" == first[1:2] else ""


def _as_utf8(name: str, data: bytes) -> bytes:
    """What PowerShell writes (UTF-16 with its mark) becomes what everybody else does."""
    encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wrong = f"byte 0x{data[error.start]:02x} in line {line} is not {encoding.upper()}"
        raise ConfigurationError(f"{name}: neither text nor gzip: {wrong}; save it as UTF-8") from error
    return data if encoding == "utf-8" else text.encode()


def source_name(path: str) -> str:
    """What a message calls the file."""
    return "standard input" if path == "-" else path


def documents(source: str, data: bytes) -> Iterator[Document]:
    """Every object of a file, those inside lists one by one. Raises ``ConfigurationError`` for what is not one."""
    try:
        for place, raw in _rendered(source, data):
            wrong = _wrong_in(raw)
            for document in _documents(source, place, raw, default_kind="", default_version=""):
                if wrong and (inside := _wrong_in(document.raw)):
                    raise ConfigurationError(document.refusal(inside))
                yield document
            if wrong:
                raise ConfigurationError(f"{source}: {wrong}")
    except RecursionError as error:
        raise ConfigurationError(f"{source}: not a Kubernetes object: nested too deep") from error


def unserved_in(data: bytes) -> Sequence[str]:
    """The kinds that the cluster of a decision's record did not serve, as the snapshot has it; none in other files."""
    if b'"unserved"' not in data:
        return ()
    try:
        return _RECORD.decode(data).joinery.unserved
    except msgspec.DecodeError:
        return ()


def _rendered(source: str, data: bytes) -> Iterator[tuple[Place, msgspec.Raw | bytes]]:
    """The parts of a file. What cannot be read because a template was never filled in has a remedy."""
    try:
        yield from _split(source, data)
    except ConfigurationError as error:
        if template := _TEMPLATE.search(data):
            line = data.count(b"\n", 0, template.start()) + 1
            hint = "run helm template, or what fills it in, first"
            raise ConfigurationError(f"{source}:{line}: looks like a template: {hint}") from error
        raise


def _split(source: str, data: bytes) -> Iterator[tuple[Place, msgspec.Raw | bytes]]:
    parts: Iterable[msgspec.Raw | bytes] = ()
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            parts = (msgspec.json.decode(data, type=msgspec.Raw),)
        except msgspec.DecodeError as error:
            parts = _stream(source, data, error)
    if parts:
        yield from ((Place(data, part), part) for part in parts)
    else:
        from joinery_cli.reading.yamls import split

        yield from ((Place(data, line), part) for line, part in split(source, data))


def _stream(source: str, data: bytes, first: msgspec.DecodeError) -> Sequence[bytes]:
    """JSON objects one after another, as ``kubectl get -o json`` prints them when called twice;
    none of YAML in flow style.
    """
    try:
        text, decoder = data.decode(), json.JSONDecoder()
        at, spans = len(text) - len(text.lstrip()), []
        while at < len(text):
            _, end = decoder.raw_decode(text, at)
            spans.append(text[at:end].encode())
            at = end + len(text[end:]) - len(text[end:].lstrip())
    except json.JSONDecodeError as error:
        if not source.endswith((".yaml", ".yml")) and not _SEPARATOR.search(data):
            raise ConfigurationError(f"{source}:{error.lineno}: not JSON: {first}") from error
        return ()
    return spans


class _WrongError(ValueError):
    """Something in JSON that no object has."""


def _once(pairs: list[tuple[str, Any]]) -> None:
    """For ``object_pairs_hook``: builds nothing, and so takes no memory."""
    if len(pairs) > len({key for key, _ in pairs}):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise _WrongError(f"the key {key!r} is there twice")


def _whole(digits: str) -> None:
    if len(digits) > _LONGEST_NUMBER:
        raise _WrongError("a number without bounds")


def _fraction(text: str) -> None:
    if math.isinf(float(text)):
        raise _WrongError("a number without bounds")


def _wrong_in(raw: msgspec.Raw | bytes) -> str:
    """What is wrong with keys and numbers: of two equal keys, JSON readers keep the last one, in silence, which
    ``kubectl`` refuses. Numbers without bounds fail wherever somebody looks at them, and that is not in one place.
    """
    try:
        json.loads(bytes(raw), object_pairs_hook=_once, parse_int=_whole, parse_float=_fraction)
    except _WrongError as error:
        return str(error)
    except ValueError:
        # Not JSON, which is said where it is decoded.
        return ""
    return ""


def _in_words(error: Exception, raw: msgspec.Raw | bytes) -> str:
    """Text that is no object at all (``No resources found``), or a field of its head (``name: off``)."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"not a Kubernetes object: {error}"
    if not isinstance(value, dict):
        return f"not a Kubernetes object: {must_be('a map with apiVersion and kind', value)}"
    said, _, at = str(error).partition(" - at `$")
    path = at.rstrip("`").lstrip(".")
    given: Any = value
    for step in path.split("."):
        given = given.get(step) if isinstance(given, dict) else None
    problem, _ = of_struct_error(said, given)
    kind = value.get("kind")
    return f"{kind if isinstance(kind, str) and kind else 'not a Kubernetes object'}: {path}: {problem}"


def _documents(
    source: str, place: Place, raw: msgspec.Raw | bytes, *, default_kind: str, default_version: str
) -> Iterator[Document]:
    try:
        head = _HEAD.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{source}:{place.line('')}: {_in_words(error, raw)}") from error
    kind, version = head.kind or default_kind, head.api_version or default_version
    if not kind:
        said = bytes(raw)[:60].decode(errors="replace")
        raise ConfigurationError(f"{source}:{place.line('')}: not a Kubernetes object: kind is missing: {said}")
    named = head.metadata or _Name()
    if kind.endswith("List") and (head.items is not None or not named.name):
        # The API's own lists (PodList) leave kind and version off their items, and may have null for none.
        defaults = {"default_kind": kind.removesuffix("List"), "default_version": version}
        for number, item in enumerate(head.items or ()):
            yield from _documents(source, place.item(number, item), item, **defaults)
        return
    group, _, short = version.rpartition("/")
    yield Document(source, place, group, short, kind, named.namespace or "", named.name or "", raw)
