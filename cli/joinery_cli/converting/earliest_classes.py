"""What an EC2NodeClass says, in Provisioners of v1alpha3 (labels) and v1alpha4 (the ``provider`` block).

Neither API has a kind for classes. They have no word for images, disks, tags, user data or metadata options.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from joinery.objects.karpenter.legacy import (
    CLUSTER_TAG,
    DEFAULT_PROFILE,
    EARLIEST_FAMILIES,
    NODE_PROFILE,
    SELECTING_LABELS,
    SELECTORS,
)
from joinery_cli.converting.older_classes import NoEquivalentError, dropped
from joinery_cli.converting.written import Document, Written
from joinery_cli.options import Api

_SAID = frozenset({"instanceProfile", *(f"{name}Terms" for name in SELECTORS)})


@dataclass(frozen=True)
class Cluster:
    """What its nodes join. v1 does not say it: there it is the stack's, or Karpenter's own setting."""

    name: str = ""
    endpoint: str = ""


def with_class(provisioner: Written, node_class: Written, api: Api, cluster: Cluster) -> Written:
    """The Provisioner with what its class says. Raises ``NoEquivalentError``."""
    spec = node_class.document["spec"]
    try:
        profile = _profile(spec)
        selectors = {name: _tags(spec.get(f"{name}Terms") or [], f"spec.{name}Terms") for name in SELECTORS}
        given = {"name": cluster.name or _name_in(profile, selectors), "endpoint": cluster.endpoint}
        of_cluster = {field: text for field, text in given.items() if text}
        made = dict(provisioner.document["spec"])
        if api is Api.V1ALPHA3:
            selecting, notes = _of_alpha3(profile, selectors, given["name"])
            made = {"cluster": of_cluster, **made, "labels": {**made.get("labels", {}), **selecting}}
        else:
            provider = {"cluster": of_cluster, "instanceProfile": profile, **made["provider"], **selectors}
            made, notes = {**made, "provider": provider}, []
    except NoEquivalentError as error:
        raise NoEquivalentError(f"{node_class.called}: {error}") from error
    where = "spec.cluster" if api is Api.V1ALPHA3 else "spec.provider.cluster"
    asked = [
        f"{where}.{field} is needed, and no NodePool says it: --cluster-{field}"
        for field in given
        if field not in of_cluster
    ]
    lost = (f"{node_class.called}: {note}" for note in (*notes, *_lost(provisioner, node_class, api)))
    return replace(provisioner, document={**provisioner.document, "spec": made}).noting(*lost, *asked)


def _profile(spec: Document) -> str:
    profile: str = spec.get("instanceProfile") or ""
    if profile in ("", DEFAULT_PROFILE):
        where = (
            "spec.instanceProfile: is missing" if profile or not spec.get("role") else "spec.role: has no equivalent"
        )
        raise NoEquivalentError(f"{where}; name an instance profile in spec.instanceProfile")
    return profile


def _name_in(profile: str, selectors: Mapping[str, Mapping[str, str]]) -> str:
    """The cluster's name, where what Karpenter took for granted has it."""
    if profile.startswith(NODE_PROFILE):
        return profile.removeprefix(NODE_PROFILE)
    tags = (key for tags in selectors.values() for key in tags if key.startswith(CLUSTER_TAG))
    return next(tags, "").removeprefix(CLUSTER_TAG)


def _tags(terms: Sequence[Document], where: str) -> dict[str, str]:
    """The tags, all of which have to match. Raises ``NoEquivalentError``."""
    tags: dict[str, str] = terms[0].get("tags") or {} if len(terms) == 1 and terms[0].keys() == {"tags"} else {}
    if not tags or any("," in value for value in tags.values()):
        raise NoEquivalentError(f"{where}: has no equivalent; select by tags, in one term, one value for each")
    return {key: value or "*" for key, value in tags.items()}


def _of_alpha3(profile: str, selectors: Mapping[str, Mapping[str, str]], name: str) -> tuple[dict[str, str], list[str]]:
    """The labels that select, and notes about them. Raises ``NoEquivalentError``."""
    if profile != f"{NODE_PROFILE}{name}":
        raise NoEquivalentError(
            f"spec.instanceProfile: v1alpha3 has {NODE_PROFILE}{name or 'CLUSTER'} alone, and this is {profile}"
        )
    chosen: dict[str, str] = {}
    notes = []
    of_cluster = f"{CLUSTER_TAG}{name}"
    for selector, tags in selectors.items():
        if tags.get(of_cluster) != "*":
            notes.append(f"spec.{selector}Terms: in v1alpha3 they must also have the tag {of_cluster}")
        rest = {key: value for key, value in tags.items() if (key, value) != (of_cluster, "*")}
        chosen |= _selecting(selector, rest)
    return chosen, notes


def _selecting(selector: str, tags: Mapping[str, str]) -> dict[str, str]:
    """The labels by which these tags are selected: one name, one key. Raises ``NoEquivalentError``."""
    made: dict[str, str] = {}
    for key, value in tags.items():
        tag, text = (key, value) if value != "*" else ("", key)
        label = next((one for one, said in SELECTING_LABELS.items() if said == (selector, tag)), "")
        is_second = label in made or (selector == "subnetSelector" and made)
        if not label or is_second:
            raise NoEquivalentError(
                f"spec.{selector}Terms: {key} has no equivalent; v1alpha3 selects by the tag Name, or by a tag's key"
            )
        made[label] = text
    return made


def _lost(provisioner: Written, node_class: Written, api: Api) -> Iterator[str]:
    """What the class says and the Provisioner cannot."""
    if not node_class.is_of_earliest:
        yield from node_class.notes
        yield "spec.metadataOptions has no equivalent: EC2's own hold, by which IMDSv1 is answered too"
    spec, family = node_class.document["spec"], EARLIEST_FAMILIES[api]
    if spec.get("amiSelectorTerms") != [{"alias": f"{family.lower()}@latest"}]:
        yield f"spec.amiSelectorTerms has no equivalent: its nodes boot the newest image of {family}"
    if spec.get("kubelet"):
        yield "spec.kubelet has no equivalent and is dropped"
    yield from dropped(spec, _SAID)
    if lost := sorted(node_class.annotations.keys() - provisioner.annotations.keys()):
        yield f"its annotations are dropped: {', '.join(lost)}"
