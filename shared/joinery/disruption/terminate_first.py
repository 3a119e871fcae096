"""Terminate-first: drifted nodes that end before their replacements are launched, where there is no room for both."""

from joinery.apis.labels import TERMINATE_FIRST
from joinery.apis.nodepool import NodePool
from joinery.apis.policies import TerminateFirst, terminate_first_of


def wishes_of(pool: NodePool, default: frozenset[TerminateFirst]) -> frozenset[TerminateFirst]:
    """Where the NodePool's drifted nodes end first. ``default``: for a pool that does not say.

    An annotation that cannot be read asks for nothing: pods are not to wait by a slip.
    """
    text = pool.metadata.annotations.get(TERMINATE_FIRST)
    if text is None:
        return default
    try:
        return terminate_first_of(text)
    except ValueError:
        return frozenset()
