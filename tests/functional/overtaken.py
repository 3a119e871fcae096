"""A gateway that is slow once: something else happens before a call of it goes through."""

from collections.abc import Callable
from typing import Any


class Overtaken:
    """The gateway. Before the first call of ``method``, ``meanwhile`` happens."""

    def __init__(self, gateway: Any, method: str, meanwhile: Callable[[], object]) -> None:
        self._gateway = gateway
        self._method = method
        self._meanwhile = [meanwhile]

    def __getattr__(self, method: str) -> Any:
        while method == self._method and self._meanwhile:
            self._meanwhile.pop()()
        return getattr(self._gateway, method)
