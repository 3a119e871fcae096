"""Other strategies than the usual one, each with whom it is for.

First-fit places one class after another, and each choice of domains is final. What suits one class may leave the next
without a place, or make it dear. No single strategy is right for all, so a few are tried where they might help.

- Without DaemonSets: for spreads that count DaemonSets' pods. Often every domain gets as many nodes anyway.
- Dealt ahead of neighbours: for pods that must be near others and spread over zones too. The others go where few are.
- Closed to zones without neighbours: for the same pods, if those that they must be near are in some zones only.
- Own devices: for claims that got devices of a place, and that a node could serve by itself. The place may be another
  than where there is room.
- Closed to what is unbuyable: for pods that are left because a spread waits for a domain that nothing can be bought in.
- In small plans with pods left: cautious on hosts, neighbours next, gathered, wanted last, shuffled. They may place
  more.
- In small plans, for the price, also where pods are left: where what fits is cheapest, or gathered, where pods were
  dealt to one domain rather than another without need; and more of that kind where the price is far above its bound.
- Dealt as the bound's proof would: in small plans, and in larger ones whose price is far above their bound.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from joinery.decisions.optimizer.bounds.exact import SMALL_DEMAND
from joinery.decisions.scheduling.attempt import PackingAttempt, Strategy
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.options import FirstFitOptions
from joinery.decisions.scheduling.firstfit.unforeseen import unbuyable
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import CAPACITY_TYPE, HOSTNAME, ZONE, canonical

#: Pods up to which strategies are tried that are seldom better: a plan for more costs too much time to be made several
#: times.
_SMALL = 40


def alternatives(strategy: Strategy, usual: PackingAttempt) -> Iterator[Strategy]:
    """What to try for pods that a strategy, in its ``usual`` attempt, leaves or, if it leaves none, for a lower price.

    Most promising first.
    """
    left, work = tuple(usual.packer.left), usual.work
    if work.topology.daemons.spreads:
        yield replace(strategy, options=FirstFitOptions(ignores_daemons=True))
    if any(_both_near_and_spread(pod_class, work.topology) for pod_class in left):
        yield replace(strategy, options=FirstFitOptions(dealing="ahead"))
        if without_neighbours := _zones_without_neighbours(work.possible, work.topology):
            yield replace(strategy, closed=without_neighbours)
    if left and work.claims.has_choice:
        yield replace(strategy, own_devices=True)
    if out_of_reach := unbuyable(work, usual.usage, left, usual.packer.bought):
        yield replace(strategy, closed=strategy.closed | out_of_reach)
    if left and len(work.pending) <= _SMALL:
        yield from (replace(strategy, options=options) for options in _options_for_left(left, work.topology))
    if not left:
        yield from cheaper_alternatives(strategy, usual)


def cheaper_alternatives(strategy: Strategy, usual: PackingAttempt) -> Iterator[Strategy]:
    """What to try for a lower price alone, whether or not the ``usual`` attempt leaves pods."""
    if usual.shares.pools and _may_do_without_spot(usual):
        yield replace(strategy, on_demand=usual.shares.pools)
    if usual.work.claims.has_choice and usual.packer.bought:
        yield replace(strategy, own_devices=True)
    is_small, nodes = len(usual.work.pending) <= _SMALL, usual.packer.bought
    if is_small:
        yield from (replace(strategy, options=options) for options in _options_for_price(nodes))
    # How far the price is from its bound takes a proof: it is asked only where that decides about something.
    if not _are_dealt(nodes) or sum(len(batch.pods) for node in nodes for batch in node.placed) > SMALL_DEMAND:
        return
    if is_small and usual.is_far:
        yield from (replace(strategy, options=options) for options in _options_far_from_bound(nodes))
    if (is_small or usual.is_far) and (dealt := usual.dealt_for_less):
        yield replace(strategy, dealt=dealt)


def _may_do_without_spot(usual: PackingAttempt) -> bool:
    """Whether no rule about pods ranges over capacity types: to that, spot is a domain like any other."""
    rules = (rule for pod_class in usual.work.possible for rule in usual.work.topology.rules[pod_class])
    return not usual.problem.options.first_fit_only and all(canonical(rule.key) != CAPACITY_TYPE for rule in rules)


def repairs(attempt: PackingAttempt) -> Iterator[Strategy]:
    """What to try for a packing that opened domains which a spread of its pods had not counted.

    Either they are counted from the start, or nothing is bought in them, where that is possible.
    """
    yield replace(attempt.strategy, unforeseen=attempt.unforeseen)
    if attempt.closable:
        yield replace(attempt.strategy, closed=attempt.closable)


def _options_for_left(left: Sequence[PodClass], topology: Topology) -> Iterator[FirstFitOptions]:
    """Options that might place pods that are left, if rules about pods are what keeps them from a place."""
    if any(topology.rules[pod_class] or topology.concerns(pod_class) for pod_class in left):
        if any(_needs_spread_neighbours(pod_class, topology) for pod_class in left):
            yield FirstFitOptions(cautious=True)
        if any(topology.binding(pod_class).host_affinity for pod_class in left):
            yield FirstFitOptions(neighbours_next=True)
        yield FirstFitOptions(dealing="gathered")
        yield FirstFitOptions(wanted_last=True)
        yield from (FirstFitOptions(shuffle=number) for number in (1, 2, 3))


def _needs_spread_neighbours(pod_class: PodClass, topology: Topology) -> bool:
    """Whether the class must share a host with others, and a spread over hosts is its own or counts it."""
    hard = [rule for rule in topology.rules[pod_class] if rule.weight is None and rule.key == HOSTNAME]
    spreads = [rule for rule in hard if rule.kind == "spread"]
    foreign = [group for group in topology.binding(pod_class).foreign_over(HOSTNAME) if group.rule.kind == "spread"]
    return bool(topology.binding(pod_class).host_affinity) and bool(spreads or foreign)


def _options_for_price(nodes: Sequence[NewNode]) -> Iterator[FirstFitOptions]:
    """Options that might need fewer or cheaper nodes: none unless pods were dealt to domains, or have a choice of
    terms.
    """
    if any(len(batch.demand.pod_class.terms) > 1 for node in nodes for batch in node.placed):
        yield FirstFitOptions(terms_as_listed=True)
    if _are_dealt(nodes):
        yield FirstFitOptions(fitting=True)
        if len(nodes) > 1:
            yield FirstFitOptions(dealing="gathered")


def _options_far_from_bound(nodes: Sequence[NewNode]) -> Iterator[FirstFitOptions]:
    """More of them, for pods that were dealt to domains far above their bound: those that are free go where others must
    be.
    """
    if len(nodes) > 1:
        yield FirstFitOptions(dealing="gathered", smallest_first=True)
        yield FirstFitOptions(dealing="gathered", fitting=True)


def _are_dealt(nodes: Sequence[NewNode]) -> bool:
    """Whether pods on them were dealt to domains."""
    return any(batch.domains for node in nodes for batch in node.placed)


def _both_near_and_spread(pod_class: PodClass, topology: Topology) -> frozenset[str]:
    """The topology keys, without the host's, over which the class must be near other pods and evenly spread as well."""
    hard = [rule for rule in topology.rules[pod_class] if rule.weight is None and rule.key != HOSTNAME]
    near = {rule.key for rule in hard if rule.kind == "affinity"}
    return frozenset(near & {rule.key for rule in hard if rule.kind == "spread"})


def _zones_without_neighbours(classes: Sequence[PodClass], topology: Topology) -> frozenset[tuple[str, str]]:
    """The zones that keep pods from a place only because their spread ranges over them.

    Their affinity lets no pod in there. Returned as places (topology key and zone). Zones over which another spread
    ranges are left out: it would be uneven without them.
    """
    torn = [pod_class for pod_class in classes if ZONE in _both_near_and_spread(pod_class, topology)]
    ranged, others = set[str](), set[str]()
    for pod_class in classes:
        for rule in topology.rules[pod_class]:
            if (rule.kind, rule.key) == ("spread", ZONE):
                (ranged if pod_class in torn else others).update(topology.group(rule).domains)
    return frozenset((ZONE, zone) for zone in ranged - others - topology.neighbouring(torn, ZONE))
