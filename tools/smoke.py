"""Import every door from the build, in an interpreter that sees the build and nothing else.

This is the only proof that a layer's folders are named right, that no dependency is missing, and that nothing was
pruned that somebody imports. Adapters are imported when first used, so behind one door, whose layers are those of all,
the smoke test imports every module of the product too, and makes a pool of connections. boto3 is the Lambda runtime's
own: it comes from the environment given with ``--runtime-packages``.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tools.template import BUILD, ROOT, Door, doors, load

_DOOR = """
import sys
sys.path[:0] = sys.argv[1:]
import app
assert callable(app.handler)
"""
_PRODUCT = """
import importlib, pkgutil
import joinery
for module in pkgutil.walk_packages(joinery.__path__, "joinery."):
    importlib.import_module(module.name)
from joinery.gateways.kubernetes.connection import connection
connection("https://localhost").new_pool()
"""
_NOTHING_ELSE = """
own = tuple(sys.argv[1:])
outside = [m.__name__ for m in list(sys.modules.values())
           if "site-packages" in (getattr(m, "__file__", None) or "") and not m.__file__.startswith(own)]
assert not outside, outside
print(len(sys.modules), "modules")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runtime-packages", type=Path, required=True, help="a site-packages folder that holds boto3")
    packages = parser.parse_args().runtime_packages.resolve()
    named = doors(load())
    # The first one takes longest: it has the whole product.
    programs = [_DOOR + _PRODUCT + _NOTHING_ELSE] + [_DOOR + _NOTHING_ELSE] * (len(named) - 1)
    with ThreadPoolExecutor(os.cpu_count()) as processors:
        imported = list(processors.map(partial(_runs, packages), named.values(), programs))
    failed = [name for name, is_imported in zip(named, imported, strict=True) if not is_imported]
    if failed:
        sys.exit(f"smoke: {', '.join(failed)} cannot be imported from the build")


def path_of(door: Door, packages: Path, *, build: Path = BUILD) -> list[str]:
    """What is on a door's import path in Lambda, first to last."""
    layers = [build / "DependenciesLayer" / "python", build / "SharedLayer" / "python"]
    return [str(folder) for folder in (build / door.logical_id, *layers, packages)]


def _runs(packages: Path, door: Door, program: str) -> bool:
    stripped = [sys.executable, "-I", "-S", "-W", "error", "-c", program, *path_of(door, packages)]
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(stripped, cwd=elsewhere, env={}, capture_output=True, text=True)
    said = done.stdout.strip() if done.returncode == 0 else f"FAILED\n{done.stderr}"
    print(f"{door.folder.relative_to(ROOT)}: {said}", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    main()
