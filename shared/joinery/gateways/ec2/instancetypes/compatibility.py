"""Instance types that a class's own settings rule out (Karpenter for AWS, instancetype/compatibility)."""

from collections.abc import Iterable

from joinery.gateways.ec2.catalog.description import Description, NetworkInfo
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClassSpec, NetworkInterface


def serves(spec: EC2NodeClassSpec, description: Description) -> bool:
    """Whether an instance of this type can be made as the class says."""
    # AL2023 needs the arm64 v8.2 instructions, which the first Graviton does not have.
    if spec.family == "AL2023" and description.instance_type.startswith("a1."):
        return False
    if spec.network_interfaces and not _has_cards(spec.network_interfaces, description.network_info):
        return False
    if spec.connection_tracking is not None and description.hypervisor != "nitro":
        return False
    return _has_features(spec, description)


def _has_features(spec: EC2NodeClassSpec, description: Description) -> bool:
    if spec.enclave_options and spec.enclave_options.enabled and description.nitro_enclaves_support != "supported":
        return False
    is_nested = spec.cpu_options is not None and spec.cpu_options.nested_virtualization == "enabled"
    return not is_nested or "nested-virtualization" in description.processor_info.supported_features


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
