"""The catalogue, read live from EC2 and kept in the bucket, so that no decision waits for EC2's many pages."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from joinery.cloudprovider.catalog.document import Catalog
from joinery.doorbell.gateway import Bell
from joinery.errors import ConfigurationError, JoineryError, NotFoundError, UnavailableError
from joinery.gateways import Gateways

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
            catalog = refreshed(self._gateways, earlier)
        else:
            try:
                catalog = refreshed(self._gateways)
            except JoineryError:
                if earlier is not None:
                    refreshed(self._gateways, earlier)
                raise
        if earlier is None:
            # Pods may have waited for it, and after a few tries only the schedule would ring.
            self._gateways.doorbell.ring(Bell.PROVISIONING)
        return {"instance_types": len(catalog.instance_types), "offerings": len(catalog.offerings)}

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


def refreshed(gateways: Gateways, earlier: Catalog | None = None) -> Catalog:
    """The live catalogue, stored. With ``earlier`` only spot prices and reservations are read (``Cloud.catalog``)."""
    catalog = gateways.cloud.catalog(earlier)
    gateways.store.put_catalog(catalog)
    return catalog
