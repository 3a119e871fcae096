"""Which CustomResourceDefinitions the installer writes, and which it leaves as they are.

Three may own a definition. Karpenter's are left to Karpenter, and the cluster autoscaler's of CapacityBuffers to it:
Joinery reads and writes the same objects, and a cluster may go back. A person's, applied from this repository, are
taken over. Those of an installer are brought to this release, and never back to an older one: an older definition
prunes the fields that it does not know from every object that is written, and so would lose them for good. An older
release works with newer definitions, because they only ever gain fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from joinery.objects.karpenter.labels import VERSION
from joinery.objects.kubernetes.references import Document

#: What controller-gen writes into every definition that it generates. Theirs are, ours are not. A definition that has
#: our version too was ours until somebody applied Karpenter's over it.
_GENERATED = "controller-gen.kubebuilder.io/version"
_KARPENTER_S = (".karpenter.sh", ".karpenter.k8s.aws")


@dataclass(frozen=True, slots=True)
class DefinitionDecision:
    """Whether a definition is written, and why not."""

    applies: bool
    reason: str = ""


def decide(stored: Document | None, version: str) -> DefinitionDecision:
    """What becomes of one definition. ``stored``: as the cluster has it. ``version``: the release to be installed."""
    if stored is None:
        return DefinitionDecision(True)
    annotations = _annotations(stored)
    name = stored["metadata"]["name"]
    installed = annotations.get(VERSION, "")
    if _GENERATED in annotations:
        whose = "Karpenter" if name.endswith(_KARPENTER_S) else "another autoscaler"
        return DefinitionDecision(False, f"{name} is {whose}'s and stays")
    if is_older(version, installed):
        return DefinitionDecision(False, f"{name} is of the newer release {installed} and stays")
    return DefinitionDecision(True)


def is_ours(stored: Document) -> bool:
    """Whether a definition is of this repository, and not Karpenter's or the cluster autoscaler's."""
    is_read_here = stored["metadata"]["name"].endswith((*_KARPENTER_S, ".autoscaling.x-k8s.io"))
    return is_read_here and _GENERATED not in _annotations(stored)


def _annotations(stored: Document) -> Mapping[str, str]:
    return stored["metadata"].get("annotations") or {}


def is_older(version: str, other: str) -> bool:
    """Whether a release came before another. One without numbers came before all others."""
    return _numbers(version) < _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    """1.10.2 as numbers. What follows them (``rc1``, ``+local``) counts nothing: its definitions are that release's."""
    numbers = []
    for part in version.split("."):
        digits = part[: next((index for index, character in enumerate(part) if not character.isdecimal()), len(part))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)
