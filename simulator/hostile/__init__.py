"""Pods of somebody who may create pods and nothing else, and who wants nobody to get nodes.

Whoever may create a pod may not choose how long a decision takes, nor how much memory. ``KINDS`` has for each way to
try that a generator of documents, of any size, and ``cluster`` puts them beside pods of others.
"""

from simulator.hostile.cluster import BYSTANDERS, TENANT, Cluster, cluster
from simulator.hostile.kinds import KINDS, Kind

__all__ = ["BYSTANDERS", "KINDS", "TENANT", "Cluster", "Kind", "cluster"]
