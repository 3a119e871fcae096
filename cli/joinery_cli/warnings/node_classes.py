"""EC2NodeClasses that an API server takes, and with which no instance is launched as it was meant, or holds what is
counted on.
"""

import re
from collections.abc import Iterable, Iterator

from joinery.objects.karpenter.nodeclass import NodeClass
from joinery_cli.notices import UserNotice, warning

_ARN = "arn:"


def _setting(name: str) -> re.Pattern[str]:
    """The whole name: ``kube-reserved-cgroup`` and ``eviction-soft-grace-period`` take no room."""
    return re.compile(rf"{name}(?![-\w])", re.IGNORECASE)


#: What decides on a node's room, by field of ``spec.kubelet``: as NodeConfig, Bottlerocket's settings or a flag has it.
_ROOM = {
    "maxPods": _setting("max-?pods"),
    "systemReserved": _setting("system-?reserved"),
    "kubeReserved": _setting("kube-?reserved"),
    "evictionHard": _setting("eviction-?hard"),
    "evictionSoft": _setting("eviction-?soft"),
}
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)


def arns_for_names(classes: Iterable[NodeClass]) -> Iterator[UserNotice]:
    """A warning for each role or instance profile that is given by its ARN, as everywhere else in AWS: IAM's calls take
    the name.
    """
    for one in classes:
        for field, noun in (("role", "role"), ("instance_profile", "instance profile")):
            given = getattr(one.spec, field, "") or ""
            if given.startswith(_ARN):
                path = "spec.role" if field == "role" else "spec.instanceProfile"
                yield warning(
                    f"{one.kind} {one.metadata.name}: {path}: must be the {noun}'s name, is its ARN; is it "
                    f"{given.rpartition('/')[2]}?"
                )


def prices_without_licence(classes: Iterable[NodeClass]) -> Iterator[UserNotice]:
    """A warning for each class of Windows: the catalogue has prices of Linux, as Karpenter has."""
    for one in classes:
        if getattr(one.spec, "is_windows", False):
            yield warning(f"{one.kind} {one.metadata.name}: its prices are Linux's; AWS adds the licence of Windows")


def room_in_user_data(classes: Iterable[NodeClass]) -> Iterator[UserNotice]:
    """A warning for each class whose user data tells the kubelet how much room a node has: nodes are counted by
    ``spec.kubelet`` alone (Karpenter, "NodeClasses", ``spec.kubelet``).
    """
    for one in classes:
        written = _COMMENT.sub("", getattr(one.spec, "user_data", None) or "")
        kubelet = getattr(one.spec, "kubelet", {})
        found = (name.search(written) for field, name in _ROOM.items() if not kubelet.get(field))
        if words := [match[0] for match in found if match]:
            yield warning(
                f"{one.kind} {one.metadata.name}: spec.userData sets {', '.join(words)}: the room of nodes is counted "
                "by spec.kubelet alone; say it there"
            )
