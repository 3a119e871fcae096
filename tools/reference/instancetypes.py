"""What labels an instance type has, and the types of the sample catalogue, as nodes of the default class have them."""

from collections.abc import Iterator
from functools import cache

from joinery.gateways.ec2.offline import default_class, instance_types
from joinery.objects.karpenter.labels import ARCH, ON_DEMAND, SPOT
from joinery.objects.snapshot.offerings import InstanceType
from joinery_cli.sources import SAMPLE, load_catalog

#: One with little, and one with what few have: GPUs and local disks.
EXAMPLES = ("m7g.large", "g6.2xlarge")
_MANY = 3


@cache
def types() -> tuple[InstanceType, ...]:
    """Those of the sample catalogue by name."""
    node_class = default_class()
    types = instance_types([node_class], load_catalog(str(SAMPLE)).catalog)[node_class.metadata.name]
    return tuple(sorted(types, key=lambda kind: kind.name))


def labels() -> Iterator[str]:
    """One row a label that any type has, with the values of the examples."""
    examples = [next(kind for kind in types() if kind.name == name) for name in EXAMPLES]
    yield "| label | " + " | ".join(f"`{name}`" for name in EXAMPLES) + " |"
    yield "|---|---|---|"
    for key in dict.fromkeys(key for kind in types() for key in kind.labels):
        yield f"| `{key}` | " + " | ".join(_values(kind.labels.get(key, ())) for kind in examples) + " |"


def _values(values: tuple[str, ...]) -> str:
    return ", ".join(f"`{value}`" for value in values[:_MANY]) + (", …" if len(values) > _MANY else "")


def table() -> Iterator[str]:
    """One row a type. Only the site has it."""
    yield "| type | processor | vCPUs | allocatable memory | accelerators | $/h on demand | spot from |"
    yield "|---|---|---|---|---|---|---|"
    for kind in types():
        accelerators = ", ".join(f"{count} {name}" for name, count in kind.capacity.items() if _is_accelerator(name))
        memory = kind.allocatable["memory"] / 2**30
        prices = f"{_least(kind, ON_DEMAND)} | {_least(kind, SPOT)}"
        cpus = kind.capacity["cpu"] // 1000
        yield f"| `{kind.name}` | {kind.labels[ARCH][0]} | {cpus} | {memory:.1f} GiB | {accelerators} | {prices} |"


def _is_accelerator(resource: str) -> bool:
    return "/" in resource and not resource.startswith("vpc.amazonaws.com/")


def _least(kind: InstanceType, capacity_type: str) -> str:
    prices = [offering.price for offering in kind.offerings if offering.capacity_type == capacity_type]
    return f"{min(prices):.4f}" if prices else ""
