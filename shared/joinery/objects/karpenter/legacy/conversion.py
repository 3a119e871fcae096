"""All legacy objects of a cluster at once: kubelet settings move from pools to the classes that the pools refer to."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from joinery.objects.karpenter.legacy import beta, earliest, nodetemplate, provisioner
from joinery.objects.karpenter.legacy.names import NotConvertibleError
from joinery.objects.karpenter.legacy.record import with_record
from joinery.objects.karpenter.meta import Origin

Document = dict[str, Any]
#: ``apiVersion`` and kind.
Version = tuple[str, str]

_ALPHA_POOL: Version = ("karpenter.sh/v1alpha5", "Provisioner")
_ALPHA_CLASS: Version = ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate")
_ALPHA_CLAIM: Version = ("karpenter.sh/v1alpha5", "Machine")
_EARLIEST_POOLS: tuple[Version, ...] = (
    ("karpenter.sh/v1alpha4", "Provisioner"),
    ("karpenter.sh/v1alpha3", "Provisioner"),
)
_BETA_POOL: Version = ("karpenter.sh/v1beta1", "NodePool")
_BETA_CLASS: Version = ("karpenter.k8s.aws/v1beta1", "EC2NodeClass")
_BETA_CLAIM: Version = ("karpenter.sh/v1beta1", "NodeClaim")

#: The kinds of each generation, and what the API server calls them in URLs.
ALPHA_KINDS: Mapping[Version, str] = {
    _ALPHA_CLASS: "awsnodetemplates",
    _ALPHA_POOL: "provisioners",
    _ALPHA_CLAIM: "machines",
}
#: The last first. A cluster serves one of them, or v1alpha5.
EARLIEST_KINDS: Mapping[Version, str] = dict.fromkeys(_EARLIEST_POOLS, ALPHA_KINDS[_ALPHA_POOL])
BETA_KINDS: Mapping[Version, str] = {_BETA_CLASS: "ec2nodeclasses", _BETA_POOL: "nodepools", _BETA_CLAIM: "nodeclaims"}
_CALLED_NOW = {"Provisioner": "NodePool", "AWSNodeTemplate": "EC2NodeClass", "Machine": "NodeClaim"}

_POOLS: Mapping[Version, Callable[[Document], provisioner.ConvertedPool]] = {
    **dict.fromkeys(_EARLIEST_POOLS, earliest.pool),
    _ALPHA_POOL: provisioner.pool,
    _BETA_POOL: beta.pool,
}
_CLASSES: Mapping[Version, Callable[[Document], tuple[Document, list[str]]]] = {
    _ALPHA_CLASS: nodetemplate.node_class,
    _BETA_CLASS: beta.node_class,
}
_CLAIMS: Mapping[Version, Callable[[Document], Document]] = {
    _ALPHA_CLAIM: provisioner.claim,
    _BETA_CLAIM: beta.claim,
}


_Pooled = tuple[Origin, provisioner.ConvertedPool]
#: What a conversion meets in an object whose shape is not that of its definition.
_MISSHAPEN = (AttributeError, KeyError, TypeError, ValueError)


@dataclass(frozen=True)
class Equivalent:
    """What a legacy object is in v1: one document, or ``problem`` where there is none.

    ``origin`` is the legacy object; ``notes`` say what was lost or assumed, for a person.
    """

    origin: Origin
    document: Document = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    problem: str = ""

    @property
    def missed_as(self) -> tuple[str, str]:
        """The kind and name by which others refer to it: a pod misses a Provisioner as a NodePool."""
        return called_now(self.origin.kind), self.origin.name


def called_now(kind: str) -> str:
    """What a kind of the older APIs is called in v1."""
    return _CALLED_NOW.get(kind, kind)


def is_legacy(version: Version) -> bool:
    """Whether an object of that ``apiVersion`` and kind has an equivalent here."""
    return version in _POOLS or version in _CLASSES or version in _CLAIMS


def equivalents(documents: Iterable[Document], default_profile: str | None = None) -> tuple[Equivalent, ...]:
    """The v1 equivalent of every legacy object, classes first, each by name; a kubelet's settings are in its class.

    ``default_profile``: the instance profile of templates that name none, which Karpenter's own settings held. Without
    one (empty) such a template cannot be used; None takes it for granted, which is enough for a plan.
    """
    listed = sorted(documents, key=lambda given: (given["kind"], _name(given)))
    stored = {_origin(given): given for given in listed}
    return tuple(
        replace(made, document=with_record(made.document, stored[made.origin])) if made.document else made
        for equivalent in _converted(listed)
        for made in (_with_profile(equivalent, default_profile),)
    )


def _converted(listed: Iterable[Document]) -> tuple[Equivalent, ...]:
    others: list[Equivalent] = []
    pools: list[_Pooled] = []
    classes: dict[str, Equivalent] = {}
    for given in listed:
        version, origin = (given["apiVersion"], given["kind"]), _origin(given)
        try:
            if version in _POOLS:
                pools.append((origin, _POOLS[version](given)))
            elif version in _CLASSES:
                document, notes = _CLASSES[version](given)
                classes[origin.name] = Equivalent(origin, document, tuple(notes))
            else:
                others.append(Equivalent(origin, _CLAIMS[version](given)))
        except NotConvertibleError as refused:
            others.append(Equivalent(origin, problem=str(refused)))
        except _MISSHAPEN:
            # A definition that checks nothing lets anything be stored, and one odd object must not stop the others.
            others.append(Equivalent(origin, problem=f"spec: some field is not of the type that a {origin.kind} has"))
    return (*_with_kubelets(pools, classes), *others)


def _with_profile(equivalent: Equivalent, default_profile: str | None) -> Equivalent:
    """The same with the default instance profile where it names none."""
    spec = equivalent.document.get("spec") or {}
    if default_profile is None or spec.get("instanceProfile") != nodetemplate.DEFAULT_PROFILE:
        return equivalent
    if not default_profile:
        problem = "spec.instanceProfile: is missing, and the setting DefaultInstanceProfile names none"
        return Equivalent(equivalent.origin, problem=problem)
    document = {**equivalent.document, "spec": {**spec, "instanceProfile": default_profile}}
    return replace(equivalent, document=document)


def _origin(given: Document) -> Origin:
    return Origin(given["apiVersion"], given["kind"], _name(given))


def _name(given: Document) -> str:
    name: str = (given.get("metadata") or {}).get("name", "")
    return name


def _with_kubelets(pools: list[_Pooled], classes: dict[str, Equivalent]) -> tuple[Equivalent, ...]:
    """Pools and classes, with a class of its own for every pool whose kubelet its class-mates do not have.

    A class carries one kubelet configuration, and legacy pools that shared a class each had their own.
    """
    own: list[Equivalent] = []
    for origin, made in pools:
        if made.node_class:
            name = _free_name(made.name, classes)
            classes[name] = Equivalent(origin, _renamed(made.node_class, name), tuple(made.class_notes))
            made = made.referring_to(name)
        own.append(_placed(origin, made, pools, classes))
    return (*(classes[name] for name in sorted(classes)), *own)


def _placed(
    origin: Origin, made: provisioner.ConvertedPool, pools: list[_Pooled], classes: dict[str, Equivalent]
) -> Equivalent:
    shared = classes.get(made.class_name)
    notes = list(made.notes)
    if made.kubelet and shared is None:
        fields = ", ".join(sorted(made.kubelet))
        where = f"v1 has them on the EC2NodeClass, and no older {made.class_name} is here"
        notes.append(f"kubelet settings are dropped ({fields}): {where}")
    if made.kubelet and shared is not None:
        alike = all(other.kubelet == made.kubelet for _, other in pools if other.class_name == made.class_name)
        name = made.class_name if alike else _free_name(f"{made.class_name}-{made.name}", classes)
        document = dict(shared.document) if alike else _renamed(shared.document, name)
        document["spec"] = {**document["spec"], "kubelet": made.kubelet}
        classes[name] = replace(shared, document=document, notes=shared.notes if alike else ())
        made = made.referring_to(name)
    return Equivalent(origin, made.document, tuple(notes))


def _free_name(wanted: str, taken: Mapping[str, object]) -> str:
    return wanted if wanted not in taken else _free_name(f"{wanted}-provider", taken)


def _renamed(document: Document, name: str) -> Document:
    """The same under another name. A finalizer is that of the stored object, and not of a second one beside it."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "finalizers"}
    return {**document, "metadata": {**metadata, "name": name}}
