"""Karpenter's older APIs, read as their v1 equivalents: v1alpha3 and v1alpha4 of v0.3 and v0.4, v1alpha5 and v1alpha1
of v0.31, v1beta1 of v0.32 to v0.37.

A Provisioner is a NodePool, an AWSNodeTemplate an EC2NodeClass, a Machine a NodeClaim (Karpenter, v1beta1 migration
guide). What the older webhook filled in silently (linux, amd64, on-demand, the c, m and r categories above generation
2) is written out, because a NodePool has no such defaults; what it left open (expiry, consolidation) is written out
too, because a NodePool has.

The doors and the command line read them by this one conversion. Documents go in and come out, before the models see
them, so that their rules are said once. A v1 object that is made here remembers its origin, and what is written on it
is written there (``record``). Nothing else knows of the older APIs.
"""

from joinery.objects.karpenter.legacy.beta import reference_of_beta, written_claim
from joinery.objects.karpenter.legacy.conversion import (
    ALPHA_KINDS,
    BETA_KINDS,
    EARLIEST_KINDS,
    Equivalent,
    Version,
    called_now,
    equivalents,
    is_legacy,
)
from joinery.objects.karpenter.legacy.earliest import (
    CAPACITY_TYPE_LABEL,
    CLUSTER_TAG,
    EARLIEST_FAMILIES,
    EARLIEST_FIELDS,
    NODE_PROFILE,
    PROVIDER_FIELDS,
    SELECTING_LABELS,
    SETTINGS_DOMAIN,
)
from joinery.objects.karpenter.legacy.names import RENAMED, modernized, renamed
from joinery.objects.karpenter.legacy.nodetemplate import DEFAULT_PROFILE, TEMPLATE_FIELDS
from joinery.objects.karpenter.legacy.provisioner import (
    CATEGORY,
    KUBELET_FIELDS,
    SIZED_BY,
    kept_kubelet,
    provisioner_budgets,
)
from joinery.objects.karpenter.legacy.record import recorded_status, rewritten
from joinery.objects.karpenter.legacy.selectors import IMAGE_KEYS, SELECTORS

__all__ = [
    "ALPHA_KINDS",
    "BETA_KINDS",
    "CAPACITY_TYPE_LABEL",
    "CATEGORY",
    "CLUSTER_TAG",
    "DEFAULT_PROFILE",
    "EARLIEST_FAMILIES",
    "EARLIEST_FIELDS",
    "EARLIEST_KINDS",
    "IMAGE_KEYS",
    "KUBELET_FIELDS",
    "NODE_PROFILE",
    "PROVIDER_FIELDS",
    "RENAMED",
    "SELECTING_LABELS",
    "SELECTORS",
    "SETTINGS_DOMAIN",
    "SIZED_BY",
    "TEMPLATE_FIELDS",
    "Equivalent",
    "Version",
    "called_now",
    "equivalents",
    "is_legacy",
    "kept_kubelet",
    "modernized",
    "provisioner_budgets",
    "recorded_status",
    "reference_of_beta",
    "renamed",
    "rewritten",
    "written_claim",
]
