"""What a command decides with: the cluster of the files, or of the current kubeconfig, and what its region sells.

``joinery plan`` and ``joinery disrupt`` read the same objects and the same prices, and warn of the same things.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from joinery.objects.errors import ConfigurationError
from joinery_cli.notices import UserNotice, tell, working

if TYPE_CHECKING:
    from joinery.decisions.disruption.problem import DisruptionOptions, DisruptionProblem
    from joinery.decisions.headroom.requests import ResolvedRequest
    from joinery.decisions.scheduling.problem import Options
    from joinery.gateways.ec2.catalog.document import Catalog
    from joinery.objects.default_spread import DefaultSpreads
    from joinery.objects.settings import Settings
    from joinery.objects.snapshot.offerings import InstanceType
    from joinery.objects.snapshot.snapshot import Snapshot
    from joinery_cli.options import Daemons
    from joinery_cli.prices import Prices
    from joinery_cli.reading.commitments import Commitments
    from joinery_cli.reading.inputs import Inputs

#: What one command has to say about the objects, beside what both do.
Warnings = Callable[["Snapshot"], Iterable[UserNotice]]


@dataclass(frozen=True, kw_only=True)
class DecisionInput:
    """``notices``: all that was printed of it on standard error, for the document and the page.

    ``replicas``: how many pods the workloads of the files keep, by ``Kind namespace/name``. ``types``: what nodes may
    be of, as a ``Problem`` has them. ``requests``: the open ProvisioningRequests; the snapshot has the pods
    that nodes are bought for.
    """

    snapshot: "Snapshot"
    catalogue: "Catalog"
    types: Mapping[str, tuple["InstanceType", ...]]
    prices: "Prices"
    notices: tuple[UserNotice, ...]
    replicas: Mapping[str, int]
    requests: tuple["ResolvedRequest", ...] = ()


def decision_input(
    files: Sequence[str],
    *,
    now: datetime,
    warnings: Warnings,
    recursive: bool = False,
    catalog_file: str | None = None,
    region: str | None = None,
    daemons: "Daemons | None" = None,
    scheduler_config: str | None = None,
    is_quiet: bool = False,
) -> DecisionInput:
    """Read everything, and print at once what a person should know about it: to decide may take a while.
    ``is_quiet``: print nothing, for whoever has read the same a moment ago.

    Without ``files`` the current cluster is read, and nothing is written to it. Raises ``ConfigurationError`` for bad
    input, ``UnavailableError`` where the cluster or AWS cannot be reached.
    """
    from joinery.decisions.scheduling.pools.overlays import overlaid
    from joinery.gateways.ec2.offline import instance_types
    from joinery.objects.snapshot.extended_resources import read_as_claims
    from joinery_cli.reading.daemons import without_daemons
    from joinery_cli.reading.inputs import load
    from joinery_cli.regions import cluster_region
    from joinery_cli.sources import checked_region, load_catalog, prices_of, stack_settings
    from joinery_cli.warnings.left_out import not_counted, overlays_left_out

    if daemons and not files:
        raise ConfigurationError(
            f"--daemons {daemons.value}: is for files; a cluster's own DaemonSets are read with it"
        )
    heard = _unsaid if is_quiet else tell_now
    with working("reading the files" if files else "reading the cluster"):
        settings = stack_settings()
        spreads = _spreads(scheduler_config, settings)
        inputs = load(files, recursive=recursive, daemons=daemons)
        snapshot = _snapshot(inputs if files else None, now, spreads)
    notices = heard(
        *inputs.all_notices(),
        *_about_objects(snapshot),
        *warnings(snapshot),
        *(without_daemons(snapshot) if files else ()),
    )
    snapshot, requests, about_room = _with_room(snapshot, inputs if files else None, spreads)
    notices += heard(*about_room)
    snapshot = read_as_claims(snapshot)
    named_region = checked_region(region)
    loaded = load_catalog(catalog_file, named_region or cluster_region(snapshot))
    catalogue, prices = prices_of(loaded, snapshot, named_region)
    with working("working out what can be bought"):
        changed = overlaid(instance_types(snapshot.node_classes, catalogue, snapshot.now, settings), snapshot)
    notices += heard(*prices.notices(), *not_counted(snapshot, catalogue, settings), *overlays_left_out(changed))
    return DecisionInput(
        snapshot=snapshot,
        catalogue=catalogue,
        types=changed.types,
        prices=prices,
        notices=notices,
        replicas=inputs.replicas(),
        requests=requests,
    )


def _snapshot(inputs: "Inputs | None", now: datetime, spreads: "DefaultSpreads") -> "Snapshot":
    """The objects of the files as a decision sees them; None: of the cluster."""
    from joinery.decisions.scheduling.on_demand_shares import with_shares
    from joinery.gateways.ec2.offline import judged
    from joinery_cli.reading.spreads import spread_by_default
    from joinery_cli.sources import live_snapshot

    snapshot = spread_by_default(inputs, now, spreads) if inputs else live_snapshot(now, spreads)
    snapshot = replace(snapshot, node_classes=judged(snapshot.node_classes, now))
    # In a cluster they are at the gate until the stack lets them through.
    return replace(snapshot, pods=with_shares(snapshot.pods)) if inputs else snapshot


def _about_objects(snapshot: "Snapshot") -> Iterator[UserNotice]:
    """What is to be said of single objects, whatever is decided from them."""
    from joinery_cli.warnings.annotations import unread_annotations
    from joinery_cli.warnings.left_out import unreadable
    from joinery_cli.warnings.node_classes import arns_for_names, prices_without_licence, room_in_user_data

    yield from unread_annotations(snapshot)
    yield from arns_for_names(snapshot.node_classes)
    yield from room_in_user_data(snapshot.node_classes)
    yield from prices_without_licence(snapshot.node_classes)
    yield from unreadable(snapshot)


def _with_room(
    snapshot: "Snapshot", inputs: "Inputs | None", spreads: "DefaultSpreads"
) -> tuple["Snapshot", tuple["ResolvedRequest", ...], Sequence[UserNotice]]:
    """The snapshot with the room that buffers keep and requests want, and these requests. What they refer to is in the
    files; None: in the cluster. Costs nothing where there are none.
    """
    if not (snapshot.capacity_buffers or snapshot.provisioning_requests):
        return snapshot, (), ()
    from joinery.decisions.headroom.requests import to_buy
    from joinery.objects.snapshot.default_spreads import SpreadFiller
    from joinery_cli.reading.buffers import filled, requested, sources_in, templates_in
    from joinery_cli.sources import live_buffer_sources, live_templates

    filler = SpreadFiller(spreads)
    sources = sources_in(inputs.objects, filler) if inputs else partial(live_buffer_sources, spreads)
    templates = templates_in(inputs.objects, filler) if inputs else partial(live_templates, spreads)
    snapshot, of_buffers = filled(snapshot, sources)
    requests, of_requests = requested(snapshot, templates)
    return snapshot.with_virtual(to_buy(requests)), requests, (*of_buffers, *of_requests)


def _spreads(path: str | None, settings: "Settings | None") -> "DefaultSpreads":
    """What schedulers spread by themselves: as the file says, or the stack's settings."""
    if path is not None:
        from joinery_cli.reading.scheduler_config import read_default_spreads

        return read_default_spreads(path)
    return settings.default_spread if settings else ()


def tell_now(*notices: UserNotice) -> tuple[UserNotice, ...]:
    """Print the notices on standard error, and return them for the document and the page."""
    tell(notices)
    return notices


def _unsaid(*notices: UserNotice) -> tuple[UserNotice, ...]:
    return notices


def disruption_problem(inputs: DecisionInput, options: "DisruptionOptions", packing: "Options") -> "DisruptionProblem":
    """What is to be decided about the nodes of the objects that were read."""
    from joinery.decisions.disruption.headroom import with_chunks_bound
    from joinery.decisions.disruption.moves import replicas_of
    from joinery.decisions.disruption.problem import DisruptionProblem
    from joinery.decisions.headroom.requests import to_keep
    from joinery.decisions.scheduling.problem import Problem

    snapshot = inputs.snapshot.with_virtual(to_keep(inputs.requests))
    # All pods of a live cluster are there to be counted; a file may hold one of many.
    replicas = replicas_of(snapshot.pods) if packing.only_marked_unschedulable else inputs.replicas
    problem = DisruptionProblem(
        packing=Problem(snapshot=snapshot, instance_types=inputs.types, options=packing),
        options=options,
        replicas=replicas,
        sold=inputs.catalogue.sold,
    )
    return with_chunks_bound(problem)


def commitments_of(inputs: DecisionInput, path: str | None) -> "Commitments | None":
    """What the file says is paid for; None without a file. What a person should know of it is printed at once."""
    if path is None:
        return None
    from joinery_cli.reading.commitments import read_commitments

    paid_for = read_commitments(path, inputs.catalogue.sold, inputs.snapshot.now)
    tell_now(*paid_for.notices)
    return paid_for


def check_time_limit(seconds: float | None) -> None:
    """Raises ``ConfigurationError`` where ``--time-limit`` is no time."""
    if seconds is not None and not 0 < seconds < float("inf"):
        raise ConfigurationError(f"--time-limit {seconds:g}: must be more than 0 seconds")
