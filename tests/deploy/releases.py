"""Other releases than the built one: the same code, which says another version."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tools.artifacts.archive import archive
from tools.build import SHARED
from tools.template import BUILD, ROOT, load
from tools.version import PLACES

_MODULE = Path("joinery", "__init__.py")


@contextmanager
def release(
    version: str, folder: Path, change: Callable[[dict[str, Any]], None] = lambda template: None
) -> Iterator[Path]:
    """The template of that release, to be deployed. ``folder`` gets its code; ``change`` may edit the template.

    The version is another one in template and package, so every function gets a layer that it has never run.
    """
    template = load(BUILD / "template.yaml")
    template["Mappings"]["Release"]["Joinery"]["Version"] = version
    template["Resources"][SHARED]["Properties"]["ContentUri"] = str(_package(version, folder / version))
    change(template)
    # Beside the built template, because the paths in it are relative.
    path = BUILD / f"{version}.yaml"
    path.write_text(yaml.safe_dump(template, sort_keys=False))
    try:
        yield path
    finally:
        path.unlink()


def _package(version: str, folder: Path) -> Path:
    """The archive of the package's layer, in which the package says that version."""
    shutil.copytree(BUILD / SHARED, folder)
    module = folder / "python" / _MODULE
    module.write_text(PLACES[ROOT / "shared" / _MODULE].sub(rf"\g<1>{version}\g<3>", module.read_text()))
    for compiled in (module.parent / "__pycache__").glob("__init__.*.pyc"):
        compiled.unlink()  # Python would believe it: a build's bytecode is not compared with its source
    into = folder.parent / f"{version}.zip"
    archive(folder, into)
    return into
