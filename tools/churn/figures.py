"""What a day came to."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from joinery.decisions.disruption.decision import DecidedCommand
from joinery.objects.karpenter.disruption import DisruptionReason
from tools.churn.cluster import Machine, RunningPod

_HOUR = 3600
_DAY = 24 * _HOUR


@dataclass
class Figures:
    """What is counted while a day is played.

    dollars          for all machines, from their launch until they were gone
    ran, waited      seconds of pods: on a node; without one, whatever for
    evictions        of voluntary disruption
    again            those of work that was evicted less than an hour before
    lost             seconds that evicted jobs had run
    launched         machines, for whatever reason
    commands         by reason
    gone             machines that went, by reason
    young            machines with pods that went less than an hour after their launch
    unpaid           machines with pods that a command had bought, and that went before its savings repaid its moves
    replaced         machines that commands bought
    """

    dollars: float = 0.0
    ran: int = 0
    waited: int = 0
    evictions: int = 0
    again: int = 0
    lost: int = 0
    launched: int = 0
    commands: Counter[DisruptionReason] = field(default_factory=Counter)
    gone: Counter[DisruptionReason] = field(default_factory=Counter)
    young: int = 0
    unpaid: int = 0
    replaced: int = 0

    @property
    def evictions_a_pod_day(self) -> float:
        return self.evictions * _DAY / self.ran if self.ran else 0.0

    def bill(self, machine: Machine, now: int) -> None:
        self.dollars += machine.offering.price * (now - machine.launched) / _HOUR

    def began(self, command: DecidedCommand) -> None:
        self.commands[command.reason] += 1
        self.replaced += len(command.launches)

    def retired(self, machine: Machine, reason: DisruptionReason, now: int) -> None:
        """To be called before its pods are evicted."""
        self.gone[reason] += 1
        if machine.pods:
            self.young += now - machine.launched < _HOUR
            self.unpaid += machine.command is not None and now < machine.command.repaid

    def evicted(self, pod: RunningPod, now: int) -> None:
        before = pod.work.evictions
        self.evictions += 1
        self.again += bool(before) and now - before[-1] < _HOUR
        self.lost += now - pod.bound if pod.work.seconds is not None else 0
        before.append(now)

    def document(self) -> dict[str, Any]:
        """The figures for scripts."""
        return {
            "dollars": round(self.dollars, 4),
            "podDays": round(self.ran / _DAY, 3),
            "waitingPodHours": round(self.waited / _HOUR, 3),
            "evictions": self.evictions,
            "evictionsAPodDay": round(self.evictions_a_pod_day, 4),
            "evictedAgainWithinAnHour": self.again,
            "lostJobHours": round(self.lost / _HOUR, 3),
            "launched": self.launched,
            "launchedByCommands": self.replaced,
            "commands": {reason.value: count for reason, count in sorted(self.commands.items())},
            "retired": {reason.value: count for reason, count in sorted(self.gone.items())},
            "retiredWithinAnHour": self.young,
            "retiredBeforeTheyPaid": self.unpaid,
        }
