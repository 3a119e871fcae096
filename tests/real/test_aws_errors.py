"""Every real error of AWS: what whoever catches it should do."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.launch.running import described
from joinery.gateways.kubernetes import auth
from joinery.objects.errors import CapacityError, ConfigurationError, JoineryError, NotFoundError, UnavailableError
from tests.real.answers import ERRORS

REACTIONS: dict[str, type[JoineryError]] = {
    "ec2:CreateFleet UnauthorizedOperation": ConfigurationError,
    "ec2:RunInstances DryRunOperation": ConfigurationError,
    "ec2:DescribeInstances RequestLimitExceeded": UnavailableError,
    "ec2:DescribeInstances InvalidInstanceID.NotFound": NotFoundError,
    # Of a claim whose provider ID somebody has edited: there is nothing to end.
    "ec2:DescribeInstances InvalidInstanceID.Malformed": NotFoundError,
    "ec2:DescribeCapacityReservations InvalidCapacityReservationId.Malformed": NotFoundError,
    "ec2:TerminateInstances OperationNotPermitted": ConfigurationError,
    "ec2:CreateFleet InsufficientInstanceCapacity": CapacityError,
    "ec2:CreateFleet InvalidFleetConfig": ConfigurationError,
    "ec2:CreateFleet IdempotentParameterMismatch": ConfigurationError,
    "ec2:CreateLaunchTemplate InvalidLaunchTemplateName.AlreadyExistsException": ConfigurationError,
    "eks:DescribeCluster ResourceNotFoundException": NotFoundError,
    "eks:DescribeCluster AccessDeniedException": ConfigurationError,
    "iam:GetInstanceProfile NoSuchEntity": NotFoundError,
    "iam:GetInstanceProfile AccessDenied": ConfigurationError,
    "iam:PassRole InvalidParameterValue": ConfigurationError,
    "ssm:GetParameter ParameterNotFound": NotFoundError,
    "ssm:GetParameter ThrottlingException": UnavailableError,
    "sts ExpiredToken": UnavailableError,
    "ec2 RequestExpired": UnavailableError,
    "ec2 AuthFailure": ConfigurationError,
    "ec2 OptInRequired": ConfigurationError,
    "ec2 Blocked": ConfigurationError,
    "ec2 PendingVerification": UnavailableError,
    "pricing:GetProducts AccessDeniedException": ConfigurationError,
    "ec2:CreateTags ConcurrentTagAccess": UnavailableError,
    "iam:AddRoleToInstanceProfile ConcurrentModification": UnavailableError,
    "iam:AddRoleToInstanceProfile EntityTemporarilyUnmodifiable": UnavailableError,
    "iam:AddRoleToInstanceProfile LimitExceeded": ConfigurationError,
    "ec2:CreateFleet InsufficientVolumeCapacity": CapacityError,
    "ec2:CreateFleet VolumeTypeNotAvailableInZone": CapacityError,
    "ec2:CreateFleet InvalidFleetConfiguration": CapacityError,
    # What is used up is used up in every pool.
    "ec2:CreateFleet MaxIOPSLimitExceeded": ConfigurationError,
    "ec2:CreateFleet VolumeLimitExceeded": ConfigurationError,
    "ec2:CreateLaunchTemplate MaxTemplateLimitExceeded": ConfigurationError,
    "sqs:SendMessage KmsThrottled": UnavailableError,
    "sqs:SendMessage QueueDoesNotExist": ConfigurationError,
}


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_every_error_is_what_its_catcher_should_do(name: str) -> None:
    """Wait, look again, try another pool, or tell a person; the text names the deed, the code and EC2's words."""
    answer = ERRORS[name]
    with pytest.raises(JoineryError) as caught, translated("trying"):
        raise ClientError(answer, answer["operation"])
    assert type(caught.value) is REACTIONS[name]
    assert str(caught.value) == f"trying: {answer['Error']['Code']}: {answer['Error']['Message']}"


#: The codes of "Error codes for the Amazon EC2 API" that our calls may meet, beside those above, with what each means.
DOCUMENTED: dict[type[JoineryError], str] = {
    CapacityError: """
        InstanceLimitExceeded InsufficientAddressCapacity InsufficientCapacityOnHost InsufficientFreeAddressesInSubnet
        InsufficientHostCapacity InsufficientReservedInstanceCapacity InsufficientVolumeCapacity
        InvalidCapacityReservationState.PendingActivation InvalidLaunchTargets MaxSpotInstanceCountExceeded
        ReservationCapacityExceeded SpotMaxPriceTooLow UnfulfillableCapacity Unsupported VcpuLimitExceeded
        VolumeTypeNotAvailableInZone
    """,
    NotFoundError: """
        InvalidCapacityReservationId.NotFound InvalidLaunchTemplateId.NotFound
        InvalidLaunchTemplateName.NotFoundException
    """,
    UnavailableError: """
        BandwidthLimitExceeded InternalError InternalFailure InvalidSecurity.RequestHasExpired RetryableError
        ServerInternal ServiceUnavailable Unavailable
    """,
    # A person must act: on a selector, an image, a quota of the region, a policy, an account.
    ConfigurationError: """
        AccountDisabled BootForVolumeTypeUnsupported CustomerKeyHasBeenRevoked EncryptedVolumesNotSupported
        FilterLimitExceeded IncorrectInstanceState IncorrectState InvalidAMIID.Malformed InvalidAMIID.NotFound
        InvalidAMIID.Unavailable InvalidAvailabilityZone InvalidBlockDeviceMapping InvalidClientToken InvalidFilter
        InvalidGroup.NotFound InvalidGroupId.Malformed InvalidID InvalidInput InvalidInstanceType
        InvalidInterface.IpAddressLimitExceeded InvalidLaunchTemplateId.VersionNotFound
        InvalidLaunchTemplateName.MalformedException InvalidParameter InvalidParameterCombination
        InvalidParameterDependency InvalidPlacementGroup.Unknown InvalidRequest InvalidSecurityGroupID.NotFound
        InvalidSnapshot.NotFound InvalidSubnet InvalidSubnetID.NotFound InvalidTagKey.Malformed InvalidTenancy
        InvalidUserID.Malformed InvalidZone.NotFound MaxTemplateVersionLimitExceeded MissingParameter
        NetworkInterfaceLimitExceeded PrivateIpAddressLimitExceeded RequestResourceCountExceeded ResourceCountExceeded
        ResourceLimitExceeded SecurityGroupsPerInstanceLimitExceeded SecurityGroupsPerInterfaceLimitExceeded
        SignatureDoesNotMatch TagLimitExceeded TagPolicyViolation UnknownParameter UnknownVolumeType
        UnsupportedOperation UnsupportedTenancy ValidationError VolumeIOPSLimit
    """,
}


@pytest.mark.parametrize(
    ("code", "reaction"), [(code, kind) for kind, codes in DOCUMENTED.items() for code in codes.split()]
)
def test_every_documented_error_of_ec2_has_its_reaction(code: str, reaction: type[JoineryError]) -> None:
    """By its code alone: most of them come with 400."""
    refusal = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    with pytest.raises(JoineryError) as caught, translated("trying"):
        raise ClientError(refusal, "CreateFleet")  # type: ignore[arg-type]
    assert type(caught.value) is reaction


@pytest.mark.parametrize("status", [400, 403, 429, 503])
@pytest.mark.parametrize(
    "code",
    ["Throttling", "RequestLimitExceeded", "ThrottlingException", "RequestThrottledException", "ExpiredTokenException"],
)
def test_what_passes_by_itself_is_not_a_mistake_whatever_its_status(code: str, status: int) -> None:
    """Services throttle with 400 and 503, and tell of an expired token with 400 and 403."""
    refusal = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
    with pytest.raises(UnavailableError), translated("trying"):
        raise ClientError(refusal, "Operation")  # type: ignore[arg-type]


class _Raw(BytesIO):
    """A body as botocore reads one from a connection."""

    def stream(self, **_: object) -> Iterator[bytes]:
        """All of it at once."""
        yield self.read()


def _answer(client: Any, status: int, body: bytes) -> None:
    """Whatever the client asks, it gets these bytes."""
    headers: Any = {}
    client.meta.events.register("before-send", lambda **_: AWSResponse("https://aws", status, headers, _Raw(body)))


@pytest.mark.parametrize("status", [200, 403, 413, 429, 502, 503])
@pytest.mark.parametrize("body", [b"", b"Bad Gateway", b"<!DOCTYPE html><html>busy</html>", b"<DescribeInst", b"{"])
def test_an_answer_that_is_none_is_worth_another_try(clients: Clients, status: int, body: bytes) -> None:
    """A load balancer's page, a proxy's word, half of an answer: one short line, and nothing of botocore's."""
    _answer(clients.ec2, status, body * 100)
    with pytest.raises(UnavailableError, match="^describing instances: ") as caught:
        described(clients)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("status", "error"), [(408, UnavailableError), (429, UnavailableError), (413, ConfigurationError)]
)
def test_http_says_itself_that_it_was_too_much(clients: Clients, status: int, error: type[JoineryError]) -> None:
    """Where nobody gives a code of the service."""
    _answer(clients.ssm, status, b"")
    with pytest.raises(error), translated("reading a parameter"):
        clients.ssm.get_parameter(Name="x")


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (400, "ExpiredTokenException:", UnavailableError),
        (403, "ExpiredTokenException", UnavailableError),
        (429, "TooManyRequestsException:http://internal.amazon.com/", UnavailableError),
        (400, "ThrottlingException", UnavailableError),
        (403, "AccessDeniedException:", ConfigurationError),
        (403, "", ConfigurationError),
        (503, "", UnavailableError),
        (404, "", NotFoundError),
    ],
)
def test_eks_says_in_a_header_what_is_wrong(status: int, kind: str, error: type[JoineryError]) -> None:
    """A status alone does not tell an expired token from a missing permission."""
    with pytest.raises(error, match="DescribeCluster prod"):
        auth.described("prod", status, b'{"message": "no"}', kind=kind)
