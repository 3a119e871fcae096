"""What ``make build`` makes for Lambda: the right wheels, the same bytes each time, and what is in them in writing."""

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import joinery
from tools.artifacts import layers
from tools.artifacts.bill import BILL, LOCK, NOTICES, bill, distributions, notices
from tools.artifacts.target import GLIBC, Target, TargetError, asked, host_architecture, of_template, written_into
from tools.build import built, code_of, verify, with_archives
from tools.template import ROOT, TEMPLATE, load

# The builds share a machine of two cores with the doors.
pytestmark = pytest.mark.xdist_group("build")

UV = ROOT / ".cache" / "uv" / "bin" / "uv"
DEFAULT = of_template(load())
ARTIFACTS = code_of(TEMPLATE.read_text())
_ELF_MACHINES = {"x86_64": 62, "arm64": 183}
_A_PACKAGE = "typing-extensions"


@pytest.fixture(scope="module")
def lambda_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of what the template asks for, on this machine, which needs no Python of that kind."""
    folder = tmp_path_factory.mktemp("build") / "one"
    built(DEFAULT, folder, uv=UV, python=None)
    return folder


@pytest.fixture(scope="module")
def document(lambda_build: Path) -> dict[str, Any]:
    """The bill of materials as it lies in the zip of the layer."""
    with zipfile.ZipFile(lambda_build / "DependenciesLayer.zip") as layer:
        content: dict[str, Any] = json.loads(layer.read(BILL))
    return content


# --- what it is for ---------------------------------------------------------------------------------------------------


def test_the_template_says_what_is_built() -> None:
    """Whoever asks for nothing gets that, and ``host`` is this machine's own."""
    own = Target(f"python3.{sys.version_info.minor}", host_architecture())
    assert asked("", "", load()) == DEFAULT
    assert asked("host", "host", load()) == own
    assert asked("python3.12", "", load()) == Target("python3.12", DEFAULT.architecture)


@pytest.mark.parametrize(("runtime", "architecture"), [("python2.7", ""), ("", "sparc")])
def test_what_lambda_does_not_run_is_refused(runtime: str, architecture: str) -> None:
    """In one line that names the setting and what it may be."""
    with pytest.raises(TargetError, match=r"^(RUNTIME=python2.7|ARCHITECTURE=sparc): it is one of [^\n]+$"):
        asked(runtime, architecture, load())


def test_the_built_template_runs_on_what_was_built(lambda_build: Path) -> None:
    """And each of its functions and layers is an archive beside it, so that nothing unbuilt is uploaded."""
    template = load(lambda_build / "template.yaml")
    assert of_template(template) == DEFAULT
    resources = [template["Resources"][name]["Properties"] for name in ARTIFACTS]
    assert [r.get("CodeUri") or r.get("ContentUri") for r in resources] == [f"{name}.zip" for name in ARTIFACTS]
    assert all((lambda_build / f"{name}.zip").exists() for name in ARTIFACTS)


def test_every_function_and_layer_of_the_template_is_built() -> None:
    """A new one is not forgotten, and takes its runtime from the one place."""
    kinds = ("AWS::Serverless::Function", "AWS::Serverless::LayerVersion")
    template = load()
    assert set(ARTIFACTS) == {name for name, r in template["Resources"].items() if r["Type"] in kinds}
    assert "Runtime" not in template["Parameters"]
    own = [r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::Serverless::Function"]
    assert not [properties for properties in own if {"Runtime", "Architectures"} & set(properties)]


def test_a_template_for_another_target_differs_in_one_line() -> None:
    """The mapping is the only place that says it."""
    text = with_archives(TEMPLATE.read_text())
    other = written_into(text, Target("python3.12", "x86_64"))
    changed = [new for old, new in zip(text.splitlines(), other.splitlines(), strict=True) if old != new]
    target = "Runtime: python3.12, Architecture: x86_64, DeployedAt: never"
    assert changed == [f"    Joinery: {{ Version: {joinery.__version__}, {target} }}"]


# --- what may be deployed ---------------------------------------------------------------------------------------------


def test_a_build_for_something_else_is_not_deployed(lambda_build: Path) -> None:
    """One line says what it is for, what was asked for, and what to run."""
    verify(lambda_build, DEFAULT)
    with pytest.raises(
        TargetError, match="the build is for python3.13 on arm64, and python3.12 on arm64 was asked for"
    ):
        verify(lambda_build, Target("python3.12", "arm64"))


def test_a_build_of_somebody_else_is_not_deployed(tmp_path: Path) -> None:
    """``sam build`` leaves no word of what it built."""
    with pytest.raises(TargetError, match="holds no build of `make build`: make build RUNTIME="):
        verify(tmp_path, DEFAULT)


@pytest.mark.parametrize("name", ["WebhookFunction.zip", "template.yaml"])
def test_a_build_that_was_changed_is_not_deployed(name: str, lambda_build: Path, tmp_path: Path) -> None:
    """It is not what the commit makes; and one in which something is missing is none."""
    copy = Path(shutil.copytree(lambda_build, tmp_path / "copy", ignore=shutil.ignore_patterns("*Layer", "*Function")))
    with (copy / name).open("ab") as file:
        file.write(b"\n")
    with pytest.raises(TargetError, match=f"{name} was changed since it was built"):
        verify(copy, DEFAULT)
    (copy / name).unlink()
    with pytest.raises(TargetError, match=f"{name} is missing in"):
        verify(copy, DEFAULT)
    (copy / name).mkdir()
    with pytest.raises(TargetError, match=f"{name} is missing in"):
        verify(copy, DEFAULT)


# --- wheels -----------------------------------------------------------------------------------------------------------


def test_native_code_is_for_the_target_s_processor(lambda_build: Path) -> None:
    """Whatever machine built it."""
    libraries = list((lambda_build / "DependenciesLayer").rglob("*.so*"))
    machines = {int.from_bytes(path.read_bytes()[18:20], "little") for path in libraries}
    assert machines == {_ELF_MACHINES[DEFAULT.architecture]}
    assert not [path for path in libraries if "cpython-" in path.name and "-313-" not in path.name]


def test_a_wheel_of_another_hash_than_the_lock_s_is_refused(tmp_path: Path) -> None:
    """What was reviewed is what runs: an index cannot give another file."""
    requirements = tmp_path / "requirements.txt"
    entry = re.search(rf"^{_A_PACKAGE}==\S+", layers.REQUIREMENTS.read_text(), re.MULTILINE)
    assert entry is not None
    requirements.write_text(f"{entry[0]} --hash=sha256:{'0' * 64}\n")
    with pytest.raises(TargetError, match=rf"^[^\n]*(H|h)ash mismatch for `{_A_PACKAGE}[^\n]*$"):
        layers.install(DEFAULT, tmp_path / "layer", uv=UV, requirements=requirements)


def test_a_requirement_without_a_hash_is_refused(tmp_path: Path) -> None:
    """There is no way around the lock."""
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"{_A_PACKAGE}==4.16.0\n")
    with pytest.raises(TargetError, match="hash"):
        layers.install(DEFAULT, tmp_path / "layer", uv=UV, requirements=requirements)


@pytest.mark.parametrize(
    ("runtime", "tag", "runs"),
    [
        ("python3.11", "cp311-cp311-manylinux_2_24_aarch64", True),
        ("python3.11", "cp311-cp311-manylinux_2_28_aarch64", False),
        ("python3.12", "cp312-cp312-manylinux_2_28_aarch64", True),
        ("python3.12", "cp312-cp312-manylinux_2_28_x86_64", False),
        ("python3.13", "cp313-cp313-musllinux_1_2_aarch64", False),
        ("python3.13", "cp313-cp313-manylinux2014_aarch64", True),
        ("python3.13", "py3-none-any", True),
    ],
)
def test_a_wheel_for_a_newer_glibc_than_lambda_s_does_not_run(runtime: str, tag: str, runs: bool) -> None:
    """python3.11 is on Amazon Linux 2, with glibc 2.26; the others are on Amazon Linux 2023, with 2.34."""
    assert Target(runtime, "arm64").runs([tag]) is runs


@pytest.mark.parametrize("runtime", sorted(set(GLIBC) - {DEFAULT.runtime}))
def test_the_other_runtimes_have_wheels_as_well(runtime: str, tmp_path: Path) -> None:
    """On the other processor, so that each is resolved once."""
    layers.install(Target(runtime, "x86_64"), tmp_path, uv=UV)
    assert {package.name for package in distributions(tmp_path)} == required(Target(runtime, "x86_64"))


# --- the same bytes ---------------------------------------------------------------------------------------------------


def test_the_same_commit_gives_the_same_bytes(lambda_build: Path, tmp_path: Path) -> None:
    """Built twice, in two folders."""
    built(DEFAULT, tmp_path / "elsewhere" / "two", uv=UV, python=None)
    one, two = (
        json.loads((folder / "build.json").read_text()) for folder in (lambda_build, tmp_path / "elsewhere/two")
    )
    assert one == two
    assert set(one["sha256"]) == {*(f"{name}.zip" for name in ARTIFACTS), "template.yaml", "member.yaml"}


def test_an_archive_tells_nothing_of_the_machine(lambda_build: Path) -> None:
    """No moment, no owner, no order but that of the names; and Lambda's user can read each file."""
    for name in ARTIFACTS:
        with zipfile.ZipFile(lambda_build / f"{name}.zip") as zipped:
            entries = zipped.infolist()
        assert [e.filename.split("/") for e in entries] == sorted(e.filename.split("/") for e in entries)
        assert {(e.date_time, e.external_attr >> 16, e.create_system) for e in entries} == {
            ((1980, 1, 1, 0, 0, 0), 0o100644, 3)
        }


def test_bytecode_is_the_same_in_every_folder(tmp_path: Path) -> None:
    """It names the place where Lambda has the file, and is not compared with the file's date."""
    python = layers.find_python(Target(f"python3.{sys.version_info.minor}", host_architecture()))
    assert python is not None
    for name in ("one", "two"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(
            ROOT / "shared" / "joinery" / "objects" / "kubernetes", tmp_path / name / "joinery", ignore=ignored
        )
        layers.compile_all(python, tmp_path / name, "/opt/python")
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / name).rglob("*.pyc")} for name in ("one", "two"))
    assert one == two != {}
    assert all(content[4:8] == b"\x01\x00\x00\x00" and b"/opt/python/joinery" in content for content in one.values())


# --- what is in it ----------------------------------------------------------------------------------------------------


def required(target: Target) -> set[str]:
    """The packages that the lock has for a target."""
    lines = [line for line in layers.REQUIREMENTS.read_text().splitlines() if line[:1].isalpha()]
    environment = {"python_full_version": f"{target.version}.0", "python_version": target.version}
    requirements = [Requirement(line.removesuffix("\\").strip()) for line in lines]
    return {canonicalize_name(r.name) for r in requirements if r.marker is None or r.marker.evaluate(environment)}


def test_the_layer_holds_what_the_lock_names_and_nothing_else(lambda_build: Path) -> None:
    """Not the official Kubernetes client, nor what it would bring along (decision 63)."""
    names = {package.name for package in distributions(lambda_build / "DependenciesLayer" / "python")}
    assert names == required(DEFAULT)
    assert not names & {"kubernetes", "aiohttp", "requests", "requests-oauthlib", "websocket-client", "boto3"}


def test_the_layer_of_the_package_has_no_command_line(lambda_build: Path) -> None:
    """Nor bytecode where there was no Python to write it."""
    package = lambda_build / "SharedLayer" / "python" / "joinery"
    assert (package / "bootstrap.py").exists()
    assert {path.name for path in package.parent.iterdir()} == {"joinery"}
    assert not list(lambda_build.rglob("*.pyc"))


def test_the_bill_of_materials_is_valid(document: dict[str, Any]) -> None:
    """By the schema of CycloneDX 1.6."""
    # Imported here, because it takes two seconds: one worker pays for that, and not each one that collects tests.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document)) is None


def test_the_bill_names_what_is_in_the_layer(document: dict[str, Any], lambda_build: Path) -> None:
    """Each package with version, licence and the hash that the lock holds its wheel to."""
    installed = distributions(lambda_build / "DependenciesLayer" / "python")
    components = {component["purl"]: component for component in document["components"]}
    assert set(components) == {package.reference for package in installed}
    hashes = set(re.findall(r"sha256:([0-9a-f]{64})", layers.REQUIREMENTS.read_text()))
    assert {component["hashes"][0]["content"] for component in components.values()} <= hashes
    assert all(component["licenses"][0]["expression"] for component in components.values())
    assert document["metadata"]["component"]["version"] == joinery.__version__


def test_the_bill_names_what_wheels_bundle(document: dict[str, Any], lambda_build: Path) -> None:
    """numpy's BLAS is a file with a digest; the crates of pydantic-core are those that its wheel lists."""
    parts = {c["name"]: [part["name"] for part in c["components"]] for c in document["components"]}
    libraries = sorted(path.name for path in (lambda_build / "DependenciesLayer" / "python" / "numpy.libs").iterdir())
    assert parts["numpy"] == libraries != []
    assert "pyo3" in parts["pydantic-core"]


def test_the_bill_says_who_needs_whom(document: dict[str, Any]) -> None:
    """So that an advisory about one can be followed to the others."""
    needs = {entry["ref"].partition("@")[0]: entry["dependsOn"] for entry in document["dependencies"]}
    names = [reference.partition("@")[0] for reference in needs["pkg:pypi/pydantic"]]
    assert names == [
        f"pkg:pypi/{n}" for n in ("annotated-types", "pydantic-core", "typing-extensions", "typing-inspection")
    ]
    assert needs["pkg:pypi/highspy"] == [c["purl"] for c in document["components"] if c["name"] == "numpy"]


def test_the_notices_have_the_licence_of_each_package(lambda_build: Path) -> None:
    """Whole texts, as their licences ask for."""
    with zipfile.ZipFile(lambda_build / "DependenciesLayer.zip") as layer:
        text = layer.read(NOTICES).decode()
    for package in distributions(lambda_build / "DependenciesLayer" / "python"):
        assert f"\n{package.name} {package.version} (" in text
        assert all(path.read_text("utf-8", errors="replace").strip() in text for path in package.texts)


def test_a_package_without_a_licence_is_not_shipped(tmp_path: Path) -> None:
    """A person looks why before anybody gets it."""
    info = tmp_path / "odd-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: odd\nVersion: 1.0\nLicense: MIT\n")
    with pytest.raises(ValueError, match="odd 1.0 brings no licence along"):
        notices(tmp_path)


def test_a_package_that_the_lock_does_not_know_is_not_shipped(tmp_path: Path) -> None:
    """What is in the layer came from the lock, or the bill cannot be written."""
    info = tmp_path / "typing_extensions-4.16.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: typing_extensions\nVersion: 4.16.0\nLicense: PSF-2.0\n")
    (info / "WHEEL").write_text("Tag: cp39-cp39-win32\n")
    with pytest.raises(ValueError, match="the lock has no wheel for cp39-cp39-win32"):
        bill(tmp_path, DEFAULT, "1", lock=LOCK)


def test_the_layer_ships_what_the_installer_applies(lambda_build: Path) -> None:
    """Manifests and prices lie in the package, so that whoever builds the layer ships them."""
    wanted = [
        path for folder in ("decisions/installation/manifests", "gateways/ec2/catalog/data") for path in _data(folder)
    ]
    with zipfile.ZipFile(lambda_build / "SharedLayer.zip") as layer:
        shipped = set(layer.namelist())

    assert len(wanted) > 6
    assert {f"python/{path.relative_to(ROOT / 'shared')}" for path in wanted} <= shipped


def _data(folder: str) -> list[Path]:
    files = (ROOT / "shared" / "joinery" / folder).rglob("*")
    return [path for path in files if path.suffix in (".yaml", ".json")]
