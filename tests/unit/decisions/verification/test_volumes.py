"""Volumes tie pods to zones, to nodes and to each other."""

from dataclasses import replace
from typing import Any

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.kubernetes import core
from simulator.builders import EPOCH, node, node_pool, pod, storage_class, volume, volume_claim
from tests.unit.decisions.verification.plans import LARGE, SMALL, A, B, launch, packing, problem, violated


def _in(asked: Problem, **places: str) -> Packing:
    return packing(*(launch(asked, f"default/{name}", name=f"n-{name}", zone=zone) for name, zone in places.items()))


def _mounting(*objects: Any) -> Problem:
    return problem(node_pool(), pod("db", volumes=["data"]), *objects)


def test_a_pod_runs_in_the_zone_of_its_volume() -> None:
    """A bound claim's volume can be reached from one zone only."""
    asked = _mounting(volume_claim(volume="pv-data"), volume(zone=B))
    assert violated(asked, _in(asked, db=B)) == set()
    assert violated(asked, _in(asked, db=A)) == {"Volumes"}


def test_a_launch_is_pinned_to_the_zone_of_a_volume() -> None:
    """Another zone that the launch allows would leave the pod without its data."""
    asked = _mounting(volume_claim(volume="pv-data"), volume(zone=A))
    assert violated(asked, packing(launch(asked, "default/db", zone=A, zones=(A, B)))) == {"Alternatives"}


def test_a_claim_that_waits_for_its_first_consumer_may_go_anywhere_its_class_allows() -> None:
    """allowedTopologies are the only tie of a claim that is not bound."""
    anywhere = _mounting(volume_claim(), storage_class())
    assert violated(anywhere, _in(anywhere, db=A)) == set()
    tied = _mounting(volume_claim(), storage_class(zones=[B]))
    assert violated(tied, _in(tied, db=A)) == {"Volumes"}
    assert violated(tied, _in(tied, db=B)) == set()


def test_volumes_of_auto_mode_are_attached_to_its_nodes_alone() -> None:
    """Its CSI driver runs nowhere else, whatever the scheduler binds."""
    theirs = storage_class(provisioner="ebs.csi.eks.amazonaws.com")
    ours = _mounting(volume_claim(), theirs)
    assert violated(ours, _in(ours, db=A)) == {"Volumes"}
    beside = _mounting(volume_claim(), theirs, node("auto", labels={"eks.amazonaws.com/compute-type": "auto"}))
    assert violated(beside, packing(on={"auto": ("default/db",)})) == set()


def test_claims_that_no_pod_can_use_are_refused() -> None:
    """Missing, lost, without class, bound to nothing, or waiting for an immediate binding."""
    missing = _mounting()
    lost = _mounting(core.PersistentVolumeClaim(metadata=core.ObjectMeta(name="data", namespace="default"),
                                                status=core.PersistentVolumeClaimStatus(phase="Lost")))  # fmt: skip
    unclassed = _mounting(volume_claim(storage_class=None))
    dangling = _mounting(volume_claim(volume="pv-gone"))
    immediate = _mounting(volume_claim(), storage_class(binding="Immediate"))
    for asked in (missing, lost, unclassed, dangling, immediate):
        assert violated(asked, _in(asked, db=A)) == {"Volumes"}


def test_pods_that_share_an_unbound_claim_end_in_one_zone() -> None:
    """The first of them decides where the volume is made."""
    asked = problem(
        node_pool(), pod("d1", volumes=["data"]), pod("d2", volumes=["data"]), volume_claim(), storage_class()
    )
    assert violated(asked, _in(asked, d1=A, d2=A)) == set()
    assert violated(asked, _in(asked, d1=A, d2=B)) == {"SharedVolume"}


def test_an_ephemeral_volume_is_a_claim_of_the_pods_own() -> None:
    """Its claim does not exist before the pod runs; its template says which class it will have."""
    template = {"volumeClaimTemplate": {"spec": {"storageClassName": "gp3"}}}
    asked = problem(
        node_pool(), pod("db", volumes=[{"name": "scratch", "ephemeral": template}]), storage_class(zones=[B])
    )
    assert violated(asked, _in(asked, db=B)) == set()
    assert violated(asked, _in(asked, db=A)) == {"Volumes"}


def test_a_node_attaches_so_many_volumes_and_no_more() -> None:
    """Limits of existing nodes count every claim once, however many pods share it."""
    limit = core.CSINode(
        metadata=core.ObjectMeta(name="n1"),
        spec=core.CSINodeSpec(
            drivers=[core.CSINodeDriver(name="ebs.csi.aws.com", allocatable=core.VolumeNodeResources(count=1))]
        ),
    )
    claims = [volume_claim("data"), volume_claim("more"), storage_class()]
    shared = problem(node("n1"), limit, *claims, pod("a", volumes=["data"]), pod("b", volumes=["data"]))
    assert violated(shared, packing(on={"n1": ("default/a", "default/b")})) == set()
    two = problem(node("n1"), limit, *claims, pod("a", volumes=["data"]), pod("b", volumes=["more"]))
    assert violated(two, packing(on={"n1": ("default/a", "default/b")})) == {"VolumeLimits"}


def test_a_launch_attaches_what_every_type_of_it_does() -> None:
    """EC2 picks the type. A claim that several pods use is not counted, for who else uses it may change."""
    types = [replace(SMALL, attachments={"ebs.csi.aws.com": 2}), replace(LARGE, attachments={"ebs.csi.aws.com": 1})]
    claims = [volume_claim("data"), volume_claim("more"), storage_class()]

    def refused(*volumes: str, kinds: tuple[str, ...]) -> set[str]:
        asked = problem(
            node_pool(), *claims, *(pod(f"p{i}", volumes=[name]) for i, name in enumerate(volumes)), types=types
        )
        pods = (f"default/p{i}" for i, _ in enumerate(volumes))
        return violated(asked, packing(launch(asked, *pods, kind=SMALL.name, types=kinds)))

    assert refused("data", "more", kinds=(SMALL.name,)) == set()
    assert refused("data", "more", kinds=(SMALL.name, LARGE.name)) == {"VolumeLimits"}
    assert refused("data", "data", kinds=(SMALL.name, LARGE.name)) == set()


def test_a_claim_being_deleted_is_no_place_for_data() -> None:
    """A deletion that has begun will not be undone."""
    going = core.PersistentVolumeClaim(
        metadata=core.ObjectMeta(name="data", namespace="default", deletion_timestamp=EPOCH),
        spec=core.PersistentVolumeClaimSpec(storage_class_name="gp3"),
    )
    asked = _mounting(going, storage_class())
    assert violated(asked, _in(asked, db=A)) == {"Volumes"}
