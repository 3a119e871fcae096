"""The values of the annotations on node size (``joinery.decisions.scheduling.pools.node_size``)."""

import re

SIZES = ("cheapest", "balanced", "small")
CHEAPEST, BALANCED = SIZES[:2]
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]+)?)%")


def share_of(text: str) -> float:
    """``25%`` as 0.25. Raises ``ValueError`` for what is no share between 0 and 100 percent."""
    match = _PERCENT.fullmatch(text.strip())
    share = float(match[1]) / 100 if match else 0.0
    if not 0 < share <= 1:
        raise ValueError(f"{text!r} is no share: expected a percentage above 0% and up to 100%")
    return share
