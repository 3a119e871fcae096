"""The template's rules send what the doors understand, and each sample event reaches one function."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from joinery.decisions.installation.requests import is_request
from joinery.decisions.interruption.envelope import detail_type
from joinery.decisions.interruption.notice import READERS
from joinery.objects.karpenter.labels import OWN_GROUP
from tests.tree.resources import DOORS, RESOURCES, logical_id, resources
from tools.template import ROOT

RULES = resources("AWS::Events::Rule")


def test_six_rules_feed_the_interruption_queue_with_what_is_understood() -> None:
    """Each kind of event that the parser knows is sent by one rule, and no rule sends what it does not know."""
    patterns = [rule["EventPattern"] for rule in RULES.values()]
    sent = [(source, kind) for pattern in patterns for source in pattern["source"] for kind in pattern["detail-type"]]

    assert len(RULES) == 6
    assert sorted(sent) == sorted(sender for sender in READERS if sender[0] != OWN_GROUP)
    assert all(logical_id(rule["Targets"][0]["Arn"]) == "InterruptionQueue" for rule in RULES.values())


#: What no rule sends, because no node is about to go: the volume and the host of Health are told apart by the reader.
UNSENT = {
    "asg-launch-lifecycle-action",
    "asg-terminate-lifecycle-action",
    "capacity-block-delivered",
    "capacity-reservation-reclamation-completed",
    "future-reservation-active",
    "health-abuse",
}


@pytest.mark.parametrize("path", sorted((ROOT / "tests/data/real/eventbridge").glob("*.json")), ids=lambda p: p.stem)
def test_every_real_event_matches_the_rule_whose_reader_it_has(path: Path) -> None:
    """One rule for what the parser reads, none for what it would drop.

    EventBridge writes the detail-type with a hyphen.
    """
    event = json.loads(path.read_text())
    kind = detail_type(event)
    sent_by = [
        name
        for name, rule in RULES.items()
        if event["source"] in rule["EventPattern"]["source"] and kind in rule["EventPattern"]["detail-type"]
    ]

    assert len(sent_by) == (path.stem not in UNSENT)
    assert bool(sent_by) == ((event["source"], kind) in READERS)


def test_only_those_rules_may_send_interruptions_and_only_over_tls() -> None:
    """Nobody else's rule can retire a node."""
    allow, deny = RESOURCES["InterruptionQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    senders = {logical_id(arn) for arn in allow["Condition"]["ArnEquals"]["aws:SourceArn"]}

    assert senders == set(resources("AWS::Events::Rule"))
    assert deny["Effect"] == "Deny"


# --- sample events ---
EVENTS = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "events").glob("*.json"))}

Pattern = Callable[[dict[str, Any]], bool]


def from_queue(name: str) -> Pattern:
    """Whether an event is a batch of this queue."""
    return lambda event: all(f"-{name}-" in r["eventSourceARN"] for r in event.get("Records", [{"eventSourceARN": ""}]))


WAKES: dict[str, Pattern] = {
    "webhook": lambda event: (event.get("version") == "2.0" and "rawPath" in event) or "httpMethod" in event,
    "provisioning": from_queue("ProvisioningQueue"),
    "lifecycle": from_queue("LifecycleQueue"),
    "interruption": from_queue("InterruptionQueue"),
    "disruption": from_queue("DisruptionQueue"),
    "expiration": lambda event: event.get("door") == "expiration",
    "catalog": lambda event: event.get("door") == "catalog",
    "installer": is_request,
}


@pytest.mark.parametrize("name", EVENTS)
def test_a_sample_event_wakes_exactly_one_door(name: str) -> None:
    """The file's name says which, and its form says the same."""
    assert [door for door, wakes in WAKES.items() if wakes(EVENTS[name])] == [name.partition("_")[0]]


def test_every_door_has_a_sample_event() -> None:
    """Whoever changes a door can try it."""
    assert {name.partition("_")[0] for name in EVENTS} == set(DOORS)


@pytest.mark.parametrize("name", [name for name in EVENTS if name.startswith("interruption_")])
def test_a_sample_interruption_matches_exactly_one_rule(name: str) -> None:
    """What the samples show is what EventBridge would deliver."""
    for record in EVENTS[name]["Records"]:
        envelope = json.loads(record["body"])
        matching = [
            rule
            for rule, properties in resources("AWS::Events::Rule").items()
            if all(envelope[field] in values for field, values in properties["EventPattern"].items())
        ]
        assert len(matching) == 1


def test_every_rule_has_a_sample_event() -> None:
    """No kind of interruption is untried."""
    bodies = [json.loads(r["body"]) for n, e in EVENTS.items() if n.startswith("interruption_") for r in e["Records"]]
    sent = [kind for rule in RULES.values() for kind in rule["EventPattern"]["detail-type"]]

    assert sorted(sent) == sorted({body["detail-type"] for body in bodies})
