"""Nodes that vanish, come back, have doubles: no pod is planned onto a ghost, and no instance leaks."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.karpenter.conditions import Observation, unknown
from joinery.objects.karpenter.labels import DISRUPTED_TAINT, INITIALIZED, REGISTERED, TERMINATION_FINALIZER
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Condition, Node
from joinery.objects.snapshot.claims import with_status
from simulator import builders
from tests.functional.stand import Stand


def _settled(stand: Stand) -> Node:
    """The Node of a claim whose pod has run for an hour; there is room for two more pods."""
    stand.pods(1)
    stand.settle()
    stand.wait(3600)
    return _node(stand)


def _node(stand: Stand) -> Node:
    (node,) = stand.world.cluster.nodes.values()
    return node


def _vanish(stand: Stand) -> Node:
    """Somebody removed the Node, finalizer and all; the garbage collector of pods has taken its pods."""
    node = _settled(stand)
    stand.world.cluster.remove(node)
    for pod in list(stand.world.cluster.pods.values()):
        stand.world.cluster.remove(pod)
    return node


def test_no_pod_is_planned_onto_a_node_that_vanished(stand: Stand) -> None:
    """Its claim is registered, but nothing of it is on its way."""
    _vanish(stand)
    stand.pods(1)
    assert stand.provision()["launches"] == 1
    assert len(stand.claims) == 2


def test_a_node_that_joined_a_moment_ago_may_only_be_missing_from_the_list(stand: Stand) -> None:
    """The lists of a snapshot are read one after another: no second node is bought for it."""
    stand.pods(1)
    stand.provision()
    stand.boot()
    stand.live()
    node = _node(stand)
    stand.world.cluster.remove(node)
    stand.live()
    assert stand.claim.is_true("Ready")
    assert stand.provision()["launches"] == 0


def test_a_claim_whose_node_vanished_is_not_ready_and_says_so(stand: Stand) -> None:
    """Whoever looks at the claim learns what is wrong with it."""
    _vanish(stand)
    stand.live()
    states = {kind: stand.claim.condition(kind) for kind in ("Registered", "Initialized", "Ready")}
    assert {condition and condition.status for condition in states.values()} == {"Unknown"}
    assert "NodeVanished" in stand.event_reasons("NodeClaim")


def test_a_node_that_comes_back_is_made_ours_again(stand: Stand) -> None:
    """Its kubelet was started anew and has registered a bare Node: it gets labels, taints and finalizer again."""
    _vanish(stand)
    stand.live()
    stand.boot()
    assert REGISTERED not in _node(stand).metadata.labels
    stand.live()
    node = _node(stand)
    assert node.metadata.labels[REGISTERED] == node.metadata.labels[INITIALIZED] == "true"
    assert TERMINATION_FINALIZER in node.metadata.finalizers
    assert [owner.uid for owner in node.metadata.owner_references] == [stand.claim.metadata.uid]
    assert node.spec.taints == []
    assert stand.claim.is_true("Ready")
    stand.pods(1)
    assert stand.provision()["launches"] == 0
    stand.wait(16 * 60)
    stand.live()
    assert not stand.claim.is_deleting


@pytest.mark.parametrize("is_old_there", [False, True])
def test_a_kubelet_that_registers_anew_between_two_looks_gets_its_node_made_ours(
    stand: Stand, is_old_there: bool
) -> None:
    """Nobody saw the Node missing. The bare one would keep every pod away for good, and its claim would be Ready."""
    old = _settled(stand)
    silent = replace(old, status=replace(old.status, conditions=[_ready("Unknown", stand)]))
    stand.world.cluster.api.update(silent)
    live = stand.kubelets.register(stand.alive[0]).metadata.name
    stand.kubelets.become_ready(live)
    if not is_old_there:
        stand.world.cluster.remove(old)
    for _ in range(7):
        stand.live()
        stand.wait(60)
    node = _node(stand)
    assert (node.metadata.name, node.metadata.labels[INITIALIZED], node.spec.taints) == (live, "true", [])
    assert TERMINATION_FINALIZER in node.metadata.finalizers
    assert (stand.claim.status.node_name, stand.claim.is_true("Ready")) == (live, True)


@pytest.mark.parametrize("name", ["", "its-earlier-name"])
def test_a_claim_says_the_name_that_its_node_has(stand: Stand, name: str) -> None:
    """Whoever has to taint the Node within seconds asks for it by that name."""
    node = _settled(stand)
    stand.world.cluster.update_node_claim(stand.claim, with_status(stand.claim, node_name=name))
    stand.live()
    assert stand.claim.status.node_name == node.metadata.name


def test_a_node_that_was_only_missing_from_a_stale_list_loses_nothing(stand: Stand) -> None:
    """The next list shows it, as it was; its pods never noticed."""
    node = _settled(stand)
    stand.world.cluster.remove(node)
    stand.live()
    assert not stand.claim.is_true("Registered")
    stand.world.cluster.add(node)
    stand.live()
    assert (stand.claim.is_true("Ready"), len(stand.alive)) == (True, 1)
    found = _node(stand)
    assert (found.metadata.labels, found.spec, found.metadata.finalizers) == (
        node.metadata.labels, node.spec, node.metadata.finalizers,
    )  # fmt: skip


def test_a_node_that_does_not_come_back_is_replaced(stand: Stand) -> None:
    """It gets as long as a new instance has to join: fifteen minutes. Then claim and instance go."""
    _vanish(stand)
    stand.live()
    stand.wait(15 * 60 - 1)
    stand.live()
    assert not stand.claim.is_deleting
    stand.wait(1)
    stand.live()
    assert stand.claim.is_deleting
    assert "did not come back" in stand.messages("GivenUp")[stand.claim.metadata.name]
    stand.live()
    assert stand.alive == []
    stand.wait(31)
    stand.live()
    assert stand.claims == []


def test_a_claim_without_node_and_instance_goes_at_once(stand: Stand) -> None:
    """Nothing is left that could come back."""
    _vanish(stand)
    stand.world.cloud.terminate(stand.alive)
    stand.wait(31)
    stand.live()
    assert stand.claim.is_deleting
    stand.live()
    stand.live()
    assert stand.claims == []


def test_other_new_nodes_do_not_wait_for_the_pods_of_one_that_vanished(stand: Stand) -> None:
    """Steering gives pods of nodes that are on their way together their time; a ghost is on no way."""
    _vanish(stand)
    stand.live()
    stand.pods(1)
    stand.provision()
    stand.wait(10)
    stand.kubelets.become_ready(stand.kubelets.register(stand.alive[-1]).metadata.name)
    stand.live()
    stand.wait(30)
    stand.live()
    assert _node(stand).spec.taints == []


def test_a_node_that_came_back_is_drained_before_its_instance_goes(stand: Stand) -> None:
    """Its claim is deleted before lifecycle has met it again: a pod may already be there."""
    _vanish(stand)
    stand.live()
    stand.boot()
    stand.world.cluster.add(builders.pod("again", node=_node(stand).metadata.name, phase="Running"))
    stand.world.cluster.delete_node_claim(stand.claim)
    stand.wait(16)
    stand.live()
    assert "Evicted" in stand.event_reasons("Pod")
    assert len(stand.alive) == 1


# --- doubles: two Nodes with one provider ID ---


def _doubled(stand: Stand) -> tuple[Node, Node]:
    """A kubelet was started under another name: the Node that it left behind, not ready any more, and the live one."""
    left = _settled(stand)
    old = replace(left, status=replace(left.status, conditions=[_ready("Unknown", stand)]))
    live = replace(left, metadata=replace(left.metadata, name="renamed", uid="", resource_version=""))
    stand.world.cluster.add(old, live)
    return _stored(stand, left.metadata.name), _stored(stand, "renamed")


def _ready(status: str, stand: Stand) -> Condition:
    return Condition(type="Ready", status=status, last_transition_time=stand.world.clock.now())


def _stored(stand: Stand, name: str) -> Node:
    return stand.world.cluster.nodes[name]


def test_the_room_of_two_nodes_of_one_instance_counts_once(stand: Stand) -> None:
    """An instance has one kubelet: a plan must not fill the machine twice."""
    _doubled(stand)
    stand.pods(7)
    for pod in list(stand.world.cluster.pods.values()):
        stand.world.cluster.remove(pod)
    stand.pods(6)
    assert stand.provision()["launches"] == 1


def test_what_a_kubelet_left_behind_under_another_name_is_deleted(stand: Stand) -> None:
    """After five minutes; the claim, its instance and the live Node stay."""
    left, live = _doubled(stand)
    stand.live()
    stand.wait(5 * 60)
    stand.live()
    assert list(stand.world.cluster.nodes) == [live.metadata.name]
    assert (stand.claim.is_deleting, len(stand.alive)) == (False, 1)
    assert left.metadata.name not in stand.world.cluster.nodes


def test_deleting_what_a_kubelet_left_behind_does_not_retire_the_claim(stand: Stand) -> None:
    """A person cleans up: only the live Node stands for the machine."""
    left, _ = _doubled(stand)
    stand.world.cluster.delete_node(left)
    stand.live()
    assert not stand.claim.is_deleting


def test_a_new_claim_with_two_nodes_is_registered_once_one_is_left(stand: Stand) -> None:
    """It is not given up for what somebody has mended."""
    stand.pods(1)
    stand.provision()
    stand.boot()
    node = _node(stand)
    double = replace(node, metadata=replace(node.metadata, name="double", uid="", resource_version=""))
    stand.world.cluster.add(double)
    stand.live()
    condition = stand.claim.condition("Registered")
    assert condition is not None
    assert condition.reason == "MultipleNodesFound"
    stand.world.cluster.remove(_stored(stand, "double"))
    stand.live()
    assert stand.claim.is_true("Registered")


def test_a_new_claim_with_two_nodes_has_its_time_from_then_on(stand: Stand) -> None:
    """Lifecycle was switched off meanwhile: what the kubelet left behind under its first name is yet to be deleted."""
    stand.pods(1)
    stand.provision()
    stand.boot()
    (node,) = stand.world.cluster.nodes.values()
    stand.world.cluster.add(replace(node, metadata=replace(node.metadata, name="twin", uid="uid-twin")))
    stand.wait(60 * 60)
    stand.live()
    assert not stand.claim.is_deleting
    stand.wait(15 * 60)
    stand.live()
    assert stand.claim.is_deleting


# --- provider IDs that change ---


def test_a_claim_whose_provider_id_was_changed_gets_it_back_from_its_node(stand: Stand) -> None:
    """A Node's provider ID never changes: what the claim says is wrong, and its instance is no garbage."""
    _settled(stand)
    right, before = stand.claim.status.provider_id, stand.alive
    stand.world.cluster.update_node_claim(stand.claim, with_status(stand.claim, provider_id="aws:///us-east-1a/i-0bad"))
    stand.live()
    assert (stand.claim.status.provider_id, stand.claim.is_deleting) == (right, False)
    assert stand.alive == before
    assert "ProviderIDRestored" in stand.event_reasons("NodeClaim")
    stand.live()
    assert stand.claim.is_true("Ready")


def test_a_deleted_claim_whose_provider_id_was_changed_still_drains_its_node(stand: Stand) -> None:
    """Otherwise the instance would be terminated as garbage, with its pods."""
    _settled(stand)
    stand.world.cluster.update_node_claim(stand.claim, with_status(stand.claim, provider_id="aws:///us-east-1a/i-0bad"))
    stand.world.cluster.delete_node_claim(stand.claim)
    stand.live()
    stand.wait(16)
    stand.live()
    assert "Evicted" in stand.event_reasons("Pod")
    assert len(stand.alive) == 1


def test_a_node_of_the_same_name_with_another_provider_id_is_not_the_claims(stand: Stand) -> None:
    """Another instance got the address, and so the name: the old claim is as if its Node were gone."""
    node = _vanish(stand)
    stranger = builders.node(node.metadata.name, node_pool="", provider_id="aws:///us-east-1a/i-stranger")
    stand.world.cluster.add(stranger)
    stand.live()
    assert not stand.claim.is_true("Registered")
    stand.wait(15 * 60)
    for _ in range(2):
        stand.live()
    assert stand.alive == []
    kept = _stored(stand, node.metadata.name)
    assert (kept.metadata.deletion_timestamp, [taint.key for taint in kept.spec.taints]) == (None, [])
    assert DISRUPTED_TAINT not in {taint.key for taint in kept.spec.taints}


def test_giving_up_a_lost_node_wakes_provisioning(stand: Stand) -> None:
    """Pods may have been waiting for its room."""
    _vanish(stand)
    stand.live()
    stand.wait(timedelta(minutes=15).total_seconds())
    stand.rung()
    stand.live()
    assert Bell.PROVISIONING in stand.rung()


def _served(stand: Stand) -> tuple[Node, list[str]]:
    """A claim that has run a pod for an hour, and its instance has the claim's name as a tag."""
    node = _settled(stand)
    for _ in range(2):
        stand.live()
    return node, stand.alive


def _rest(stand: Stand) -> None:
    """Every door looks several times."""
    for _ in range(4):
        stand.provision()
        stand.live()
        stand.wait(70)


@pytest.mark.parametrize("emptied", ["the provider ID", "the status", "the status, and its Node is gone"])
def test_a_claim_that_has_lost_its_status_gets_it_back_and_nothing_is_bought(stand: Stand, emptied: str) -> None:
    """As a backup or a person leaves it. Its Node's owner reference and its instance's tag say whose they are."""
    _, before = _served(stand)
    claim = stand.claim
    status = with_status(claim, provider_id="") if emptied == "the provider ID" else _without_status(claim)
    if emptied.endswith("gone"):
        stand.world.cluster.remove(_node(stand))
    stand.world.cluster.update_node_claim(claim, status)
    _rest(stand)
    assert (stand.alive, stand.claim.status.provider_id) == (before, claim.status.provider_id)
    assert len(stand.world.cloud.requests) == 1
    if not emptied.endswith("gone"):
        assert stand.claim.is_true("Ready")
        assert (stand.claim.status.node_name, stand.claim.status.image_id) == (
            claim.status.node_name,
            claim.status.image_id,
        )
        assert stand.claim.status.capacity.keys() >= {"cpu", "memory", "pods"}
    assert "ProviderIDRestored" in stand.event_reasons("NodeClaim")


@pytest.mark.parametrize("is_provider_id_left", [False, True])
def test_a_deleted_claim_that_has_lost_its_status_drains_its_node_before_its_instance_goes(
    stand: Stand, is_provider_id_left: bool
) -> None:
    """Without its instance it would go at once, and the instance be terminated as nobody's."""
    _served(stand)
    (pod,) = stand.world.cluster.pods.values()
    stand.world.cluster.delete_node_claim(stand.claim)
    left = {"provider_id": stand.claim.status.provider_id} if is_provider_id_left else {}
    stand.world.cluster.update_node_claim(stand.claim, with_status(_without_status(stand.claim), **left))
    stand.live()
    assert (len(stand.alive), len(stand.claims)) == (1, 1)
    for _ in range(8):
        stand.live()
        stand.wait(30)
    assert (stand.alive, stand.claims) == ([], [])
    assert "Evicted" in stand.event_reasons("Pod")
    assert pod.key not in stand.world.cluster.pods


@pytest.mark.parametrize("condition", ["Launched", "Launched and Registered"])
def test_a_claim_with_an_instance_is_launched_whatever_its_condition_says(stand: Stand, condition: str) -> None:
    """Karpenter leaves such claims. What EC2 lists was launched: it is registered, initialized, and may drift."""
    _, before = _served(stand)
    claim = stand.claim
    kept = [one for one in claim.status.conditions if one.type not in ("Ready", *condition.split(" and "))]
    unlaunched = unknown("Launched", "AwaitingReconciliation", "", Observation(stand.world.clock.now(), 1))
    stand.world.cluster.update_node_claim(claim, with_status(claim, conditions=[*kept, unlaunched]))
    _rest(stand)
    assert (stand.alive, stand.claim.is_true("Ready")) == (before, True)


def test_a_claim_whose_instance_booted_before_it_was_called_launched_is_registered(stand: Stand) -> None:
    """Its Node came, and nobody took it up: the pods waited for five minutes, and another was bought."""
    stand.pods(1)
    stand.provision()
    claim = stand.claim
    stand.world.cluster.update_node_claim(claim, with_status(claim, conditions=[]))
    stand.wait(360)
    stand.boot()
    _rest(stand)
    assert (len(stand.alive), stand.claim.is_true("Ready")) == (1, True)


def test_a_copy_of_a_claim_goes_without_its_owners_node_and_instance(stand: Stand) -> None:
    """Somebody copies a claim with its status, and deletes the copy: nothing of the owner's is touched."""
    node, before = _served(stand)
    owner = stand.claim
    for is_deleted in (False, True):
        copy = with_metadata(owner, name=f"copy-{is_deleted}", uid=f"uid-{is_deleted}")
        stand.world.cluster.add(with_metadata(copy, creation_timestamp=stand.world.clock.now()))
        if is_deleted:
            stand.world.cluster.delete_node_claim(copy)
        _rest(stand)
        assert (stand.claims, stand.alive, _node(stand)) == ([stand.claim], before, node)
        assert stand.claim.metadata.name == owner.metadata.name
    assert "InstanceClaimedTwice" in stand.event_reasons("NodeClaim")
    assert "Evicted" not in stand.event_reasons("Pod")


def test_the_claim_that_the_tag_names_takes_the_node_over_and_nothing_is_bought(stand: Stand) -> None:
    """Provisioning does not ask EC2 for tags, and Kubernetes deletes a Node whose owners are all gone."""
    _, before = _served(stand)
    copy = with_metadata(stand.claim, name="tagged", uid="uid-tagged")
    stand.world.cluster.add(with_metadata(copy, creation_timestamp=stand.world.clock.now()))
    stand.world.cloud.tag(before[0], {"karpenter.sh/nodeclaim": "tagged"})
    for _ in range(4):
        stand.live()
        stand.provision()
        stand.wait(30)
    assert (stand.claim.metadata.name, stand.alive, len(stand.world.cloud.requests)) == ("tagged", before, 1)
    assert "uid-tagged" in [owner.uid for owner in _node(stand).metadata.owner_references]


def _without_status(claim: NodeClaim) -> NodeClaim:
    return claim.model_copy(update={"status": type(claim.status)()})
