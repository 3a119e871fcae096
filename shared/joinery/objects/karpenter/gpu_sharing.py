"""How NVIDIA's driver lets claims share a GPU, as an EC2NodeClass says it (``labels.GPU_SHARING``)."""

#: By memory: who asks for no amount gets all of it, or none. Else it is a number of shares, of 64 bits.
SHARINGS = ("memory", "unlimited")
_DIGITS = 19


def is_sharing(text: str) -> bool:
    """Whether it is a way that the driver has (Karpenter `ParseConsumableCapacity`)."""
    return text in SHARINGS or (text.isascii() and text.isdecimal() and len(text) < _DIGITS and int(text) > 0)
