"""No call outlasts the run that makes it: adapters, controllers and the template agree."""

import pytest

from joinery.gateways.aws import ATTEMPTS, CONNECT_SECONDS, READ_SECONDS
from joinery.gateways.ec2 import gateway as cloud
from joinery.gateways.kubernetes import gateway as cluster
from joinery.gateways.kubernetes.transport import CONNECT_SECONDS as CLUSTER_CONNECT_SECONDS
from joinery.gateways.kubernetes.transport import PATIENCE
from tools.template import doors, load

#: The longest wait before the second attempt (botocore, "Standard retry mode": a random part of a second).
LONGEST_WAIT = 1


def test_adapters_give_up_before_controllers_expect_it() -> None:
    """A controller begins a call only if the gateway's longest call fits into what is left of its run."""
    assert ATTEMPTS * (CONNECT_SECONDS + READ_SECONDS) + LONGEST_WAIT <= cloud.LONGEST_CALL
    assert CLUSTER_CONNECT_SECONDS < PATIENCE <= cluster.LONGEST_CALL


@pytest.mark.parametrize("door", ["provisioning", "interruption", "expiration", "disruption", "lifecycle"])
def test_a_run_is_longer_than_its_longest_call(door: str) -> None:
    """Otherwise it would begin none."""
    assert doors(load())[door].timeout > cloud.LONGEST_CALL + 1
