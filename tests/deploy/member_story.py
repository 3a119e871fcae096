"""A home and a member, told once: blue's stack serves green, whose pods wait, run and lose a node; then green leaves.

Blue has an API server alone, so nothing happens in it. Green's control plane is whole.
"""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from joinery.decisions.installation.requests import stack_name
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.snapshot import Snapshot
from tests.deploy.living import Living, all_run
from tests.deploy.story import (
    JOINERY,
    PODS,
    SMALL_SPOT,
    everything,
    is_replaced,
    start_pods,
    stop_pods,
    uninstalling,
    wait_for_catalogue,
    warn,
)
from tools.standin.stacks import Stack, StackError
from tools.standin.world import StandIn
from tools.template import BUILD, MEMBER

HOME, GREEN = "blue", "green"


@dataclass
class MemberStory:
    """What was seen. ``home_alone``: account and green, before green was a member; ``after``: when it had left.

    ``item``: the register's of green, as it was deployed, and ``left`` when it had left. ``first``, ``second``: when
    all pods ran, at the beginning and after the interruption of ``interrupted``. ``home_deleted``,
    ``home_uninstalled``: what was said about leaving blue, while green was its member. ``uninstalled``: what the
    member's uninstallation printed.
    """

    standin: StandIn
    home: Stack
    member: Stack
    seconds: dict[str, float] = field(default_factory=dict)
    statuses: list[str] = field(default_factory=list)
    home_alone: frozenset[str] = frozenset()
    item: dict[str, str] = field(default_factory=dict)
    first: Snapshot | None = None
    interrupted: NodeClaim | None = None
    second: Snapshot | None = None
    home_deleted: str = ""
    home_uninstalled: str = ""
    uninstalled: dict[str, Any] = field(default_factory=dict)
    after: frozenset[str] = frozenset()
    left: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Note how long something takes."""
        began = time.monotonic()
        yield
        self.seconds[f"many clusters: {part}"] = time.monotonic() - began


def tell(standin: StandIn) -> MemberStory:
    """All of it."""
    story = MemberStory(standin, Stack(standin, stack_name(HOME)), Stack(standin, stack_name(GREEN)))
    living = Living(standin)
    with story.timed("deploying the home"):
        story.home.deploy({"ClusterName": HOME, "Settings": "WebhookConcurrency=2; Members=true"})
        wait_for_catalogue(standin, story.home)
    story.home_alone = everything(standin)
    with story.timed("deploying the member"):
        given = {"ClusterName": GREEN, "Home": story.home.name, "StarterNodePool": "true", "Settings": "MaxLaunches=7"}
        story.member.deploy(given, BUILD / MEMBER.name)
    story.statuses = [story.home.status, story.member.status]
    story.item = _item(story)
    standin.plane.kubectl("patch", "nodepool", "default", "--type=json", "-p", json.dumps(SMALL_SPOT))
    with story.timed("from pending pods of the member to running ones"):
        start_pods(living)
        story.first, _ = living.until(all_run(PODS))
    claim = story.interrupted = story.first.node_claims[0]
    with story.timed("from a spot warning about the member to the replacement"):
        warn(standin, story.home, claim)
        story.second, _ = living.until(is_replaced(claim))
    _leave_home_too_early(story)
    with story.timed("uninstalling the member, with every node drained"):
        story.uninstalled = uninstalling(standin, living, "--nodes=retire", "--crds=delete")
    stop_pods(living)
    story.after, story.left = everything(standin), _item(story)
    return story


def _leave_home_too_early(story: MemberStory) -> None:
    """While green is its member."""
    try:
        story.home.delete()
    except (ClientError, StackError) as error:
        story.home_deleted = str(error)
    command = [str(JOINERY), "uninstall", HOME, "--nodes=retire", "--region", "us-east-1"]
    environment = {**os.environ, **story.standin.environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    story.home_uninstalled = f"{done.returncode} {done.stdout}{done.stderr}"


def _item(story: MemberStory) -> dict[str, str]:
    """Green's in the register; empty where there is none."""
    cloudformation, dynamodb = (story.standin.client(service) for service in ("cloudformation", "dynamodb"))
    table = cloudformation.describe_stack_resource(StackName=story.home.name, LogicalResourceId="Table")
    name = table["StackResourceDetail"]["PhysicalResourceId"]
    answer = dynamodb.get_item(TableName=name, Key={"pk": {"S": f"cluster#{GREEN}"}})
    return {key: value["S"] for key, value in answer.get("Item", {}).items()}
