"""``joinery catalog``: the instance types as the packing core sees them, for one node class."""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from joinery.objects.errors import ConfigurationError
from joinery_cli.options import CatalogOption, Files, ListFormat, MoreFiles, Recursive, RegionOption

if TYPE_CHECKING:
    from joinery.objects.karpenter.nodeclass import NodeClass
    from joinery.objects.kubernetes.quantity import Resources
    from joinery.objects.snapshot.offerings import InstanceType
    from joinery_cli.sources import Loaded


class Order(StrEnum):
    """How instance types are sorted."""

    PRICE = "price"
    NAME = "name"
    CPU = "cpu"
    MEMORY = "memory"


def catalog(
    more_files: MoreFiles = None,
    files: Files = None,
    recursive: Recursive = False,
    catalog_file: CatalogOption = None,
    region: RegionOption = None,
    save: Annotated[
        str | None,
        typer.Option(
            "--save", metavar="FILE", help="Write the region's catalogue for --catalog, read with your AWS credentials."
        ),
    ] = None,
    node_class: Annotated[
        str | None,
        typer.Option(
            "--node-class", metavar="NAME", help="The node class to resolve for. Default: the first one found."
        ),
    ] = None,
    families: Annotated[
        list[str] | None,
        typer.Option("--family", metavar="FAMILY", help="Types of this family alone, such as m7g. Repeatable."),
    ] = None,
    min_cpu: Annotated[
        float | None, typer.Option("--min-cpu", min=0, help="Types with at least so many vCPUs.")
    ] = None,
    sort: Annotated[
        Order | None,
        typer.Option("--sort", help="The cheapest first, the largest, or by name. Default of the table: price."),
    ] = None,
    output: Annotated[
        ListFormat, typer.Option("-o", "--output", help="How to print it; wide: with processor, devices, disks, zones.")
    ] = ListFormat.TABLE,
) -> None:
    """Show the instance types that nodes may be made of: labels, allocatable resources, offerings and prices."""
    from joinery.gateways.ec2.offline import instance_types
    from joinery_cli.notices import tell, warning, working
    from joinery_cli.reading.inputs import load
    from joinery_cli.regions import cluster_region
    from joinery_cli.sources import check_target, checked_region, load_catalog, moment, prices_of, stack_settings
    from joinery_cli.warnings.node_classes import prices_without_licence

    if save:
        check_target(save)
    with working("reading the files"):
        inputs, place = load([*(files or ()), *(more_files or ())], recursive=recursive), checked_region(region)
    chosen = _choose(list(inputs.objects.get("node_classes", {}).values()), node_class)
    snapshot = inputs.snapshot(moment(None))
    loaded = load_catalog("aws" if save and not catalog_file else catalog_file, place or cluster_region(snapshot))
    if save:
        _save(loaded, save)
        return
    catalogue, prices = prices_of(loaded, snapshot, place)
    tell((*inputs.all_notices(), *prices.notices(), *prices_without_licence([chosen])))
    if snapshot.node_overlays:
        tell([warning("NodeOverlays are not counted here, as they are in plans")])
    with working("working out what each type gives its pods"):
        known = instance_types([chosen], catalogue, settings=stack_settings())[chosen.metadata.name]
    types = [*_filtered(known, families or (), min_cpu or 0)]
    if sort or output is not ListFormat.JSON:
        types.sort(key=partial(_place, order=sort or Order.PRICE))
    if output is ListFormat.JSON:
        from joinery_cli.output.json import write

        write([entry(kind) for kind in types])
        return
    if output is ListFormat.WIDE:
        from joinery_cli.output.wide import print_catalog
    else:
        from joinery_cli.output.table import print_catalog
    print_catalog(types, f"{chosen.kind} {chosen.metadata.name}", prices)


def _filtered(types: Sequence["InstanceType"], families: Sequence[str], min_cpu: float) -> "Iterator[InstanceType]":
    """Those that are asked for. Raises ``ConfigurationError`` for a family that is not among them."""
    from joinery.objects.spelling import meant_by

    there = sorted({kind.name.partition(".")[0] for kind in types})
    for family in families:
        if family not in there:
            meant = ", ".join(one for one in there if one.startswith(family)) or meant_by(family, there)
            raise ConfigurationError(
                f"--family {family}: no instance type is of it" + (f"; is it {meant}?" if meant else "")
            )
    for kind in types:
        is_of_family = not families or kind.name.partition(".")[0] in families
        if is_of_family and kind.capacity.get("cpu", 0) >= 1000 * min_cpu:
            yield kind


def _place(kind: "InstanceType", order: Order) -> tuple[float, str]:
    """Where the type is in that order; names decide among equals."""
    match order:
        case Order.PRICE:
            first = min((one.price for one in kind.offerings if one.available), default=math.inf)
        case Order.NAME:
            first = 0.0
        case Order.CPU | Order.MEMORY:
            first = -float(kind.capacity.get(order.value, 0))
    return first, kind.name


def _save(loaded: "Loaded", path: str) -> None:
    from joinery_cli.notices import tell, warning
    from joinery_cli.sources import save_catalog

    if not loaded.catalog.instance_types:
        raise ConfigurationError(f"--save {path}: {loaded.source} does not hold the types as EC2 describes them")
    save_catalog(loaded.catalog, path)
    tell(warning(f"{path} is not whole: {each}") for each in loaded.catalog.missing)
    types, offerings = len(loaded.catalog.instance_types), len(loaded.catalog.offerings)
    print(
        (
            f"{path}: {loaded.catalog.region}, {types:,} instance types, {offerings:,} offerings, of "
            f"{loaded.catalog.priced or 'an unknown date'}"
        ),
        file=sys.stderr,
    )


def _choose(node_classes: Sequence["NodeClass"], name: str | None) -> "NodeClass":
    from joinery.gateways.ec2.offline import NODE_CLASS, default_class

    if name is not None:
        named = [one for one in node_classes if one.metadata.name == name]
        if not named:
            raise ConfigurationError(f"--node-class {name}: the files have no such {NODE_CLASS.kind}")
        return named[0]
    return node_classes[0] if node_classes else default_class()


def entry(kind: "InstanceType") -> Mapping[str, Any]:
    """One instance type of the contract; quantities are Kubernetes' strings.

    ``partial``: the parts of GPUs that a node shows as GPUs, which only pods get that ask for parts.
    """
    from joinery.objects.karpenter.labels import GPU_FRACTIONAL, GPU_RESOURCES
    from joinery.objects.kubernetes.quantity import texts

    partial = {
        name: kind.capacity[name] for name in GPU_RESOURCES if name in kind.capacity and GPU_FRACTIONAL in kind.labels
    }
    return {
        "name": kind.name,
        "labels": {key: _one_or_many(kind.labels[key]) for key in sorted(kind.labels)},
        "capacity": texts(_without(kind.capacity, partial)),
        "allocatable": texts(_without(kind.allocatable, partial)),
        "offerings": [
            {
                "zone": o.zone,
                "capacityType": o.capacity_type,
                "price": o.price,
                "available": o.available,
                **(
                    {"capacityReservation": o.reservation.id, "remaining": o.reservation.remaining}
                    if o.reservation
                    else {}
                ),
            }
            for o in sorted(kind.offerings, key=lambda o: (o.zone, o.capacity_type, o.reservation_id))
        ],
        **({"attachments": dict(kind.attachments)} if kind.attachments else {}),
        **({"partial": texts(partial)} if partial else {}),
    }


def _without(resources: "Resources", others: "Resources") -> "Resources":
    return {name: amount for name, amount in resources.items() if name not in others}


def _one_or_many(values: Iterable[str]) -> str | list[str]:
    listed = list(values)
    return listed[0] if len(listed) == 1 else listed
