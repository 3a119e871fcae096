"""Which purchases a run may make under its caps."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.launch_caps import Cap, Purchase, admit, admit_launches
from joinery.decisions.scheduling.reason import ReasonCode
from joinery.objects.policies import Caps
from joinery.objects.snapshot.urgency import LEAST_URGENT, Need, Urgency
from tests.unit.decisions.scheduling.launches import priced_launch

_URGENCIES = st.builds(Urgency, st.sampled_from(Need), st.integers(-3, 3))
_PURCHASES = st.lists(
    st.builds(
        Purchase,
        instances=st.integers(0, 4),
        hourly=st.integers(0, 20).map(lambda cents: cents / 4),
        urgency=_URGENCIES,
        pods=st.integers(0, 5),
        namespaces=st.frozensets(st.sampled_from("abc"), max_size=2),
    ),
    max_size=12,
)
_CAPS = st.builds(
    Caps,
    max_launches=st.none() | st.integers(0, 12),
    max_hourly=st.none() | st.integers(0, 40).map(lambda cents: cents / 4),
    launched=st.integers(0, 3),
    hourly=st.integers(0, 3).map(float),
)


def _fits(caps: Caps, purchases: list[Purchase]) -> bool:
    """Whether all of them may be bought together."""
    count = caps.launched + sum(purchase.instances for purchase in purchases)
    hourly = caps.hourly + sum(purchase.hourly for purchase in purchases)
    return (caps.max_launches is None or count <= caps.max_launches) and (
        caps.max_hourly is None or hourly <= caps.max_hourly + 1e-6
    )


@given(_PURCHASES, _CAPS)
def test_what_is_admitted_never_exceeds_a_cap(purchases: list[Purchase], caps: Caps) -> None:
    """What the run has bought before counts too; if that alone is too much, nothing is bought."""
    admitted = [purchase for purchase, cap in zip(purchases, admit(purchases, caps), strict=True) if cap is None]
    assert not admitted or _fits(caps, admitted)


@given(_PURCHASES, _CAPS)
def test_a_purchase_is_left_out_only_for_those_that_are_as_urgent(purchases: list[Purchase], caps: Caps) -> None:
    """Replacements come before pods that wait, and these by priority: no less urgent purchase takes another's room."""
    judged = list(zip(purchases, admit(purchases, caps), strict=True))
    for purchase, cap in judged:
        before = [other for other, verdict in judged if verdict is None and other.urgency <= purchase.urgency]
        assert cap is None or not _fits(caps, [*before, purchase])


@given(_PURCHASES, _CAPS, st.randoms())
def test_the_order_of_a_plan_decides_nothing(purchases: list[Purchase], caps: Caps, random: object) -> None:
    """How much is bought depends on what there is to buy; only purchases that are alike may stand for each other."""

    def bought(listed: list[Purchase]) -> list[str]:
        return sorted(repr(one) for one, cap in zip(listed, admit(listed, caps), strict=True) if cap is None)

    shuffled = list(purchases)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert bought(shuffled) == bought(purchases)


def test_a_smaller_purchase_may_fit_where_a_larger_one_does_not() -> None:
    """What fits under the caps is bought: one dear node does not keep everybody waiting."""
    dear, cheap = Purchase(1, 9.0, Urgency(Need.FORCED, 0), 1), Purchase(1, 1.0, Urgency(Need.WAITING, 0), 1)
    assert admit([dear, cheap], Caps(max_hourly=2.0)) == (Cap.HOURLY, None)


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 60), min_size=1),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3)),
    st.integers(0, 80),
)
def test_namespaces_take_turns(wanted: dict[str, int], served: dict[str, int], most: int) -> None:
    """Nobody gets another node while one that waits has had fewer, in this run and lately, whatever either wants."""
    purchases = [
        Purchase(1, 1.0, Urgency(Need.WAITING, 0), 1, frozenset(namespace))
        for namespace, count in wanted.items()
        for _ in range(count)
    ]
    verdicts = admit(purchases, Caps(max_launches=most), served)
    bought = Counter(
        "".join(purchase.namespaces) for purchase, cap in zip(purchases, verdicts, strict=True) if cap is None
    )
    assert bought.total() == min(most, len(purchases))
    had = {namespace: served.get(namespace, 0) + bought[namespace] for namespace in wanted}
    waiting = [namespace for namespace, count in wanted.items() if bought[namespace] < count]
    for namespace in filter(bought.get, wanted):
        assert all(had[namespace] <= had[other] + 1 for other in waiting)


def test_without_caps_everything_is_admitted() -> None:
    """As on the command line, where nothing is bought."""
    assert admit([Purchase(1000, 1e6, LEAST_URGENT, 0)], Caps()) == (None,)


@given(st.lists(st.tuples(st.integers(1, 8), st.lists(_URGENCIES, min_size=1, max_size=3)), max_size=8), _CAPS)
def test_every_pod_of_a_launch_that_is_left_out_is_told(drawn: list[tuple[int, list[Urgency]]], caps: Caps) -> None:
    """Once, with the cap by name and in figures; nobody else is."""
    urgencies = {f"default/{i}-{j}": urgency for i, (_, pods) in enumerate(drawn) for j, urgency in enumerate(pods)}
    launches = [
        priced_launch(price / 4, *(f"default/{i}-{j}" for j in range(len(pods))), name=f"launch-{i}")
        for i, (price, pods) in enumerate(drawn)
    ]
    admission = admit_launches(launches, caps, urgencies)
    assert sorted(map(repr, (*admission.launches, *admission.left_out))) == sorted(map(repr, launches))
    left_out = [pod for launch in admission.left_out for pod in launch.pods]
    assert sorted(unplaced.pod for unplaced in admission.unplaced) == sorted(left_out)
    for unplaced in admission.unplaced:
        (reason,) = unplaced.reasons
        assert reason.code is ReasonCode.CAPS
        assert dict(reason.figures)["cap"] in ("MaxLaunches", "MaxHourly")
