"""Whose a notice is, where the functions serve several clusters: EventBridge's rules know an account, and no cluster.

The stack's own cluster is shown every notice, as ever: it knows its instances by its claims. A member is shown those
about instances that say that they are its own, and those about a capacity reservation, in which anybody's may be. What
comes of a notice is what comes of it for those that it concerns: one that failed for a cluster is delivered again, and
says nothing of the other notices.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from joinery.decisions.interruption.notice import Notice

#: A run in figures, or what went wrong with it.
Outcome = Mapping[str, Any] | Exception


def dealt(
    notices: Sequence[Notice], owners: Mapping[str, str], members: Collection[str]
) -> Mapping[str, tuple[int, ...]]:
    """By member, the places of the notices that it is shown. ``owners``: by instance, the cluster that it says it is
    of. ``members``: who may be shown what concerns all.
    """
    shown: dict[str, list[int]] = {}
    for place, notice in enumerate(notices):
        named = {owners.get(instance, "") for instance in notice.instances}
        for member in members:
            if notice.reservation or member in named:
                shown.setdefault(member, []).append(place)
    return {member: tuple(places) for member, places in shown.items()}


def merged(notice: Notice, own: Outcome, of_members: Sequence[Outcome], owners: Mapping[str, str]) -> Outcome:
    """What came of a notice. ``own``: for the stack's own cluster; ``of_members``: for those that were shown it.

    A failure of the stack's own cluster is none where each instance says that it is another's: that it knows none of
    them is how it should be.
    """
    is_others = bool(of_members) and all(owners.get(instance) for instance in notice.instances)
    asked = of_members if is_others and not notice.reservation else (own, *of_members)
    failures = [outcome for outcome in asked if isinstance(outcome, Exception)]
    if failures:
        return failures[0]
    summaries = [outcome for outcome in asked if not isinstance(outcome, Exception)]
    return max(summaries, key=lambda summary: int(summary.get("claims") or 0))
