"""Build what Lambda runs: ``sam build``, then the two things that SAM leaves out.

- **Prune** what no door imports. The list is short, and ``make smoke`` proves it: every module of the product is then
  imported from what is left.
- **Compile.** SAM ships no bytecode, and importing without it takes two to four times as long. A plain ``compileall``
  is no use, because ``sam package`` dates every zip entry 1980 and Python then finds the bytecode stale: these files
  are marked as not to be checked. The bytecode must be of the Python that runs it.

Sizes are printed, and a build that Lambda would not take is an error.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.template import BUILD, ROOT, TEMPLATE, load

#: Lambda takes 250 MB of function and layers, unzipped.
LARGEST_MB = 230
STAMP = BUILD / ".built"
#: Whatever the artifacts are made of.
SOURCES = ("template.yaml", "functions", "layers", "shared", "tools/build.py")

#: Globs below a layer's python folder, each with the reason that nobody misses it.
PRUNED = {
    "DependenciesLayer": (
        "kubernetes/aio*",  # the asynchronous twin of the client, a third of it
        "aiohttp*", "aiosignal*", "aiohappyeyeballs*", "frozenlist*", "multidict*", "propcache*", "yarl*",  # its needs
        "numpy/**/tests", "numpy/f2py", "numpy/**/*.a", "numpy/_core/include", "numpy/random/_examples",
        "**/*.pyi", "**/*.pxd",
        "bin",
    ),
    "SharedLayer": ("joinery/cli", "**/__pycache__"),  # the command line's dependencies are in no layer
}  # fmt: skip


def main() -> None:
    parameters = load()["Parameters"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runtime", default=parameters["Runtime"]["Default"], help="python3.13, or host")
    parser.add_argument("--architecture", default=parameters["Architecture"]["Default"], help="arm64, x86_64, or host")
    parser.add_argument("--sam", default="sam", help="the SAM CLI")
    given = parser.parse_args()
    runtime = f"python3.{sys.version_info.minor}" if given.runtime == "host" else given.runtime
    architecture = host_architecture() if given.architecture == "host" else given.architecture
    fingerprint = _fingerprint(runtime, architecture)
    if STAMP.exists() and STAMP.read_text() == fingerprint:
        print(f"{runtime} on {architecture}: the build is current")
        return
    _sam_build(given.sam, runtime, architecture)
    for layer, patterns in PRUNED.items():
        _prune(BUILD / layer / "python", patterns)
    _compile(runtime)
    _weigh(runtime, architecture)
    STAMP.write_text(fingerprint)


def host_architecture() -> str:
    """This machine's architecture, in Lambda's words."""
    return "arm64" if os.uname().machine in ("arm64", "aarch64") else "x86_64"


def _sam_build(sam: str, runtime: str, architecture: str) -> None:
    overrides = [f"Runtime={runtime}", f"Architecture={architecture}"]
    command = [sam, "build", "--template", str(TEMPLATE), "--parameter-overrides", *overrides]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "SAM_CLI_TELEMETRY": "0"}, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}sam build failed: {runtime} on {architecture} needs {runtime} on the PATH")


def _prune(folder: Path, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _compile(runtime: str) -> None:
    """Every artifact, with the target's own Python, as if it lay where Lambda puts it."""
    for folder, place in _artifacts():
        command = [runtime, "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
        subprocess.run([*command, "-s", str(folder), "-p", place, str(folder)], check=True)


def _artifacts() -> Iterator[tuple[Path, str]]:
    for folder in sorted(path for path in BUILD.iterdir() if path.is_dir()):
        layer = folder / "python"
        yield (layer, "/opt/python") if layer.exists() else (folder, "/var/task")


def _weigh(runtime: str, architecture: str) -> None:
    sizes = {folder.relative_to(BUILD).parts[0]: _megabytes(folder) for folder, _ in _artifacts()}
    layers = sum(size for name, size in sizes.items() if name.endswith("Layer"))
    largest = layers + max(size for name, size in sizes.items() if not name.endswith("Layer"))
    for name, size in sizes.items():
        print(f"{name:24}{size:8.1f} MB")
    print(f"{'a function and its layers':24}{largest:7.1f} MB with bytecode, {runtime} on {architecture}")
    if largest > LARGEST_MB:
        sys.exit(f"too large: {largest:.1f} MB of {LARGEST_MB} MB (Lambda takes 250 MB)")


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def _fingerprint(runtime: str, architecture: str) -> str:
    digest = hashlib.sha256(f"{runtime} {architecture}".encode())
    for path in sorted(_files()):
        digest.update(f"{path.relative_to(ROOT)} {path.stat().st_size}".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _files() -> Iterator[Path]:
    for name in SOURCES:
        top = ROOT / name
        yield from (
            path for path in (top.rglob("*") if top.is_dir() else (top,)) if path.is_file() and path.suffix != ".pyc"
        )


if __name__ == "__main__":
    main()
