"""Why a class with these settings of the kubelet cannot be used.

The API server takes any of them (Karpenter for AWS since 1.15), so this is where they are checked.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from joinery.objects.karpenter.conditions import VALID
from joinery.objects.karpenter.kubelet import settings
from joinery.objects.karpenter.kubelet.configuration import KUBELET_NAMES, is_threshold
from joinery.objects.karpenter.kubelet.expressions import VARIABLES, expressions
from joinery.objects.karpenter.nodeclass import Unsupported
from joinery.objects.kubernetes.cel import compiled
from joinery.objects.kubernetes.cel_tokens import ExpressionError

SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)
RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")
_NOT_NEGATIVE = ("maxPods", "podsPerCore", "evictionMaxPodGracePeriod")
_HIGH, _LOW = "imageGCHighThresholdPercent", "imageGCLowThresholdPercent"

#: A path below ``spec.kubelet``, and what is wrong there.
_Problem = tuple[str, str]


def problems(given: Mapping[str, Any], family: str, *, is_older: bool) -> Iterator[Unsupported]:
    """Settings that the kubelet would ignore or refuse, or that user data of the AMI family cannot pass on.

    ``is_older``: the class is of an older API. Up to v1.14 Karpenter passed over what does not reach nodes, and such a
    class has nodes: of it only what Joinery itself reads must be right.
    """
    invalid = [*settings.faults(given), *_invalid(given)]
    for path, problem in invalid:
        if not is_older or _setting(path) in KUBELET_NAMES.values():
            yield _unusable(path, problem, "InvalidKubeletConfiguration")
    for path, text in expressions(given):
        if problem := _expression_problem(text):
            yield _unusable(path, problem, "KubeletExpressionInvalid")
    for path, problem in () if is_older else _dropped(given, family):
        yield _unusable(path, problem, "UnsupportedKubeletConfiguration")


def _setting(path: str) -> str:
    """The setting that a path begins with: ``evictionHard[memory.available]`` is about ``evictionHard``."""
    return path.partition(".")[0].partition("[")[0]


def _unusable(path: str, problem: str, reason: str) -> Unsupported:
    return Unsupported(f"spec.kubelet.{path}", problem, VALID, reason, verdict="not usable")


def _expression_problem(text: str) -> str:
    try:
        compiled(text, VARIABLES)
    except ExpressionError as error:
        return f"{text!r} is neither an amount nor an expression: {error}"
    return ""


def _invalid(given: Mapping[str, Any]) -> Iterator[_Problem]:
    """What the types of settings do not say (Karpenter for AWS, ``validateKubeletSemantics``)."""
    if "registerWithTaints" in given:
        yield "registerWithTaints", "Joinery sets it, from the taints of the NodeClaim"
    addresses = given.get("clusterDNS")
    for address in addresses if isinstance(addresses, list) else ():
        if not is_address(address):
            yield "clusterDNS", f"{address!r} is no IP address"
    for name in ("evictionHard", "evictionSoft", "evictionMinimumReclaim"):
        yield from _signals(given, name, is_threshold, "neither a percentage nor a quantity")
    yield from _signals(given, "evictionSoftGracePeriod", settings.is_duration, "not a duration such as 1m30s")
    yield from _unpaired(given, "evictionSoft", "evictionSoftGracePeriod")
    yield from _unpaired(given, "evictionSoftGracePeriod", "evictionSoft")
    for name in ("kubeReserved", "systemReserved"):
        yield from _keys(given, name, RESERVABLE)
        yield from _negative(given, name)
    yield from _numbers(given)


def is_address(text: object) -> bool:
    """Whether it is an IP address, of either family, and no name."""
    from ipaddress import ip_address

    try:
        return isinstance(text, str) and bool(ip_address(text))
    except ValueError:
        return False


def _map(given: Mapping[str, Any], name: str) -> Mapping[str, str]:
    """The setting, if it is a map at all: if not, its type was found wrong already."""
    value = given.get(name)
    return {key: str(item) for key, item in value.items()} if isinstance(value, Mapping) else {}


def _signals(given: Mapping[str, Any], name: str, is_right: Callable[[str], bool], wrong: str) -> Iterator[_Problem]:
    yield from _keys(given, name, SIGNALS)
    yield from _negative(given, name)
    for value in _map(given, name).values():
        if not value.startswith("-") and not is_right(value):
            yield name, f"{value!r} is {wrong}"


def _keys(given: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> Iterator[_Problem]:
    for key in _map(given, name):
        if key not in allowed:
            yield name, f"{key} is none of {', '.join(allowed)}"


def _negative(given: Mapping[str, Any], name: str) -> Iterator[_Problem]:
    for value in _map(given, name).values():
        if value.startswith("-"):
            yield name, f"{value!r} is negative"


def _unpaired(given: Mapping[str, Any], name: str, other: str) -> Iterator[_Problem]:
    for key in _map(given, name).keys() - _map(given, other).keys():
        yield name, f"{key} needs one in {other}"


def _numbers(given: Mapping[str, Any]) -> Iterator[_Problem]:
    numbers = {name: value for name, value in given.items() if isinstance(value, int)}
    for name in _NOT_NEGATIVE:
        if numbers.get(name, 0) < 0:
            yield name, f"{numbers[name]} is negative"
    for name in (_HIGH, _LOW):
        if not 0 <= numbers.get(name, 0) <= 100:
            yield name, f"{numbers[name]} is not between 0 and 100"
    if _HIGH in numbers and _LOW in numbers and numbers[_HIGH] <= numbers[_LOW]:
        yield _HIGH, f"must be above {_LOW}"


def _dropped(given: Mapping[str, Any], family: str) -> Iterator[_Problem]:
    """Settings that the family's user data cannot pass on. AL2023's passes on all; that of Custom is the user's."""
    if family in ("AL2023", "Custom"):
        return
    passed_on = {*KUBELET_NAMES.values()} - ({"podsPerCore"} if family == "Bottlerocket" else set())
    for name in sorted((given.keys() & settings.NAMES) - passed_on):
        yield name, f"nodes of the family {family} do not get it"
    addresses = given.get("clusterDNS")
    if family != "Bottlerocket" and isinstance(addresses, list) and len(addresses) > 1:
        yield "clusterDNS", f"the family {family} takes one address, not {len(addresses)}"
