"""What fields objects have, in one notation: Kubernetes' own in a table (``tools/api_fields.py``), custom resources'
from their models, those of Karpenter's older kinds here.

A type is a map of fields, a field has a shape: the name of a type, ``s`` for text, ``i`` for a whole number, ``b`` for
true or false, ``q`` for a quantity, ``*`` for any single value, ``?`` for anything; ``[...]`` is a list and ``{...}`` a
map of those.
"""

import json
from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Any, NamedTuple, cast, get_args, get_origin

import msgspec
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from joinery.gateways.ec2.offline import NODE_CLASS
from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.karpenter.legacy import EARLIEST_FIELDS, KUBELET_FIELDS, PROVIDER_FIELDS, TEMPLATE_FIELDS
from joinery.objects.karpenter.meta import Model
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool

ANYTHING = "?"
SINGLE: Mapping[str, Any] = {
    "s": str, "i": int, "b": bool, "*": str | int | float | bool, "q": str | int | float,
}  # fmt: skip
#: Parts of the API that decide where pods go and have not changed for years: what they lack is no newer field.
CLOSED = frozenset(
    {
        "Affinity", "LabelSelector", "LabelSelectorRequirement", "NodeAffinity", "NodeSelector",
        "NodeSelectorRequirement", "NodeSelectorTerm", "PodAffinity", "PodAntiAffinity", "PreferredSchedulingTerm",
        "ProvisionerConsolidation", "ProvisionerLimits", "ProvisionerRef", "ResourceRequirements", "Taint",
        "Toleration", "VolumeResourceRequirements", "WeightedPodAffinityTerm",
    }
)  # fmt: skip
#: Neither negative nor with blanks around it: what does not match is looked at more closely.
_PLAIN_QUANTITY = r"^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+|[KMGTPE]i|[numkMGTPE])?\Z"
_MODELS = {model.kind: model for model in (NodePool, NodeClaim, NodeOverlay, CapacityBuffer, NODE_CLASS)}
#: Ends the names of types as v1beta1 had them.
BETA = " of v1beta1"
#: Ends the names of types as v1alpha3 and v1alpha4 had them.
EARLIEST = " of v1alpha4"
#: What stays behind of Karpenter's older kinds. What they carry over into v1 is looked at there.
_OLDER: Mapping[str, Mapping[str, str]] = {
    "ProvisionerSpec": {
        **dict.fromkeys(
            ("instanceTypes", "requirements", "startupTaints", "taints", "ttlSecondsAfterEmpty",
             "ttlSecondsUntilExpired", "weight"),
            ANYTHING,
        ),
        **dict.fromkeys(("annotations", "labels"), "{?}"),
        "consolidation": "ProvisionerConsolidation",
        "kubeletConfiguration": "OlderKubelet",
        "providerRef": "ProvisionerRef",
        "limits": "ProvisionerLimits",
        "provider": "AWSNodeTemplateSpec",
    },
    f"ProvisionerSpec{EARLIEST}": {
        **dict.fromkeys(EARLIEST_FIELDS, ANYTHING),
        "cluster": f"Cluster{EARLIEST}",
        "labels": "{?}",
        "provider": f"Provider{EARLIEST}",
    },
    f"Cluster{EARLIEST}": dict.fromkeys(("name", "endpoint", "caBundle"), "s"),
    f"Provider{EARLIEST}": dict.fromkeys(TEMPLATE_FIELDS | PROVIDER_FIELDS, ANYTHING),
    "ProvisionerConsolidation": {"enabled": "b"},
    "ProvisionerLimits": {"resources": "{q}"},
    "ProvisionerRef": dict.fromkeys(("apiVersion", "kind", "name"), "s"),
    "OlderKubelet": dict.fromkeys(KUBELET_FIELDS, ANYTHING),
    # What else is wrong with a NodePool of v1beta1 is found in what it is in v1.
    f"NodePool{BETA}": {"spec": f"NodePoolSpec{BETA}"},
    f"NodePoolSpec{BETA}": {"template": f"NodeClaimTemplate{BETA}", "limits": "{?}"},
    f"NodeClaimTemplate{BETA}": {"spec": f"NodeClaimTemplateSpec{BETA}"},
    f"NodeClaimTemplateSpec{BETA}": {"kubelet": "OlderKubelet"},
    "AWSNodeTemplateSpec": dict.fromkeys(TEMPLATE_FIELDS, ANYTHING),
}  # fmt: skip
#: What people carry over from older versions into v1, by type.
_GONE: Mapping[str, Mapping[str, str]] = {
    "NodeClassRef": {"apiVersion": "group: karpenter.k8s.aws"},
    "NodePoolSpec": {
        "consolidation": "spec.disruption.consolidationPolicy",
        "kubeletConfiguration": "spec.kubelet of the EC2NodeClass",
        "providerRef": "spec.template.spec.nodeClassRef",
        "ttlSecondsAfterEmpty": "spec.disruption.consolidateAfter",
        "ttlSecondsUntilExpired": "spec.template.spec.expireAfter",
    },
}
_OLDER_KINDS = ("Provisioner", "AWSNodeTemplate")
#: Custom resources whose fields are known.
CUSTOM_KINDS = (*_MODELS, *_OLDER_KINDS)


class Type(NamedTuple):
    """``required``: fields that an API server asks for and our model does not, with what to write; ``gone``: fields of
    older versions, with what to write in their place.
    """

    fields: Mapping[str, str]
    required: Mapping[str, str] = {}
    gone: Mapping[str, str] = {}


@cache
def _table() -> Mapping[str, Any]:
    text = (resources.files("joinery_cli.reading") / "data" / "kubernetes.json").read_text(encoding="utf-8")
    table: Mapping[str, Any] = json.loads(text)
    return table


def real_kinds() -> Collection[str]:
    """Every kind of Kubernetes' own API."""
    kinds: Collection[str] = _table()["kinds"]
    return kinds


def kinds_beside(kind: str) -> Collection[str]:
    """Custom resources that are written together with this kind, and have fields that it may be taken to have."""
    return next((kinds for kinds in (tuple(_MODELS), _OLDER_KINDS) if kind in kinds), ())


@cache
def types() -> Mapping[str, Type]:
    """All types by name; an object's is called like its kind."""
    found = {name: Type(fields) for name, fields in {**_table()["types"], **_OLDER}.items()}
    head = {**dict.fromkeys(("apiVersion", "kind", "status"), ANYTHING), "metadata": "ObjectMeta"}
    for kind in CUSTOM_KINDS:
        model = _MODELS.get(kind)
        spec = _shape(model.model_fields["spec"].annotation, found) if model else f"{kind}Spec"
        found[kind] = Type({**head, "spec": spec})
    found[f"Provisioner{EARLIEST}"] = Type({**head, "spec": f"ProvisionerSpec{EARLIEST}"})
    return found


def _shape(annotation: Any, found: dict[str, Type]) -> str:
    """Of a model's field. What single values it takes says the model itself."""
    model, container = _model_in(annotation), _container_in(annotation)
    if model is None:
        return f"{{{ANYTHING}}}" if container is dict else ANYTHING
    # Models may be called like Kubernetes' own types (``Taint``).
    name = f"{model.__name__} of Karpenter"
    if name not in found:
        fields = {field.alias or key: _shape(field.annotation, found) for key, field in model.model_fields.items()}
        found[name] = Type(fields, _required(model), _GONE.get(model.__name__, {}))
    return f"[{name}]" if container is list else name


def _required(model: type[BaseModel]) -> Mapping[str, str]:
    """What the model has a default for, and the definition has none."""
    names = sorted(model.required_on_wire) if issubclass(model, Model) else ()
    fields = ((model.model_fields[name].alias or name, model.model_fields[name]) for name in names)
    return {wire: hint for wire, field in fields if (hint := _hint(wire, field))}


def _hint(wire: str, field: FieldInfo) -> str:
    if isinstance(field.default, list):
        return f"{wire}: [] for none"
    extra = field.json_schema_extra
    is_asked = isinstance(extra, dict) and extra.get("default", wire) is None
    return f"{wire}: {field.default}" if is_asked else ""


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model in ``list[Annotated[Model, ...]]``, ``Model | None`` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)


def _container_in(annotation: Any) -> type | None:
    """``list`` or ``dict``, where the field has several members."""
    origin = get_origin(annotation)
    if origin in (list, dict):
        return cast("type", origin)
    return next((found for part in get_args(annotation) if (found := _container_in(part))), None)


# --- a type as msgspec reads it: in no time, where nothing is wrong ---


@cache
def strict_decoder(name: str) -> msgspec.json.Decoder[Any]:
    """Raises ``msgspec.ValidationError`` for what the type does not have or does not allow."""
    return msgspec.json.Decoder(_struct(name))


@cache
def _struct(name: str) -> Any:
    fields = types()[name].fields
    names = {f"field_{number}": field for number, field in enumerate(fields)}
    defined = [(attribute, _annotation(fields[field]), None) for attribute, field in names.items()]
    return msgspec.defstruct(name, defined, rename=names, forbid_unknown_fields=True, gc=False)


def _annotation(shape: str) -> Any:
    inner: Any
    if shape == ANYTHING:
        return Any
    if shape == "q":
        inner = Annotated[str, msgspec.Meta(pattern=_PLAIN_QUANTITY)] | Annotated[int, msgspec.Meta(ge=0)]
    elif shape in SINGLE:
        inner = SINGLE[shape]
    elif shape[0] == "[":
        inner = list[_annotation(shape[1:-1])]  # type: ignore[misc]
    else:
        inner = dict[str, _annotation(shape[1:-1])] if shape[0] == "{" else _struct(shape)  # type: ignore[misc]
    return inner | None
