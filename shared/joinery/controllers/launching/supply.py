"""The supply: what can be bought now.

That is the catalogue as each node class has it, less what EC2 was out of lately, and less what is sold in zones that
traffic is shifted away from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from joinery.controllers.catalog import current
from joinery.controllers.telemetry import ERROR, logger
from joinery.decisions.scheduling.paid_for import Sold
from joinery.decisions.scheduling.pools.overlays import overlaid
from joinery.gateways.bundles import Gateways
from joinery.objects.errors import JoineryError
from joinery.objects.snapshot.learned_memory import learned_memory
from joinery.objects.snapshot.offerings import InstanceType, OfferingKey, changed_types, offered_in, without
from joinery.objects.snapshot.shortages import as_met_by
from joinery.objects.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class Supply:
    """``types``: by the name of a node class, the instance types that its nodes may be of, with their offerings; by
    ``own_key`` those of NodePools that NodeOverlays change.

    ``unavailable``: the capacity pools that EC2 was out of lately, and those of zones that traffic is shifted away
    from. Their offerings are marked unavailable in ``types``. ``sold``: the catalogue's offerings of each type.
    """

    types: Mapping[str, tuple[InstanceType, ...]]
    unavailable: frozenset[OfferingKey]
    sold: Sold = field(default_factory=dict)


def read_supply(gateways: Gateways, snapshot: Snapshot, *, is_voluntary: bool = False) -> Supply:
    """Read the catalogue, what is left of capacity reservations, and what EC2 was out of.

    ``is_voluntary``: whether nothing has to be bought. Then it raises where nobody can say what EC2 was out of; else
    that is a line in the log. Costs about 40 ms a class that is new or counts reservations.
    """
    now = snapshot.now
    catalog = current(gateways)
    resolved = gateways.cloud.instance_types(snapshot.node_classes, catalog, now, learned_memory(snapshot))
    types = overlaid(resolved, snapshot).types
    unavailable = gateways.unavailable.at(now) if is_voluntary else _shortages(gateways, now)
    # A plan that may buy in an impaired zone is better than no plan.
    if shifted := known_shifts(_answer_about_shifts(gateways)):
        unavailable |= offered_in(chain.from_iterable(types.values()), shifted)
    met = {name: as_met_by(one, unavailable) for name, one in snapshot.classes_by_name.items()}
    left = changed_types(types, lambda name, listed: without(listed, met[name]))
    return Supply(left, unavailable, catalog.sold)


def _shortages(gateways: Gateways, now: datetime) -> frozenset[OfferingKey]:
    """What EC2 was out of; none, and a line in the log, if nobody can say.

    A plan that may ask for what EC2 is out of is better than no plan: a call names many capacity pools.
    """
    try:
        return gateways.unavailable.at(now)
    except JoineryError as error:
        logger.error("what EC2 was out of cannot be learned", extra={ERROR: str(error)})
        return frozenset()


def _answer_about_shifts(gateways: Gateways) -> frozenset[str] | JoineryError:
    try:
        return gateways.cloud.shifted_zones()
    except JoineryError as error:
        return error


def known_shifts(answer: frozenset[str] | JoineryError) -> frozenset[str] | None:
    """The ids of the zones that traffic is shifted away from; None, and a line in the log, if nobody can say."""
    if isinstance(answer, JoineryError):
        logger.error("zonal shifts cannot be learned", extra={ERROR: str(answer)})
        return None
    return answer
