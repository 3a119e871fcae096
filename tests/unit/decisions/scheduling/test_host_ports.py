"""Which pods clash for a host port, all pairs at once."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.constraints.resources import HostPort, ports_clash
from joinery.decisions.scheduling.optimise.orders import port_conflicts
from tests.properties import examples

_ADDRESSES = ("0.0.0.0", "::", "10.0.0.1", "10.0.0.2")
_ports = st.tuples(
    st.sampled_from(("TCP", "UDP")),
    st.sampled_from(_ADDRESSES),
    st.sampled_from((80, 81)),
)


@examples(200)
@given(pods=st.lists(st.frozensets(_ports, max_size=3), max_size=5))
def test_all_pairs_at_once_clash_as_each_does(pods: list[frozenset[HostPort]]) -> None:
    """Same protocol and port, and the same address or one that stands for all."""
    clash = port_conflicts(pods)
    for (one, ports), (other, others) in product(enumerate(pods), enumerate(pods)):
        is_clash = any(
            p[0] == q[0] and p[2] == q[2] and (p[1] == q[1] or {p[1], q[1]} & {"0.0.0.0", "::"})
            for p, q in product(ports, others)
        )
        assert clash[one, other] == ports_clash(ports, others) == is_clash
