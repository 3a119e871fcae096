"""Zonal shifts: the zones that people, or AWS, have moved the cluster's traffic away from (ARC API GetManagedResource).

A zone is shifted away from while a zonal shift that was started for the cluster is applied and not over, or while an
autoshift of AWS is applied. (Practice runs are zonal shifts, too: whoever has them wants to see what happens.)
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from joinery.gateways.answers import entries
from joinery.gateways.aws import Clients, translated
from joinery.objects.errors import JoineryError, UnavailableError

_CALL = "ARC GetManagedResource"
_APPLIED = "APPLIED"
#: How long an answer is used again (Karpenter for AWS, zonal shift, 30 s). That saves calls, and nothing relies on it.
#: A failure is remembered as long, because a run that waits for ARC, and gets no answer, has less time to buy nodes.
_FRESH = timedelta(seconds=30)

#: A shifted zone's id, and until when; None for an autoshift, which AWS ends.
_Shift = tuple[str, datetime | None]


class ZonalShifts:
    """The shifts of one cluster."""

    def __init__(self, clients: Clients, now: Callable[[], datetime]) -> None:
        self._clients, self._now = clients, now
        self._asked: datetime | None = None
        self._shifts: tuple[_Shift, ...] | None = None
        self._failure: JoineryError = UnavailableError(f"{_CALL} has not been asked yet")

    def zones(self, cluster_arn: str) -> frozenset[str]:
        """The ids of the zones that are shifted away from now.

        While ARC does not answer, its last answer holds; ``UnavailableError`` if there has been none, ``NotFoundError``
        if the cluster is not registered with ARC.
        """
        now = self._now()
        if self._asked is None or now - self._asked >= _FRESH:
            self._asked = now
            self._ask(cluster_arn)
        if self._shifts is None:
            raise self._failure
        return frozenset(zone for zone, until in self._shifts if until is None or until > now)

    def _ask(self, cluster_arn: str) -> None:
        try:
            self._shifts = tuple(_shifts(self._answer(cluster_arn)))
        except UnavailableError as error:
            self._failure = error
        except JoineryError as error:
            # What it said before is out of date: the cluster was taken out of ARC, or the right was.
            self._shifts, self._failure = None, error

    def _answer(self, cluster_arn: str) -> Any:
        with translated(f"asking ARC for zonal shifts of {cluster_arn}"):
            return self._clients.arc.get_managed_resource(resourceIdentifier=cluster_arn)


def _shifts(answer: Any) -> Iterable[_Shift]:
    for shift in entries(answer, "zonalShifts", "awayFrom", "appliedStatus", "expiryTime", call=_CALL):
        if shift["appliedStatus"] == _APPLIED:
            yield shift["awayFrom"], shift["expiryTime"]
    for autoshift in entries(answer, "autoshifts", "awayFrom", "appliedStatus", call=_CALL):
        if autoshift["appliedStatus"] == _APPLIED:
            yield autoshift["awayFrom"], None
