"""Bytecode beside the sources, by the Python that runs it, where that is at hand.

Importing without it takes two to four times as long, in each cold start anew, because Lambda cannot write into a layer
(docs/performance.md has the figures). A plain ``compileall`` is no use: every zip entry is dated 1980, and Python then
finds the bytecode stale. These files are marked as not to be checked. Any release of the same minor version will do,
because they share the format.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tools.artifacts.target import Target


def find(target: Target) -> Path | None:
    """The target's Python on this machine, or None. A name on the PATH does not count before it has answered."""
    for candidate in _candidates(target):
        asked = subprocess.run(
            [candidate, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
        )
        if asked.returncode == 0 and asked.stdout.strip() == target.version:
            return candidate
    return None


def _candidates(target: Target) -> Iterator[Path]:
    for name in (target.runtime, "python3"):
        if on_path := shutil.which(name):
            yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from sorted(pyenv.glob(f"{target.version}.*/bin/{target.runtime}"))
    managed = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", Path.home() / ".local/share/uv/python"))
    yield from sorted(managed.glob(f"cpython-{target.version}.*/bin/{target.runtime}"))


def compile_all(python: Path, folder: Path, place: str) -> None:
    """Compile every source below a folder, as if it lay at ``place``."""
    command = [str(python), "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
    # With random seeds the members of a set of constants are written in another order each time.
    fixed = {**os.environ, "PYTHONHASHSEED": "0"}
    subprocess.run([*command, "-s", str(folder), "-p", place, str(folder)], check=True, env=fixed)
