"""Static hashes: has the template that a node was made from changed since?

A NodePool and a node class carry a hash of what cannot change on a running node, and every claim carries the hash of
its creation. A difference is drift, but only between hashes of the same version: Karpenter's numbers cannot be
reproduced, so ours have a version string of their own, and a claim that carries another is re-stamped, never drifted.

What goes in follows Karpenter (`NodePool.Hash`; a node class says itself what counts). Lists are sets, and a field that
has its default is left out, so that spelling it out is not drift. False, zero and an empty text count where they are
not the default: they overrule what the subnet, the kubelet or EC2 would do, and a label may have an empty value.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from joinery.objects.karpenter import duration
from joinery.objects.karpenter.nodepool import NodePool

#: To be raised with every change of what goes into a hash: claims are then re-stamped instead of replaced.
HASH_VERSION = "joinery-v3"


def node_pool_hash(pool: NodePool) -> str:
    """A decimal number. Of ``spec.template`` without its requirements: those drift by themselves."""
    template = pool.spec.template
    # Up to v0.37 a pool's expiry was that of the nodes that it had, so that a change of it never replaced one.
    left_out = {"requirements", "expire_after"} if pool.origin else {"requirements"}
    durations = {"expire_after", "termination_grace_period"}
    content = template.model_dump(mode="json", exclude_defaults=True, exclude={"spec": left_out | durations})
    content["spec"] |= {field: _seconds(getattr(template.spec, field)) for field in durations - left_out}
    return digest(content)


def _seconds(text: str | None) -> str:
    if text is None:
        return ""
    length = duration.parse(text)
    return duration.NEVER if length is None else f"{length.total_seconds():.0f}s"


def digest(content: object) -> str:
    """The hash of a document without its defaults, as a decimal number below 2^64."""
    text = json.dumps(_canonical(content), sort_keys=True, separators=(",", ":"))
    return str(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))


def _canonical(value: object) -> Any:
    if isinstance(value, dict):
        fields = {str(key): _canonical(item) for key, item in value.items()}
        return {key: item for key, item in fields.items() if item is not None and item != [] and item != {}}
    if isinstance(value, list):
        return _as_set(_canonical(item) for item in value)
    return value


def _as_set(items: Iterable[Any]) -> list[Any]:
    return [json.loads(text) for text in sorted({json.dumps(item, sort_keys=True) for item in items})]
