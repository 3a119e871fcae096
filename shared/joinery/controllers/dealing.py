"""Interruptions where the functions serve several clusters: each cluster's notices are answered apart, at one time.

A cluster whose API server hangs delays its own notices, and no other's. One that fails has its own delivered again.
The stack's own cluster does not wait until EC2 has said whose the instances are: it is shown every notice, as ever.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

from joinery.controllers.telemetry import CLUSTER
from joinery.controllers.triggers.dispatcher import Handle, Summary, answers
from joinery.decisions.interruption.dealing import dealt, merged
from joinery.decisions.interruption.notice import Notice
from joinery.gateways.workers import Workers, both
from joinery.objects.errors import JoineryError

#: By the id of an instance, the cluster that it says it is of. Raises ``JoineryError``.
Owners = Callable[[Sequence[str]], Mapping[str, str]]
Outcomes = Sequence[Summary | Exception]


class Dealing:
    """Answers notices for the stack's own cluster and its members.

    ``own``: answers for the stack's own cluster. ``owners``: EC2's word. ``members``: how a notice is answered for each
    of these clusters, where they are members; asked for all of them, it gives all members there are.
    """

    def __init__(
        self,
        own: Handle[Notice],
        owners: Owners,
        members: Callable[[Sequence[str] | None], Mapping[str, Handle[Notice]]],
        workers: Workers,
    ) -> None:
        self._own, self._owners, self._members, self._workers = own, owners, members, workers

    def handle(self, notices: Sequence[Notice]) -> Outcomes:
        """For each notice what came of it, or what went wrong with it."""
        own, others = both(self._workers, partial(answers, notices, self._own), partial(self._others, notices))
        outcomes = cast("Outcomes", own)  # ``answers`` raises nothing
        if isinstance(others, JoineryError):
            return [outcome if _is_known(outcome) else others for outcome in outcomes]
        owners, of_members = others
        return [
            merged(notice, outcome, of_members.get(place, ()), owners)
            for place, (notice, outcome) in enumerate(zip(notices, outcomes, strict=True))
        ]

    def _others(self, notices: Sequence[Notice]) -> tuple[Mapping[str, str], Mapping[int, list[Summary | Exception]]]:
        """Whose the instances are, and what came of notices for members, by the notice's place."""
        named = list(dict.fromkeys(instance for notice in notices for instance in notice.instances))
        said = self._owners(named) if named else {}
        is_for_all = any(notice.reservation for notice in notices)
        members = self._members(None if is_for_all else sorted(set(said.values())))
        owners = {instance: owner for instance, owner in said.items() if owner in members}
        shown = dealt(notices, owners, list(members))
        calls = [
            partial(answers, [notices[place] for place in places], members[member]) for member, places in shown.items()
        ]
        of_members: dict[int, list[Summary | Exception]] = {}
        answered = cast("list[Outcomes]", self._workers.run(calls))
        for (member, places), outcomes in zip(shown.items(), answered, strict=True):
            for place, outcome in zip(places, outcomes, strict=True):
                of_members.setdefault(place, []).append(_for(member, outcome))
        return owners, of_members


def _is_known(outcome: Summary | Exception) -> bool:
    """Whether the stack's own cluster has said all that there is to say."""
    return not isinstance(outcome, Exception) and bool(outcome.get("claims") or outcome.get("answers"))


def _for(member: str, outcome: Summary | Exception) -> Summary | Exception:
    return outcome if isinstance(outcome, Exception) else {**outcome, CLUSTER: member}
