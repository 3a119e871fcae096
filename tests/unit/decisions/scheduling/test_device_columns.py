"""Claimed devices as resources of an instance: what a node can give fits, and so plans with claims are proven."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.devices.allocation import allocate
from joinery.decisions.scheduling.devices.needs import Needs, needs_of
from joinery.decisions.scheduling.devices.stock import Stock, stock_of
from joinery.decisions.scheduling.optimise.device_columns import DeviceColumns
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.kubernetes.core import DaemonSet
from joinery.objects.kubernetes.dynamic_resources import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSliceSpec,
)
from joinery.objects.snapshot.offerings import InstanceType
from simulator.builders import daemon_set, instance_type, node_pool, pod
from tests.properties import examples
from tests.unit.decisions.verification.plans import problem

DRIVER = "gpu.example.com"
Document = dict[str, Any]
CLASSES = {
    "gpu": msgspec.convert(
        {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}},
        DeviceClass,
    )
}


def _large(amount: int) -> Document:
    memory = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('{amount}Gi')) >= 0"
    return {"selectors": [{"cel": {"expression": memory}}]}


def _asks(count: int = 1, *, root: bool = False, **more: Any) -> Document:
    constraints = [{"matchAttribute": f"{DRIVER}/root"}] if root else []
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": count, **more}}
    return {"devices": {"requests": [request], "constraints": constraints}}


def _device(number: int, memory: int = 16, root: str = "a", **more: Any) -> Document:
    return {
        "name": f"d{number}",
        "attributes": {"root": {"string": root}},
        "capacity": {"memory": {"value": f"{memory}Gi"}},
        **more,
    }


def _slices(*devices: Document, **more: Any) -> tuple[ResourceSliceSpec, ...]:
    named = [{**device, "name": f"d{number}"} for number, device in enumerate(devices)]
    counters = {"driver": DRIVER, "pool": {"name": "p"}, **more}
    listed = {"driver": DRIVER, "pool": {"name": "p"}, "devices": named}
    return tuple(msgspec.convert(one, ResourceSliceSpec) for one in ([counters] if more else []) + [listed])


def _type(name: str, price: float, *devices: Document) -> InstanceType:
    return replace(instance_type(name, price=price, spot=None), slices=_slices(*devices))


def _plan(
    asked: dict[str, Document], pods: dict[str, int], *types: InstanceType, daemons: Sequence[DaemonSet] = ()
) -> Packing:
    """``asked``: by template; ``pods``: by template, how many pods have claims from it."""
    templates = [
        msgspec.convert(
            {"metadata": {"name": name, "namespace": "default"}, "spec": {"spec": spec}}, ResourceClaimTemplate
        )
        for name, spec in asked.items()
    ]
    claiming = [
        pod(f"{name}-{n}", resource_claims=[{"name": "c", "resourceClaimTemplateName": name}], cpu="100m")
        for name, count in pods.items()
        for n in range(count)
    ]
    world = problem(node_pool(), *CLASSES.values(), *templates, *claiming, *daemons, types=types)
    plan = solve(world)
    assert verify(world, plan) == ()
    assert not plan.unplaced
    return plan


ONE = _type("m7a.xlarge", 1.0, _device(0))
FOUR = _type("m7a.4xlarge", 3.0, *[_device(0, root="a")] * 2, *[_device(0, root="b")] * 2)
LARGE = _type("m7a.8xlarge", 3.5, *[_device(0, memory=48)] * 3, _device(0))


def test_the_cheapest_nodes_for_claims_are_found_and_proven() -> None:
    """Five devices: a node with four and one with one."""
    plan = _plan({"one": _asks()}, {"one": 5}, ONE, FOUR)
    assert plan.hourly == pytest.approx(plan.lower_bound) == 4.0


def test_what_selects_more_gives_way_to_what_selects_less() -> None:
    """Three large devices and a small one are on one node: a claim for any device takes the small one."""
    plan = _plan({"any": _asks(), "large": _asks(**_large(40))}, {"any": 1, "large": 3}, FOUR, LARGE)
    assert plan.hourly == pytest.approx(plan.lower_bound) == 3.5


def test_a_bound_knows_how_many_devices_have_a_value_in_common() -> None:
    """Of two roots with two devices each, three devices with one root are on no node, and two are on each root."""
    plan = _plan({"two": _asks(2, root=True)}, {"two": 4}, ONE, FOUR)
    assert plan.hourly == pytest.approx(plan.lower_bound) == 6.0


def test_what_daemon_sets_take_is_nobody_s() -> None:
    """Six pods: of each node with four devices a DaemonSet has one, and of a node with one all."""
    agent = daemon_set(
        "agent", namespace="default", resource_claims=[{"name": "c", "resourceClaimTemplateName": "one"}]
    )
    plan = _plan({"one": _asks()}, {"one": 6}, ONE, FOUR, daemons=[agent])
    assert plan.hourly == pytest.approx(plan.lower_bound) == 6.0


def test_a_bound_knows_what_claims_share() -> None:
    """Two claims for 9 of 16 GiB share no device."""
    shared = _device(0, allowMultipleAllocations=True)
    plan = _plan(
        {
            "nine": _asks(capacity={"requests": {"memory": "9Gi"}}),
            "five": _asks(capacity={"requests": {"memory": "5Gi"}}),
        },
        {"nine": 4, "five": 4},
        _type("m7a.xlarge", 1.0, shared, shared),
    )
    assert plan.hourly == pytest.approx(plan.lower_bound) == 2.0


def _sharing(name: str, *cpus: str, **claim: Any) -> list[Any]:
    """A claim for a device, and the pods that share it."""
    asked = {"metadata": {"name": name, "namespace": "default"}, "spec": _asks(**claim)}
    pods = [
        pod(f"{name}-{n}", resource_claims=[{"name": "c", "resourceClaimName": name}], cpu=cpu)
        for n, cpu in enumerate(cpus)
    ]
    return [msgspec.convert(asked, ResourceClaim), *pods]


@pytest.mark.parametrize(
    ("groups", "least"),
    [
        ([("1", "1")] * 4, 3.0),
        ([("1", "500m")] * 5, 4.0),
        ([("2", "1", "2")], 3.0),
    ],
    ids=["a device a claim", "of several classes", "together on one node"],
)
def test_a_bound_counts_what_pods_share_once_and_on_one_node(groups: list[tuple[str, ...]], least: float) -> None:
    """A node with one device has room for 4 cores, less what its DaemonSets take; one with four devices for 16."""
    objects = [one for n, cpus in enumerate(groups) for one in _sharing(f"claim-{n}", *cpus)]
    world = problem(node_pool(), *CLASSES.values(), *objects, types=(ONE, FOUR))
    plan = solve(world)
    assert verify(world, plan) == ()
    assert not plan.unplaced
    assert least == pytest.approx(plan.lower_bound)
    assert plan.hourly >= least


def test_pods_without_claims_fill_nodes_with_devices() -> None:
    """They are packed together, not after one another."""
    world = problem(
        node_pool(),
        *CLASSES.values(),
        msgspec.convert(
            {"metadata": {"name": "one", "namespace": "default"}, "spec": {"spec": _asks()}}, ResourceClaimTemplate
        ),
        *(pod(f"c{n}", resource_claims=[{"name": "c", "resourceClaimTemplateName": "one"}], cpu="1") for n in range(2)),
        *(pod(f"p{n}", cpu="1") for n in range(4)),
        types=(_type("m7a.xlarge", 1.0, _device(0)), instance_type("m7a.large", price=0.9, spot=None)),
    )
    plan = solve(world)
    assert plan.hourly == pytest.approx(plan.lower_bound) == 2.0


# --- whatever the search serves fits ---

_devices = st.lists(
    st.builds(
        lambda memory, root, shared, counted: _device(
            0,
            memory,
            root,
            **({"allowMultipleAllocations": True} if shared else {}),
            **(
                {"consumesCounters": [{"counterSet": "s", "counters": {"slots": {"value": counted}}}]}
                if counted
                else {}
            ),
        ),
        st.sampled_from([8, 16, 48]),
        st.sampled_from("ab"),
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=6,
)
_stocks = st.builds(
    lambda devices, slots: stock_of(
        _slices(*devices, sharedCounters=[{"name": "s", "counters": {"slots": {"value": slots}}}])
    ),
    _devices,
    st.integers(0, 6),
)
_ways = st.builds(
    lambda count, least, amount, mode: {
        "deviceClassName": "gpu",
        **_large(least),
        **({"capacity": {"requests": {"memory": f"{amount}Gi"}}} if amount else {}),
        **({"allocationMode": "All"} if mode == "all" else {"count": count}),
        **({"adminAccess": True} if mode == "admin" else {}),
    },
    st.integers(1, 3),
    st.sampled_from([0, 16, 40]),
    st.sampled_from([0, 3, 9]),
    st.sampled_from(["", "", "", "all", "admin"]),
)
_requests = st.one_of(
    st.builds(lambda way: {"name": "r", "exactly": way}, _ways),
    st.builds(
        lambda ways: {"name": "r", "firstAvailable": [{"name": f"w{n}", **way} for n, way in enumerate(ways)]},
        st.lists(_ways, min_size=1, max_size=2),
    ),
)
_needs = st.builds(
    lambda requests, constraints: (
        needs_of(
            "c",
            msgspec.convert(
                {
                    "devices": {
                        "requests": [{**one, "name": f"r{n}"} for n, one in enumerate(requests)],
                        "constraints": [{key: f"{DRIVER}/root"} for key in constraints],
                    }
                },
                ResourceClaimSpec,
            ),
            CLASSES,
        ),
    ),
    st.lists(_requests, min_size=1, max_size=2),
    st.lists(st.sampled_from(["matchAttribute", "distinctAttribute"]), max_size=1),
)


@given(st.lists(_stocks, min_size=1, max_size=3), st.lists(_needs, min_size=1, max_size=4), st.data())
@examples(300)
def test_what_a_node_gives_fits_in_every_column(
    stocks: Sequence[Stock], needs: Sequence[Needs], data: st.DataObject
) -> None:
    """So a bound may count on them; and what is left is what has not been taken, or more."""
    columns = DeviceColumns(needs, stocks, is_proof=True)
    sizes = columns.sizes(needs)
    for stock in stocks:
        room, taken = columns.left(stock, stock.taken), stock.taken
        used = np.zeros(columns.count, dtype=np.int64)
        for number in data.draw(st.lists(st.integers(0, len(needs) - 1), max_size=6)):
            after = allocate(stock, taken, needs[number])
            if after is not None:
                assert (columns.left(stock, taken) >= sizes[number]).all()
                taken, used = after, used + sizes[number]
        assert (used <= room).all()


def test_without_claims_there_are_no_columns() -> None:
    """Nor is a pool another."""
    columns = DeviceColumns([(), ()], [stock_of(_slices(_device(0)))])
    assert columns.sizes([(), ()]).shape == (2, 0)
    assert not columns.count


def test_requests_that_get_the_same_devices_are_one_kind() -> None:
    """However each of them says it: forty claims for some amount are for any device, or for a large one."""
    asked = [_asks(selectors=_large(amount)["selectors"]) for amount in range(1, 41)]
    needs = [(needs_of("c", msgspec.convert(one, ResourceClaimSpec), CLASSES),) for one in asked]
    columns = DeviceColumns(needs, [stock_of(_slices(_device(0), _device(1, memory=48)))])
    assert columns.count == 2
    assert columns.sizes(needs).tolist() == [[1, 0]] * 16 + [[1, 1]] * 24
