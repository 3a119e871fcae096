"""An independent check of a packing: the optimiser may be clever because this is simple.

The plan is put in place: every planned node has booted, every pod runs where the plan puts it. Then each planned pod is
asked whether it may be there, as kube-scheduler would ask if the pod were not bound yet, and each launch whether its
NodePool and the catalogue allow it. Everything is derived from the objects' own specs. An import contract keeps the
solver's code out. Shared with it are the problem, the packing and its reasons, and the views of the snapshot
(``joinery.objects.snapshot``: what a node has, which pods are pending); a mistake there would be made on both sides.
The modules, in the order of reading (``census``, ``affinity``, ``binding_order`` and ``spread`` are in ``topology``,
``claims`` to ``volumes`` in ``storage``):

==================  =========================================================================================
``predicates``      selectors, expressions, taints, ports, requests: kube-scheduler's small rules
``nodes``           nodes of the final state, existing and launched alike
``violation``       what is reported: a code, its subject, the figures
``daemon_sets``     which DaemonSets' pods run on a node
``final_state``     the final state: pods by class, classes by node
``accounting``      every pending pod exactly once
``gangs``           all of a gang or none of it
``placements``      taints, labels, room, ports of each (class, node) pair
``claims``          the volume claims that pods mount
``unbound_claims``  which volume a claim without one gets
``matching``        whether each of them can have a volume of its own
``volumes``         claims and volumes
``census``          pods that a selector matches, by domain
``closed_pools``    NodePools that may launch nothing
``purchasable``     what each NodePool could launch for a pod
``affinity``        pod affinity and anti-affinity
``binding_order``   an order of binding for pods that need each other
``spread``          topology spread
``launch_options``  what EC2 may pick for a launch
``devices``         devices that pods claim
``launches``        each launch against its NodePool and the catalogue
``alternatives``    what else EC2 may pick of a launch
``nodepools``       limits, replicas, minimal values, weights
``reservations``    what each capacity reservation still takes
``shares``          how many nodes of a NodePool are on demand
==================  =========================================================================================

A wrong plan is reported as violations. Their code names the rule, their subject the pod, launch, NodePool or
reservation.
"""

from collections.abc import Iterator

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.verification.accounting import check_accounts
from joinery.decisions.verification.alternatives import check_alternatives
from joinery.decisions.verification.devices.check import check_devices
from joinery.decisions.verification.final_state import FinalState, final_state
from joinery.decisions.verification.gangs import check_gangs
from joinery.decisions.verification.launch_options import LaunchOptions
from joinery.decisions.verification.launches import check_launches
from joinery.decisions.verification.nodepools import check_limits, check_min_values, check_replicas, check_weights
from joinery.decisions.verification.placements import check_placements
from joinery.decisions.verification.purchasable import Purchasable
from joinery.decisions.verification.reservations import check_reservations
from joinery.decisions.verification.shares import check_shares
from joinery.decisions.verification.storage.volumes import check_volumes
from joinery.decisions.verification.topology.affinity import (
    anti_affinity_terms,
    check_affinity,
    check_anti_affinity,
    required_neighbours,
)
from joinery.decisions.verification.topology.binding_order import check_order
from joinery.decisions.verification.topology.census import Census
from joinery.decisions.verification.topology.spread import Spreads, check_spread
from joinery.decisions.verification.violation import Violation, ViolationCode

#: Costs are sums of prices: rounding adds up.
_COST_TOLERANCE = 1e-6


def verify(problem: Problem, packing: Packing) -> tuple[Violation, ...]:
    """Everything that is wrong with the packing; empty for a plan that may be acted upon.

    Cost: grows with the different (pod class, node) pairs; 10,000 pods on 1,300 nodes take about 0.25 s.
    """
    state = final_state(problem, packing)
    return tuple(_checks(state))


def _checks(state: FinalState) -> Iterator[Violation]:
    census, purchasable, options = Census(state), Purchasable(state), LaunchOptions(state)
    spreads, repulsions = Spreads(state, census, purchasable), anti_affinity_terms(state, census)
    neighbours = required_neighbours(state, census)
    yield from state.wrong
    yield from check_accounts(state)
    yield from check_gangs(state)
    yield from check_placements(state)
    yield from check_anti_affinity(state, repulsions)
    yield from check_affinity(neighbours)
    yield from check_order(state, neighbours)
    yield from check_spread(state, spreads)
    yield from check_volumes(state)
    yield from check_devices(state, options)
    yield from check_launches(state, options)
    yield from check_alternatives(state, options=options, spreads=spreads, repulsions=repulsions)
    yield from check_limits(state, options)
    yield from check_replicas(state)
    yield from check_min_values(state, options)
    yield from check_weights(state, purchasable, census=census, repulsions=repulsions)
    yield from check_reservations(state, options)
    yield from check_shares(state, options)
    yield from check_bounds(state.packing)


def check_bounds(packing: Packing) -> Iterator[Violation]:
    """Whether what is proven of the packing's cost can be right."""
    for bound in (packing.lower_bound, packing.kept_bound):
        if not 0 <= bound <= packing.paid * (1 + _COST_TOLERANCE) + _COST_TOLERANCE:
            template = "the lower bound {bound} is not between 0 and the cost {hourly}"
            yield Violation.of(ViolationCode.COST, template, bound=str(bound), hourly=str(packing.paid))
