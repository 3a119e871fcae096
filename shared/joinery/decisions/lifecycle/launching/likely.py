"""Likely launches: what the NodePools of a node class would launch first, for pods that say nothing.

A dry run names it (``gateways.ec2.launch.dryruns``): policies of organisations allow or deny instance types, so another
type might be refused where this one is launched (Karpenter for AWS, nodeclass/validation).
"""

from collections.abc import Iterable, Sequence

from joinery.decisions.lifecycle.launching.instance_filters import filtered, tenancy
from joinery.decisions.scheduling.constraints.requirements import read
from joinery.decisions.scheduling.pools.market import Axis, market_of
from joinery.decisions.scheduling.pools.ordinary import peculiar, says_kinds
from joinery.objects.karpenter.labels import RESERVATION_LABELS
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.karpenter.nodeclaim import NodeClaim, NodeClaimSpec
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.offerings import InstanceType, LikelyLaunch

#: For classes without NodePools: small, and sold in nearly every zone.
_COMMON = frozenset({"m5.large", "m6g.large"})


def likely(pools: Iterable[NodePool], types: Sequence[InstanceType]) -> LikelyLaunch | None:
    """The cheapest ordinary type that the heaviest of the class's NodePools may buy; where none may buy anything, a
    common one. None where the class has no types.
    """
    by_weight = sorted(pools, key=lambda pool: (-(pool.spec.weight or 0), pool.metadata.name))
    launches = (launch for pool in by_weight if (launch := _of(pool, types)))
    return next(launches, None) or _common(types)


def _of(pool: NodePool, types: Sequence[InstanceType]) -> LikelyLaunch | None:
    template = pool.spec.template
    labels = [Requirement(key=key, operator="In", values=[value]) for key, value in template.metadata.labels.items()]
    # Of other keys the node is given a value.
    known = {*RESERVATION_LABELS, *(key for kind in types for key in kind.labels)}
    rules = [rule for rule in (*template.spec.requirements, *labels) if rule.key in known]
    claim = NodeClaim(
        spec=NodeClaimSpec.model_construct(node_class_ref=template.spec.node_class_ref, requirements=rules)
    )
    is_wide = not says_kinds(read(rules).canonical())
    found = (is_wide and filtered(claim, _ordinary(types))) or filtered(claim, types)
    return LikelyLaunch(found.types[0], tenancy(claim)) if found else None


def _common(types: Sequence[InstanceType]) -> LikelyLaunch | None:
    known = sorted(_ordinary(types) or types, key=lambda kind: (kind.name not in _COMMON, kind.name))
    return LikelyLaunch(known[0]) if known else None


def _ordinary(types: Sequence[InstanceType]) -> list[InstanceType]:
    market = market_of(types, Axis.of((), ()))
    return [kind for kind, is_peculiar in zip(market.types, peculiar(market), strict=True) if not is_peculiar]
