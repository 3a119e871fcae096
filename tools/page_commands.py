"""The commands that a page gives its reader: those in blocks for copying, and those that a sentence or a table names.

Tests run them or check them, so that a page does not promise what is not there. A block is marked ``sh``, or indented
as Markdown has it: four columns further than the text around it.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

_FENCE = re.compile(r" *```(\w*)")
_ITEM = re.compile(r" *(?:[-*]|\d+\.) +")
_SPAN = re.compile(r"`([^`\n]+)`")
_INDENT = 4
_INNER = re.compile(r"\$\(([^()]*)\)")
#: What a shell may have before the name of a program.
_BEFORE = re.compile(r"do|then|\{|\w+\(\)|\w+=.*", re.DOTALL)


def commands(page: Path) -> tuple[str, ...]:
    """Those in blocks, one entry a command, in the page's order; what goes on in the next line is one line."""
    return tuple(command for block in _blocks(page.read_text()) for command in _commands(block))


def mentioned(page: Path, program: str) -> tuple[str, ...]:
    """Those in sentences and tables that begin with a program. They may leave parts out."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    spans = (span.replace(r"\|", "|") for span in _SPAN.findall(text))
    return tuple(span for span in spans if span.startswith(f"{program} "))


def simple(command: str) -> Iterator[Sequence[str]]:
    """The words of each program that a command calls, also of those inside it: ``$(...)``, pipes, loops."""
    while inner := _INNER.search(command):
        yield from simple(inner[1])
        command = f"{command[: inner.start()]}OUTPUT{command[inner.end() :]}"
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|;&")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    for word in (*lexer, ";"):
        if not set(word) <= set("|;&"):
            words += [word] if words or not _BEFORE.fullmatch(word) else []
        elif words:
            yield words
            words = []


def _blocks(text: str) -> Iterator[list[str]]:
    """The lines of each block."""
    block: list[str] = []
    fence, margin = None, 0  # the language of the fence that is open; where the text of the list's item begins
    before = ""
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        edge = _FENCE.match(line)
        is_indented = fence is None and indent >= margin + _INDENT and (bool(block) or not before.strip())
        if not edge and line.strip() and (fence == "sh" or is_indented):
            block.append(line)
        elif edge or (fence is None and line.strip()):
            yield block
            block = []
        if edge:
            fence = edge[1] if fence is None else None
        elif fence is None and line.strip() and not is_indented:
            item = _ITEM.match(line)
            margin = item.end() if item else min(margin, indent)
        before = line
    yield block


def _commands(block: Sequence[str]) -> Iterator[str]:
    pending = ""
    for line in block:
        pending += " " * bool(pending) + re.sub(r"\s+# .*", "", line).strip()
        if pending.endswith("\\"):
            pending = pending[:-1].rstrip()
        elif _is_whole(pending):
            if pending and not pending.startswith("#"):
                yield pending
            pending = ""


def _is_whole(command: str) -> bool:
    """Whether every quotation ends where it began."""
    try:
        shlex.split(command)
    except ValueError:
        return False
    return True
