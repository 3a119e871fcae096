"""The tags that say whose an instance is (EC2 API CreateFleet, TagSpecifications).

They are Karpenter's tags, so that Karpenter and Joinery can each take over a cluster from the other.
"""

from collections.abc import Mapping

from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import CLUSTER_NAME_TAG, CLUSTER_TAG_PREFIX, RESTRICTED_TAGS, EC2NodeClass

OWNER_PREFIX = f"{CLUSTER_TAG_PREFIX}/"


def ownership(cluster: str, node_class: str) -> dict[str, str]:
    """The tags of everything that is made for a class."""
    return {f"{OWNER_PREFIX}{cluster}": "owned", CLUSTER_NAME_TAG: cluster, labels.NODE_CLASS: node_class}


def instance_tags(cluster: str, node_class: EC2NodeClass, node_pool: str) -> dict[str, str]:
    """An instance's tags at launch: the user's and ours. Raises ``ConfigurationError`` if the user sets one of ours."""
    if taken := restricted(node_class.spec.tags):
        raise ConfigurationError(f"EC2NodeClass {node_class.metadata.name}: spec.tags: {taken} is set by Joinery")
    return {**node_class.spec.tags, **ownership(cluster, node_class.metadata.name), labels.NODE_POOL: node_pool}


def is_of_cluster(tags: Mapping[str, str], cluster: str) -> bool:
    """Whether these are the tags of an instance that the cluster owns, launched by us or by Karpenter of any version.

    Up to v0.37 another tag had the cluster's name (Karpenter, v1 migration guide).
    """
    is_todays = tags.get(CLUSTER_NAME_TAG) == cluster and labels.NODE_POOL in tags and labels.NODE_CLASS in tags
    return is_todays or tags.get(labels.MANAGED_BY) == cluster


def cluster_of(tags: Mapping[str, str]) -> str:
    """The cluster that an instance with these tags says it is of; empty where it says none."""
    return tags.get(CLUSTER_NAME_TAG, "") or tags.get(labels.MANAGED_BY, "")


def restricted(tags: Mapping[str, str]) -> str:
    """The first key that a user may not set; empty if there is none."""
    return next((key for key in sorted(tags) if key in RESTRICTED_TAGS or key.startswith(OWNER_PREFIX)), "")
