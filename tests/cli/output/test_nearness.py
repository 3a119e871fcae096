"""What a plan says of how near it is to the best possible: in the table, on the page and in JSON the same, and true."""

from dataclasses import replace

from joinery.decisions.scheduling.packing import Kept, Packing
from joinery_cli.output.json import plan_document
from joinery_cli.view.costs import Costs
from joinery_cli.view.nearness import nearness
from simulator.builders import EPOCH
from tests.cli.packings import LAUNCH, PRICES

PRICE = LAUNCH.offering.price
BOTH = (Kept.PREFERENCES, Kept.WEIGHTS)


def _plan(lower: float, keeping: float = 0.0, *weaknesses: str, kept: tuple[Kept, ...] = BOTH) -> Packing:
    """A plan of one node, with bounds as shares of its price; what is kept lifts them alike."""
    each = (keeping - lower) * PRICE / len(kept)
    return Packing(
        launches=(LAUNCH,),
        lower_bound=lower * PRICE,
        kept_bound=keeping * PRICE,
        kept=dict.fromkeys(kept, each),
        weaknesses=weaknesses,
    )


def test_the_cheapest_plan_says_that_it_is() -> None:
    """Nobody is told of zero percent."""
    assert list(nearness(_plan(1, 1))) == ["Proven lower bound $0.0566/h: nothing cheaper is possible"]


def test_one_price_is_one_figure_however_it_was_summed_up() -> None:
    """0.08455 is rounded up, and what is a hair less down: nobody is shown two prices and told that they are one."""
    launch = replace(LAUNCH, offering=replace(LAUNCH.offering, price=0.08455 + 1e-12))
    packing = Packing(launches=(launch,), lower_bound=0.08455 - 1e-12)
    assert list(nearness(packing)) == ["Proven lower bound $0.0846/h: nothing cheaper is possible"]


def test_with_commitments_the_bound_is_of_what_is_paid() -> None:
    """Beside the price of the nodes, a bound of $0 looks like a mistake."""
    packing = Packing(launches=(LAUNCH,), covered=PRICE)
    assert list(nearness(packing)) == ["Proven lower bound of what is paid $0.0000/h: nothing cheaper is possible"]


def test_a_gap_that_shows_in_the_figures_is_not_denied() -> None:
    """Of a hundred dollars four hundredths of a percent are four cents."""
    launch = replace(LAUNCH, offering=replace(LAUNCH.offering, price=100.0))
    said = list(nearness(Packing(launches=(launch,), lower_bound=99.96)))
    assert said == ["Proven lower bound $99.9600/h: less than 0.1% above the best possible"]


def test_a_gap_is_said_in_percent() -> None:
    """And nothing more where it is small."""
    assert list(nearness(_plan(0.96, 0.96))) == ["Proven lower bound $0.0543/h: at most 4.2% above the best possible"]


def test_what_kept_preferences_and_weights_cost_is_told_apart() -> None:
    """Each by itself. Either they explain all of the gap, or what is left is said too."""
    assert list(nearness(_plan(0.5, 1.0)))[1:] == [
        "Pods' preferences cost about $0.0141/h and NodePools' weights cost about $0.0141/h, all of that: with them"
        " kept, nothing is cheaper"
    ]
    assert list(nearness(_plan(0.5, 0.8)))[1:] == [
        "Pods' preferences cost about $0.0085/h and NodePools' weights cost about $0.0085/h, at least 60% of that:"
        " with them kept, at most 25.0% above the best"
    ]


def test_only_what_there_is_explains_a_gap() -> None:
    """Who gave no weights is not told of weights."""
    (_, said) = nearness(_plan(0.5, 1.0, kept=(Kept.PREFERENCES,)))
    assert said == "Pods' preferences cost about $0.0283/h, all of that: with them kept, nothing is cheaper"
    (_, said) = nearness(_plan(0.5, 1.0, kept=(Kept.WEIGHTS,)))
    assert said == "NodePools' weights cost about $0.0283/h, all of that: with them kept, nothing is cheaper"
    (_, said) = nearness(_plan(0.5, 1.0, kept=(Kept.SIZES,)))
    assert said == "Nodes' sizes cost about $0.0283/h, all of that: with them kept, nothing is cheaper"


def test_a_weak_bound_is_called_weak() -> None:
    """With what the proof knows nothing of."""
    said = list(nearness(_plan(0.5, 0.5, "rules over team are left out", "fractions count")))
    assert said[1:] == ["The bound is weak here: rules over team are left out; fractions count"]


def test_json_has_the_same_figures() -> None:
    """Scripts read them where there is something to read."""
    plan = _plan(0.5, 0.8, "fractions count")
    cost = plan_document(plan, Costs(), PRICES, now=EPOCH, seconds=0)["cost"]
    assert cost["gap"] == 1.0
    assert cost["keepingPreferences"] == {"lowerBound": 0.04524, "gap": 0.25, "kept": ["preferences", "weights"]}
    assert (cost["preferences"], cost["weights"]) == (0.008483, 0.008483)
    assert cost["weaknesses"] == ("fractions count",)
    plain = plan_document(plan.without_bounds(), Costs(), PRICES, now=EPOCH, seconds=0)["cost"]
    assert not {"keepingPreferences", "weaknesses"} & plain.keys()
