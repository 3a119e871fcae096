"""``joinery plan --interruption-rates``: price, risk and what a unit of it costs, and nothing where no rates are."""

import json
from pathlib import Path
from typing import Any

import pytest

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document

ADVISOR = Path(__file__).parents[1] / "data" / "spot-advisor-data.json"
PLAN = ("plan", "--now", NOW, "--catalog", str(SAMPLE))
#: Two types of one size, both in the extract of Spot Advisor's file: of more than 20 %, and of less than 5 %.
SPOT = CLUSTER.replace("[m7a.large, m7a.xlarge]", "[m7a.xlarge, m7i.xlarge]").replace("[on-demand]", "[spot]")


@pytest.fixture
def files(write: Write) -> tuple[str, ...]:
    """Six pods, and a NodePool on spot."""
    pods = "\n".join(json.dumps(pod_document(f"web-{number}")) for number in range(6))
    return "-f", write("cluster.yaml", SPOT), "-f", write("pods.json", pods)


def _cost(document: Any) -> Any:
    return document["cost"]


def test_without_rates_the_plan_says_nothing_of_interruptions(run: Run, files: tuple[str, ...]) -> None:
    """Neither in the document nor in the table."""
    assert "interruptions" not in _cost(run(*PLAN, "-o", "json", *files).document)
    assert "Interruptions" not in run(*PLAN, *files).out


def test_at_weight_0_rates_are_reported_and_decide_nothing(run: Run, files: tuple[str, ...]) -> None:
    """The same document, but for the figures, what is said of the file, and how long it took."""
    plain = run(*PLAN, "-o", "json", *files).document
    rated = run(
        *PLAN, "-o", "json", "--interruption-rates", str(ADVISOR), "--interruption-weight", "0", *files
    ).document
    del rated["cost"]["interruptions"]
    for document in (plain, rated):
        del document["solver"], document["notices"]
    assert rated == plain


def test_the_document_has_risk_and_what_a_unit_of_it_costs(run: Run, files: tuple[str, ...]) -> None:
    """Rates of the middle of Spot Advisor's buckets; an ordinary eviction costs a cent, as consolidation prices it."""
    document = run(*PLAN, "-o", "json", "--interruption-rates", str(ADVISOR), *files).document
    (launch,), found = document["launch"], _cost(document)["interruptions"]
    rate = {"m7a.xlarge": 0.25, "m7i.xlarge": 0.025}[launch["offering"]["instanceType"]]
    assert (found["spotNodes"], found["monthly"], found["weight"]) == (1, rate, 1.0)
    assert found["podsMonthly"] == pytest.approx(6 * rate)
    assert found["hourly"] == pytest.approx(6 * 0.01 * rate / 730, abs=1e-9)
    assert found["each"] == pytest.approx(0.06)
    premium = _cost(document)["onDemand"] - _cost(document)["hourly"]
    assert found["avoidedByOnDemand"] == pytest.approx(premium * 730 / rate, rel=1e-3)


def test_a_high_weight_buys_the_steadier_type(run: Run, write: Write, files: tuple[str, ...]) -> None:
    """Whichever of the two is cheaper: rates turn the choice, and the launch allows the other one no more."""
    chosen = []
    for steady, other in (("m7a.xlarge", "m7i.xlarge"), ("m7i.xlarge", "m7a.xlarge")):
        rates = write("rates.yaml", f"{steady}: 0.01\n{other}: 0.4\n")
        options = ("--interruption-rates", rates, "--interruption-weight", "1e5")
        (launch,) = run(*PLAN, "-o", "json", *options, *files).document["launch"]
        chosen.append((steady, launch["instanceTypes"][0]))
    assert all(steady == first for steady, first in chosen)


def test_the_table_ends_with_price_risk_and_the_price_of_risk(run: Run, files: tuple[str, ...]) -> None:
    """Two lines, in the figures of a month."""
    lines = run(*PLAN, "--interruption-rates", str(ADVISOR), *files).out.splitlines()
    (risk,) = (line for line in lines if line.startswith("Interruptions: "))
    assert risk.endswith("a month expected, at weight 1")
    assert "of 1 spot node a month" in risk
    assert any(line.startswith("One costs about $0.0600; to avoid one by on-demand nodes costs $") for line in lines)


def test_the_page_has_the_risk_among_its_figures(run: Run, files: tuple[str, ...]) -> None:
    """As the table has it."""
    options = ("--interruption-rates", str(ADVISOR), "-o", "html")
    assert "Interruptions" in run(*PLAN, *options, *files).out
    assert "Interruptions" not in run(*PLAN, "-o", "html", *files).out


def test_a_price_of_the_pods_owner_is_what_its_interruption_costs(run: Run, write: Write) -> None:
    """The annotation that consolidation reads."""
    pod = pod_document()
    pod["metadata"]["annotations"] = {"joinery.dev/disruption-price": "2.5"}
    options = ("-o", "json", "--interruption-rates", str(ADVISOR))
    document = run(*PLAN, *options, "-f", write("cluster.yaml", SPOT), "-f", write("pod.json", pod)).document
    assert _cost(document)["interruptions"]["each"] == pytest.approx(2.5)


def test_a_plan_without_spot_has_no_risk(run: Run, cluster: str, write: Write) -> None:
    """Nobody takes on-demand nodes back."""
    options = ("--interruption-rates", str(ADVISOR))
    outcome = run(*PLAN, *options, "-f", cluster, "-f", write("pod.json", pod_document()))
    assert "Interruptions: none, no new node is on spot" in outcome.out.splitlines()


def test_types_without_a_rate_are_named(run: Run, files: tuple[str, ...]) -> None:
    """They count as the mean of the others, and a person may want to know."""
    err = run(*PLAN, "--interruption-rates", str(ADVISOR), *files).err
    assert "no rate for" in err
    assert "they count as the mean of the others, 11.9% a month" in err


def test_a_file_that_rates_nothing_that_is_sold_is_doubted(run: Run, write: Write, files: tuple[str, ...]) -> None:
    """It may be another one than was meant."""
    err = run(*PLAN, "--interruption-rates", write("rates.yaml", "huge.type: 0.1"), *files).err
    assert "rates.yaml: has a rate for none of the types that are sold on spot; is it the right file?" in err


def _advisor(**changes: Any) -> dict[str, Any]:
    return {**json.loads(ADVISOR.read_text()), **changes}


_RANGES = [{"index": 0, "label": "<7%", "dots": 0, "max": 7}]
_SEVEN = {"us-east-1": {"Linux": {"m7a.xlarge": {"s": 1, "r": 7}}}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("- 1\n", "must be a map of instance types to shares"),
        ("{}", "must be a map of instance types to shares"),
        ("", "must be one document with rates, not 0"),
        ("m7a.xlarge: 12\n", "m7a.xlarge: must be the share of its spot nodes that is interrupted within a month"),
        ("m7a.xlarge: true\n", "m7a.xlarge: must be the share"),
        ("m7a.xlarge: .nan\n", "m7a.xlarge: must be the share"),
        ('{"m7a.xlarge" 0.1}', "not YAML"),
        (_advisor(spot_advisor={}), "spot_advisor: has no region us-east-1"),
        (
            _advisor(spot_advisor=_SEVEN),
            "spot_advisor.us-east-1.Linux.m7a.xlarge.r: must be the index of one of ranges",
        ),
        (_advisor(spot_advisor={"us-east-1": {"Windows": {}}}), "spot_advisor.us-east-1: has no Linux"),
        (_advisor(spot_advisor={"us-east-1": []}), "spot_advisor.us-east-1: must be a map"),
        (_advisor(ranges=_RANGES), "ranges[0].label: must be one of <5%, 5-10%"),
        (_advisor(ranges=None), "ranges: must be the list of buckets"),
    ],
)
def test_a_wrong_file_is_refused_by_its_field(
    run: Run, write: Write, files: tuple[str, ...], content: Any, words: str
) -> None:
    """Status 2, with file and field."""
    outcome = run(*PLAN, "--interruption-rates", write("rates", content), *files)
    assert outcome.status == 2
    assert "rates:" in outcome.err
    assert words in outcome.err


@pytest.mark.parametrize("weight", ["-1", "nan", "inf"])
def test_a_weight_is_a_number_from_0(run: Run, files: tuple[str, ...], weight: str) -> None:
    """Nothing else is taken for one."""
    outcome = run(*PLAN, "--interruption-rates", str(ADVISOR), f"--interruption-weight={weight}", *files)
    assert outcome.status == 2
    assert "--interruption-weight" in outcome.err


def test_a_file_that_is_not_there_is_named(run: Run, files: tuple[str, ...]) -> None:
    """As any other file."""
    outcome = run(*PLAN, "--interruption-rates", "nowhere.json", *files)
    assert outcome.status == 2
    assert "nowhere.json: No such file" in outcome.err
