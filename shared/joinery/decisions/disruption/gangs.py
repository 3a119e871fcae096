"""Gangs that run: consolidation leaves each of them its minimum.

A training job of four workers ends with the first that is moved, so what its nodes would cost less is no reason to move
one. What must go goes all the same, within budgets: drift, expiry, an interruption. And where a PodDisruptionBudget
covers the pods, their owner has said how many may go at a time: then that counts, here and for the eviction. A group
whose pods are disrupted together or not at all (``disruptionMode``: ``all``) spares none, whatever budgets say. Nor
does one whose PodGroup is gone: no pod of it would be bound anew.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property

from joinery.decisions.scheduling.constraints.budgets import Coverage
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.gangs import Gang
from joinery.objects.snapshot.snapshot import Snapshot


class RunningGangs:
    """How many pods may be moved of each gang that is whole, while commands are taken one after another."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._taken: Counter[Gang] = Counter()

    def objection(self, pods: Iterable[str]) -> Objection | None:
        """Why these pods (namespace/name) may not be moved together to save money; None if they may."""
        for gang, count in self._of(pods).items():
            left = self._spare[gang] - self._taken[gang]
            if gang.minimum is None:
                text = f"{gang} {gang.problem}: its scheduler would bind none of its pods anew"
                return Objection(ObjectionCode.GANG, text)
            if gang.goes_whole:
                text = f"{gang} is disrupted as a whole (disruptionMode), and {count} of its pods would move"
                return Objection(ObjectionCode.GANG, text)
            if count > left:
                text = f"{gang} runs with {len(self._staying(gang))} pods and needs {gang.minimum}: {count} would move"
                return Objection(ObjectionCode.GANG, text)
        return None

    def take(self, pods: Iterable[str]) -> None:
        """These pods are moved."""
        self._taken.update(self._of(pods))

    def _of(self, pods: Iterable[str]) -> Counter[Gang]:
        of_gangs = self._by_pod
        return Counter(of_gangs[pod] for pod in pods if pod in of_gangs) if of_gangs else Counter()

    @cached_property
    def _by_pod(self) -> Mapping[str, Gang]:
        """By pod that no budget covers, the gang that it runs for. What budgets say of a gang of unknown size, or one
        that goes as a whole, does not count.
        """
        whole = [gang for gang in self._snapshot.gangs.values() if gang.minimum != 1 or gang.goes_whole]
        coverage = Coverage(self._snapshot.disruption_budgets) if whole else None
        return {
            name: gang
            for gang in whole
            if coverage is not None and len(self._staying(gang)) >= (gang.minimum or 0)
            for name in gang.seated
            if gang.minimum is None or gang.goes_whole or not coverage.of(gang.members[name])
        }

    @cached_property
    def _spare(self) -> Mapping[Gang, int]:
        return {gang: len(self._staying(gang)) - (gang.minimum or 0) for gang in set(self._by_pod.values())}

    def _staying(self, gang: Gang) -> frozenset[str]:
        """Its pods on nodes that are not leaving."""
        return frozenset(name for name in gang.seated if gang.members[name].spec.node_name not in self._leaving)

    @cached_property
    def _leaving(self) -> frozenset[str]:
        return frozenset(view.node for view in self._snapshot.views if view.is_leaving and view.node)
