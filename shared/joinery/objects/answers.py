"""Answers to questions that always have the same one: a warm process does not seek them again.

A cluster at rest is looked at every minute, and asks the same of the optimizer each time. Whoever reads snapshots has
one of these (``objects.snapshot.known``); who has none seeks every answer, and finds the same.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

_MOST_BYTES = 16 * 2**20


class Answers:
    """Those that were asked for last. Together they take no more than about ``most`` bytes."""

    def __init__(self, most: int = _MOST_BYTES) -> None:
        self._most = self._left = most
        self._kept = OrderedDict[Hashable, tuple[Any, int]]()

    def find(self, question: Hashable) -> Any:
        """The answer; None where it is not kept."""
        answer, _ = self._kept.get(question, (None, 0))
        if answer is not None:
            self._kept.move_to_end(question)
        return answer

    def keep(self, question: Hashable, answer: object, size: int) -> None:
        """``size``: about how many bytes it takes. Must never be changed from now on."""
        if size > self._most:
            return
        _, before = self._kept.pop(question, (None, 0))
        self._left += before
        self._kept[question] = answer, size
        self._left -= size
        while self._left < 0:
            _, (_, freed) = self._kept.popitem(last=False)
            self._left += freed
