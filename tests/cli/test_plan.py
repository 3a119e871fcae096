"""``joinery plan``: from files to a plan document that others rely on."""

import gzip
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document, shell
from tools.template import ROOT

PLAN = ("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE))


NODE_CLASS_REF = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def _items(*pods: dict[str, Any]) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(CLUSTER) if document] + list(pods)


def _list(*items: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def _without_seconds(document: Any) -> Any:
    return {**document, "solver": {**document["solver"], "seconds": 0}}


def test_a_pending_pod_gets_a_node_within_the_contract(run: Run, cluster: str, write: Write) -> None:
    """Every key of the contract is there, and the launch says what would be bought for which pods."""
    document = run(*PLAN, "-f", cluster, "-f", write("pod.json", pod_document())).document
    assert list(document) == [
        "apiVersion", "kind", "now", "existing", "launch", "unschedulable", "relaxed", "cost", "catalogue", "notices",
        "solver",
    ]  # fmt: skip
    assert (document["apiVersion"], document["kind"], document["now"]) == ("joinery.dev/v1", "Plan", NOW)
    (launch,) = document["launch"]
    assert list(launch) == [
        "name", "nodePool", "requirements", "labels", "taints", "startupTaints", "requests", "instanceTypes",
        "offering",
        "pods",
    ]  # fmt: skip
    assert launch["pods"] == ["default/web"]
    assert launch["requests"] == {"cpu": "500m", "memory": "512Mi", "pods": "1"}
    assert launch["labels"]["team"] == "web"
    assert launch["instanceTypes"] == ["m7a.large", "m7a.xlarge"]
    assert launch["offering"]["instanceType"] == "m7a.large"
    assert launch["offering"]["capacityType"] == "on-demand"
    assert document["cost"]["hourly"] == launch["offering"]["price"]
    assert 0 < document["cost"]["lowerBound"] <= document["cost"]["hourly"]
    assert set(document["solver"]) == {"method", "seconds", "limit"}


def test_yaml_json_lists_and_gzip_are_one_input(run: Run, write: Write, tmp_path: Path) -> None:
    """Several documents, a List, a PodList whose items name no kind, and a gzipped file give the same plan."""
    pod = pod_document()
    several = write("all.yaml", CLUSTER + yaml.safe_dump(pod))
    listed = write("list.json", _list(*_items(pod)))
    zipped = tmp_path / "list.json.gz"
    zipped.write_bytes(gzip.compress(Path(listed).read_bytes()))
    bare = {key: value for key, value in pod.items() if key not in ("kind", "apiVersion")}
    pod_list = write("pods.json", {"apiVersion": "v1", "kind": "PodList", "items": [bare]})
    plans = [
        _without_seconds(run(*PLAN, *files).document)
        for files in (
            ("-f", several), ("-f", listed), ("-f", str(zipped)), ("-f", write("c.yaml", CLUSTER), "-f", pod_list),
        )
    ]  # fmt: skip
    assert len(plans[0]["launch"]) == 1
    assert all(plan == plans[0] for plan in plans)


def test_json_documents_may_follow_one_another(run: Run, write: Write) -> None:
    """As ``kubectl get -o json`` prints them when it is called twice into one file."""
    path = write("two.json", "\n".join(json.dumps(item) for item in _items(pod_document())))
    assert len(run(*PLAN, "-f", path).document["launch"]) == 1


def test_json_documents_between_separators_are_yaml(run: Run, cluster: str, write: Write) -> None:
    """Whatever the file is called: standard input has no name to tell by."""
    text = "\n---\n".join(json.dumps(pod_document(name)) for name in ("a", "b"))
    document = run(*PLAN, "-f", cluster, "-f", write("pods", text)).document
    assert sorted(pod for launch in document["launch"] for pod in launch["pods"]) == ["default/a", "default/b"]


def test_gated_pods_are_said_to_wait(run: Run, cluster: str, write: Write) -> None:
    """Whoever misses them in the plan sees who holds them."""
    pod = pod_document("held", schedulingGates=[{"name": "example.com/quota"}])
    outcome = run(*PLAN, "-f", cluster, "-f", write("pod.json", pod))
    words = "note: 1 pod is gated (default/held; schedulingGates example.com/quota): not planned"
    assert words in outcome.err.splitlines()
    assert outcome.document["launch"] == []


def test_the_order_of_objects_decides_nothing(run: Run, write: Write) -> None:
    """Shuffled objects give the same plan, byte for byte but for the seconds it took."""
    items = _items(*(pod_document(f"web-{n}", priority=n % 3) for n in range(12)))
    first = _without_seconds(run(*PLAN, "-f", write("sorted.json", _list(*items))).document)
    for seed in range(3):
        shuffled = random.Random(seed).sample(items, len(items))
        assert _without_seconds(run(*PLAN, "-f", write("shuffled.json", _list(*shuffled))).document) == first


def test_standard_input_is_a_file_called_dash() -> None:
    """The plan of a pipe is the plan of the file."""
    objects = (CLUSTER + yaml.safe_dump(pod_document())).encode()
    done = shell([*PLAN, "-f", "-"], stdin=objects)
    assert done.status == 0, done.err
    assert done.document["launch"][0]["pods"] == ["default/web"]


def test_a_pod_that_fits_nowhere_is_a_result(run: Run, cluster: str, write: Write) -> None:
    """Exit status 0, and a reason that names the NodePool."""
    pod = write("pod.json", pod_document(nodeSelector={"kubernetes.io/arch": "arm64"}))
    outcome = run(*PLAN, "-f", cluster, "-f", pod)
    assert outcome.status == 0
    (unplaced,) = outcome.document["unschedulable"]
    assert unplaced["pod"] == "default/web"
    assert any("NodePool default" in reason for reason in unplaced["reasons"])
    cost = outcome.document["cost"]
    assert {cost[name] for name in ("hourly", "lowerBound", "gap", "resilience", "onDemand")} == {0.0}


def test_only_pods_that_wait_for_a_node_are_planned(run: Run, cluster: str, write: Write) -> None:
    """Bound, finished, gated and DaemonSet pods are nobody's to place; a pod without status is."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}
    bound, gated = pod_document("bound", nodeName="n1"), pod_document("gated", schedulingGates=[{"name": "g"}])
    done, daemon = pod_document("done"), pod_document("daemon")
    done["status"], daemon["metadata"]["ownerReferences"] = {"phase": "Succeeded"}, [owner]
    objects = write("pods.json", _list(bound, gated, done, daemon, pod_document("waits")))
    document = run(*PLAN, "-f", cluster, "-f", objects).document
    assert [launch["pods"] for launch in document["launch"]] == [["default/waits"]]
    assert document["unschedulable"] == []


def test_what_the_api_server_would_default_is_defaulted(run: Run, cluster: str, write: Write) -> None:
    """A limit without a request is a request, as it would be once applied."""
    limits = {"name": "main", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    document = run(*PLAN, "-f", cluster, "-f", write("pod.json", pod_document(containers=[limits]))).document
    assert document["launch"][0]["requests"] == {"cpu": "1", "memory": "1Gi", "pods": "1"}


def test_nulls_are_fields_left_out(run: Run, cluster: str, write: Write) -> None:
    """Exporters write ``creationTimestamp: null``; the API server reads it as nothing."""
    pod = pod_document(tolerations=None, affinity=None, nodeSelector=None)
    pod["metadata"] |= {"creationTimestamp": None, "labels": None}
    assert len(run(*PLAN, "-f", cluster, "-f", write("pod.json", pod)).document["launch"]) == 1


def test_objects_that_do_not_count_are_named_and_not_used(run: Run, cluster: str, write: Write) -> None:
    """What never counts is counted."""
    others = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}},
    ]
    outcome = run(*PLAN, "-f", cluster, "-f", write("others.json", _list(*others)))
    assert outcome.status == 0
    assert outcome.document["launch"] == []
    assert outcome.err.splitlines() == [
        "note: ignored 2 objects of kind ConfigMap: not used in a plan",
    ]


def test_an_object_given_twice_counts_once_and_the_later_one(run: Run, cluster: str, write: Write) -> None:
    """An override file may follow; that two objects differ is said."""
    small = write("small.json", pod_document())
    again = write("again.json", pod_document(containers=[{"name": "m", "resources": {"requests": {"cpu": "1"}}}]))
    outcome = run(*PLAN, "-f", cluster, "-f", small, "-f", again)
    assert outcome.document["launch"][0]["requests"]["cpu"] == "1"
    assert "Pod web: given twice, the later one counts" in outcome.err


def test_a_node_pool_that_cannot_be_used_leaves_the_others_in_use(run: Run, cluster: str, write: Write) -> None:
    """The API server would store it, so it is a warning and a reason, not a broken file."""
    pool = yaml.safe_load(CLUSTER.split("---")[1])
    pool["metadata"]["name"] = "twice"
    pool["spec"]["template"]["spec"]["taints"] = [{"key": "a", "effect": "NoSchedule"}] * 2
    outcome = run(*PLAN, "-f", cluster, "-f", write("pool.json", pool), "-f", write("pod.json", pod_document()))
    assert outcome.status == 0
    assert [launch["nodePool"] for launch in outcome.document["launch"]] == ["default"]
    assert "NodePool twice" in outcome.err


def test_a_table_is_for_people(run: Run, cluster: str, write: Write) -> None:
    """Launches, unschedulable pods with reasons, the price; no colour codes where there is no terminal."""
    never = write("never.json", pod_document("never", nodeSelector={"kubernetes.io/arch": "arm64"}))
    outcome = run("plan", "--now", NOW, "-f", cluster, "-f", write("pod.json", pod_document()), "-f", never)
    assert outcome.status == 0
    assert "m7a.large" in outcome.out
    assert "Unschedulable: 1 pod" in outcome.out
    assert "default/never" in outcome.out
    assert "1 pod placed on 1 new node; 1 unschedulable\n$" in outcome.out
    assert "\x1b[" not in outcome.out


def test_the_help_of_a_command_imports_no_solver() -> None:
    """Starting is quick because a command imports what it needs only when it runs (pydantic is typer's own)."""
    code = (
        "import sys; from joinery_cli.main import main\n"
        "try: main(['plan', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'msgspec', 'yaml', 'simulator', 'boto3', 'kubernetes', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_who_looks_for_a_command_that_explains_is_told_the_option(run: Run) -> None:
    """ "Did you mean plan?" alone does not say how."""
    outcome = run("explain", "web")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == (
        "joinery: No such command 'explain'. A pod: joinery plan --explain POD. A node: joinery disrupt --explain "
        "NODE.\n"
    )


def test_an_option_that_is_missing_is_one_line(run: Run) -> None:
    """With what it may be."""
    assert run("uninstall", "blue").err == "joinery: Missing option '--nodes'. Choose from: keep, retire\n"


def test_commands_of_other_packages_are_listed(run: Run) -> None:
    """The simulator offers replay and simulate by entry point."""
    assert {"plan", "catalog", "replay", "simulate"} <= set(run("--help").out.split())


RESERVED = CLUSTER.replace("[on-demand]", "[on-demand, reserved]")
RESERVED = RESERVED.replace("  role: nodes", "  role: nodes\n  capacityReservationSelectorTerms: [{tags: {team: web}}]")


def _catalogue(tmp_path: Path, **given: Any) -> str:
    """The sample catalogue with one capacity reservation in it."""
    reservation = {
        "CapacityReservationId": "cr-123", "InstanceType": "m7a.large", "AvailabilityZone": "us-east-1b",
        "OwnerId": "111122223333", "TotalInstanceCount": 4, "AvailableInstanceCount": 1, "State": "active",
        "InstanceMatchCriteria": "targeted", "Tags": [{"Key": "team", "Value": "web"}], **given,
    }  # fmt: skip
    document = json.loads(gzip.decompress(SAMPLE.read_bytes())) | {"capacityReservations": [reservation]}
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_a_node_that_is_reserved_is_planned_before_one_is_bought(run: Run, write: Write, tmp_path: Path) -> None:
    """One place is left in the reservation that the class selects: one launch has it,
    the other is bought, and both are priced.
    """
    container = {"name": "main", "resources": {"requests": {"cpu": "1800m", "memory": "512Mi"}}}
    pods = [write(f"{name}.json", pod_document(name, containers=[container])) for name in ("a", "b")]
    given = [option for path in (write("cluster.yaml", RESERVED), *pods) for option in ("-f", path)]
    outcome = run("plan", "--now", NOW, "-o", "json", "--catalog", _catalogue(tmp_path), *given)
    bought, reserved = sorted((x["offering"] for x in outcome.document["launch"]), key=lambda o: -o["price"])
    assert (reserved["capacityType"], reserved["capacityReservation"], reserved["zone"]) == (
        "reserved",
        "cr-123",
        "us-east-1b",
    )
    assert (bought["capacityType"], bought.get("capacityReservation")) == ("on-demand", None)
    assert outcome.document["cost"]["hourly"] == pytest.approx(bought["price"] + reserved["price"], abs=1e-6)
    assert outcome.err == ""


def test_a_pod_that_asks_for_a_partition_is_planned_from_files(run: Run, write: Write) -> None:
    """Files do not say how many a placement group has: AWS's maximum is assumed (EC2 User Guide, "Placement
    strategies"), and the plan says so.
    """
    group = CLUSTER.replace("  role: nodes", "  role: nodes\n  placementGroupSelector: {name: racks}")
    pods = [
        write(
            f"{number}.json", pod_document(number, nodeSelector={"karpenter.k8s.aws/placement-group-partition": number})
        )
        for number in ("7", "8")
    ]
    given = [option for path in (write("cluster.yaml", group), *pods) for option in ("-f", path)]
    outcome = run("plan", "--now", NOW, "-o", "json", *given)
    assert [pod.rpartition("/")[2] for launch in outcome.document["launch"] for pod in launch["pods"]] == ["7"]
    assert "placement group racks is not looked up: pods may ask for each of 7 partitions" in outcome.err


def test_reservations_that_cannot_be_counted_on_are_told(run: Run, write: Write, tmp_path: Path) -> None:
    """The plan is made without them: where the catalogue knows none that is meant, or not how much is left of one."""
    files = ("-f", write("cluster.yaml", RESERVED), "-f", write("p.json", pod_document()))
    unknown = run("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE), *files)
    uncounted = run(
        "plan", "--now", NOW, "-o", "json", *files, "--catalog", _catalogue(tmp_path, AvailableInstanceCount=None)
    )
    assert unknown.err.splitlines() == [
        (
            "warning: EC2NodeClass default: capacityReservationSelectorTerms select no capacity reservation of the "
            "catalogue"
        )
    ]
    assert uncounted.err.splitlines() == [
        (
            "warning: EC2NodeClass default: capacity reservation cr-123 is not used: "
            "the catalogue does not say how much is left of it"
        )
    ]
    for outcome in (unknown, uncounted):
        assert [launch["offering"]["capacityType"] for launch in outcome.document["launch"]] == ["on-demand"]


def test_a_field_whose_neglect_would_change_the_nodes_is_a_reason(run: Run, write: Write) -> None:
    """No node is better than one that does not join."""
    unknown = CLUSTER.replace("role: nodes", "role: nodes\n  kubelet: {memorySwap: {swap: LimitedSwap}}")
    outcome = run(
        "plan", "--now", NOW, "-o", "json", "-f", write("cluster.yaml", unknown), "-f", write("p.json", pod_document())
    )
    (left,) = outcome.document["unschedulable"]
    assert "not usable: EC2NodeClass default: spec.kubelet.memorySwap.swap" in left["reasons"][0]


def test_the_example_shows_what_a_plan_can_say(run: Run) -> None:
    """Both NodePools buy, and one pod is too large for every type: the README's first command."""
    outcome = run(
        "plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE), "-f", str(ROOT / "examples" / "cluster.yaml")
    )
    assert {launch["nodePool"] for launch in outcome.document["launch"]} == {"default", "batch"}
    assert [left["pod"] for left in outcome.document["unschedulable"]] == ["default/giant"]


def test_static_node_pools_are_told_to_get_their_nodes_elsewhere(run: Run, write: Write) -> None:
    """A plan is for pods, so it says what it does not show."""
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "base"},
        "spec": {
            "replicas": 3,
            "template": {"spec": {"nodeClassRef": NODE_CLASS_REF, "requirements": []}},
            "disruption": {"budgets": [{"nodes": "1"}]},
        },
    }
    outcome = run("plan", "-f", write("pool.yaml", pool))
    assert "NodePool base is static and gets 3 more nodes to have its 3 replicas" in outcome.err


def test_a_static_node_pool_is_told_to_get_no_more_than_its_limit(run: Run, write: Write) -> None:
    """It never has more, whatever its replicas are."""
    template = {"spec": {"nodeClassRef": NODE_CLASS_REF, "requirements": []}}
    spec = {"replicas": 2, "limits": {"nodes": 1}, "template": template}
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "base"}, "spec": spec}
    assert (
        "NodePool base is static and gets 1 more node to have 1 of its 2 replicas, as many as its limits.nodes allows"
    ) in run("plan", "-f", write("pool.yaml", pool)).err


def test_caps_leave_pods_out_and_say_so(run: Run, cluster: str, write: Write) -> None:
    """The command line shows what a stack with these caps would do."""
    pod = write("pod.json", pod_document())
    for option in (("--max-launches", "0"), ("--max-hourly", "0")):
        document = run(*PLAN, *option, "-f", cluster, "-f", pod).document
        assert document["launch"] == []
        (unplaced,) = document["unschedulable"]
        assert [cause["code"] for cause in unplaced["causes"]] == ["Caps"]
    assert len(run(*PLAN, "--max-launches", "1", "-f", cluster, "-f", pod).document["launch"]) == 1


def test_a_plan_as_yaml_is_the_claims_that_a_function_would_write(run: Run, cluster: str, write: Write) -> None:
    """The API server's own kinds, which can be read back, or created."""
    files = ("-f", cluster, "-f", write("pod.json", pod_document()))
    outcome = run("plan", "--now", NOW, "--catalog", str(SAMPLE), *files, "-o", "yaml")
    (claim,) = yaml.safe_load_all(outcome.out)
    assert (claim["apiVersion"], claim["kind"]) == ("karpenter.sh/v1", "NodeClaim")
    assert claim["metadata"]["annotations"]["joinery.dev/planned-pods"] == '["default/web"]'
    values = {one["key"]: one["values"] for one in claim["spec"]["requirements"]}
    assert "m7a.large" in values["node.kubernetes.io/instance-type"]
    assert run("plan", "--now", NOW, "--catalog", str(SAMPLE), "-f", write("claim.yaml", outcome.out)).status == 0
