"""The words of CEL expressions (cel.dev, language definition), for those who read them."""

import re
from collections.abc import Iterator

#: What stands between tokens. It gives nothing back, so that reading takes no longer than the text is long.
_BLANK = re.compile(r"(?:\s|//[^\n]*)*+", re.ASCII)
_TOKEN = re.compile(
    r"""(?:
    (?P<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)(?![\w.])
    |(?P<raw>[rR](?:"[^"\n]*"|'[^'\n]*'))
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>\|\||&&|[<>=!]=|\.\?|\[\?|[-+*/%<>!?:()\[\],.])
    )""",
    re.VERBOSE | re.ASCII,
)
RELATIONS = ("<", "<=", ">", ">=", "==", "!=", "in")
#: Of signs between two values, the higher the sooner.
PRECEDENCE = {
    "||": 1, "&&": 2, **dict.fromkeys(RELATIONS, 3), "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip


class ExpressionError(ValueError):
    """An expression that is none, or that has no usable value for these variables."""


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """Kind and word of each, and ("end", "") behind them. Raises ``ExpressionError`` for what is no token."""
    at = _after_blanks(text, 0)
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise ExpressionError(f"{text[at : at + 12].strip()!r} is not understood")
        yield match.lastgroup, match[match.lastgroup]
        at = _after_blanks(text, match.end())
    yield "end", ""


def _after_blanks(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at
