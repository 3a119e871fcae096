"""The price of a move: what evicting a pod counts as, in dollars, and why."""

from datetime import timedelta
from typing import Any

import pytest

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.moves import (
    MoveCause,
    MovePrice,
    MovePrices,
    eviction_prices,
    replicas_of,
    workloads_of,
)
from joinery.objects.karpenter.labels import DISRUPTION_PRICE, PAYBACK, POD_DELETION_COST
from joinery.objects.karpenter.validation import validate
from joinery.objects.kubernetes.core import Pod, PriorityClass
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, annotated, on

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
JOB = builders.owner("Job", "report", api_version="batch/v1")
#: $/h of the node, of which a pod of 1 cpu holds a quarter.
HOURLY = 0.40


def _prices(pool: dict[str, str], replicas: dict[str, int], classes: list[PriorityClass], **options: Any) -> MovePrices:
    cluster = Cluster(pools=[annotated(builders.node_pool(), pool)], more={"priority_classes": tuple(classes)})
    return MovePrices(cluster.problem(replicas=replicas, **options))


def _price(
    pod: Pod,
    *,
    pool: dict[str, str] | None = None,
    replicas: dict[str, int] | None = None,
    classes: list[PriorityClass] | None = None,
    **options: Any,
) -> MovePrice:
    cluster = Cluster()
    cluster.machine(pods=[pod])
    (view,) = cluster.problem().packing.snapshot.views
    price = _prices(pool or {}, replicas or {}, classes or [], **options).price(pod, view, HOURLY)
    assert price.dollars == pytest.approx(sum(part.dollars for part in price.parts))
    return price


def _causes(price: MovePrice) -> dict[str, Any]:
    return {part.cause.value: pytest.approx(part.dollars) for part in price.parts}


class TestOrdinaryPods:
    """What nearly all pods cost."""

    def test_an_ordinary_pod_costs_exactly_the_move_price(self) -> None:
        """One cent, unless the options say otherwise; also where its ReplicaSet shows no other pod in a file."""
        assert _price(on("web")).dollars == 0.01
        assert _price(on("web", priority=0), move_price=0.02).dollars == 0.02
        assert _causes(_price(on("web"))) == {"Eviction": 0.01}

    def test_a_pod_without_an_owner_and_a_stateful_one_are_ordinary_too(self) -> None:
        """Karpenter makes no difference either."""
        for owner in (None, builders.owner("StatefulSet", "db")):
            assert _price(on("pod", owner=owner)).dollars == 0.01

    @pytest.mark.parametrize(
        "pod",
        [
            on("agent", owner=builders.owner("DaemonSet", "agent")),
            on("static", owner=builders.owner("Node", "n", api_version="v1")),
            on("done", phase="Succeeded"),
            on("broken", phase="Failed"),
            on("going", deleted=START),
            on("db-0", owner=builders.owner("StatefulSet", "db"), deleted=START),
        ],
        ids=lambda pod: pod.metadata.name,
    )
    def test_what_does_not_move_or_goes_anyway_costs_nothing(self, pod: Pod) -> None:
        """DaemonSets' pods, the kubelet's own, finished ones, those on their way out."""
        assert _price(pod) == MovePrice()

    def test_a_move_price_of_zero_asks_what_the_cluster_could_cost(self) -> None:
        """So nothing costs anything, whatever annotations say."""
        pod = on("web", annotations={DISRUPTION_PRICE: "5"})
        assert _price(pod, move_price=0.0) == _price(on("web"), pool={DISRUPTION_PRICE: "5"}, move_price=0.0)
        assert _price(pod, move_price=0.0) == MovePrice()


class TestDisruptionCost:
    """Karpenter's figure, which multiplies the price."""

    @pytest.mark.parametrize(
        ("deletion_cost", "priority", "evictions"),
        [
            ("0", 0, 1.0),
            (str(2**27), 0, 2.0),
            (str(-(2**26)), 0, 0.5),
            ("0", 2**25, 2.0),
            ("0", 2_000_000_000, 10.0),
            (str(-(2**27)), 0, 0.0),
            ("-2147483647", 0, 0.0),
            ("high", 0, 1.0),
        ],
    )
    def test_it_is_1_and_more_by_deletion_cost_and_priority_between_0_and_10(
        self, deletion_cost: str, priority: int, evictions: float
    ) -> None:
        """1 + cost / 2^27 + priority / 2^25, at most 10. Below 0 it would pay to move the pod for nothing."""
        price = _price(on("web", annotations={POD_DELETION_COST: deletion_cost}, priority=priority))
        assert price.dollars == pytest.approx(0.01 * evictions)
        ordinary = {"Eviction": 0.01}
        assert _causes(price) == (
            ordinary if evictions == 1 else {**ordinary, "DisruptionCost": 0.01 * (evictions - 1)}
        )

    def test_a_priority_may_come_from_a_class(self) -> None:
        """In files a pod may only name it."""
        high = PriorityClass(metadata=builders.namespace("high").metadata, value=2**26)
        assert _price(on("web", priority_class_name="high"), classes=[high]).dollars == pytest.approx(0.03)


class TestOnlyReplicas:
    """A workload with one pod stands still while that moves."""

    TEMPLATED = on("web-1-x", labels={"pod-template-hash": "1"})

    @pytest.mark.parametrize(
        ("replicas", "dollars"),
        [
            ({}, 0.01),
            ({"ReplicaSet default/web-1": 1}, 0.02),
            ({"Deployment default/web": 1}, 0.02),
            ({"Deployment default/web": 3}, 0.01),
            ({"ReplicaSet default/web-1": 1, "Deployment default/web": 3}, 0.01),
            ({"Deployment other/web": 1}, 0.01),
        ],
    )
    def test_it_counts_twice_where_the_workload_is_known_to_keep_one_pod(
        self, replicas: dict[str, int], dollars: float
    ) -> None:
        """The Deployment knows better than one of its ReplicaSets, which may be half of a rollout."""
        assert _price(self.TEMPLATED, replicas=replicas).dollars == pytest.approx(dollars)

    def test_what_it_counts_as_is_doubled(self) -> None:
        """Two evictions of priority, and that twice."""
        price = _price(on("web", priority=2**25), replicas={"ReplicaSet default/web-1": 1})
        assert _causes(price) == {"Eviction": 0.01, "DisruptionCost": 0.01, "OnlyReplica": 0.02}

    def test_a_workload_is_named_by_kind_and_key_and_a_deployment_by_the_hash_of_its_template(self) -> None:
        """A ReplicaSet without that label was made by hand."""
        assert workloads_of(self.TEMPLATED) == ("ReplicaSet default/web-1", "Deployment default/web")
        assert workloads_of(on("web")) == ("ReplicaSet default/web-1",)
        assert workloads_of(on("bare", owner=None)) == ()

    def test_against_a_live_cluster_replicas_are_counted(self) -> None:
        """Pods of two ReplicaSets of one Deployment are two; finished ones are none."""
        pods = [
            self.TEMPLATED,
            on("web-2-y", owner="web-2", labels={"pod-template-hash": "2"}),
            on("db-0", owner=builders.owner("StatefulSet", "db")),
            on("db-1", owner=builders.owner("StatefulSet", "db"), phase="Failed"),
        ]
        counted = replicas_of(pods)
        assert (counted["Deployment default/web"], counted["StatefulSet default/db"]) == (2, 1)

    def test_the_one_pod_of_a_job_is_priced_by_its_work(self) -> None:
        """Nobody is served by it meanwhile."""
        assert _price(on("report", owner=JOB), replicas={"Job default/report": 1}).dollars == 0.01


class TestNodesThatExpireSoon:
    """What is evicted in a moment anyway is not spared by staying."""

    @pytest.mark.parametrize(
        ("left", "dollars"), [(HOUR, 0.01), (45 * MINUTE, 0.0075), (timedelta(), 0.0), (-HOUR, 0.0)]
    )
    def test_an_eviction_counts_for_what_is_left_of_the_payback_time(self, left: timedelta, dollars: float) -> None:
        """An hour of payback; a node that has expired may wait for budgets."""
        cluster = Cluster()
        age = timedelta(hours=24)
        cluster.machine(pods=[on("web")], created=START - age, expire_after=f"{int((age + left).total_seconds())}s")
        problem = cluster.problem()
        (view,) = problem.packing.snapshot.views
        price = MovePrices(problem).price(cluster.pods[0], view, HOURLY)
        assert price.dollars == pytest.approx(dollars)
        assert ("ExpiresSoon" in _causes(price)) is (left < HOUR)
        expired = "its node has expired, and it is evicted anyway"
        assert (expired in [part.message for part in price.parts]) is (left <= timedelta())

    def test_a_node_that_has_expired_stops_no_run_where_savings_must_repay_moves_at_once(self) -> None:
        """A payback time of nothing has no part that is left."""
        cluster = Cluster(pools=[annotated(builders.node_pool(), {PAYBACK: "0s"})])
        cluster.machine(pods=[on("web")], created=START - 25 * HOUR, expire_after="24h")
        problem = cluster.problem()
        (view,) = problem.packing.snapshot.views
        assert MovePrices(problem).price(cluster.pods[0], view, HOURLY).dollars == 0.0
        decide(problem)

    def test_the_node_that_expires_goes_although_it_has_more_pods(self) -> None:
        """Of two nodes one is enough (Karpenter "should consider node lifetime remaining")."""
        cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])])
        cluster.types = (builders.instance_type("m7a.xlarge", price=0.40, spot=None),)
        cluster.machine("old", [on("p1", "old", cpu="1"), on("p2", "old", cpu="1")], expire_after="24h1m")
        cluster.machine("new", [on("p3", "new", cpu="1")])
        (command,) = decide(cluster.problem()).commands
        assert command.retire == ("claim-old",)

    def test_what_the_owner_of_a_pod_says_stands(self) -> None:
        """And so does lost work, which nobody knows to be lost anyway."""
        cluster = Cluster()
        job = on("job", owner=JOB, started=START - HOUR)
        cluster.machine(pods=[job, on("dear", annotations={DISRUPTION_PRICE: "5"})], expire_after="24h")
        problem = cluster.problem()
        (view,) = problem.packing.snapshot.views
        prices = MovePrices(problem)
        assert prices.price(cluster.pods[1], view, HOURLY).dollars == 5
        assert {"LostWork", "ExpiresSoon"} <= _causes(prices.price(job, view, HOURLY)).keys()


class TestLostWork:
    """A pod that runs to completion begins anew elsewhere."""

    @pytest.mark.parametrize(
        "pod",
        [
            on("report", owner=JOB, cpu="1", started=START - 6 * HOUR),
            on("report", owner=None, cpu="1", restart_policy="Never", started=START - 6 * HOUR),
            on("report", owner=builders.owner("Workflow", "w"), restart_policy="OnFailure", created=START - 6 * HOUR),
        ],
        ids=["of a Job", "never restarted", "of a workflow"],
    )
    def test_it_costs_what_its_share_of_its_node_has_cost_so_far(self, pod: Pod) -> None:
        """A quarter of $0.40/h for six hours; a lighter one an eviction for each ten minutes."""
        price = _price(pod)
        share = 0.60 if pod.spec.containers[0].resources.requests["cpu"] == "1" else 0.36
        assert _causes(price) == {"Eviction": 0.01, "LostWork": share}

    def test_a_light_pod_that_waits_for_hours_has_lost_hours(self) -> None:
        """Its share of the node is next to nothing, its time is not."""
        pod = on("waits", owner=JOB, cpu="10m", memory="16Mi", started=START - 10 * HOUR)
        assert _causes(_price(pod)) == {"Eviction": 0.01, "LostWork": 0.60}

    def test_one_that_has_just_begun_has_lost_nothing(self) -> None:
        """Then it costs what any pod does."""
        assert _price(on("report", owner=JOB, started=START)).dollars == 0.01

    def test_one_that_nobody_knows_the_age_of_is_ordinary(self) -> None:
        """As in a file without moments."""
        assert _price(on("report", owner=JOB)).dollars == 0.01

    @pytest.mark.parametrize(
        ("deadline", "gainless"),
        [(3 * HOUR, None), (2 * HOUR, None), (90 * MINUTE, 0.05), (HOUR, 0.10), (30 * MINUTE, 0.10)],
    )
    def test_one_that_ends_soon_is_not_worth_moving_for_the_time_after(
        self, deadline: timedelta, gainless: float | None
    ) -> None:
        """It has run for an hour. What its share costs from its deadline to the payback time would be saved anyway."""
        seconds = int(deadline.total_seconds())
        pod = on("report", owner=JOB, cpu="1", started=START - HOUR, active_deadline_seconds=seconds)
        expected = {"Eviction": 0.01, "LostWork": 0.10, **({"EndsSoon": gainless} if gainless else {})}
        assert _causes(_price(pod)) == expected

    def test_pods_that_are_restarted_lose_nothing_however_old(self) -> None:
        """A Deployment's pod serves; it computes nothing that is lost."""
        assert _price(on("web", started=START - 1000 * HOUR, restart_policy="Always")).dollars == 0.01


class TestPricesThatUsersSet:
    """``joinery.dev/disruption-price`` and ``joinery.dev/payback``."""

    @pytest.mark.parametrize(("text", "dollars"), [("0.5", 0.5), ("12", 12.0), (".25", 0.25), (" 1 ", 1.0), ("0", 0.0)])
    def test_a_price_of_the_pod_takes_the_place_of_everything(self, text: str, dollars: float) -> None:
        """Also of its lost work, and of what its NodePool says."""
        pod = on("report", owner=JOB, started=START - HOUR, priority=2**25, annotations={DISRUPTION_PRICE: text})
        price = _price(pod, pool={DISRUPTION_PRICE: "3"})
        assert price.dollars == dollars
        assert [part.cause for part in price.parts] == [MoveCause.ANNOTATION]

    def test_a_price_of_the_node_pool_is_that_of_its_ordinary_pods(self) -> None:
        """What makes a pod count more multiplies it."""
        assert _price(on("web", priority=2**25), pool={DISRUPTION_PRICE: "0.05"}).dollars == pytest.approx(0.10)

    def test_where_a_node_pool_says_that_moves_are_free_they_are(self) -> None:
        """But for pods with a price of their own."""
        job = on("report", owner=JOB, started=START - HOUR)
        assert _price(job, pool={DISRUPTION_PRICE: "0"}) == MovePrice()
        dear = on("web", annotations={DISRUPTION_PRICE: "1"})
        assert _price(dear, pool={DISRUPTION_PRICE: "0"}).dollars == 1.0

    @pytest.mark.parametrize("text", ["", "much", "-1", "$1", "1e3", "nan", "inf", "0.05 USD", "1234567890"])
    def test_a_price_that_cannot_be_read_is_told_and_does_not_count(self, text: str) -> None:
        """Every user may annotate pods, so no text may raise."""
        price = _price(on("web", annotations={DISRUPTION_PRICE: text}))
        told = (
            f"pod default/web has the annotation {DISRUPTION_PRICE}, and {text!r} is no amount of dollars, such as 0.05"
        )
        assert (price.dollars, str(price.unread)) == (0.01, told)

    def test_the_payback_time_of_a_node_pool_is_its_own(self) -> None:
        """Else it is that of the options."""
        assert _prices({PAYBACK: "4h"}, {}, []).terms("default").payback == 4 * HOUR
        assert _prices({}, {}, []).terms("default").payback == HOUR
        assert _prices({}, {}, [], payback=MINUTE).terms("default").payback == MINUTE

    @pytest.mark.parametrize(
        ("key", "text", "fault"),
        [
            (PAYBACK, "Never", "'Never' is no duration, such as 30m or 1h30m"),
            (PAYBACK, "-1h", "'-1h' is no duration, such as 30m or 1h30m"),
            (DISRUPTION_PRICE, "a lot", "'a lot' is no amount of dollars, such as 0.05"),
        ],
    )
    def test_a_wrong_value_on_a_node_pool_is_told_twice(self, key: str, text: str, fault: str) -> None:
        """In its condition, like other wrong annotations, and of each of its nodes."""
        pool = annotated(builders.node_pool(), {key: text})
        assert validate(pool) == (f"metadata.annotations[{key}]: {fault}",)
        assert str(_prices({key: text}, {}, []).terms("default").unread) == (
            f"its NodePool default has the annotation {key}, and {fault}"
        )


class TestEvictionsOfPodsWithoutANode:
    """What an interruption of the node that they will have would cost."""

    def test_it_costs_as_much_as_the_eviction_by_consolidation(self) -> None:
        """By the NodePool's price, the pod's own, its weight and whether it is the only one; one that cannot be read is
        none."""
        pods = [
            builders.pod("plain"),
            builders.pod("own", annotations={DISRUPTION_PRICE: "2.5"}),
            builders.pod("wrong", annotations={DISRUPTION_PRICE: "much"}),
            builders.pod("heavy", priority=2**25),
            builders.pod("alone", owner=builders.owner("StatefulSet", "db")),
        ]
        pools = [annotated(builders.node_pool(), {}), annotated(builders.node_pool("dear"), {DISRUPTION_PRICE: "0.5"})]
        cluster = Cluster(pools=pools, pods=pods)
        prices = eviction_prices(cluster.problem(replicas={"StatefulSet default/db": 1}))
        usual, dear = ([prices.of(pod.key, pool) for pod in pods] for pool in ("default", "dear"))
        assert usual == [0.01, 2.5, 0.01, 0.02, 0.02]
        assert dear == [0.5, 2.5, 0.5, 1.0, 1.0]
