"""What is wrong with an object, in words: parse errors as one line, and the checks that no schema can express.

An object is judged three times. The API server applies the CRD; parsing applies the same rules
(``joinery.objects.karpenter.rules``), for files that never met an API server; and ``validate`` adds what CEL cannot
say. Its reasons become the condition ``ValidationSucceeded`` of that NodePool, while the others go on (Karpenter
nodepool/validation).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from joinery.objects.karpenter import labels
from joinery.objects.karpenter.disruption import dollars_of, payback_of, rate_of, stop_of, switch_of
from joinery.objects.karpenter.meta import (
    LABEL_KEY,
    LABEL_VALUE,
    NUMERIC,
    TAINT_VALUE,
    VOLUME_SIZE,
    Requirement,
    Taint,
    is_label_key,
    is_label_value,
    is_whole_number,
)
from joinery.objects.karpenter.nodeoverlay import NodeOverlay, OverlayRequirement
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.pause import pause_of, paused_of
from joinery.objects.karpenter.rules import RuleError
from joinery.objects.kubernetes.quantity import parse
from joinery.objects.policies import SIZES, Rebalance, on_demand_share_of, share_of, terminate_first_of
from joinery.objects.spelling import label_meant_by, value_meant_by
from joinery.objects.wording import of_model_error, shown

#: Labels whose values are known. Others than these cannot be launched.
KNOWN_VALUES = {
    labels.CAPACITY_TYPE: frozenset({labels.SPOT, labels.ON_DEMAND, labels.RESERVED}),
    labels.TENANCY: frozenset({labels.SHARED_TENANCY, labels.DEDICATED}),
}

#: Bytes: of the 256 KiB that an object may have, the rest is for what Joinery writes into a claim.
MOST_ANNOTATED = 120 << 10

#: $/h, or percent: what is dearer is a mistake, as it is in a catalogue.
DEAREST = 1e6

_PLAIN = re.compile(r"[A-Za-z0-9_]+")
_MOST_ERRORS = 5


def explain(error: ValidationError) -> str:
    """``field: what is wrong``, in one line; several errors are separated by semicolons."""
    lines = explained(error)
    rest = len(lines) - _MOST_ERRORS
    return "; ".join([*lines[:_MOST_ERRORS], f"and {rest} more"] if rest > 0 else lines)


def explained(error: ValidationError) -> list[str]:
    """The same for every single error, a line each."""
    errors = error.errors(include_url=False)
    return [
        _line(entry["loc"], _words(entry), entry.get("ctx", {}).get("error"), _key(entry["input"])) for entry in errors
    ]


def _key(given: object) -> str:
    """Of a requirement, as it was written."""
    key = given.get("key") if isinstance(given, dict) else None
    return key if isinstance(key, str) else ""


def _words(entry: Mapping[str, Any]) -> str:
    """Pydantic's message, or what to write where it would speak of Python's types or quote a regular expression."""
    wanted = in_words(entry.get("ctx", {}).get("pattern", ""))
    if wanted:
        return f"{shown(entry['input'])} will not do: {wanted}"
    return of_model_error(entry) or str(entry["msg"])


def _line(location: Sequence[str | int], message: str, cause: object, key: str = "") -> str:
    """``key``: the label that the error is about, where it is about one."""
    parts = [*location]
    if isinstance(cause, RuleError) and cause.field:
        parts.append(cause.field)
    words = str(cause) if isinstance(cause, ValueError) else message[:1].lower() + message[1:]
    if isinstance(cause, RuleError) and "restricted" in words and (meant := label_meant_by(key)):
        words += f"; is it {meant}?"
    return f"{path(parts) or 'object'}: {words}"


def path(parts: Iterable[str | int]) -> str:
    """``spec.template.spec.requirements[0].values``; a key that is no plain word is bracketed, as a label is."""
    text = ""
    for part in parts:
        if part == "[key]":
            continue
        if isinstance(part, int) or not _PLAIN.fullmatch(part):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def validate(pool: NodePool) -> tuple[str, ...]:
    """Why the NodePool cannot be used, each as ``field: reason``; empty if it can."""
    return tuple(_pool_reasons(pool))


def validate_overlay(overlay: NodeOverlay) -> tuple[str, ...]:
    """Why the NodeOverlay cannot be used, each as ``field: reason``; empty if it can (Karpenter `RuntimeValidate`)."""
    return tuple(_overlay_reasons(overlay))


def _overlay_reasons(overlay: NodeOverlay) -> Iterator[str]:
    for index, requirement in enumerate(overlay.spec.requirements):
        yield from _requirement_reasons(f"spec.requirements[{index}]", requirement)
    for field, text in (("price", overlay.spec.price), ("priceAdjustment", overlay.spec.price_adjustment)):
        if text is not None and abs(float(text.removesuffix("%"))) > DEAREST:
            yield f"spec.{field}: {shown(text)} is more than {DEAREST:,.0f}"
    try:
        _ = overlay.slices
    except ValueError as error:
        yield f"metadata.annotations[{labels.RESOURCE_SLICES}]: no list of what ResourceSlices have in spec: {error}"
    for name, text in overlay.spec.capacity.items():
        field = f"spec.capacity[{name}]"
        if not is_label_key(name):
            yield f"{field}: {shown(name)} is not a qualified name"
        elif parse(text) < 0:
            yield f"{field}: {shown(text)} is less than 0"


def _pool_reasons(pool: NodePool) -> Iterator[str]:
    template = pool.spec.template
    yield from _claim_reasons(pool)
    yield from _annotation_reasons(pool.metadata.annotations)
    yield from _label_reasons("spec.template.metadata.labels", template.metadata.labels)
    yield from _taint_reasons("spec.template.spec", template.spec.taints, template.spec.startup_taints)
    for index, requirement in enumerate(template.spec.requirements):
        yield from _requirement_reasons(f"spec.template.spec.requirements[{index}]", requirement)


def _claim_reasons(pool: NodePool) -> Iterator[str]:
    """What fits a NodePool and not the NodeClaims made from it: names become label values, and claims have annotations
    of their own.
    """
    template = pool.spec.template
    for field, name in (
        ("metadata.name", pool.metadata.name),
        ("spec.template.spec.nodeClassRef.name", template.spec.node_class_ref.name),
    ):
        if name and not is_label_value(name):
            yield f"{field}: {len(name)} characters, and the label that nodes have of it takes 63"
    size = sum(len(key) + len(value) for key, value in template.metadata.annotations.items())
    if size > MOST_ANNOTATED:
        yield f"spec.template.metadata.annotations: {size} bytes, and a NodeClaim has room for {MOST_ANNOTATED} of them"


def _annotation_reasons(annotations: Mapping[str, str]) -> Iterator[str]:
    rebalance = annotations.get(labels.REBALANCE)
    if rebalance is not None and rebalance not in list(Rebalance):
        yield f"metadata.annotations[{labels.REBALANCE}]: {rebalance!r} is none of {', '.join(Rebalance)}"
    yield from _unreadable(annotations, labels.DISRUPTION, stop_of)
    yield from _unreadable(annotations, labels.DISRUPTION_RATE, rate_of)
    yield from _unreadable(annotations, labels.DISRUPTION_PRICE, dollars_of)
    yield from _unreadable(annotations, labels.PAYBACK, payback_of)
    yield from _unreadable(annotations, labels.NEW_NODES_REPAY, switch_of)
    yield from _unreadable(annotations, labels.EXPIRATION_OBEYS_BUDGETS, switch_of)
    yield from _unreadable(annotations, labels.OVERRIDES, switch_of)
    yield from _unreadable(annotations, labels.PAUSE, pause_of)
    yield from _unreadable(annotations, labels.PAUSED, paused_of)
    yield from _unreadable(annotations, labels.TERMINATE_FIRST, terminate_first_of)
    yield from _unreadable(annotations, labels.MAX_NODE_SHARE, share_of)
    yield from _unreadable(annotations, labels.ON_DEMAND_SHARE, on_demand_share_of)
    size = annotations.get(labels.NODE_SIZE)
    if size is not None and size not in SIZES:
        yield f"metadata.annotations[{labels.NODE_SIZE}]: {size!r} is none of {', '.join(SIZES)}"


def _unreadable(annotations: Mapping[str, str], key: str, read: Callable[[str], object]) -> Iterator[str]:
    """What is wrong with the annotation; nothing where it is not there, or can be read."""
    if key in annotations:
        try:
            read(annotations[key])
        except ValueError as error:
            yield f"metadata.annotations[{key}]: {error}"


def _label_reasons(where: str, given: Mapping[str, str]) -> Iterator[str]:
    for key, value in given.items():
        field = f"{where}[{key}]"
        # A NodePool that was made from a Provisioner has the older label of its name
        # (``joinery.objects.karpenter.legacy``).
        if key != labels.PROVISIONER_NAME and (reason := _key_reason(key)):
            yield f"{field}: {reason}"
        if not is_label_value(value):
            yield f"{field}: {value!r} is not a label value"


def _taint_reasons(where: str, taints: Sequence[Taint], startup_taints: Sequence[Taint]) -> Iterator[str]:
    listed = [("taints", *entry) for entry in enumerate(taints)]
    listed += [("startupTaints", *entry) for entry in enumerate(startup_taints)]
    seen: set[tuple[str, str]] = set()
    for name, index, taint in listed:
        field = f"{where}.{name}[{index}]"
        if not is_label_key(taint.key):
            yield f"{field}.key: {taint.key!r} is not a qualified name"
        if not is_label_value(taint.value):
            yield f"{field}.value: {taint.value!r} is not a label value"
        if (taint.key, taint.effect) in seen:
            yield f"{field}: duplicate taint {taint.key}:{taint.effect} in taints and startupTaints"
        seen.add((taint.key, taint.effect))


def _requirement_reasons(where: str, requirement: Requirement | OverlayRequirement) -> Iterator[str]:
    key = labels.canonical(requirement.key)
    # An overlay may be for NodePools, which a NodePool cannot ask for.
    names_pools = key == labels.NODE_POOL and isinstance(requirement, OverlayRequirement)
    if not names_pools and (reason := _key_reason(key)):
        yield f"{where}.key: {reason}"
    for index, value in enumerate(requirement.values):
        if not is_label_value(value):
            yield f"{where}.values[{index}]: {value!r} is not a label value"
    if reason := _operand_reason(requirement):
        yield f"{where}.values: {reason}"


def _operand_reason(requirement: Requirement | OverlayRequirement) -> str:
    values = requirement.values
    least = requirement.min_values if isinstance(requirement, Requirement) else None
    if requirement.operator in NUMERIC:
        is_one = len(values) == 1 and is_whole_number(values[0])
        return "" if is_one else f"operator {requirement.operator} must have a single integer that is not negative"
    if requirement.operator != "In":
        return ""
    possible = KNOWN_VALUES.get(labels.canonical(requirement.key))
    usable = {value for value in values if possible is None or value in possible}
    if not values:
        return "operator In must have a value"
    if not usable:
        meant = value_meant_by(requirement.key, values[0], possible or ())
        question = f"; is it {meant}?" if meant else ""
        return f"none of {', '.join(values)} is one of {', '.join(sorted(possible or ()))}{question}"
    if least is not None and len(usable) < least:
        return f"minValues is {least}, but only {len(usable)} values can be used"
    return ""


def _key_reason(key: str) -> str:
    if not is_label_key(key):
        return f"{key!r} is not a qualified name"
    if key == labels.NODE_POOL or labels.is_restricted(key):
        return f"label {key} is restricted"
    return ""


_WORDS = {
    r"^([0-9]+(s|m|h))+$": "write hours, minutes and seconds, such as 720h or 1h30m",
    r"^(([0-9]+(s|m|h))+|Never)$": "write hours, minutes and seconds, such as 720h or 1h30m, or Never",
    r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$": "write hours and minutes, such as 8h or 1h30m",
    r"^((100|[0-9]{1,2})%|[0-9]+)$": "write a number such as 5 or a share such as 10%",
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|(.+)\s(.+)\s(.+)\s(.+)\s(.+))$": (
        "write five fields of cron such as '0 9 * * mon-fri', or @daily and the like"
    ),
    VOLUME_SIZE: "write a size such as 100Gi, of at most 59000Gi, 64000G, 58Ti or 64T",
    r"^[^/]+$": "write the API group alone, such as karpenter.k8s.aws",
    r"subnet-[0-9a-z]+": "write the id of a subnet, such as subnet-0123456789abcdef0",
    r"sg-[0-9a-z]+": "write the id of a security group, such as sg-0123456789abcdef0",
    r"ami-[0-9a-z]+": "write the id of an image, such as ami-0123456789abcdef0",
    r"^cr-[0-9a-z]+$": "write the id of a capacity reservation, such as cr-0123456789abcdef0",
    r"^pg-[0-9a-z]+$": "write the id of a placement group, such as pg-0123456789abcdef0",
    r"^[0-9]{12}$": "write the twelve digits of an AWS account",
    LABEL_KEY: "write a label key, such as example.com/team: letters, digits, '-', '_' and '.'",
    LABEL_VALUE: "write a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
    TAINT_VALUE: "write a label value: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
}  # fmt: skip


def in_words(pattern: str) -> str:
    """What to write where the pattern is not met; the empty string for one that has no words."""
    return _WORDS.get(pattern, "")
