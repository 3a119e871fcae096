"""The catalogue, read live from EC2 and kept in the bucket, so that no decision waits for EC2's many pages."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from joinery.decisions.scheduling.left_of_bought import left_of
from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.objects.commitments import PaidFor
from joinery.objects.errors import ConfigurationError, NotFoundError, UnavailableError

#: How old instance types and on-demand prices may become, of which there are new ones every few days (Karpenter asks
#: for both every twelve hours). To read them takes ten times as long as spot prices do.
LISTED_EVERY = timedelta(hours=12)


class CatalogController:
    """Woken by a schedule, and once by the installer. It writes to our own bucket only and rings a bell, so it does so
    in ``observe`` mode too.
    """

    def __init__(self, gateways: Gateways, now: Callable[[], datetime], commitment_share: float = 0.0) -> None:
        """``commitment_share``: how much of each commitment is for this account and region; 0 to ask for none."""
        self._gateways = gateways
        self._now = now
        self._share = commitment_share

    def reconcile(self) -> Mapping[str, Any]:
        """Read what may have changed of the catalogue and store it; and once an hour, what is paid for already. Returns
        how much there is in it.

        Raises what kept it from being read; and ``UnavailableError``, once it is stored, where a part of it could not
        be read. That is read again by the next run.
        """
        catalog = self._stored_anew()
        missing = [*map(str, catalog.missing), *self._ask_for_commitments(catalog)]
        if missing:
            raise UnavailableError("the catalogue lacks: " + "; ".join(missing))
        return {"instance_types": len(catalog.instance_types), "offerings": len(catalog.offerings)}

    def _stored_anew(self) -> Catalog:
        earlier = self._stored()
        catalog = self._gateways.cloud.catalog(earlier, in_full=earlier is None or self._is_due(earlier))
        gone = (_capacity_types(earlier) if earlier else set()) - _capacity_types(catalog)
        if gone:
            # The answer lacked it, not the cloud.
            raise UnavailableError(f"the catalogue has no {', '.join(sorted(gone))} price any more: the last one stays")
        self._gateways.store.put_catalog(catalog)
        if earlier is None:
            # Pods may have waited for it, and after a few tries only the schedule would ring.
            self._gateways.doorbell.ring(Bell.PROVISIONING)
        return catalog

    def _ask_for_commitments(self, catalog: Catalog) -> Sequence[str]:
        """Store what is paid for already, once in each hour by which AWS bills. Returns what it lacks."""
        if not self._share:
            return ()
        now, earlier = self._now(), self._paid_for()
        if earlier and earlier.read and _hour(earlier.read) == _hour(now):
            return earlier.missing
        document = left_of(self._gateways.cloud.bought(), earlier, catalog.sold, share=self._share, now=now)
        self._gateways.store.put_paid_for(document)
        return document.missing

    def _paid_for(self) -> PaidFor | None:
        """What was stored last, if it can be read."""
        try:
            return self._gateways.store.paid_for()
        except (NotFoundError, ConfigurationError):
            return None

    def _stored(self) -> Catalog | None:
        """The last catalogue; None for one that cannot be read, which is to be replaced."""
        try:
            return self._gateways.store.catalog()
        except (NotFoundError, ConfigurationError):
            return None

    def _is_due(self, earlier: Catalog) -> bool:
        """Whether types and on-demand prices are to be read anew."""
        if earlier.missing:
            return True
        try:
            listed = datetime.fromisoformat(earlier.listed)
        except ValueError:  # of an older version, or written by hand
            return True
        age = self._now() - listed.replace(tzinfo=listed.tzinfo or UTC)
        # One of the future is nobody's: it would be kept until then.
        return not timedelta() <= age < LISTED_EVERY


def current(gateways: Gateways) -> Catalog:
    """The stored catalogue.

    Raises ``UnavailableError`` in the first minute of an installation, so that the bell is rung again. Only the catalog
    function has the rights to read prices and to store them.
    """
    try:
        return gateways.store.catalog()
    except NotFoundError as missing:
        raise UnavailableError(f"{missing}; the function catalog makes the first one in a minute") from missing


def _hour(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _capacity_types(catalog: Catalog) -> set[str]:
    return {offering.capacity_type for offering in catalog.offerings}
