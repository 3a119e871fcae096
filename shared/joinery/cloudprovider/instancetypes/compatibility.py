"""Instance types that a class's own settings rule out (Karpenter for AWS, instancetype/compatibility)."""

from collections.abc import Iterable

from joinery.apis.ec2nodeclass import EC2NodeClassSpec, NetworkInterface
from joinery.cloudprovider.catalog.description import Description, NetworkInfo


def serves(spec: EC2NodeClassSpec, description: Description) -> bool:
    """Whether an instance of this type can be made as the class says."""
    # AL2023 needs the arm64 v8.2 instructions, which the first Graviton does not have.
    if spec.family == "AL2023" and description.instance_type.startswith("a1."):
        return False
    if spec.network_interfaces and not _has_cards(spec.network_interfaces, description.network_info):
        return False
    if spec.cpu_options and spec.cpu_options.nested_virtualization == "enabled":
        return "nested-virtualization" in description.processor_info.supported_features
    return spec.connection_tracking is None or description.hypervisor == "nitro"


def _has_cards(wanted: Iterable[NetworkInterface], network: NetworkInfo) -> bool:
    """Whether a type has the network cards, with enough interfaces each, that the class wants to attach to."""
    cards = {card.network_card_index: card for card in network.network_cards}
    if not cards or network.ena_support == "unsupported":
        return False
    efa = sum(nic.interface_type == "efa-only" for nic in wanted)
    if efa > (network.efa_info.maximum_efa_interfaces if network.efa_info else 0):
        return False
    return all(
        nic.network_card_index in cards and nic.device_index < cards[nic.network_card_index].maximum_network_interfaces
        for nic in wanted
    )
