"""Figures as a person reads them: money, amounts of resources, counts. One place, so that table and page agree."""

import re
from collections.abc import Collection
from datetime import timedelta

from joinery.objects.kubernetes.quantity import Resources

_GIB = 2**30
_SMALL, _LARGE, _MANY, _LEAST = 0.1, 100, 1000, 0.001
#: As AWS bills a month.
_HOURS_A_MONTH = 730
_MEASURED = ("cpu", "memory")
#: The units of an age.
_AGES = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
#: A larger gap says nothing and is not shown: the bound is next to nothing, where all might have been reserved.
MOST_GAP = 10.0
#: A smaller gap is shown as none, of a tenth of a percent.
NEGLIGIBLE = 0.0005
#: What sums of prices may differ by and be one price.
ONE_PRICE = 1e-6
#: $/h: sums that differ by less are one sum to a person.
NOTED_COST = 0.01
_UNITS = {"memory": "GiB", "ephemeral-storage": "GiB", "nvidia.com/gpu": "GPU", "cpu": "cpu"}


def money(dollars: float) -> str:
    """Cents where there are many, fractions of cents where every one counts."""
    sign, size = "-" if dollars < 0 else "", abs(dollars)
    return f"{sign}${size:,.2f}" if size >= 100 else f"{sign}${size:,.4f}"


def monthly(dollars: float) -> str:
    """A price per hour as a month's: ``about $4,176 a month``."""
    return f"about ${dollars * _HOURS_A_MONTH:,.0f} a month"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def amount(resource: str, value: float) -> str:
    """Cores, GiB, or the number of whatever it is; a tenth of a thousand says nothing."""
    scaled = value / _scale(resource)
    whole = _scale(resource) == 1 or scaled >= _MANY
    return f"{int(scaled):,}" if whole else f"{scaled:,.1f}"


def size(resource: str, value: float) -> str:
    """An amount in three digits or so, for tables: ``3.9``, ``191``."""
    scaled = value / _scale(resource)
    if _scale(resource) == 1 or scaled >= _LARGE:
        return f"{int(scaled):,}"
    return f"{scaled:.2f}" if 0 < scaled < _SMALL else f"{scaled:.1f}"


def _scale(resource: str) -> int:
    return 1000 if resource == "cpu" else _GIB if unit(resource) == "GiB" else 1


def unit(resource: str) -> str:
    """How the resource is called in a heading: a device by the last part of its name."""
    if resource.startswith("hugepages-"):
        return "GiB"
    return _UNITS.get(resource, resource.rpartition("/")[2])


def resource_heading(resource: str) -> str:
    """How the resource is called over a column or beside a bar: what is measured in GiB by what it is."""
    if resource.startswith("hugepages-"):
        return "hugepages"
    return {"memory": "memory", "ephemeral-storage": "disk"}.get(resource, unit(resource))


def share(used: float, whole: float) -> str:
    """How full, rounded down: only what is full is 100%."""
    return f"{int(1000 * used / whole) // 10}%" if whole else ""


def part(some: float, whole: float) -> str:
    """Whose part of a sum it is, rounded to the nearest, so that all parts are nearly 100%."""
    return f"{some / whole:.0%}" if whole else ""


def listed(resources: Resources) -> str:
    """What a pod asks for: ``0.5 cpu, 1.0 GiB``. Its own place among the pods goes without saying."""
    parts = (f"{short(name, resources[name])} {unit(name)}" for name in in_order(resources) if resources[name])
    return ", ".join(parts) or "nothing"


def short(resource: str, value: int) -> str:
    """An amount without digits that say nothing: ``0.25``, ``4``; of next to nothing ``<0.001``."""
    scaled = value / _scale(resource)
    if 0 < scaled < _LEAST:
        return f"<{_LEAST}"
    return f"{scaled:.3g}" if scaled < _MANY else f"{scaled:,.0f}"


def in_order(resources: Collection[str]) -> list[str]:
    """CPU, memory, then devices and the rest by name. Pods are counted elsewhere."""
    others = sorted(name for name in resources if name not in (*_MEASURED, "pods"))
    return [name for name in _MEASURED if name in resources] + others


def age(time: timedelta | None) -> str:
    """The largest unit alone, as kubectl has it: ``3d``, ``12m``."""
    if time is None:
        return "-"
    seconds = max(0, int(time.total_seconds()))
    size, unit = next(((size, unit) for size, unit in _AGES if seconds >= size), (1, "s"))
    return f"{seconds // size}{unit}"


def natural(name: str) -> list[tuple[int, int, str]]:
    """A sort key by which node 2 comes before node 10."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]
