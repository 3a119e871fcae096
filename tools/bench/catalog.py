"""The catalogue: how long it takes from the bucket to arrays, and how many requests, and seconds, a refresh takes.

AWS is played: it answers with the sample catalogue, a page at a time as large as was asked for, and each answer takes
as long as those of EC2 and the price list do on a slow day. What it costs to parse XML is not in it.
"""

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any

import msgspec

from joinery.decisions.scheduling.pools.market import Axis, market_of, offered_by
from joinery.gateways.aws import Clients
from joinery.gateways.ec2.catalog import listing
from joinery.gateways.ec2.catalog.document import Catalog, decode
from joinery.gateways.ec2.instancetypes.resolve import resolve
from joinery.gateways.ec2.offline import default_class
from joinery.gateways.workers import Threads
from joinery.objects.karpenter.ec2nodeclass import of_ec2
from joinery.objects.karpenter.labels import ON_DEMAND, SPOT
from simulator.awsserver.pricelist import product
from simulator.cloud.market import sample
from tools.bench.frame import TARGET_HEADINGS, Target, show, spread
from tools.template import ROOT

_RUNS = 9
_STORED = ROOT / "cli" / "joinery_cli" / "data" / "catalog-us-east-1.json.gz"
_NOW = datetime(2026, 11, 27, tzinfo=UTC)
#: Seconds that AWS takes for one page.
_PAGE_SECONDS = 1.0
_SOURCES = 6


def main() -> None:
    show(TARGET_HEADINGS, [target.row for target in (_to_arrays(), *_refresh())])


def _to_arrays() -> Target:
    document = _STORED.read_bytes()
    taken = [_processor_seconds(lambda: _arrays(document)) * 1000 for _ in range(_RUNS)]
    return Target("from the bucket to arrays", "100 ms", f"{spread(taken, '{:.0f}')} ms", median(taken) < 100)


def _arrays(document: bytes) -> None:
    types = resolve(decode(gzip.decompress(document)), of_ec2(default_class()))
    market_of(types, Axis.of([], map(offered_by, types)))


def _refresh() -> Iterator[Target]:
    clients, requests = Clients("us-east-1"), list[str]()
    _play_aws(clients, sample(), requests)
    begun = time.perf_counter()
    catalog = listing.read(clients, _NOW, workers=Threads(_SOURCES))
    seconds = time.perf_counter() - begun
    assert (len(catalog.instance_types), catalog.missing) == (len(sample().instance_types), ())
    yield Target("requests of a refresh", "100", str(len(requests)), len(requests) <= 100)
    yield Target(f"a refresh, {_PAGE_SECONDS:g} s a request", "60 s", f"{seconds:.1f} s", seconds < 60)


def _processor_seconds(run: Callable[[], object]) -> float:
    begun = time.process_time()
    run()
    return time.process_time() - begun


def _play_aws(clients: Clients, catalog: Catalog, requests: list[str]) -> None:
    lock = threading.Lock()

    def answer(model: Any, params: Mapping[str, Any], **_: Any) -> tuple[Any, Mapping[str, Any]]:
        with lock:
            requests.append(model.name)
        time.sleep(_PAGE_SECONDS)
        body = params["body"]
        asked = json.loads(body) if isinstance(body, bytes | str) else body
        return _Answered(), _page(lists[model.name](asked), asked, *_NAMES[model.name])

    lists = _lists(catalog)
    for client in (clients.ec2, clients.pricing):
        client.meta.events.register("before-call", answer)  # type: ignore[arg-type]


class _Answered:
    status_code = 200


#: By operation: where its entries are in an answer, and how many a page has where nobody says.
_NAMES = {
    "DescribeInstanceTypes": ("InstanceTypes", 100),
    "DescribeInstanceTypeOfferings": ("InstanceTypeOfferings", 1000),
    "DescribeSpotPriceHistory": ("SpotPriceHistory", 1000),
    "DescribeAvailabilityZones": ("AvailabilityZones", 100),
    "DescribeCapacityReservations": ("CapacityReservations", 1000),
    "GetProducts": ("PriceList", 100),
}


def _lists(catalog: Catalog) -> Mapping[str, Callable[[Any], Sequence[Any]]]:
    types = [msgspec.json.decode(raw) for raw in catalog.instance_types]
    places = {(o.instance_type, o.zone) for o in catalog.offerings}
    zones = [{"ZoneName": zone.name, "ZoneId": zone.id} for zone in catalog.zones]
    prices = {o.instance_type: o.price for o in catalog.offerings if o.capacity_type == ON_DEMAND}
    products = {name: product(name, price) for name, price in prices.items()}
    metal = {name for name in products if "metal" in name}
    spot = [
        {"InstanceType": o.instance_type, "AvailabilityZone": o.zone, "SpotPrice": str(o.price), "Timestamp": _NOW}
        for o in catalog.offerings
        if o.capacity_type == SPOT
    ]
    return {
        "DescribeInstanceTypes": lambda _: types,
        "DescribeInstanceTypeOfferings": lambda _: [{"InstanceType": n, "Location": z} for n, z in sorted(places)],
        "DescribeSpotPriceHistory": lambda _: spot,
        "DescribeAvailabilityZones": lambda _: zones,
        "DescribeCapacityReservations": lambda _: [],
        "GetProducts": lambda asked: [
            listed for name, listed in products.items() if (name in metal) == ("bare metal" in json.dumps(asked))
        ],
    }


def _page(entries: Sequence[Any], asked: Mapping[str, Any], name: str, usual: int) -> Mapping[str, Any]:
    size, first = int(asked.get("MaxResults", usual)), int(asked.get("NextToken", 0))
    more = {"NextToken": str(first + size)} if first + size < len(entries) else {}
    return {name: entries[first : first + size], **more}


if __name__ == "__main__":
    main()
