"""Annotations of ours, and where each is read. No API server knows them, so that a misspelt one would stay unseen."""

from collections.abc import Iterable, Iterator

from joinery.objects import own_keys
from joinery.objects.karpenter.labels import OWN_GROUP
from joinery.objects.spelling import meant_by

_DOMAIN = f"{OWN_GROUP}/"
#: Where people write those of each kind.
_PLACES = {
    own_keys.NODE_POOL: "metadata.annotations of a NodePool",
    own_keys.POD: "spec.template.metadata.annotations of a Deployment",
}


def nothing_reads(annotations: Iterable[str], kind: str) -> Iterator[str]:
    """Of each of our annotations that no object of that kind has, that nothing reads it there."""
    read_here, read_somewhere = _names_on(kind), _names_on(*_PLACES)
    for name in sorted(key.removeprefix(_DOMAIN) for key in annotations if key.startswith(_DOMAIN)):
        if name in read_here:
            continue
        hint, meant = "", meant_by(name, read_here or read_somewhere)
        if places := [place for of_kind, place in _PLACES.items() if name in _names_on(of_kind)]:
            hint = f": it belongs to {' or to '.join(places)}"
        elif meant:
            hint = f"; is it {_DOMAIN}{meant}?"
        yield f"metadata.annotations: nothing reads {_DOMAIN}{name} of a {kind}{hint}"


def _names_on(*kinds: str) -> frozenset[str]:
    keys = {**own_keys.FOR_PEOPLE, **own_keys.OF_JOINERY}
    return frozenset(key.removeprefix(_DOMAIN) for key, own in keys.items() if {*kinds} & {*own.about})
