"""Where several volumes together let a pod run."""

import pytest
from msgspec.structs import replace

from joinery.decisions.scheduling.constraints.volumes import Volumes
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import solve
from joinery.objects.karpenter.labels import HOSTNAME
from joinery.objects.kubernetes.core import (
    OwnerReference,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeNodeAffinity,
)
from simulator import builders
from simulator.builders.defaults import as_struct
from tests.unit.decisions.verification.plans import SMALL, A, B, C, problem


def _zonal(*zones: str) -> StorageClass:
    """A class that names each zone in a term of its own; any one of them will do."""
    each = [builders.storage_class(zones=[zone]).allowed_topologies[0] for zone in zones]
    return StorageClass(
        metadata=builders.storage_class("zonal").metadata,
        provisioner="ebs.csi.aws.com",
        volume_binding_mode="WaitForFirstConsumer",
        allowed_topologies=each,
    )


def _asked(*more: PersistentVolume | PersistentVolumeClaim, unbound: int, claims: tuple[str, ...] = ()) -> Problem:
    """One pod with so many claims of the class, and others."""
    names = [f"data-{number}" for number in range(unbound)]
    listed = [builders.volume_claim(name, storage_class="zonal") for name in names]
    pod = builders.pod("db", volumes=[*names, *claims])
    return problem(_zonal(A, B, C), builders.node_pool(), pod, *listed, *more, types=(SMALL,))


def test_a_pod_with_many_volumes_is_planned_as_fast_as_one_with_few() -> None:
    """Twenty volumes that may be in three zones each have three billion combinations, of which three make sense."""
    (launch,) = solve(_asked(unbound=20)).launches
    assert launch.pods == ("default/db",)


def test_one_volume_that_is_somewhere_decides_for_all() -> None:
    """The others can be made there."""
    there = builders.volume("pv", zone=B), builders.volume_claim("old", volume="pv")
    (launch,) = solve(_asked(*there, unbound=20, claims=("old",))).launches
    assert launch.offering.zone == B


@pytest.mark.parametrize("unbound", [0, 20])
def test_volumes_that_are_apart_say_so(unbound: int) -> None:
    """Then what contradicts itself is kept for the reason."""
    apart = [builders.volume("one", zone=A), builders.volume("other", zone=B)]
    claims = [builders.volume_claim("one", volume="one"), builders.volume_claim("other", volume="other")]
    asked = _asked(*apart, *claims, unbound=unbound, claims=("one", "other"))
    (unplaced,) = solve(asked).unplaced
    assert "its volumes leave no value for topology.kubernetes.io/zone" in str(unplaced.reasons[0])


def test_the_claim_of_an_earlier_pod_of_the_name_goes_with_it() -> None:
    """A StatefulSet's next pod may be there before the ephemeral claim of the last one is collected."""
    scratch = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "zonal"}}}}]
    claim = builders.volume_claim("db-0-scratch", volume="pv")
    owners = [OwnerReference(api_version="v1", kind="Pod", name="db-0", uid="earlier", controller=True)]
    owned = replace(claim, metadata=replace(claim.metadata, owner_references=owners))

    def zone(uid: str) -> str:
        pod = builders.pod("db-0", uid=uid, volumes=scratch)
        there = builders.volume("pv", zone=C)
        asked = problem(_zonal(A), builders.node_pool(), pod, owned, there, types=(SMALL,))
        (launch,) = solve(asked).launches
        return launch.offering.zone

    assert (zone("earlier"), zone("later")) == (C, A)


def test_the_older_annotation_names_the_class_of_a_claim_and_of_a_volume() -> None:
    """It goes before the field."""
    older = {"volume.beta.kubernetes.io/storage-class": "local"}
    local = builders.storage_class("local", provisioner="kubernetes.io/no-provisioner")
    claim, volume = builders.volume_claim(storage_class="zonal"), builders.volume("pv", zone=B, storage_class="zonal")
    volume = replace(volume, spec=replace(volume.spec, capacity={"storage": "8Gi"}, access_modes=["ReadWriteOnce"]))
    claim = replace(claim, metadata=replace(claim.metadata, annotations=older))
    volume = replace(volume, metadata=replace(volume.metadata, annotations=older))
    pod = builders.pod("db", volumes=["data"])
    (launch,) = solve(problem(local, _zonal(A), builders.node_pool(), pod, claim, volume, types=(SMALL,))).launches
    assert launch.offering.zone == B


def test_hundreds_of_pods_with_a_disk_each_are_one_class() -> None:
    """So they are looked at once, however many hosts and volumes there are."""
    local = builders.storage_class("local", provisioner="kubernetes.io/no-provisioner")
    names = [f"n-{number:03}" for number in range(200)]
    claims = [builders.volume_claim(f"data-{name}", storage_class="local") for name in names]
    pods = [builders.pod(f"db-{name}", volumes=[f"data-{name}"]) for name in names]
    nodes = [builders.node(name) for name in names]
    asked = problem(local, *nodes, *claims, *pods, *map(_on_disk, names), types=(SMALL,))
    assert len(Workspace(asked).classes) == 1
    assert [len(placement.pods) for placement in solve(asked).existing] == [1] * len(names)


def test_where_a_free_volume_is_is_read_once_whoever_asks() -> None:
    """Claims of all sizes choose from one stock: to read it for each claim took a minute."""
    local = builders.storage_class("local", provisioner="kubernetes.io/no-provisioner")
    claims = [_of_size(builders.volume_claim(name, storage_class="local"), name) for name in ("1Gi", "2Gi")]
    pods = [builders.pod(f"db-{number}", volumes=[name]) for number, name in enumerate(("1Gi", "2Gi"))]
    asked = problem(local, *claims, *pods, _on_disk("n-0"), types=(SMALL,))
    volumes = Volumes(asked.snapshot)
    one, other = (volumes.needs(pod).choices[0][0] for pod in pods)
    assert one.stock is other.stock
    assert len(Workspace(asked).classes) == 1


def _of_size(claim: PersistentVolumeClaim, size: str) -> PersistentVolumeClaim:
    resources = replace(claim.spec.resources, requests={"storage": size})
    return replace(claim, spec=replace(claim.spec, resources=resources))


def _on_disk(host: str) -> PersistentVolume:
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [host]}]}]
    volume = builders.volume(f"disk-{host}", storage_class="local")
    spec = replace(
        volume.spec,
        csi=None,
        local={},
        capacity={"storage": "8Gi"},
        access_modes=["ReadWriteOnce"],
        node_affinity=as_struct({"required": {"nodeSelectorTerms": terms}}, VolumeNodeAffinity),
    )
    return replace(volume, spec=spec)
