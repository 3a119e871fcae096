"""Settings of the kubelet that depend on the instance type (Karpenter for AWS, "NodeClassCEL").

``maxPods`` may be an expression, and so may the amounts of ``kubeReserved`` and ``systemReserved``: whatever is no
quantity is one. They are evaluated where a node's room is worked out and where its user data are written, so that a
node has the room that was planned with. A node is told the values.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from joinery.objects.karpenter.kubelet.settings import is_quantity
from joinery.objects.kubernetes.cel import INT, STRING, Variables, compiled
from joinery.objects.kubernetes.cel_tokens import ExpressionError

#: What an expression may know of an instance type. ``max_pods`` is the number of pods without an expression to
#: ``maxPods``, and to the others the number that comes of it.
VARIABLES = (
    ("default_enis", INT),
    ("instance_type", STRING),
    ("ips_per_eni", INT),
    ("max_pods", INT),
    ("memory_mib", INT),
    ("vcpus", INT),
)
_RESERVED = ("kubeReserved", "systemReserved")
_MOST_PODS = 2**31 - 1
#: What a bare number means, and to what it is rounded up, so that similar types share a launch template.
_UNITS = {"cpu": ("m", 10), "memory": ("Mi", 16), "ephemeral-storage": ("Gi", 1), "pid": ("", 1)}


def expressions(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and text of each expression."""
    if isinstance(given.get("maxPods"), str):
        yield "maxPods", given["maxPods"]
    for field in _RESERVED:
        for resource, text in _amounts(given, field):
            if not is_quantity(text):
                yield f"{field}[{resource}]", text


def max_pods(given: Mapping[str, Any], variables: Variables) -> int | None:
    """What the expression of ``maxPods`` yields; None where that is no expression. Raises ``ExpressionError``."""
    text = given.get("maxPods")
    if not isinstance(text, str):
        return None
    number = _evaluated("maxPods", text, variables)
    if number > _MOST_PODS:
        raise ExpressionError(f"maxPods: {text!r} yields {number} pods for {variables['instance_type']}")
    return number


def reserved(given: Mapping[str, Any], variables: Variables) -> dict[str, dict[str, str]]:
    """``kubeReserved`` and ``systemReserved``, as far as the class has them, with quantities in place of expressions.

    Raises ``ExpressionError`` for one that has no usable value.
    """
    return {
        field: {
            resource: text if is_quantity(text) else _quantity(f"{field}[{resource}]", resource, text, variables)
            for resource, text in _amounts(given, field)
        }
        for field in _RESERVED
        if field in given
    }


def _amounts(given: Mapping[str, Any], field: str) -> Iterator[tuple[str, str]]:
    values = given.get(field)
    for resource, value in values.items() if isinstance(values, Mapping) else ():
        yield resource, str(value)


def _quantity(path: str, resource: str, text: str, variables: Variables) -> str:
    unit, step = _UNITS.get(resource, ("", 1))
    return f"{-(-_evaluated(path, text, variables) // step) * step}{unit}"


def _evaluated(path: str, text: str, variables: Variables) -> int:
    try:
        number = compiled(text, VARIABLES)(variables)
        if number < 0:
            raise ExpressionError(f"it yields {number}")
    except ExpressionError as error:
        raise ExpressionError(f"{path}: {text!r} for {variables['instance_type']}: {error}") from None
    return number
