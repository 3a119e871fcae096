"""The commands that a page asks its reader to copy: those in its blocks marked ``sh``.

Tests run them or check them, so that a page does not promise what is not there.
"""

import re
from pathlib import Path

_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_CONTINUED = re.compile(r"\\\n\s*")


def commands(page: Path) -> tuple[str, ...]:
    """One entry a command, in the page's order; what is continued by a backslash is one line."""
    blocks = (_CONTINUED.sub("", block) for block in _BLOCK.findall(page.read_text()))
    lines = (re.sub(r"\s+# .*", "", line).strip() for block in blocks for line in block.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))
