"""Which images an EC2NodeClass means: from an alias to SSM parameters, from images to status entries.

The alias of an AMI family stands for several images, one for each architecture and kind of accelerator. The
requirements of an entry say which instance types its image can boot (Karpenter for AWS `MapToInstanceTypes`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import AMISelectorTerm, AMIStatus
from joinery.objects.karpenter.meta import Requirement

_GPU = f"{labels.AWS_GROUP}/instance-gpu-count"
_ACCELERATOR = f"{labels.AWS_GROUP}/instance-accelerator-count"
_ARCHES = {"amd64": "x86_64", "arm64": "arm64"}


class AliasError(ConfigurationError):
    """An alias that stands for no image here."""


@dataclass(frozen=True, slots=True)
class ImageVariant:
    """One image that an alias stands for.

    ``parameter``: the SSM parameter that holds its id. ``arch``: Kubernetes' word. ``kinds``: what nodes it is for, of
    ``standard``, ``nvidia``, ``neuron`` and the three of Windows.
    """

    parameter: str
    arch: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Image:
    """An image as EC2 describes it. ``arch``: Kubernetes' word, empty where it has none."""

    id: str
    name: str
    arch: str
    created_at: datetime
    deprecated: bool = False


def standard_requirements() -> tuple[Requirement, ...]:
    """The requirements of an image without drivers: it is for types without accelerators."""
    return tuple(Requirement(key=key, operator="DoesNotExist") for key in (_ACCELERATOR, _GPU))


_REQUIREMENTS = {
    "standard": standard_requirements(),
    "nvidia": (Requirement(key=_GPU, operator="Exists"),),
    "neuron": (Requirement(key=_ACCELERATOR, operator="Exists"),),
    **{
        f"windows{year}": (
            Requirement(key=labels.OS, operator="In", values=["windows"]),
            Requirement(key=labels.WINDOWS_BUILD, operator="In", values=[build]),
        )
        for year, build in labels.WINDOWS_BUILDS.items()
    },
}


def variants(term: AMISelectorTerm, version: str) -> tuple[ImageVariant, ...]:
    """The images that a term's alias stands for.

    ``version``: Kubernetes', such as 1.33. Raises ``AliasError`` if there are none.
    """
    family, _, pinned = term.alias.partition("@")
    release = "" if pinned == "latest" else pinned
    match family:
        case "al2023":
            return tuple(_al2023(version, release))
        case "al2":
            return tuple(_al2(version, release))
        case "bottlerocket":
            return tuple(_bottlerocket(version, release))
        case "windows2019" | "windows2022" | "windows2025":
            # Amazon publishes images of Windows Server 2025 from Kubernetes 1.35 on (Karpenter for AWS, amifamily).
            if family == "windows2025" and _minor(version) < 35:
                raise AliasError(f"amiSelectorTerms: alias windows2025 needs Kubernetes 1.35, and this is {version}")
            return (_windows(family.removeprefix("windows"), version),)
    raise AliasError(f"amiSelectorTerms: alias {term.alias}: the family is unknown")


def _minor(version: str) -> int:
    return int(version.partition(".")[2])


def _al2023(version: str, release: str) -> Iterable[ImageVariant]:
    for arch, name in _ARCHES.items():
        for kind in ("standard", "nvidia", "neuron") if arch == "amd64" else ("standard", "nvidia"):
            last = f"amazon-eks-node-al2023-{name}-{kind}-{version}-{release}" if release else "recommended"
            path = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{name}/{kind}/{last}/image_id"
            yield ImageVariant(path, arch, (kind,))


def _al2(version: str, release: str) -> Iterable[ImageVariant]:
    # Amazon publishes AL2 images up to Kubernetes 1.32.
    if _minor(version) >= 33:
        raise AliasError(f"amiSelectorTerms: alias al2 has no images for Kubernetes {version}")
    rows = (("", "amd64", ("standard",)), ("-arm64", "arm64", ("standard",)), ("-gpu", "amd64", ("neuron", "nvidia")))
    for suffix, arch, kinds in rows:
        last = f"amazon-eks{suffix}-node-{version}-{release}" if release else "recommended"
        path = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2{suffix}/{last}/image_id"
        yield ImageVariant(path, arch, kinds)


def _bottlerocket(version: str, release: str) -> Iterable[ImageVariant]:
    wanted = release.removeprefix("v") or "latest"
    for arch, name in _ARCHES.items():
        base = f"/aws/service/bottlerocket/aws-k8s-{version}"
        kinds = ("standard", "neuron") if arch == "amd64" else ("standard",)
        yield ImageVariant(f"{base}/{name}/{wanted}/image_id", arch, kinds)
        yield ImageVariant(f"{base}-nvidia/{name}/{wanted}/image_id", arch, ("nvidia",))


def _windows(year: str, version: str) -> ImageVariant:
    """The Core image; Amazon keeps no parameters of older releases."""
    path = f"/aws/service/ami-windows-latest/Windows_Server-{year}-English-Core-EKS_Optimized-{version}/image_id"
    return ImageVariant(path, "amd64", (f"windows{year}",))


def statuses(images: Iterable[tuple[Image, tuple[str, ...]]]) -> list[AMIStatus]:
    """The status entries of images, newest first.

    An image comes with the kinds of node that it is for; without any it is for all.

    Of several images for the same types one stays: one that is not deprecated, then the newest, then the last by name
    (Karpenter for AWS `AMIs.Sort`). An image of an unknown architecture is left out.
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
