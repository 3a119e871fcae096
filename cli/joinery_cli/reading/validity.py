"""What the API server would refuse of a Kubernetes object, beyond its fields and types: names, labels, containers,
amounts.

Structs take any text. What kube-scheduler alone judges (operators, spreads, affinity) is left to the packing core, as a
reason on the pod; what no cluster could hold at all is an error here, as it is for ``kubectl apply``
(k8s.io/apimachinery ``validation``, k8s.io/kubernetes ``pkg/apis/core/validation``).
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

from joinery.decisions.scheduling.constraints.selectors import read, unreadable
from joinery.objects.karpenter import meta as resources
from joinery.objects.kubernetes.core import DaemonSet, LabelSelector, ObjectMeta, PodSpec, PodTemplateSpec
from joinery.objects.kubernetes.quantity import amount
from joinery.objects.kubernetes.workloads import Workload, WorkloadSpec, label_selector
from joinery_cli.reading.quantities import containers_of, wrong_devices, wrong_resources

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_LABEL, _LONGEST_NAME = 63, 253
#: Kinds whose names are single labels of the domain name system.
_SHORT_NAMES = ("Namespace",)
_IN_WORDS = "lower-case letters, digits and '-' only, and begin and end with a letter or digit"


def wrong_metadata(meta: ObjectMeta | resources.ObjectMeta, kind: str) -> Iterator[str]:
    """``field: what is wrong`` with an object's name, namespace or labels."""
    name, namespace = meta.name, meta.namespace
    is_short = kind in _SHORT_NAMES
    if is_short and (len(name) > _LONGEST_LABEL or not _DNS_LABEL.fullmatch(name)):
        yield f"metadata.name: {name!r} is no name: it must have {_IN_WORDS}, {_LONGEST_LABEL} characters at most"
    elif len(name) > _LONGEST_NAME or not _DNS_SUBDOMAIN.fullmatch(name):
        yield (
            f"metadata.name: {name!r:.300} is no name: it must have {_IN_WORDS}; dots between, {_LONGEST_NAME} "
            "characters at most"
        )
    if namespace and (len(namespace) > _LONGEST_LABEL or not _DNS_LABEL.fullmatch(namespace)):
        yield (
            f"metadata.namespace: {namespace!r:.300} is no name: it must have {_IN_WORDS}, {_LONGEST_LABEL} "
            "characters at most"
        )
    yield from wrong_labels(meta.labels, "metadata.labels")


def wrong_labels(labels: Mapping[str, str], at: str) -> Iterator[str]:
    """The same for labels; ``at`` is their path."""
    for key, value in labels.items():
        if not resources.is_label_key(key):
            yield f"{at}: {key!r:.400} is no label key"
        if not resources.is_label_value(value):
            yield (
                f"{at}.{key}: {value!r:.300} is no label value: letters, digits, '-', '_' and '.' only, beginning and "
                f"ending with a letter or digit, {_LONGEST_LABEL} characters at most"
            )


def wrong_pod(spec: PodSpec, at: str) -> Iterator[str]:
    """The same for a pod's spec, or that of a template."""
    if not spec.containers:
        yield f"{at}.containers: a pod needs a container"
    yield from _wrong_containers(spec, at)
    yield from wrong_resources(spec, at)
    yield from wrong_devices(spec, at)
    yield from _wrong_limits(spec, at)


def _wrong_containers(spec: PodSpec, at: str) -> Iterator[str]:
    seen: set[str] = set()
    for path, container in containers_of(spec):
        name = container.name
        if not name:
            yield f"{at}.{path}.name: is missing"
        elif len(name) > _LONGEST_LABEL or not _DNS_LABEL.fullmatch(name):
            yield f"{at}.{path}.name: {name!r:.300} is no name: it must have {_IN_WORDS}"
        elif name in seen:
            yield f"{at}.{path}.name: {name!r} is used twice"
        seen.add(name)


def _wrong_limits(spec: PodSpec, at: str) -> Iterator[str]:
    """A request beyond its limit. Amounts that are out of range stay what they are: a reason on the pod."""
    for path, container in containers_of(spec):
        requests, limits = container.resources.requests, container.resources.limits
        for name in requests.keys() & limits.keys():
            try:
                is_more = amount(name, requests[name]) > amount(name, limits[name])
            except ValueError:
                continue
            if is_more:
                yield (
                    f"{at}.{path}.resources.requests.{name}: {requests[name]} is more than the limit of {limits[name]}"
                )


def wrong_selector(
    owner: Workload | DaemonSet, selector: LabelSelector | None, template: PodTemplateSpec, at: str
) -> Iterator[str]:
    """A selector that does not match the labels of its own template: its controller would make pods without end."""
    labels = template.metadata.labels
    if owner.metadata.uid or selector is None or unreadable(selector) or read(selector).matches(labels):
        return
    has = ", ".join(f"{key}: {value}" for key, value in labels.items()) or "there are none"
    yield f"{at}.selector: does not match the labels of {at}.template: {has}"


def _selector(spec: WorkloadSpec) -> LabelSelector | None:
    """None too where it is no selector at all, which is told by its fields."""
    try:
        return label_selector(spec)
    except msgspec.ValidationError:
        return None


def wrong_workload(workload: Workload) -> Iterator[str]:
    """The same for what makes pods, its template included."""
    spec, at = workload.spec, "spec"
    if spec.job_template is not None:
        spec, at = spec.job_template.spec, "spec.jobTemplate.spec"
    for name, value in (
        ("replicas", spec.replicas),
        ("parallelism", spec.parallelism),
        ("completions", spec.completions),
    ):
        if value is not None and value < 0:
            yield f"{at}.{name}: must not be negative"
    template = spec.template
    if workload.metadata.uid and not template.spec.containers:
        # The API server takes a StatefulSet whose template is empty; its pods it does not.
        return
    yield from wrong_labels(template.metadata.labels, f"{at}.template.metadata.labels")
    yield from wrong_selector(workload, _selector(spec), template, at)
    yield from wrong_pod(template.spec, f"{at}.template.spec")
    for index, claim in enumerate(workload.spec.volume_claim_templates):
        if not claim.metadata.name:
            yield f"spec.volumeClaimTemplates[{index}].metadata.name: is missing"
