"""How many examples a property is tried with: half as many in the gate, and as many times more in ``make fuzz`` as its
profile has.

The profiles are in the root's ``conftest.py``.
"""

from hypothesis import HealthCheck, settings

_USUAL = 100
"""Hypothesis' own number, which both profiles are measured by."""


def examples(number: int, *, suppress: tuple[HealthCheck, ...] = ()) -> settings:
    """Settings of the profile in force for a property that takes more or less time than others."""
    usual = settings()
    return settings(
        max_examples=number * usual.max_examples // _USUAL,
        suppress_health_check=(*usual.suppress_health_check, *suppress),
    )
