"""Writing the NodeClaims of a plan, so that one that the API server refuses keeps nobody else from a node.

What a refusal is about is found out by ``joinery.controllers.refused_claims``; the rest is planned again by whoever
called.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from joinery.apis.nodeclaim import NodeClaim
from joinery.cluster.gateway import Cluster
from joinery.controllers.actor import Actor
from joinery.controllers.refused_claims import RefusedClaims
from joinery.errors import ConfigurationError, DeniedError, JoineryError, UnavailableError
from joinery.lifecycle.new_claims import claims_of
from joinery.observability import NODE_CLAIM, REASON, logger, said
from joinery.scheduling.packing import Launch, Packing, Unplaced
from joinery.scheduling.problem import Problem

#: How many failures that are no claim's own fault end the writing. An unwell server concerns all claims, and may take
#: seconds for each. A refused right concerns the claims of one NodePool: more of them would only fill the log.
_MOST_FAILURES = 3


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
    """Writes the claims of one run, plan after plan.

    ``written``: those that the API server has stored. ``observed``: the launches for which nothing was written, because
    of ``observe`` mode. Failures that are no claim's fault are noted with the actor, which raises them when what was
    written is taken care of.
    """

    cluster: Cluster
    actor: Actor
    written: list[Written] = field(default_factory=list)
    observed: list[Launch] = field(default_factory=list)
    _denied: Counter[str] = field(default_factory=Counter)
    _failures: int = 0

    def __post_init__(self) -> None:
        self._refused = RefusedClaims(self.cluster, self.actor)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Those whose claim was written."""
        return tuple(written.launch for written in self.written)

    @property
    def refused(self) -> dict[str, Unplaced]:
        """By pod (namespace/name), why no claim for it is taken."""
        return self._refused.pods

    def write(self, problem: Problem, packing: Packing) -> bool:
        """Create the claims of a plan.

        Returns whether some were refused for a cause of their own: then the rest must be planned again.
        """
        is_any_refused = False
        for launch, claim in zip(packing.launches, claims_of(packing, problem.snapshot), strict=True):
            if launch.node_pool in self._refused.pools or self._denied[launch.node_pool] >= _MOST_FAILURES:
                continue
            try:
                self._create(launch, claim)
            except ConfigurationError as error:
                is_any_refused = True
                self._refused.isolate(self.rest(problem), launch, claim, error)
            except DeniedError as error:
                self._denied[launch.node_pool] += 1
                self._note(claim, error)
            except JoineryError as error:
                self._note(claim, error)
                if self._is_hopeless(error):
                    return False
        return is_any_refused

    def rest(self, problem: Problem) -> Problem:
        """What is still to be planned.

        The claims that were written count as nodes on their way, and NodePools at fault take no part.
        """
        snapshot, pools = problem.snapshot, self._refused.pools
        names = {claim.metadata.name for claim in snapshot.node_claims}
        new = tuple(written.claim for written in self.written if written.name not in names)
        already_invalid = {invalid.name for invalid in snapshot.invalid if invalid.kind == "NodePool"}
        left = replace(
            snapshot,
            node_claims=(*snapshot.node_claims, *new),
            node_pools=tuple(pool for pool in snapshot.node_pools if pool.metadata.name not in pools),
            invalid=(*snapshot.invalid, *(pools[name] for name in pools if name not in already_invalid)),
        )
        return replace(problem, snapshot=left)

    def _create(self, launch: Launch, claim: NodeClaim) -> None:
        stored = self.cluster.create_node_claim(claim)
        if not stored.metadata.uid:
            self.observed.append(launch)
            return
        self.written.append(Written(launch, stored))
        text = f"{len(launch.pods)} pods, {launch.offering.instance_type} or better at {launch.offering.price} $/h"
        logger.info("claim written", extra=said(**{NODE_CLAIM: claim.metadata.name, REASON: text}))

    def _note(self, claim: NodeClaim, error: JoineryError) -> None:
        self.actor.note(f"claim {claim.metadata.name} was not written", error)

    def _is_hopeless(self, error: JoineryError) -> bool:
        """Whether to write no more: nobody answers, or the same answer comes again and again."""
        if not isinstance(error, UnavailableError):
            return False
        self._failures += 1
        return not error.is_answer or self._failures >= _MOST_FAILURES
