"""Failures of the installer, in words that a person can act upon."""

import pytest
from botocore.exceptions import BotoCoreError, ConnectTimeoutError, EndpointConnectionError

from joinery.decisions.installation.failures import failure_message
from joinery.gateways.aws import error as aws_error
from joinery.gateways.aws import translated
from joinery.objects.errors import ConfigurationError, JoineryError, UnavailableError, UnreachableError


@pytest.mark.parametrize(("error", "advice"), [
    (aws_error("InvalidRequestException", "The cluster's authentication mode must be set to one of [API, "
               "API_AND_CONFIG_MAP] to perform this operation.", doing="EKS CreateAccessEntry"),
     "aws eks update-cluster-config --name blue --access-config authenticationMode=API_AND_CONFIG_MAP"),
    (UnreachableError("GET /version: timed out"), "SubnetIds and SecurityGroupIds"),
    (aws_error("AccessDeniedException", "no", doing="EKS CreateAccessEntry"), "permission boundary"),
])  # fmt: skip
def test_a_failure_comes_with_its_remedy(error: JoineryError, advice: str) -> None:
    """Whoever deploys sees this line, and nothing else."""
    assert advice in failure_message("Reading ClusterRole joinery", error, cluster="blue")


@pytest.mark.parametrize("kind", [EndpointConnectionError, ConnectTimeoutError])
def test_a_service_without_a_way_to_it_comes_with_its_remedy(kind: type[BotoCoreError]) -> None:
    """A private subnet without an endpoint for it: the commonest mistake of private clusters."""
    with pytest.raises(UnreachableError) as failed, translated("EKS CreateAccessEntry"):
        raise kind(endpoint_url="https://eks.eu-central-1.amazonaws.com")
    assert "VPC endpoints" in failure_message("Entering the cluster", failed.value, cluster="blue")


@pytest.mark.parametrize("error", [
    UnavailableError("Lambda Invoke catalog: RequestTimeoutException: slow"),
    UnavailableError("PATCH /apis/x: Timeout: request did not complete within the allotted duration (504)"),
    ConfigurationError('Role joinery: ValidatingAdmissionPolicy "AccessDenied" refused it'),
    aws_error("InvalidRequestException", "The cluster is being updated", doing="EKS CreateAccessEntry"),
])  # fmt: skip
def test_words_of_somebody_else_choose_no_remedy(error: JoineryError) -> None:
    """A server that is slow, or a policy with an unlucky name, is not what a remedy is for."""
    assert failure_message("Writing Role joinery", error, cluster="blue") == f"Writing Role joinery: {error}"


def test_a_failure_without_a_known_remedy_says_what_failed_on_which_object() -> None:
    """And an error without words at least says its kind."""
    assert (
        failure_message("Writing Role joinery", UnavailableError("etcd (500)"), cluster="blue")
        == "Writing Role joinery: etcd (500)"
    )
    assert failure_message("", ZeroDivisionError(), cluster="blue") == "ZeroDivisionError"
