"""Taints and tolerations, as kube-scheduler's TaintToleration reads them."""

from collections.abc import Iterable
from typing import Protocol

from joinery.objects.karpenter.labels import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE
from joinery.objects.kubernetes.core import Toleration

#: Given to a pod when all its other preferences were dropped (Karpenter `Preferences.toleratePreferNoScheduleTaints`).
TOLERATE_PREFERRED = Toleration(operator="Exists", effect=PREFER_NO_SCHEDULE)

_CHECKED = (NO_SCHEDULE, NO_EXECUTE, PREFER_NO_SCHEDULE)


class TaintLike(Protocol):
    """A taint of a node (apis.core) or of a NodePool (apis.meta)."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


def tolerates(toleration: Toleration, taint: TaintLike) -> bool:
    """Whether one toleration covers one taint (``Toleration.ToleratesTaint`` of k8s.io/api)."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(toleration.key) and toleration.value == taint.value
        case "Gt" | "Lt":
            return _compares(toleration, taint)
    return False


def _compares(toleration: Toleration, taint: TaintLike) -> bool:
    """Numeric tolerations (Kubernetes feature gate TaintTolerationComparisonOperators):
    the taint's value is compared.
    """
    try:
        wanted, given = int(toleration.value), int(taint.value)
    except ValueError:
        return False
    return given > wanted if toleration.operator == "Gt" else given < wanted


def first_untolerated(tolerations: Iterable[Toleration], taints: Iterable[TaintLike]) -> TaintLike | None:
    """The first taint that keeps the pod away.

    PreferNoSchedule counts like NoSchedule. It is a preference, which is treated as required until it is dropped:
    then the pod tolerates it (``TOLERATE_PREFERRED``).
    """
    all_tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in _CHECKED and not any(tolerates(toleration, taint) for toleration in all_tolerations):
            return taint
    return None


def shown(taint: TaintLike) -> str:
    """``key=value:Effect``, as kubectl prints it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
