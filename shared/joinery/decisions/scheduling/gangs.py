"""All of a gang's pods that must be together get nodes, or none is bought for it (``objects.snapshot.gangs``).

A packing that places too few of a gang is made again without the gang. Gangs that get in each other's way are not all
left out for that: after the first packing each of them is tried once more, the most urgent first, beside those that are
whole, and takes part again if that makes it whole too. First-fit alone tells, which is the cheap part of a packing.

A gang whose pods must share a domain (a zone, a rack) is one: where some of its pods run, the others are required to go
there. Otherwise its pods require each other, which lets a packing choose; and if it chose a domain that has no room for
all of them, each other domain is tried, and the cheapest is the gang's.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec.structs import replace as with_fields

from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.attempt import PackingAttempt, Strategy, first_fit
from joinery.decisions.scheduling.constraints.topology_rules import OF_GANG
from joinery.decisions.scheduling.firstfit.firstfit import FirstFit
from joinery.decisions.scheduling.firstfit.pending import pending
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.packing import Unplaced, placed_pods
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.objects.karpenter.labels import HOSTNAME
from joinery.objects.kubernetes.core import (
    Affinity,
    LabelSelector,
    NodeSelectorRequirement,
    Pod,
    PodAffinity,
    PodAffinityTerm,
)
from joinery.objects.kubernetes.node_affinity import narrowed
from joinery.objects.snapshot.gangs import Gang, GangKey
from joinery.objects.snapshot.pods import priorities_of, priority_of

#: How many packings by first-fit alone are tried for gangs at most: of hundreds of gangs that do not fit, nobody should
#: wait for the last.
_MOST_TRIES = 32

#: Packs a problem without the pods that are refused, by name; returns those that it left for its own reasons too.
Pack = Callable[[Problem, Mapping[str, Unplaced]], tuple[PackingAttempt, Mapping[str, Unplaced]]]


def together(
    problem: Problem, refused: Mapping[str, Unplaced], pack: Pack, effort: Effort
) -> tuple[PackingAttempt, Mapping[str, Unplaced]]:
    """What ``pack`` returns, with every gang whole or without a new place. Costs nothing where no gang waits; where one
    cannot be whole, one packing more, and what first-fit takes for each such gang.
    """
    gangs = problem.snapshot.gangs
    names = frozenset(pod.key for pod in pending(problem, problem.snapshot.views)) if gangs else frozenset[str]()
    waiting = {key: gang for key, gang in gangs.items() if not names.isdisjoint(gang.members)}
    if not waiting:
        return pack(problem, refused)
    search = _Search(problem, refused, effort, waiting, names)
    search.leave_out_hopeless()
    while True:
        best, left = pack(search.asked, {**refused, **search.left_out})
        broken = search.broken(placed_pods(best.packing.existing, best.packing.launches))
        if not broken:
            best, left = search.cheaper(pack, best, left)
            return best, {**left, **search.where_most_have_room(pack)}
        search.leave_out(broken, best)
        search.try_again(broken, best)


def what_lacks(gang: Gang) -> Reason | None:
    """Why nothing that is bought makes the gang whole: what says how large it is lacks, or pods do. None if nothing."""
    if gang.minimum is None:
        return Reason.of(ReasonCode.GANG, "{gang} {problem}", gang=str(gang), problem=gang.problem)
    if gang.lacks_members:
        there = len(gang.members)
        template = "{gang} places {minimum} pods together, and {there} of them {exist}"
        exist = "exists" if there == 1 else "exist"
        return Reason.of(ReasonCode.GANG, template, gang=str(gang), minimum=gang.minimum, there=there, exist=exist)
    return None


@dataclass
class _Search:
    """Which gangs take part in a packing, and where.

    ``names``: of all pods to place. ``domains``: by gang, the domain that its pods are required to go to. ``out``: the
    gangs that are left out, with their pods (``left_out`` has them together). ``most``: how many pods of a gang had a
    place in a packing, and in which domain. ``tried``: those that were tried alone. ``tries``: how many packings are
    still tried.
    """

    problem: Problem
    refused: Mapping[str, Unplaced]
    effort: Effort
    waiting: Mapping[GangKey, Gang]
    names: frozenset[str]
    domains: dict[GangKey, str] = field(default_factory=dict)
    out: dict[GangKey, Mapping[str, Unplaced]] = field(default_factory=dict)
    tried: set[GangKey] = field(default_factory=set)
    most: dict[GangKey, tuple[int, str]] = field(default_factory=dict)
    tries: int = _MOST_TRIES

    @property
    def is_over(self) -> bool:
        """Whether no more packings are tried."""
        return self.tries <= 0 or self.effort.is_over()

    @property
    def left_out(self) -> Mapping[str, Unplaced]:
        return {name: unplaced for pods in self.out.values() for name, unplaced in pods.items()}

    @property
    def asked(self) -> Problem:
        """The problem with the topology of gangs as rules of their pods."""
        return _gathered(self.problem, self.names, self.waiting.values(), self.domains)

    @property
    def _asked_of_first_fit(self) -> Problem:
        """The same problem for first-fit alone."""
        return replace(self.asked, options=replace(self.problem.options, first_fit_only=True))

    @property
    def _staying(self) -> frozenset[str]:
        """The pods that a packing leaves where they are."""
        return frozenset((*self.refused, *self.left_out))

    def leave_out_hopeless(self) -> None:
        """Leave out gangs that cannot be whole now, whatever is bought; require domains in which pods run."""
        for key, gang in self.waiting.items():
            there = self._domains_of(gang) if gang.topology else frozenset()
            if lacking := what_lacks(gang):
                self._refuse(key, lacking)
            elif len(there) > 1 or "" in there:
                template = "{gang} wants all pods in one {topology}, and some run in {domains}"
                said = ", ".join(domain or "none" for domain in sorted(there))
                self._refuse(
                    key, Reason.of(ReasonCode.GANG, template, gang=str(gang), topology=gang.topology, domains=said)
                )
            elif there:
                self.domains[key] = min(there)

    def broken(self, placed: Iterable[str]) -> list[GangKey]:
        """The gangs that take part and are not whole with these pods placed, the most urgent first."""
        there = frozenset(placed)
        broken = [key for key, gang in self.waiting.items() if key not in self.out and not self._is_whole(gang, there)]
        priorities = priorities_of(self.problem.snapshot.priority_classes)
        return sorted(broken, key=lambda key: (-_priority(self.waiting[key], priorities), _age(self.waiting[key]), key))

    def leave_out(self, broken: Iterable[GangKey], best: PackingAttempt) -> None:
        """Leave these gangs out. A pod of which each is short has the gang's reason and its own in the packing, and so
        have the members that are like it.
        """
        packing, class_of = best.packing, best.work.class_of
        reasons = {unplaced.pod: unplaced.reasons for unplaced in packing.unplaced}
        placed = frozenset(placed_pods(packing.existing, packing.launches))
        without = self.names - placed
        for key in broken:
            gang = self.waiting[key]
            lacking = min((name for name in gang.members if name in without), default="")
            self.most[key] = (gang.with_node(placed, self.names), self.domains.get(key, ""))
            alike = (name for name in gang.members if class_of.get(name) is class_of.get(lacking))
            own = dict.fromkeys(alike, reasons.get(lacking, ()))
            own |= {name: reasons[name] for name in gang.members if name in reasons}
            self._refuse(key, self._short_of(gang, lacking), own)

    def _short_of(self, gang: Gang, lacking: str) -> Reason:
        """Why the gang is left out: how many of it have a place, and a pod that has none beside those."""
        count, domain = self.most[gang.key]
        template = "{gang} places {minimum} pods together{within}, and {found} {have} a place{where}; {first} has none"
        return Reason.of(
            ReasonCode.GANG,
            template,
            gang=str(gang),
            minimum=gang.minimum or 0,
            within=f" in one {gang.topology}" if gang.topology else "",
            found=count,
            have="has" if count == 1 else "have",
            where=f" at most, in {domain}" if domain else "",
            first=lacking,
        )

    def cheaper(
        self, pack: Pack, best: PackingAttempt, left: Mapping[str, Unplaced]
    ) -> tuple[PackingAttempt, Mapping[str, Unplaced]]:
        """The packing, or a cheaper one with gangs in other domains, if there is time to look for it."""
        chosen = dict(self.domains)
        for gangs in self._alike():
            if not self.is_over:
                domain, _ = self._cheapest(gangs, best)
                self.domains |= dict.fromkeys((gang.key for gang in gangs), domain) if domain else {}
        if self.domains == chosen or self.effort.is_over():
            return best, left
        other, others_left = pack(self.asked, {**self.refused, **self.left_out})
        is_whole = not self.broken(placed_pods(other.packing.existing, other.packing.launches))
        return (other, others_left) if is_whole and other.rank() < best.rank() else (best, left)

    def _alike(self) -> Iterable[Sequence[Gang]]:
        """The gangs that may choose a domain. Those that differ in their names alone choose together: one domain is as
        good for each of them, and in one domain their pods are of one class.
        """
        free = [
            gang
            for key, gang in self.waiting.items()
            if gang.topology not in ("", HOSTNAME) and key not in self.out and key not in self.domains
        ]
        if len(free) < 2:
            return [free] if free else []
        class_of = Workspace(self.problem, staying=self._staying).class_of
        alike: dict[Hashable, list[Gang]] = {}
        for gang in free:
            pods = Counter(class_of[name] for name in gang.members if name in class_of)
            alike.setdefault((gang.topology, gang.minimum, frozenset(pods.items())), []).append(gang)
        return alike.values()

    def try_again(self, broken: Iterable[GangKey], best: PackingAttempt) -> None:
        """Take those back that are whole beside the gangs that take part, in some domain."""
        for key in broken:
            if key in self.tried or self.is_over:
                continue
            self.tried.add(key)
            left = self.out.pop(key)
            domain, is_whole = self._cheapest([self.waiting[key]], best)
            if not is_whole:
                self.out[key] = left
            elif domain:
                self.domains[key] = domain

    def where_most_have_room(self, pack: Pack) -> Mapping[str, Unplaced]:
        """The gangs that no domain has room for, with the reasons that their pods have in the one with room for most of
        them. Costs a packing by first-fit where there are any.
        """
        domains = {key: domain for key, (_, domain) in self.most.items() if domain and key in self.out}
        if not domains or self.effort.is_over():
            return {}
        self.domains |= domains
        for key in domains:
            self.out.pop(key)
        tried, _ = pack(self._asked_of_first_fit, {**self.refused, **self.left_out})
        self.leave_out(domains, tried)
        return {name: unplaced for key in domains for name, unplaced in self.out[key].items()}

    def _cheapest(self, gangs: Sequence[Gang], best: PackingAttempt) -> tuple[str, bool]:
        """A domain in which gangs that are alike are whole, empty for any, and whether there is one."""
        gang, *_ = gangs
        if gang.key in self.domains or not gang.topology:
            return "", self._cost_of_whole(gang) is not None
        costs: dict[str, float] = {}
        for domain in _choices(gang, best):
            self.domains |= dict.fromkeys((one.key for one in gangs), domain)
            if (cost := self._cost_of_whole(gang)) is not None:
                costs[domain] = cost
            if self.is_over:
                break
        for one in gangs:
            self.domains.pop(one.key, None)
        return (min(costs, key=lambda domain: (costs[domain], domain)), True) if costs else ("", False)

    def _cost_of_whole(self, gang: Gang) -> float | None:
        """$/h of what first-fit buys with the gang beside those that take part; None if not all of them are whole."""
        self.tries -= 1
        packer = first_fit(self._asked_of_first_fit, Strategy(staying=self._staying), self.effort)
        packer.place_leftovers()
        placed = _placed(packer)
        there, (most, where) = gang.with_node(placed, self.names), self.most.get(gang.key, (0, ""))
        if there > most or (there == most > 0 and not where):
            self.most[gang.key] = (there, self.domains.get(gang.key, ""))
        taking_part = (other for key, other in self.waiting.items() if key not in self.out)
        if not all(self._is_whole(other, placed) for other in (gang, *taking_part)):
            return None
        return sum(float(node.least_prices[node.cheapest()]) for node in packer.bought)

    def _is_whole(self, gang: Gang, placed: frozenset[str]) -> bool:
        # Of a group without a minimum a pod may be left, and the others go on.
        return (gang.minimum or 0) < 2 or gang.is_whole(placed, self.names)

    def _domains_of(self, gang: Gang) -> frozenset[str]:
        """The domains in which pods of the gang run that stay; an empty one for nodes without the label."""
        stay = {gang.members[name].spec.node_name for name in gang.seated - self.names}
        return frozenset(
            view.labels.get(gang.topology, "") for view in self.problem.snapshot.views if view.node in stay
        )

    def _refuse(self, key: GangKey, reason: Reason, own: Mapping[str, tuple[Reason, ...]] | None = None) -> None:
        names = (name for name in self.waiting[key].members if name in self.names and name not in self.refused)
        self.out[key] = {name: Unplaced(name, (reason, *(own or {}).get(name, ()))) for name in names}


def _placed(packer: FirstFit) -> frozenset[str]:
    """The pods that first-fit has placed."""
    left = {name for names in packer.left.values() for name in names}
    left.update(name for pod_class in packer.work.classes if pod_class.problems for name in pod_class.names)
    return frozenset(pod.key for pod in packer.work.pending if pod.key not in left)


def _choices(gang: Gang, best: PackingAttempt) -> Iterator[str]:
    """The domains that nodes have, or could have, that may suit the gang."""
    work = best.work
    bought = {
        domain
        for pod_class in work.possible
        if not gang.members.keys().isdisjoint(pod_class.names)
        for domain in work.universe(pod_class, gang.topology)
    }
    there = {view.labels[gang.topology] for view in work.views if gang.topology in view.labels}
    return iter(sorted(bought | there))


def _priority(gang: Gang, priorities: Mapping[str, int]) -> int:
    return max(priority_of(pod.spec, priorities) for pod in gang.members.values())


def _age(gang: Gang) -> tuple[bool, Any]:
    """Older gangs come first; a file may say nothing."""
    created = [at for pod in gang.members.values() if (at := pod.metadata.creation_timestamp) is not None]
    return not created, min(created, default=None)


def _gathered(
    problem: Problem, names: frozenset[str], gangs: Iterable[Gang], domains: Mapping[GangKey, str]
) -> Problem:
    """The problem, with what the topology of gangs asks of their pods as rules of these pods."""
    changed = {
        name: _in_domain(pod, gang.topology, domains[gang.key]) if gang.key in domains else _beside(pod, gang)
        for gang in gangs
        if gang.topology
        for name, pod in gang.members.items()
        if name in names
    }
    if not changed:
        return problem
    pods = tuple(changed.get(pod.key, pod) for pod in problem.snapshot.pods)
    return replace(problem, snapshot=replace(problem.snapshot, pods=pods))


def _in_domain(pod: Pod, key: str, domain: str) -> Pod:
    """The pod, required to run in the domain."""
    return narrowed(pod, NodeSelectorRequirement(key=key, operator="In", values=[domain]))


def _beside(pod: Pod, gang: Gang) -> Pod:
    """The pod, required to share a domain with the others of its gang."""
    label = {OF_GANG: str(gang)}
    term = PodAffinityTerm(topology_key=gang.topology, label_selector=LabelSelector(match_labels=label))
    affinity = pod.spec.affinity or Affinity()
    before = affinity.pod_affinity or PodAffinity()
    required = [*before.required_during_scheduling_ignored_during_execution, term]
    pod_affinity = with_fields(before, required_during_scheduling_ignored_during_execution=required)
    return with_fields(
        pod,
        metadata=with_fields(pod.metadata, labels={**pod.metadata.labels, **label}),
        spec=with_fields(pod.spec, affinity=with_fields(affinity, pod_affinity=pod_affinity)),
    )
