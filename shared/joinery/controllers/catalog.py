"""The catalogue, read live from EC2 and kept in the bucket, so that no decision waits for EC2's many pages."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.objects.errors import ConfigurationError, JoineryError, NotFoundError, UnavailableError

#: How old instance types and on-demand prices may become, of which there are new ones every few days (Karpenter asks
#: for both every twelve hours). To read them takes ten times as long as spot prices do.
LISTED_EVERY = timedelta(hours=12)


class CatalogController:
    """Woken by a schedule, and once by the installer. It writes to our own bucket only and rings a bell, so it does so
    in ``observe`` mode too.
    """

    def __init__(self, gateways: Gateways, now: Callable[[], datetime]) -> None:
        self._gateways = gateways
        self._now = now

    def reconcile(self) -> Mapping[str, Any]:
        """Read what may have changed of the catalogue and store it. Returns how much there is in it.

        Raises what kept it from being read. Where all of it was due and cannot be read, spot prices are still new.
        """
        earlier = self._stored()
        if earlier is not None and not self._is_due(earlier):
            catalog = self._refreshed(earlier, earlier)
        else:
            try:
                catalog = self._refreshed(None, earlier)
            except JoineryError:
                if earlier is not None:
                    self._refreshed(earlier, earlier)
                raise
        if earlier is None:
            # Pods may have waited for it, and after a few tries only the schedule would ring.
            self._gateways.doorbell.ring(Bell.PROVISIONING)
        return {"instance_types": len(catalog.instance_types), "offerings": len(catalog.offerings)}

    def _refreshed(self, kept: Catalog | None, last: Catalog | None) -> Catalog:
        """The live catalogue, stored. ``kept``: only its spot prices and reservations are read (``Cloud.catalog``).
        ``last``: the one stored last.

        Raises ``UnavailableError`` where everything of a capacity type is gone: the answer lacked it, not the cloud.
        """
        catalog = self._gateways.cloud.catalog(kept)
        gone = (_capacity_types(last) if last else set()) - _capacity_types(catalog)
        if gone:
            raise UnavailableError(f"the catalogue has no {', '.join(sorted(gone))} price any more: the last one stays")
        self._gateways.store.put_catalog(catalog)
        return catalog

    def _stored(self) -> Catalog | None:
        """The last catalogue; None for one that cannot be read, which is to be replaced."""
        try:
            return self._gateways.store.catalog()
        except (NotFoundError, ConfigurationError):
            return None

    def _is_due(self, earlier: Catalog) -> bool:
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


def _capacity_types(catalog: Catalog) -> set[str]:
    return {offering.capacity_type for offering in catalog.offerings}
