"""Annotations, taints and conditions below ``joinery.dev``, from ``joinery.objects.own_keys``."""

from collections.abc import Iterator, Mapping

from joinery.objects.own_keys import FOR_PEOPLE, OF_JOINERY, OwnKey


def for_people() -> Iterator[str]:
    """What people set."""
    yield "| set by you | on | values and meaning |"
    yield from _rows(FOR_PEOPLE)


def of_joinery() -> Iterator[str]:
    """What Joinery writes."""
    yield "| set by Joinery | on | meaning |"
    yield from _rows(OF_JOINERY)


def _rows(keys: Mapping[str, OwnKey]) -> Iterator[str]:
    yield "|---|---|---|"
    for name, key in keys.items():
        yield f"| `{name}` | {', '.join(key.about)} | {key.meaning} |"
