"""What came of trials of images, as node classes remember it (``joinery.dev/canaries``).

A node that did not get ready is retired, and what it shows of the image is gone within minutes. So lifecycle writes a
verdict on the node class, which counts for as long as the class selects the image. A verdict that cannot be read
counts as none; one that a user removes is found anew by the next trial.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from joinery.objects.karpenter.labels import CANARIES, CANARY_APPROVED
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.kubernetes.decoding import decode_each, with_entries


class CanaryOutcome(StrEnum):
    """What came of a trial. ``PASSED``: all nodes may move to the image. ``FAILED``: none may."""

    PASSED = "Passed"
    FAILED = "Failed"


class CanaryVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """``image``: its id. ``at``: since when that is known. ``why``: a sentence that names the node that showed it."""

    image: str
    outcome: CanaryOutcome
    at: datetime
    why: str = ""


def verdicts_of(node_class: NodeClass) -> Mapping[str, CanaryVerdict]:
    """By the id of the image, those on the images that the class selects now."""
    listed = decode_each(node_class.metadata.annotations.get(CANARIES, "[]"), CanaryVerdict)
    images = node_class.images
    return {verdict.image: verdict for verdict in listed if verdict.image in images}


def with_verdicts(node_class: NodeClass, verdicts: Iterable[CanaryVerdict]) -> NodeClass:
    """The class with the annotation that says so; without it where there are none."""
    listed = sorted(verdicts, key=lambda verdict: verdict.image)
    annotations = with_entries(node_class.metadata.annotations, CANARIES, listed)
    return with_metadata(node_class, annotations=annotations)


def approved_images(node_class: NodeClass) -> frozenset[str]:
    """The ids of the images that need no trial, because a person has approved them."""
    listed = node_class.metadata.annotations.get(CANARY_APPROVED, "").split(",")
    return frozenset(image.strip() for image in listed) - {""}
