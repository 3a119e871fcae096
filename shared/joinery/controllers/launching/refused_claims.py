"""NodeClaims that the API server refuses: which pods, or which NodePool, is it about?

A claim says what all of its pods need together, so one pod can spoil it for the others. Which one is found by asking.
Pods with equal needs are one sort. A claim for each sort alone is sent as a dry run; so is one for no pods at all,
which tells whether the NodePool itself is at fault. What is at fault gets the refusal as its reason and is left out of
the next plan.

Where dry runs tell nothing (a webhook with side effects refuses to judge them; the server is busy) it is found by
writing. Half of the sorts are left out of the next plan, then half of those that remain, until a claim for one sort
alone is refused. That sort is at fault; those that gave way before are planned again.

What is at fault is remembered (``joinery.objects.refusals``). Until it is tried again, plans are made without it
(``known_refusals``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from joinery.controllers.acting.actor import Actor
from joinery.controllers.telemetry import NODE_CLAIM, REASON, logger
from joinery.decisions.lifecycle.launching.asks import FOR_PODS, writing
from joinery.decisions.lifecycle.launching.new_claims import claims_of
from joinery.decisions.planning import plan
from joinery.decisions.scheduling.packing import Launch, Unplaced
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason, ReasonCode, Subject
from joinery.decisions.scheduling.solve import Stopwatch
from joinery.gateways.kubernetes.gateway import Cluster
from joinery.objects.annotations.plans import needs
from joinery.objects.errors import ConfigurationError, ConflictError, JoineryError
from joinery.objects.karpenter.labels import NODE_POOL, PLANNED_NEEDS, PLANNED_PODS
from joinery.objects.karpenter.nodeclaim import ClaimResources, NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Pod
from joinery.objects.refusals import Refusals, request
from joinery.objects.snapshot.snapshot import Invalid, Snapshot

#: How many sorts of pods of one claim are asked about, each for the price of a small plan and a dry run.
_MOST_SORTS = 20

#: Pods with equal needs, by namespace/name.
Sort = Mapping[str, Pod]


@dataclass(frozen=True)
class KnownRefusals:
    """What claims were refused for a moment ago. ``pods``, ``pools``: as in ``RefusedClaims``."""

    pods: Mapping[str, Unplaced]
    pools: Mapping[str, Invalid]


def known_refusals(snapshot: Snapshot, refusals: Refusals) -> KnownRefusals:
    """What no claim is written for in this run. Costs nothing where nothing was refused."""
    waiting = {name: refusal.message for name, refusal in refusals.items() if not refusal.is_due(snapshot.now)}
    pods: dict[str, Unplaced] = {}
    pools: dict[str, Invalid] = {}
    for pool in snapshot.node_pools if waiting else ():
        name, asked = pool.metadata.name, request(writing(pool))
        if asked in waiting:
            pools[name] = _refused_pool(name, waiting[asked])
        of_pods = f"{asked}{FOR_PODS}"
        if words := {key.removeprefix(of_pods): waiting[key] for key in waiting if key.startswith(of_pods)}:
            found = ((pod.key, words.get(needs(pod))) for pod in snapshot.pods if not pod.spec.node_name)
            pods |= {pod: _refused_pod(pod, why, name) for pod, why in found if why}
    return KnownRefusals(pods, pools)


def without(snapshot: Snapshot, pools: Mapping[str, Invalid]) -> Snapshot:
    """The snapshot in which these NodePools take no part."""
    if not pools:
        return snapshot
    already_invalid = {invalid.name for invalid in snapshot.invalid if invalid.kind == "NodePool"}
    return replace(
        snapshot,
        node_pools=tuple(pool for pool in snapshot.node_pools if pool.metadata.name not in pools),
        invalid=(*snapshot.invalid, *(pools[name] for name in pools if name not in already_invalid)),
    )


@dataclass
class RefusedClaims:
    """What the refusals of one run were about. ``stopwatch``: what the time limit of its plans is measured by.

    ``pods``: by namespace/name, those for which no claim is taken, and why. ``pools``: by name, the NodePools of which
    no claim is taken.
    """

    cluster: Cluster
    actor: Actor
    stopwatch: Stopwatch = lambda: 0.0
    pods: dict[str, Unplaced] = field(default_factory=dict)
    pools: dict[str, Invalid] = field(default_factory=dict)
    _gave_way: set[str] = field(default_factory=set)
    _is_blind: bool = False

    def isolate(self, rest: Problem, launch: Launch, claim: NodeClaim, error: ConfigurationError) -> None:
        """Find what the refusal of a claim is about. ``rest``: what is still to be planned."""
        logger.error("a claim was refused", extra={NODE_CLAIM: claim.metadata.name, REASON: str(error)})
        if (refusal := self._dry_run(_without_pods(claim, rest.snapshot))) is not None:
            self.actor.note(f"every claim of NodePool {launch.node_pool} is refused", refusal)
            self.refuse_pool(rest.snapshot.pools_by_name[launch.node_pool], refusal)
            return
        sorts = _sorts(launch, rest.snapshot)
        if not sorts:
            # For a static NodePool: there is no pod to blame.
            self.actor.note(f"claim {claim.metadata.name} was not written", error)
            self.refuse_pool(rest.snapshot.pools_by_name[launch.node_pool], error)
            return
        refusals = self._refusals(rest, sorts)
        if not refusals and len(sorts) > 1:
            self._let_half_give_way(sorts, launch, error)
            return
        if not refusals:
            # A claim for this sort alone was refused, so it is at fault and those that gave way before are not.
            self._plan_again_what_gave_way()
            refusals = dict.fromkeys(sorts, error)
        pool = rest.snapshot.pools_by_name[launch.node_pool]
        for name, refusal in refusals.items():
            why = self.actor.answered(writing(pool, name), refusal, with_event=False)
            self.pods |= {pod: _refused_pod(pod, why, launch.node_pool) for pod in sorts[name]}

    def _refusals(self, rest: Problem, sorts: Mapping[str, Sort]) -> dict[str, ConfigurationError]:
        """By sort, why claims for it alone are refused; none where dry runs tell nothing."""
        asked = ((name, self._refusal_of(rest, sorts[name])) for name in list(sorts)[:_MOST_SORTS])
        return {name: refusal for name, refusal in asked if refusal}

    def _refusal_of(self, rest: Problem, sort: Sort) -> ConfigurationError | None:
        if self._is_blind:
            return None
        bound = tuple(pod for pod in rest.snapshot.pods if pod.spec.node_name and pod.key not in sort)
        alone = replace(
            rest,
            snapshot=replace(rest.snapshot, pods=(*bound, *sort.values())),
            options=replace(rest.options, first_fit_only=True),
        )
        claims = claims_of(plan(alone, stopwatch=self.stopwatch).packing, alone.snapshot)
        return next((refusal for claim in claims if (refusal := self._dry_run(claim))), None)

    def _dry_run(self, claim: NodeClaim) -> ConfigurationError | None:
        """What the API server says against the claim, if anything.

        Once a dry run found no reason, no more are sent: the next would find none either.
        """
        if self._is_blind:
            return None
        try:
            self.cluster.create_node_claim(claim, dry_run=True)
        except ConfigurationError as refusal:
            return refusal
        except ConflictError:
            return None
        except JoineryError as error:
            logger.warning("dry runs tell nothing", extra={REASON: str(error)})
            self._is_blind = True
        return None

    def refuse_pool(self, pool: NodePool, refusal: JoineryError) -> None:
        """Take note that no claim of the pool is taken."""
        name = pool.metadata.name
        self.pools[name] = _refused_pool(name, self.actor.answered(writing(pool), refusal))

    def _let_half_give_way(self, sorts: Mapping[str, Sort], launch: Launch, error: ConfigurationError) -> None:
        """Leave half of the sorts out of the next plan, those with the fewest pods."""
        words = f"the API server refuses the NodeClaim for it and others: {error.cause}; it is tried again without them"
        for name in sorted(sorts, key=lambda name: len(sorts[name]))[: len(sorts) // 2]:
            reason = Reason(ReasonCode.REFUSED, words, Subject.node_pool(launch.node_pool))
            self.pods |= {pod: Unplaced(pod, (reason,)) for pod in sorts[name]}
            self._gave_way.update(sorts[name])

    def _plan_again_what_gave_way(self) -> None:
        for pod in self._gave_way:
            self.pods.pop(pod, None)
        self._gave_way.clear()


def _refused_pool(name: str, why: str) -> Invalid:
    return Invalid("NodePool", name, f"the API server refuses its NodeClaims: {why}")


def _refused_pod(pod: str, why: str, node_pool: str) -> Unplaced:
    text = f"the API server refuses the NodeClaim for it: {why}"
    return Unplaced(pod, (Reason(ReasonCode.REFUSED, text, Subject.node_pool(node_pool)),))


def _without_pods(claim: NodeClaim, snapshot: Snapshot) -> NodeClaim:
    """The claim without what its pods brought into it: what its NodePool would write for any pods."""
    pool_name = claim.metadata.labels.get(NODE_POOL, "")
    template = snapshot.pools_by_name[pool_name].spec.template
    of_pool = {*template.metadata.labels, NODE_POOL, template.spec.node_class_ref.of_kind.label}
    labels = {key: value for key, value in claim.metadata.labels.items() if key in of_pool}
    of_pods = (PLANNED_PODS, PLANNED_NEEDS)
    annotations = {key: value for key, value in claim.metadata.annotations.items() if key not in of_pods}
    spec = {"requirements": list(template.spec.requirements), "resources": ClaimResources()}
    return claim.model_copy(
        update={
            "metadata": claim.metadata.model_copy(update={"labels": labels, "annotations": annotations}),
            "spec": claim.spec.model_copy(update=spec),
        }
    )


def _sorts(launch: Launch, snapshot: Snapshot) -> Mapping[str, Sort]:
    """The launch's pods by what they need (``objects.annotations.plans.needs``)."""
    sorts: dict[str, dict[str, Pod]] = {}
    for pod in _pods(launch, snapshot):
        sorts.setdefault(needs(pod), {})[pod.key] = pod
    return sorts


def _pods(launch: Launch, snapshot: Snapshot) -> Iterator[Pod]:
    names = set(launch.pods)
    return (pod for pod in snapshot.pods if pod.key in names)
