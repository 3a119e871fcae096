"""EC2's error codes, as what the caller does about them (aws-provider.md 2.8)."""

from joinery.errors import ConfigurationError, JoineryError, NotFoundError, UnavailableError

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
        # No spot at all until an administrator creates the service-linked role.
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
    }
)

NOT_FOUND = frozenset(
    {
        "InvalidInstanceID.NotFound",
        "InvalidLaunchTemplateName.NotFoundException",
        "InvalidLaunchTemplateId.NotFound",
        "NoSuchEntity",
        "ParameterNotFound",
        "NoSuchKey",
        "404",
    }
)
ALREADY_EXISTS = frozenset({"EntityAlreadyExists", "InvalidLaunchTemplateName.AlreadyExistsException"})
TEMPLATE_NOT_FOUND = frozenset({"InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound"})

_TRANSIENT = frozenset(
    {
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "ServiceUnavailable",
        "Unavailable",
        "SlowDown",
        "RequestTimeout",
        "PendingVerification",
    }
)


def is_capacity(code: str) -> bool:
    """Whether EC2 was out of that pool, so that others should be tried."""
    return code in CAPACITY


def error(code: str, message: str, *, doing: str, status: int = 400) -> JoineryError:
    """Our error for one of AWS's. ``doing`` names the call; ``status`` is HTTP's."""
    text = f"{doing}: {code}: {message}"
    if code in NOT_FOUND:
        return NotFoundError(text)
    if code in _TRANSIENT or status >= 500:
        return UnavailableError(text)
    return ConfigurationError(text)
