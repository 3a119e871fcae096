"""Calls that do not depend on each other are made side by side, and a run ends in time."""

import json
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from threading import Barrier, Lock
from typing import Any, cast

import pytest

from joinery.adapters import log_left_out
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.provisioning import ProvisioningController
from joinery.controllers.telemetry import in_mode, logger, of_member
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.gateway import Cloud
from joinery.gateways.kubernetes.gateway import Cluster
from joinery.gateways.workers import OneByOne, Threads, Workers
from joinery.objects.errors import JoineryError, UnavailableError
from simulator import builders
from tests.functional.stand import Stand

POOLS = ("blue", "green", "red")


class _Meeting:
    """A gateway whose calls of one method wait until as many have begun as there are NodePools.

    Alone a call would wait until the barrier breaks, and fail.
    """

    def __init__(self, gateway: Any, method: str) -> None:
        self._gateway = gateway
        self._method = method
        self._barrier = Barrier(len(POOLS), timeout=10)
        self._lock = Lock()

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._gateway, method)
        if method != self._method:
            return call

        def together(*args: Any) -> Any:
            self._barrier.wait()
            with self._lock:
                return call(*args)

        return together


def _pods_of_three_pools(stand: Stand) -> None:
    for name in POOLS:
        stand.world.cluster.add(
            builders.node_pool(name, requirements=["karpenter.k8s.aws/instance-size=xlarge"]),
            builders.pod(name, node_selector={"karpenter.sh/nodepool": name}),
        )
    stand.live()


def test_launches_and_claims_are_made_side_by_side(stand: Stand) -> None:
    """A CreateFleet call takes seconds, and a plan may need dozens: one after another they outlast the function."""
    _pods_of_three_pools(stand)
    gateways = replace(
        stand.gateways,
        workers=Threads(len(POOLS)),
        cloud=cast("Cloud", _Meeting(stand.gateways.cloud, "launch")),
        cluster=cast("Cluster", _Meeting(stand.gateways.cluster, "create_node_claim")),
    )
    outcome = ProvisioningController(gateways, stand.settings).reconcile(stand.invocation())
    assert outcome["launched"] == len(POOLS)
    assert all(claim.is_true("Launched") for claim in stand.claims)


def test_a_launch_that_fails_touches_only_its_own_claims(stand: Stand) -> None:
    """The others of the same run get their instances."""
    _pods_of_three_pools(stand)
    stand.world.cloud.fail_next("launch", UnavailableError("timed out"))
    with pytest.raises(UnavailableError):
        stand.provision()
    assert sorted(claim.is_true("Launched") for claim in stand.claims) == [False, True, True]


def test_a_run_that_has_no_time_left_asks_ec2_for_nothing(stand: Stand) -> None:
    """Killed in the middle of a call it would not know its outcome. The claims are written, and are launched later."""
    _pods_of_three_pools(stand)
    stand.rung()
    late = Invocation("late", lambda: 20.0)
    outcome = ProvisioningController(stand.gateways, stand.settings).reconcile(late)
    assert (outcome["launches"], outcome["launched"], stand.alive) == (len(POOLS), 0, [])
    assert Bell.LIFECYCLE in stand.rung()
    stand.provision()
    assert len(stand.alive) == len(POOLS)


@pytest.mark.parametrize("workers", [OneByOne(), Threads(2)], ids=["one by one", "threads"])
def test_answers_come_in_the_order_of_the_calls(workers: Workers) -> None:
    """An error is the answer of its own call."""
    failure = UnavailableError("timed out")

    def fail() -> int:
        raise failure

    answers: list[int | JoineryError] = workers.run([lambda: 1, fail, lambda: 3])
    assert answers == [1, failure, 3]


@pytest.mark.parametrize("workers", [OneByOne(), Threads(2)], ids=["one by one", "threads"])
def test_every_line_of_a_run_names_its_cluster_and_mode(workers: Workers, capsys: pytest.CaptureFixture[str]) -> None:
    """Also those about answers of AWS, which may come in another thread, and those after them."""

    def run() -> None:
        of_member("green")
        in_mode("observe")
        log_left_out("one answer")
        workers.run([partial(log_left_out, "another"), partial(of_member, "blue")])
        logger.info("done")

    copy_context().run(run)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["cluster"], line["mode"]) for line in lines] == [("green", "observe")] * 3


def test_a_mistake_of_our_own_is_no_answer() -> None:
    """It is raised: nobody would know what to do about it."""
    with pytest.raises(ZeroDivisionError):
        Threads(2).run([lambda: 1 // 0, lambda: 1])


def test_time_is_measured_by_what_remains() -> None:
    """Lambda tells how long a call may still take, and nothing else needs a clock."""
    remaining = iter([60.0, 42.0])
    assert Invocation("a", lambda: next(remaining)).stopwatch()() == 18.0
