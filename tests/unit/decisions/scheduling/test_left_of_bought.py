"""What others leave of what an account has bought."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.left_of_bought import left_of
from joinery.decisions.scheduling.paid_for import commitments_of
from joinery.objects.commitments import Bought, OtherInstance, PaidFor, ReservedInstances, SavingsPlan
from joinery.objects.errors import ConfigurationError
from joinery.objects.snapshot.offerings import Offering
from tests.properties import examples

NOW = datetime(2026, 8, 24, 9, tzinfo=UTC)
PRICES = {"m7a.large": 0.1, "m7a.xlarge": 0.2, "c7a.large": 0.08}
SOLD = {name: (Offering("us-east-1a", "on-demand", price),) for name, price in PRICES.items()}
COMPUTE = SavingsPlan(name="sp", commitment=1.0, rates={"m7a.large": 0.06, "m7a.large (Windows, shared)": 0.11})
DENIED = ConfigurationError("asking EC2: UnauthorizedOperation")


def other(kind: str = "m7a.large", platform: str = "Linux/UNIX", zone: str = "us-east-1a") -> OtherInstance:
    """An instance of somebody else."""
    return OtherInstance(kind, platform, "shared", zone)


def reserved(name: str = "ri", kind: str = "m7a.large", count: float = 2, zone: str = "") -> ReservedInstances:
    """Reserved Instances."""
    return ReservedInstances(name=name, instance_type=kind, count=count, zone=zone)


def document(bought: Bought, earlier: PaidFor | None = None, share: float = 1.0) -> PaidFor:
    """What is left of it."""
    return left_of(bought, earlier, SOLD, share=share, now=NOW)


def test_others_use_reserved_instances_first_and_savings_plans_at_their_own_rates() -> None:
    """Of the two Reserved Instances one covers an m7a.xlarge by half; Windows has none and takes 0.11 $/h."""
    bought = Bought(
        savings_plans=(COMPUTE,),
        reserved_instances=(reserved(count=1),),
        others=(other("m7a.xlarge"), other(platform="Windows"), other("c7a.large")),
    )
    found = document(bought)
    assert [one.used_elsewhere for one in found.reserved_instances] == [1]
    assert [(one.used_elsewhere, one.rates) for one in found.savings_plans] == [(0.11, {"m7a.large": 0.06})]
    assert (found.read, found.missing) == (NOW, ())


def test_what_pays_alike_is_one() -> None:
    """An account may have bought dozens. What ends first says until when the sum is right."""
    late, early = NOW + timedelta(days=9), NOW + timedelta(days=1)
    plans = (COMPUTE, replace_plan(COMPUTE, "sp-2", late), replace_plan(COMPUTE, "sp-3", early))
    rest = (reserved("a"), reserved("b"), reserved("c", zone="us-east-1a"), reserved("gone", kind="cr1.8xlarge"))
    found = document(Bought(savings_plans=plans, reserved_instances=rest))
    assert [(one.name, one.commitment, one.end) for one in found.savings_plans] == [("sp and 2 more", 3.0, early)]
    assert [(one.name, one.count) for one in found.reserved_instances] == [("c", 2), ("a and 1 more", 4)]


def replace_plan(plan: SavingsPlan, name: str, end: datetime) -> SavingsPlan:
    """Another one like it."""
    return SavingsPlan(name=name, commitment=plan.commitment, rates=plan.rates, end=end)


def test_a_share_is_for_this_account() -> None:
    """The rest is for accounts and regions that cannot be seen."""
    bought = Bought(savings_plans=(COMPUTE,), others=(other(),))
    (plan,) = document(bought, share=0.5).savings_plans
    assert plan.used_elsewhere == 0.56
    (plan,) = document(bought, share=0.01).savings_plans
    assert plan.used_elsewhere == plan.commitment


def test_what_cannot_be_read_is_as_it_was_and_without_others_nothing_new_is_left() -> None:
    """The document says so."""
    earlier = document(Bought(savings_plans=(COMPUTE,), reserved_instances=(reserved(),), others=(other(),)))
    found = document(Bought(savings_plans=DENIED, reserved_instances=(reserved(), reserved("new", zone="x"))), earlier)
    assert [one.name for one in found.savings_plans] == ["sp"]
    (line,) = found.missing
    assert line.startswith("Savings Plans could not be read: those of 2026-08-24T09:00Z stand in (asking EC2")
    blind = document(Bought(reserved_instances=(reserved(), reserved("new", zone="x")), others=DENIED), earlier)
    assert {one.name: one.count - one.used_elsewhere for one in blind.reserved_instances} == {"ri": 1, "new": 0}
    assert document(Bought(savings_plans=DENIED, reserved_instances=DENIED)).savings_plans == ()


KINDS = st.sampled_from(sorted(PRICES))
OWNED = st.builds(reserved, kind=KINDS, count=st.integers(0, 4), zone=st.sampled_from(["", "us-east-1a"]))
PLANS = st.builds(
    SavingsPlan,
    name=st.just("sp"),
    commitment=st.floats(0, 1),
    rates=st.dictionaries(KINDS, st.floats(0.01, 0.1), min_size=1),
)
OTHERS = st.lists(st.builds(other, kind=KINDS, platform=st.sampled_from(["Linux/UNIX", "Windows"])), max_size=8)


@given(one=OWNED, plan=PLANS, others=OTHERS, more=OTHERS)
@examples(60)
def test_more_others_never_leave_more(
    one: ReservedInstances, plan: SavingsPlan, others: list[OtherInstance], more: list[OtherInstance]
) -> None:
    """And nothing is used that is not there."""

    def left(running: list[OtherInstance]) -> dict[str, float]:
        found = document(Bought(savings_plans=(plan,), reserved_instances=(one,), others=tuple(running)))
        return {each.name: each.stock for each in commitments_of(found, SOLD, NOW)}

    before, after = left(others), left([*others, *more])
    wholes = {"ri": one.count, "sp": plan.commitment}
    assert all(0 <= after[name] <= before[name] + 1e-6 and before[name] <= wholes[name] + 1e-6 for name in after)
