"""Digests of nodes' pods that are remembered are those that would be worked out."""

import sys

from joinery.objects.snapshot.pod_events import Digests, digest
from simulator import builders
from simulator.kubernetes.resources import with_metadata


def test_a_digest_is_remembered_for_as_long_as_the_pods_are_the_same() -> None:
    """Whichever of them is another one, comes, goes, or ends."""
    digests, first, second = Digests(), builders.pod("first", uid="1"), builders.pod("second", uid="2")
    replaced = with_metadata(second, uid="3")
    for pods in ((first,), (first, second), (first, second), (first, replaced), (replaced,), ()):
        assert digests.of("node", pods) == digest(pods)


def test_pods_of_nodes_that_are_gone_are_not_kept_in_memory() -> None:
    """Nodes come and go all day long, and a warm function may live for hours."""
    digests, pods = Digests(), (builders.pod("web"),)
    before = sys.getrefcount(pods)
    digests.of("node", pods)
    digests.keep({"node"})
    assert sys.getrefcount(pods) == before + 1
    digests.keep(())
    assert sys.getrefcount(pods) == before
