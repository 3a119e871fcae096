"""No request is begun that might outlast the run for which it is made."""

from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import pytest

from joinery.gateways.aws import LONGEST_REQUEST, translated
from joinery.gateways.deadlines import within
from joinery.gateways.ec2.gateway import LONGEST_CALL
from joinery.objects.errors import TimeIsOverError, UnavailableError


class _Run:
    """A run with so many seconds left, in which EKS answers nothing. ``asked``: how many requests it got."""

    def __init__(self, left: float) -> None:
        self.left, self.asked, self._lock = left, 0, Lock()

    def launch(self, _: int) -> type[Exception]:
        """Ask EKS first, one thread after another."""
        try:
            with within(lambda seconds: self.left >= seconds), self._lock, translated("describing the cluster"):
                self.asked += 1
                self.left -= LONGEST_REQUEST
                raise UnavailableError("EKS did not answer")
        except UnavailableError as error:
            return type(error)


def test_launches_that_wait_for_one_another_end_in_time() -> None:
    """Ten of them wait for a cluster to be described. Who comes after the run's time asks nothing."""
    run = _Run(left=60.0)
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(run.launch, range(10)))
    assert run.asked == 2
    assert run.left >= 0
    assert answers.count(TimeIsOverError) == 8


def test_without_limits_any_request_may_be_begun() -> None:
    """A person at the command line waits for as long as it takes."""
    with pytest.raises(UnavailableError, match="EKS"), translated("describing the cluster"):
        raise UnavailableError("EKS")


def test_a_request_ends_within_a_call() -> None:
    """A run that has time for a call of the cloud has time for its first request."""
    assert LONGEST_REQUEST <= LONGEST_CALL
