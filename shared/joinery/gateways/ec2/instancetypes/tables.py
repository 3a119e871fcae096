"""Facts about instance types that no AWS API tells; ``data/README.md`` says where they come from. Read on first use."""

from functools import cache
from importlib import resources

import msgspec


@cache
def _table(name: str) -> dict[str, int]:
    data = resources.files("joinery.gateways.ec2.instancetypes").joinpath("data", name).read_bytes()
    return msgspec.json.decode(data, type=dict[str, int])


def branch_interfaces(instance_type: str) -> int:
    """Branch network interfaces (security groups for pods); 0 where the type has none or is unknown."""
    return _table("branch-interfaces.json").get(instance_type, 0)


def network_bandwidth(instance_type: str) -> int | None:
    """Baseline bandwidth in Mbit/s, None where it is unknown or vague."""
    return _table("network-bandwidth-mbps.json").get(instance_type)
