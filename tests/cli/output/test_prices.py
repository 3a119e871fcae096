"""Whose prices a plan has: region, source and date are in every output,
and Frankfurt does not silently get Virginia's.
"""

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from joinery_cli.regions import is_zone, region_in, region_of_zone_id
from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document

PLAN = ("plan", "--now", NOW)
JSON = (*PLAN, "-o", "json")
FRANKFURT = "eu-central-1"
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "ip-10-0-0-1",
        "labels": {"topology.kubernetes.io/region": FRANKFURT, "topology.kubernetes.io/zone": "eu-central-1a"},
    },
    "spec": {"providerID": "aws:///eu-central-1a/i-0123"},
}


def _files(*objects: dict[str, Any]) -> dict[str, Any]:
    items = [one for one in yaml.safe_load_all(CLUSTER) if one]
    return {"apiVersion": "v1", "kind": "List", "items": [*items, *objects]}


def _in_zone(zone: str) -> dict[str, Any]:
    """The NodePool of the files, for one zone alone."""
    pool = yaml.safe_load(CLUSTER.split("---")[1])
    requirements = pool["spec"]["template"]["spec"]["requirements"]
    requirements.append({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]})
    return pool  # type: ignore[no-any-return]


def test_every_output_says_whose_prices_it_has(run: Run, write: Write) -> None:
    """Region, source and date, as data, as a line, and on the page; the sample is warned of."""
    files = write("files.json", _files(pod_document()))
    outcome = run(*JSON, "-f", files)
    assert outcome.document["catalogue"] == {
        "region": "us-east-1",
        "source": "sample catalogue",
        "priced": "2026-07",
        "clusterRegion": None,
        "estimate": False,
    }
    assert (
        "warning: SAMPLE PRICES: the catalogue that comes with the command line, of us-east-1 and 2026-07"
        in outcome.err
    )
    line = "Prices: us-east-1, sample catalogue, of 2026-07"
    assert line in run(*PLAN, "-f", files).out
    assert line in run(*PLAN, "-f", files, "-o", "html").out
    assert line in run("catalog").out


def test_a_cluster_in_another_region_gets_an_estimate_and_is_told(run: Run, write: Write) -> None:
    """A newcomer's Deployment, Node and NodePool of Frankfurt: a plan in its zones, marked wherever a price is."""
    files = write("files.json", _files(NODE, _in_zone("eu-central-1a"), pod_document()))
    outcome = run(*JSON, "-f", files)
    assert [launch["offering"]["zone"] for launch in outcome.document["launch"]] == ["eu-central-1a"]
    assert outcome.document["unschedulable"] == []
    said = outcome.document["catalogue"]
    assert (said["region"], said["clusterRegion"], said["estimate"]) == ("us-east-1", FRANKFURT, True)
    assert (
        "warning: PRICES ARE AN ESTIMATE: the cluster is in eu-central-1, the catalogue is of us-east-1" in outcome.err
    )
    assert outcome.err.count("SAMPLE") == 1
    assert "the catalogue is of us-east-1 (the SAMPLE that comes with the command line, of 2026-07)" in outcome.err
    assert "joinery catalog --save prices.json.gz --region eu-central-1, then --catalog prices.json.gz" in outcome.err
    assert "ESTIMATE: the cluster is in eu-central-1" in run(*PLAN, "-f", files).out
    assert "ESTIMATE: the cluster is in eu-central-1" in run(*PLAN, "-f", files, "-o", "html").out
    assert {
        zone
        for entry in run("catalog", "-f", files, "-o", "json").document
        for zone in _listed(entry, "topology.kubernetes.io/zone")
    } == {
        "eu-central-1a",
        "eu-central-1b",
        "eu-central-1c",
    }


def _listed(entry: Any, key: str) -> list[str]:
    value = entry["labels"].get(key, [])
    return [value] if isinstance(value, str) else value


def _node(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", **metadata}}


CLASS = yaml.safe_load(CLUSTER.split("---")[0])


@pytest.mark.parametrize(
    "told",
    [
        _node(labels={"topology.kubernetes.io/region": FRANKFURT}),
        _node(labels={"failure-domain.beta.kubernetes.io/zone": "eu-central-1b"}),
        {**_node(), "spec": {"providerID": "aws:///eu-central-1c/i-1"}},
        {**_node(), "spec": {"providerID": "eks-hybrid:///eu-central-1/prod/mi-1"}},
        {**CLASS, "status": {"subnets": [{"id": "subnet-1", "zone": "eu-central-1a", "zoneID": "euc1-az2"}]}},
        _in_zone("eu-central-1b"),
        pod_document("a", nodeSelector={"topology.kubernetes.io/zone": "eu-central-1b"}),
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "a"},
            "provisioner": "p",
            "allowedTopologies": [
                {"matchLabelExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "values": ["eu-central-1b"]}]}
            ],
        },
    ],
)
def test_the_clusters_region_is_found_in_its_objects(run: Run, write: Write, told: dict[str, Any]) -> None:
    """Nodes first, then subnets, NodePools, volumes and pods."""
    document = run(*JSON, "-f", write("files.json", _files(told, pod_document()))).document
    assert document["catalogue"]["clusterRegion"] == FRANKFURT
    assert document["unschedulable"] == []


def test_a_person_may_name_the_region(run: Run, write: Write) -> None:
    """Where no object tells it."""
    files = write("files.json", _files(pod_document()))
    document = run(*JSON, "-f", files, "--region", FRANKFURT).document
    assert document["launch"][0]["offering"]["zone"].startswith(FRANKFURT)
    assert (
        run(*JSON, "-f", files, "--region", "Frankfurt").err
        == "joinery: --region Frankfurt: not a region such as eu-central-1\n"
    )


def _asking_for(zone: str) -> dict[str, Any]:
    return pod_document(nodeSelector={"topology.kubernetes.io/zone": zone})


@pytest.mark.parametrize("others", [[], [NODE], [_in_zone("eu-central-1b")], [NODE, _in_zone("eu-central-1x")]])
def test_a_zone_that_only_a_slip_of_the_pen_names_is_none(run: Run, write: Write, others: list[dict[str, Any]]) -> None:
    """Neither a pod's wish nor a NodePool's beside running nodes makes a zone to buy in;
    the reason says which there are.
    """
    files = write("files.json", _files(*others, _asking_for("eu-central-1x")))
    document = run(*JSON, "-f", files, "--region", FRANKFURT).document
    assert document["launch"] == []
    (refused,) = document["unschedulable"]
    assert "eu-central-1x" in str(refused["reasons"])
    assert "eu-central-1a" in str(refused["reasons"]) or others == [_in_zone("eu-central-1b")]


def test_zones_that_nobody_proves_are_the_regions_first_three(run: Run, write: Write) -> None:
    """A pod may ask for any of them."""
    files = write("files.json", _files(_asking_for("eu-central-1c")))
    document = run(*JSON, "-f", files, "--region", FRANKFURT).document
    assert [launch["offering"]["zone"] for launch in document["launch"]] == ["eu-central-1c"]


def test_zone_ids_of_nodes_and_subnets_stay_theirs(run: Run, write: Write) -> None:
    """A pod that asks for a zone by id finds it in the estimate too."""
    node = _node(labels={"topology.kubernetes.io/zone": "eu-central-1a", "topology.k8s.aws/zone-id": "euc1-az2"})
    pod = pod_document(nodeSelector={"topology.k8s.aws/zone-id": "euc1-az2"})
    document = run(*JSON, "-f", write("files.json", _files(node, pod))).document
    assert document["launch"][0]["offering"]["zone"] == "eu-central-1a"


def test_a_node_pools_slip_in_a_zones_name_makes_no_zone(run: Run, write: Write) -> None:
    """No zone of AWS is called so, and Karpenter would buy nothing: which was meant is asked."""
    files = write("files.json", _files(_in_zone("eu-central-1-a"), pod_document()))
    outcome = run(*JSON, "-f", files)
    assert outcome.document["launch"] == []
    assert "topology.kubernetes.io/zone is nowhere eu-central-1-a; is it eu-central-1a?" in outcome.err


def test_zone_ids_that_a_node_pool_asks_for_tell_the_region(run: Run, write: Write) -> None:
    """A newcomer of Frankfurt is not asked whether Virginia was meant; which zone has which id is a guess, and said."""
    pool = _in_zone("")
    pool["spec"]["template"]["spec"]["requirements"][-1] = {
        "key": "topology.k8s.aws/zone-id",
        "operator": "In",
        "values": ["euc1-az2", "euc1-az3"],
    }
    outcome = run(*JSON, "-f", write("files.json", _files(pool, pod_document())))
    assert outcome.document["catalogue"]["clusterRegion"] == FRANKFURT
    assert outcome.document["unschedulable"] == []
    assert outcome.document["launch"][0]["offering"]["zone"] in ("eu-central-1a", "eu-central-1b")
    assert "warning: GUESSED: which zones have the ids euc1-az2, euc1-az3." in outcome.err
    assert "is it use1" not in outcome.err


def test_a_zone_that_the_catalogue_lacks_is_named(run: Run, write: Write) -> None:
    """Of the right region, but not in it: nothing can be bought there."""
    files = write("files.json", _files(_in_zone("us-east-1z"), pod_document()))
    outcome = run(*JSON, "-f", files)
    assert "warning: the catalogue has no zone us-east-1z of us-east-1: nothing can be bought there" in outcome.err
    assert outcome.document["catalogue"]["estimate"] is False


def test_a_made_up_region_is_nobodys_mismatch(run: Run, write: Write) -> None:
    """Test clusters have zones of their own."""
    catalogue = msgspec.json.decode(gzip.decompress(SAMPLE.read_bytes()))
    path = write("own.json", {**catalogue, "region": "test"})
    document = run(*JSON, "-f", write("files.json", _files(NODE, pod_document())), "--catalog", path).document
    assert document["catalogue"]["estimate"] is False
    assert document["launch"][0]["offering"]["zone"].startswith("us-east-1")


def test_what_the_catalogue_command_prints_is_a_catalogue(run: Run, write: Write, tmp_path: Path) -> None:
    """The plan from the printed array is the plan from the catalogue, subnets of the class included."""
    classes = [
        CLASS,
        {**CLASS, "status": {"subnets": [{"id": "subnet-1", "zone": "us-east-1c", "zoneID": "use1-az2"}]}},
    ]
    for node_class in classes:
        files = write("files.json", _files(node_class, *(pod_document(f"web-{n}") for n in range(5))))
        printed = tmp_path / "array.json"
        printed.write_text(run("catalog", "-o", "json").out)
        first, second = (run(*JSON, "-f", files, *more).document for more in ((), ("--catalog", str(printed))))
        assert first["launch"] == second["launch"] != []
        assert first["cost"] == second["cost"]
    assert second["catalogue"]["region"] == "us-east-1"


@pytest.mark.parametrize(
    "content",
    ["[]", "[1]", '[{"name": "a"}]', '[{"name":"a","labels":{},"capacity":{"cpu":"x"},"allocatable":{}}]'],
)
def test_an_array_that_is_no_catalogue_is_refused(run: Run, cluster: str, write: Write, content: str) -> None:
    """One line that names the file."""
    path = write("array.json", content)
    outcome = run(*JSON, "-f", cluster, "--catalog", path)
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert outcome.err.startswith(f"joinery: {path}: not a catalogue")


def test_a_catalogue_can_be_saved_and_planned_with(run: Run, cluster: str, tmp_path: Path) -> None:
    """Zipped where its name says so; what is saved is what was read."""
    for name in ("prices.json", "prices.json.gz"):
        path = tmp_path / name
        outcome = run("catalog", "--catalog", str(SAMPLE), "--save", str(path))
        assert (outcome.status, outcome.out) == (0, "")
        assert outcome.err.startswith(f"{path}: us-east-1, 1,235 instance types, ")
        document = run(*JSON, "-f", cluster, "--catalog", str(path)).document
        assert document["catalogue"]["source"] == str(path)
    refused = run("catalog", "--catalog", str(SAMPLE), "--save", str(tmp_path / "none" / "x"))
    assert (refused.status, refused.err) == (
        2,
        f"joinery: --save {tmp_path}/none/x: there is no folder {tmp_path}/none\n",
    )


@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("eu-central-1a", "eu-central-1"), ("us-gov-west-1b", "us-gov-west-1"), ("us-west-2-lax-1a", "us-west-2"),
        ("eusc-de-east-1a", "eusc-de-east-1"), ("ap-southeast-2", "ap-southeast-2"), ("test-zone-1", ""),
        ("us-central1-a", ""),
    ],
)  # fmt: skip
def test_a_zones_name_begins_with_its_region(name: str, region: str) -> None:
    """Local zones and other partitions too; zones of others are none of AWS's."""
    assert region_in(name) == region


@pytest.mark.parametrize(
    ("name", "exists"),
    [
        ("eu-central-1a", True), ("us-west-2-lax-1a", True), ("us-east-1-wl1-bos-wlz-1", True),
        ("eusc-de-east-1b", True), ("eu-central-1-a", False), ("eu-central-1A", False), ("eu-central-1", False),
        ("us-central1-a", False),
    ],
)  # fmt: skip
def test_a_zones_name_ends_with_a_letter_or_its_place(name: str, exists: bool) -> None:
    """Of the region, a local zone or a wavelength zone."""
    assert is_zone(name) is exists


@pytest.mark.parametrize(
    ("zone_id", "region"),
    [
        ("euc1-az2", FRANKFURT), ("use1-az6", "us-east-1"), ("usgw1-az1", "us-gov-west-1"),
        ("apne1-az4", "ap-northeast-1"), ("usw2-lax1-az1", "us-west-2"), ("use1-wl1-bos-wlz1", "us-east-1"),
        ("euc1", ""), ("az-1", ""),
    ],
)  # fmt: skip
def test_a_zones_id_begins_with_its_region(zone_id: str, region: str) -> None:
    """In short."""
    assert region_of_zone_id(zone_id) == region


def test_settings_of_the_stack_decide_how_many_pods_a_node_takes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the variable that the functions read, so that a plan at a desk is the plan of the door."""
    monkeypatch.setenv("JOINERY_SETTINGS", "PrefixDelegation=true")
    pods = {kind["name"]: kind["capacity"]["pods"] for kind in run("catalog", "-o", "json").document}
    assert (pods["m5.large"], pods["m5.8xlarge"]) == ("110", "250")
    monkeypatch.setenv("JOINERY_SETTINGS", "PrefixDelegation=perhaps")
    assert run("catalog").err.splitlines()[-1] == "joinery: PrefixDelegation is 'perhaps': expected true or false"


def test_a_catalogue_that_lacks_a_source_is_planned_with_and_says_so(run: Run, cluster: str, tmp_path: Path) -> None:
    """On-demand prices that nobody was allowed to read are estimates, and whoever believes the plan should know."""
    document = msgspec.json.decode(gzip.decompress(SAMPLE.read_bytes()))
    lack = {"source": "on-demand prices", "instead": "estimates stand in", "reason": "AccessDeniedException"}
    (tmp_path / "poor.json").write_bytes(msgspec.json.encode({**document, "missing": [lack]}))
    said = "is not whole: on-demand prices could not be read: estimates stand in (AccessDeniedException)"
    for command in ("plan", "catalog"):
        outcome = run(command, "-f", cluster, "--catalog", str(tmp_path / "poor.json"))
        assert (outcome.status, outcome.err.count(said)) == (0, 1)
