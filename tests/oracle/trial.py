"""One batch of worlds before the real scheduler: plan, buy, steer, let it bind, plan again, and judge.

The plan is right if every pod that it placed is bound after at most two more plans, at little more than its price, and
if no pod that it gave up fits on any node that could have been bought instead.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random

from joinery.decisions.lifecycle.launching.new_claims import claims_of
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.annotations.plans import planned_pods
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from tests.oracle.arena import PATIENT_SECONDS, Arena
from tests.oracle.probes import probes
from tests.oracle.worlds import WORLD, World, types, world

#: How long nothing must have happened before the slower half of the nodes comes.
WAVE_SECONDS = 1.5
#: How often what stays pending is planned again.
REPLANS = 2
WORST, MEDIAN = 0.08, 0.03


Shape = tuple[str, bool]
"""A workload's pods, with a volume or without: what makes one pod as good as another."""


@dataclass
class Trial:
    """What became of one seed. ``plans`` are all that were made, ``claims`` what was bought for them.

    ``before``: how many pods of each shape the scheduler bound to what was there; ``missing``: after each plan, how
    many are not bound although they were, or the first plan places them.
    """

    world: World
    plans: list[Packing] = field(default_factory=list)
    claims: list[NodeClaim] = field(default_factory=list)
    missing: list[Counter[Shape]] = field(default_factory=list)
    before: Counter[Shape] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @cached_property
    def shapes(self) -> Mapping[str, Shape]:
        """Of every pod that waits."""
        return {pod.key: (pod.metadata.labels["app"], bool(pod.spec.volumes)) for pod in self.world.pods}

    @cached_property
    def expected(self) -> Counter[Shape]:
        """How many pods should run: those that the first plan places, and those that needed no plan."""
        plan = self.plans[0]
        named = [launch.pods for launch in plan.launches] + [existing.pods for existing in plan.existing]
        return self.before + Counter(self.shapes[pod] for pods in named for pod in pods)

    @property
    def given_up(self) -> int:
        """How many pods the first plan does not place."""
        return len(self.plans[0].unplaced)

    def bound(self, pods: Iterable[str]) -> Counter[Shape]:
        """How many of its pods are among these."""
        return Counter(self.shapes[pod] for pod in pods if pod in self.shapes)

    def unexpected(self, seen: Snapshot) -> list[Pod]:
        """As many of its pods that run as should not, by their shapes."""
        running = {pod.key for pod in seen.pods if pod.spec.node_name}
        left, unexpected = self.bound(running) - self.expected, list[Pod]()
        for pod in self.world.pods:
            if pod.key in running and left[self.shapes[pod.key]] > 0:
                left[self.shapes[pod.key]] -= 1
                unexpected.append(pod)
        return unexpected

    @property
    def hourly(self) -> float:
        """What was bought in the end, $/h."""
        return sum(plan.hourly for plan in self.plans)

    @property
    def excess(self) -> float:
        """How much dearer that is than the first plan: 0.02 is two percent."""
        first = self.plans[0].hourly
        return self.hourly / first - 1 if first else float(self.hourly > 0)

    @property
    def failures(self) -> list[str]:
        """What is wrong, in words."""
        problems = list(self.problems)
        if self.missing and self.missing[-1]:
            short = ", ".join(f"{count} of {app}" for (app, _), count in sorted(self.missing[-1].items()))
            problems.append(f"not bound after {len(self.plans)} plans: {short}")
        if self.excess > WORST:
            problems.append(f"{self.excess:.1%} dearer than planned")
        return problems


def run(arena: Arena, seeds: Iterable[int]) -> list[Trial]:
    """Try these seeds side by side, and leave the control plane empty."""
    trials = [Trial(world(seed)) for seed in seeds]
    try:
        arena.put([trial.world for trial in trials])
        seen = arena.wait_for_verdicts()
        for trial in trials:
            trial.before = trial.bound(pod.key for pod in seen.pods if pod.spec.node_name)
        for number in range(1 + REPLANS):
            waiting = [trial for trial in trials if number == 0 or trial.missing[-1]]
            if waiting:
                seen = _round(arena, waiting, seen)
        _probe(arena, [trial for trial in trials if trial.given_up])
    finally:
        arena.clear()
    return trials


def _round(arena: Arena, trials: Sequence[Trial], seen: Snapshot) -> Snapshot:
    """Plan, buy, steer and wait; nodes come in no order, and not at once. What there is then."""
    fresh = [claim for trial in trials for claim in _plan(arena, trial, seen)]
    Random(trials[0].world.seed).shuffle(fresh)
    for wave in (fresh[::2], fresh[1::2]):
        _join(arena, wave)
    _settled(arena, trials)
    arena.release()
    bound = _settled(arena, trials)
    for trial in trials:
        trial.missing.append(trial.expected - trial.bound(bound))
    arena.initialize(arena.look())
    return arena.look()


def _join(arena: Arena, claims: Sequence[NodeClaim]) -> None:
    """Nodes come, and the scheduler does what it can with these alone: others may boot more slowly."""
    arena.boot(claims)
    arena.register(claims)
    pods = {key for claim in claims for key in planned_pods(claim)}
    arena.settle(lambda bound: pods <= bound, WAVE_SECONDS)


def _settled(arena: Arena, trials: Sequence[Trial]) -> frozenset[str]:
    return arena.settle(lambda now: all(trial.expected <= trial.bound(now) for trial in trials), PATIENT_SECONDS)


def _plan(arena: Arena, trial: Trial, seen: Snapshot) -> list[NodeClaim]:
    problem = problem_of(trial, seen)
    plan = solve(problem)
    trial.problems += [f"verify: {reason}" for reason in verify(problem, plan)]
    claims = [
        arena.buy(claim, (launch.offering.instance_type, launch.offering.zone, launch.offering.capacity_type))
        for claim, launch in zip(claims_of(plan, problem.snapshot), plan.launches, strict=True)
    ]
    trial.plans.append(plan)
    trial.claims += claims
    return claims


def problem_of(trial: Trial, seen: Snapshot) -> Problem:
    """What the planner sees of the trial's own world."""
    space = trial.world.namespace
    nodes = tuple(node for node in seen.nodes if node.metadata.labels.get(WORLD) == str(trial.world.seed))
    snapshot = replace(
        seen,
        pods=tuple(pod for pod in seen.pods if pod.metadata.namespace == space),
        nodes=nodes,
        node_claims=tuple(trial.claims),
        node_pools=tuple(trial.world.pools),
        node_classes=(builders.node_class(),),
        daemon_sets=tuple(daemons for daemons in seen.daemon_sets if daemons.metadata.namespace == space),
    )
    options = Options(only_marked_unschedulable=False)
    return Problem(snapshot=snapshot, instance_types={"default": types()}, options=options)


def _probe(arena: Arena, trials: Sequence[Trial]) -> None:
    """Give the pods that were given up one node of everything large that their pools allow, and see whether they stay.

    A spread ranges over zones that could have nodes, the scheduler's only over those that have: a pod that it bound for
    want of nodes in the others is started again now that there are some.
    """
    nodes = [node for trial in trials for node in probes(trial.world)]
    if not nodes:
        return
    seen = arena.look()
    arena.add(nodes)
    arena.restart([pod for trial in trials for pod in trial.unexpected(seen)])
    bound = arena.settle(lambda now: False)
    for trial in trials:
        surplus = trial.bound(bound) - trial.expected
        trial.problems += [f"{count} of {app} were given up, but run" for (app, _), count in sorted(surplus.items())]
