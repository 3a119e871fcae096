"""EC2's launch errors, as what the caller does about them (aws-provider.md 2.8)."""

#: The pool has nothing to give now: remember it, try another.
CAPACITY = frozenset(
    {
        "InsufficientInstanceCapacity",
        "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded",
        "UnfulfillableCapacity",
        "Unsupported",
        "InsufficientFreeAddressesInSubnet",
        "MaxFleetCountExceeded",
        "ReservationCapacityExceeded",
        # There is no spot at all until an administrator creates the service-linked role.
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
    }
)

ALREADY_EXISTS = frozenset({"EntityAlreadyExists", "InvalidLaunchTemplateName.AlreadyExistsException"})
#: The token was used for a launch with other parameters, a moment ago.
TOKEN_REUSED = "IdempotentParameterMismatch"
TEMPLATE_NOT_FOUND = frozenset({"InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound"})


def is_capacity(code: str) -> bool:
    """Whether EC2 was out of that pool, so that others should be tried."""
    return code in CAPACITY
