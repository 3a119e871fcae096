"""Scenario files: what they may say, and what is said of bad ones."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
import yaml

from joinery.objects.errors import ConfigurationError
from joinery_cli.notices import RefusedFilesError
from simulator.story.commands import WHICH
from simulator.story.leaks import causes, leaks
from simulator.story.scenario import duration, find, load
from simulator.story.show import run
from simulator.story.simulation import Simulation

OURS = sorted((Path(__file__).parents[2] / "simulator" / "scenarios").glob("*.yaml"))


def test_a_name_that_is_none_of_ours_is_told_which_there_are() -> None:
    """Whoever mistypes it sees the list."""
    names = ", ".join(path.stem for path in OURS)
    with pytest.raises(ConfigurationError, match=f"spot-strom: no such file, nor is it one of ours: {names}"):
        find(Path("spot-strom"))
    assert f" {names}." in WHICH


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_every_scenario_of_ours_can_be_set_up(path: Path) -> None:
    """It is named after its file, and everything in it is known to the simulator."""
    scenario = load(path)
    assert scenario.name == path.stem
    assert Simulation(scenario).world.cluster.node_pools


def test_a_scenario_of_ours_is_found_by_its_name() -> None:
    """``joinery simulate spot-storm`` works from anywhere."""
    path = find(Path("spot-storm"))
    assert path is not None
    assert path.name == "spot-storm.yaml"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: Scenario", "metadata: is missing"),
        ("metadata: {name: x}\nspec: {title: t}", "spec.length: is missing"),
        ("metadata: {name: x}\nspec: {title: t, length: 5m, seed: a}", "spec.seed: must be a whole number, is 'a'"),
        ("metadata: {name: x}\nspec: {title: t, length: 5m, colour: red}", "colour"),
        ("metadata: {name: x}\nspec: {title: t, length: soon}", "'soon' is not a duration"),
        ("{", "yaml"),
        ("", "one document, not 0"),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}",
            "has manifests, and a scenario has them in its",
        ),
        ("apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pod", "has manifests, and a scenario has them in its"),
        ("[" * 5000, "nested more than 200 deep"),
        ("metadata: {name: x, size: " + "9" * 5000 + "}\nspec: {title: t, length: x}", "'x' is not a duration"),
    ],
)
def test_a_bad_scenario_is_one_line_that_names_the_file(tmp_path: Path, text: str, problem: str) -> None:
    """And what is wrong with it."""
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=problem) as error:
        load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("place", ["objects: [{}]", "happenings: [{{at: 5s, apply: [{}]}}]"])
@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        ("{kind: Job, metadata: {name: pi}}", "Job pi: the simulation knows no such kind; it knows .*Deployment.*Pod"),
        ("{metadata: {name: pi}}", "a manifest has no kind"),
        (
            "{kind: NodePool, metadata: {name: a}, spec: {disruption: {consolidationPolicy: WhenUnderutilized}}}",
            "NodePool a: .*spec.disruption.consolidationPolicy: .*WhenUnderutilized",
        ),
        ("{kind: Deployment, metadata: {name: web}}", "Deployment web: spec.template.spec.containers: a pod needs"),
        ("{kind: Pod}", "Pod: metadata.name is missing"),
        ("{kind: List, items: [{kind: Job}]}", "Job: the simulation knows no such kind"),
        ("{kind: List, items: [web]}", "a manifest is not a map"),
        (
            "{kind: NodePool, apiVersion: karpenter.sh/v2, metadata: {name: a}}",
            "NodePool a: the simulation knows no NodePool of karpenter.sh/v2; write it in karpenter.sh/v1",
        ),
        (
            "{kind: NodePool, apiVersion: karpenter.sh/v1beta1, metadata: {name: a}}",
            "NodePool a: spec.template.spec.nodeClassRef.name: is missing",
        ),
        ("{kind: Pod, metadata: {name: web}, spec: {containers: web}}", "Pod web: .*spec.containers"),
        ("{kind: Pod, metadata: {name: web}}", "Pod web: spec.containers: a pod needs a container"),
        (
            "{kind: Deployment, metadata: {name: b}, spec: {replica: 2, template: {spec: {containers: [{name: a}]}}}}",
            "Deployment b: spec.replica: no such field; is it replicas?",
        ),
        (
            "{kind: StatefulSet, metadata: {name: db}, spec: {template: {spec: {containers: [{name: a, resources: "
            "{requests: {cpus: 1}}}]}}}}",
            "StatefulSet db: .*cpus: no such resource",
        ),
    ],
)
def test_a_manifest_that_the_simulation_cannot_take_is_named(
    tmp_path: Path, place: str, manifest: str, problem: str
) -> None:
    """Whoever writes a scenario begins with manifests that a cluster takes."""
    path = tmp_path / "mine.yaml"
    path.write_text("{metadata: {name: x}, spec: {title: t, length: 5m, " + place.format(manifest) + "}}")
    with pytest.raises(ConfigurationError, match=problem) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


POD = "kind: Pod, metadata: {name: web}, spec: {containers: [{name: web}]}"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("length: 2m, happenings: [{at: 9m}]", "happenings: 9m is after the end, 2m"),
        ("length: 2m, market: {families: [m7a, x99]}", "market: there is no family x99"),
        ("length: 2m, market: {zones: [eu-west-1a]}", "market: there is no zone eu-west-1a in us-east-1"),
        ("length: 2m, objects: [{" + POD + "}, {" + POD + "}]", "Pod web: is there 2 times"),
        ("length: 2m, objects: [{" + POD + "}], happenings: [{at: 5s, apply: [{" + POD + "}]}]", "Pod web: is there 2"),
    ],
)
def test_what_would_not_happen_is_named(tmp_path: Path, spec: str, problem: str) -> None:
    """It was passed over in silence."""
    path = tmp_path / "mine.yaml"
    path.write_text("{metadata: {name: x}, spec: {title: t, " + spec + "}}")
    with pytest.raises(ConfigurationError, match=f"^{path}: {problem}"):
        load(path)


def test_all_that_is_wrong_with_manifests_is_said_at_once(tmp_path: Path) -> None:
    """As by ``joinery plan``."""
    path = tmp_path / "mine.yaml"
    pods = "[{kind: Pod, metadata: {name: a}, spec: {contaners: []}}, {kind: Pod, metadata: {name: B}, spec: {}}]"
    path.write_text("{metadata: {name: x}, spec: {title: t, length: 1m, objects: " + pods + "}}")
    with pytest.raises(RefusedFilesError) as refused:
        load(path)
    first, *others = refused.value.lines()
    assert first == f"{path}: Pod a: spec.contaners: no such field; is it containers?"
    assert [line.partition(":")[0] for line in others] == [str(path)] * len(others)
    assert any("Pod B: metadata.name: 'B' is no name" in line for line in others)


def test_a_field_that_means_nothing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As by ``joinery plan``."""
    path = tmp_path / "mine.yaml"
    path.write_text("{metadata: {name: x}, spec: {title: t, length: 1m, objects: [{" + POD + ", colour: red}]}}")
    load(path)
    assert capsys.readouterr().err == f"warning: {path}: Pod web: colour: no such field; it is ignored\n"


def test_pods_of_one_generated_name_are_two(tmp_path: Path) -> None:
    """``kubectl create`` makes a name for each; a list stands for what is in it."""
    pod = "{kind: Pod, metadata: {generateName: web-}, spec: {containers: [{name: web}]}}"
    path = tmp_path / "mine.yaml"
    objects = f"[{{kind: List, items: [{pod}, {pod}]}}]"
    path.write_text("{metadata: {name: x}, spec: {title: t, length: 1m, objects: " + objects + "}}")
    pods = Simulation(load(path)).world.cluster.pods
    assert len(pods) == 2
    assert all(name.startswith("default/web-") for name in pods)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"node_pool": "nobody"}, "there is no NodePool nobody"),
        ({"instance_type": "m99.large"}, "the market has no instance type m99.large"),
        ({"zone": "eu-west-1a"}, "m6a.large is not sold on-demand in eu-west-1a"),
    ],
)
def test_a_running_node_that_nobody_could_have_launched_is_named(changes: dict[str, str], problem: str) -> None:
    """A slip in a name is a line, as everywhere."""
    scenario = load(find(Path("surge")))
    running = msgspec.structs.replace(scenario.spec.running[0], **changes)
    spec = msgspec.structs.replace(scenario.spec, running=(running,))
    with pytest.raises(ConfigurationError, match=f"^running: {problem}$"):
        Simulation(msgspec.structs.replace(scenario, spec=spec))


NOT_READY = "EC2NodeClass default is not Ready: subnetSelectorTerms select no subnet; those of the simulation have the "


def _elsewhere(tmp_path: Path, *, running: bool) -> Path:
    """A scenario of somebody who wrote their own cluster's tag."""
    ours = find(Path("surge"))
    assert ours is not None
    document = yaml.safe_load(ours.read_text().replace("discovery: simulated", "discovery: blue"))
    document["spec"] |= {"length": "1m"} | ({} if running else {"running": []})
    path = tmp_path / "blue.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_pods_that_wait_for_a_node_class_are_told_what_it_lacks(tmp_path: Path) -> None:
    """The subnets of the simulation are found by one tag, which nobody can guess."""
    simulation = Simulation(load(_elsewhere(tmp_path, running=False)))
    run(simulation)
    (waits,) = leaks(simulation)
    assert waits.endswith("has no node")
    assert causes(simulation) == (f"{NOT_READY}tag karpenter.sh/discovery: simulated",)


def test_pods_that_wait_for_no_other_cause_say_what_they_were_told(tmp_path: Path) -> None:
    """A NodePool of Frankfurt, in a simulation of Virginia."""
    ours = find(Path("surge"))
    assert ours is not None
    zone = "- {key: topology.kubernetes.io/zone, operator: In, values: [eu-central-1a]}"
    document = yaml.safe_load(ours.read_text().replace("requirements:\n", f"requirements:\n              {zone}\n"))
    document["spec"] |= {"length": "1m", "running": []}
    path = tmp_path / "frankfurt.yaml"
    path.write_text(yaml.safe_dump(document))
    simulation = Simulation(load(path))
    run(simulation)
    (waits,), (cause,) = leaks(simulation), causes(simulation)
    assert waits.endswith("has no node")
    assert "topology.kubernetes.io/zone In [eu-central-1a]; there is us-east-1a" in cause


def test_a_running_node_of_a_class_that_is_not_ready_is_told_why(tmp_path: Path) -> None:
    """It could not have been launched either."""
    with pytest.raises(ConfigurationError, match=f"^running: {NOT_READY}"):
        Simulation(load(_elsewhere(tmp_path, running=True)))


def test_a_scenario_that_is_not_there_is_named() -> None:
    """As a user's mistake, not as a traceback."""
    with pytest.raises(ConfigurationError, match="nowhere.yaml"):
        load(find(Path("nowhere.yaml")))


def test_durations_are_written_as_kubernetes_writes_them() -> None:
    """Hours, minutes and seconds."""
    assert duration("719h50m") == timedelta(hours=719, minutes=50)
    assert duration("1.5s") == timedelta(seconds=1.5)
