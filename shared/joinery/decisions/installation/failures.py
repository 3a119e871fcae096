"""What went wrong, in words that a person can act upon: what failed, on which object, and what to do about it.

CloudFormation shows a reason to whoever deploys, and that is all they see. An error names the call that failed; here
its remedy is added, where there is one.
"""

from collections.abc import Callable
from dataclasses import dataclass

from joinery.objects.codes import DENIED
from joinery.objects.errors import JoineryError, UnreachableError


@dataclass(frozen=True, slots=True)
class Remedy:
    """``fits``: whether it is for an error. ``advice``: what to do, with the cluster's name."""

    fits: Callable[[Exception], bool]
    advice: str


def _has_no_access_entries(error: Exception) -> bool:
    """EKS has one code for whatever the state of a cluster is against, so its words must tell."""
    return _code(error) == "InvalidRequestException" and "authentication mode" in str(error)


_REMEDIES = (
    Remedy(
        _has_no_access_entries,
        "Allow access entries: aws eks update-cluster-config --name {cluster} "
        "--access-config authenticationMode=API_AND_CONFIG_MAP. Entries of aws-auth stay valid. "
        "Or deploy with AccessEntries=false, and apply the manifests by hand.",
    ),
    Remedy(
        lambda error: isinstance(error, UnreachableError),
        "Is there a way there for the function? If the endpoint of cluster {cluster} is private, it needs the "
        "parameters SubnetIds and SecurityGroupIds, and the cluster's security group must let them in on port 443. "
        "From subnets without a NAT gateway, it needs VPC endpoints to services of AWS (docs/operations.md).",
    ),
    Remedy(
        lambda error: _code(error) in DENIED,
        "A permission boundary or a policy of the organization denies the installer's role this call. Allow it, and "
        "deploy again.",
    ),
)


def failure_message(doing: str, error: Exception, *, cluster: str) -> str:
    """One line for a failure. ``doing``: what was being done."""
    text = str(error) or type(error).__name__
    advice = next((remedy.advice.format(cluster=cluster) for remedy in _REMEDIES if remedy.fits(error)), "")
    return " ".join(part for part in (f"{doing}: {text}" if doing else text, advice) if part)


def _code(error: Exception) -> str:
    return error.code if isinstance(error, JoineryError) else ""
