"""What is explained of a plan, in small worlds."""

from dataclasses import replace

from joinery.decisions.scheduling.explain.explain import explain
from joinery.decisions.scheduling.solve import solve
from joinery.objects.karpenter.labels import RESERVATION_ID, RESERVED
from joinery.objects.snapshot.offerings import Offering, Reservation
from simulator.builders import foreign, node_claim, node_pool, pod
from tests.unit.decisions.verification.plans import SMALL, A, problem


def test_a_reservation_is_not_explained_as_taken_by_another_providers_claim() -> None:
    """The plan does not count claims of EKS Auto Mode, so its explanation does not either."""
    reserved = Offering(A, RESERVED, 0.1 / 1e7, True, "", Reservation("cr-1", remaining=1))
    small = replace(SMALL, offerings=(*SMALL.offerings, reserved))
    theirs = foreign(node_claim("theirs", conditions=(), requirements=[f"{RESERVATION_ID}=cr-1"]))
    asked = problem(node_pool(), pod("web-1", cpu="1"), theirs, types=(small,))
    (pool,) = explain(asked, solve(asked), "default/web-1").pools
    assert pool.offering is not None
    assert pool.offering.reservation == "cr-1"
