"""Where a cluster is: its region and zones, as its own objects name them.

Nodes say it best (``topology.kubernetes.io/region``, the zone in ``providerID``); without nodes the claims, the
networks of a node class, the zones that NodePools, volumes and pods ask for.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from joinery.objects.karpenter.labels import REGION, ZONE, ZONE_ID
from joinery.objects.kubernetes.core import NodeSelector, Pod
from joinery.objects.snapshot.snapshot import Snapshot

_OLD_REGION, _OLD_ZONE = "failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone"
#: ``eu-central-1a``, ``us-gov-west-1b``, ``us-west-2-lax-1a``: the region begins the name. Zones of others are no
#: business of AWS's prices.
_NAME = re.compile(
    r"(us|eu|ap|sa|ca|me|af|il|mx|cn|eusc)(-[a-z]+)*?"
    r"-(north|south|east|west|central|northeast|northwest|southeast|southwest)-\d+"
)
#: ``eu-central-1a``, ``us-west-2-lax-1a``, ``us-east-1-wl1-bos-wlz-1``: what follows the region in a zone's name.
_OF_ZONE = re.compile(r"[a-z]|(-[a-z]+\d*)+-\d+[a-z]?")
#: ``euc1-az2``, ``usgw1-az1``, ``usw2-lax1-az1``: a zone's id begins with its region in short.
_ID = re.compile(r"(us|usg|eu|ap|sa|ca|me|af|il|mx|cn)(n|s|e|w|c|ne|nw|se|sw)(\d+)(-[a-z]+\d*)*-(az|wlz)\d+")
_AREAS: Mapping[str, str] = {"usg": "us-gov"}
_QUARTERS: Mapping[str, str] = {
    "n": "north", "s": "south", "e": "east", "w": "west", "c": "central",
    "ne": "northeast", "nw": "northwest", "se": "southeast", "sw": "southwest",
}  # fmt: skip
_Source = Callable[[Snapshot], Iterator[str]]
_PROVIDER_ID = re.compile(r"aws:///(?P<zone>[^/]+)/|eks-hybrid:///(?P<region>[^/]+)/")


def region_in(text: str) -> str:
    """The AWS region that a region's or zone's name begins with; empty where it is none of AWS."""
    match = _NAME.match(text)
    return match[0] if match else ""


def is_zone(text: str) -> bool:
    """Whether the text may be a zone's name: ``eu-central-1-a`` is that of none."""
    return bool((region := region_in(text)) and _OF_ZONE.fullmatch(text, len(region)))


def region_of_zone_id(text: str) -> str:
    """The region of a zone's id: ``eu-central-1`` of ``euc1-az2``; empty where it is none."""
    match = _ID.fullmatch(text)
    return f"{_AREAS.get(match[1], match[1])}-{_QUARTERS[match[2]]}-{match[3]}" if match else ""


def is_region(text: str) -> bool:
    """Whether the text is the name of an AWS region."""
    return _NAME.fullmatch(text) is not None


def cluster_region(snapshot: Snapshot) -> str:
    """The region that most of the objects name which know best; empty where none does."""
    for named_in in _SOURCES:
        counted = Counter(region for text in named_in(snapshot) if (region := region_in(text)))
        if counted:
            return min(counted, key=lambda region: (-counted[region], region))
    return ""


def cluster_zones(snapshot: Snapshot, region: str) -> Mapping[str, str]:
    """The zones of the region that the cluster is known to have, to their zone ids where a node or subnet says them.

    What runs or lies in a zone proves it. Only where nothing does, the zones that NodePools and storage classes ask for
    are taken on trust. What a pod asks for proves nothing: a slip of the pen would become a zone to buy nodes in.
    """
    trusted = (zone for zone in _zones_of(region, _TRUSTED, snapshot) if is_zone(zone))
    named = _zones_of(region, _PROOFS, snapshot) or trusted
    zone_ids = {node.metadata.labels.get(ZONE, ""): node.metadata.labels.get(ZONE_ID, "") for node in snapshot.nodes}
    zone_ids |= {zone: zone_id for node_class in snapshot.node_classes for zone, zone_id in node_class.zones}
    return {zone: zone_ids.get(zone, "") for zone in sorted(named)}


def zones_asked_for(snapshot: Snapshot, region: str) -> tuple[str, ...]:
    """Every zone of the region that objects other than pods name, whether it is known to exist or not."""
    return tuple(sorted(_zones_of(region, (*_PROOFS, *_TRUSTED), snapshot)))


def zone_ids_asked_for(snapshot: Snapshot, region: str) -> tuple[str, ...]:
    """Every zone id of the region that NodePools ask for."""
    requirements = (one for pool in snapshot.node_pools for one in pool.spec.template.spec.requirements)
    named = {value for one in requirements if one.key == ZONE_ID and one.operator == "In" for value in one.values}
    return tuple(sorted(zone_id for zone_id in named if region_of_zone_id(zone_id) == region))


def _zones_of(region: str, sources: Iterable[_Source], snapshot: Snapshot) -> set[str]:
    return {text for named_in in sources for text in named_in(snapshot) if region_in(text) == region and text != region}


# --- where objects name regions and zones ---


def _labelled(labels: Mapping[str, str]) -> Iterator[str]:
    yield from (labels[key] for key in (REGION, _OLD_REGION, ZONE, _OLD_ZONE) if key in labels)
    yield from filter(None, [region_of_zone_id(labels.get(ZONE_ID, ""))])


def _identified(provider_id: str) -> Iterator[str]:
    if match := _PROVIDER_ID.match(provider_id):
        yield match["zone"] or match["region"]


def _nodes(snapshot: Snapshot) -> Iterator[str]:
    for node in snapshot.nodes:
        yield from _labelled(node.metadata.labels)
        yield from _identified(node.spec.provider_id)


def _claims(snapshot: Snapshot) -> Iterator[str]:
    for claim in snapshot.node_claims:
        yield from _labelled(claim.metadata.labels)
        yield from _identified(claim.status.provider_id)


def _claims_wishes(snapshot: Snapshot) -> Iterator[str]:
    yield from (zone for claim in snapshot.node_claims for zone in _required(claim.spec.requirements))


def _subnets(snapshot: Snapshot) -> Iterator[str]:
    yield from (zone for node_class in snapshot.node_classes for zone, _ in node_class.zones)


def _pools(snapshot: Snapshot) -> Iterator[str]:
    for pool in snapshot.node_pools:
        template = pool.spec.template
        yield from _labelled(template.metadata.labels)
        yield from _required(template.spec.requirements)


def _volumes(snapshot: Snapshot) -> Iterator[str]:
    for volume in snapshot.volumes:
        yield from _labelled(volume.metadata.labels)
        if volume.spec.node_affinity is not None:
            yield from _selected(volume.spec.node_affinity.required)


def _storage_classes(snapshot: Snapshot) -> Iterator[str]:
    for storage in snapshot.storage_classes:
        yield from (v for term in storage.allowed_topologies for v in _places(term.match_label_expressions))


def _pods(snapshot: Snapshot) -> Iterator[str]:
    for pod in snapshot.pods:
        yield from _labelled(pod.spec.node_selector)
        yield from _selected(_required_affinity(pod))


_PROOFS: tuple[_Source, ...] = (_nodes, _claims, _subnets, _volumes)
_TRUSTED: tuple[_Source, ...] = (_pools, _storage_classes)
#: Those who know best come first.
_SOURCES: tuple[_Source, ...] = (
    _nodes, _claims, _claims_wishes, _subnets, _pools, _volumes, _storage_classes, _pods,
)  # fmt: skip


def _required_affinity(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None


def _selected(selector: NodeSelector | None) -> Iterator[str]:
    for term in selector.node_selector_terms if selector else ():
        yield from _required(term.match_expressions)


def _required(requirements: Iterable[Any]) -> Iterator[str]:
    yield from _places(requirement for requirement in requirements if requirement.operator == "In")


def _places(requirements: Iterable[Any]) -> Iterator[str]:
    """Values of requirements on region or zone,
    also on a driver's own key for it (``topology.ebs.csi.aws.com/zone``). Of a zone's id the region.
    """
    for requirement in requirements:
        if requirement.key == ZONE_ID:
            yield from filter(None, map(region_of_zone_id, requirement.values))
        if requirement.key.rpartition("/")[2] in ("zone", "region"):
            yield from requirement.values
