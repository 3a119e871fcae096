"""Builders with defaults, for tests and scenarios: ``pod(cpu="500m")`` says only what matters to the test.

They return the objects of ``joinery.objects`` and ``joinery.objects.snapshot``, as an API server or EC2 would hand them
out. Nested parts may be given as structs or as documents: dictionaries with the API's own camel-case names.
"""

from simulator.builders.defaults import EPOCH, ZONES, zone_id
from simulator.builders.ec2 import instance_type
from simulator.builders.karpenter import (
    capacity_buffer,
    foreign,
    node_claim,
    node_class,
    node_overlay,
    node_pool,
    provisioning_request,
)
from simulator.builders.nodes import node
from simulator.builders.pods import (
    daemon_set,
    deployment,
    namespace,
    owner,
    pdb,
    pod,
    pod_group,
    pod_template,
    replica_set,
)
from simulator.builders.storage import BOUND, storage_class, volume, volume_claim

__all__ = [
    "BOUND",
    "EPOCH",
    "ZONES",
    "capacity_buffer",
    "daemon_set",
    "deployment",
    "foreign",
    "instance_type",
    "namespace",
    "node",
    "node_claim",
    "node_class",
    "node_overlay",
    "node_pool",
    "owner",
    "pdb",
    "pod",
    "pod_group",
    "pod_template",
    "provisioning_request",
    "replica_set",
    "storage_class",
    "volume",
    "volume_claim",
    "zone_id",
]
