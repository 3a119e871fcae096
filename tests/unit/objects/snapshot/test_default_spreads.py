"""Pods that ask for no topology spread get their scheduler's, where somebody selects them."""

import dataclasses
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from joinery.objects.default_spread import DefaultSpread
from joinery.objects.kubernetes.core import (
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    Pod,
    PodTemplateSpec,
    Service,
    TopologySpreadConstraint,
)
from joinery.objects.kubernetes.shapes import Shape
from joinery.objects.kubernetes.workloads import Workload
from joinery.objects.snapshot.default_spreads import SpreadFiller
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.builders import EPOCH, owner, pod

ZONE = "topology.kubernetes.io/zone"
ZONES = SpreadFiller((DefaultSpread(ZONE, 1),))


def _service(name: str, namespace: str = "default", **selector: str) -> Service:
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector} if selector else {}},
        Service,
    )


def _set(name: str, selector: Any) -> Workload:
    meta = ObjectMeta(name=name, namespace="default")
    return msgspec.convert({"metadata": msgspec.to_builtins(meta), "spec": {"selector": selector}}, Workload)


def _selector(one: Pod, **objects: Any) -> LabelSelector | None:
    """By which the pod is spread over zones; None where it is not."""
    snapshot = Snapshot(now=EPOCH, pods=(one,), **objects)
    constraints = SpreadFiller(ZONES.spreads).filled(snapshot).pods[0].spec.topology_spread_constraints
    assert [(each.topology_key, each.max_skew, each.when_unsatisfiable) for each in constraints] in (
        [],
        [(ZONE, 1, "DoNotSchedule")],
    )
    return constraints[0].label_selector if constraints else None


WEB = pod("web-1", labels={"app": "web", "tier": "front"}, owner="web")


def test_pods_of_a_service_are_spread_together() -> None:
    """All Services that select the pod count, and no others."""
    services = (
        _service("web", app="web"), _service("front", tier="front"), _service("other", app="db"),
        _service("elsewhere", "prod", app="web"), _service("by-hand"),
    )  # fmt: skip
    assert _selector(WEB, services=services) == LabelSelector(match_labels={"app": "web", "tier": "front"})


def test_pods_of_a_replica_set_are_spread_among_themselves() -> None:
    """So those of an older revision do not count."""
    made = _set("web", {"matchLabels": {"app": "web", "pod-template-hash": "a1"}})
    assert _selector(WEB, replica_sets=(made,)) == LabelSelector(
        match_expressions=[
            LabelSelectorRequirement(key="app", operator="In", values=["web"]),
            LabelSelectorRequirement(key="pod-template-hash", operator="In", values=["a1"]),
        ]
    )


def test_the_expressions_of_a_stateful_set_count() -> None:
    """As they are written."""
    expression = {"key": "app", "operator": "Exists"}
    db = pod("db-0", labels={"app": "db"}, owner=owner("StatefulSet", "db"))
    found = _selector(db, stateful_sets=(_set("db", {"matchExpressions": [expression]}),))
    assert found is not None
    assert [one.operator for one in found.match_expressions] == ["Exists"]


def test_a_replication_controller_selects_by_plain_labels() -> None:
    """It is of an older time."""
    old = pod("old-1", labels={"app": "old"}, owner=owner("ReplicationController", "old", api_version="v1"))
    found = _selector(old, replication_controllers=(_set("old", {"app": "old"}),))
    assert found is not None
    assert [(one.key, one.values) for one in found.match_expressions] == [("app", ["old"])]


def test_a_pod_that_nobody_selects_is_not_spread() -> None:
    """A bare one, one of a Job, and one of somebody else's kind with a ReplicaSet's name."""
    made = _set("web", {"matchLabels": {"app": "web"}})
    foreign = pod("web-1", labels={"app": "web"}, owner=owner("ReplicaSet", "web", api_version="example.com/v1"))
    assert _selector(pod("bare", labels={"app": "web"}), replica_sets=(made,)) is None
    assert _selector(foreign, replica_sets=(made,)) is None
    assert _selector(WEB) is None


def test_a_pod_s_own_spread_comes_first() -> None:
    """With one constraint of its own it gets none of the others, whatever that is over."""
    own = {"topologyKey": "rack", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"}
    one = pod("web-1", labels={"app": "web"}, spread=[own])
    filled = ZONES.filled(Snapshot(now=EPOCH, pods=(one,), services=(_service("web", app="web"),)))
    assert filled.pods == (one,)


def test_a_daemon_needs_no_spread() -> None:
    """Its node is the only one that counts for it."""
    agent = pod("agent-1", labels={"app": "web"}, owner=owner("DaemonSet", "agent"))
    assert _selector(agent, services=(_service("web", app="web"),)) is None


def test_a_profile_is_for_the_pods_that_name_its_scheduler() -> None:
    """The default one is that of pods that name none."""
    filler = SpreadFiller(
        (DefaultSpread(ZONE, 1, scheduler="batch"), DefaultSpread("rack", 1, scheduler="default-scheduler"))
    )
    pods = tuple(
        pod(name or "none", labels={"app": "web"}, scheduler_name=name)
        for name in ("", "default-scheduler", "batch", "x")
    )
    filled = filler.filled(Snapshot(now=EPOCH, pods=pods, services=(_service("web", app="web"),)))
    keys = [[each.topology_key for each in one.spec.topology_spread_constraints] for one in filled.pods]
    assert keys == [["rack"], ["rack"], [ZONE], []]


def test_only_what_says_something_of_the_pods_is_read() -> None:
    """Services, and those who make the pods; nothing where all pods say it themselves."""
    job = pod("job", owner=owner("Job", "job", api_version="batch/v1"))
    db = pod("db-0", owner=owner("StatefulSet", "db"))
    assert ZONES.fields_wanted([WEB, job, db]) == ("services", "replica_sets", "stateful_sets")
    assert ZONES.fields_wanted([pod("a", spread=[{"topologyKey": "rack"}])]) == ()
    assert SpreadFiller(()).fields_wanted([WEB]) == ()


def test_a_pod_that_has_not_changed_stays_the_same_object() -> None:
    """What was worked out of it is kept (``joinery.objects.snapshot.known``); with another selector it is another."""
    filler, services = SpreadFiller(ZONES.spreads), (_service("web", app="web"),)
    before = Snapshot(now=EPOCH, pods=(WEB,), services=services)
    first = filler.filled(before).pods[0]
    assert filler.filled(before).pods[0] is first
    assert filler.filled(Snapshot(now=EPOCH, pods=(WEB,), services=(_service("front", tier="front"),))).pods[0] != first
    changed = replace(WEB, spec=replace(WEB.spec, priority=7))
    assert filler.filled(Snapshot(now=EPOCH, pods=(changed,), services=services)).pods[0].spec.priority == 7


def _shape_selector(shape: Shape, *services: Service) -> LabelSelector | None:
    """By which pods of the shape will be spread over zones; None where they are not."""
    (given,) = ZONES.of_shapes({"default/spare": shape}, lambda: services).values()
    constraints = given.template.spec.topology_spread_constraints if given.template else ()
    return constraints[0].label_selector if constraints else None


SHAPE = Shape(template=PodTemplateSpec(metadata=ObjectMeta(labels={"app": "web", "tier": "front"})))


def test_what_stands_for_pods_is_spread_as_they_will_be() -> None:
    """By the Services that will select them, and by the selector of their workload."""
    assert _shape_selector(SHAPE, _service("web", app="web"), _service("other", app="other")) == LabelSelector(
        match_labels={"app": "web"}
    )
    of_workload = _shape_selector(dataclasses.replace(SHAPE, selector={"tier": "front"}))
    assert of_workload == LabelSelector(
        match_expressions=[LabelSelectorRequirement(key="tier", operator="In", values=["front"])]
    )


def test_services_are_asked_for_only_where_something_may_be_spread_by_them() -> None:
    """No template, or one with a spread of its own: nobody is asked."""
    own = replace(PodTemplateSpec().spec, topology_spread_constraints=[TopologySpreadConstraint(topology_key="rack")])
    shapes = {"default/a": Shape(missing="gone"), "default/b": Shape(template=PodTemplateSpec(spec=own))}
    assert ZONES.of_shapes(shapes, lambda: pytest.fail("read")) == shapes
    assert SpreadFiller(()).of_shapes({"default/c": SHAPE}, lambda: pytest.fail("read")) == {"default/c": SHAPE}


def test_what_nobody_selects_is_not_spread() -> None:
    """And neither is what a Service of another namespace would."""
    assert _shape_selector(SHAPE, _service("web", "elsewhere", app="web")) is None
