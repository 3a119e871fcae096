"""The catalogue, read live from EC2 and kept in the bucket, so that no decision waits for EC2's many pages."""

from collections.abc import Mapping
from typing import Any

from joinery.cloudprovider.catalog.document import Catalog
from joinery.errors import NotFoundError
from joinery.gateways import Gateways


class CatalogController:
    """Woken by a schedule. It writes to our own bucket only, so it does so in ``observe`` mode too."""

    def __init__(self, gateways: Gateways) -> None:
        self._gateways = gateways

    def reconcile(self) -> Mapping[str, Any]:
        """Read the live catalogue and store it. Returns how much there is in it."""
        catalog = refreshed(self._gateways)
        return {"instance_types": len(catalog.instance_types), "offerings": len(catalog.offerings)}


def current(gateways: Gateways) -> Catalog:
    """The stored catalogue; in the first minutes of an installation, the live one."""
    try:
        return gateways.store.catalog()
    except NotFoundError:
        return refreshed(gateways)


def refreshed(gateways: Gateways) -> Catalog:
    """The live catalogue, stored. Slow: seconds."""
    catalog = gateways.cloud.catalog()
    gateways.store.put_catalog(catalog)
    return catalog
