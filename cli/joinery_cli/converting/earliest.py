"""NodePools of v1 as Provisioners of v1alpha3 and v1alpha4 (Karpenter v0.3 and v0.4), each with its class.

Written is what releases took: ``requirements`` of v1alpha4 came after v0.4.0, and the next release had v1alpha5.
"""

from collections.abc import Iterator, Mapping, Sequence

from joinery.decisions.scheduling.constraints.requirements import (
    Requirements,
    UnknownOperatorError,
    ValueSet,
    of_labels,
    read,
)
from joinery.objects.karpenter import duration, labels
from joinery.objects.karpenter.legacy import CAPACITY_TYPE_LABEL, SETTINGS_DOMAIN
from joinery.objects.karpenter.meta import Requirement
from joinery_cli.converting.earliest_classes import Cluster, with_class
from joinery_cli.converting.older_classes import NoEquivalentError
from joinery_cli.converting.older_pools import drop, has_budgets_of_its_own, metadata, parts, seconds
from joinery_cli.converting.written import Document, Written, without_empty
from joinery_cli.options import Api

_LISTS: Mapping[str, str] = {labels.INSTANCE_TYPE: "instanceTypes", labels.ZONE: "zones"}
#: All that Karpenter knew then, what it chose by itself first.
_KNOWN: Mapping[str, Sequence[str]] = {
    labels.OS: ("linux",),
    labels.ARCH: ("amd64", "arm64"),
    labels.CAPACITY_TYPE: (labels.ON_DEMAND, labels.SPOT),
}


def earliest_provisioner(pool: Written, node_class: Written | None, api: Api, cluster: Cluster) -> Written:
    """The Provisioner. Raises ``NoEquivalentError``."""
    given, template, notes = parts(pool)
    node, of_nodes = template["spec"], dict(template.get("metadata") or {})
    if node_class is None:
        raise NoEquivalentError(f"{api} has what {node['nodeClassRef']['name']} says in the Provisioner: give it, too")
    drop(of_nodes, "annotations", "spec.template.metadata.annotations", notes)
    drop(node, "startupTaints", "spec.template.spec.startupTaints", notes)
    drop(node, "terminationGracePeriod", "spec.template.spec.terminationGracePeriod", notes)
    drop(given, "limits", "spec.limits", notes)
    drop(given, "weight", "spec.weight", notes)
    requirements = [Requirement.model_validate(one) for one in node.get("requirements") or ()]
    notes += [f"minValues of {one.key} has no equivalent and is dropped" for one in requirements if one.min_values]
    sets = _sets(requirements, of_nodes.get("labels") or {})
    left = {key: _left(key, sets.get(key), requirements, notes) for key in _KNOWN}
    said = dict(_labels(sets, notes))
    if api is Api.V1ALPHA3:
        of_api: Document = {"architecture": _one_of(labels.ARCH, left, notes)}
        said[CAPACITY_TYPE_LABEL] = _one_of(labels.CAPACITY_TYPE, left, notes)
    else:
        of_api = {"architectures": left[labels.ARCH], "provider": {"capacityTypes": left[labels.CAPACITY_TYPE]}}
    spec = {
        "labels": said,
        "taints": node.get("taints"),
        **{field: _listed(key, sets.get(key), requirements, notes) for key, field in _LISTS.items()},
        **of_api,
        "ttlSecondsAfterEmpty": _after_empty(given["disruption"], notes),
        "ttlSecondsUntilExpired": seconds(node.get("expireAfter", "720h")),
    }
    document = {
        "apiVersion": f"karpenter.sh/{api}",
        "kind": "Provisioner",
        "metadata": _layering(metadata(pool), api, notes),
        "spec": without_empty(spec),
    }
    # What reading one of these versions changed is as it was again.
    before = () if pool.is_of_earliest else pool.notes
    return with_class(Written(document, (*before, *notes), pool.source), node_class, api, cluster)


def _layering(given: Document, api: Api, notes: list[str]) -> Document:
    """Its metadata, with whether what pods select overrides what it lists: Joinery reads these APIs so.

    Karpenter's own releases of v1alpha4, v0.3.4 and v0.4.0, layered both as v1 does.
    """
    annotations = dict(given.get("annotations") or {})
    if annotations.get(labels.OVERRIDES) == "true":
        del annotations[labels.OVERRIDES]
    elif labels.OVERRIDES not in annotations:
        annotations[labels.OVERRIDES] = "false"
        if api is Api.V1ALPHA3:
            notes.append(f"Karpenter v0.3 lets pods override what it lists; Joinery layers both, by {labels.OVERRIDES}")
    return without_empty({**given, "annotations": annotations})


def _after_empty(disruption: Document, notes: list[str]) -> int | None:
    """``ttlSecondsAfterEmpty``, the only reason besides age for which a node went."""
    if has_budgets_of_its_own(disruption):
        notes.append("budgets are dropped: nothing limits how many nodes go at once")
    after = disruption.get("consolidateAfter") or "0s"
    if disruption.get("consolidationPolicy") != "WhenEmpty" and after != duration.NEVER:
        notes.append("nodes are not consolidated: they go when they are empty, or too old")
    return seconds(after)


# --- requirements ---


def _sets(requirements: Sequence[Requirement], of_nodes: Mapping[str, str]) -> Requirements:
    """What they leave of each label, with what its nodes have."""
    try:
        sets = read(requirements).intersect(of_labels(of_nodes)).canonical()
    except UnknownOperatorError as error:
        raise NoEquivalentError(f"spec.template.spec.requirements: {error}") from error
    if impossible := [key for key in sets if sets.get(key).is_impossible]:
        raise NoEquivalentError(f"spec.template.spec.requirements: they leave no value for {impossible[0]}")
    return sets


def _labels(sets: Requirements, notes: list[str]) -> Iterator[tuple[str, str]]:
    """What has one value, and is nobody else's to say. A note for any other requirement."""
    for key, allowed in sets.sets.items():
        if key in _LISTS or key in _KNOWN:
            continue
        if key.startswith(SETTINGS_DOMAIN):
            notes.append(f"the label {key} is dropped: it is a setting there")
        elif allowed.complement or len(allowed.values) != 1 or key in labels.WELL_KNOWN:
            notes.append(f"the requirement on {key} has no equivalent and is dropped")
        else:
            yield key, next(iter(allowed.values))


def _listed(key: str, allowed: ValueSet, given: Sequence[Requirement], notes: list[str]) -> list[str]:
    """Its values; none for any."""
    if not allowed.complement:
        return _in_order(key, allowed.values, given)
    if allowed.operator == "NotIn":
        notes.append(f"the requirement on {key} has no equivalent and is dropped: it only excludes values")
    return []


def _left(key: str, allowed: ValueSet, given: Sequence[Requirement], notes: list[str]) -> list[str]:
    """What is left of the values that Karpenter knew. Raises ``NoEquivalentError`` where that is nothing."""
    left = [value for value in _KNOWN[key] if allowed.has(value)]
    unknown = sorted(set() if allowed.complement else allowed.values - {*left})
    if not left:
        raise NoEquivalentError(f"spec.template.spec.requirements: {key} {', '.join(unknown)} has no equivalent")
    notes += [f"{key} {value} has no equivalent and is dropped" for value in unknown]
    return left if allowed.complement else _in_order(key, left, given)


def _one_of(key: str, left: Mapping[str, Sequence[str]], notes: list[str]) -> str:
    """The value that v1alpha3 takes of several: what Karpenter chose by itself."""
    if len(left[key]) == 1:
        return left[key][0]
    value = _KNOWN[key][0]
    others = ", ".join(other for other in left[key] if other != value)
    notes.append(f"{key} has one value in v1alpha3, {value}: pods get {others} only if they select it")
    return value


def _in_order(key: str, values: "Sequence[str] | frozenset[str]", given: Sequence[Requirement]) -> list[str]:
    """As somebody has listed them."""
    listed = [value for one in given if labels.canonical(one.key) == key for value in one.values]
    return [value for value in dict.fromkeys((*listed, *sorted(values))) if value in values]
