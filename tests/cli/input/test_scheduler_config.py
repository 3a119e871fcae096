"""``--scheduler-config``: what a scheduler spreads by itself."""

import json
import re
from typing import Any

import pytest

from joinery.objects.default_spread import DefaultSpread
from joinery.objects.errors import ConfigurationError
from joinery_cli.reading.scheduler_config import read_default_spreads
from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Run, Write

ZONE = "topology.kubernetes.io/zone"
SPREAD: dict[str, Any] = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}


def _config(*constraints: Any, name: str = "default-scheduler", **args: Any) -> dict[str, Any]:
    given = {"defaultingType": "List", "defaultConstraints": list(constraints), **args}
    others = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    profile = {"schedulerName": name, "pluginConfig": [others, {"name": "PodTopologySpread", "args": given}]}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": True},
        "profiles": [{"schedulerName": "plain"}, profile],
    }


WEB: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]},
        },
    },
}


def _nodes(run: Run, write: Write, *options: str, deployment: Any = WEB) -> int:
    """To how many new nodes a plan puts the pods of a Deployment."""
    files = ("-f", write("cluster.yaml", CLUSTER), "-f", write("web.json", deployment))
    outcome = run("plan", "--now", NOW, "--catalog", str(SAMPLE), *files, *options, "-o", "json")
    assert outcome.status == 0, outcome.err
    return sum(any("web" in pod for pod in launch["pods"]) for launch in json.loads(outcome.out)["launch"])


def test_pods_that_ask_for_nothing_are_spread_as_the_scheduler_does(run: Run, write: Write) -> None:
    """Without it one node takes all three, and two of them would wait for ever."""
    config = write("scheduler.json", _config(SPREAD))
    assert _nodes(run, write) == 1
    assert _nodes(run, write, "--scheduler-config", config) == 3


def test_the_stack_s_setting_counts_where_no_file_is_given(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``JOINERY_SETTINGS`` is what the functions read."""
    monkeypatch.setenv("JOINERY_SETTINGS", f"DefaultSpread={ZONE} 1 DoNotSchedule")
    assert _nodes(run, write) == 3
    empty = write("scheduler.json", _config(defaultingType="System"))
    assert _nodes(run, write, "--scheduler-config", empty) == 1


def test_a_profile_is_for_its_own_pods(run: Run, write: Write) -> None:
    """Those of the default scheduler are none of its business."""
    config = write("scheduler.json", _config(SPREAD, name="batch"))
    template = WEB["spec"]["template"]
    named = {**template, "spec": {**template["spec"], "schedulerName": "batch"}}
    batch = {**WEB, "spec": {**WEB["spec"], "template": named}}
    assert _nodes(run, write, "--scheduler-config", config) == 1
    assert _nodes(run, write, "--scheduler-config", config, deployment=batch) == 3


def test_the_built_in_constraints_are_nothing_to_buy_for(write: Write) -> None:
    """The scheduler prefers nodes by them, and waits for none."""
    assert read_default_spreads(write("a.json", _config(defaultingType="System"))) == ()
    assert (
        read_default_spreads(
            write("b.yaml", "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
        )
        == ()
    )


def test_all_fields_of_a_constraint_are_read(write: Write) -> None:
    """They are those of a pod's, without the selector."""
    more = {"minDomains": 3, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}
    assert read_default_spreads(write("a.json", _config({**SPREAD, **more}, name="x"))) == (
        DefaultSpread(ZONE, 1, "DoNotSchedule", "x", 3, "Ignore", "Honor"),
    )


def test_the_config_map_of_a_second_scheduler_is_read(write: Write) -> None:
    """As kubectl prints it."""
    data = {"config.yaml": json.dumps(_config(SPREAD)), "note": "of ours"}
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scheduler"}, "data": data}
    assert [one.topology_key for one in read_default_spreads(write("a.json", document))] == [ZONE]


def test_karpenter_s_document_is_for_all_schedulers(write: Write) -> None:
    """That of its SCHEDULER_CONFIG."""
    document = {"podTopologySpread": {"defaultConstraints": [SPREAD]}}
    assert read_default_spreads(write("a.json", document)) == (DefaultSpread(ZONE, 1),)


def test_what_a_file_is_called_says_nothing_of_its_content(write: Write) -> None:
    """A scheduler's own constraints count with ``defaultingType: List`` alone, also in a file of Karpenter's word."""
    document = _config(SPREAD, defaultingType="System")
    del document["profiles"][1]["pluginConfig"][1]["args"]["defaultingType"]
    with pytest.raises(ConfigurationError, match="must be empty without defaultingType: List"):
        read_default_spreads(write("podTopologySpread.json", document))


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, "is no KubeSchedulerConfiguration"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}, "must hold one KubeScheduler.*, not 0"),
        (_config({**SPREAD, "labelSelector": {}}), r"defaultConstraints\[0\].labelSelector: has no place here"),
        (_config({**SPREAD, "maxSkew": 0}), r"defaultConstraints\[0\].maxSkew: must be a whole number"),
        (_config({**SPREAD, "whenUnsatisfiable": "Maybe"}), "whenUnsatisfiable: must be one of DoNotSchedule"),
        (_config({**SPREAD, "topologyKey": ""}), "'' is no topology key"),
        (_config({**SPREAD, "nodeTaintsPolicy": "honor"}), "nodeTaintsPolicy: .*is it Honor"),
        (_config(SPREAD, SPREAD), f"{ZONE} is there twice"),
        (_config(SPREAD, defaultingType="System"), "must be empty without defaultingType: List"),
        (_config(defaultingType="Some"), "defaultingType: must be one of List, System"),
        ({**_config(), "profiles": {}}, "profiles: must be a list"),
    ],
)  # fmt: skip
def test_what_a_scheduler_would_not_start_with_is_named(run: Run, write: Write, document: Any, what: str) -> None:
    """With file and field."""
    config = write("scheduler.json", document)
    outcome = run("plan", "-f", write("cluster.yaml", CLUSTER), "--scheduler-config", config)
    assert outcome.status == 2
    assert re.search(what, " ".join(outcome.err.split())), outcome.err
