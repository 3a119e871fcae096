"""Plays a day: one clock, one queue of what happens next."""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count

from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.moves import replicas_of
from joinery.decisions.disruption.problem import DisruptionOptions, DisruptionProblem
from joinery.decisions.lifecycle.disrupting.new_commands import NewCommand, as_candidate, as_replacement, record_for
from joinery.decisions.lifecycle.launching.new_claims import claims_of
from joinery.decisions.planning import plan
from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import REPLACES
from joinery.objects.karpenter.meta import with_metadata
from tools.churn.cluster import Bought, Cluster, Machine, RunningPod, Work, by_template, moment
from tools.churn.day import Day, Service
from tools.churn.figures import Figures
from tools.churn.market import Market
from tools.churn.rules import Rule
from tools.churn.scheduler import Scoring, schedule

#: Seconds that provisioning waits for more pods.
_BATCH = 10
#: Seconds from a launch until its node takes pods.
_BOOT = 60
#: Seconds from the eviction of a node's pods until its instance is gone: a grace period of half a minute, and then.
_DRAIN = 35
#: Seconds for which a new node is kept for its pods, once they may come.
_KEPT = 60
#: A rollout replaces one pod in so many at a time, and waits so many seconds until the next.
_WAVE, _SURGE = 60, 4
#: Seconds until a rollout's new pod is ready, and the old one goes.
_OVERLAP = 45
_AGES = (60, 120, 240, 480, 960, 1920, 3840, 7680)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """``every``: seconds between two decisions. The others are ``DisruptionOptions``."""

    scoring: Scoring = Scoring.LEAST_ALLOCATED
    every: int = 60
    move_price: float = 0.01
    payback: timedelta = timedelta(hours=1)
    new_nodes_repay: bool = True


class Simulation:
    """One day under one rule. ``cluster``: as it is now; ``figures``: what it has come to so far."""

    def __init__(self, day: Day, market: Market, rule: Rule, setup: Setup) -> None:
        self._day, self._market, self._rule, self._setup = day, market, rule, setup
        self.cluster = Cluster(market)
        self._now = 0
        self._queue: list[tuple[int, int, Callable[[], object]]] = []
        self._order = count()
        self.figures = Figures()
        self._replicas: dict[str, list[RunningPod]] = {service.template.name: [] for service in day.services}
        self._wanted: Counter[str] = Counter()
        self._planned: set[str] = set()
        self._is_provisioning = False

    def play(self) -> Figures:
        """The whole day."""
        for service in self._day.services:
            for second, replicas in service.scale:
                self._at(second, partial(self._scale, service, replicas))
            for second in service.rollouts:
                self._at(second, partial(self._roll_out, service))
        for number, job in enumerate(self._day.jobs):
            work = Work(job.template, f"{job.template.name}-{number}", job.work)
            self._at(job.arrival, partial(self._create, work))
        # Once the first nodes are there.
        self._at(10 * 60, self._wake)
        while self._queue and self._queue[0][0] < self._day.length:
            self._step()
        self._now = self._day.length
        for pod in self.cluster.pods.values():
            self._count_time(pod)
        for machine in self.cluster.machines.values():
            self.figures.bill(machine, self._now)
        return self.figures

    def _step(self) -> None:
        """Everything that happens at the next second, and then the scheduler."""
        self._now = self._queue[0][0]
        while self._queue and self._queue[0][0] == self._now:
            heapq.heappop(self._queue)[2]()
        if self.cluster.waiting:
            for pod in schedule(self.cluster, self._setup.scoring, self._now):
                self._planned.discard(pod.key)
                if pod.work.seconds is not None:
                    self._at(self._now + pod.work.seconds, partial(self._finish, pod))
            self._ask_for_nodes()

    def _at(self, second: int, what: Callable[[], object]) -> None:
        heapq.heappush(self._queue, (second, next(self._order), what))

    # --- workloads ---

    def _scale(self, service: Service, replicas: int) -> None:
        name = service.template.name
        self._wanted[name] = replicas
        running = self._replicas[name]
        while len(running) < replicas:
            running.append(self._create(Work(service.template, name)))
        if len(running) > replicas:
            for pod in sorted(running, key=self._rank_to_stay)[: len(running) - replicas]:
                self._remove(pod)
                running.remove(pod)

    def _rank_to_stay(self, pod: RunningPod) -> tuple[bool, int, int, str]:
        """Smaller goes first: those that wait, those with many of theirs on the node, the youngest.

        (kube-controller-manager, `ActivePodsWithRanks`.)
        """
        together = 0
        if pod.node:
            beside = self.cluster.machines[pod.node].pods.values()
            together = sum(other.work.template == pod.work.template for other in beside)
        age = self._now - pod.created
        return bool(pod.node), -together, sum(age >= limit for limit in _AGES), pod.key

    def _roll_out(self, service: Service) -> None:
        """Pods of a new version take the place of the old ones, wave after wave."""
        old = list(self._replicas[service.template.name])
        size = -(-len(old) // _SURGE)
        for wave in range(0, len(old), size or 1):
            pods = old[wave : wave + size]
            self._at(self._now + wave // size * _WAVE, partial(self._renew, service, pods))

    def _renew(self, service: Service, pods: Sequence[RunningPod]) -> None:
        running = self._replicas[service.template.name]
        for pod in pods:
            if pod in running:
                running.append(self._create(Work(service.template, service.template.name)))
                self._at(self._now + _OVERLAP, partial(self._replaced, service, pod))

    def _replaced(self, service: Service, pod: RunningPod) -> None:
        """The old pod goes, unless somebody else has ended it meanwhile."""
        running = self._replicas[service.template.name]
        if len(running) > self._wanted[service.template.name]:
            gone = pod if pod in running else min(running, key=self._rank_to_stay)
            self._remove(gone)
            running.remove(gone)

    def _create(self, work: Work) -> RunningPod:
        return self.cluster.create(work, self._now)

    def _remove(self, pod: RunningPod) -> None:
        self._count_time(pod)
        self._planned.discard(pod.key)
        self.cluster.remove(pod, self._now)

    def _finish(self, pod: RunningPod) -> None:
        """A job has done its work, if nobody evicted it."""
        if pod.key in self.cluster.pods:
            self._remove(pod)

    def _count_time(self, pod: RunningPod) -> None:
        if pod.node:
            self.figures.ran += self._now - pod.bound
            self.figures.waited += pod.bound - pod.created
        else:
            self.figures.waited += self._now - pod.created

    # --- provisioning ---

    def _problem(self) -> Problem:
        types = {self._market.node_class.metadata.name: tuple(self._market.types.values())}
        options = Options(only_marked_unschedulable=False)
        return Problem(snapshot=self.cluster.snapshot(self._now), instance_types=types, options=options)

    def _ask_for_nodes(self) -> None:
        if not self._is_provisioning and self.cluster.waiting.keys() - self._planned:
            self._is_provisioning = True
            self._at(self._now + _BATCH, self._provision)

    def _provision(self) -> None:
        self._is_provisioning = False
        if not self.cluster.waiting.keys() - self._planned:
            return
        problem = self._problem()
        packing = plan(problem).packing
        claims = claims_of(packing, problem.snapshot)
        for claim, launch in zip(claims, packing.launches, strict=True):
            self._launch(self.cluster.launch(claim, launch.offering, self._now), launch, steers=True)
        for placement in packing.existing:
            self._planned.update(placement.pods)

    def _launch(self, machine: Machine, launch: Launch, *, steers: bool) -> None:
        self.figures.launched += 1
        self._planned.update(pod for pod in launch.pods if pod in self.cluster.waiting)
        if steers:
            machine.kept_for = by_template(launch.pods, self.cluster.pods)
        self._at(self._now + _BOOT, partial(self._join, machine))

    def _join(self, machine: Machine) -> None:
        self.cluster.join(machine, self._now)
        # Pods that were to come and have found another place, or none here, are planned for anew.
        self._planned.clear()
        if machine.command is None:
            self._at(self._now + _KEPT, partial(self._open, machine))

    def _open(self, machine: Machine) -> None:
        machine.kept_for = None

    # --- disruption ---

    def _disruption(self) -> DisruptionProblem:
        problem, setup = self._problem(), self._setup
        options = DisruptionOptions(
            curve=False,
            move_price=setup.move_price,
            payback=setup.payback,
            new_nodes_repay=setup.new_nodes_repay,
        )
        return DisruptionProblem(packing=problem, options=options, replicas=replicas_of(problem.snapshot.pods))

    def _wake(self) -> None:
        commands = self._rule.decide(self._disruption())
        if commands and self._rule.validation:
            self._at(self._now + self._rule.validation, partial(self._validate, commands))
            return
        self._start(commands)
        self._at(self._now + self._setup.every, self._wake)

    def _validate(self, commands: Sequence[DecidedCommand]) -> None:
        self._start(self._rule.validated(commands, self._disruption()))
        self._wake()

    def _start(self, commands: Sequence[DecidedCommand]) -> None:
        if not commands:
            return
        snapshot = self.cluster.snapshot(self._now)
        # All at once, so that no two have one name.
        launches = tuple(launch for command in commands for launch in command.launches)
        claims = iter(claims_of(Packing(launches=launches), snapshot))
        for command in commands:
            machines = [self.cluster.machines[name] for name in command.retire]
            new = NewCommand(
                reason=command.reason,
                candidates=tuple(machine.claim for machine in machines),
                replacements=tuple(next(claims) for _ in command.launches),
                savings=command.savings,
                move_price=command.move_price,
            )
            record = record_for(new, snapshot.node_claims, snapshot.now)
            for machine in machines:
                machine.claim, machine.is_closed = as_candidate(machine.claim, record), True
            bought = Bought(self._now, _repaid(command, self._now + _BOOT))
            replacements = []
            for claim, launch in zip(new.replacements, command.launches, strict=True):
                machine = self.cluster.launch(as_replacement(claim, record), launch.offering, self._now)
                machine.command = bought
                self._launch(machine, launch, steers=self._rule.steers)
                replacements.append(machine)
            self.figures.began(command)
            ready = self._now + (_BOOT if replacements else 0)
            self._at(ready, partial(self._retire, machines, replacements, command.reason))

    def _retire(self, machines: Sequence[Machine], replacements: Sequence[Machine], reason: DisruptionReason) -> None:
        """Drain the machines: their replacements are there."""
        for machine in replacements:
            kept = {key: text for key, text in machine.claim.metadata.annotations.items() if key != REPLACES}
            machine.claim = with_metadata(machine.claim, annotations=kept)
            self._at(self._now + _KEPT, partial(self._open, machine))
        for machine in machines:
            self.figures.retired(machine, reason, self._now)
            machine.claim = with_metadata(machine.claim, deletion_timestamp=moment(self._now))
            for pod in list(machine.pods.values()):
                self._evict(pod)
            self._at(self._now + _DRAIN, partial(self._end, machine))

    def _evict(self, pod: RunningPod) -> None:
        self.figures.evicted(pod, self._now)
        self._remove(pod)
        successor = self._create(pod.work)
        if pod.work.seconds is None:
            running = self._replicas[pod.work.template.name]
            running[running.index(pod)] = successor

    def _end(self, machine: Machine) -> None:
        self.figures.bill(machine, self._now)
        self.cluster.end(machine, self._now)


def _repaid(command: DecidedCommand, ready: int) -> float:
    """From what second on the command's savings have repaid its evictions."""
    return ready + 3600 * command.move_price / command.savings if command.savings > 0 else float("inf")
