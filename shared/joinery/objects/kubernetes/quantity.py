"""Kubernetes quantities as integers, the way the scheduler counts them.

CPU counts in millicores, everything else in whole units (bytes, devices, pods). Requests and capacities are both
rounded up to the unit, as ``Quantity.MilliValue`` and ``Quantity.Value`` do in kube-scheduler.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_UP, Context, Decimal
from functools import lru_cache
from types import MappingProxyType

#: Resource name to amount: millicores for cpu, whole units for everything else.
Resources = Mapping[str, int]

_FACTORS = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10) ** 3, "M": Decimal(10) ** 6, "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12, "P": Decimal(10) ** 15, "E": Decimal(10) ** 18,
    "Ki": Decimal(2) ** 10, "Mi": Decimal(2) ** 20, "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40, "Pi": Decimal(2) ** 50, "Ei": Decimal(2) ** 60,
}  # fmt: skip
#: A signed number, then a suffix or a decimal exponent, never both (apimachinery, ``resource.Quantity``).
_GRAMMAR = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[KMGTPE]i|[numkMGTPE])?)"
)
#: ``128Mb``, ``8 GiB``, ``1.5 Gi``.
_ELSEWHERE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?) *(?P<letter>[kmgtKMGT])(?P<binary>[iI])?[bB]?")
#: Exact for anything that fits 63 bits. Finer amounts are rounded away from zero, so that a small one never becomes 0.
_EXACT = Context(prec=60, rounding=ROUND_UP, Emin=-999_999, Emax=999_999, traps=[])
_LONGEST = 400  # characters; Kubernetes writes twenty
_BINARY = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))
#: Characters of an amount that a person takes in at a glance.
_SHORT = 7
#: Larger amounts count as this much, which is more of anything than there is; Kubernetes stores them.
LARGEST = 2**63 - 1

NOTHING: Resources = MappingProxyType({})


def parse(text: str | int | float) -> Decimal:
    """The number a quantity stands for. Blanks around it count for nothing (apimachinery ``Quantity.UnmarshalJSON``).

    Raises:
        ValueError: the text is no quantity (``resource.Quantity`` grammar).
    """
    if isinstance(text, bool):
        raise ValueError(f"{text!r} is not a quantity")
    return _parse(str(text))


def _meant(text: str) -> str:
    """What was probably meant, as a question: units that others write with a B, or after a blank."""
    spelt = _ELSEWHERE.fullmatch(text) if len(text) <= _LONGEST else None
    if spelt is None:
        return ""
    letter = spelt["letter"].upper()
    binary = "i" if spelt["binary"] else ""
    return f" (is it {spelt['number']}{'k' if letter == 'K' and not binary else letter}{binary}?)"


@lru_cache(maxsize=65536)
def _parse(text: str) -> Decimal:
    spelt = _GRAMMAR.fullmatch(text.strip(" ")) if len(text) <= _LONGEST else None
    if spelt is None:
        raise ValueError(f"{text!r} is not a quantity{_meant(text)}")
    number = Decimal(spelt["number"])
    exponent = int(spelt["exponent"] or 0)
    factor = _FACTORS[spelt["suffix"] or ""]
    return _EXACT.scaleb(_EXACT.multiply(number, factor), max(-_LONGEST, min(exponent, _LONGEST)))


@lru_cache(maxsize=65536)
def _amount(resource: str, text: str) -> int:
    value = _parse(text)
    units = _EXACT.scaleb(value, 3) if resource == "cpu" else value
    return max(-LARGEST, min(int(units.to_integral_value(ROUND_CEILING, _EXACT)), LARGEST))


def amount(resource: str, text: str | int | float) -> int:
    """A quantity as an integer: millicores for cpu, whole units otherwise.

    Fractions are rounded up. ``LARGEST`` is the most.
    """
    return _amount(resource, str(text))


def amounts(quantities: Mapping[str, str | int | float]) -> dict[str, int]:
    """A resource list of the API as integers."""
    return {name: _amount(name, str(text)) for name, text in quantities.items()}


def text(resource: str, value: int) -> str:
    """An amount in the API's canonical form: ``3900m``, ``14Gi``, ``12``."""
    if resource == "cpu":
        return str(value // 1000) if value % 1000 == 0 else f"{value}m"
    if _is_of_bytes(resource):
        for suffix, bits in _BINARY:
            if value and value % (1 << bits) == 0:
                return f"{value >> bits}{suffix}"
    return str(value)


def in_words(resource: str, value: int) -> str:
    """An amount for a sentence: exact where that is short, else with one decimal (``250.4Mi``)."""
    exact = text(resource, value)
    if not _is_of_bytes(resource) or len(exact) <= _SHORT:
        return exact
    for suffix in ("G", "M"):
        whole, rest = divmod(value, int(_FACTORS[suffix]))
        if whole and not rest:
            return f"{whole}{suffix}"
    suffix, bits = next((unit for unit in _BINARY if value >> unit[1]), ("", 0))
    return f"{value / (1 << bits):.1f}{suffix}"


def _is_of_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def texts(resources: Resources) -> dict[str, str]:
    """Amounts as a resource list of the API, sorted by name."""
    return {name: text(name, resources[name]) for name in sorted(resources)}


def total(lists: Iterable[Resources]) -> dict[str, int]:
    """The sum, resource by resource."""
    result: dict[str, int] = {}
    for resources in lists:
        for name, value in resources.items():
            result[name] = result.get(name, 0) + value
    return result


def fits(requests: Resources, room: Resources) -> bool:
    """Whether every request has room; a resource that is not there has none, and a zero request always fits."""
    return all(value <= 0 or value <= room.get(name, 0) for name, value in requests.items())
