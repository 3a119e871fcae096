"""What trials of images (``lifecycle.pools.canary``) allow a decision about disruption to do.

A drifted node is replaced by one that boots what its node class selects now. So is a node that is consolidated, if
something is bought for it. While an image is on trial, only as many nodes move to it as the trial has room for; none
do if it has failed. What buys nothing is not bound: no pod comes to the image by it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from joinery.decisions.disruption.candidates import Candidate
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.lifecycle.pools.canary import ImageTrial, ImageTrials, TrialStage, trials
from joinery.decisions.lifecycle.state.drift import drifted_since
from joinery.decisions.scheduling.packing import Launch
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.snapshot import Snapshot

#: How long a node is asked to be the canary. If it has not gone by then, because its pods have no other place for
#: instance, the next one is asked.
_TURN = timedelta(minutes=5)

#: Name of a node class and id of an image that it selects.
_Image = tuple[str, str]


def waiting_for_trials(
    drifted: Iterable[Candidate], judged: ImageTrials, snapshot: Snapshot
) -> Mapping[str, Objection]:
    """By the claim's name, why a drifted node has to wait for the trial of the image that it would be replaced by.

    Of those whose image has room, the ones go first that have pods, because an empty node tries little, and of these
    the ones whose pods are the cheapest to move.
    """
    waiting: dict[str, Objection] = {}
    by_image: dict[_Image, list[Candidate]] = defaultdict(list)
    for node in drifted:
        image = image_for(node.claim, snapshot)
        if judged.open(*image) is not None and node.claim.status.image_id != image[1]:
            by_image[image].append(node)
    for image, nodes in by_image.items():
        trial = judged.open(*image)
        if trial is not None:
            ordered = _in_turn(nodes, snapshot.now)
            waiting |= {node.claim.metadata.name: objection_of(trial) for node in ordered[trial.room :]}
    return waiting


def image_for(claim: NodeClaim, snapshot: Snapshot) -> _Image:
    """The image that a node like the claim's would boot today; empty where nobody knows."""
    name = claim.spec.node_class_ref.name
    node_class = snapshot.classes_by_name.get(name)
    labels = {key: (value,) for key, value in claim.metadata.labels.items()}
    return name, node_class.image_for(labels) if node_class else ""


def objection_of(trial: ImageTrial) -> Objection:
    """Why a node waits."""
    what = "has failed its trial" if trial.stage is TrialStage.FAILED else "is on trial"
    why = f": {trial.why}" if trial.why else ""
    return Objection(ObjectionCode.CANARY, f"what replaces it would boot {trial.image}, which {what}{why}")


def _in_turn(nodes: Iterable[Candidate], now: datetime) -> Sequence[Candidate]:
    """The nodes in the order in which they are asked to be the canary.

    Nobody remembers who was asked. The time since the first of them drifted says whose turn it is.
    """
    ordered = sorted(nodes, key=lambda node: (node.is_empty, node.move_price, node.claim.metadata.name))
    since = min((at for node in ordered if (at := drifted_since(node.claim)) is not None), default=now)
    turn = max(0, (now - since) // _TURN) % len(ordered)
    return [*ordered[turn:], *ordered[:turn]]


class CanaryLimit:
    """What trials still allow, while commands are taken one after another. ``trials``: of the problem's snapshot."""

    def __init__(self, problem: DisruptionProblem) -> None:
        self._snapshot = problem.packing.snapshot
        self.trials = (
            ImageTrials() if problem.options.ignore_budgets else trials(self._snapshot, problem.options.canary)
        )
        self._types = {
            name: {kind.name: kind.labels for kind in types} if self.trials.of else {}
            for name, types in problem.packing.instance_types.items()
        }
        self._images = {claim.metadata.name: claim.status.image_id for claim in self._snapshot.managed_claims}
        self._taken: Counter[_Image] = Counter()

    def objection(self, command: DecidedCommand) -> Objection | None:
        """Why the command may not start now."""
        for image, launches in self._exposed(command).items():
            trial = self.trials.open(*image)
            if trial is None:
                continue
            left = trial.room - self._taken[image]
            # One node may need several in its place: else it could never be tried.
            if left < 1 or (launches > left and len(command.retire) > 1):
                return objection_of(trial)
        return None

    def take(self, command: DecidedCommand) -> None:
        """The command starts, so its launches count from now on."""
        self._taken.update(self._exposed(command))

    def _exposed(self, command: DecidedCommand) -> Counter[_Image]:
        """By image on trial, how many nodes with it the command brings, where its pods were without it before."""
        exposed: Counter[_Image] = Counter()
        if not self.trials.of:
            return exposed
        before = {self._images.get(name, "") for name in command.retire}
        for launch in command.launches:
            exposed.update(image for image in self._images_of(launch) if before != {image[1]})
        return exposed

    def _images_of(self, launch: Launch) -> set[_Image]:
        pool = self._snapshot.pools_by_name.get(launch.node_pool)
        name = pool.spec.template.spec.node_class_ref.name if pool else ""
        node_class, types = self._snapshot.classes_by_name.get(name), self._types.get(name, {})
        if node_class is None:
            return set()
        labels = (types[kind] for kind in launch.instance_types if kind in types)
        return {(name, image) for one in labels if (image := node_class.image_for(one))}
