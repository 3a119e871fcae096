"""KWOKNodeClass, the node class of Karpenter's provider for kwok (``karpenter.kwok.sh/v1alpha1``)."""

from typing import Annotated

from pydantic import Field

from joinery.objects.karpenter.hashing import digest
from joinery.objects.karpenter.meta import Model
from joinery.objects.karpenter.nodeclass import NodeClass

GROUP = "karpenter.kwok.sh"


class KWOKNodeClassSpec(Model):
    """How its nodes come."""

    node_registration_delay: Annotated[str, Field(pattern=r"^([0-9]+(s|m|h))+$")] = "0s"
    """How long after its launch a node registers."""


class KWOKNodeClass(NodeClass):
    """What a node of kwok is made of: nothing."""

    api_version = f"{GROUP}/v1alpha1"
    kind = "KWOKNodeClass"
    plural = "kwoknodeclasses"

    spec: KWOKNodeClassSpec = KWOKNodeClassSpec()

    @property
    def static_hash(self) -> str:
        """One for all: a node that is there does not change with its class."""
        return digest({})
