"""Which images an EC2NodeClass means: alias to SSM parameters, images to requirements, the best of several.

An AMI family's alias stands for several images, one per architecture and kind of accelerator; each says by requirements
which instance types it can boot (Karpenter for AWS `MapToInstanceTypes`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from joinery.apis import labels
from joinery.apis.ec2nodeclass import AMISelectorTerm, AMIStatus
from joinery.apis.meta import Requirement
from joinery.errors import ConfigurationError

_GPU = f"{labels.AWS_GROUP}/instance-gpu-count"
_ACCELERATOR = f"{labels.AWS_GROUP}/instance-accelerator-count"
_ARCHES = {"amd64": "x86_64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Variant:
    """One image that an alias stands for: where SSM keeps its id, and what it is for."""

    parameter: str
    arch: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Image:
    """An image as EC2 describes it. ``arch`` is Kubernetes' word, empty where unknown."""

    id: str
    name: str
    arch: str
    created_at: datetime
    deprecated: bool = False


def standard_requirements() -> tuple[Requirement, ...]:
    """An image without drivers: for types without accelerators."""
    return tuple(Requirement(key=key, operator="DoesNotExist") for key in (_ACCELERATOR, _GPU))


_REQUIREMENTS = {
    "standard": standard_requirements(),
    "nvidia": (Requirement(key=_GPU, operator="Exists"),),
    "neuron": (Requirement(key=_ACCELERATOR, operator="Exists"),),
}


def variants(term: AMISelectorTerm, version: str) -> tuple[Variant, ...]:
    """The images of an alias for a Kubernetes minor version. Raises ``ConfigurationError`` for one that has none."""
    family, _, pinned = term.alias.partition("@")
    release = "" if pinned == "latest" else pinned
    match family:
        case "al2023":
            return tuple(_al2023(version, release))
        case "al2":
            return tuple(_al2(version, release))
        case "bottlerocket":
            return tuple(_bottlerocket(version, release))
    raise ConfigurationError(f"amiSelectorTerms: alias {term.alias}: the family is not supported yet")


def _al2023(version: str, release: str) -> Iterable[Variant]:
    for arch, name in _ARCHES.items():
        for kind in ("standard", "nvidia", "neuron") if arch == "amd64" else ("standard", "nvidia"):
            last = f"amazon-eks-node-al2023-{name}-{kind}-{version}-{release}" if release else "recommended"
            path = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{name}/{kind}/{last}/image_id"
            yield Variant(path, arch, (kind,))


def _al2(version: str, release: str) -> Iterable[Variant]:
    if int(version.partition(".")[2]) >= 33:
        raise ConfigurationError(f"amiSelectorTerms: alias al2 has no images for Kubernetes {version}")
    rows = (("", "amd64", ("standard",)), ("-arm64", "arm64", ("standard",)), ("-gpu", "amd64", ("neuron", "nvidia")))
    for suffix, arch, kinds in rows:
        last = f"amazon-eks{suffix}-node-{version}-{release}" if release else "recommended"
        path = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2{suffix}/{last}/image_id"
        yield Variant(path, arch, kinds)


def _bottlerocket(version: str, release: str) -> Iterable[Variant]:
    wanted = release.removeprefix("v") or "latest"
    for arch, name in _ARCHES.items():
        base = f"/aws/service/bottlerocket/aws-k8s-{version}"
        kinds = ("standard", "neuron") if arch == "amd64" else ("standard",)
        yield Variant(f"{base}/{name}/{wanted}/image_id", arch, kinds)
        yield Variant(f"{base}-nvidia/{name}/{wanted}/image_id", arch, ("nvidia",))


def statuses(images: Iterable[tuple[Image, tuple[str, ...]]]) -> list[AMIStatus]:
    """The status entries of images, each with the kinds of node it is for; none for an image that says no kind.

    Of images for the same types the best stays: not deprecated, then the newest, then by name (3.5). Newest first.
    """
    best: dict[tuple[str, str], Image] = {}
    for image, kinds in images:
        for kind in kinds or ("",):
            rival = best.get((image.arch, kind))
            if image.arch and (rival is None or _rank(image) > _rank(rival)):
                best[image.arch, kind] = image
    entries = sorted(best.items(), key=lambda item: (-item[1].created_at.timestamp(), item[1].id, item[0]))
    return [_status(image, kind) for (_, kind), image in entries]


def _rank(image: Image) -> tuple[bool, datetime, str]:
    return (not image.deprecated, image.created_at, image.name)


def _status(image: Image, kind: str) -> AMIStatus:
    arch = Requirement(key=labels.ARCH, operator="In", values=[image.arch])
    rules = [arch, *_REQUIREMENTS.get(kind, ())]
    return AMIStatus(id=image.id, name=image.name, deprecated=image.deprecated, requirements=rules)
