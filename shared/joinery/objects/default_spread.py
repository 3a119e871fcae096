"""The spread of pods that ask for none themselves: the default constraints of a scheduler's own configuration
(kube-scheduler, ``PodTopologySpreadArgs``; Karpenter's ``SCHEDULER_CONFIG``).

A scheduler applies them in its memory and writes them nowhere, and EKS shows nobody how its scheduler is configured. So
somebody has to say them.
"""

import re
from typing import Any, NamedTuple

DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
# Compiled where they are used: every function reads its settings, and few stacks have this one.
_KEY = r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_WRITTEN = r"(\S+) +([0-9]+)(?: +(DoNotSchedule|ScheduleAnyway))?(?: +for +(\S+))?"


class DefaultSpread(NamedTuple):
    """One constraint. ``scheduler``: whose pods it is for; empty for those of every one."""

    topology_key: str
    max_skew: int = 1
    when_unsatisfiable: str = DO_NOT_SCHEDULE
    scheduler: str = ""
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


#: Of all schedulers.
DefaultSpreads = tuple[DefaultSpread, ...]


def default_spreads_of(text: str) -> DefaultSpreads:
    """``topology.kubernetes.io/zone 1 DoNotSchedule, kubernetes.io/hostname 3 ScheduleAnyway for batch``: a topology
    key, the largest skew, what to do where that cannot be, and the scheduler whose pods it is for. The last two may be
    left out. ``off``: none.

    Raises ``ValueError``.
    """
    if text.strip() == "off":
        return ()
    spreads = tuple(map(_one, text.split(",")))
    check(spreads)
    return spreads


def check(spreads: DefaultSpreads) -> None:
    """Raises ``ValueError`` for what a scheduler would not start with (``ValidatePodTopologySpreadArgs``)."""
    seen: set[Any] = set()
    for one in spreads:
        if not re.fullmatch(_KEY, one.topology_key):
            raise ValueError(f"{one.topology_key!r} is no topology key")
        if one.max_skew < 1:
            raise ValueError(f"the skew over {one.topology_key} must be 1 or more")
        identity = one.topology_key, one.when_unsatisfiable, one.scheduler
        if identity in seen:
            raise ValueError(f"{one.topology_key} is there twice with {one.when_unsatisfiable}")
        seen.add(identity)


def _one(text: str) -> DefaultSpread:
    match = re.fullmatch(_WRITTEN, text.strip())
    if match is None:
        raise ValueError(
            f"{text.strip()!r} is no topology key, skew and what to do, such as topology.kubernetes.io/zone 1 "
            "DoNotSchedule"
        )
    key, skew, when, scheduler = match.groups()
    return DefaultSpread(key, int(skew), when or DO_NOT_SCHEDULE, scheduler or "")
