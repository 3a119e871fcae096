"""The installer against a real API server: what is written, by whom, and what a person's edit does."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.installer.controller import InstallerController
from joinery.controllers.installer.run import NOTHING_NOTED
from joinery.decisions.installation import shipped
from joinery.decisions.installation.objects import MARKED, ORDER, WEBHOOK
from joinery.gateways.account.gateway import Account
from joinery.gateways.bundles import InstallerGateways
from joinery.gateways.kubernetes.objects import KubernetesObjects
from joinery.objects.errors import ConfigurationError
from joinery.objects.kubernetes.references import Reference, collection, reference
from simulator.aws import InMemoryRegister
from simulator.clock import Clock
from simulator.cloud.account import InMemoryAccount
from simulator.kubernetes.objects import InMemoryObjects
from simulator.world import CLUSTER
from tests.controlplane.fixtures import PLANES, require
from tests.controlplane.objects import connect, uninstall
from tests.functional.installing import CONNECTION, URL, request
from tools.controlplane.plane import JOINERY, ControlPlane, running

pytestmark = pytest.mark.xdist_group("installer")
NODE_POOLS = Reference("CustomResourceDefinition", "nodepools.karpenter.sh")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server of its own: what is installed here is removed here, too."""
    require(*PLANES["api_server"])
    with running(tmp_path_factory.mktemp("installer"), schedules=False, controls=False) as started:
        yield started


def _no_member(role: str, secret: str) -> InstallerGateways:
    raise AssertionError(f"nobody is to take {role} for {secret}")


class Installer:
    """The installer of a release, with an account in memory and a real cluster."""

    def __init__(self, plane: ControlPlane) -> None:
        self.account = InMemoryAccount(CLUSTER)
        self.objects = KubernetesObjects(connect(plane))
        self.clock = Clock()

    def __call__(self, event: Any, *, version: str = "1.0.0") -> dict[str, Any]:
        account: Account = self.account
        gateways = InstallerGateways(
            account, lambda _: self.objects, lambda _: None, self.clock.now, InMemoryRegister(), _no_member
        )
        controller = InstallerController(gateways, CLUSTER, has_access_entries=True, version=version)
        controller.handle(event, Invocation("run-1", lambda: 300.0))
        return self.account.answers[-1][1]

    def succeeds(self, event: Any, *, version: str = "1.0.0") -> str:
        """Notes of a request that must succeed."""
        answer = self(event, version=version)
        assert answer["Status"] == "SUCCESS", answer
        return str(answer.get("Data", {}).get("Notes", ""))


@pytest.fixture
def installer(plane: ControlPlane) -> Iterator[Installer]:
    """In a cluster that has nothing of ours, and keeps nothing of it."""
    installer = Installer(plane)
    yield installer
    transport = connect(plane)
    uninstall(transport, *shipped.definitions())
    for kind in reversed(ORDER):
        for stored in json.loads(transport.get(collection(kind)))["items"]:
            metadata = stored["metadata"]
            if metadata["name"].startswith("joinery") or metadata["name"].endswith((".karpenter.sh", ".k8s.aws")):
                installer.objects.remove(Reference(kind, metadata["name"], metadata.get("namespace", "")))
    assert not versions(installer)


def versions(installer: Installer) -> dict[Reference, str]:
    """The resource version of everything that is shipped."""
    wanted = [*map(reference, (*shipped.definitions(), *shipped.rights()))]
    stored = {where: installer.objects.read(where) for where in wanted}
    return {where: found["metadata"]["resourceVersion"] for where, found in stored.items() if found}


def test_what_is_shipped_is_accepted_and_applied_again_changes_nothing(installer: Installer) -> None:
    """Every object, in its order; and a second time not one is written."""
    assert installer.succeeds(request("Create")) == NOTHING_NOTED
    before = versions(installer)
    assert len(before) == len(shipped.definitions()) + len(shipped.rights())
    assert installer.succeeds(request("Update")) == NOTHING_NOTED

    assert versions(installer) == before


def test_the_webhook_configuration_is_accepted_and_removed(installer: Installer) -> None:
    """With the door's address in it; and gone where none is wanted."""
    installer.succeeds(request("Create"))
    installer.succeeds(request("Create", CONNECTION))
    stored = installer.objects.read(WEBHOOK)
    assert stored
    assert all(one["clientConfig"]["url"].startswith(URL) for one in stored["webhooks"])
    version = stored["metadata"]["resourceVersion"]
    installer.succeeds(request("Update", CONNECTION))
    again = installer.objects.read(WEBHOOK)
    assert again
    assert again["metadata"]["resourceVersion"] == version

    installer.succeeds(request("Update", CONNECTION, Url=""))
    assert installer.objects.read(WEBHOOK) is None


def test_an_edit_of_a_person_is_told_and_kept(installer: Installer, plane: ControlPlane) -> None:
    """kubectl edit of a rule: the next release stops before it writes, its rollback does not, and force overwrites."""
    installer.succeeds(request("Create"))
    plane.kubectl(
        "patch", "clusterrole", "joinery", "--type=json", "-p", '[{"op": "replace", "path": "/rules", "value": []}]'
    )
    before = versions(installer)
    reason = installer(request("Update"), version="2.0.0")["Reason"]

    assert "ClusterRole joinery: .rules by kubectl-patch" in reason
    assert versions(installer) == before
    assert "ClusterRole joinery was left as it is: kubectl-patch changed it" in installer.succeeds(request("Update"))
    assert versions(installer) == before
    installer.succeeds(request("Update", ForceConflicts="true"), version="2.0.0")
    stored = installer.objects.read(MARKED)
    assert stored
    assert stored["rules"]


def test_what_a_person_adds_stays(installer: Installer, plane: ControlPlane) -> None:
    """A label is a field of its own."""
    installer.succeeds(request("Create"))
    plane.kubectl("label", "clusterrole", "joinery", "team=platform")
    assert installer.succeeds(request("Update"), version="2.0.0") == NOTHING_NOTED

    stored = installer.objects.read(MARKED)
    assert stored
    assert stored["metadata"]["labels"]["team"] == "platform"


def test_manifests_that_were_applied_by_hand_are_taken_over(installer: Installer, plane: ControlPlane) -> None:
    """The same fields with the same values conflict with nothing."""
    plane.kubectl(
        "apply", "--server-side", "-f", "manifests/crds", *(f"--filename=manifests/{one}" for one in shipped.RIGHTS)
    )

    assert installer.succeeds(request("Create")) == NOTHING_NOTED


def test_a_definition_s_newer_fields_survive_a_rollback(installer: Installer) -> None:
    """The definition of a newer release stays, and so do the objects' fields that only it knows."""
    newer = json.loads(json.dumps(next(one for one in shipped.definitions() if reference(one) == NODE_POOLS)))
    newer["metadata"]["annotations"] = {"joinery.dev/version": "2.0.0"}
    schema = newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["novelty"] = {"type": "string"}
    installer.objects.apply(newer, force=True)
    notes = installer.succeeds(request("Create"), version="1.0.0")

    assert "nodepools.karpenter.sh is of the newer release 2.0.0 and stays" in notes
    stored = installer.objects.read(NODE_POOLS)
    assert stored
    assert "novelty" in json.dumps(stored["spec"])


def test_uninstalling_leaves_definitions_and_nothing_else(installer: Installer) -> None:
    """Rights go, fences after them, definitions stay."""
    installer.succeeds(request("Create"))
    installer.succeeds(request("Create", CONNECTION))
    installer.succeeds(request("Delete", CONNECTION))
    installer.succeeds(request("Delete"))

    left = {where.kind for where in versions(installer)}
    assert left == {"CustomResourceDefinition"}
    assert installer.objects.read(WEBHOOK) is None


def test_the_first_node_pool_is_accepted(installer: Installer, until: Callable[[Callable[[], Any]], Any]) -> None:
    """By the definitions of the same release, once the API server serves them."""
    installer.succeeds(request("Create"))
    until(lambda: connects(installer))
    wanted = request("Create", CONNECTION, StarterNodePool="true", NodeInstanceProfile="profile-1")
    assert installer.succeeds(wanted) == NOTHING_NOTED

    assert installer.objects.read(Reference("NodePool", "default"))
    assert installer.objects.read(Reference("EC2NodeClass", "default"))
    installer.objects.remove(Reference("NodePool", "default"))
    installer.objects.remove(Reference("EC2NodeClass", "default"))


def connects(installer: Installer) -> bool:
    """Whether the definitions are served."""
    definitions = [installer.objects.read(reference(one)) for one in shipped.definitions()]
    conditions = [
        {c["type"]: c["status"] for c in (one or {}).get("status", {}).get("conditions", [])} for one in definitions
    ]
    return all(each.get("Established") == "True" for each in conditions)


# --- the gateway: in memory and over the API ---


@pytest.fixture(params=["memory", "api"])
def objects(request: pytest.FixtureRequest) -> Any:
    """Objects in memory, and those of a real API server."""
    if request.param == "memory":
        return InMemoryObjects(version=(1, 36))
    installer = request.getfixturevalue("installer")
    return installer.objects


ROLE = Reference("ClusterRole", "joinery-test")


def role(*verbs: str, **labels: str) -> dict[str, Any]:
    """A ClusterRole over pods."""
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}]
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    return {**kind, "metadata": {"name": ROLE.name, "labels": labels}, "rules": rules}


def test_an_administrator_is_known(objects: Any) -> None:
    """And Kubernetes' version is told."""
    assert objects.is_administrator()
    assert objects.server_version() >= (1, 30)


def test_an_object_is_applied_read_listed_and_removed(objects: Any) -> None:
    """By its kind and name, and by its label."""
    assert objects.read(ROLE) is None
    assert list(objects.apply(role("get", team="a"), dry_run=True)) == []
    assert objects.read(ROLE) is None
    assert list(objects.apply(role("get", team="a"))) == []
    stored = objects.read(ROLE)
    assert stored["rules"][0]["verbs"] == ["get"]
    assert [reference(one) for one in objects.labelled("ClusterRole", "team", "a")] == [ROLE]
    assert objects.labelled("ClusterRole", "team", "b") in ((), [])
    # What is no longer applied goes.
    assert list(objects.apply(role("list"))) == []
    assert "team" not in objects.read(ROLE)["metadata"].get("labels", {})
    assert objects.remove(ROLE)
    assert not objects.remove(ROLE)


def test_an_object_is_changed_in_place(objects: Any) -> None:
    """A merge patch: null takes a field away. What is not there is not made."""
    objects.remove(ROLE)
    assert not objects.patch(ROLE, {"metadata": {"annotations": {"a": "b"}}})
    objects.apply(role("get", team="a"))
    assert objects.patch(ROLE, {"metadata": {"annotations": {"a": "b"}, "labels": {"team": None}}})
    stored = objects.read(ROLE)["metadata"]
    assert (stored["annotations"], stored.get("labels") or {}) == ({"a": "b"}, {})


def test_an_object_is_made_once(objects: Any) -> None:
    """The second time it is left as it is."""
    assert objects.create(role("get"))
    assert not objects.create(role("list"))
    assert objects.read(ROLE)["rules"][0]["verbs"] == ["get"]
    objects.remove(ROLE)


def test_an_object_that_is_no_good_is_refused(installer: Installer) -> None:
    """The message names the object and the field."""
    with pytest.raises(ConfigurationError, match=r"joinery-test.*verbs"):
        installer.objects.apply(role())


def test_who_is_no_administrator_is_told_so(plane: ControlPlane) -> None:
    """The doors' group may not do everything."""
    assert not KubernetesObjects(connect(plane, JOINERY)).is_administrator()
