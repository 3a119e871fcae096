"""EC2NodeClasses of v1 as those of v1beta1, and as AWSNodeTemplates."""

from collections.abc import Mapping, Sequence
from itertools import product

from joinery.objects.karpenter.legacy import DEFAULT_PROFILE, IMAGE_KEYS, SELECTORS, TEMPLATE_FIELDS
from joinery_cli.converting.written import Document, Written, without_empty


class NoEquivalentError(ValueError):
    """The object cannot be said in that API. The message names the field and what to do about it."""


#: What both versions of the class have, besides what is converted here.
_OF_BETA = frozenset(
    {
        "role", "instanceProfile", "subnetSelectorTerms", "securityGroupSelectorTerms", "amiFamily", "userData", "tags",
        "blockDeviceMappings", "detailedMonitoring", "metadataOptions", "associatePublicIPAddress", "context",
        "instanceStorePolicy",
    }
)  # fmt: skip
_HOP_LIMIT = "httpPutResponseHopLimit"
_UNNAMED = frozenset({"kubelet", "amiSelectorTerms", "amiFamily", "metadataOptions"})


def beta_class(written: Written) -> Written:
    """The EC2NodeClass of v1beta1. Raises ``NoEquivalentError``."""
    spec = written.document["spec"]
    kept = {name: value for name, value in spec.items() if name in _OF_BETA}
    family, terms = _images(spec)
    kept |= {"amiFamily": family} | ({"amiSelectorTerms": terms} if terms else {})
    kept["metadataOptions"] = _metadata_options(spec)
    document = {**written.document, "apiVersion": "karpenter.k8s.aws/v1beta1", "spec": kept}
    return Written(document, (*written.notes, *dropped(spec, _OF_BETA)))


def node_template(written: Written) -> Written:
    """The AWSNodeTemplate. Raises ``NoEquivalentError``."""
    spec = written.document["spec"]
    if not spec.get("instanceProfile"):
        raise NoEquivalentError("spec.role: has no equivalent; name an instance profile of it in spec.instanceProfile")
    family, terms = _images(spec)
    kept = {name: value for name, value in spec.items() if name in TEMPLATE_FIELDS and value != DEFAULT_PROFILE}
    kept |= {"amiFamily": family, "metadataOptions": _metadata_options(spec)}
    for name in SELECTORS:
        kept[name] = _selector(spec.get(f"{name}Terms") or [], f"spec.{name}Terms")
    if terms:
        kept["amiSelector"] = _selector(terms, "spec.amiSelectorTerms")
    metadata = written.document["metadata"]
    document = {
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "metadata": metadata,
        "spec": kept,
    }
    said = TEMPLATE_FIELDS | {f"{name}Terms" for name in SELECTORS}
    return Written(document, (*written.notes, *dropped(spec, said)))


def dropped(spec: Document, said: frozenset[str]) -> Sequence[str]:
    """A note for each field that is lost, but those that have one of their own."""
    lost = without_empty(spec).keys() - said - _UNNAMED
    return [f"spec.{name} has no equivalent and is dropped" for name in sorted(lost)]


def _metadata_options(spec: Document) -> Document:
    """v1 allows one hop where nothing is said, the older APIs two."""
    return {_HOP_LIMIT: 1, **(spec.get("metadataOptions") or {})}


def _images(spec: Document) -> tuple[str, Sequence[Document]]:
    """The family, and the terms that select images; none for the newest of the family. Raises ``NoEquivalentError``."""
    terms = spec.get("amiSelectorTerms") or []
    alias = next((term["alias"] for term in terms if term.get("alias")), "")
    name, _, version = str(alias).partition("@")
    if version not in ("", "latest"):
        raise NoEquivalentError(f"spec.amiSelectorTerms: {alias} has no equivalent; select the image by its id or name")
    if any(term.get("ssmParameter") for term in terms):
        raise NoEquivalentError("spec.amiSelectorTerms: ssmParameter has no equivalent; select the image by its id")
    family = spec.get("amiFamily") or _FAMILIES.get(name) or "Custom"
    return family, [] if alias else terms


_FAMILIES = {
    name.lower(): name for name in ("AL2", "AL2023", "Bottlerocket", "Windows2019", "Windows2022", "Windows2025")
}
_KEYS: Mapping[str, str] = {field: key for key, field in IMAGE_KEYS.items()}


def _selector(terms: Sequence[Document], where: str) -> dict[str, str]:
    """The map that selects the same: ids, or one term of which values may be lists. Raises ``NoEquivalentError``."""
    ids = [term["id"] for term in terms if term.get("id")]
    if ids and len(ids) == len(terms):
        return {"aws-ids": ",".join(ids)}
    flat = [
        {**{_KEYS[key]: value for key, value in term.items() if key in _KEYS}, **(term.get("tags") or {})}
        for term in terms
    ]
    keys = flat[0].keys() if flat else ()
    values: dict[str, list[str]] = {key: list(dict.fromkeys(one.get(key, "") for one in flat)) for key in keys}
    said = {tuple(sorted(one.items())) for one in flat}
    meant = {tuple(sorted(zip(values, chosen, strict=True))) for chosen in product(*values.values())}
    if not flat or said != meant or any("," in value for listed in values.values() for value in listed):
        raise NoEquivalentError(f"{where}: these terms have no equivalent: a map selects by ids, or by lists of values")
    return {key: ",".join(listed) for key, listed in values.items()}
