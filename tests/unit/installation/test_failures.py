"""Failures of the installer, in words that a person can act upon."""

import pytest

from joinery.errors import ConfigurationError, JoineryError, NotFoundError, UnavailableError
from joinery.installation.failures import failure_message


@pytest.mark.parametrize(("error", "advice"), [
    (ConfigurationError("EKS CreateAccessEntry: InvalidRequestException: The cluster's authentication mode must be set "
                        "to one of [API, API_AND_CONFIG_MAP] to perform this operation."),
     "aws eks update-cluster-config --name blue --access-config authenticationMode=API_AND_CONFIG_MAP"),
    (UnavailableError("GET /version: ConnectTimeoutError: timed out"), "SubnetIds and SecurityGroupIds"),
    (UnavailableError("GET /version: NewConnectionError: refused"), "endpoint of cluster blue"),
    (ConfigurationError("EKS CreateAccessEntry: AccessDeniedException: no"), "permission boundary"),
    (NotFoundError("EKS CreateAccessEntry for arn in blue: ResourceNotFoundException: no"), "no EKS cluster blue"),
])  # fmt: skip
def test_a_failure_comes_with_its_remedy(error: JoineryError, advice: str) -> None:
    """Whoever deploys sees this line, and nothing else."""
    assert advice in failure_message("Reading ClusterRole joinery", error, cluster="blue")


def test_a_failure_without_a_known_remedy_says_what_failed_on_which_object() -> None:
    """And an error without words at least says its kind."""
    assert (
        failure_message("Writing Role joinery", UnavailableError("etcd (500)"), cluster="blue")
        == "Writing Role joinery: etcd (500)"
    )
    assert failure_message("", ZeroDivisionError(), cluster="blue") == "ZeroDivisionError"
