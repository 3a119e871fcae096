"""What a process has worked out of the last snapshot, for those parts of the next one that are the same objects.

A mirror of the cluster gives an object that has not changed as the same Python object
(``joinery.gateways.kubernetes.mirrors``), and objects are never changed in place. So a node whose Node, claim and pods
are the same objects keeps its view, with all that was derived from it (``joinery.objects.snapshot.derived``): a run
takes as long as what has changed is large, not the cluster. Nothing depends on it but time. A snapshot that knows
nothing comes to the same views.

Whoever reads snapshots has one of these. It has what one snapshot has, so it does not grow; what the optimizer found
has a limit of its own (``joinery.objects.answers``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from joinery.objects.answers import Answers
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.snapshot.pod_groups import PodGroups

if TYPE_CHECKING:
    from joinery.objects.snapshot.nodes import NodeView


@dataclass(frozen=True, slots=True)
class KnownView:
    """A view, and what it was made of."""

    node: Node
    claim: NodeClaim | None
    pods: tuple[Pod, ...]
    is_double: bool
    view: "NodeView"

    def is_of(self, node: Node, claim: NodeClaim | None, pods: tuple[Pod, ...], *, is_double: bool) -> bool:
        """Whether it would be made of the same now."""
        is_same = self.node is node and self.claim is claim and self.pods is pods
        return is_same and self.is_double == is_double


@dataclass(eq=False)
class Known:
    """``pods``: those of the snapshot that was read last; ``groups`` and ``views``: those of the last one for which
    somebody asked, by the names of Nodes. ``answers``: of the optimizer.
    """

    pods: tuple[Pod, ...] = ()
    groups: PodGroups = field(default_factory=PodGroups)
    views: Mapping[str, KnownView] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers)

    def groups_of(self, pods: tuple[Pod, ...]) -> PodGroups:
        """These pods by node. Those of a snapshot as a decision imagines it are not kept."""
        groups = self.groups.following(pods)
        if pods is self.pods:
            self.groups = groups
        return groups
