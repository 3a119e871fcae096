"""EC2's quotas of vCPUs: each counts the running instances of some families, spot and on-demand apart.

(EC2 User Guide, "On-Demand Instance quotas" and "Spot Instance quotas".) So where one is used up, types of other
families can still be bought.
"""

import re
from functools import cache

_PREFIX = "quota/"
_LETTERS = re.compile(r"[a-z]*")
#: By the letters with which a family's name begins, where its quota is not its own.
_SHARED = {
    **dict.fromkeys(("a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"), "standard"),
    **dict.fromkeys(("g", "gr", "vt"), "g-and-vt"),
}


@cache
def quota_of(instance_type: str) -> str:
    """The quota that an instance type counts against, as a scope of shortages (``OfferingKey.scope``)."""
    letters = _LETTERS.match(instance_type)
    family = letters[0] if letters else ""
    return f"{_PREFIX}{_SHARED.get(family, family)}"


def is_quota(scope: str) -> bool:
    """Whether a scope is that of a quota."""
    return scope.startswith(_PREFIX)
