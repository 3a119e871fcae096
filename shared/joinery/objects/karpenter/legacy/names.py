"""Labels and annotations that had other names (Karpenter, v1beta1 migration guide), on whatever carries them."""

from collections.abc import Mapping
from typing import Any

from joinery.objects.karpenter.labels import (
    AWS_GROUP,
    CORE_GROUP,
    DO_NOT_DISRUPT,
    NODE_CLASS_HASH,
    NODE_POOL,
    NODE_POOL_HASH,
    PROVISIONER_NAME,
)


class NotConvertibleError(ValueError):
    """The object has no v1 equivalent. The message names the field and what to do about it."""


Document = dict[str, Any]

INSTANCE_PODS = f"{AWS_GROUP}/instance-pods"

#: Old key to the one that says the same in v1.
RENAMED: Mapping[str, str] = {
    PROVISIONER_NAME: NODE_POOL,
    f"{CORE_GROUP}/provisioner-hash": NODE_POOL_HASH,
    f"{AWS_GROUP}/nodetemplate-hash": NODE_CLASS_HASH,
    f"{CORE_GROUP}/do-not-evict": DO_NOT_DISRUPT,
    f"{CORE_GROUP}/do-not-consolidate": DO_NOT_DISRUPT,
}


def modernized(given: Mapping[str, str]) -> dict[str, str]:
    """Labels or annotations with new names beside the old ones. A new name that is there keeps its value."""
    return {**{RENAMED[key]: value for key, value in given.items() if key in RENAMED}, **given}


def renamed(given: Mapping[str, str]) -> dict[str, str]:
    """The same with new names instead of old ones."""
    return {RENAMED.get(key, key): value for key, value in given.items()}


def metadata(given: Document, *, is_claim: bool = False) -> Document:
    """An object's metadata for its equivalent.

    A claim keeps its old labels and annotations beside the new ones, as its node has them.
    """
    old = given.get("metadata") or {}
    naming = modernized if is_claim else renamed
    kept = {key: value for key, value in old.items() if key not in ("labels", "annotations")}
    return kept | {part: naming(old[part]) for part in ("labels", "annotations") if old.get(part)}
