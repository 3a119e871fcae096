"""Names, labels and resources that no object may have, whatever its kind (k8s.io/apimachinery ``validation``).

Annotations of ours are judged here, too: no API server knows them, so that a misspelt one would stay unseen.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from joinery.objects import own_keys
from joinery.objects.karpenter import meta as resources
from joinery.objects.karpenter.labels import OWN_GROUP
from joinery.objects.kubernetes.core import ObjectMeta, PodSpec
from joinery.objects.kubernetes.quantity import parse
from joinery.objects.spelling import meant_by

_DOMAIN = f"{OWN_GROUP}/"
#: So many names are said where none of them was probably meant.
_FEW = 3
#: Where people write those of each kind.
_PLACES = {
    own_keys.NODE_POOL: "metadata.annotations of a NodePool",
    own_keys.POD: "spec.template.metadata.annotations of a Deployment",
    own_keys.CAPACITY_BUFFER: "metadata.annotations of a CapacityBuffer",
    own_keys.NODE_CLASS: "metadata.annotations of an EC2NodeClass",
    own_keys.NODE_OVERLAY: "metadata.annotations of a NodeOverlay",
    own_keys.NAMESPACE: "metadata.annotations of a Namespace",
}

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_LONGEST_LABEL, _LONGEST_NAME = 63, 253
#: Kinds whose names are single labels of the domain name system.
_SHORT_NAMES = ("Namespace",)
_IN_WORDS = "lower-case letters, digits and '-' only, and begin and end with a letter or digit"
#: What a container may ask for without a domain (k8s.io/kubernetes ``IsStandardContainerResourceName``).
_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")


def wrong_metadata(meta: ObjectMeta | resources.ObjectMeta, kind: str) -> Iterator[str]:
    """``field: what is wrong`` with an object's name, namespace or labels."""
    if kind in _SHORT_NAMES:
        yield from _wrong_label("name", meta.name)
    elif len(meta.name) > _LONGEST_NAME or not _DNS_SUBDOMAIN.fullmatch(meta.name):
        yield (
            f"metadata.name: {meta.name!r:.300} is no name: it must have {_IN_WORDS}; dots between, {_LONGEST_NAME} "
            "characters at most"
        )
    if meta.namespace:
        yield from _wrong_label("namespace", meta.namespace)
    yield from wrong_labels(meta.labels, "metadata.labels")


def wrong_labels(labels: Mapping[str, str], at: str) -> Iterator[str]:
    """The same for labels; ``at`` is their path."""
    for key, value in labels.items():
        if not resources.is_label_key(key):
            yield f"{at}: {key!r:.400} is no label key"
        if not resources.is_label_value(value):
            yield (
                f"{at}.{key}: {value!r:.300} is no label value: letters, digits, '-', '_' and '.' only, "
                f"beginning and ending with a letter or digit, {_LONGEST_LABEL} characters at most"
            )


def _wrong_label(field: str, name: str) -> Iterator[str]:
    if len(name) > _LONGEST_LABEL or not _DNS_LABEL.fullmatch(name):
        yield (
            f"metadata.{field}: {name!r:.300} is no name: it must have {_IN_WORDS}, {_LONGEST_LABEL} characters at most"
        )


def wrong_resources(spec: PodSpec, at: str) -> Iterator[str]:
    """The same for what containers ask for by a name that is no resource's (``memroy``, ``gpu``), and for devices.

    Extended resources are whole numbers and never overcommitted (k8s.io/kubernetes ``ValidateResourceRequirements``):
    half a device would be planned as a whole one.
    """
    for where, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            asked, path = container.resources, f"{at}.{where}[{index}].resources"
            for field, quantities in (("requests", asked.requests), ("limits", asked.limits)):
                for name, given in quantities.items():
                    if problem := _wrong_resource(name, given):
                        yield f"{path}.{field}{f'[{name}]' if '/' in name else f'.{name}'}: {problem}"
            for name in filter(_is_device, asked.requests):
                requested, limit = asked.requests[name], asked.limits.get(name, "")
                number, most = _number(requested), _number(limit)
                if number is not None and most is not None and number != most:
                    yield f"{path}.requests[{name}]: {requested} must be the same as the limit, {limit}"


def _wrong_resource(name: str, given: str | int | float) -> str | None:
    if _is_device(name):
        number = _number(given)
        return f"{given!r} must be a whole number" if number and number != number.to_integral_value() else None
    if "/" in name or name in _OF_CONTAINERS or name.startswith("hugepages-"):
        return None
    meant = meant_by(name, _OF_CONTAINERS)
    hint = f"; is it {meant}?" if meant else ", and others have a domain such as nvidia.com/gpu"
    return f"no such resource: there are {', '.join(_OF_CONTAINERS)}{hint}"


def _is_device(name: str) -> bool:
    """An extended resource, as a device plugin offers it."""
    return "/" in name and "kubernetes.io/" not in name


def _number(given: str | int | float) -> Decimal | None:
    """``None`` for no quantity, which is said where fields are."""
    try:
        return parse(given)
    except ValueError:
        return None


def nothing_reads(annotations: Iterable[str], kind: str) -> Iterator[str]:
    """Of each of our annotations that no object of that kind has, that nothing reads it there."""
    # A prefix may be in capitals, too, and is another one then.
    ours = {key for key in annotations if key[: len(_DOMAIN)].lower() == _DOMAIN}
    # Most objects have none, and there may be a hundred thousand.
    unread = sorted(ours and ours - _keys(own_keys.OF_JOINERY, kind) - _keys(own_keys.FOR_PEOPLE, kind))
    if not unread:
        return
    proposed = _keys(own_keys.FOR_PEOPLE, kind) or _keys(own_keys.FOR_PEOPLE, *_PLACES)
    names = [key.removeprefix(_DOMAIN) for key in proposed]
    for key in unread:
        hint = ""
        if places := [place for of_kind, place in _PLACES.items() if key in _keys(own_keys.FOR_PEOPLE, of_kind)]:
            hint = f": it belongs to {' or to '.join(places)}"
        elif meant := meant_by(key[len(_DOMAIN) :], names):
            hint = f"; is it {_DOMAIN}{meant}?"
        elif len(proposed) <= _FEW:
            hint = f"; there {'is' if len(proposed) == 1 else 'are'} {' and '.join(sorted(proposed))}"
        yield f"metadata.annotations: nothing reads {key} of a {kind}{hint}"


def _keys(keys: Mapping[str, own_keys.OwnKey], *kinds: str) -> frozenset[str]:
    return frozenset(key for key, own in keys.items() if {*kinds} & {*own.about})
