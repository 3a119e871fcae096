"""Text of others on its way to a terminal or a page: what would steer either is shown, not sent.

Names, values and messages come from files that anybody may have written. An escape sequence in one may move the cursor
over what was printed before, and a mark that turns the direction of writing makes a name look like another.
"""

import re

#: Control characters of ASCII and of Latin-1, line separators, and Unicode's marks for the direction of writing.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
#: The same, without what divides lines and words.
_STEERING_IN_LINES = re.compile(_STEERING.pattern.replace("\x00-\x1f", "\x00-\x08\x0b\x0c\x0e-\x1f"))
_LONGEST = 2000


def visible(text: object) -> str:
    r"""The text with ``\x1b`` and the like in place of what nobody would see. Cost: nothing where there is none."""
    return _STEERING.sub(_written, str(text))


def line_of(text: object) -> str:
    """The same as a line of a message, cut where somebody's name or value would fill the screen."""
    line = visible(text)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}... ({len(line) - _LONGEST} characters more)"


def _written(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def in_json(text: str) -> str:
    r"""A JSON document with the same characters as ``\u009b``, which means the same to whoever reads it. Lines stay."""
    return _STEERING_IN_LINES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
