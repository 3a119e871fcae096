"""Whether claims find devices: verification agrees with any order in which they do, and with no other plan."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.devices.allocation import allocate
from joinery.decisions.scheduling.devices.needs import needs_of
from joinery.decisions.scheduling.devices.stock import stock_of
from joinery.decisions.verification.devices.inventory import Inventory
from joinery.decisions.verification.devices.search import Ask, Effort, Search
from joinery.objects.kubernetes.dynamic_resources import DeviceClass, ResourceClaimSpec, ResourceSliceSpec
from tests.properties import examples

DRIVER = "gpu.example.com"
CLASSES = {"gpu": DeviceClass()}
Document = dict[str, Any]


def _slices(*devices: Document, slots: int = 0) -> list[ResourceSliceSpec]:
    counters = [{"name": "s", "counters": {"slots": {"value": slots}}}]
    listed = [{"name": f"d{n}", **device} for n, device in enumerate(devices)]
    of = {"driver": DRIVER, "pool": {"name": "p"}}
    return msgspec.convert([{**of, "sharedCounters": counters}, {**of, "devices": listed}], list[ResourceSliceSpec])


def _device(root: str = "a", size: int = 1, **more: Any) -> Document:
    return {"attributes": {"root": {"string": root}, "size": {"int": size}}, **more}


def _claim(*requests: Document, **constraint: str) -> ResourceClaimSpec:
    named = [{"name": f"r{n}", **request} for n, request in enumerate(requests)]
    constraints = [{kind: f"{DRIVER}/{attribute}"} for kind, attribute in constraint.items()]
    return msgspec.convert({"devices": {"requests": named, "constraints": constraints}}, ResourceClaimSpec)


def _exactly(count: int = 1, least: int = 0) -> Document:
    selector = {"cel": {"expression": f"device.attributes['{DRIVER}'].size >= {least}"}}
    return {"exactly": {"deviceClassName": "gpu", "count": count, "selectors": [selector]}}


def _inventory(slices: Sequence[ResourceSliceSpec]) -> Inventory:
    return Inventory(CLASSES, {}, set(), slices, ())


def _search(slices: Sequence[ResourceSliceSpec]) -> Search:
    return Search(_inventory(slices), Effort())


def test_devices_that_differ_in_what_no_claim_asks_for_are_alike() -> None:
    """Each of sixteen has a number of its own: that five fours do not fit is seen without trying which fours."""
    devices = [_device(uuid={}, attributes={"uuid": {"string": str(n)}, "size": {"int": 1}}) for n in range(16)]
    search = _search(_slices(*devices))
    assert not search.serves([Ask(_claim(_exactly(4))) for _ in range(5)])
    assert not search.is_cut
    assert search.serves([Ask(_claim(_exactly(4))) for _ in range(4)])


def test_who_has_more_choice_gives_way() -> None:
    """In whatever order they are asked for: any device of twelve, or one of the six large ones."""
    search = _search(_slices(*(_device(size=n // 6 + 1) for n in reversed(range(12)))))
    assert search.serves([Ask(_claim(_exactly())) for _ in range(6)] + [Ask(_claim(_exactly(least=2)))] * 6)


def test_claims_for_different_devices_are_searched_apart() -> None:
    """Large devices are too few, whatever the claims for small ones of one root get, and in whatever way."""
    devices = [_device(root=str(n % 7), size=1) for n in range(40)] + [_device(size=2)] * 2
    small = {"cel": {"expression": f"device.attributes['{DRIVER}'].size == 1"}}
    pair = {"exactly": {"deviceClassName": "gpu", "count": 2, "selectors": [small]}}
    search = _search(_slices(*devices))
    pairs = [Ask(_claim(pair, matchAttribute="root")) for _ in range(14)]
    assert not search.serves([*pairs, Ask(_claim(_exactly(least=2))), Ask(_claim(_exactly(2, least=2)))])
    assert not search.is_cut
    assert search.serves([*pairs, Ask(_claim(_exactly(2, least=2)))])


def test_a_search_that_is_cut_says_so_and_has_given_nothing() -> None:
    """Pairs of one root, of which each root's devices leave one over: there are ever so many ways to find that out."""
    devices = [_device(root=str(n % 12), size=n // 12 + 1) for n in range(36)]
    claims = [_claim(_exactly(2, least=least), matchAttribute="root") for least in (1, 2, 1, 1) for _ in range(4)]
    search = Search(_inventory(_slices(*devices)), Effort(tries=10**6))
    assert not search.serves(list(map(Ask, claims)))
    assert search.is_cut
    assert search.serves(list(map(Ask, claims[:4])))
    deep = _search(_slices(*[_device()] * 200))
    assert not deep.serves([Ask(_claim(_exactly())) for _ in range(201)])
    assert deep.is_cut


# --- random worlds ---

_devices = st.builds(
    lambda root, size, shared, slots: _device(
        root,
        size,
        **({"allowMultipleAllocations": True, "capacity": {"memory": {"value": "10"}}} if shared else {}),
        **({"consumesCounters": [{"counterSet": "s", "counters": {"slots": {"value": slots}}}]} if slots else {}),
    ),
    st.sampled_from("ab"),
    st.integers(1, 3),
    st.sampled_from([False, False, True]),
    st.sampled_from([0, 0, 1, 2]),
)
_ways = st.builds(
    lambda count, least, amount: {
        **_exactly(count, least)["exactly"],
        **({"capacity": {"requests": {"memory": amount}}} if amount else {}),
    },
    st.integers(1, 2),
    st.integers(1, 3),
    st.sampled_from([0, 0, 0, 4]),
)
_requests = st.one_of(
    st.builds(lambda way: {"exactly": way}, _ways),
    st.builds(
        lambda ways: {"firstAvailable": [{"name": f"w{n}", **way} for n, way in enumerate(ways)]},
        st.lists(_ways, min_size=2, max_size=2),
    ),
)
_claims = st.builds(
    lambda requests, constraint: _claim(*requests, **constraint),
    st.lists(_requests, min_size=1, max_size=2),
    st.sampled_from([{}, {}, {"matchAttribute": "root"}, {"distinctAttribute": "root"}]),
)


@given(st.lists(_devices, min_size=8, max_size=24), st.integers(2, 16), st.lists(_claims, min_size=2, max_size=6))
@examples(100)
def test_what_packing_gives_one_after_another_is_served(
    devices: Sequence[Document], slots: int, claims: Sequence[ResourceClaimSpec]
) -> None:
    """As many claims as a node has devices for, by packing's search, which is another."""
    slices = _slices(*devices, slots=slots)
    stock, served = stock_of(slices), list[ResourceClaimSpec]()
    taken = stock.taken
    for claim in (*claims,) * 4:
        after = allocate(stock, taken, (needs_of("c", claim, CLASSES),))
        if after is not None:
            taken, served = after, [*served, claim]
    assert _search(slices).serves(list(map(Ask, served)))


@given(st.lists(_devices, max_size=4), st.integers(0, 4), st.lists(_claims, min_size=1, max_size=3))
@examples(200)
def test_claims_are_served_if_and_only_if_some_assignment_serves_them(
    devices: Sequence[Document], slots: int, claims: Sequence[ResourceClaimSpec]
) -> None:
    """Held against all assignments that there are."""
    slices = _slices(*devices, slots=slots)
    ways = [list(_assignments(claim, slices[1])) for claim in claims]
    is_possible = any(_is_enough(slices, together) for together in product(*ways))
    assert _search(slices).serves(list(map(Ask, claims))) == is_possible


#: Devices, each with the amount of its memory that is asked for.
_Assignment = tuple[tuple[int, int], ...]


def _assignments(claim: ResourceClaimSpec, listed: ResourceSliceSpec) -> Iterator[_Assignment]:
    """What the claim may get if nobody else asks for anything."""
    choices = []
    for request in claim.devices.requests:
        ways = [request.exactly] if request.exactly else request.first_available
        choices.append(
            [
                [(index, int(way.capacity.requests["memory"]) if way.capacity else 0) for index in chosen]
                for way in ways
                for chosen in combinations(range(len(listed.devices)), way.count)
                if all(_is_large_enough(listed, way, index) for index in chosen)
            ]
        )
    for some in product(*choices):
        together = tuple(one for part in some for one in part)
        roots = [listed.devices[index].attributes["root"]["string"] for index, _ in together]
        constraint = claim.devices.constraints[0] if claim.devices.constraints else None
        if constraint is None or len(set(roots)) == (1 if constraint.match_attribute else len(roots)):
            yield together


def _is_large_enough(listed: ResourceSliceSpec, way: Any, index: int) -> bool:
    device, (selector,) = listed.devices[index], way.selectors
    least = int(selector.cel.expression.rpartition(" ")[2])
    return bool(device.attributes["size"]["int"] >= least and (not way.capacity or device.capacity))


def _is_enough(slices: Sequence[ResourceSliceSpec], together: Sequence[_Assignment]) -> bool:
    counters, listed = slices
    given = [one for assignment in together for one in assignment]
    times = Counter(index for index, _ in given)
    memory = Counter[int]()
    for index, amount in given:
        memory[index] += amount or 10
    slots = sum(
        int(taken.counters["slots"].value) for index in times for taken in listed.devices[index].consumes_counters
    )
    is_shared = [bool(device.allow_multiple_allocations) for device in listed.devices]
    return slots <= int(counters.shared_counters[0].counters["slots"].value) and all(
        memory[index] <= 10 if is_shared[index] else times[index] == 1 for index in times
    )
