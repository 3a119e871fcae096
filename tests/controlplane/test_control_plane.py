"""The control plane that other tests build upon is a real one, with RBAC on."""

import json

import pytest

from tools.controlplane.plane import JOINERY, ControlPlane


def test_an_api_server_answers_with_its_version(api_server: ControlPlane) -> None:
    """The API server is the Kubernetes release that go.mod pins."""
    assert json.loads(api_server.kubectl("get", "--raw", "/version"))["gitVersion"].startswith("v1.")


def test_joinery_may_do_nothing_until_a_role_says_so(api_server: ControlPlane) -> None:
    """The user joinery is known but has no rights of its own: tests run under the roles we ship."""
    with pytest.raises(RuntimeError, match='User "joinery" cannot list resource "secrets"'):
        api_server.kubectl("get", "secrets", user=JOINERY)


def test_the_scheduler_says_that_a_pod_fits_nowhere(control_plane: ControlPlane) -> None:
    """Without nodes, the real scheduler marks a pod Unschedulable."""
    control_plane.kubectl("run", "lonely", "--image=none")
    control_plane.kubectl("wait", "pod/lonely", "--for=condition=PodScheduled=false", "--timeout=30s")
    pod = json.loads(control_plane.kubectl("get", "pod", "lonely", "-o", "json"))
    control_plane.kubectl("delete", "pod", "lonely", "--grace-period=0", "--force")
    assert [condition["reason"] for condition in pod["status"]["conditions"]] == ["Unschedulable"]
