"""What a node was bought for, as its claim says until it is gone (``joinery.dev/bought-for``).

A disruption command moves pods, which counts as dollars, and saves dollars an hour in return. Its new nodes say how
much of both, so that nobody gives them up before that has paid (``disruption.repayment``).

Anybody may edit an annotation. One that cannot be read, or that saves nothing, stands for no purchase.
"""

from datetime import timedelta

import msgspec

from joinery.objects.karpenter.labels import BOUGHT_FOR
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.decoding import decode_mark


class BoughtFor(msgspec.Struct, frozen=True, rename="camel"):
    """A command in dollars. ``savings``: $/h, more than 0. ``move_price``: what its evictions count as, together."""

    savings: float
    move_price: float

    def repaid_within(self, longest: timedelta) -> timedelta:
        """How long it takes until the savings are worth the moves; the ``longest`` time if that is less."""
        if self.move_price >= self.savings * (longest / timedelta(hours=1)):
            return longest
        return timedelta(hours=max(0.0, self.move_price) / self.savings)


def purchase_of(claim: NodeClaim) -> BoughtFor | None:
    """What the claim's node was bought for; None where no command bought it to save money."""
    purchase = decode_mark(claim.metadata.annotations.get(BOUGHT_FOR), BoughtFor)
    return purchase if purchase and purchase.savings > 0 else None


def encoded(purchase: BoughtFor) -> str:
    """The value of the annotation."""
    return msgspec.json.encode(purchase).decode()
