"""The compact notation of the golden cases, read into the objects that a snapshot holds.

A case must fit on half a screen, so it writes ``zone In z1,z2`` for a requirement and ``gpu=yes:NoSchedule`` for a
taint, and short names for the well-known labels. Whatever has no short form is written as Kubernetes has it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes import core
from simulator.kubernetes import shapes

ZONES = ("z1", "z2", "z3")
T = TypeVar("T")

Document = dict[str, Any]

SHORT = {
    "zone": keys.ZONE,
    "host": keys.HOSTNAME,
    "capacity": keys.CAPACITY_TYPE,
    "arch": keys.ARCH,
    "os": keys.OS,
    "type": keys.INSTANCE_TYPE,
    "region": keys.REGION,
    "pool": keys.NODE_POOL,
    "reservation": keys.RESERVATION_ID,
    **{
        name: f"{keys.AWS_GROUP}/{name}"
        for name in ("instance-family", "instance-size", "instance-cpu", "instance-category")
    },
    **{
        name: f"{keys.AWS_GROUP}/{name}"
        for name in ("instance-memory", "instance-gpu-name", "instance-generation", "instance-gpu-fractional")
    },
}
LONG = {long: short for short, long in SHORT.items()}


def only(given: Mapping[str, object], known: str | Collection[str], of: type[msgspec.Struct] | None = None) -> None:
    """Refuse what nobody would read: a case with a slip in it would pass, and say nothing.

    ``known``: the keys of a compact form. ``of``: the object whose own fields may stand beside them.
    """
    fields = of.__struct_encode_fields__ if of else ()
    unread = given.keys() - set(known.split() if isinstance(known, str) else known) - set(fields)
    assert not unread, f"nobody reads {sorted(unread)} of {dict(given)}"


def key(name: str) -> str:
    """The label key that a short name stands for."""
    return SHORT.get(name, name)


def label_map(given: Mapping[str, object]) -> dict[str, str]:
    """Labels, their keys written out."""
    return {key(name): str(value) for name, value in given.items()}


def expression(text: str) -> Document:
    """``zone In z1,z2``, ``team Exists``, ``type In a,b min 2``."""
    name, operator, *rest = text.split()
    found: Document = {"key": key(name), "operator": operator, "values": []}
    if rest and rest[0] != "min":
        found["values"] = rest.pop(0).split(",")
    if rest:
        found["minValues"] = int(rest[1])
    return found


def expressions(given: Iterable[str]) -> list[Document]:
    """Several expressions."""
    return [expression(text) for text in given]


def taint(text: str) -> Document:
    """``key=value:Effect`` or ``key:Effect``."""
    named, _, effect = text.rpartition(":")
    name, _, value = named.partition("=")
    return {"key": name, "value": value, "effect": effect}


def toleration(given: str | Document) -> Document:
    """A taint that is tolerated, ``key=value:Effect``; without a value any value; ``*`` tolerates everything."""
    if not isinstance(given, str):
        return given
    if given == "*":
        return {"operator": "Exists"}
    found = taint(given)
    return found if found["value"] else {"key": found["key"], "operator": "Exists", "effect": found["effect"]}


def selector(given: Document | str | None) -> Document | None:
    """``{app: web}`` is matchLabels; a document with matchLabels or matchExpressions stands as it is;
    ``all`` is empty.
    """
    if given is None or given == "none":
        return None
    if given == "all":
        return {}
    assert isinstance(given, dict)
    return given if {"matchLabels", "matchExpressions"} & set(given) else {"matchLabels": given}


def spread(given: Document) -> Document:
    """``{over: zone, of: {app: web}, maxSkew: 1, soft: true}`` and any other field of a constraint."""
    only(given, "over of soft", core.TopologySpreadConstraint)
    rest = {name: value for name, value in given.items() if name not in ("over", "of", "soft")}
    return {
        "topologyKey": key(given["over"]),
        "maxSkew": 1,
        "labelSelector": selector(given.get("of")),
        "whenUnsatisfiable": "ScheduleAnyway" if given.get("soft") else "DoNotSchedule",
        **rest,
    }


def _pod_term(given: Document) -> Document:
    only(given, "over of weight inNamespaces", core.PodAffinityTerm)
    rest = {name: value for name, value in given.items() if name not in ("over", "of", "weight", "inNamespaces")}
    found = {"topologyKey": key(given["over"]), "labelSelector": selector(given.get("of")), **rest}
    if "inNamespaces" in given:
        found["namespaceSelector"] = selector(given["inNamespaces"])
    return found


def _pod_terms(given: Iterable[Document]) -> Document:
    listed = list(given)
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": [_pod_term(t) for t in listed if "weight" not in t],
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": t["weight"], "podAffinityTerm": _pod_term(t)} for t in listed if "weight" in t
        ],
    }


def affinity(given: Document) -> Document | None:
    """``require``, ``requireAny`` and ``prefer`` (nodes), ``near`` and ``apart`` (pods) of a compact pod."""
    found: Document = {}
    alternatives = given.get("requireAny") or ([given["require"]] if "require" in given else [])
    if alternatives or "prefer" in given:
        terms = [{"matchExpressions": expressions(term)} for term in alternatives]
        found["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [_preferred(term) for term in given.get("prefer", [])],
            **({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}} if terms else {}),
        }
    if "near" in given:
        found["podAffinity"] = _pod_terms(given["near"])
    if "apart" in given:
        found["podAntiAffinity"] = _pod_terms(given["apart"])
    return found or None


def _preferred(text: str) -> Document:
    """``50: zone In z2; arch In arm64``."""
    weight, _, listed = text.partition(":")
    return {"weight": int(weight), "preference": {"matchExpressions": expressions(listed.split(";"))}}


def struct(model: type[T], given: Document) -> T:
    """As our reader makes it of what an API server prints: every case proves reading too."""
    return shapes.read(given, model)
