"""Every golden case: what the packing core answers to a tiny problem,
and what an independent check says of the answer.
"""

import difflib

import pytest
import yaml

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.verification.verify import verify
from tests.cases.scheduling.reading import Case, cases
from tests.cases.scheduling.showing import actual, expected, reason_line

# The golden cases are solved once for these files.
pytestmark = pytest.mark.xdist_group("golden")

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_golden_case_is_answered_as_written(case: Case) -> None:
    """Each case's sentence is a claim about the product."""
    difference = _difference(expected(case), actual(case, case.packing))
    assert not difference, f"{case.name}\n{difference}{_reasons(case.packing)}"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_answer_to_a_golden_case_passes_the_independent_check(case: Case) -> None:
    """What is planned is feasible, as derived again from the pod specs alone."""
    found = verify(case.problem, case.packing)
    assert not found, f"{case.name}\n" + "\n".join(reason_line(reason) for reason in found)


def test_case_names_are_unique() -> None:
    """A failing case can be found by its sentence."""
    names = [str(case) for case in CASES]
    assert sorted(set(names)) == sorted(names)


def _difference(wanted: object, found: object) -> str:
    before, after = (yaml.safe_dump(x, sort_keys=False, width=200).splitlines() for x in (wanted, found))
    if before == after:
        return ""
    return "\n".join(difflib.unified_diff(before, after, "expected", "planned", lineterm="", n=30))


def _reasons(packing: Packing) -> str:
    return "".join(f"\n{u.pod}: {reason_line(r)}" for u in packing.unplaced for r in u.reasons)
