"""How a solve tells what it does, to whoever listens. The base class says nothing and costs nothing."""


class Reporter:
    """Receives the trace of a solve. Pods and targets are named as in the packing."""

    def considering(self, pod: str, count: int) -> None:
        """``count`` pods like this one are next."""

    def placing(self, pod: str, target: str, count: int) -> None:
        """``count`` pods like this one go to that target."""


SILENT = Reporter()
