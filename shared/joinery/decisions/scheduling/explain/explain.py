"""Why a pod of a plan is where it is: computed from the problem and the packing afterwards, when somebody asks."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from joinery.decisions.scheduling.explain.aftermath import aftermath
from joinery.decisions.scheduling.explain.explanation import Explanation, PoolExplanation
from joinery.decisions.scheduling.explain.node_rules import explain_nodes
from joinery.decisions.scheduling.explain.pool_rules import rule_counts
from joinery.decisions.scheduling.explain.reasons import own_problem, reasons_of_pool
from joinery.decisions.scheduling.explain.stages import Asked
from joinery.decisions.scheduling.firstfit.firstfit import FirstFit
from joinery.decisions.scheduling.firstfit.new_node import NewNode
from joinery.decisions.scheduling.firstfit.workspace import Usage, Workspace
from joinery.decisions.scheduling.packing import Packing, PlacedOffering
from joinery.decisions.scheduling.pool_shares import keep_shares, planned_shares
from joinery.decisions.scheduling.pools.reserved import nodes_left
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason


def explain(problem: Problem, packing: Packing, pod: str) -> Explanation:
    """Explain what the packing does with one of its pods (namespace/name). Raises ``KeyError`` for a pod that is not in
    it.

    Costs about as much as compiling the problem, once and once more for every NodePool.
    """
    launch = next((launch for launch in packing.launches if pod in launch.pods), None)
    existing = next((placement for placement in packing.existing if pod in placement.pods), None)
    unplaced = next((left for left in packing.unplaced if left.pod == pod), None)
    if launch is None and existing is None and unplaced is None:
        raise KeyError(pod)
    after = aftermath(problem, packing, pod)
    work = _workspace(problem, packing, after)
    pod_class = next((pod_class for pod_class in work.classes if pod in pod_class.names), None)
    if pod_class is not None and own_problem(work, pod_class):
        pod_class = None  # no node could help it, so none is asked
    pools: tuple[PoolExplanation, ...] = ()
    if pod_class is not None:
        alone = (replace(after.snapshot, node_pools=(pool.node_pool,)) for pool in work.pools)
        works = (_workspace(problem, packing, replace(after, snapshot=snapshot)) for snapshot in alone)
        pools = tuple(_of_pool(work, pod, unplaced.reasons if unplaced else ()) for work in works)
    bought = {launch.name for launch in packing.launches}
    own = (launch.name if launch else "") or (existing.node or existing.node_claim if existing else "")
    return Explanation(
        pod=pod,
        launch=launch,
        existing=existing,
        reasons=unplaced.reasons if unplaced else (),
        dropped=next((relaxed.dropped for relaxed in packing.relaxed if relaxed.pod == pod), ()),
        standing=explain_nodes(work, pod_class, lambda node: node.name not in bought | {own}),
        planned=explain_nodes(work, pod_class, lambda node: node.name in bought - {own}),
        pools=pools,
        rejected=packing.pool_reasons,
        share=planned_shares(problem.snapshot.pool_shares, packing.launches).get(launch.node_pool) if launch else None,
    )


def _workspace(problem: Problem, packing: Packing, after: Problem) -> Workspace:
    """The aftermath, compiled.

    What the plan takes of capacity reservations is gone; claims that wait for theirs are no claims there.
    """
    work = Workspace(after)
    left = dict(nodes_left(work.pools, problem.snapshot.managed_claims))
    standing = {node.metadata.name for node in after.snapshot.nodes}
    for launch in packing.launches:
        if launch.name in standing and launch.offering.reservation in left:
            left[launch.offering.reservation] = max(0, left[launch.offering.reservation] - 1)
    work.reservations = left
    return work


# --- NodePools ---


def _of_pool(work: Workspace, pod: str, refusals: Iterable[Reason]) -> PoolExplanation:
    """Ask the one NodePool of the workspace, with every node closed, so that it must buy one.

    ``refusals``: what the packing said of the pod, which is what its owner has read.
    """
    work.nodes = []
    pod_class = next(pod_class for pod_class in work.classes if pod in pod_class.names)
    (pool,) = work.pools
    asked = Asked(work, Usage({}, {}, work.reservations), pod_class, pool)
    rules = tuple(rule_counts(asked))
    given = tuple(reason for reason in refusals if reason.subject == asked.subject)
    # Once the other new nodes are there, one may be bought after all: where each of them is to be is open until then.
    node, reasons = (None, given) if given else _bought(asked, pod)
    return PoolExplanation(
        pool.name,
        pool.weight,
        len(pool.market.types),
        rules,
        _offering(node) if node else None,
        reasons,
    )


def _bought(asked: Asked, pod: str) -> tuple[NewNode | None, tuple[Reason, ...]]:
    """The node that first-fit buys for the pod, or the reasons why it finds none."""
    packer = FirstFit(asked.work)
    packer.run()
    packer.place_leftovers()
    keep_shares(asked.work.problem.snapshot.pool_shares, packer.bought)
    node = next((node for node in packer.bought if pod in node.pods), None)
    return node, () if node else reasons_of_pool(replace(asked, usage=packer.usage))


def _offering(node: NewNode) -> PlacedOffering:
    """The cheapest offering that the node may be."""
    market, row = node.pool.market, node.cheapest()
    column = int(np.where(node.columns, market.prices[row], np.inf).argmin())
    place = market.columns[column]
    price = float(market.prices[row, column])
    return PlacedOffering(market.types[row].name, place.zone, place.capacity_type, price, node.reservation)
