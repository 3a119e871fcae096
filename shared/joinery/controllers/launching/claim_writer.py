"""Writing the NodeClaims of a plan, so that one that the API server refuses keeps nobody else from a node.

What a refusal is about is found out by ``joinery.controllers.launching.refused_claims``; the rest is planned again by
whoever called.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from joinery.controllers.acting.actor import Actor
from joinery.controllers.launching.refused_claims import RefusedClaims, without
from joinery.controllers.telemetry import NODE_CLAIM, REASON, logger
from joinery.decisions.lifecycle.launching.asks import writing
from joinery.decisions.lifecycle.launching.fleet_groups import launch_token
from joinery.decisions.lifecycle.launching.new_claims import claims_of
from joinery.decisions.scheduling.packing import Launch, Packing, Unplaced
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import Stopwatch
from joinery.gateways.kubernetes.gateway import LONGEST_CALL, Cluster
from joinery.gateways.workers import Workers
from joinery.objects.errors import ConfigurationError, ConflictError, DeniedError, JoineryError, UnavailableError
from joinery.objects.karpenter.nodeclaim import NodeClaim

#: How many failures that are no claim's own fault end the writing. An unwell server concerns all claims, and may take
#: seconds for each.
_MOST_FAILURES = 3
#: How many claims are written before the answers are looked at.
_WAVE = 10


@dataclass(frozen=True)
class Written:
    """A launch and its claim, as the API server stored it."""

    launch: Launch
    claim: NodeClaim

    @property
    def name(self) -> str:
        """The claim's."""
        return self.claim.metadata.name


@dataclass
class ClaimWriter:
    """Writes the claims of one run, plan after plan. ``stopwatch``: what the time limit of these is measured by.

    ``unplaced``: by pod (namespace/name), why no claim for it was taken a moment ago.
    ``written``: those that the API server has stored. ``observed``: the launches for which nothing was written, because
    of ``observe`` mode. ``unanswered``: claims that the API server may have stored, or not. Failures that are no
    claim's fault are noted with the actor, which raises them when what was written is taken care of.
    """

    cluster: Cluster
    workers: Workers
    actor: Actor
    stopwatch: Stopwatch = lambda: 0.0
    unplaced: Mapping[str, Unplaced] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)
    observed: list[Launch] = field(default_factory=list)
    unanswered: list[NodeClaim] = field(default_factory=list)
    _failures: int = 0

    def __post_init__(self) -> None:
        self._refused = RefusedClaims(self.cluster, self.actor, self.stopwatch, dict(self.unplaced))

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Those whose claim was written."""
        return tuple(written.launch for written in self.written)

    @property
    def launchable(self) -> tuple[NodeClaim, ...]:
        """The written claims of the CreateFleet calls whose claims are all known.

        The token and the count of a call depend on all of its claims. A claim that was stored without our knowing would
        join the call of its siblings later, and that call, with another token, would launch for all of them once more.
        """
        doubtful = {launch_token(claim) for claim in self.unanswered}
        return tuple(written.claim for written in self.written if launch_token(written.claim) not in doubtful)

    @property
    def refused(self) -> dict[str, Unplaced]:
        """By pod (namespace/name), why no claim for it is taken."""
        return self._refused.pods

    def write(self, problem: Problem, packing: Packing) -> bool:
        """Create the claims of a plan.

        Returns whether some were refused for a cause of their own: then the rest must be planned again.
        """
        is_any_refused = False
        claims = zip(packing.launches, claims_of(packing, problem.snapshot), strict=True)
        waves = list(_waves(claims))
        for number, wave in enumerate(waves):
            if not self.actor.has_time_for(LONGEST_CALL):
                # What is not written is planned again by the next run.
                self.actor.leave(sum(map(len, waves[number:])))
                return False
            asked = [(launch, claim) for launch, claim in wave if launch.node_pool not in self._refused.pools]
            answers = self.workers.run([partial(self.cluster.create_node_claim, claim) for _, claim in asked])
            is_hopeless = False
            for (launch, claim), answer in zip(asked, answers, strict=True):
                if isinstance(answer, ConfigurationError):
                    is_any_refused = True
                    self._isolate(problem, launch, claim, answer)
                elif isinstance(answer, JoineryError):
                    is_hopeless |= self._is_hopeless(problem, launch, claim, answer)
                else:
                    self._keep(problem, launch, answer)
            if is_hopeless:
                return False
        return is_any_refused

    def rest(self, problem: Problem) -> Problem:
        """What is still to be planned.

        The claims that were written since count as nodes on their way and against the caps, and NodePools at fault take
        no part.
        """
        snapshot = without(problem.snapshot, self._refused.pools)
        names = {claim.metadata.name for claim in snapshot.node_claims}
        new = [written for written in self.written if written.name not in names]
        node_claims = (*snapshot.node_claims, *(written.claim for written in new))
        caps = problem.options.caps.after(len(new), sum(written.launch.offering.list_price for written in new))
        options = replace(problem.options, caps=caps)
        return replace(problem, snapshot=replace(snapshot, node_claims=node_claims), options=options)

    def _isolate(self, problem: Problem, launch: Launch, claim: NodeClaim, error: ConfigurationError) -> None:
        # The NodePool of a claim of the same wave may have been found at fault already.
        if launch.node_pool not in self._refused.pools:
            self._refused.isolate(self.rest(problem), launch, claim, error)

    def _keep(self, problem: Problem, launch: Launch, stored: NodeClaim) -> None:
        if not stored.metadata.uid:
            self.observed.append(launch)
            return
        self.actor.answered(writing(problem.snapshot.pools_by_name[launch.node_pool]), None)
        self.written.append(Written(launch, stored))
        text = f"{len(launch.pods)} pods, {launch.offering.instance_type} or better at {launch.offering.price} $/h"
        logger.info("claim written", extra={NODE_CLAIM: stored.metadata.name, REASON: text})

    def _is_hopeless(self, problem: Problem, launch: Launch, claim: NodeClaim, error: JoineryError) -> bool:
        """Note the failure.

        Returns whether to write no more: nobody answers, or the same answer comes again and again.
        """
        self.actor.note(f"claim {claim.metadata.name} was not written", error)
        if isinstance(error, DeniedError):
            # A refused right concerns all claims of the NodePool.
            self._refused.refuse_pool(problem.snapshot.pools_by_name[launch.node_pool], error)
            return False
        if not isinstance(error, UnavailableError | ConflictError):
            return False
        is_silence = isinstance(error, UnavailableError) and not error.is_answer
        if is_silence:
            self.unanswered.append(claim)
        self._failures += 1
        return is_silence or self._failures >= _MOST_FAILURES


def _waves(claims: Iterable[tuple[Launch, NodeClaim]]) -> Iterator[list[tuple[Launch, NodeClaim]]]:
    """What is written side by side. First one claim of each NodePool: if it is refused, others probably are."""
    first: dict[str, tuple[Launch, NodeClaim]] = {}
    others = []
    for launch, claim in claims:
        if first.setdefault(launch.node_pool, (launch, claim))[1] is not claim:
            others.append((launch, claim))
    for part in (list(first.values()), others):
        for start in range(0, len(part), _WAVE):
            yield part[start : start + _WAVE]
