"""What ``-f`` takes: files, folders as ``kubectl apply -f`` reads them, and several files after one ``-f``."""

from pathlib import Path

import pytest

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document

PLAN = ("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE))


@pytest.fixture
def folder(tmp_path: Path, write: Write) -> Path:
    """A folder with a cluster in YAML, a pod in JSON, a note, and a folder with another pod inside of it."""
    (tmp_path / "shop" / "jobs").mkdir(parents=True)
    write("shop/cluster.yml", CLUSTER)
    write("shop/web.json", pod_document())
    write("shop/README.md", "not an object")
    write("shop/jobs/report.yaml", pod_document("report"))
    return tmp_path / "shop"


def _planned(run: Run, *arguments: str) -> list[str]:
    outcome = run(*PLAN, *arguments)
    assert outcome.status == 0, outcome.err
    return sorted(pod for launch in outcome.document["launch"] for pod in launch["pods"])


def test_a_folder_is_read_as_kubectl_apply_reads_it(run: Run, folder: Path) -> None:
    """Its .yaml, .yml and .json files; what else lies there is none of a plan's business."""
    assert _planned(run, "-f", str(folder)) == ["default/web"]


def test_a_folder_is_read_to_its_ends_on_request(run: Run, folder: Path) -> None:
    """``-R``, as for kubectl; without it folders inside are left alone."""
    assert _planned(run, "-R", "-f", str(folder)) == ["default/report", "default/web"]


def test_several_files_may_follow_one_option(run: Run, folder: Path) -> None:
    """``-f *.yaml`` becomes that in a shell, and whoever forgets the option means the same."""
    files = [str(folder / "cluster.yml"), str(folder / "web.json"), str(folder / "jobs" / "report.yaml")]
    assert _planned(run, "-f", *files) == _planned(run, *files) == ["default/report", "default/web"]


def test_the_catalogue_is_shown_for_the_class_of_a_folder(run: Run, folder: Path) -> None:
    """Every command that takes files takes them in the same way."""
    for given in (("-f", str(folder)), (str(folder),)):
        assert run("catalog", "--catalog", str(SAMPLE), "--node-class", "default", *given).status == 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "no .yaml, .yml or .json file in it"),
        ({"jobs/report.yaml": pod_document()}, "no .yaml, .yml or .json file in it; -R looks into its folders too"),
        ({"Chart.yaml": "name: shop", "values.yaml": ""}, "is a Helm chart: run helm template first"),
        (
            {"kustomization.yaml": "resources: [web.yaml]", "web.yaml": pod_document()},
            "is kustomize's: run kubectl kustomize first",
        ),
    ],
)
def test_a_folder_that_holds_no_objects_yet_is_told_what_to_do(
    run: Run, tmp_path: Path, write: Write, content: dict[str, object], problem: str
) -> None:
    """Charts and overlays are not what a cluster gets."""
    (tmp_path / "folder" / "jobs").mkdir(parents=True)
    for name, document in content.items():
        write(f"folder/{name}", document)
    outcome = run(*PLAN, "-f", str(tmp_path / "folder"))
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == f"joinery: {tmp_path / 'folder'}: {problem}\n"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (
            "kustomization.yaml",
            "resources: [web.yaml]\nnamePrefix: dev-\n",
            "is kustomize's: run kubectl kustomize first",
        ),
        ("Kustomization", "resources: [web.yaml]\n", "is kustomize's: run kubectl kustomize first"),
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.1.0\n", "is a Helm chart: run helm template first"),
    ],
)
def test_a_file_that_makes_objects_is_told_what_to_do_as_its_folder_is(
    run: Run, write: Write, name: str, content: str, problem: str
) -> None:
    """``-f *.yaml`` names it beside the others; kustomize itself wants neither kind nor version in it."""
    path = write(name, content)
    outcome = run(*PLAN, "-f", path)
    assert (outcome.status, outcome.out, outcome.err) == (2, "", f"joinery: {path}: {problem}\n")


def test_an_address_is_no_file(run: Run) -> None:
    """Nothing is fetched from anywhere; the line says what fetches it."""
    outcome = run(*PLAN, "-f", "https://example.com/pod.yaml")
    assert outcome.err == (
        "joinery: https://example.com/pod.yaml: is an address, no file: curl -L https://example.com/pod.yaml | joinery "
        "plan -f -\n"
    )


def test_a_kustomization_is_told_what_to_run(run: Run, write: Write) -> None:
    """It takes the place of objects that its patches would change."""
    path = write(
        "overlay.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [web.yaml]\n"
    )
    assert "Kustomization: kind: is kustomize's" in run(*PLAN, "-f", path).err
