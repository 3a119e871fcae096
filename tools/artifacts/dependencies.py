"""The layer of dependencies: wheels for the target, each with its hash in the lock, without what nobody imports.

Nothing is built and nothing is run: uv takes the wheels that fit the target's Python, processor and glibc, whatever
this machine has. So no Python of the target is needed here.
"""

import shutil
import subprocess
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
