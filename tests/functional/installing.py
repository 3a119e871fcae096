"""What tests of the installer share: requests as CloudFormation sends them, and what it was answered."""

from typing import Any

from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.installer.controller import InstallerController
from joinery.objects.settings import SETTINGS
from simulator.world import CLUSTER, World
from tests.functional.fuse import Fuse, wired_installer

STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/joinery-simulated/4b1c0f30"
OTHER_STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/other/77777777"
PREPARATION, CONNECTION = "Preparation", "Connection"
#: The webhook's address as the stack knows it: without the token.
URL = "https://door.example/"


def request(kind: str, name: str = PREPARATION, *, stack: str = STACK, physical_id: str = "", **given: str) -> Any:
    """What CloudFormation sends. ``given``: settings, and properties beside the cluster's name."""
    # What needs rights of its own is on, so that all that is shipped is applied.
    settings = {"PodDeletionCost": "true", "OnDemandShares": "true"} | {
        key: value for key, value in given.items() if key in SETTINGS
    }
    properties = {"ClusterName": CLUSTER, "Settings": "; ".join(f"{key}={value}" for key, value in settings.items())}
    properties |= {"Url": URL} if name == CONNECTION else {}
    properties |= {key: value for key, value in given.items() if key not in SETTINGS}
    sent = {
        "RequestType": kind,
        "ResourceType": f"Custom::Joinery{name}",
        "LogicalResourceId": name,
        "StackId": stack,
        "RequestId": "request-1",
        "ResponseURL": "https://answers.example/1?signature",
        "ResourceProperties": properties,
    }
    return sent | ({"PhysicalResourceId": physical_id or f"{CLUSTER}/{name.lower()}"} if kind != "Create" else {})


def answered(
    world: World, event: Any, *, has_access_entries: bool = True, version: str = "1.0.0", fuse: Fuse | None = None
) -> Any:
    """What CloudFormation is told by the installer of a release, whose calls go through the fuse."""
    gateways = wired_installer(world.installer_gateways, (fuse or Fuse()).through)
    controller = InstallerController(gateways, CLUSTER, has_access_entries=has_access_entries, version=version)
    begun = world.clock.now()
    controller.handle(event, Invocation("run-1", lambda: 300 - (world.clock.now() - begun).total_seconds()))
    url, body = world.account.answers[-1]
    assert url == event["ResponseURL"]
    return body


def succeeded(world: World, event: Any, *, version: str = "1.0.0", fuse: Fuse | None = None) -> Any:
    """The same of a request that must succeed: the data of the answer."""
    body = answered(world, event, version=version, fuse=fuse)
    assert body["Status"] == "SUCCESS", body
    return body.get("Data", {})


def refused(world: World, event: Any, *, version: str = "1.0.0") -> str:
    """The same of a request that must fail: the reason."""
    body = answered(world, event, version=version)
    assert body["Status"] == "FAILED"
    return str(body["Reason"])
