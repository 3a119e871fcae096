"""AWS's error codes, as what whoever called does about them: one table for every service.

Codes are the services' own ("Error codes for the Amazon EC2 API", "CreateFleetError", Karpenter's ``pkg/errors``); what
is in no set is somebody's mistake, and a person must act.
"""

#: Already gone, or not there yet. Nothing is there by an id that is none.
NOT_FOUND = frozenset(
    {
        "InvalidCapacityReservationId.Malformed",
        "InvalidCapacityReservationId.NotFound",
        "InvalidInstanceID.Malformed",
        "InvalidInstanceID.NotFound",
        "InvalidLaunchTemplateName.NotFoundException",
        "InvalidLaunchTemplateId.NotFound",
        "NoSuchEntity",
        "NoSuchKey",
        "ParameterNotFound",
        "ResourceNotFoundException",
    }
)

#: An identity lacks a right: by its own policies, a boundary, or a policy of the organization.
DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})

#: Too many calls lately, of whoever in the account.
THROTTLED = frozenset(
    {
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "KmsThrottled",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
_BROKEN = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "InternalServerException",
        "RequestTimeout",
        "RequestTimeoutException",
        "RetryableError",
        "ServerException",
        "ServerInternal",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
    }
)
# Somebody else changes the same tags, or the same role, at this moment.
_BUSY = frozenset({"ConcurrentModification", "ConcurrentTagAccess", "EntityTemporarilyUnmodifiable"})
# Credentials that Lambda renews, and requests that were signed before it slept.
_EXPIRED = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidSecurity.RequestHasExpired",
        "RequestExpired",
        "RequestInTheFuture",
        "RequestTimeTooSkewed",
        "TokenRefreshRequired",
    }
)
#: The same call may succeed in a moment. A new account's verification takes hours, and ends by itself as well.
TRANSIENT = THROTTLED | _BROKEN | _BUSY | _EXPIRED | {"PendingVerification"}

#: Another subnet of the zone may have some.
SUBNET_FULL = "InsufficientFreeAddressesInSubnet"
#: There is no spot at all until an administrator creates the service-linked role.
SPOT_ROLE_LACKING = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
#: A quota of vCPUs is used up. Each counts several families of types (``objects.snapshot.quotas``).
VCPU_QUOTAS = frozenset({"MaxSpotInstanceCountExceeded", "VcpuLimitExceeded"})
#: A quota of one type's instances is used up.
QUOTA_OF_TYPE = "InstanceLimitExceeded"
#: The zone has no disks of the kind that a node class asks for; a local zone may never have them.
NO_VOLUMES_IN_ZONE = frozenset({"InsufficientVolumeCapacity", "VolumeTypeNotAvailableInZone"})
#: A fleet got less than it asked for. EC2 says so beside whatever else kept it from more
#: (https://github.com/aws/karpenter-provider-aws/issues/3051).
UNFULFILLED = "UnfulfillableCapacity"
#: The pool has nothing to give now: remember it, try another (EC2 API, error codes). A quota counts as one:
#: another pool may be within its own.
CAPACITY = frozenset(
    {
        *NO_VOLUMES_IN_ZONE,
        *VCPU_QUOTAS,
        "InsufficientAddressCapacity",
        "InsufficientCapacityOnHost",
        "InsufficientCapacityOnOutpost",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        # The reservation that a launch was for is gone. (Whoever asks for it by its id gets "not found".)
        "InvalidCapacityReservationId.NotFound",
        # A block that has not begun yet; an interruptible reservation that its owner is just taking back.
        "InvalidCapacityReservationState.PendingActivation",
        "InvalidCapacityReservationState.Unavailable",
        # A reservation that is not what it was when it was chosen.
        "InvalidLaunchTargets",
        "MaxFleetCountExceeded",
        "ReservationCapacityExceeded",
        "SpotMaxPriceTooLow",
        "Unsupported",
        QUOTA_OF_TYPE,
        SPOT_ROLE_LACKING,
        SUBNET_FULL,
        UNFULFILLED,
    }
)

ALREADY_EXISTS = frozenset({"EntityAlreadyExists", "InvalidLaunchTemplateName.AlreadyExistsException"})
#: The token was used for a launch with other parameters, a moment ago.
TOKEN_REUSED = "IdempotentParameterMismatch"
#: The region takes no more launch templates.
TEMPLATE_LIMIT = frozenset({"LaunchTemplateLimitExceeded", "MaxTemplateLimitExceeded"})
TEMPLATE_NOT_FOUND = frozenset({"InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound"})
#: EC2's words for a type that a zone does not have. RunInstances calls that ``Unsupported``, as it does options that a
#: type does not take. CreateFleet has one code for it and for mistakes of the request, and says it mostly of local
#: zones and of spot.
_NOT_SOLD_THERE = "is not supported in your requested Availability Zone"
#: Of dedicated hosts and of an Outpost: the launch template names the one, the subnet is on the other.
_ON_ITS_OWN = frozenset({"InsufficientCapacityOnHost", "InsufficientCapacityOnOutpost", "InsufficientHostCapacity"})
#: A spread placement group takes seven instances a zone, whatever their type (Karpenter for AWS, ``pkg/errors``).
_SPREAD_LIMIT = "limit of instances in this spread placement group"


def is_group_full(message: str) -> bool:
    """Whether EC2 says that a placement group takes no more instances in a zone."""
    return _SPREAD_LIMIT in message


def is_of_options(code: str, message: str) -> bool:
    """Whether a pool is out for the options of this launch (its class's hosts, Outpost or configuration) alone."""
    return code in _ON_ITS_OWN or (code == "Unsupported" and _NOT_SOLD_THERE not in message)


def is_capacity(code: str, message: str = "") -> bool:
    """Whether EC2 was out of the pool of a launch, so that others should be tried."""
    return code in CAPACITY or (code == "InvalidFleetConfiguration" and _NOT_SOLD_THERE in message)
