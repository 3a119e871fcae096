"""Claims without a volume: what verification knows of free volumes, of those to be made, and of those to come."""

from typing import Any

import msgspec

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.labels import HOSTNAME, SELECTED_NODE
from joinery.objects.kubernetes import core
from simulator.builders import EPOCH, node, node_pool, pod, storage_class, volume, volume_claim
from simulator.builders.defaults import as_struct
from tests.unit.decisions.verification.plans import A, B, launch, packing, problem, violated

LOCAL = storage_class("local", provisioner="kubernetes.io/no-provisioner")
WRONG = {"Volumes"}


def _free(
    name: str = "pv", *, zone: str = A, size: str = "8Gi", kind: str = "local", **spec: Any
) -> core.PersistentVolume:
    made = volume(name, zone=zone, storage_class=kind)
    more = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **spec}
    return as_struct({**_document(made), "spec": {**_document(made.spec), **more}}, core.PersistentVolume)


def _document(struct: Any) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(struct)
    return document


def _claim(name: str = "data", kind: str = "local", **annotations: str) -> core.PersistentVolumeClaim:
    document = _document(volume_claim(name, storage_class=kind))
    document["metadata"]["annotations"] = annotations
    return as_struct(document, core.PersistentVolumeClaim)


def _owned(claim: core.PersistentVolumeClaim, by: str) -> core.PersistentVolumeClaim:
    owner = core.OwnerReference(api_version="v1", kind="Pod", name=by, uid=f"uid-{by}", controller=True)
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, owner_references=[owner]))


def _in(asked: Problem, **places: str) -> Packing:
    return packing(*(launch(asked, f"default/{name}", name=f"n-{name}", zone=zone) for name, zone in places.items()))


def _asked(*objects: Any) -> Problem:
    return problem(node_pool(), LOCAL, storage_class(), pod("db", volumes=["data"]), *objects)


def test_a_claim_of_a_class_that_makes_none_needs_a_free_volume_that_matches() -> None:
    """Free, of its class, large enough, with its modes, and there."""
    right = _asked(_claim(), _free())
    assert violated(right, _in(right, db=A)) == set()
    assert violated(right, _in(right, db=B)) == WRONG
    for unfit in (
        _free(size="7Gi"),
        _free(kind="other"),
        _free(accessModes=["ReadOnlyMany"]),
        _free(volumeMode="Block"),
        _free(claimRef={"namespace": "default", "name": "another"}),
    ):
        asked = _asked(_claim(), unfit)
        assert violated(asked, _in(asked, db=A)) == WRONG


def test_a_free_volume_serves_one_claim() -> None:
    """Two pods find two volumes, whichever takes which."""
    both = [_claim(), _claim("more"), pod("other", volumes=["more"])]
    one = _asked(*both, _free())
    assert violated(one, _in(one, db=A, other=A)) == WRONG
    two = _asked(*both, _free(), _free("large", size="9Gi"))
    assert violated(two, _in(two, db=A, other=A)) == set()


def test_a_volume_that_is_reserved_for_a_claim_is_where_it_runs() -> None:
    """Although its class would make one anywhere."""
    asked = _asked(_claim(kind="gp3"), _free(zone=B, kind="gp3", claimRef={"namespace": "default", "name": "data"}))
    assert violated(asked, _in(asked, db=B)) == set()
    assert violated(asked, _in(asked, db=A)) == WRONG


def test_a_claim_that_waits_for_no_pod_binds_the_smallest_free_volume() -> None:
    """The PV controller does, whatever the pod may want."""
    now = storage_class("now", binding="Immediate")
    asked = _asked(now, _claim(kind="now"), _free(size="80Gi", kind="now"), _free("small", zone=B, kind="now"))
    assert violated(asked, _in(asked, db=B)) == set()
    assert violated(asked, _in(asked, db=A)) == WRONG


def test_a_volume_that_is_being_made_for_a_node_keeps_other_nodes_out() -> None:
    """kube-scheduler refuses all others until the claim is bound, or its controller gives up."""
    asked = _asked(node("n1"), node("n2"), _claim(kind="gp3", **{SELECTED_NODE: "n1"}))
    assert violated(asked, packing(on={"n1": ("default/db",)})) == set()
    assert violated(asked, packing(on={"n2": ("default/db",)})) == WRONG


def test_a_volume_that_was_being_made_for_a_node_that_is_gone_keeps_none_out() -> None:
    """The provisioner gives it up; of a class that makes no volumes there is none who would."""
    given_up = _asked(node("n2"), _claim(kind="gp3", **{SELECTED_NODE: "n1"}))
    assert violated(given_up, packing(on={"n2": ("default/db",)})) == set()
    waiting = _asked(node("n2"), _claim(**{SELECTED_NODE: "n1"}), _free())
    assert violated(waiting, packing(on={"n2": ("default/db",)})) == WRONG


def test_a_driver_that_publishes_its_room_has_none_elsewhere() -> None:
    """Of a node to come it has published nothing."""
    driver = as_struct({"metadata": {"name": "ebs.csi.aws.com"}, "spec": {"storageCapacity": True}}, core.CSIDriver)

    def with_room(size: str) -> Problem:
        room = {"storageClassName": "gp3", "nodeTopology": {"matchLabels": {HOSTNAME: "n1"}}, "capacity": size}
        return _asked(node("n1"), driver, _claim(kind="gp3"), as_struct(room, core.CSIStorageCapacity))

    enough, short = with_room("8Gi"), with_room("7Gi")
    assert violated(enough, packing(on={"n1": ("default/db",)})) == set()
    assert violated(enough, _in(enough, db=A)) == WRONG
    assert violated(short, packing(on={"n1": ("default/db",)})) == WRONG


def test_a_claim_that_another_pod_or_nobody_controls_is_no_ephemeral_volume() -> None:
    """Its name alone does not make it the pod's own; the claim of an earlier pod of the name goes with that one."""
    scratch = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "gp3"}}}}]
    claim = volume_claim("db-scratch", storage_class="gp3")

    def checked(claim: core.PersistentVolumeClaim, uid: str = "") -> set[str]:
        asked = problem(node_pool(), pod("db", uid=uid, volumes=scratch), claim, storage_class())
        return violated(asked, _in(asked, db=A))

    assert checked(claim) == WRONG
    assert checked(_owned(claim, "other")) == WRONG
    assert checked(_owned(claim, "db")) == set()
    assert checked(_owned(claim, "db"), uid="later") == set()
    assert checked(_owned(claim, "other"), uid="later") == WRONG


def test_what_comes_after_a_pod_leaves_its_ephemeral_volume() -> None:
    """A pod that waits has the one that is its own."""
    scratch = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "gp3"}}}}]
    bound = _owned(volume_claim("db-scratch", volume="pv-data"), "db"), volume(zone=B), storage_class()
    going = problem(node_pool(), node("n1", deleted=EPOCH), pod("db", node="n1", volumes=scratch), *bound)
    waiting = problem(node_pool(), pod("db", volumes=scratch), *bound)
    assert violated(going, _in(going, db=A)) == set()
    assert violated(waiting, _in(waiting, db=A)) == WRONG
    assert violated(waiting, _in(waiting, db=B)) == set()
