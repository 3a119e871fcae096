"""Launches of which only the price and the pods matter."""

from joinery.decisions.scheduling.packing import Launch, PlacedOffering


def priced_launch(price: float, *pods: str, name: str = "launch") -> Launch:
    """``price``: $/h. ``pods``: namespace/name of each."""
    return Launch(
        name=name,
        node_pool="default",
        requirements=(),
        labels={},
        taints=(),
        startup_taints=(),
        requests={},
        instance_types=("m5.large",),
        offering=PlacedOffering("m5.large", "us-east-1a", "spot", price),
        pods=pods,
    )
