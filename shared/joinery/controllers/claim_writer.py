"""Writing the claims of a plan. One that the API server refuses takes down nothing but its cause.

A claim says what all of its pods need together, so one pod can spoil it for the others. Which one is found by asking: claims for each
sort of its pods alone are sent as dry runs, and one for none of them, which tells whether the NodePool itself is at fault. What is
at fault gets the refusal as its reason, and the rest is planned again at once, around the claims that were written.

Where dry runs tell nothing (a webhook with side effects refuses to judge them; the server is busy), it is found by writing: half of the
sorts give way, until a claim for one sort alone is refused. Then the others are planned again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from joinery.apis.core import Pod
from joinery.apis.labels import NODE_CLASS, NODE_POOL, PLANNED_NEEDS, PLANNED_PODS
from joinery.apis.nodeclaim import ClaimResources, NodeClaim
from joinery.cluster.gateway import Cluster
from joinery.controllers.actor import Actor
from joinery.errors import ConfigurationError, ConflictError, JoineryError, UnavailableError
from joinery.lifecycle.new_claims import claims_of
from joinery.observability import NODE_CLAIM, REASON, logger, said
from joinery.planning import plan
from joinery.scheduling.packing import Launch, Packing, Reason, Unplaced
from joinery.scheduling.problem import Problem
from joinery.state.plans import needs
from joinery.state.snapshot import Invalid, Snapshot

#: How many sorts of pods of one claim are asked about, each for the price of a small plan and a dry run.
_MOST_SORTS = 20
#: How many failures that are no claim's own fault end the writing. A missing right or an unwell server concerns all claims.
_MOST_FAILURES = 3


@dataclass(frozen=True)
class Written:
    """A launch and its claim, as the API server stored it."""

    launch: Launch
    claim: NodeClaim


@dataclass
class ClaimWriter:
    """``refused``: by pod, why no claim for it is taken; ``pools``: NodePools of which no claim is.

    Failures that are nobody's fault are noted with the actor, which raises them when what was written is taken care of.
    """

    cluster: Cluster
    actor: Actor
    written: list[Written] = field(default_factory=list)
    refused: dict[str, Unplaced] = field(default_factory=dict)
    pools: dict[str, Invalid] = field(default_factory=dict)
    _gave_way: set[str] = field(default_factory=set)
    _is_blind: bool = False
    _failures: int = 0
    _found: int = 0

    def write(self, problem: Problem, packing: Packing) -> bool:
        """Create the claims of a plan. Whether the rest must be planned again, because something was found to be at fault."""
        before = self._found
        claims = claims_of(packing, problem.snapshot)
        for launch, claim in zip(packing.launches, claims, strict=True):
            if launch.node_pool in self.pools:
                continue
            try:
                self.written.append(Written(launch, self.cluster.create_node_claim(claim)))
            except ConfigurationError as error:
                self._isolate(problem, launch, claim, error)
                continue
            except JoineryError as error:
                self.actor.note(f"claim {claim.metadata.name} was not written", error)
                if self._is_hopeless(error):
                    return False
                continue
            text = f"{len(launch.pods)} pods, {launch.offering.instance_type} or better at {launch.offering.price} $/h"
            logger.info("claim written", extra=said(**{NODE_CLAIM: claim.metadata.name, REASON: text}))
        return self._found > before

    def _is_hopeless(self, error: JoineryError) -> bool:
        """Whether to write no more: nobody answers, or the same answer comes again and again."""
        if not isinstance(error, UnavailableError):
            return False
        self._failures += 1
        return not error.is_answer or self._failures >= _MOST_FAILURES

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
        self._found += 1
        if (own := self._refusal(_bare(claim, problem.snapshot))) is not None:
            self.actor.note(f"every claim of NodePool {launch.node_pool} is refused", own)
            reason = f"the API server refuses its NodeClaims: {own.cause}"
            self.pools[launch.node_pool] = Invalid("NodePool", launch.node_pool, reason)
            return
        sorts = _sorts(launch, problem.snapshot)
        at_fault = {name: found for name in list(sorts)[:_MOST_SORTS] if (found := self._alone(problem, sorts[name]))}
        if not at_fault and len(sorts) > 1:
            self._give_way(sorts, launch, error)
            return
        for pod in self._gave_way if not at_fault else ():
            self.refused.pop(pod, None)
        for name, found in (at_fault or dict.fromkeys(sorts, error)).items():
            self._refuse(sorts[name], f"the API server refuses the NodeClaim for it: {found.cause}", launch)

    def _give_way(self, sorts: Mapping[str, Mapping[str, Pod]], launch: Launch, error: ConfigurationError) -> None:
        """None is known to be refused alone: half of them, those with the fewest pods, wait for a claim of their own."""
        for name in sorted(sorts, key=lambda each: len(sorts[each]))[: len(sorts) // 2]:
            words = (
                f"the API server refuses the NodeClaim for it and others: {error.cause}; it is tried again without them"
            )
            self._refuse(sorts[name], words, launch)
            self._gave_way.update(sorts[name])

    def _refuse(self, pods: Iterable[str], words: str, launch: Launch) -> None:
        for pod in pods:
            self.refused[pod] = Unplaced(pod, (Reason("Refused", words, f"NodePool {launch.node_pool}"),))

    def _alone(self, problem: Problem, pods: Mapping[str, Pod]) -> ConfigurationError | None:
        """Why claims for these pods alone are refused; None if they are not, or if that cannot be told."""
        if self._is_blind:
            return None
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
        """What a dry run says against the claim. After one that tells nothing no more are sent: the next would tell no more, if at all."""
        if self._is_blind:
            return None
        try:
            self.cluster.create_node_claim(claim, dry_run=True)
        except ConfigurationError as error:
            return error
        except ConflictError:
            return None
        except JoineryError as error:
            logger.warning("dry runs tell nothing", extra=said(**{REASON: str(error)}))
            self._is_blind = True
        return None


def _bare(claim: NodeClaim, snapshot: Snapshot) -> NodeClaim:
    """The claim without what its pods brought into it: what its NodePool would write whoever it is for."""
    wanted = claim.metadata.labels.get(NODE_POOL, "")
    template = next(pool.spec.template for pool in snapshot.node_pools if pool.metadata.name == wanted)
    of_pool = {*template.metadata.labels, NODE_POOL, NODE_CLASS}
    labels = {k: v for k, v in claim.metadata.labels.items() if k in of_pool}
    annotations = {k: v for k, v in claim.metadata.annotations.items() if k not in (PLANNED_PODS, PLANNED_NEEDS)}
    own = {"requirements": list(template.spec.requirements), "resources": ClaimResources()}
    return claim.model_copy(
        update={
            "metadata": claim.metadata.model_copy(update={"labels": labels, "annotations": annotations}),
            "spec": claim.spec.model_copy(update=own),
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
