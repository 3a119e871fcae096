"""Answers of AWS that classes share: one asks, and others wait for it."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest

from joinery.gateways.ec2.nodeclass.lookups import SHARED_FOR, Lookups
from joinery.objects.errors import UnavailableError
from simulator.clock import Clock


def test_of_ten_threads_one_asks() -> None:
    """And the others have its answer."""
    lookups, together = Lookups(Clock().now), Barrier(10)
    numbers = iter(range(10))

    def ask(_: int) -> int:
        together.wait(10)
        return lookups.recent().ask("subnets", lambda: next(numbers))

    with ThreadPoolExecutor(10) as threads:
        assert list(threads.map(ask, range(10))) == [0] * 10


def test_a_failure_is_asked_for_again() -> None:
    """At the same moment, too."""
    lookups = Lookups(Clock().now)

    def fail() -> str:
        raise UnavailableError("no answer")

    for _ in range(2):
        with pytest.raises(UnavailableError, match="no answer"):
            lookups.recent().ask("subnets", fail)
    assert lookups.recent().ask("subnets", lambda: "two") == "two"


def test_an_answer_is_shared_for_a_moment() -> None:
    """Or for as long as who asks says. Other questions have other answers."""
    clock = Clock()
    lookups = Lookups(clock.now)
    numbers = iter(range(10))
    assert lookups.look("a").ask("subnets", lambda: next(numbers)) == 0
    assert lookups.look("b").ask("subnets", lambda: next(numbers)) == 0
    assert lookups.look("c").ask("groups", lambda: next(numbers)) == 1
    clock.advance(SHARED_FOR + timedelta(seconds=1))
    assert lookups.look("a").ask("subnets", lambda: next(numbers), good_for=timedelta(minutes=5)) == 0
    assert lookups.look("b").ask("subnets", lambda: next(numbers)) == 2


@pytest.mark.parametrize("anew", [lambda lookups: lookups.look("a"), lambda lookups: lookups.anew()])
def test_who_looks_again_gets_nothing_from_before(anew: object) -> None:
    """Somebody waits for a change, or an answer would change a class. All that one look asks is of one time."""
    lookups = Lookups(Clock().now)
    numbers = iter(range(10))
    lookups.look("a").ask("subnets", lambda: next(numbers))
    look = anew(lookups)  # type: ignore[operator]
    assert [look.ask("subnets", lambda: next(numbers)) for _ in range(2)] == [1, 1]
    assert lookups.look("b").ask("subnets", lambda: next(numbers)) == 1
