"""No workload prefers the cluster as it was: commands that keep less of what pods prefer do not begin.

Where pods run now, kube-scheduler weighed their preferences against all that was there. Who says that preferences do
not count (Karpenter, PREFERENCE_POLICY Ignore) has them weigh nothing here either. Drifted nodes must go all the same.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from joinery.decisions.disruption.decision import DecidedCommand, RejectionCause, Validation
from joinery.decisions.disruption.validation.verified import out_of_time, sifted, state_after
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.verification.preferences import honoured, is_anything_preferred
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection, ObjectionCode


def agreeable(
    problem: Problem, commands: Sequence[DecidedCommand], *, is_late: Callable[[], bool] = lambda: False
) -> Validation:
    """The commands after which, carried out together, no class of pods has less of what it prefers. ``is_late``: once
    it says yes, no more are looked at.

    Cost: two states of the cluster where that is all of them; about twice the logarithm of the commands for each other.
    """
    moving = [command for command in commands if command.reason is DisruptionReason.UNDERUTILIZED]
    if not moving or not problem.options.respect_preferences or not is_anything_preferred(problem.snapshot):
        return Validation(tuple(commands))
    others = [command for command in commands if command.reason is not DisruptionReason.UNDERUTILIZED]
    if is_late():
        return Validation(tuple(others), tuple(map(out_of_time, moving)))
    loss = partial(_loss, problem, honoured(state_after(problem, ())))
    judged = sifted(moving, loss, RejectionCause.PREFERENCE, before=others, is_late=is_late)
    rejected = {rejection.command.retire for rejection in judged.rejected}
    kept = tuple(command for command in commands if command.retire not in rejected)
    return Validation(kept, judged.rejected)


def _loss(
    problem: Problem, before: Mapping[bytes, tuple[str, int]], commands: Sequence[DecidedCommand]
) -> Objection | None:
    """The first class of pods that would keep less than ``before``."""
    after = honoured(state_after(problem, commands))
    for identity, (pod, weight) in before.items():
        if identity in after and after[identity][1] < weight:
            return Objection(ObjectionCode.PREFERENCE, f"pods like {pod} would keep less of what they prefer")
    return None
