"""The process that a function runs in: how much memory it has taken of what it may take."""

import os
from collections.abc import Mapping
from pathlib import Path

#: Above this share nothing more is kept that is not needed. A plan of a large cluster takes the rest.
ENOUGH = 0.5
#: Of this process, in pages: all of it, what is resident, … (Linux, proc(5)).
_STATM = Path("/proc/self/statm")


def is_full(environment: Mapping[str, str] = os.environ, *, statm: Path = _STATM) -> bool:
    """Whether the process has taken more than enough of its function's memory. No where nobody tells."""
    try:
        megabytes = int(environment["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"])
        pages = int(statm.read_text().split()[1])
    except (KeyError, ValueError, IndexError, OSError):
        return False
    return pages * os.sysconf("SC_PAGE_SIZE") > ENOUGH * (megabytes << 20)
