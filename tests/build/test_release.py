"""What users install without a clone, and what ``make release`` makes: tried as they would, not only looked at."""

import os
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

import joinery
from tools.artifacts.archive import digest
from tools.package import packaged
from tools.release import ReleaseError, refuse, try_out
from tools.template import ROOT

# The builds share a machine of two cores with the doors.
pytestmark = pytest.mark.xdist_group("build")

UV = ROOT / ".cache" / "uv" / "bin" / "uv"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``make package`` writes."""
    folder = tmp_path_factory.mktemp("dist")
    packaged(folder, uv=UV, releases="https://example.org/releases")
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    """Of the command line."""
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Has uv install what the lock has, so that no release of somebody else fails this test on some morning."""
    constraints = tmp_path_factory.mktemp("lock") / "constraints.txt"
    command = (UV, "export", "--quiet", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes")
    constraints.write_text(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    return ("--constraints", str(constraints))


# --- the wheel --------------------------------------------------------------------------------------------------------


def test_the_wheel_plans_in_an_empty_folder(wheel: Path, locked: tuple[str, str]) -> None:
    """With its own sample catalogue; no clone is needed."""
    try_out(wheel, uv=UV, more=locked)


def test_the_wheel_has_no_simulator(wheel: Path) -> None:
    """Nor commands that would need it."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        offered = archive.read(f"joinery-{joinery.__version__}.dist-info/entry_points.txt").decode()
    assert {name.split("/")[0] for name in names} == {
        "joinery", "joinery_cli", f"joinery-{joinery.__version__}.dist-info",
    }  # fmt: skip
    assert "simulator" not in offered


def test_the_source_distribution_gives_the_same_wheel(dist: Path, wheel: Path, tmp_path: Path) -> None:
    """So whoever builds from source has what others install."""
    (source,) = dist.glob("*.tar.gz")
    subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", tmp_path, source], check=True)
    (again,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


# --- kubectl joinery --------------------------------------------------------------------------------------------------


def test_the_plugin_runs_through_the_link_that_krew_makes(dist: Path, tmp_path: Path, locked: tuple[str, str]) -> None:
    """And the manifest is of this archive."""
    manifest = yaml.safe_load((dist / "krew.yaml").read_text())
    (platform,) = manifest["spec"]["platforms"]
    plugin = dist / platform["uri"].removeprefix("https://example.org/releases/")
    assert platform["sha256"] == digest(plugin)
    with zipfile.ZipFile(plugin) as archive:
        for entry in archive.infolist():
            target = Path(archive.extract(entry, tmp_path / "store"))
            target.chmod(entry.external_attr >> 16 & 0o777)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "kubectl-joinery"
    command.symlink_to("../store/" + platform["bin"])
    environment = {
        **os.environ, "PATH": f"{UV.parent}:/usr/bin:/bin", "UV_CONSTRAINT": locked[1],
    }  # fmt: skip
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True, env=environment)
    assert joinery.__version__ in said.stdout


# --- the release ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "changelog", "elsewhere", "reason"),
    [
        (" M README.md", "## 1.2.0", [], "commit these first"),
        ("", "## Unreleased: 1.2.0", [], "CHANGELOG.md has no heading '## 1.2.0'"),
        ("", "## 1.2.0: new", ["v1.1.0", "v1.2.0"], "v1.2.0 is another commit"),
    ],
)
def test_only_a_commit_that_is_this_version_is_released(
    status: str, changelog: str, elsewhere: list[str], reason: str
) -> None:
    """The line says what stands against it."""
    with pytest.raises(ReleaseError, match=reason):
        refuse("1.2.0", changelog, status, elsewhere)
    refuse("1.2.0", "# Changelog\n\n## 1.2.0: new\n", "", ["v1.1.0"])
