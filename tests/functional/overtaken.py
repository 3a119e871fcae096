"""Gateways that are slow once: something else happens before a call goes through, or its answer is lost."""

from collections.abc import Callable
from typing import Any


class Overtaken:
    """The gateway. Before the first calls of ``method``, what is ``meanwhile`` happens, one for each call."""

    def __init__(self, gateway: Any, method: str, *meanwhile: Callable[[], object]) -> None:
        self._gateway = gateway
        self._method = method
        self._meanwhile = list(meanwhile)

    def __getattr__(self, method: str) -> Any:
        if method == self._method and self._meanwhile:
            self._meanwhile.pop(0)()
        return getattr(self._gateway, method)


class LostAnswer:
    """The gateway. The first call of ``method`` has its effect, and raises ``error``."""

    def __init__(self, gateway: Any, method: str, error: Exception) -> None:
        self._gateway = gateway
        self._method = method
        self._errors = [error]

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._gateway, method)
        if method != self._method or not self._errors:
            return call

        def lose(*args: Any, **kwargs: Any) -> None:
            call(*args, **kwargs)
            raise self._errors.pop()

        return lose
