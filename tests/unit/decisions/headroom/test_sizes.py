"""How many chunks a buffer has (cases of Karpenter's capacitybuffer suite among them)."""

from typing import Any

import msgspec
import pytest

from joinery.decisions.headroom.sizes import Quotas, size_of
from joinery.decisions.scheduling.constraints.resources import requests_of
from joinery.objects.autoscaling.capacitybuffer import CapacityBufferSpec
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.decoding import decode
from joinery.objects.kubernetes.workloads import ResourceQuota
from simulator import builders

POD = builders.pod(cpu="500m", memory="1Gi")


@pytest.mark.parametrize(
    ("spec", "replicas", "size"),
    [
        ({"replicas": 5}, None, 5),
        ({"replicas": 10, "limits": {"cpu": "2"}}, None, 4),
        ({"replicas": 2, "limits": {"cpu": "10"}}, None, 2),
        ({"limits": {"cpu": "2250m", "memory": "100Gi"}}, None, 4),
        ({"limits": {"cpu": "400m"}}, None, 0),
        ({"replicas": 3, "limits": {"nvidia.com/gpu": "1"}}, None, 3),
        ({"limits": {"nvidia.com/gpu": "1"}}, None, 0),
        ({"percentage": 20}, 10, 2),
        ({"percentage": 25}, 10, 3),
        ({"percentage": 1}, 3, 1),
        ({"percentage": 0}, 10, 0),
        ({"percentage": 250}, 4, 10),
        ({"percentage": 10}, 10_000, 1_000),
        ({"percentage": 20, "replicas": 5}, 10, 5),
        ({"percentage": 50, "replicas": 2}, 10, 5),
        ({"percentage": 50, "replicas": 2, "limits": {"cpu": "1500m"}}, 10, 3),
        # Room for a share of nothing is none, whatever the limits would allow.
        ({"percentage": 50, "limits": {"cpu": "10"}}, 0, 0),
        ({"percentage": 50, "replicas": 2}, 0, 2),
        # Of a PodTemplate there is no share.
        ({"percentage": 50, "replicas": 2}, None, 2),
        ({}, None, 0),
    ],
)
def test_the_larger_of_the_sizes_counts_within_the_limits(spec: Any, replicas: int | None, size: int) -> None:
    """``limits`` alone are a size."""
    assert size_of(CapacityBufferSpec.model_validate(spec), requests_of(POD), replicas) == size


def quota(name: str = "team", used: dict[str, str] | None = None, **given: Any) -> ResourceQuota:
    """A quota of the namespace ``default``. ``given``: its spec."""
    hard = given.pop("hard")
    document = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": hard, **given},
        "status": {"used": used or {}},
    }
    return decode(msgspec.json.encode(document), ResourceQuota)


@pytest.mark.parametrize(
    ("quotas", "allowed", "named"),
    [
        ([], 8, ()),
        ([quota(hard={"cpu": "2"})], 4, ("team",)),
        ([quota(hard={"requests.memory": "5Gi"}, used={"requests.memory": "1Gi"})], 4, ("team",)),
        ([quota(hard={"pods": "3"}, used={"pods": "1"})], 2, ("team",)),
        ([quota(hard={"count/pods": "8"})], 8, ()),
        ([quota(hard={"cpu": "1"}, used={"cpu": "3"})], 0, ("team",)),
        ([quota(hard={"requests.storage": "0", "services": "0"})], 8, ()),
        ([quota(hard={"pods": "1"}, scopes=["BestEffort"])], 8, ()),
        ([quota(hard={"pods": "1"}, scopes=["NotBestEffort", "NotTerminating"])], 1, ("team",)),
        ([quota("a", hard={"pods": "7"}), quota("b", hard={"cpu": "3"})], 6, ("a", "b")),
        (
            [
                quota(
                    hard={"pods": "1"},
                    scopeSelector={
                        "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                    },
                )
            ],
            8,
            (),
        ),
    ],
)
def test_quotas_of_the_namespace_bind_the_buffer(
    quotas: list[ResourceQuota], allowed: int, named: tuple[str, ...]
) -> None:
    """As they would bind its pods, by their scopes. All that allow fewer are named."""
    assert Quotas(tuple(quotas)).take("default", POD.spec, 8) == (allowed, named)


def test_buffers_share_a_quota() -> None:
    """What one has taken another lacks; in another namespace nothing is taken."""
    quotas = Quotas((quota(hard={"pods": "5"}),))
    takes = [quotas.take("default", Pod().spec, 3)[0] for _ in range(3)]
    assert (takes, quotas.take("other", Pod().spec, 3)[0]) == ([3, 2, 0], 3)
