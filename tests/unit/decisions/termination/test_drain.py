"""Which pods of a node that goes are asked, made or waited for."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.termination.drain import grace, plan_drain
from joinery.objects.karpenter.labels import DISRUPTED_TAINT, DO_NOT_DISRUPT
from joinery.objects.kubernetes.core import Pod
from simulator import builders
from simulator.clock import START

MINUTE = timedelta(minutes=1)
DAEMON = builders.owner("DaemonSet", "agent")
MIRROR = builders.owner("Node", "node-1", api_version="v1")
CRITICAL = {"priority_class_name": "system-cluster-critical"}


def _pod(name: str, **spec: Any) -> Pod:
    return builders.pod(name, node="node-1", **spec)


def _names(pods: tuple[Pod, ...]) -> list[str]:
    return [each.metadata.name for each in pods]


def test_ordinary_pods_are_asked_first_and_all_at_once() -> None:
    """The first tier goes together; what others depend on stays for now."""
    drain = plan_drain(
        [_pod("a"), _pod("b"), _pod("agent", owner=DAEMON), _pod("dns", **CRITICAL)], now=START, deadline=None
    )
    assert _names(drain.evict) == ["a", "b"]
    assert len(drain.waiting) == 4


@pytest.mark.parametrize(
    ("left", "asked"),
    [
        (["agent", "dns", "net"], "agent"),
        (["dns", "net"], "dns"),
        (["net"], "net"),
    ],
)
def test_tiers_follow_one_another(left: list[str], asked: str) -> None:
    """DaemonSets follow ordinary pods, critical pods follow them, critical DaemonSets go last."""
    pods = {
        "agent": _pod("agent", owner=DAEMON),
        "dns": _pod("dns", **CRITICAL),
        "net": _pod("net", owner=DAEMON, priority_class_name="system-node-critical"),
    }
    assert _names(plan_drain([pods[name] for name in left], now=START, deadline=None).evict) == [asked]


def test_a_tier_is_over_only_when_its_pods_are_gone() -> None:
    """A pod that is still terminating holds back those that it may depend on."""
    drain = plan_drain([_pod("a", deleted=START + MINUTE), _pod("dns", **CRITICAL)], now=START, deadline=None)
    assert drain.evict == ()
    assert _names(drain.waiting) == ["a", "dns"]


@pytest.mark.parametrize(
    "spec",
    [
        {"phase": "Succeeded"},
        {"phase": "Failed"},
        {"owner": MIRROR},
        {"tolerations": [{"operator": "Exists"}]},
        {"tolerations": [{"key": DISRUPTED_TAINT, "operator": "Exists", "effect": "NoSchedule"}]},
        {"deleted": START - timedelta(seconds=61)},
    ],
    ids=["succeeded", "failed", "static", "tolerates all", "tolerates disruption", "stuck"],
)
def test_some_pods_keep_no_node(spec: dict[str, Any]) -> None:
    """Finished, static, tolerating and stuck pods are neither asked nor waited for."""
    assert plan_drain([_pod("a", **spec)], now=START, deadline=None).waiting == ()


@pytest.mark.parametrize("value", ["true", "10m"])
def test_a_protected_pod_is_waited_for_but_never_asked(value: str) -> None:
    """``do-not-disrupt`` is the user's word."""
    drain = plan_drain([_pod("a", annotations={DO_NOT_DISRUPT: value})], now=START, deadline=None)
    assert (_names(drain.waiting), drain.evict) == (["a"], ())


def test_before_its_deadline_a_node_is_drained_politely() -> None:
    """With time left for every pod's own grace, nobody is forced."""
    drain = plan_drain([_pod("a", termination_grace_period_seconds=30)], now=START, deadline=START + MINUTE)
    assert (_names(drain.evict), drain.force) == (["a"], ())


def test_a_pod_whose_grace_would_outlast_the_deadline_is_made_to_go() -> None:
    """It gets what is left of its grace, whatever its tier or protection."""
    protected = _pod("a", termination_grace_period_seconds=300, annotations={DO_NOT_DISRUPT: "true"})
    critical = _pod("dns", termination_grace_period_seconds=7200, **CRITICAL)
    drain = plan_drain([protected, critical], now=START, deadline=START + MINUTE)
    assert _names(drain.force) == ["a", "dns"]


@pytest.mark.parametrize(("left", "forced"), [(29, ["a"]), (31, [])])
def test_a_pod_that_says_no_grace_has_what_the_api_server_gives(left: int, forced: list[str]) -> None:
    """Otherwise it would keep its node past every deadline."""
    protected = _pod("a", annotations={DO_NOT_DISRUPT: "true"})
    assert _names(plan_drain([protected], now=START, deadline=START + timedelta(seconds=left)).force) == forced


def test_a_pod_already_going_beyond_the_deadline_is_shortened() -> None:
    """A user's own long deletion must not keep the node past its deadline."""
    drain = plan_drain([_pod("a", deleted=START + 2 * MINUTE)], now=START, deadline=START + MINUTE)
    assert _names(drain.force) == ["a"]


def test_a_forced_pod_always_gets_a_second() -> None:
    """Zero seconds would let a second pod of the same name start while the first still runs."""
    assert grace(START, START + MINUTE) == 60
    assert grace(START, START - MINUTE) == 1


pods = st.builds(
    lambda name, daemon, critical, protected, deleted: _pod(
        name,
        owner=DAEMON if daemon else None,
        annotations={DO_NOT_DISRUPT: "true"} if protected else {},
        deleted=START if deleted else None,
        termination_grace_period_seconds=30,
        **(CRITICAL if critical else {}),
    ),
    st.sampled_from("abcdef"),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(pods, max_size=8), st.none() | st.integers(-100, 100))
def test_whoever_is_asked_or_forced_is_waited_for_and_nobody_is_both(listed: list[Pod], left: int | None) -> None:
    """The three answers are consistent for any pods and any deadline."""
    deadline = None if left is None else START + timedelta(seconds=left)
    drain = plan_drain(listed, now=START, deadline=deadline)
    waiting, evict, force = ({id(p) for p in group} for group in (drain.waiting, drain.evict, drain.force))
    assert evict <= waiting
    assert force <= waiting
    assert not evict & force
    assert deadline is not None or not force
