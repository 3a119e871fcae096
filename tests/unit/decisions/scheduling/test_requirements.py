"""The requirement algebra: every pair of operators written out, and what holds for any requirements at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.constraints.requirements import (
    ABSENT,
    ANY,
    UnknownOperatorError,
    ValueSet,
    of_labels,
    read,
    value_set,
    written,
)
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.kubernetes.core import NodeSelectorRequirement

KEY = "tier"


def _set(text: str) -> ValueSet:
    """``In a,b``: one requirement, as a pod writes it."""
    operator, _, values = text.partition(" ")
    return value_set(NodeSelectorRequirement(key=KEY, operator=operator, values=values.split(",") if values else []))


SETS = {
    text: _set(text)
    for text in (
        "In a", "In a,b", "In b,c", "In 1,2,3", "NotIn a", "NotIn a,2", "Exists", "DoesNotExist", "Gt 1", "Gte 2",
        "Lt 3", "Lte 2", "Gte 9",
    )
}  # fmt: skip


def shown(allowed: ValueSet) -> str:
    """The set in one word: ``-`` for nothing at all,
    ``!`` after sets that a node without the label does not satisfy.
    """
    if allowed.is_impossible:
        return "-"
    if allowed.is_empty:
        return "absent"
    values = ",".join(sorted(allowed.values))
    if not allowed.complement:
        return f"{{{values}}}"
    bounds = f"{allowed.gte if allowed.gte is not None else ''}..{allowed.lte if allowed.lte is not None else ''}"
    body = (bounds if bounds != ".." else "any") + (f" not {values}" if values else "")
    return body if allowed.absent else f"{body}!"


MATRIX = """
                  In a              In a,b            In b,c            In 1,2,3          NotIn a           NotIn a,2         Exists            DoesNotExist      Gt 1              Gte 2             Lt 3              Lte 2             Gte 9
In a              {a}               {a}               -                 -                 -                 -                 {a}               -                 -                 -                 -                 -                 -
In a,b            {a}               {a,b}             {b}               -                 {b}               {b}               {a,b}             -                 -                 -                 -                 -                 -
In b,c            -                 {b}               {b,c}             -                 {b,c}             {b,c}             {b,c}             -                 -                 -                 -                 -                 -
In 1,2,3          -                 -                 -                 {1,2,3}           {1,2,3}           {1,3}             {1,2,3}           -                 {2,3}             {2,3}             {1,2}             {1,2}             -
NotIn a           -                 {b}               {b,c}             {1,2,3}           any not a         any not 2,a       any not a!        absent            2..!              2..!              ..2!              ..2!              9..!
NotIn a,2         -                 {b}               {b,c}             {1,3}             any not 2,a       any not 2,a       any not 2,a!      absent            2.. not 2!        2.. not 2!        ..2 not 2!        ..2 not 2!        9..!
Exists            {a}               {a,b}             {b,c}             {1,2,3}           any not a!        any not 2,a!      any!              -                 2..!              2..!              ..2!              ..2!              9..!
DoesNotExist      -                 -                 -                 -                 absent            absent            -                 absent            -                 -                 -                 -                 -
Gt 1              -                 -                 -                 {2,3}             2..!              2.. not 2!        2..!              -                 2..!              2..!              2..2!             2..2!             9..!
Gte 2             -                 -                 -                 {2,3}             2..!              2.. not 2!        2..!              -                 2..!              2..!              2..2!             2..2!             9..!
Lt 3              -                 -                 -                 {1,2}             ..2!              ..2 not 2!        ..2!              -                 2..2!             2..2!             ..2!              ..2!              -
Lte 2             -                 -                 -                 {1,2}             ..2!              ..2 not 2!        ..2!              -                 2..2!             2..2!             ..2!              ..2!              -
Gte 9             -                 -                 -                 -                 9..!              9..!              9..!              -                 9..!              9..!              -                 -                 9..!
"""  # noqa: E501 - a table


def _cells() -> list[tuple[str, str, str]]:
    width = 18
    header, *rows = MATRIX.strip("\n").splitlines()
    columns = [header[i : i + width].strip() for i in range(width, len(header), width)]
    return [
        (row[:width].strip(), column, row[start : start + width].strip())
        for row in rows
        for start, column in zip(range(width, len(header), width), columns, strict=True)
    ]


def test_every_pair_of_operators_meets_as_written() -> None:
    """The whole table, both halves of it."""
    cells = _cells()
    assert {(row, column) for row, column, _ in cells} == {(a, b) for a in SETS for b in SETS}
    wrong = [
        f"{row} and {column}: {shown(SETS[row].intersect(SETS[column]))}, not {result}"
        for row, column, result in cells
        if shown(SETS[row].intersect(SETS[column])) != result
    ]
    assert not wrong, "\n".join(wrong)


MEMBERS = {
    "In a,b": ("a b", "c 1"),
    "NotIn a": ("b 1 absent", "a"),
    "Exists": ("a 1 -5", "absent"),
    "DoesNotExist": ("absent", "a 1"),
    "Gt 1": ("2 99", "1 0 -7 a absent"),
    "Gte 2": ("2 3", "1 a absent"),
    "Lt 3": ("2 0 -4", "3 a absent"),
    "Lte 2": ("2 1", "3 b absent"),
}


@pytest.mark.parametrize("text", MEMBERS)
def test_an_operator_allows_what_kubernetes_allows(text: str) -> None:
    """Values, and a node without the label at all; what is no integer is never within bounds."""
    allowed, refused = MEMBERS[text]
    requirements = read(
        [
            NodeSelectorRequirement(
                key=KEY, operator=text.split()[0], values=text.split()[1].split(",") if " " in text else []
            )
        ]
    )
    labels = {value: {} if value == "absent" else {KEY: value} for value in f"{allowed} {refused}".split()}
    assert [value for value, given_ in labels.items() if requirements.matches(given_)] == allowed.split()


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        ("In", []),
        ("NotIn", []),
        ("Gt", []),
        ("Gt", ["1", "2"]),
        ("Lt", ["x"]),
        ("Exists", ["a"]),
        ("DoesNotExist", ["a"]),
        ("Near", ["a"]),
        ("", []),
    ],
)
def test_what_kubernetes_does_not_know_is_an_error_that_names_it(operator: str, values: list[str]) -> None:
    """An operator of one's own, or values that it cannot take."""
    with pytest.raises(UnknownOperatorError, match=f"{KEY} {operator}"):
        value_set(NodeSelectorRequirement(key=KEY, operator=operator, values=values))


def test_a_bound_beyond_all_integers_allows_nothing() -> None:
    """Nothing is greater than the largest integer."""
    assert _set(f"Gt {2**63 - 1}").is_impossible


def test_older_names_of_a_label_are_one_key_on_a_new_node_and_two_on_one_that_exists() -> None:
    """Two names of the zone in one selector must agree wherever a node has both;
    kube-scheduler looks for each by itself.
    """
    wanted = {"failure-domain.beta.kubernetes.io/zone": "z1", "topology.kubernetes.io/zone": "z2"}
    zones = of_labels(wanted)
    assert zones.matches(wanted)
    assert [*zones.canonical()] == ["topology.kubernetes.io/zone"]
    assert zones.canonical().get("topology.kubernetes.io/zone").is_impossible


WRITTEN = {
    ("In b,a",): "In a,b", ("NotIn a",): "NotIn a", ("Exists",): "Exists", ("DoesNotExist",): "DoesNotExist",
    ("Gt 4", "Lt 8"): "Gt 4; Lt 8", ("Gte 5",): "Gt 4", ("Lte 3",): "Lt 4", ("Gt 1", "NotIn 5"): "NotIn 5; Gt 1",
    ("Gte 0",): "Gte 0", ("Gt -5",): "Gte 0", ("Gt 0",): "Gt 0", ("Lt 0",): "Lt 0",
    ("Gt 4", "In 3,5,7"): "In 5,7", ("NotIn a", "Exists"): "NotIn a; Exists",
}  # fmt: skip


@pytest.mark.parametrize("listed", WRITTEN)
def test_a_claim_carries_bounds_as_gt_and_lt_and_values_in_order(listed: tuple[str, ...]) -> None:
    """The definitions of Karpenter v0.32 to v1.8 refuse a NodeClaim with Gte or Lte."""
    joint = ANY
    for text in listed:
        joint = joint.intersect(_set(text))
    shown_ = "; ".join(f"{entry.operator} {','.join(entry.values)}".strip() for entry in written(KEY, joint))
    assert shown_ == WRITTEN[listed]


@pytest.mark.parametrize("digits", ["9" * 5000, str(2**63), str(-(2**63) - 1)])
def test_a_number_that_go_cannot_hold_is_none(digits: str) -> None:
    """No bound takes it, and none can be made of it (kube-scheduler reads 64 bits)."""
    assert not _set("Gt 1").has(digits)
    assert not _set("Lt 1").has(digits)
    assert _set("Gt 1").intersect(_set(f"NotIn {digits}")) == _set("Gt 1")
    with pytest.raises(UnknownOperatorError):
        _set(f"Gt {digits}")


@pytest.mark.parametrize("digits", ["0" * 5000 + "7", str(2**63 - 1)])
def test_a_number_that_go_can_hold_is_one(digits: str) -> None:
    """However it is written."""
    assert _set("Gt 1").has(digits)


# --- what holds for any requirements ---

VALUES = st.sampled_from(("a", "b", "c", "1", "2", "3", "10", "-1", "007"))
NUMBERS = st.integers(0, 12).map(str)


@st.composite
def requirements(draw: st.DrawFn) -> NodeSelectorRequirement:
    """Any requirement on one key that Kubernetes or Karpenter knows."""
    operator = draw(st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")))
    if operator in ("In", "NotIn"):
        values = draw(st.lists(VALUES, min_size=1, max_size=4))
    else:
        values = [draw(NUMBERS)] if operator[0] in "GL" else []
    return NodeSelectorRequirement(key=KEY, operator=operator, values=values)


@st.composite
def value_sets(draw: st.DrawFn) -> ValueSet:
    """Whatever several requirements on one key may leave."""
    joint = ANY
    for requirement in draw(st.lists(requirements(), max_size=3)):
        joint = joint.intersect(value_set(requirement))
    return joint


SOME = st.one_of(VALUES, st.integers(-3, 15).map(str), st.none())
"""Values of a label; None is a node without it."""


def _allows(allowed: ValueSet, value: str | None) -> bool:
    return allowed.absent if value is None else allowed.has(value)


@given(value_sets(), value_sets(), SOME)
def test_what_both_allow_is_what_each_allows(one: ValueSet, other: ValueSet, value: str | None) -> None:
    """Membership agrees with intersection, for values and for a label that is not there."""
    assert _allows(one.intersect(other), value) == (_allows(one, value) and _allows(other, value))


@given(value_sets(), value_sets(), value_sets())
def test_the_order_in_which_requirements_meet_does_not_matter(one: ValueSet, other: ValueSet, third: ValueSet) -> None:
    """Intersection commutes and associates, to the same text on a claim."""
    assert one.intersect(other) == other.intersect(one)
    left, right = one.intersect(other).intersect(third), one.intersect(other.intersect(third))
    assert left == right


@given(value_sets())
def test_a_requirement_met_twice_is_met_once(one: ValueSet) -> None:
    """Intersection with itself, with everything, and with nothing."""
    assert one.intersect(one) == one
    assert one.intersect(ANY) == one
    assert one.intersect(ABSENT).intersect(_set("Exists")).is_impossible


@given(value_sets())
def test_a_value_invented_for_a_label_is_allowed(one: ValueSet) -> None:
    """What a node is labelled with satisfies what it was bought for, wherever any small value would."""
    if any(one.has(str(number)) for number in range(-20, 40)) or (one.values and not one.complement):
        assert one.has(one.pick())


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        (["Gt 0", "Lt 3", "NotIn 1,2"], "01"),
        (["Gt 0", "Lt 2", "NotIn 1,01"], "001"),
        (["Lt 3", "NotIn 0,1,2"], "00"),
        (["Lt 1", "NotIn 0"], "00"),
        (["Lt 0", "NotIn -1"], "-01"),
    ],
)
def test_where_all_integers_between_the_bounds_are_excluded_one_is_written_in_another_way(
    texts: list[str], value: str
) -> None:
    """Whoever may create pods may write that, and a plan must end. The scheduler takes ``01`` for a 1 that is none."""
    joint = ANY
    for text in texts:
        joint = joint.intersect(_set(text))
    assert joint.pick() == value
    assert joint.has(value)


@given(value_sets(), SOME)
def test_a_claim_allows_what_the_plan_allowed(one: ValueSet, value: str | None) -> None:
    """Written out and read back, a requirement means the same."""
    again = ANY
    for entry in written(KEY, one):
        again = again.intersect(value_set(entry))
    if not one.is_impossible:
        assert _allows(again, value) == _allows(one, value)


@given(st.lists(requirements(), max_size=4), st.dictionaries(st.sampled_from((KEY, "other")), VALUES))
def test_many_expressions_hold_where_each_holds(listed: list[NodeSelectorRequirement], labels: dict[str, str]) -> None:
    """A node matches a term when it matches every expression of it, in whatever order they are written."""
    expected = all(_allows(value_set(one), labels.get(one.key)) for one in listed)
    assert read(listed).matches(labels) == expected
    assert read(listed[::-1]).matches(labels) == expected


def test_min_values_are_carried_by_every_entry() -> None:
    """Both halves of a range name them."""
    entries = written(KEY, _set("Gt 4").intersect(_set("Lt 8")), 2)
    assert [(e.operator, e.min_values) for e in entries] == [("Gt", 2), ("Lt", 2)]
    assert all(isinstance(e, Requirement) for e in entries)
