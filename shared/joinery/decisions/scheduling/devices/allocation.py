"""Who gets which devices of a node: a search as kube-scheduler's (Kubernetes `structured/internal/stable`).

Claims are served one after another, each request by devices in their order, and whatever leads nowhere is taken back.
A pod keeps what it was given, also where another choice would have left more for the next: kube-scheduler knows no
next pod either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from joinery.decisions.scheduling.devices.needs import ALL, MOST_DEVICES, ClaimNeeds, Needs, Wanted
from joinery.decisions.scheduling.devices.stock import SHARES, CounterKey, Device, DeviceKey, History, Stock, Taken

#: How many devices one search tries. Who asks for combinations that there are not would search for ever; the scheduler
#: gives up after some seconds.
_MOST_TRIES = 20_000
#: How many devices all nodes of a plan are tried for that have too few; and how many one more node is then.
_MOST_FAILED_TRIES, _FEWEST_TRIES = 200_000, 300
#: Histories of one stock: instance types outlive a run.
_MOST_REMEMBERED = 10_000


def allocate(stock: Stock, taken: Taken, needs: Needs) -> Taken | None:
    """What is taken once a pod with these needs has come too; None where it finds too little.

    A claim that has its devices there already needs no more.
    """
    wanted = tuple(claim for claim in needs if claim.shared not in taken.claims)
    if stock.incomplete and any(claim.wanting_all for claim in wanted):
        # How many all are is not known. So kube-scheduler does not try the claim's other alternatives either.
        return None
    if any(stock.failing(way) for claim in wanted for way in claim.wanting_all):
        return None  # it looks at all of them before anything is given
    search = _Search(stock, taken, wanted)
    if search.claim(0):
        return search.result()
    search.note_failure()
    return None


def room(stock: Stock, history: History, needs: Needs, most: int) -> int:
    """For how many more pods with these needs there are devices after a history; ``most`` at the most."""
    count = 0
    while count < most and taken_after(stock, (*history, (needs, count + 1))) is not None:
        count += 1
        if not needs_devices(needs):
            return most
    return count


def needs_devices(needs: Needs) -> bool:
    """Whether each pod with these needs takes devices of its own; claims that they share are served once."""
    return any(not claim.shared for claim in needs)


def taken_after(stock: Stock, history: History) -> Taken | None:
    """What is taken after a history; None where there is too little for it. Remembered: many nodes are alike."""
    if not history:
        return stock.taken
    if history not in stock.after:
        *before, (needs, count) = history
        taken = taken_after(stock, (*before, (needs, count - 1)) if count > 1 else tuple(before))
        after = None if taken is None else allocate(stock, taken, needs)
        if len(stock.after) > _MOST_REMEMBERED:
            stock.after.clear()
        stock.after[history] = after
    return stock.after[history]


def drivers_of(stock: Stock, history: History) -> tuple[str, ...]:
    """The drivers whose devices were given, sorted."""
    taken, before = taken_after(stock, history), stock.taken
    if not taken or not history:
        return ()
    shared = {index for (index, name), amount in taken.consumed.items() if amount != before.consumed.get((index, name))}
    return tuple(sorted({stock.devices[index].key.driver for index in {*taken.used, *shared} - before.used}))


def beside_daemons(stock: Stock, daemons: tuple[Needs, ...]) -> Stock:
    """The stock as these pods of DaemonSets leave it. One that finds no devices there waits, and takes none.

    Remembered: nodes and types that are alike share one stock.
    """
    if not stock.devices or not daemons:
        return stock
    if daemons not in stock.beside:
        taken = stock.taken
        for needs in daemons:
            taken = allocate(stock, taken, needs) or taken
        stock.beside[daemons] = stock if taken is stock.taken else replace(stock, taken=taken)
    return stock.beside[daemons]


def taken_by(stock: Stock, devices: Mapping[DeviceKey, Mapping[str, Decimal]]) -> Taken:
    """What is taken of the stock by claims that have these devices, and so much of those that several may have."""
    used, consumed, counters = set[int](), dict[tuple[int, str], Decimal](), dict[CounterKey, Decimal]()
    for index, device in enumerate(stock.devices):
        if device.key in devices:
            if device.is_shared and SHARES in devices[device.key]:
                consumed |= {(index, name): amount for name, amount in devices[device.key].items()}
            else:
                used.add(index)
            for key, amount in device.consumes:
                counters[key] = counters.get(key, Decimal(0)) + amount
    return Taken(frozenset(used), consumed, counters)


class _Search:
    def __init__(self, stock: Stock, taken: Taken, claims: Needs) -> None:
        self._stock, self._claims, self._before = stock, claims, taken
        self._used, self._consumed, self._counters = set(taken.used), dict(taken.consumed), dict(taken.counters)
        self._given: list[tuple[int, Wanted, int]] = []
        self._is_over = False
        failed = stock.effort.tries if stock.effort else 0
        self._most = self._left = _MOST_TRIES if failed < _MOST_FAILED_TRIES else _FEWEST_TRIES

    def note_failure(self) -> None:
        """Count what was tried."""
        if self._stock.effort:
            self._stock.effort.tries += self._most - self._left

    def result(self) -> Taken:
        claims = self._before.claims | {claim.shared for claim in self._claims if claim.shared}
        consumed = {key: amount for key, amount in self._consumed.items() if amount}
        return Taken(frozenset(self._used), consumed, self._counters, claims)

    def claim(self, claim: int) -> bool:
        """Serve this claim and all after it."""
        return claim == len(self._claims) or self._request(claim, 0)

    def _request(self, claim: int, request: int) -> bool:
        requests = self._claims[claim].requests
        if request == len(requests):
            return self.claim(claim + 1)
        return any(self._alternative(claim, request, wanted) for wanted in requests[request])

    def _alternative(self, claim: int, request: int, wanted: Wanted) -> bool:
        if self._is_served(claim, request, wanted):
            return True
        self._is_over |= self._fails(wanted, len(self._stock.devices))
        return False

    def _fails(self, wanted: Wanted, before: int) -> bool:
        """Whether a selector fails on a device that comes before: kube-scheduler gives up there. It looks at none that
        one claim has.
        """
        failing = self._stock.failing(wanted).items()
        return any(
            index < before and failed.device is not None and (wanted.is_admin or index not in self._used)
            for index, failed in failing
        )

    def _is_served(self, claim: int, request: int, wanted: Wanted) -> bool:
        chosen = self._stock.selected(wanted)
        if wanted.count == ALL:
            chosen = tuple(index for index in chosen if self._has_room(wanted, index))
        count = len(chosen) if wanted.count == ALL else wanted.count
        has = sum(number == claim for number, _, _ in self._given)
        if not count or has + count > MOST_DEVICES:
            return False
        is_free = (index not in self._used or wanted.is_admin for index in chosen)
        if not any(self._stock.devices[index].is_shared for index in chosen) and sum(is_free) < count:
            return False
        return self._slot(claim, request, wanted, chosen, count)

    def _has_room(self, wanted: Wanted, index: int) -> bool:
        """Whether enough was left of a device that claims share before the pod came: these are all that there are. One
        that a single claim has is among them, so whoever wants all waits for it.
        """
        amounts = self._stock.devices[index].amounts_for(wanted)
        return amounts is not None and self._fits(index, amounts, self._before.consumed)

    def _fits(self, index: int, amounts: Mapping[str, Decimal], consumed: Mapping[tuple[int, str], Decimal]) -> bool:
        capacity = self._stock.devices[index].capacity
        return all(
            consumed.get((index, name), Decimal(0)) + amount <= capacity[name].value for name, amount in amounts.items()
        )

    def _slot(self, claim: int, request: int, wanted: Wanted, chosen: Sequence[int], count: int) -> bool:
        """Give one more device of these, in their order, and go on."""
        if not count:
            return self._request(claim, request + 1)
        failed = set[str]()
        for at, index in enumerate(chosen[: 1 if wanted.count == ALL else None]):
            device = self._stock.devices[index]
            if device.kind in failed or self._is_given(claim, wanted, index) or not self._may_try():
                continue
            if self._fails(wanted, index):
                self._is_over = True
                return False
            if (taking := self._taking(claim, wanted, index)) is not None:
                self._take(claim, wanted, index, taking)
                if self._slot(claim, request, wanted, chosen[at + 1 :], count - 1):
                    return True
                self._give_back(wanted, index, taking)
            if not device.is_shared and index not in self._used:
                failed.add(device.kind)
        return False

    def _is_given(self, claim: int, wanted: Wanted, index: int) -> bool:
        """Whether the claim has it, or another claim of the pod has what is to be its alone."""
        given = (number for number, _, other in self._given if other == index)
        is_shared = self._stock.devices[index].is_shared
        return not is_shared and any(number == claim or not wanted.is_admin for number in given)

    def _may_try(self) -> bool:
        self._left -= 1
        return self._left > 0 and not self._is_over

    def _taking(self, claim: int, wanted: Wanted, index: int) -> Mapping[str, Decimal] | None:
        """What the claim would take of the device's capacities; None where it may not have it."""
        device = self._stock.devices[index]
        if not wanted.is_admin and (index in self._used or not self._has_counters(index)):
            return None
        if not device.is_tolerated(wanted):
            return None
        if not self._keeps_constraints(self._claims[claim], claim, wanted, device):
            # kube-scheduler takes it for a mistake of the claim, and tries no other alternative.
            self._is_over |= wanted.count == ALL
            return None
        if wanted.is_admin:
            return {}
        amounts = device.amounts_for(wanted)
        return amounts if amounts is not None and self._fits(index, amounts, self._consumed) else None

    def _has_counters(self, index: int) -> bool:
        """Whether there is enough of what the device takes of counters; one that claims share takes it once."""
        return self._is_taken(index) or all(
            self._counters.get(key, Decimal(0)) + amount <= self._stock.counters[key]
            for key, amount in self._stock.devices[index].consumes
        )

    def _is_taken(self, index: int) -> bool:
        return bool(self._consumed.get((index, SHARES)))

    def _keeps_constraints(self, needs: ClaimNeeds, claim: int, wanted: Wanted, device: Device) -> bool:
        for constraint in needs.constraints:
            if not _is_about(wanted, constraint.requests):
                continue
            value = device.texts.get(constraint.attribute)
            if value is None:
                return False
            others = (
                self._stock.devices[index].texts.get(constraint.attribute)
                for number, other, index in self._given
                if number == claim and _is_about(other, constraint.requests)
            )
            if any((value == other) == constraint.is_distinct for other in others):
                return False
        return True

    def _take(self, claim: int, wanted: Wanted, index: int, taking: Mapping[str, Decimal]) -> None:
        self._given.append((claim, wanted, index))
        if not wanted.is_admin:
            self._charge(index, taking, 1)

    def _give_back(self, wanted: Wanted, index: int, taking: Mapping[str, Decimal]) -> None:
        self._given.pop()
        if not wanted.is_admin:
            self._charge(index, taking, -1)

    def _charge(self, index: int, taking: Mapping[str, Decimal], sign: int) -> None:
        device = self._stock.devices[index]
        was_taken = self._is_taken(index)
        if not device.is_shared:
            (self._used.add if sign > 0 else self._used.discard)(index)
        for name, amount in ({**taking, SHARES: Decimal(1)} if device.is_shared else taking).items():
            self._consumed[index, name] = self._consumed.get((index, name), Decimal(0)) + sign * amount
        for key, amount in device.consumes if not device.is_shared or was_taken != self._is_taken(index) else ():
            self._counters[key] = self._counters.get(key, Decimal(0)) + sign * amount


def _is_about(wanted: Wanted, requests: Sequence[str]) -> bool:
    """Whether a constraint names the request, or its alternative, or all."""
    return not requests or wanted.name in requests or wanted.name.split("/")[0] in requests
