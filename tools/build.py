"""Build what Lambda runs: ``make build``. Everything is made here, from the commit and the lock, in this order.

1. **The layer of dependencies**: wheels for the target, each with its hash (``tools.artifacts.layers``), with a
   bill of materials and the licences (``tools.artifacts.bill``).
2. **The layer of the package** and the functions: copies.
3. **Bytecode**, if the target's Python is at hand (``tools.artifacts.layers``).
4. **Archives** of which every byte follows from their files (``tools.artifacts.archive``). SAM only uploads them.
5. **The template**, which says what it was built for and names the archives; that of members, which has no code.

``sam build`` is not needed. It works, too, where the target's Python is at hand, and leaves out the second half.

``--verify`` builds nothing: it refuses a build that is for something else than was asked for, that somebody else wrote,
or that was changed since.
"""

import argparse
import hashlib
import json
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tools.artifacts import bill, layers
from tools.artifacts.archive import archive, digest, files_of
from tools.artifacts.target import HOST, Target, TargetError, asked, of_template, written_into
from tools.template import BUILD, LAMBDA_BUILD, MEMBER, ROOT, TEMPLATE, load
from tools.version import project_version

#: Lambda takes 250 MB of function and layers, unzipped.
LARGEST_MB = 230
#: In the folder of a build: what it is, and what it was made of.
STAMP = "build.json"
#: Whatever the artifacts are made of.
SOURCES = (
    "template.yaml",
    "member.yaml",
    "functions",
    "layers",
    "shared",
    "tools/artifacts",
    "tools/build.py",
    "uv.lock",
    "pyproject.toml",
    "LICENSE",
    "README.md",
)
#: Files that the template's metadata names for the Serverless Application Repository.
PUBLISHED = ("LICENSE", "README.md")
DEPENDENCIES, SHARED = "DependenciesLayer", "SharedLayer"
#: Globs that no artifact has: what Python leaves behind, and what editors and systems do.
LEFT_OUT = ("**/__pycache__", "**/*.pyc", "**/.*")
_CODE = re.compile(r"^(      (?:CodeUri|ContentUri): )(\S+)$")
_RESOURCE = re.compile(r"^  (\w+):$")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runtime", default="", help="python3.13, or host; the template's without it")
    parser.add_argument("--architecture", default="", help="arm64, x86_64, or host; the template's without it")
    parser.add_argument("--uv", type=Path, default=Path(".cache/uv/bin/uv"))
    parser.add_argument("--verify", action="store_true", help="refuse what may not be deployed as what was asked for")
    given = parser.parse_args()
    try:
        target = asked(given.runtime, given.architecture, load())
        folder = BUILD if HOST in (given.runtime, given.architecture) else LAMBDA_BUILD
        if given.verify:
            verify(folder, target)
        else:
            print(built(target, folder, uv=given.uv, python=layers.find_python(target)))
    except TargetError as error:
        sys.exit(str(error))


def built(target: Target, folder: Path, *, uv: Path, python: Path | None) -> str:
    """Build for a target into a folder, unless that is there already. Returns what is to be said of it.

    ``python``: the target's, for bytecode; None ships sources alone.
    """
    fingerprint = _fingerprint(target, python)
    if _stamp(folder).get("fingerprint") == fingerprint:
        return f"{target}: the build is current"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    template = TEMPLATE.read_text()
    sources = code_of(template)
    for name, source in sources.items():
        _fill(folder / name, source, target, uv)
    if python:
        for name in sources:
            layers.compile_all(python, *_root_and_place(folder / name))
    for name in PUBLISHED:
        shutil.copy(ROOT / name, folder)
    digests = {f"{name}.zip": archive(folder / name, folder / f"{name}.zip") for name in sources}
    (folder / TEMPLATE.name).write_text(with_archives(written_into(template, target)))
    shutil.copy(MEMBER, folder)
    digests |= {path.name: digest(folder / path.name) for path in (TEMPLATE, MEMBER)}
    stamp = {
        "version": project_version(), "runtime": target.runtime, "architecture": target.architecture,
        "bytecode": bool(python), "fingerprint": fingerprint, "sha256": digests,
    }  # fmt: skip
    summary = _weighed(folder, sources, target, has_bytecode=bool(python))
    (folder / STAMP).write_text(json.dumps(stamp, indent=2) + "\n")
    return summary


def verify(folder: Path, target: Target) -> None:
    """Raise ``TargetError`` unless the folder holds a whole build of ours for this target and version."""
    stamp = _stamp(folder)
    again = f"make build RUNTIME={target.runtime} ARCHITECTURE={target.architecture}"
    if not stamp:
        raise TargetError(f"{folder} holds no build of `make build`: {again}")
    missing = [name for name in stamp["sha256"] if not (folder / name).is_file()]
    if missing:
        raise TargetError(f"{', '.join(missing)} is missing in {folder}: {again}")
    made = Target(stamp["runtime"], stamp["architecture"])
    if made != target or of_template(load(folder / TEMPLATE.name)) != target:
        raise TargetError(f"the build is for {made}, and {target} was asked for: {again}")
    if stamp["version"] != project_version():
        raise TargetError(f"the build is of version {stamp['version']}, and this is {project_version()}: {again}")
    changed = [name for name, expected in stamp["sha256"].items() if digest(folder / name) != expected]
    if changed:
        raise TargetError(f"{', '.join(changed)} was changed since it was built: {again}")


def code_of(template: str) -> dict[str, str]:
    """By logical id, the folder that a template's resource takes its code from."""
    code, resource = {}, ""
    for line in template.splitlines():
        if heading := _RESOURCE.match(line):
            resource = heading[1]
        elif uri := _CODE.match(line):
            code[resource] = uri[2]
    return code


def with_archives(template: str) -> str:
    """The template with the archives that stand beside it instead of folders of source."""
    lines, resource = [], ""
    for line in template.splitlines():
        if heading := _RESOURCE.match(line):
            resource = heading[1]
        lines.append(_CODE.sub(rf"\g<1>{resource}.zip", line))
    return "\n".join([*lines, ""])


def _fill(folder: Path, source: str, target: Target, uv: Path) -> None:
    """Put into the folder what its archive will hold, bytecode apart."""
    if folder.name == DEPENDENCIES:
        layers.install(target, folder / "python", uv=uv)
        document = bill.bill(folder / "python", target, project_version())
        (folder / bill.BILL).write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
        (folder / bill.NOTICES).write_text(bill.notices(folder / "python"))
        return
    into = folder / "python" if folder.name == SHARED else folder
    shutil.copytree(ROOT / source, into)
    layers.prune(into, LEFT_OUT)


def _root_and_place(folder: Path) -> tuple[Path, str]:
    """The folder of an artifact's modules, and where Lambda puts it."""
    layer = folder / "python"
    return (layer, "/opt/python") if layer.exists() else (folder, "/var/task")


def _weighed(folder: Path, names: Iterable[str], target: Target, *, has_bytecode: bool) -> str:
    sizes = {name: _megabytes(folder / name) for name in names}
    in_layers = sum(size for name, size in sizes.items() if name.endswith("Layer"))
    largest = in_layers + max(size for name, size in sizes.items() if not name.endswith("Layer"))
    if largest > LARGEST_MB:
        raise TargetError(f"too large: {largest:.1f} MB of {LARGEST_MB} MB (Lambda takes 250 MB)")
    zipped = sum((folder / f"{name}.zip").stat().st_size for name in names) / 1e6
    missing = f"; {target.runtime} is not at hand: Lambda compiles in each cold start (docs/performance.md)"
    return (
        "".join(f"{name:24}{size:8.1f} MB\n" for name, size in sizes.items() if name.endswith("Layer"))
        + f"{target}: {largest:.1f} MB a function and its layers, {zipped:.1f} MB zipped in all"
        + (", with bytecode" if has_bytecode else missing)
    )


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in files_of(folder)) / 1e6


def _stamp(folder: Path) -> dict[str, Any]:
    path = folder / STAMP
    stamp: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return stamp


def _fingerprint(target: Target, python: Path | None) -> str:
    result = hashlib.sha256(f"{target} {python}".encode())
    for source in SOURCES:
        top = ROOT / source
        for path in files_of(top) if top.is_dir() else (top,):
            if path.suffix != ".pyc":
                result.update(f"{path.relative_to(ROOT)} {digest(path)}\n".encode())
    return result.hexdigest()


if __name__ == "__main__":
    main()
