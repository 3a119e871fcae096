"""Karpenter's older APIs, read as their v1 equivalents: v1alpha5 and v1alpha1 of v0.31, v1beta1 of v0.32 to v0.37.

A Provisioner is a NodePool, an AWSNodeTemplate an EC2NodeClass, a Machine a NodeClaim (Karpenter, v1beta1 migration
guide). What the older webhook filled in silently (linux, amd64, on-demand, the c, m and r categories above generation
2) is written out, because a NodePool has no such defaults; what it left open (expiry, consolidation) is written out
too, because a NodePool has.

Nothing acts on these: a plan from files or of a cluster reads them, and the doors know v1 only. Documents go in and
come out, before the models see them, so that their rules are said once.
"""

from joinery.apis.legacy.conversion import ALPHA_KINDS, BETA_KINDS, Equivalent, Version, equivalents, is_legacy
from joinery.apis.legacy.names import RENAMED, modernized, renamed

__all__ = [
    "ALPHA_KINDS",
    "BETA_KINDS",
    "RENAMED",
    "Equivalent",
    "Version",
    "equivalents",
    "is_legacy",
    "modernized",
    "renamed",
]
