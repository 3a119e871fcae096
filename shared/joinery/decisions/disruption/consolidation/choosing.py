"""Which candidates should go, within the time that there is.

The work of a choice multiplies: kinds of pods times nodes and instance types. Whoever may create pods could make it
outlast any time limit, so that nobody's nodes are consolidated. So there is a bound on the kinds of pods in one choice:
candidates with kinds that hardly any other node has are left out. Where time is up all the same, few kinds are tried.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from joinery.decisions.disruption.candidates import Candidate, Candidates
from joinery.decisions.disruption.consolidation.compiling import ModelInputs, dealt_for, model_of
from joinery.decisions.disruption.consolidation.model import ConsolidationModel, PlanVariant
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.consolidation.choice import ROUGH, consolidate
from joinery.decisions.optimizer.consolidation.instance import Consolidation
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.constraints.topology_rules import rules_about_pods

#: Kinds of pods at most: their arrays take 750 MB, and their optimum minutes. Fewer where a time limit is short.
MOST_KINDS, KINDS_A_SECOND = 5_000, 50
#: So many are tried however short it is: their relaxation takes about a second.
FEW_KINDS = 400


@dataclass(frozen=True, eq=False)
class Chosen:
    """``choice``: which bins of the ``model`` to keep. ``left_out``: the candidates that the model has only as nodes
    that take pods.
    """

    inputs: ModelInputs
    model: ConsolidationModel
    choice: Consolidation
    left_out: tuple[Candidate, ...]

    @property
    def is_rough(self) -> bool:
        """Whether time was up before there was a relaxation."""
        return self.choice.method == ROUGH


def most_kinds(limit: float | None) -> int:
    """How many kinds of pods a choice may have with this time limit (seconds)."""
    return MOST_KINDS if limit is None else min(MOST_KINDS, max(FEW_KINDS, int(KINDS_A_SECOND * limit)))


def chosen(
    problem: DisruptionProblem, judged: Candidates, candidates: Sequence[Candidate], first: Effort, last: Effort
) -> Chosen:
    """The choice among all candidates whose pods are of as few kinds as there is time for.

    ``first``: how hard that is tried; ``last``: how hard a choice among few is, which may end later.
    """
    inputs = ModelInputs(problem, judged, candidates)
    kinds = _kinds_of(inputs, candidates)
    most = min(most_kinds(problem.options.time_limit), len(frozenset[Hashable]().union(*kinds.values())))
    for few, effort in ((most, first), (FEW_KINDS, last)) if most > FEW_KINDS else ((FEW_KINDS, last),):
        plain, left_out = of_few_kinds(candidates, kinds, few)
        some = ModelInputs(problem, judged, plain) if left_out else inputs
        model = model_of(some, effort)
        result = _dealt_again(Chosen(some, model, consolidate(model.instance, effort), left_out), effort)
        if not result.is_rough:
            break
    return result


def _dealt_again(first: Chosen, effort: Effort) -> Chosen:
    """The choice with pods dealt to domains by what it retires, not by what it was thought to.

    Where rules make that much dearer, other nodes are chosen once more, with pods dealt like that.
    """
    dealt = _dealt(first, effort)
    if dealt.choice.cost <= first.choice.cost * (1 + tuning.DEARER_BY_DEALING) or effort.is_over():
        return dealt
    model = dealt.model
    other = _dealt(replace(first, model=model, choice=consolidate(model.instance, effort)), effort)
    return dealt if effort.is_over() else min(dealt, other, key=lambda it: it.choice.cost)


def _dealt(given: Chosen, effort: Effort) -> Chosen:
    """Of what the choice retires as much as there is room for where broken spreads let its pods in; nothing else.

    Where time is up, what was given: half a search is worth less.
    """
    model, keep = given.model, given.choice.keep
    dealt = model if effort.is_over() else dealt_for(given.inputs, model, keep)
    if dealt is model:
        return given
    retired = (one for one, is_kept in zip(model.candidates, keep, strict=True) if one is not None and not is_kept)
    going = PlanVariant(frozenset(one.claim.metadata.name for one in retired))
    choice = consolidate(going.of(dealt), effort)
    return given if effort.is_over() else replace(given, model=dealt, choice=choice)


def _kinds_of(inputs: ModelInputs, candidates: Sequence[Candidate]) -> Mapping[str, frozenset[Hashable]]:
    """By name of the claim, the kinds of its pods: their classes, and where those must stay, in which zone."""
    class_of = {name: pod_class for pod_class in inputs.work.possible for name in pod_class.names}
    counted = {one: bool(rules_about_pods(one) or one.volumes.unbound) for one in inputs.work.possible}
    kinds = {}
    for candidate in candidates:
        classes = {class_of[pod.key] for pod in candidate.pods if pod.key in class_of}
        kinds[candidate.claim.metadata.name] = frozenset[Hashable](
            (pod_class, candidate.zone if counted[pod_class] else "") for pod_class in classes
        )
    return kinds


def of_few_kinds(
    candidates: Sequence[Candidate], kinds: Mapping[str, frozenset[Hashable]], most: int
) -> tuple[tuple[Candidate, ...], tuple[Candidate, ...]]:
    """As many candidates as have so many kinds of pods together, those with kinds that many nodes have first; and the
    others.
    """
    nodes = Counter(kind for own in kinds.values() for kind in own)
    if len(nodes) <= most:
        return tuple(candidates), ()
    rarity = {name: sum(1 / nodes[kind] for kind in own) for name, own in kinds.items()}
    taken, plain = set[Hashable](), set[str]()
    for name in sorted(kinds, key=lambda name: (rarity[name], name)):
        if len(taken | kinds[name]) <= most:
            taken |= kinds[name]
            plain.add(name)
    names = [(candidate, candidate.claim.metadata.name in plain) for candidate in candidates]
    return tuple(one for one, is_in in names if is_in), tuple(one for one, is_in in names if not is_in)
