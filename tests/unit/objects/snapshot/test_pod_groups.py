"""The pods by node, made from those of the snapshot before."""

from hypothesis import given
from hypothesis import strategies as st

from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.pod_groups import PodGroups
from simulator.builders import pod
from tests.properties import examples

#: Some have one name, as of a pod that was made anew.
_PODS = tuple(pod(f"pod-{number % 40:02}", node=f"node-{number % 4}" if number % 5 else "") for number in range(60))


@st.composite
def _lists(draw: st.DrawFn) -> tuple[Pod, ...]:
    """Some of the pods, in the order of an API server or in any other."""
    chosen = draw(st.lists(st.sampled_from(range(len(_PODS))), unique_by=lambda number: _PODS[number].key))
    pods = [_PODS[number] for number in chosen]
    return tuple(sorted(pods, key=lambda one: one.key) if draw(st.booleans()) else pods)


@examples(200)
@given(st.lists(_lists(), min_size=2, max_size=5))
def test_groups_are_the_same_whatever_was_there_before(lists: list[tuple[Pod, ...]]) -> None:
    """In whatever order the pods are listed."""
    groups = PodGroups()
    for pods in lists:
        groups, anew = groups.following(pods), PodGroups().following(pods)
        assert _pods_of(groups) == _pods_of(anew)


@examples(100)
@given(st.lists(_lists(), min_size=2, max_size=2))
def test_a_group_of_the_same_pods_is_the_same_object(lists: list[tuple[Pod, ...]]) -> None:
    """Where they are in the order of an API server."""
    one, other = (tuple(sorted(pods, key=lambda one: one.key)) for pods in lists)
    before = PodGroups().following(one)
    after = before.following(other)
    for group in before:
        now = after.by_node.get(group.node)
        is_same = now is not None and list(map(id, now.pods)) == list(map(id, group.pods))
        assert (now is group) == is_same


def _pods_of(groups: PodGroups) -> dict[str, list[int]]:
    return {group.node: list(map(id, group.pods)) for group in groups}
