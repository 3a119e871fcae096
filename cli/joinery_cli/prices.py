"""Whose prices a plan is made with: region, source and date, and whether they are the cluster's own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from joinery_cli.notices import UserNotice, warning

SAMPLE = "sample catalogue"


@dataclass(frozen=True, kw_only=True)
class Prices:
    """``region``, ``source`` and ``priced`` (when, as the catalogue says it) are the catalogue's.

    ``cluster_region`` is empty where nothing tells it; where it is another than the catalogue's, all prices are
    estimates.
    """

    region: str
    source: str
    priced: str = ""
    cluster_region: str = ""
    lacking: tuple[str, ...] = ()
    """Zones of the cluster's region that the catalogue does not have: nothing can be bought there."""
    guessed_zone_ids: tuple[str, ...] = ()
    """Ids of zones of which nothing says the names."""
    missing: tuple[str, ...] = ()
    """What could not be read when the catalogue was made, and what stands in for it."""

    @property
    def is_sample(self) -> bool:
        return self.source == SAMPLE

    @property
    def is_estimate(self) -> bool:
        return bool(self.cluster_region) and self.cluster_region != self.region

    @property
    def date(self) -> str:
        """The day, without its hour."""
        return self.priced.partition("T")[0] or "an unknown date"

    @property
    def origin(self) -> str:
        """A line for every output: ``Prices: us-east-1, sample catalogue, of 2026-07``."""
        return f"Prices: {self.region}, {self.source}, of {self.date}"

    @property
    def doubt(self) -> str:
        """The line beside it where the prices are an estimate; empty otherwise."""
        return f"All of them are an ESTIMATE: the cluster is in {self.cluster_region}" if self.is_estimate else ""

    def document(self) -> Mapping[str, Any]:
        """As the Plan document has it."""
        return {
            "region": self.region,
            "source": self.source,
            "priced": self.priced or None,
            "clusterRegion": self.cluster_region or None,
            "estimate": self.is_estimate,
        }

    def notices(self) -> Iterator[UserNotice]:
        """What a person must know before believing a price."""
        remedy = (
            "with credentials: joinery catalog --save prices.json.gz --region "
            f"{self.cluster_region or 'REGION'}, then --catalog prices.json.gz"
        )
        if self.is_estimate:
            sample = f" (the SAMPLE that comes with the command line, of {self.date})" if self.is_sample else ""
            yield warning(
                f"PRICES ARE AN ESTIMATE: the cluster is in {self.cluster_region}, the catalogue is of "
                f"{self.region}{sample}; its instance types and prices are taken as if {self.cluster_region} had them, "
                f"which may be wrong for both. For the right ones {remedy}"
            )
        elif self.is_sample:
            yield warning(
                f"SAMPLE PRICES: the catalogue that comes with the command line, of {self.region} and {self.date}, is "
                f"used. For today's {remedy}"
            )
        if self.guessed_zone_ids:
            yield warning(
                f"GUESSED: which zones have the ids {', '.join(self.guessed_zone_ids)}. Every account has an order of "
                "its own: its Nodes, the status of an EC2NodeClass, or a catalogue of its region would tell"
            )
        yield from (warning(f"the catalogue of {self.source} is not whole: {each}") for each in self.missing)
        if self.lacking:
            yield warning(
                f"the catalogue has no zone {', '.join(self.lacking)} of {self.region}: nothing can be bought there. "
                f"It was made for an account or a day without; {remedy}"
            )
