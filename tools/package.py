"""Build what users install without a clone: ``make package`` writes it into ``dist``.

- the wheel and the source distribution of the command line. The simulator is in neither, the sample catalogue in both;
- the archive of ``kubectl joinery``, which is that wheel and a launcher, and the manifest by which krew installs it.
"""

import argparse
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from tools.artifacts.archive import archive, digest
from tools.template import ROOT
from tools.version import project_version

DIST = ROOT / "dist"
LAUNCHER = ROOT / "cli" / "kubectl-joinery"
#: Where a manifest says that the archive lies, until somebody says better. `--archive FILE` has krew not look there.
NOWHERE = "https://example.com/joinery"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--uv", type=Path, default=Path(".cache/uv/bin/uv"))
    parser.add_argument("--releases", default=NOWHERE, help="the address below which the files of a release lie")
    given = parser.parse_args()
    for path in packaged(DIST, uv=given.uv, releases=given.releases):
        print(path.relative_to(ROOT))


def packaged(into: Path, *, uv: Path, releases: str = NOWHERE) -> list[Path]:
    """Write wheel, source distribution, plugin and its manifest, in that order, into a folder, which is emptied first.

    Raises ``CalledProcessError`` where uv cannot build.
    """
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    with TemporaryDirectory() as copy:
        # Setuptools would take what its last build left beside the sources for a list of what there is.
        shutil.copytree(ROOT, copy, dirs_exist_ok=True, ignore=_only_sources)
        subprocess.run([uv.resolve(), "build", "--quiet", "--out-dir", into, copy], check=True)
    (into / ".gitignore").unlink(missing_ok=True)
    (wheel,) = into.glob("*.whl")
    plugin = _plugin(wheel)
    manifest = into / "krew.yaml"
    manifest.write_text(yaml.safe_dump(krew_manifest(plugin, releases), sort_keys=False))
    return [wheel, *into.glob("*.tar.gz"), plugin, manifest]


def _only_sources(folder: str, names: list[str]) -> set[str]:
    """What a copy for the build leaves out."""
    if Path(folder) == ROOT:
        return set(names) - {"cli", "shared", "pyproject.toml", "README.md", "LICENSE"}
    return {name for name in names if name == "__pycache__"}


def _plugin(wheel: Path) -> Path:
    plugin = wheel.parent / f"kubectl-joinery-{project_version()}.zip"
    with TemporaryDirectory() as folder:
        for file in (wheel, LAUNCHER, ROOT / "LICENSE"):  # krew wants the licence in the archive
            shutil.copy(file, folder)
        archive(Path(folder), plugin, executables=(LAUNCHER.name,))
    return plugin


def krew_manifest(plugin: Path, releases: str) -> dict[str, Any]:
    """By which krew installs the plugin (krew.sigs.k8s.io, "Plugin manifest")."""
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "joinery"},
        "spec": {
            "version": f"v{project_version()}",
            "homepage": releases,
            "shortDescription": "Plan the cheapest nodes for pending pods",
            "description": (
                "Says which nodes the pending pods of an EKS cluster need, at what price and how far from the\n"
                "cheapest possible, and which nodes could go. Reads Karpenter's NodePools. Changes nothing.\n"
            ),
            "caveats": "Needs uv, or Python 3.11 or newer. The first run installs what it needs from PyPI.\n",
            "platforms": [
                {
                    "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["darwin", "linux"]}]},
                    "uri": f"{releases}/{plugin.name}",
                    "sha256": digest(plugin),
                    "bin": LAUNCHER.name,
                }
            ],
        },
    }


if __name__ == "__main__":
    main()
