"""Writing the claims of a plan. One that the API server refuses takes down nothing but its cause.

A claim says what all of its pods need together, so one pod can spoil it for the others. Which one is found by asking: claims for each
sort of its pods alone are sent as dry runs, and one for none of them, which tells whether the NodePool itself is at fault. What is
at fault gets the refusal as its reason, and the rest is planned again at once, around the claims that were written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from joinery.apis.core import Pod
from joinery.apis.labels import INSTANCE_TYPE, PLANNED_NEEDS, PLANNED_PODS
from joinery.apis.nodeclaim import NodeClaim
from joinery.cluster.gateway import Cluster
from joinery.controllers.act import Actor
from joinery.errors import ConfigurationError, ConflictError
from joinery.lifecycle.claims import claims_of
from joinery.observability import NODE_CLAIM, REASON, logger, said
from joinery.scheduling.packing import Launch, Packing, Reason, Unplaced
from joinery.scheduling.planning import plan
from joinery.scheduling.problem import Problem
from joinery.state.plans import needs
from joinery.state.snapshot import Invalid, Snapshot

#: How many sorts of pods of one claim are asked about, each for the price of a small plan and a dry run.
_MOST_SORTS = 20


@dataclass(frozen=True)
class Written:
    """A launch and its claim, as the API server stored it."""

    launch: Launch
    claim: NodeClaim


@dataclass
class Writer:
    """``refused``: by pod, why no claim for it is taken; ``pools``: NodePools of which no claim is."""

    cluster: Cluster
    actor: Actor
    written: list[Written] = field(default_factory=list)
    refused: dict[str, Unplaced] = field(default_factory=dict)
    pools: dict[str, Invalid] = field(default_factory=dict)

    def write(self, problem: Problem, packing: Packing) -> bool:
        """Create the claims of a plan. Whether the rest must be planned again, because something was found to be at fault."""
        before = len(self.refused) + len(self.pools)
        claims = claims_of(packing, problem.snapshot)
        for launch, claim in zip(packing.launches, claims, strict=True):
            if launch.node_pool in self.pools:
                continue
            try:
                self.written.append(Written(launch, self.cluster.create_node_claim(claim)))
            except ConflictError as error:
                self.actor.note(f"claim {claim.metadata.name} was not written", error)
                continue
            except ConfigurationError as error:
                self._isolate(problem, launch, claim, error)
                continue
            text = f"{len(launch.pods)} pods, {launch.offering.instance_type} or better at {launch.offering.price} $/h"
            logger.info("claim written", extra=said(**{NODE_CLAIM: claim.metadata.name, REASON: text}))
        return len(self.refused) + len(self.pools) > before

    def rest(self, problem: Problem) -> Problem:
        """What is still to be planned: the claims that were written are on their way, and NodePools at fault take no part."""
        snapshot = problem.snapshot
        known = {claim.metadata.name for claim in snapshot.node_claims}
        new = tuple(each.claim for each in self.written if each.claim.metadata.name not in known)
        told = {bad.name for bad in snapshot.invalid if bad.kind == "NodePool"}
        seen = replace(
            snapshot,
            node_claims=(*snapshot.node_claims, *new),
            node_pools=tuple(pool for pool in snapshot.node_pools if pool.metadata.name not in self.pools),
            invalid=(*snapshot.invalid, *(bad for name, bad in self.pools.items() if name not in told)),
        )
        return replace(problem, snapshot=seen)

    def _isolate(self, problem: Problem, launch: Launch, claim: NodeClaim, error: ConfigurationError) -> None:
        """Find what the refusal is about."""
        logger.error("a claim was refused", extra=said(**{NODE_CLAIM: claim.metadata.name, REASON: str(error)}))
        if (own := self._refusal(_bare(claim))) is not None:
            self.actor.note(f"every claim of NodePool {launch.node_pool} is refused", own)
            reason = f"the API server refuses its NodeClaims: {own}"
            self.pools[launch.node_pool] = Invalid("NodePool", launch.node_pool, reason)
            return
        sorts = _sorts(launch, problem.snapshot)
        at_fault = {name: found for name in list(sorts)[:_MOST_SORTS] if (found := self._alone(problem, sorts[name]))}
        # Where none is refused alone, they are too much together: the fewest give way, and the next run tries them again.
        for name, found in (at_fault or {min(sorts, key=lambda each: len(sorts[each])): error}).items():
            for pod in sorts[name]:
                words = f"the API server refuses the NodeClaim for it: {found}"
                self.refused[pod] = Unplaced(pod, (Reason("Refused", words, f"NodePool {launch.node_pool}"),))

    def _alone(self, problem: Problem, pods: Mapping[str, Pod]) -> ConfigurationError | None:
        """Why claims for these pods alone are refused; None if they are not."""
        rest = self.rest(problem)
        others = tuple(pod for pod in rest.snapshot.pods if pod.spec.node_name and pod.key not in pods)
        asked = replace(
            rest,
            snapshot=replace(rest.snapshot, pods=(*others, *pods.values())),
            options=replace(problem.options, first_fit_only=True),
        )
        claims = claims_of(plan(asked).packing, asked.snapshot)
        return next((error for claim in claims if (error := self._refusal(claim))), None)

    def _refusal(self, claim: NodeClaim) -> ConfigurationError | None:
        try:
            self.cluster.create_node_claim(claim, dry_run=True)
        except ConfigurationError as error:
            return error
        except ConflictError:
            return None
        return None


def _bare(claim: NodeClaim) -> NodeClaim:
    """The claim without what its pods brought into it."""
    kept = [rule for rule in claim.spec.requirements if rule.key == INSTANCE_TYPE]
    annotations = {k: v for k, v in claim.metadata.annotations.items() if k not in (PLANNED_PODS, PLANNED_NEEDS)}
    return claim.model_copy(
        update={
            "metadata": claim.metadata.model_copy(update={"annotations": annotations}),
            "spec": claim.spec.model_copy(update={"requirements": kept}),
        }
    )


def _sorts(launch: Launch, snapshot: Snapshot) -> Mapping[str, Mapping[str, Pod]]:
    """The launch's pods by what they need."""
    found: dict[str, dict[str, Pod]] = {}
    for key, pod in _pods(launch, snapshot):
        found.setdefault(needs(pod), {})[key] = pod
    return found


def _pods(launch: Launch, snapshot: Snapshot) -> Iterator[tuple[str, Pod]]:
    wanted = set(launch.pods)
    return ((pod.key, pod) for pod in snapshot.pods if pod.key in wanted)
