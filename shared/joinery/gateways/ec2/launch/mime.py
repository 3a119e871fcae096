"""Multipart user data, as cloud-init and nodeadm read them (cloud-init, "User-data formats"; RFC 2046).

A user's own user data become parts of one document, before ours. Nothing that a part says may end the document, open
another part or take ours for its own: its boundary is one that no part contains.
"""

import re
from collections.abc import Iterable
from email import message_from_string
from email.message import Message
from hashlib import sha256

from joinery.objects.errors import ConfigurationError

NODE_CONFIG, SHELL = "application/node.eks.aws", 'text/x-shellscript; charset="us-ascii"'
#: Content types by the beginning of a text, longer beginnings before those that begin them (cloud-init, handlers).
_BEGINNINGS = (
    ("#!", SHELL),
    ("## template: jinja", "text/jinja2"),
    ("#cloud-boothook", "text/cloud-boothook"),
    ("#cloud-config-archive", "text/cloud-config-archive"),
    ("#cloud-config-jsonp", "text/cloud-config-jsonp"),
    ("#cloud-config", "text/cloud-config"),
    ("#include-once", "text/x-include-once-url"),
    ("#include", "text/x-include-url"),
    ("#part-handler", "text/part-handler"),
)
_USUAL_BOUNDARY = "//"
_OWN_HEADERS = ("content-type", "content-transfer-encoding", "mime-version")
#: How a body may be written that is no text as it stands (``email.message.Message.get_payload``).
_ENCODINGS = ("base64", "quoted-printable", "x-uuencode", "uuencode", "uue", "x-uue")
#: A key as a mapping of YAML begins with, in block style or in flow style, which JSON is.
_YAML_KEY = re.compile(r"""(\{\s*)?([\w.-]+:(\s|$)|(["'])[^"'\n]+\4\s*:)|\{\s*\}$""")

#: A content type, with the lines of other headers below it, and a body.
Part = tuple[str, str]


def archive(parts: Iterable[Part]) -> str:
    """A MIME document of these parts. The caller puts ours last, because later ones win in nodeadm."""
    written = list(parts)
    boundary = _boundary(written)
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{boundary}"', ""]
    for kind, body in written:
        lines += [f"--{boundary}", f"Content-Type: {kind}", "", body]
    return "\n".join([*lines, f"--{boundary}--", ""])


def _boundary(parts: list[Part]) -> str:
    """The same for the same parts, because the same text is the same launch template."""
    text = "\n".join(line for part in parts for line in part)
    # No text contains its own digest.
    return _USUAL_BOUNDARY if f"--{_USUAL_BOUNDARY}" not in text else sha256(text.encode()).hexdigest()


def parts_of(own: str) -> list[Part]:
    """A user's own user data as parts: those of a MIME document, or else one whose type its beginning tells.

    Raises ``ConfigurationError`` for a MIME document that cannot be taken apart.
    """
    if not own.strip():
        return []
    if not own.lstrip().lower().startswith(("mime-version:", "content-type:")):
        return [(_type_of(own), own)]
    document = message_from_string(own.lstrip())
    if not document.is_multipart():
        raise ConfigurationError("spec.userData: a MIME document must be multipart")
    parts = (part for part in document.walk() if not part.is_multipart())
    # After the last boundary there is nothing, whether or not it says that it is the last.
    return [(_headers(part), body) for part in parts if (body := _body(part)).strip()]


def _headers(part: Message) -> str:
    """Its content type, and below it what else cloud-init may look at. How its body was encoded no longer holds."""
    kind = str(part["Content-Type"] or SHELL)
    if kind.lstrip().lower().startswith("multipart/"):
        # Whoever reads it would look for more parts in what follows, which is ours.
        raise ConfigurationError("spec.userData: a part of the MIME document is multipart and has no parts")
    others = (f"{name}: {value}" for name, value in part.items() if name.lower() not in _OWN_HEADERS)
    return "\n".join((kind, *others))


def _body(part: Message) -> str:
    body = str(part.get_payload())
    if str(part["Content-Transfer-Encoding"]).strip().lower() not in _ENCODINGS:
        return body
    try:
        return bytes(part.get_payload(decode=True)).decode()
    except UnicodeDecodeError:
        raise ConfigurationError("spec.userData: a part of the MIME document is not text") from None


def _type_of(own: str) -> str:
    start = own.lstrip().lower()
    for beginning, kind in _BEGINNINGS:
        if start.startswith(beginning):
            return kind
    return NODE_CONFIG if _is_mapping(own) else SHELL


def _is_mapping(own: str) -> bool:
    """Whether it is a YAML mapping, as a NodeConfig is, and no script: what comes first and is no comment is a key."""
    lines = (line.strip() for line in own.splitlines())
    said = (line for line in lines if line and not line.startswith(("#", "---")))
    return bool(_YAML_KEY.match("\n".join(said)))
