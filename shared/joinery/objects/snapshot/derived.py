"""What follows from an object that never changes: worked out once, and kept for as long as the object is.

A warm process meets the same nodes with the same pods in run after run (``joinery.objects.snapshot.known``). What they
have left, whom they keep away, and what a rule sees of them need not be worked out again. The object keeps it, so it is
never out of date, and it goes with the object.
"""

from collections.abc import Callable
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Derives:
    """A frozen object that keeps what functions have worked out of it."""

    def derived(self, work_out: Callable[[Self], T]) -> T:
        """What the function returns for this object.

        ``work_out``: a function of a module, because a new lambda each time would be kept each time. It may depend on
        nothing but the object, and nobody may change what it returns.
        """
        kept: dict[Any, T] = self.__dict__.setdefault("_derived", {})
        try:
            return kept[work_out]
        except KeyError:
            found = kept[work_out] = work_out(self)
            return found
