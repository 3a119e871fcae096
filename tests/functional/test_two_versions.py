"""While a release replaces another, the functions of both run for a minute, over the same objects.

The other version is played by what it would leave behind: fields, annotations, conditions and codes that this one does
not know, hashes of another version, a catalogue and a secret with more in them. Each holds both ways: the newer version
of today is the older one of the next release.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pytest

from joinery.gateways.ec2.catalog.document import decode, encode
from joinery.objects.annotations.canaries import CanaryOutcome, verdicts_of
from joinery.objects.annotations.disruption import record_of
from joinery.objects.annotations.recent_disruptions import retirements
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.hashing import HASH_VERSION
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.webhook_secret import parse
from joinery.objects.snapshot.claims import DRIFTED, annotated
from simulator import builders
from simulator.kubernetes.resources import with_fields, with_metadata
from simulator.world import World
from tests.functional.canarying import NEW, Rollout
from tests.functional.disrupting import disrupt, is_tainted, now, others, running, stays
from tests.functional.stand import Stand

#: What only the other version knows.
FIELD, ANNOTATION, CONDITION = "ofTheOther", f"{labels.OWN_GROUP}/of-the-other", "OfTheOther"
HASHES = (
    (labels.NODE_POOL_HASH, labels.NODE_POOL_HASH_VERSION),
    (labels.NODE_CLASS_HASH, labels.NODE_CLASS_HASH_VERSION),
)


def test_what_the_other_version_adds_changes_nothing(world: World) -> None:
    """A node is bought, replaced by a command, and drained, while the other version adds to everything in each turn."""
    stand = Stand(world).with_defaults()
    (old,) = running(stand)
    _add_everywhere(stand)
    disrupt(stand, old)
    for _ in range(8):
        _add_everywhere(stand)
        stand.boot()
        stand.live()
        stand.bind()
        stand.provision()
        world.cluster.end_grace()
    (new,) = stand.claims
    assert new.metadata.name != old.metadata.name
    assert len(stand.alive) == 1
    assert new.metadata.annotations[ANNOTATION] == "kept"
    assert new.condition(CONDITION) is not None


def _add_everywhere(stand: Stand) -> None:
    """As if the other version had just written every object of ours: to each JSON object a field more."""
    cluster = stand.world.cluster
    for claim in list(stand.claims):
        conditions = [one for one in claim.status.conditions if one.type != CONDITION]
        other = Condition(type=CONDITION, status="True", reason="Other", last_transition_time=stand.world.clock.now())
        status = with_fields(claim.status, conditions=[*conditions, other])
        cluster.add(with_fields(_added(claim), status=status))
    for other_object in (*cluster.node_pools.values(), *cluster.node_classes.values(), *cluster.nodes.values()):
        cluster.add(_added(other_object))


def _added(item: Any) -> Any:
    texts = {key: _with_field(text) for key, text in item.metadata.annotations.items()}
    return with_metadata(item, annotations={**texts, ANNOTATION: "kept"})


def _with_field(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, list):
        return json.dumps([{**one, FIELD: [1]} if isinstance(one, dict) else one for one in value])
    # That of pods by their needs is a mapping, whose keys are no fields.
    return json.dumps({**value, FIELD: {"a": 1}}) if isinstance(value, dict) else text


@pytest.mark.parametrize("field", ["reason", "waitsFor"])
def test_a_command_with_a_code_of_the_other_version_is_taken_back(stand: Stand, field: str) -> None:
    """What it is for is not known, so the node stays and takes pods. The other version decides about it again."""
    (old,) = running(stand)
    disrupt(stand, old)
    (new,) = others(stand, [old])
    _edit(stand, old, labels.DISRUPTION_COMMAND, {field: "OfTheOther"})
    stand.live()
    stand.live()
    assert stays(stand, old)
    assert now(stand, new).is_deleting

    disrupt(stand, now(stand, old))
    assert is_tainted(stand, old)
    assert record_of(now(stand, old)) is not None


def _edit(stand: Stand, claim: NodeClaim, key: str, fields: Mapping[str, Any]) -> None:
    before = now(stand, claim)
    text = json.dumps({**json.loads(before.metadata.annotations[key]), **fields})
    stand.world.cluster.update_node_claim(before, annotated(before, {key: text}))


def test_a_hash_of_the_other_version_is_no_drift(stand: Stand) -> None:
    """The two stamp claims by turns, each with hashes of its own, and no node goes because of that."""
    claims = running(stand, 2)
    for _ in range(3):
        for claim in claims:
            _stamp(stand, claim, "joinery-v0")
        stand.live()
        stand.consolidate()
        assert [now(stand, claim).condition(DRIFTED) for claim in claims] == [None, None]
        for claim in claims:
            assert {now(stand, claim).metadata.annotations[version] for _, version in HASHES} == {HASH_VERSION}
    assert stand.claims == [now(stand, claim) for claim in claims]


def test_a_node_that_has_drifted_stays_so_whoever_stamps_it(stand: Stand) -> None:
    """Else the other version's hash would hide that the template has changed."""
    (claim,) = running(stand)
    (pool,) = stand.world.cluster.node_pools.values()
    template = with_fields(pool.spec.template, metadata=with_fields(pool.spec.template.metadata, labels={"team": "a"}))
    stand.world.cluster.add(with_fields(pool, spec=with_fields(pool.spec, template=template)))
    stand.live()
    for _ in range(2):
        assert now(stand, claim).is_true(DRIFTED)
        # That of a claim which is marked stays, and the version alone is stamped (lifecycle.joining.adoption).
        stamps = {version: "joinery-v2" for _, version in HASHES}
        stand.world.cluster.update_node_claim(now(stand, claim), annotated(now(stand, claim), stamps))
        stand.live()
    assert now(stand, claim).is_true(DRIFTED)


def _stamp(stand: Stand, claim: NodeClaim, version: str) -> None:
    stamps = {key: text for hashed, by in HASHES for key, text in ((hashed, "1"), (by, version))}
    stand.world.cluster.update_node_claim(now(stand, claim), annotated(now(stand, claim), stamps))


def test_a_failed_trial_counts_beside_an_outcome_that_is_not_known() -> None:
    """An image that failed is not tried anew because the other version has written something about another one."""
    rollout = Rollout()
    rollout.publish()
    failed = {"image": NEW, "outcome": "Failed", "at": "2026-08-24T09:00:00Z", "why": "its node is not ready"}
    paused = {"image": "ami-new-arm64", "outcome": "Paused", "at": "2026-08-24T09:00:00Z"}
    (node_class,) = rollout.world.cluster.node_classes.values()
    said = json.dumps([paused, failed, "no object"])
    rollout.world.cluster.add(with_metadata(node_class, annotations={labels.CANARIES: said}))
    rollout.run(3)
    (node_class,) = rollout.world.cluster.node_classes.values()
    assert verdicts_of(node_class)[NEW].outcome is CanaryOutcome.FAILED
    assert len(rollout.stand.claims) == 3


def test_what_is_remembered_of_a_pool_is_read_one_by_one(world: World) -> None:
    """A rate counts the nodes that can be read, whatever is written beside them."""
    at = world.clock.now()
    remembered: Iterable[Any] = ({"claim": "a", "at": at.isoformat()}, {"claim": 7, "since": "?"}, {"claim": "b"})
    annotations = {labels.DISRUPTION_RATE: "1 node per 1h", labels.DISRUPTED_LATELY: json.dumps(list(remembered))}
    pool = with_metadata(builders.node_pool(), annotations=annotations)
    assert [one.claim for one in retirements(pool, (), at)] == ["a"]


def test_a_catalogue_of_the_other_version_is_read(stand: Stand) -> None:
    """Both write it, and both plan by it."""
    document = json.loads(encode(stand.world.cloud.catalog()))
    document |= {"apiVersion": "joinery.dev/v2", FIELD: {"a": 1}}
    document["offerings"] = [{**one, FIELD: 1} for one in document["offerings"]]
    document["zones"] = [{**one, FIELD: 1} for one in document["zones"]]
    stand.world.store.put_catalog(decode(msgspec.json.encode(document)))
    running(stand)


def test_a_webhook_secret_of_the_other_version_is_read() -> None:
    """A door that could not read it would refuse the API server's calls."""
    token = "x" * 43
    assert parse(json.dumps({"token": token, FIELD: {"a": 1}})).valid == {token}
