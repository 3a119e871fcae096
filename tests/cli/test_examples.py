"""The files of examples/: each shows what its first lines promise."""

import re
from collections import Counter
from functools import cache
from typing import Any

import msgspec
import pytest
import yaml

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW, outcome_of
from tools.template import ROOT

CONSOLIDATION = "consolidation.yaml"
"""The one of nodes that go; all others are of pods that wait."""
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.yaml") if path.name != CONSOLIDATION)


#: Files of docs/tasks.md, each beside the NodePool for most things.
NODE_POOL = "nodepool.yaml"
TASKS = sorted(path.name for path in (ROOT / "examples" / "tasks").glob("*.yaml") if path.name != NODE_POOL)


@cache
def plan(name: str) -> Any:
    """The plan of an example with the sample catalogue. A task's is planned beside its NodePool."""
    names = [f"tasks/{NODE_POOL}", name] if name.startswith("tasks/") else [name]
    files = [part for one in names for part in ("-f", str(ROOT / "examples" / one))]
    done = outcome_of(["plan", *files, "--catalog", str(SAMPLE), "--now", NOW, "-o", "json"])
    assert done.status == 0, done.err
    return msgspec.json.decode(done.out)


def homes(name: str) -> dict[str, list[Any]]:
    """The launches of each workload, by its pods' names without their last part."""
    placed: dict[str, list[Any]] = {}
    for launch in plan(name)["launch"]:
        for pod in launch["pods"]:
            placed.setdefault(pod.partition("/")[2].rpartition("-")[0], []).append(launch)
    return placed


def pools(launches: list[Any]) -> set[str]:
    """The NodePools of launches."""
    return {launch["nodePool"] for launch in launches}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_places_every_pod_but_the_one_that_is_meant_to_wait(name: str) -> None:
    """The giant of the first example fits nowhere; nothing else waits."""
    waiting = [one["pod"] for one in plan(name)["unschedulable"]]
    assert waiting == (["default/giant"] if name == "cluster.yaml" else [])
    assert plan(name)["launch"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_opens_with_the_command_that_plans_it(name: str) -> None:
    """Its first line is all that a newcomer needs."""
    first = (ROOT / "examples" / name).read_text().partition("\n")[0]
    assert f"joinery plan -f examples/{name}" in first


def test_spot_is_bought_up_to_its_limit_and_the_rest_on_demand() -> None:
    """The pool of spot nodes takes 16 CPUs; what must not be interrupted is never there."""
    placed = homes("spot-with-fallback.yaml")
    assert pools(placed["render"]) == {"spot", "on-demand"}
    assert pools(placed["checkout"]) == {"on-demand"}


def test_gpu_nodes_are_for_those_who_ask_for_gpus() -> None:
    """One GPU a pod, the training on the kind that it names; the web server is elsewhere."""
    placed = homes("gpu.yaml")
    assert {launch["offering"]["instanceType"].partition(".")[0] for launch in placed["train"]} == {"g5"}
    assert pools(placed["inference"]) == {"gpu"}
    assert pools(placed["web"]) == {"default"}


def test_room_is_kept_for_a_third_more_of_the_shop() -> None:
    """And for builds only while people work: at the moment of this plan it is night."""
    assert {one["buffer"]: one["chunks"] for one in plan("headroom.yaml")["cost"]["headroom"]} == {"shop/web": 2}


def test_a_gang_is_bought_for_as_a_whole() -> None:
    """A node for each of four workers, all in one zone."""
    (nodes,) = homes("gang.yaml").values()
    assert len(nodes) == 4
    assert len({launch["offering"]["zone"] for launch in nodes}) == 1


def test_claimed_devices_are_bought() -> None:
    """Both workers on one node of four GPUs, a GPU for each notebook, and the card that the NodeOverlay speaks of."""
    placed = homes("devices.yaml")
    assert {name: len(launches) for name, launches in placed.items()} == {"train": 2, "notebook": 3, "encoder": 1}
    assert placed["train"][0] == placed["train"][1]
    assert {launch["offering"]["instanceType"] for launch in placed["encoder"]} == {"f2.6xlarge"}


def test_the_heaviest_pool_that_suits_a_pod_is_used() -> None:
    """Graviton first, amd64 where the image asks for it, the data team's own pool for nobody else."""
    placed = homes("weighted-pools.yaml")
    assert {name: pools(launches) for name, launches in placed.items()} == {
        "api": {"graviton"},
        "legacy-billing": {"x86"},
        "warehouse": {"data-team"},
    }


def test_a_database_follows_its_volume_and_spreads_over_zones() -> None:
    """The pod that ran before goes where its volume is; the three are in three zones,
    with the DaemonSet's share on each node.
    """
    launches = homes("stateful.yaml")["postgres"]
    zones = {pod: launch["offering"]["zone"] for launch in launches for pod in launch["pods"]}
    assert zones["default/postgres-0"] == "us-east-1b"
    assert len(set(zones.values())) == 3
    assert all(launch["requests"]["pods"] == "2" for launch in launches)


def test_the_existing_node_is_filled_before_new_ones_come_and_zones_stay_even() -> None:
    """Three of nine front ends in each zone, the existing node among them."""
    document = plan("spread.yaml")
    zones = Counter(
        launch["offering"]["zone"] for launch in document["launch"] for pod in launch["pods"] if "front" in pod
    )
    existing = [pod for one in document["existing"] for pod in one["pods"]]
    zones["us-east-1a"] += sum("front" in pod for pod in existing)
    assert existing
    assert set(zones.values()) == {3}


def test_legacy_objects_are_planned_as_what_they_are_in_v1() -> None:
    """The Provisioner's name is the NodePool's, and a selector by the old label is followed."""
    assert pools(homes("legacy.yaml")["inflate"]) == {"default"}


def test_nodes_that_do_not_earn_their_price_go() -> None:
    """The empty one, the one whose pods fit elsewhere, and the one that is too large; the fifth is held by its pod."""
    file = ROOT / "examples" / CONSOLIDATION
    assert f"joinery disrupt -f examples/{CONSOLIDATION}" in file.read_text().partition("\n")[0]
    done = outcome_of(["disrupt", "-f", str(file), "--catalog", str(SAMPLE), "-o", "json"])
    assert done.status == 0, done.err
    document = msgspec.json.decode(done.out)
    # The claims of the empty node, the web servers' and the report's.
    assert {claim for command in document["commands"] for claim in command["retire"]} == {
        "default-1", "default-2", "default-4",
    }  # fmt: skip
    (launch,) = [launch for command in document["commands"] for launch in command["launch"]]
    assert (launch["offering"]["instanceType"], launch["pods"]) == ("m7a.xlarge", ["shop/report"])
    assert ("default-5", "Pod") in {(held["nodeClaim"], held["code"]) for held in document["held"]}
    assert document["cost"]["after"] < 0.5 * document["cost"]["before"]


@pytest.mark.parametrize("name", TASKS)
def test_a_task_shows_what_its_file_has_and_all_its_pods_get_nodes(name: str) -> None:
    """The lines of the page are lines of the file, however they are written there."""
    page = (ROOT / "docs" / "tasks.md").read_text()
    assert page.count(f"(../examples/tasks/{name})") == 1
    shown = re.search(
        rf"```yaml\n((?:(?!```).)*)```\n\n\[The whole file\]\(../examples/tasks/{name}\)", page, re.DOTALL
    )
    assert shown
    documents = list(yaml.safe_load_all((ROOT / "examples" / "tasks" / name).read_text()))
    assert all(any(_has(one, {key: value}) for one in documents) for key, value in yaml.safe_load(shown[1]).items())
    assert plan(f"tasks/{name}")["unschedulable"] == []


def _has(document: Any, part: Any) -> bool:
    """Whether a document has a part of these keys, with these values among its own, at any depth."""
    if _fits(document, part):
        return True
    below = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    return any(_has(one, part) for one in below)


def _fits(document: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(document, dict) and all(_fits(document.get(key), value) for key, value in part.items())
    if isinstance(part, list):
        return isinstance(document, list) and all(any(_fits(one, each) for one in document) for each in part)
    return bool(document == part)


def test_tasks_are_planned_as_their_headings_say() -> None:
    """On spot, off spot, half of it, over zones, one a node, and on nodes of their own."""

    def each(name: str, key: str) -> Counter[str]:
        launches = plan(f"tasks/{name}.yaml")["launch"]
        return Counter(
            {
                value: sum(len(one["pods"]) for one in launches if one["offering"][key] == value)
                for value in {one["offering"][key] for one in launches}
            }
        )

    assert set(each("spot", "capacityType")) == set(each("many-types", "capacityType")) == {"spot"}
    assert set(each("on-demand", "capacityType")) == set(each("stays", "capacityType")) == {"on-demand"}
    assert each("half-on-spot", "capacityType") == {"spot": 4, "on-demand": 4}
    # One of the seven others takes room that is left on demand.
    assert each("on-demand-share", "capacityType") == {"spot": 6, "on-demand": 6}
    assert each("on-demand-nodes", "capacityType") == {"spot": 2, "on-demand": 4}
    zones = each("zones", "zone")
    assert len(zones) >= 3
    assert max(zones.values()) - min(zones.values()) <= 1
    assert [len(one["pods"]) for one in plan("tasks/apart.yaml")["launch"]] == [1, 1, 1]
    assert {one["nodePool"] for one in plan("tasks/team.yaml")["launch"]} == {"payments"}
    assert {one["nodePool"] for one in plan("tasks/gpu.yaml")["launch"]} == {"gpu"}
    assert all(len(one["instanceTypes"]) >= 10 for one in plan("tasks/many-types.yaml")["launch"])
    assert all("g." in kind or "gd." in kind for kind in each("arm64", "instanceType"))
    assert all("d" in kind.partition(".")[0] for kind in each("local-disk", "instanceType"))
