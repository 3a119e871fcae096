"""No workload prefers the cluster as it was: commands that keep less of what pods prefer do not begin.

Where pods run now, kube-scheduler weighed their preferences against all that was there. Who says that preferences do
not count (Karpenter, PREFERENCE_POLICY Ignore) has them weigh nothing here either. Drifted nodes must go all the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.validation.verified import OUT_OF_TIME, sift, state_after
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.verification.preferences import honoured, is_anything_preferred
from joinery.objects.karpenter.disruption import DisruptionReason


@dataclass(frozen=True)
class Agreeable:
    """The commands after which no class of pods has less of what it prefers, in their order; and the others, each with
    the reason.
    """

    commands: tuple[DecidedCommand, ...]
    dropped: tuple[tuple[DecidedCommand, str], ...] = ()


def agreeable(
    problem: Problem, commands: Sequence[DecidedCommand], *, is_late: Callable[[], bool] = lambda: False
) -> Agreeable:
    """Which of the commands may be carried out together without a loss. ``is_late``: once it says yes, no more are
    looked at.

    Cost: two states of the cluster where that is all of them; about twice the logarithm of the commands for each other.
    """
    moving = [it for it in enumerate(commands) if it[1].reason is DisruptionReason.UNDERUTILIZED]
    if not moving or not problem.options.respect_preferences or not is_anything_preferred(problem.snapshot):
        return Agreeable(tuple(commands))
    kept = [command for command in commands if command.reason is not DisruptionReason.UNDERUTILIZED]
    reasons: dict[int, str] = {}
    if is_late():
        reasons = dict.fromkeys((number for number, _ in moving), OUT_OF_TIME)
    else:
        sift(_Loss(problem).of, moving, kept, reasons, is_late)
    return Agreeable(
        commands=tuple(command for number, command in enumerate(commands) if number not in reasons),
        dropped=tuple((commands[number], reasons[number]) for number in sorted(reasons)),
    )


class _Loss:
    """What commands take from pods, compared with the cluster as it is."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._before = honoured(state_after(problem, ()))

    def of(self, commands: Sequence[DecidedCommand]) -> str:
        """The first class of pods that would keep less, in words; empty if none would."""
        after = honoured(state_after(self._problem, commands))
        for identity, (pod, weight) in self._before.items():
            if identity in after and after[identity][1] < weight:
                return f"pods like {pod} would keep less of what they prefer"
        return ""
