"""What can be bought and for how much, as ``joinery catalog -o json`` prints it for a file's EC2NodeClass."""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.consolidation.documents import Document

ZONE = "topology.kubernetes.io/zone"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_ZONE_ID = "topology.k8s.aws/zone-id"
_TENANCY = "karpenter.k8s.aws/instance-tenancy"


@dataclass(frozen=True)
class Catalogue:
    """``types``: one entry of ``joinery catalog`` by the name of the instance type. ``zone_ids``: by name of zone."""

    types: Mapping[str, Document]
    zone_ids: Mapping[str, str]

    def price(self, instance_type: str, zone: str, capacity_type: str) -> float | None:
        """$/h, whether the offering is available or not; None for one that does not exist."""
        offerings = self.types.get(instance_type, {}).get("offerings", ())
        prices = (o["price"] for o in offerings if (o["zone"], o["capacityType"]) == (zone, capacity_type))
        price = next(prices, None)
        return None if price is None else float(price)

    def price_of(self, item: Document) -> float | None:
        """The price of a Node or NodeClaim, by its labels."""
        labels = item["metadata"].get("labels", {})
        return self.price(labels.get(INSTANCE_TYPE, ""), labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, ""))

    def labels(self, offering: Mapping[str, str]) -> dict[str, str]:
        """The labels that the instance type and the offering give a node."""
        labels: dict[str, str] = {}
        for key, value in self.types[offering["instanceType"]]["labels"].items():
            values = [value] if isinstance(value, str) else value
            # Of what an instance type offers several of, the offering says which; tenancy is the default's.
            labels[key] = "default" if key == _TENANCY else values[0]
        zone_id = self.zone_ids.get(offering["zone"])
        chosen = {ZONE: offering["zone"], CAPACITY_TYPE: offering["capacityType"]}
        return labels | chosen | ({_ZONE_ID: zone_id} if zone_id else {})


def load(types: Path, catalogue: Path) -> Catalogue:
    """``types``: what ``joinery catalog -o json`` printed. ``catalogue``: the Catalog document it was given."""
    data = catalogue.read_bytes()
    zones = json.loads(gzip.decompress(data) if catalogue.suffix == ".gz" else data)["zones"]
    return of(json.loads(types.read_text()), zones)


def of(types: Sequence[Document], zones: Sequence[Document] = ()) -> Catalogue:
    """From the entries of ``joinery catalog`` and the Catalog document's zones."""
    return Catalogue({entry["name"]: entry for entry in types}, {zone["name"]: zone["id"] for zone in zones})
