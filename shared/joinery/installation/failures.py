"""What went wrong, in words that a person can act upon: what failed, on which object, and what to do about it.

CloudFormation shows a reason to whoever deploys, and that is all they see. An error names the call that failed; here
its remedy is added, where there is one.
"""

from dataclasses import dataclass

from joinery.errors import NotFoundError


@dataclass(frozen=True, slots=True)
class Remedy:
    """``signs``: words that errors of this kind have, one each. ``advice``: what to do, with the cluster's name."""

    signs: tuple[str, ...]
    advice: str


_REMEDIES = (
    Remedy(
        ("authentication mode must be set",),
        "Allow access entries: aws eks update-cluster-config --name {cluster} "
        "--access-config authenticationMode=API_AND_CONFIG_MAP. Entries of aws-auth stay valid. "
        "Or deploy with AccessEntries=false, and apply the manifests by hand.",
    ),
    Remedy(
        ("Timeout", "NewConnectionError"),
        "Can the function reach the endpoint of cluster {cluster}? An endpoint that is private needs the parameters "
        "SubnetIds and SecurityGroupIds, and the cluster's security group must let them in on port 443.",
    ),
    Remedy(
        ("AccessDenied",),
        "A permission boundary or a policy of the organization denies the installer's role this call. Allow it, and "
        "deploy again.",
    ),
)


def failure_message(doing: str, error: Exception, *, cluster: str) -> str:
    """One line for a failure. ``doing``: what was being done."""
    if isinstance(error, NotFoundError) and "AccessEntry" in str(error):
        return (
            f"There is no EKS cluster {cluster} in this account and region. Deploy with the name of one that is there."
        )
    text = str(error) or type(error).__name__
    fitting = (remedy for remedy in _REMEDIES if any(sign in text for sign in remedy.signs))
    advice = next((remedy.advice.format(cluster=cluster) for remedy in fitting), "")
    return " ".join(part for part in (f"{doing}: {text}" if doing else text, advice) if part)
