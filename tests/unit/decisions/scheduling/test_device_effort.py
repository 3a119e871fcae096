"""What nodes are searched for devices in vain has a ceiling for all nodes of a plan, so that others get their turn."""

import msgspec

from joinery.decisions.scheduling.devices.allocation import allocate
from joinery.decisions.scheduling.devices.needs import ClaimNeeds, Constraint, Wanted
from joinery.decisions.scheduling.devices.stock import Published, published
from joinery.objects.kubernetes.dynamic_resources import ResourceSlice

GPU = "gpu.example.com"


def _nodes(count: int) -> Published:
    """Nodes of 128 devices, each with a number of its own."""
    devices = [{"name": f"d{number}", "attributes": {"number": {"int": number}}} for number in range(128)]
    spec = {"driver": GPU, "devices": devices}
    documents = (
        {**spec, "nodeName": f"n{node}", "pool": {"name": f"n{node}", "resourceSliceCount": 1}} for node in range(count)
    )
    return published(
        msgspec.convert({"metadata": {"name": f"s{number}"}, "spec": one}, ResourceSlice)
        for number, one in enumerate(documents)
    )


def _asking(count: int, selector: str = "true", *constraints: Constraint) -> tuple[ClaimNeeds, ...]:
    """A claim for so many devices."""
    return (ClaimNeeds("claim", ((Wanted("req", "gpu", (selector,), count),),), constraints),)


def test_a_claim_that_no_node_can_serve_does_not_search_all_of_them_to_the_end() -> None:
    """Two devices of one number are looked for among 8,128 pairs, on each node anew."""
    nodes = _nodes(100)
    apart = Constraint(f"{GPU}/number")
    stocks = tuple(nodes.by_node.values())
    assert all(allocate(stock, stock.taken, _asking(2, "true", apart)) is None for stock in stocks)
    (effort,) = {id(stock.effort): stock.effort for stock in stocks}.values()
    assert effort is not None
    assert effort.tries < 250_000
    assert allocate(stocks[-1], stocks[-1].taken, _asking(2)) is not None


def test_a_long_selector_is_not_read_for_every_device_of_every_node() -> None:
    """Who comes after it, with an ordinary one, is served all the same."""
    nodes = _nodes(37)
    long = " && ".join(["device.driver == 'gpu.example.com'"] * 240)
    served = [allocate(stock, stock.taken, _asking(1, long)) is not None for stock in nodes.by_node.values()]
    assert served == [True] * 34 + [False] * 3
    assert all(allocate(stock, stock.taken, _asking(1)) is not None for stock in nodes.by_node.values())
