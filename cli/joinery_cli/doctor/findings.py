"""What the doctor finds: a line each, with its remedy, and checks that are independent of each other."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from joinery.gateways.workers import Workers
from joinery.objects.errors import JoineryError
from joinery_cli.doctor.site import NoStackError, OutOfReachError, Site

#: The remedy where something cannot be asked for: AWS and Kubernetes name the right that is lacking.
LACKING = "give your credentials the right that is named, or try again"


class CheckStatus(StrEnum):
    """How bad a finding is. A note is for reading: nothing can or must be done about it."""

    OK = "ok"
    NOTE = "note"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. ``topic``: what was looked at. ``remedy``: what to do; empty where nothing has to be done."""

    topic: str
    status: CheckStatus
    text: str
    remedy: str = ""


def ok(topic: str, text: str) -> Finding:
    """All is well with that."""
    return Finding(topic, CheckStatus.OK, text)


def note(topic: str, text: str, remedy: str = "") -> Finding:
    """Something to know."""
    return Finding(topic, CheckStatus.NOTE, text, remedy)


def warn(topic: str, text: str, remedy: str) -> Finding:
    """It works, and not as well as it could, or not for long."""
    return Finding(topic, CheckStatus.WARN, text, remedy)


def fail(topic: str, text: str, remedy: str) -> Finding:
    """Something does not work."""
    return Finding(topic, CheckStatus.FAIL, text, remedy)


@dataclass(frozen=True, slots=True)
class Check:
    """``look`` asks and judges. What it raises becomes one finding, and no other check suffers from it."""

    topic: str
    look: Callable[[Site], Iterable[Finding]]


def examine(checks: Sequence[Check], site: Site, workers: Workers) -> list[Finding]:
    """All findings, in the order of the checks, which are made side by side."""
    calls = [partial(_findings, check, site) for check in checks]
    return [finding for answer in workers.run(calls) if not isinstance(answer, JoineryError) for finding in answer]


def _findings(check: Check, site: Site) -> tuple[Finding, ...]:
    findings: list[Finding] = []
    try:
        # One by one: what was found before a call fails is reported all the same.
        findings.extend(check.look(site))
    except (NoStackError, OutOfReachError):
        return tuple(findings)  # the checks `stack` and `api server` say so, once
    except JoineryError as error:
        findings.append(warn(check.topic, f"cannot be looked at: {error}", LACKING))
    except Exception as error:
        text = f"cannot be looked at: {type(error).__name__}: {error}"
        findings.append(warn(check.topic, text, "a mistake of ours: please report it"))
    return tuple(findings)


def exit_status(findings: Iterable[Finding]) -> int:
    """0 where all is well, 1 where something is worth a look, 2 where something does not work."""
    return max((_EXIT.get(finding.status, 0) for finding in findings), default=0)


_EXIT = {CheckStatus.WARN: 1, CheckStatus.FAIL: 2}
