"""Canaries: a new image is tried on a few nodes before voluntary disruption moves the others to it.

A node class selects other images whenever its provider publishes some. All of its nodes have drifted then, and within
hours every pod would run on an image that nobody has seen in this cluster. So, while nodes with an image that the class
no longer selects are there, each image that it does select is on trial:

::

    untried ── on so many nodes ── these ran well for the soak time ── passed: the others follow, under the budgets
                     │
                     └── one does not get ready, or pods fail on it ── failed: no more nodes are moved to it

- Every node that boots the image tells, whoever bought it: nodes for pods that wait boot what the class selects, as
  they do in Karpenter, because a pod without a node is worse off than one on a new image (decision 57).
- A node fails if it is not fit for pods in nine minutes, or is not ready for two.
- A pod on it fails if a container is in a crash loop, or if the pod was not ready for the whole soak time. It counts
  only if its owner's pods ran well without the image: they are ready on another node, or they were on the node that
  this one replaces (``joinery.dev/ran-well``). A workload that fails everywhere says nothing about an image.
- A verdict stands as long as the class selects the image (``objects.annotations.canaries``). Until it is written down
it is worked
  out anew from the claims, their Nodes and pods, so a run that was stopped anywhere loses nothing.

Whoever chooses nodes to disrupt asks ``ImageTrials`` (``disruption.validation.canaries``); lifecycle writes the
verdicts.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from joinery.decisions.lifecycle.pools.soaking import NodeHealth
from joinery.objects.actions import Announce
from joinery.objects.annotations.canaries import (
    CanaryOutcome,
    CanaryVerdict,
    approved_images,
    verdicts_of,
    with_verdicts,
)
from joinery.objects.annotations.disruption import record_of
from joinery.objects.karpenter.disruption import CanaryRule, canary_of
from joinery.objects.karpenter.labels import CANARY
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.snapshot.snapshot import Snapshot


class TrialStage(Enum):
    """Where the trial of an image is."""

    TRIED = auto()
    PASSED = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class ImageTrial:
    """The trial of one image of one node class.

    ``room``: how many nodes more may be moved to it before it has passed. ``why``: a sentence about it for people.
    ``verdict``: what is to be remembered of it; None while nothing is known.
    """

    node_class: str
    image: str
    stage: TrialStage
    room: int = 0
    why: str | None = None
    verdict: CanaryVerdict | None = None


@dataclass(frozen=True)
class ImageTrials:
    """All trials of a snapshot. ``of``: by names of node classes and ids of images."""

    of: Mapping[tuple[str, str], ImageTrial] = field(default_factory=dict)

    @property
    def halted(self) -> frozenset[str]:
        """The names of the node classes of which an image has failed, so that nodes are not moved to it."""
        return frozenset(trial.node_class for trial in self.of.values() if trial.stage is TrialStage.FAILED)

    def open(self, node_class: str, image: str) -> ImageTrial | None:
        """The trial that binds whoever would move nodes to the image; None if they may move."""
        trial = self.of.get((node_class, image))
        return trial if trial is not None and trial.stage is not TrialStage.PASSED else None

    def remembered(self, node_class: NodeClass) -> NodeClass:
        """The class with what is known of its images.

        While nobody knows what it selects, nothing is forgotten.
        """
        name, images = node_class.metadata.name, node_class.images
        if not images:
            return node_class
        own = (trial for trial in self.of.values() if trial.node_class == name and trial.image in images)
        found = {trial.image: trial.verdict for trial in own if trial.verdict is not None}
        return with_verdicts(node_class, ({**found, **verdicts_of(node_class)}).values())


def trials(snapshot: Snapshot, rule: CanaryRule | None) -> ImageTrials:
    """The trials of all images that are on trial now. ``rule``: for classes that do not say; None for no trial.

    Costs little where no node has another image than its class selects.
    """
    by_class: dict[str, list[NodeClaim]] = defaultdict(list)
    for claim in snapshot.managed_claims:
        by_class[claim.spec.node_class_ref.name].append(claim)
    found: dict[tuple[str, str], ImageTrial] = {}
    for node_class in snapshot.node_classes:
        claims, images = by_class[node_class.metadata.name], node_class.images
        if any(is_outdated(claim, images) for claim in claims):
            found |= _of_class(snapshot, node_class, claims, rule)
    return ImageTrials(found)


def is_outdated(claim: NodeClaim, images: Collection[str]) -> bool:
    """Whether a claim that stays runs an image that is none of these, which its node class selects now."""
    image = claim.status.image_id
    return bool(images and image) and image not in images and not claim.is_deleting


def _of_class(
    snapshot: Snapshot, node_class: NodeClass, claims: Sequence[NodeClaim], setting: CanaryRule | None
) -> Mapping[tuple[str, str], ImageTrial]:
    name, text = node_class.metadata.name, node_class.metadata.annotations.get(CANARY)
    try:
        rule = setting if text is None else canary_of(text)
    except ValueError as error:
        # Someone meant to try images, and how cannot be known.
        why = f"{node_class.kind} {name} has an annotation {CANARY} that cannot be read: {error}"
        return {(name, image): ImageTrial(name, image, TrialStage.FAILED, why=why) for image in node_class.images}
    if rule is None:
        return {}
    health = NodeHealth(snapshot, rule.soak)
    judged = (_TrialJudge(node_class, claims, rule, health).of(image) for image in sorted(node_class.images))
    return {(name, trial.image): trial for trial in judged}


class _TrialJudge:
    """The trials of one class. ``claims``: all of it."""

    def __init__(
        self, node_class: NodeClass, claims: Sequence[NodeClaim], rule: CanaryRule, health: "NodeHealth"
    ) -> None:
        self._class, self._rule, self._health = node_class, rule, health
        self._claims = claims
        self._verdicts, self._approved = verdicts_of(node_class), approved_images(node_class)
        staying = [claim for claim in claims if not claim.is_deleting]
        self._needed = rule.nodes(len(staying))
        # Which image these will boot is not known yet.
        self._coming = sum(not claim.status.provider_id for claim in staying) + _unwritten(staying)

    def of(self, image: str) -> ImageTrial:
        name = self._class.metadata.name
        if image in self._approved:
            return ImageTrial(name, image, TrialStage.PASSED, why="a person has approved it")
        if verdict := self._verdicts.get(image):
            return ImageTrial(name, image, _STAGES[verdict.outcome], why=verdict.why)
        with_image = [claim for claim in self._claims if claim.status.image_id == image]
        others = frozenset(claim.status.node_name for claim in with_image)
        if failure := next(filter(None, (self._health.failure(claim, others) for claim in with_image)), None):
            return self._decided(image, CanaryOutcome.FAILED, failure)
        staying = [claim for claim in with_image if not claim.is_deleting]
        well = [claim.metadata.name for claim in staying if self._health.runs_well(claim, others)]
        if len(well) >= self._needed:
            text = f"{', '.join(sorted(well)[:3])} ran well with it for {self._rule.soak}"
            return self._decided(image, CanaryOutcome.PASSED, text)
        room = max(0, self._needed - len(staying) - self._coming)
        return ImageTrial(
            name, image, TrialStage.TRIED, room, self._progress([c.metadata.name for c in staying], len(well))
        )

    def _decided(self, image: str, outcome: CanaryOutcome, why: str) -> ImageTrial:
        verdict = CanaryVerdict(image, outcome, self._health.now.replace(microsecond=0), why)
        return ImageTrial(self._class.metadata.name, image, _STAGES[outcome], why=why, verdict=verdict)

    def _progress(self, names: Collection[str], well: int) -> str:
        needed = f"{self._needed} node{'' if self._needed == 1 else 's'}"
        if not names:
            return f"it is tried on {needed} first"
        listed = ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "")
        return f"it is tried on {listed}: {well} of {needed} ran well for {self._rule.soak}"


_STAGES: Mapping[CanaryOutcome, TrialStage] = {
    CanaryOutcome.PASSED: TrialStage.PASSED,
    CanaryOutcome.FAILED: TrialStage.FAILED,
}


def _unwritten(claims: Iterable[NodeClaim]) -> int:
    """How many replacements commands speak of that nobody has written yet."""
    listed = tuple(claims)
    there = {claim.metadata.name for claim in listed}
    records = {record.id: record for claim in listed if (record := record_of(claim)) and not record.rollback}
    return sum(name not in there for record in records.values() for name in record.replacements)


def canary_events(before: NodeClass, after: NodeClass) -> Iterable[Announce]:
    """Events where the class has learned of an image."""
    known = verdicts_of(before)
    for verdict in verdicts_of(after).values():
        if verdict.image in known:
            continue
        if verdict.outcome is CanaryOutcome.FAILED:
            text = f"no more nodes are moved to {verdict.image}: {verdict.why}"
            yield Announce("CanaryFailed", text, after)
        else:
            yield Announce("CanaryPassed", f"nodes may be moved to {verdict.image}: {verdict.why}", after)
