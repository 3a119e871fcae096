"""What a valid EC2NodeClass or NodePool may ask for and Joinery does not do yet: told wherever it is met, never ignored.

What a class asks for changes the nodes themselves, and so keeps the class from being used. What a pool asks for is about nodes that are
no longer needed: the pool is used, and says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from joinery.apis.ec2nodeclass import EC2NodeClass, EC2NodeClassSpec
from joinery.apis.nodepool import NodePool

#: Families whose user data Joinery can write.
LAUNCHABLE = ("AL2023", "AL2", "Bottlerocket", "Custom")


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A field that does not act. ``condition`` and ``reason`` are how the status names it."""

    field: str
    problem: str
    condition: str
    reason: str

    def __str__(self) -> str:
        return f"not supported yet: {self.field}: {self.problem}"


def unsupported(spec: EC2NodeClassSpec) -> tuple[Unsupported, ...]:
    """What the class asks for in vain, in the order of the fields."""
    return tuple(_unsupported(spec))


def _unsupported(spec: EC2NodeClassSpec) -> Iterator[Unsupported]:
    if spec.placement_group_selector is not None:
        yield Unsupported(
            "spec.placementGroupSelector",
            "instances would be launched outside of the group",
            condition="PlacementGroupReady",
            reason="UnsupportedPlacementGroup",
        )
    if spec.family not in LAUNCHABLE:
        yield Unsupported(
            "spec.amiFamily",
            f"{spec.family} is none of {', '.join(LAUNCHABLE)}",
            condition="ValidationSucceeded",
            reason="UnsupportedFamily",
        )


def unusable(node_class: EC2NodeClass) -> Unsupported | None:
    """Why no node may be made from the class, if Joinery lacks something."""
    return next(iter(unsupported(node_class.spec)), None)


#: What becomes of nodes meanwhile.
UNTIL_THEN = "Joinery does not consolidate, remove empty nodes or replace drifted ones yet; nodes go when they expire (expireAfter) or are interrupted"


def disruption_in_vain(pool: NodePool) -> str:
    """What of its ``spec.disruption`` does not act; empty for a pool that says nothing of it, ``consolidateAfter: Never``, or is not ours."""
    asked = pool.spec.disruption
    if (
        not pool.spec.template.spec.node_class_ref.is_ours
        or not asked.model_fields_set
        or asked.consolidate_after == "Never"
    ):
        return ""
    return f"spec.disruption: consolidationPolicy {asked.consolidation_policy}"
