"""Where several volumes together let a pod run."""

import pytest

from joinery.apis.core import PersistentVolume, PersistentVolumeClaim, StorageClass
from joinery.scheduling.problem import Problem
from joinery.scheduling.solve import solve
from simulator import builders
from tests.unit.verification.plans import SMALL, A, B, C, problem


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
