"""What layers hold: wheels for the target, each with its hash in the lock, and bytecode beside the sources.

**Wheels.** Nothing is built and nothing is run: uv takes the wheels that fit the target's Python, processor and glibc,
whatever this machine has. So no Python of the target is needed here. What nobody imports is left out.

**Bytecode** is made by the Python that runs it, where that is at hand. Importing without it takes two to four times as
long, in each cold start anew, because Lambda cannot write into a layer (docs/performance.md has the figures). A plain
``compileall`` is no use: every zip entry is dated 1980, and Python then finds the bytecode stale. These files are
marked as not to be checked. Any release of the same minor version will do, because they share the format.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path

from tools.artifacts.target import Target, TargetError
from tools.template import ROOT

#: Exported from uv.lock with hashes, and compared with it by ``make lint``.
REQUIREMENTS = ROOT / "layers" / "dependencies" / "requirements.txt"

#: Globs below the layer's python folder, each with the reason that nobody misses it.
PRUNED = (
    "numpy/**/tests", "numpy/f2py", "numpy/**/*.a", "numpy/_core/include", "numpy/random/_examples",  # for developers
    "**/*.pyi", "**/*.pxd",  # for type checkers and compilers
    "bin",  # scripts that name this machine's Python
    # What an installer keeps for itself. METADATA and licences stay: scanners read them, and so do users.
    "*.dist-info/RECORD", "*.dist-info/INSTALLER", "*.dist-info/REQUESTED", ".lock",
)  # fmt: skip


def install(target: Target, folder: Path, *, uv: Path, requirements: Path = REQUIREMENTS) -> None:
    """Install what the lock names into a folder. Raises ``TargetError`` if there is no such wheel, or another one."""
    command = [
        str(uv), "pip", "install", "--quiet", "--no-config", "--no-deps", "--require-hashes", "--only-binary", ":all:",
        "--python-platform", target.platform, "--python-version", target.version,
        "--link-mode", "copy", "--target", str(folder), "--requirements", str(requirements),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise TargetError(f"the dependencies for {target} cannot be installed: {' '.join(done.stderr.split())}")
    for wheel in sorted(folder.glob("*.dist-info/WHEEL")):
        tags = HeaderParser().parsestr(wheel.read_text("utf-8")).get_all("Tag", [])
        if not target.runs(tags):
            raise TargetError(f"{wheel.parent.name} does not run in Lambda's {target}: it is for {', '.join(tags)}")
    prune(folder, PRUNED)


def prune(folder: Path, patterns: tuple[str, ...]) -> None:
    """Remove what the globs name."""
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def find_python(target: Target) -> Path | None:
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
