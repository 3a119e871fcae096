"""Expressions that yield a number.

What they yield was held against cel-go 0.31 with the functions of Karpenter for AWS 1.15.1, for 16,000 expressions.
"""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.objects.kubernetes.cel import Variables, compiled
from joinery.objects.kubernetes.cel_tokens import ExpressionError

KNOWN = (("instance_type", "string"), ("ips_per_eni", "int"), ("max_pods", "int"), ("vcpus", "int"))
GIVEN: Variables = {"instance_type": "m5.xlarge", "ips_per_eni": 15, "max_pods": 58, "vcpus": 4}


def value(text: str) -> int:
    """What it yields for an m5.xlarge."""
    return compiled(text, KNOWN)(GIVEN)


@pytest.mark.parametrize(
    ("text", "yields"),
    [
        ("max(60, vcpus * 30)", 120),
        ("min(250, (vcpus - 1) * (ips_per_eni - 1) * 16 + 2)", 250),
        ("11 * max_pods + 255", 893),
        ("max(3, 7.9)", 7),
        ("min(7.9, 3)", 3),
        ("-7 / 2", -3),
        ("7 / -2", -3),
        ("-7 % 3", -1),
        ("int(2.7) + int(-2.7)", 0),
        ("double(vcpus) * 2.5", 10),
        ("1 + 2 * 3 - 4 / 2 % 3", 5),
        ("vcpus > 2 && !(max_pods < 10) ? 1 : 2", 1),
        ("false ? 1 : true ? 2 : 3", 2),
        ("true ? 1 : 1 / 0", 1),
        ("1 / 0 == 1 || true ? 1 : 2", 1),
        ("false && 1 / 0 == 1 ? 1 : 2", 2),
        ('instance_type.startsWith("m5.") ? 1 : 2', 1),
        ("instance_type in ['m5.large', 'm5.xlarge'] ? 1 : 2", 1),
        ("size(instance_type) + instance_type.size()", 18),
        ("0x1F // hexadecimal", 31),
        (" + ".join(["1"] * 140), 140),
    ],
)
def test_an_expression_yields_a_whole_number(text: str, yields: int) -> None:
    """Precedence, truncation and what is not evaluated are those of CEL."""
    assert value(text) == yields


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 +",
        "1 2",
        "(1",
        "vcpu",
        "vcpus * 2.5",
        "vcpus == 2.0 ? 1 : 2",
        "1 ? 2 : 3",
        "true ? 1 : 2.0",
        "true",
        "instance_type",
        "max(1, 2, 3)",
        "vcpus.size()",
        "1 in [1.0] ? 1 : 2",
        "1u",
        "1_000",
        "9223372036854775808",
        "__import__('os')",
        "(" * 5000,
        "(" * 50 + "1" + ")" * 50,
        " + ".join(["1"] * 1000),
        "vcpus.",
        r"size('\n')",
        r"size(r'\n')",
        "9" * 5000,
        "1" + " " * 40_000 + "x",
        "1" + "// 1\n" * 10_000 + "x",
    ],
)
def test_what_is_no_expression_of_a_number_is_refused_before_it_is_evaluated(text: str) -> None:
    """Also what would only be wrong for some instance types."""
    with pytest.raises(ExpressionError):
        compiled(text, KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "1 / (vcpus - 4)",
        "1 % (vcpus - 4)",
        "1.0 / 0.0",
        "0.0 / 0.0",
        "9223372036854775807 + vcpus",
        "-9223372036854775807 - vcpus",
        "9223372036854775807 * vcpus",
        "int(1e19)",
        "1 / 0 == 1 && true ? 1 : 2",
    ],
)
def test_what_has_no_value_says_so(text: str) -> None:
    """Only when it is evaluated."""
    evaluate = compiled(text, KNOWN)
    with pytest.raises(ExpressionError):
        evaluate(GIVEN)


_WORDS = [
    "vcpus",
    ".",
    "(",
    ")",
    "[",
    "]",
    ",",
    "max",
    "int",
    "?",
    ":",
    "-",
    "==",
    "&&",
    "1",
    "2.5",
    "'a'",
    "//",
    "\n",
    "in",
]


@given(st.lists(st.sampled_from(_WORDS), max_size=12))
def test_whatever_is_written_has_a_value_or_is_refused(words: list[str]) -> None:
    """A class with a typo must not keep the others from being read."""
    with suppress(ExpressionError):
        value(" ".join(words))
    with suppress(ExpressionError):
        value("".join(words))
