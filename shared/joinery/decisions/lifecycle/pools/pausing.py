"""A pause, as its NodePool shows it: a condition while it lasts, in our own domain. It is no part of ``Ready``."""

from joinery.objects.karpenter.conditions import Observation, drop, put, true
from joinery.objects.karpenter.labels import OWN_GROUP
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.pause import Pause

PAUSED_CONDITION = f"{OWN_GROUP}/Paused"


def with_pause(conditions: list[Condition], pause: Pause | None, at: Observation) -> list[Condition]:
    """The conditions with one that says until when the NodePool is paused, if it is."""
    if pause is None:
        return drop(conditions, PAUSED_CONDITION)
    reason = "Scheduled" if pause.until else "ByHand"
    text = f"nothing is bought for it, and its nodes go: it is {pause.in_words}"
    return put(conditions, true(PAUSED_CONDITION, at, text, reason=reason))
