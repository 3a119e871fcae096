"""Fields of an object that nobody knows: a misspelt one is an error, any other a warning.

Models and structs read what they know and leave the rest, because a newer API server writes more than they know. In a
file that a person wrote, ``nodeSelectr`` would give a plan for another pod; ``kubectl apply`` refuses it, too.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

import msgspec
from pydantic import BaseModel

#: How alike two names must be, and how near in length, for one to be a slip of the other (``roel``, ``limts``).
_ALIKE, _LONGER = 0.75, 2
_TEMPLATED = ("DaemonSet",)
#: The fields of core/v1 PodSpec (Kubernetes 1.36), of which the structs know what scheduling looks at.
POD_SPEC = frozenset(
    [
        "activeDeadlineSeconds",
        "affinity",
        "automountServiceAccountToken",
        "containers",
        "dnsConfig",
        "dnsPolicy",
        "enableServiceLinks",
        "ephemeralContainers",
        "hostAliases",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostUsers",
        "hostname",
        "hostnameOverride",
        "imagePullSecrets",
        "initContainers",
        "nodeName",
        "nodeSelector",
        "os",
        "overhead",
        "preemptionPolicy",
        "priority",
        "priorityClassName",
        "readinessGates",
        "resourceClaims",
        "resources",
        "restartPolicy",
        "runtimeClassName",
        "schedulerName",
        "schedulingGates",
        "schedulingGroup",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "subdomain",
        "terminationGracePeriodSeconds",
        "tolerations",
        "topologySpreadConstraints",
        "volumes",
        "workloadRef",
    ]
)


class _Spec(msgspec.Struct, gc=False):
    spec: dict[str, msgspec.Raw] | None = None


class _Template(msgspec.Struct, gc=False):
    template: _Spec | None = None


class _Templated(msgspec.Struct, gc=False):
    spec: _Template | None = None


def unknown_in_pod(kind: str, raw: msgspec.Raw | bytes) -> Iterator[tuple[str, str]]:
    """Path of each unknown field of a pod's spec or a DaemonSet's template, and the field that was probably meant."""
    if kind in _TEMPLATED:
        template = (msgspec.json.decode(raw, type=_Templated).spec or _Template()).template
        yield from _unknown((template or _Spec()).spec or {}, POD_SPEC, "spec.template.spec")
    elif kind == "Pod":
        yield from _unknown(msgspec.json.decode(raw, type=_Spec).spec or {}, POD_SPEC, "spec")


def unknown_in_model(model: type[BaseModel], document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The same for a custom resource's ``spec``, at any depth. The status is not a person's to write."""
    inner, spec = _model_in(model.model_fields["spec"].annotation), document.get("spec")
    if inner is not None and isinstance(spec, dict):
        yield from _unknown_inside(inner, spec, "spec")


def _unknown_inside(model: type[BaseModel], value: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    yield from _unknown(value, known, at)
    for key, member in value.items():
        inner = _model_in(known[key].annotation) if key in known else None
        if inner is None:
            continue
        for index, part in enumerate(member if isinstance(member, list) else [member]):
            place = f"{at}.{key}[{index}]" if isinstance(member, list) else f"{at}.{key}"
            if isinstance(part, dict):
                yield from _unknown_inside(inner, part, place)


def _unknown(given: Iterable[str], known: Collection[str], at: str) -> Iterator[tuple[str, str]]:
    for key in given:
        if key not in known:
            yield f"{at}.{key}", _meant(key, sorted(known))


def _meant(key: str, known: Sequence[str]) -> str:
    near = [name for name in known if abs(len(name) - len(key)) <= _LONGER]
    return next(iter(get_close_matches(key, near, n=1, cutoff=_ALIKE)), "")


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model in ``list[Annotated[Model, ...]]``, ``Model | None`` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
