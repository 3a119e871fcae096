"""What nodes say of the memory of their type, where the catalogue can only estimate it.

EC2 says how much memory a type has. A node has less: hypervisor and firmware keep some, which no API tells, and the
estimate for all types is a fraction (``VmMemoryOverheadPercent``). A node that exists says what it has, and the next
one of its type that boots the same image will have as much (Karpenter for AWS `UpdateInstanceTypeCapacityFromNode`,
which remembers it for as long as it runs; here the nodes remember it).
"""

import math
from collections import defaultdict
from collections.abc import Mapping

from joinery.objects.karpenter.labels import INSTANCE_TYPE
from joinery.objects.snapshot.snapshot import Snapshot

#: Bytes, by the name of a node class and the instance type.
LearnedMemory = Mapping[str, Mapping[str, int]]


def learned_memory(snapshot: Snapshot) -> LearnedMemory:
    """By class and type, the least memory that a node says, among those of the image that a new one would boot."""
    claims = {claim.metadata.name: claim for claim in snapshot.managed_claims}
    least: dict[str, dict[str, int]] = defaultdict(dict)
    for view in snapshot.views:
        claim, memory = claims.get(view.claim), view.capacity.get("memory", 0)
        if claim is None or not view.is_initialized or memory <= 0:
            continue
        node_class = snapshot.classes_by_name.get(claim.spec.node_class_ref.name)
        if node_class is None:
            continue
        of_class, kind = least[node_class.metadata.name], view.labels.get(INSTANCE_TYPE, "")
        # Most nodes say what another one has said: their images, which take longer to find out, change nothing.
        if memory >= of_class.get(kind, math.inf):
            continue
        if claim.status.image_id == node_class.image_for({k: (v,) for k, v in view.labels.items()}):
            of_class[kind] = memory
    return {name: of_class for name, of_class in least.items() if of_class}
