"""What room costs that CapacityBuffers keep free: its share of the nodes that it is on."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from joinery.decisions.scheduling.constraints.resources import PODS, requests_of
from joinery.objects.kubernetes.quantity import Resources
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import buffer_of, comes_with_node
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.view.figures import money

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Headroom:
    """By buffer (namespace/name): ``chunks``, for how many pods room is kept; ``hourly``, $/h of it."""

    chunks: Mapping[str, int]
    hourly: Mapping[str, float]

    @property
    def total(self) -> float:
        """$/h."""
        return sum(self.hourly.values())

    def sentence(self, whole: str) -> str:
        """``$0.21/h of it is headroom: room for 3 of default/spare``. ``whole``: what it is a part of."""
        ordered = sorted(self.chunks, key=lambda name: (-self.hourly.get(name, 0.0), name))
        rooms = [f"{self.chunks[name]:,} of {name}" for name in ordered[:_NAMED]]
        rooms += [f"{len(ordered) - _NAMED:,} more buffers"] if len(ordered) > _NAMED else []
        return f"{money(self.total)}/h of {whole} is headroom: room for {', '.join(rooms)}"

    def document(self) -> list[Mapping[str, object]]:
        """As JSON, by buffer."""
        return [
            {"buffer": name, "chunks": chunks, "hourly": round(self.hourly.get(name, 0.0), 6)}
            for name, chunks in sorted(self.chunks.items())
        ]


def shares(requests: Mapping[str, Resources]) -> Mapping[str, float]:
    """What part of their node each pod pays; the parts add up to one."""
    asked = {name for amounts in requests.values() for name, value in amounts.items() if value > 0 and name != PODS}
    measured = asked or {PODS}
    whole = {name: sum(amounts.get(name, 0) for amounts in requests.values()) for name in measured}
    return {
        pod: sum(amounts.get(name, 0) / whole[name] for name in measured) / len(measured)
        for pod, amounts in requests.items()
    }


def headroom_of(nodes: Iterable[tuple[float, Mapping[str, Resources]]], buffers: Mapping[str, str]) -> Headroom | None:
    """``nodes``: $/h of each, and what its pods ask for; ``buffers``: by virtual pod, that which it stands for. None
    where none does.
    """
    chunks, hourly = dict[str, int](), dict[str, float]()
    for price, requests in nodes:
        if buffers.keys().isdisjoint(requests):
            continue
        for pod, share in shares(requests).items():
            if pod in buffers:
                chunks[buffers[pod]] = chunks.get(buffers[pod], 0) + 1
                hourly[buffers[pod]] = hourly.get(buffers[pod], 0.0) + price * share
    return Headroom(chunks, hourly) if chunks else None


def buffers_in(snapshot: Snapshot) -> Mapping[str, str]:
    """By virtual pod (namespace/name), the buffer that it stands for."""
    return {pod.key: buffer for pod in snapshot.virtual_pods if (buffer := buffer_of(pod))}


def headroom_on(snapshot: Snapshot, prices: Mapping[str, float]) -> Headroom | None:
    """On the nodes that there are. ``prices``: $/h by name of the NodeClaim."""
    buffers = buffers_in(snapshot)
    return headroom_of(_nodes(snapshot.views, prices), buffers) if buffers else None


def _nodes(views: Iterable[NodeView], prices: Mapping[str, float]) -> Iterator[tuple[float, Mapping[str, Resources]]]:
    for view in views:
        pods = (pod for pod in view.pods if not comes_with_node(pod))
        yield prices.get(view.claim, 0.0), {pod.key: requests_of(pod) for pod in pods}
