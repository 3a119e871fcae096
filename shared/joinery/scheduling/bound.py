"""A proven lower bound on what the launches of a packing must cost: the assignment program (``joinery.optimizer.assignment``).

The program is given what no packing can avoid: every pod's requests, where its required terms, volumes, taints and the weights
of pools let it run, and that pods which repel each other over hosts have a node each. Nodes that exist have the room that the
packing left on them, at no price; of a capacity reservation there are so many as it has. Whatever else forbids a node (spreads, affinity, limits, minValues) only makes a plan dearer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from joinery.apis.labels import HOSTNAME
from joinery.optimizer.bounding import bound
from joinery.optimizer.lot import Amounts, Group, Lot, Mask
from joinery.scheduling.classes import PodClass
from joinery.scheduling.kinds import Claim, kinds_for, stocks
from joinery.scheduling.orders import exclusive
from joinery.scheduling.pools import Pool, fit
from joinery.scheduling.reservations import is_bought
from joinery.scheduling.taints import TOLERATE_PREFERRED, first_untolerated
from joinery.scheduling.workspace import Workspace


def lower_bound(work: Workspace, launched: Mapping[PodClass, int], pools: Sequence[Pool]) -> float:
    """$/h that no set of new nodes for these pods can undercut; pods by class. ``pools``: with all that they sell, also what the
    packing kept out of.
    """
    classes = [pods for pods, count in launched.items() if count]
    if not classes:
        return 0.0
    return bound(_lot(work, classes, np.array([launched[pods] for pods in classes], dtype=np.int64), pools))


def _lot(work: Workspace, classes: Sequence[PodClass], counts: Amounts, pools: Sequence[Pool]) -> Lot:
    requests = np.array([work.axis.vector(pods.requests) for pods in classes], dtype=np.int64)
    claims = [claim for item, pods in enumerate(classes) for claim in _claims(work, pods, item, pools)]
    # What users want of a node's size is no part of the bound.
    kinds = kinds_for([replace(pool, room=pool.market.allocatable - pool.overhead) for pool in pools], requests, claims)
    free, open_to = _standing(work, classes, requests)
    clashes = _clashes(work, classes)
    stock, pile = stocks(kinds, work.reservations)
    alone = np.arange(len(free), dtype=np.int64)
    return Lot(
        requests=requests,
        counts=counts,
        price=np.concatenate([kinds.price, np.zeros(len(free))]),
        room=np.concatenate([kinds.room, free]),
        admits=np.concatenate([kinds.admits, open_to], axis=1),
        groups=tuple(Group(np.array(members, dtype=np.int64), cap) for members, cap in exclusive(clashes)),
        clashes=clashes,
        stock=np.concatenate([stock, np.ones_like(alone)]),
        pile=np.concatenate([pile, alone + pile.max(initial=0) + 1]),
    )


def _claims(work: Workspace, pods: PodClass, item: int, pools: Sequence[Pool]) -> list[Claim]:
    """Where required terms, volumes and taints let the class run; below the first pool that takes all of it nothing else may be used."""
    claims: list[Claim] = []
    weight: int | None = None
    for index, pool in enumerate(pools):
        if weight is not None and pool.weight < weight:
            break
        taints = pool.node_pool.spec.template.spec.taints
        if first_untolerated((*pods.tolerations, TOLERATE_PREFERRED), taints) is not None:
            continue
        mine = [Claim(item, index, types, columns) for types, columns in _suits(work, pods, pool)]
        claims += mine
        if mine and _takes_all(work, pods, pool):
            weight = pool.weight
    return claims


def _suits(work: Workspace, pods: PodClass, pool: Pool) -> Iterator[tuple[Mask, Mask]]:
    """The types and offering columns of the pool that suit the class, for each way in which its terms and volumes may be met."""
    row = work.axis.vector(pods.requests)
    for wanted in (term.intersect(volumes) for term in pods.terms for volumes in pods.volumes.alternatives):
        found = fit(pool, wanted)
        large = (pool.room >= row).all(axis=1)
        if not found.conflict and np.isfinite(pool.market.prices[found.types & large][:, found.columns]).any():
            yield found.types, found.columns


def _takes_all(work: Workspace, pods: PodClass, pool: Pool) -> bool:
    """Whether nothing could send a pod of the class to a lighter pool: no preference, no other pod, no reservation that is used
    up, and no choice of terms or volumes, each of which is tried on all pools (scheduling.md 3.6).
    """
    rules, taints = work.topology.rules[id(pods)], pool.node_pool.spec.template.spec.taints
    is_single_minded = len(pods.terms) == len(pods.volumes.alternatives) == 1 and not pods.preferred
    joins_others = any(rule.kind == "affinity" for rule in rules) or bool(work.topology.keys(pods, rules))
    is_plain = not pool.limits and not pool.min_values and first_untolerated(pods.tolerations, taints) is None
    if not is_plain or not is_single_minded or joins_others or pods.ports:
        return False
    wanted = pods.terms[0].intersect(pods.volumes.alternatives[0])
    return is_bought(pool, fit(pool, wanted), work.axis.vector(pods.requests))


def _standing(work: Workspace, classes: Sequence[PodClass], requests: Amounts) -> tuple[Amounts, Mask]:
    """The free room of nodes that exist and could take some pod (nodes x resources), and which classes (classes x nodes)."""
    nodes = [node for node in work.nodes if not node.view.is_reserved and (node.free >= 0).all()]
    free = np.array([node.free for node in nodes], dtype=np.int64).reshape(len(nodes), requests.shape[1])
    admits: Mask = np.asarray((free[None] >= requests[:, None]).all(axis=2))
    for item, pods in enumerate(classes):
        for index in np.flatnonzero(admits[item]):
            view = nodes[index].view
            admits[item, index] = (
                any(term.matches(view.labels) for term in pods.terms)
                and first_untolerated((*pods.tolerations, TOLERATE_PREFERRED), view.taints) is None
            )
    useful = admits.any(axis=0)
    return free[useful], admits[:, useful]


def _clashes(work: Workspace, classes: Sequence[PodClass]) -> Mask:
    """Classes whose required anti-affinity over hosts keeps them apart, each from itself and from one another."""
    clashes = np.zeros((len(classes), len(classes)), dtype=np.bool_)
    for index, pods in enumerate(classes):
        for rule in work.topology.rules[id(pods)]:
            if rule.key == HOSTNAME and rule.kind == "anti-affinity" and rule.weight is None:
                selected = [i for i, other in enumerate(classes) if work.topology.group(rule).selects(other)]
                clashes[index, selected] = clashes[selected, index] = True
    return clashes
