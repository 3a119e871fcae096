"""Expressions that select devices (Kubernetes `dynamic-resource-allocation/cel`)."""

from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.objects.kubernetes.cel_tokens import ExpressionError
from joinery.objects.kubernetes.device_expressions import compiled, device_of
from joinery.objects.kubernetes.device_functions import Version

GPU = device_of(
    "gpu.nvidia.com",
    {
        "productName": "NVIDIA L4", "cuda": Version.of("8.9.0"), "minor": 5, "healthy": True,
        "resource.kubernetes.io/pcieRoot": "pci0000:00", "links": ["a", "b"],
    },
    {"memory": Decimal(23034 << 20)},
    is_shared=False,
)  # fmt: skip
OWN = 'device.attributes["gpu.nvidia.com"]'


@pytest.mark.parametrize(
    "text",
    [
        "device.driver == 'gpu.nvidia.com' && !device.allowMultipleAllocations",
        f"{OWN}.productName.lowerAscii().matches('^.*l4$')",
        f"{OWN}['productName'] in ['NVIDIA L4', 'NVIDIA A10G']",
        "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('22Gi')) >= 0",
        "device.capacity['gpu.nvidia.com'].memory.isLessThan(quantity('40Gi'))",
        f"{OWN}.cuda.isGreaterThan(semver('8.0.0')) && {OWN}.cuda.major() == 8",
        "semver('1.0.0-rc.1').isLessThan(semver('1.0.0')) && semver('1.0.0-2').isLessThan(semver('1.0.0-10'))",
        f"cel.bind(gpu, {OWN}, gpu.healthy && gpu.minor + 1 == 6)",
        "device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:00'",
        f"{OWN}.links.exists(link, link == 'b') && {OWN}.links.all(link, size(link) == 1)",
        f"has({OWN}.minor) && !has({OWN}.other) && !has(device.attributes['other.com'].x)",
        f"{OWN}.?other.orValue(3) == 3 && {OWN}[?'minor'].hasValue()",
        f"{OWN}.other == 1 || {OWN}.minor == 5",
        f"({OWN}.minor > 3 ? 'large' : 'small') == 'large'",
        f"{OWN}.productName.matches('(?i)^.*(l4|l40s)$')",
        f"{OWN}.productName.split(' ')[1].charAt(1) == '4' && {OWN}.productName.substring(7) == 'L4'",
        f"{OWN}.productName.replace('NVIDIA ', '').trim().indexOf('4') == 1 && {OWN}.links.join('-') == 'a-b'",
        f"{OWN}.links.exists(place, link, place == 1 && link == 'b') && sets.intersects({OWN}.links, ['b', 'c'])",
        f"{OWN}.exists(name, value, name == 'minor' && value == 5) && {OWN}.links.max() == 'b'",
        f"semver('v1.2', true) == semver('1.2.0') && !isSemver('v1.2') && {OWN}.links[0] == 'a'",
        r"""'a\'b' == "a'b" && r'\d' == '\\d' && -7 / 2 == -3 && -7 % 2 == -1""",
    ],
)
def test_an_expression_selects_a_device(text: str) -> None:
    """What the documentation of Kubernetes and of drivers shows."""
    assert compiled(text)(GPU)


@pytest.mark.parametrize(
    "text",
    [
        f"{OWN}.other == 1",
        f"{OWN}.minor == 5 && {OWN}.minor",
        f"{OWN}.minor < 'a'",
        f"{OWN}.minor / 0 == 1",
        "1 + 1",
        f"{OWN}.links[-1] == 'b'",
        f"{OWN}.links[2] == 'b'",
        "'a'.charAt(2) == ''",
        "'a'.substring(-1) == 'a'",
    ],
)
def test_an_expression_without_a_value_is_an_error(text: str) -> None:
    """An attribute that the device lacks, or kinds that do not mix."""
    with pytest.raises(ExpressionError):
        compiled(text)(GPU)


@pytest.mark.parametrize(
    "text", ["", "device.", "device.x(", "a b", "device.driver.nothing()", "nothing(1)", "(" * 60 + "1" + ")" * 60]
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    """When the claim is read, before any device is asked."""
    with pytest.raises(ExpressionError):
        compiled(text)


def test_loops_within_loops_and_costly_patterns_end() -> None:
    """Whoever may make a claim writes these."""
    numbers = f"[{', '.join(map(str, range(60)))}]"
    nested = f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a + b + c >= 0)))"
    for text in (nested, f"{OWN}.productName.matches('(a+)+$')"):
        with pytest.raises(ExpressionError):
            compiled(text)(GPU)


def test_a_long_chain_of_alternatives_is_no_nesting() -> None:
    """An API server takes as many as its longest expression holds."""
    assert compiled(" || ".join(["device.driver == 'x'"] * 400 + ["true"]))(GPU)


def test_no_expression_takes_the_stack_the_memory_or_the_time_of_a_plan() -> None:
    """What stands in itself, what is joined with itself, and patterns with many ways to fail."""
    for text in (
        "1" + " + 1" * 2500 + " == 2501",
        "device" + ".a" * 2500 + " == 1",
        "[1]" + "[0]" * 2500 + " == 1",
        "cel.bind(a, 'x', " + "cel.bind(a, a + a, " * 36 + "size(a) > 0" + ")" * 37,
        "cel.bind(a, [1], " + "cel.bind(a, a + a, " * 36 + "size(a) > 0" + ")" * 37,
        f"cel.bind(a, [[1], [2]], cel.bind(b, [{'a, ' * 250}], b == b))",
        f"'{'a' * 4000}'.matches('.*.*.*b')",
        f"'{'a' * 30}'.matches('{'a?' * 30}b')",
        f"'{'a' * 100}'.matches('{'(aa|a.)' * 16}b')",
    ):
        with pytest.raises(ExpressionError):
            compiled(text)(GPU)


@given(st.text(alphabet="device.atrbus[]()'\\\"&|!<>=?:+-*/% 01,\n", max_size=40))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    """Nothing else comes of it."""
    with suppress(ExpressionError):
        compiled(text)(GPU)
