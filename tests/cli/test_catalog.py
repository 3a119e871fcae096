"""``joinery catalog``: what the packing core sees, as the judge and people read it."""

from joinery.objects.kubernetes.quantity import parse
from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, Run, Write

CATALOG = ("catalog", "--catalog", str(SAMPLE))


def test_the_catalogue_is_a_bare_array_of_instance_types(run: Run) -> None:
    """One entry a type, in the contract's shape, quantities as Kubernetes writes them."""
    entries = run(*CATALOG, "-o", "json").document
    large = next(entry for entry in entries if entry["name"] == "m7a.large")
    assert list(large) == ["name", "labels", "capacity", "allocatable", "offerings", "attachments"]
    assert large["labels"]["karpenter.k8s.aws/instance-cpu"] == "2"
    assert set(large["labels"]["karpenter.sh/capacity-type"]) == {"on-demand", "spot"}
    assert 0 < parse(large["allocatable"]["memory"]) < parse(large["capacity"]["memory"])
    assert {"zone": "us-east-1a", "capacityType": "on-demand", "price": 0.11592, "available": True} in large[
        "offerings"
    ]


def test_a_node_class_changes_what_its_nodes_hold(run: Run, write: Write) -> None:
    """The first class of the files counts, or the one that is named."""
    dense = CLUSTER.split("---")[0].replace("name: default", "name: dense") + "  kubelet: {maxPods: 5}\n"
    path = write("classes.yaml", CLUSTER + dense)
    pods = [
        next(e for e in run(*CATALOG, "-f", path, *named, "-o", "json").document if e["name"] == "m7a.large")
        for named in ((), ("--node-class", "dense"))
    ]
    assert [entry["allocatable"]["pods"] for entry in pods] == ["29", "5"]


def test_a_node_class_that_the_files_lack_is_refused(run: Run, cluster: str) -> None:
    """Resolving for a class that is not there would be resolving for nothing."""
    outcome = run(*CATALOG, "-f", cluster, "--node-class", "absent", "-o", "json")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == "joinery: --node-class absent: the files have no such EC2NodeClass\n"


def test_a_table_lists_the_cheapest_first(run: Run) -> None:
    """For a person: what there is, how large, for how much."""
    lines = run(*CATALOG).out.splitlines()
    assert lines[0].startswith("Instance types for EC2NodeClass default")
    assert lines[2].split()[0] == "t4g.nano"


def _names(run: Run, *options: str) -> list[str]:
    return [entry["name"] for entry in run(*CATALOG, "-o", "json", *options).document]


def test_families_and_a_least_size_leave_the_types_that_are_asked_for(run: Run) -> None:
    """Of 1,200 types a person looks at ten."""
    names = _names(run, "--family", "m7g", "--family", "c7g", "--min-cpu", "32")
    assert {name.partition(".")[0] for name in names} == {"m7g", "c7g"}
    assert "c7g.8xlarge" in names
    assert "c7g.4xlarge" not in names
    outcome = run(*CATALOG, "--family", "m7z")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("joinery: --family m7z: no instance type is of it")


def test_types_are_sorted_as_is_asked_for(run: Run) -> None:
    """The table by price, the document as the catalogue has them, unless somebody asks."""
    options = ("--family", "m7g", "--sort")
    assert _names(run, *options, "name") == sorted(_names(run, *options, "price"))
    assert _names(run, *options, "price")[0] == "m7g.medium"
    assert _names(run, *options, "cpu")[-1] == "m7g.medium"
    assert _names(run, *options, "memory")[0] == "m7g.16xlarge"
