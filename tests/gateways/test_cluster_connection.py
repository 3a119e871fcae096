"""Who the functions believe to be the API server, and who it believes them to be, over real TLS."""

import pytest

from joinery.gateways.kubernetes.connection import connection
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.errors import DeniedError, UnavailableError
from tests.gateways.clusters import like_eks
from tools.controlplane.plane import ControlPlane

PODS = "/api/v1/pods?limit=1"


def test_the_functions_reach_a_server_by_its_authority_and_their_token(joinery_api_server: ControlPlane) -> None:
    """Without the official client, which no layer has."""
    assert Transport(like_eks(joinery_api_server)).get(PODS).startswith(b'{"kind":"PodList"')


def test_a_server_that_nobody_vouches_for_is_not_asked(joinery_api_server: ControlPlane) -> None:
    """Without the cluster's authority its certificate is unknown, and the handshake ends before a token is sent."""
    stranger = connection(joinery_api_server.server, authorization=lambda: "Bearer joinery-token")
    with pytest.raises(UnavailableError, match="certificate verify failed"):
        Transport(stranger, sleep=lambda _: None).get(PODS)


def test_a_client_without_a_token_is_nobody(joinery_api_server: ControlPlane) -> None:
    """It is refused as such, and not tried again."""
    nobody = connection(joinery_api_server.server, authority=joinery_api_server.certificate.read_text())
    with pytest.raises(DeniedError, match="system:anonymous"):
        Transport(nobody).get(PODS)
