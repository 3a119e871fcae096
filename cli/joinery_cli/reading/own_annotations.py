"""Annotations of ours, and where each is read. No API server knows them, so a slip would stay unseen."""

from collections.abc import Collection, Iterable, Iterator

from joinery.objects import own_keys
from joinery.objects.karpenter import labels
from joinery.objects.slips import meant_by

_DOMAIN = f"{labels.OWN_GROUP}/"
#: Joinery's own marks, too, which a file may hold that was read from a cluster.
OF_POOLS = own_keys.read_on(own_keys.NODE_POOL) | {
    labels.DISRUPTED_LATELY,
    labels.MOVED_LATELY,
    labels.REGISTRATIONS,
}
OF_PODS = own_keys.read_on(own_keys.POD)

_ON_POOLS = "metadata.annotations of a NodePool"
_ON_PODS = "spec.template.metadata.annotations of a Deployment"


def nothing_reads(annotations: Iterable[str], known: Collection[str], kind: str) -> Iterator[str]:
    """Of each of our annotations that is not ``known`` on an object of that kind, that nothing reads it there."""
    for key in sorted(annotations):
        if key.startswith(_DOMAIN) and key not in known:
            yield f"metadata.annotations: nothing reads {key} of {kind}{_question(key, known)}"


def _question(key: str, known: Collection[str]) -> str:
    places = [place for keys, place in ((OF_POOLS, _ON_POOLS), (OF_PODS, _ON_PODS)) if key in keys]
    if places:
        return f": it belongs to {' or to '.join(places)}"
    names = {one.removeprefix(_DOMAIN): one for one in known or OF_POOLS | OF_PODS}
    meant = meant_by(key.removeprefix(_DOMAIN), names)
    return f"; is it {names[meant]}?" if meant else ""
