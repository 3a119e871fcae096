"""Why no instance type of a NodePool has the devices that a pod claims, in words."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from joinery.decisions.scheduling.constraints.requirements import Requirements
from joinery.decisions.scheduling.devices.needs import ClaimNeeds, Needs, Wanted, shown
from joinery.decisions.scheduling.devices.stock import Stock
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.reason import Reason, ReasonCode, Subject


def short_of_devices(pool: Pool, subject: Subject, needs: Needs, wanted: Iterable[Requirements]) -> Reason | None:
    """Which request no type serves that the pod's requirements (any of ``wanted``) allow; None where types serve all,
    or the pod claims nothing.
    """
    if not needs:
        return None
    fits = [pool.fit(replace(one, devices=())) for one in wanted]
    rows = sorted({int(row) for fit in fits for row in np.flatnonzero(fit.sold)})
    if not rows:
        return None
    stocks = list(dict.fromkeys(pool.stocks[row] for row in rows))
    if not any(stock.devices for stock in stocks):
        template = "none of the {types} instance types that it allows has devices for the pod's claims"
        return Reason.of(ReasonCode.DEVICES, template, subject, types=len(rows))
    message = next((words for claim in needs for words in _unserved(claim, stocks)), "")
    message = message or "no instance type that it allows has all the devices that the pod claims together"
    return Reason(ReasonCode.DEVICES, message, subject)


def _unserved(claim: ClaimNeeds, stocks: Sequence[Stock]) -> Iterator[str]:
    for alternatives in claim.requests:
        most = [max(0 if stock.failing(one) else len(stock.selected(one)) for stock in stocks) for one in alternatives]
        if any(count >= one.least for one, count in zip(alternatives, most, strict=True)):
            continue
        if why := next(_failures(claim, alternatives, stocks), ""):
            yield why
            continue
        best = max(range(len(most)), key=most.__getitem__)
        yield _words(claim, alternatives[best], most[best], stocks)


def _failures(claim: ClaimNeeds, alternatives: Iterable[Wanted], stocks: Iterable[Stock]) -> Iterator[str]:
    """What is wrong with their selectors. kube-scheduler does not bind the pod then, so nothing is bought for it."""
    failing = ((way, failed) for way in alternatives for stock in stocks for failed in stock.failing(way).values())
    for wanted, failed in failing:
        whose = f"of DeviceClass {wanted.of_class}" if failed.number < wanted.class_selectors else "of the claim"
        selector = f"claim {claim.name}, request {wanted.name}: the selector {shown(wanted.selectors[failed.number])}"
        on = f" on the device {failed.device.name} of {failed.device.driver}" if failed.device else ""
        yield f"{selector} {whose} fails{on}: {failed.why}"


def failure(needs: Needs, stocks: Iterable[Stock]) -> str:
    """Why one of the claims' selectors fails on a device of these, if one does."""
    requests = [(claim, alternatives) for claim in needs for alternatives in claim.requests]
    failures = (words for stock in stocks for request in requests for words in _failures(*request, (stock,)))
    return next(failures, "")


def _words(claim: ClaimNeeds, wanted: Wanted, most: int, stocks: Sequence[Stock]) -> str:
    of = f"claim {claim.name}, request {wanted.name}"
    if most:
        return f"{of}: it asks for {wanted.count} devices, and no instance type that it allows has more than {most}"
    culprit = next(
        (one for one in wanted.selectors if not _selects_some(replace(wanted, selectors=(one,), capacity=()), stocks)),
        "",
    )
    if culprit:
        return f"{of}: no device of the instance types that it allows meets the selector {shown(culprit)}"
    return f"{of}: no device of the instance types that it allows meets all of its selectors"


def _selects_some(wanted: Wanted, stocks: Sequence[Stock]) -> bool:
    return any(stock.selected(wanted) for stock in stocks)
