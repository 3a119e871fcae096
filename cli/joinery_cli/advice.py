"""What a person can do about AWS or a cluster that cannot be read: sign in, name a profile, a region, a file.

A function retries, and an administrator reads its log; at a desk the line that fails is all there is.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from joinery.gateways.aws import code
from joinery.objects.codes import DENIED
from joinery.objects.errors import ConfigurationError, JoineryError, UnavailableError
from joinery.objects.spelling import meant_by

_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})
_UNKNOWN = frozenset(
    {"AuthFailure", "InvalidClientTokenId", "OptInRequired", "SignatureDoesNotMatch", "UnrecognizedClientException"}
)
#: What a catalogue is read with (``joinery.gateways.ec2.catalog.listing``).
_NEEDED = (
    "pricing:GetProducts, ec2:DescribeInstanceTypes, ec2:DescribeInstanceTypeOfferings, ec2:DescribeAvailabilityZones, "
    "ec2:DescribeSpotPriceHistory, ec2:DescribeCapacityReservations"
)
_SIGN_IN = "sign in (aws sso login, aws configure)"


@contextmanager
def reading_aws(region: str) -> Iterator[None]:
    """Read AWS for a person.

    What signing in would mend is a ``ConfigurationError``, also where a function would wait.
    """
    try:
        yield
    except JoineryError as error:
        if advice := _advice(error.__cause__, region):
            raise ConfigurationError(f"{error}: {advice}") from error.__cause__
        if isinstance(error, UnavailableError) and _is_unreachable(error.__cause__):
            raise UnavailableError(f"{error}: is there a region {region}, and a network?") from error.__cause__
        raise


@contextmanager
def reading_cluster() -> Iterator[None]:
    """Read the current cluster for a person, who may not have wanted one."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; files need no cluster: give them by -f FILE") from error
    except UnavailableError as error:
        hint = "does kubectl get nodes reach the cluster? files need none: give them by -f FILE"
        raise UnavailableError(f"{error}; {hint}") from error


def _advice(cause: BaseException | None, region: str) -> str:
    from botocore import exceptions as botocore

    if isinstance(cause, botocore.NoCredentialsError | botocore.PartialCredentialsError):
        return f"name a profile (AWS_PROFILE=NAME{_there_are()}), or {_SIGN_IN}"
    if isinstance(cause, botocore.ProfileNotFound):
        return _of_profile()
    if isinstance(cause, botocore.SSOError | botocore.TokenRetrievalError | botocore.CredentialRetrievalError):
        return _EXPIRED_ADVICE
    if not isinstance(cause, botocore.ClientError):
        return ""
    return _of_code(code(cause), region)


_EXPIRED_ADVICE = (
    "the credentials have expired: sign in again (aws sso login), or name another profile (AWS_PROFILE=NAME)"
)


def _of_code(said: str, region: str) -> str:
    if said in _EXPIRED:
        return _EXPIRED_ADVICE
    if said in _UNKNOWN:
        return (
            f"AWS does not know these credentials, or the account has not enabled the region {region}: name another "
            f"profile (AWS_PROFILE=NAME), another --region, or {_SIGN_IN}"
        )
    return f"the credentials may not: they need {_NEEDED}" if said in DENIED else ""


def _of_profile() -> str:
    named = next((name for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE") if os.environ.get(name)), "AWS_PROFILE")
    meant = meant_by(os.environ.get(named, ""), _profiles())
    return (
        f"{named} names it" + (f"; is it {meant}?" if meant else "") + (f" ({_there_are()[2:]})" if _profiles() else "")
    )


def _there_are() -> str:
    return f"; there are: {', '.join(_profiles())}" if _profiles() else ""


def _profiles() -> list[str]:
    """The profiles of this desk; none where their file cannot be read, which is not what is asked about."""
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    try:
        return sorted(Session().full_config.get("profiles", {}))
    except BotoCoreError:
        return []


def _is_unreachable(cause: BaseException | None) -> bool:
    from botocore.exceptions import ConnectionError

    return isinstance(cause, ConnectionError)
