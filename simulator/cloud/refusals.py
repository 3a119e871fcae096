"""What EC2 says where it launches or ends nothing, in its own words (EC2 API, "Error codes")."""

from joinery.gateways.ec2.gateway import LaunchFailure
from joinery.objects.codes import SUBNET_FULL, is_capacity
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter import labels
from joinery.objects.snapshot.offerings import OfferingKey


def protected(instance_id: str) -> ConfigurationError:
    words = f"The instance '{instance_id}' may not be terminated. Modify its 'disableApiTermination' instance attribute"
    error = ConfigurationError(f"terminating instances: OperationNotPermitted: {words} and try again.")
    error.code = "OperationNotPermitted"
    return error


def subnet_full(pool: OfferingKey) -> LaunchFailure:
    message = f"There are not enough free addresses in the subnet of {pool.zone} to satisfy the requested number."
    return LaunchFailure(pool, SUBNET_FULL, message, is_capacity(SUBNET_FULL, message))


def out_of(pool: OfferingKey) -> LaunchFailure:
    if pool.capacity_type == labels.RESERVED:
        message = "The requested instance count exceeds what is left of the Capacity Reservation."
        return LaunchFailure(pool, "ReservationCapacityExceeded", message, True)
    message = f"We currently do not have sufficient {pool.instance_type} capacity in {pool.zone}."
    return LaunchFailure(pool, "InsufficientInstanceCapacity", message, True)
