"""`joinery uninstall` where a stack serves several clusters: the home last, and a member without queues of its own."""

from typing import Any

import pytest

from joinery.decisions.installation.objects import LEASE, MARKED, WEBHOOK
from joinery.decisions.installation.removal import Nodes
from joinery.gateways.aws import error
from joinery.objects.errors import ConfigurationError
from joinery.objects.settings import in_force
from joinery_cli.uninstall.nodes import say_what_becomes_of_nodes, stop_buying, stop_everything
from joinery_cli.uninstall.steps import go_through
from simulator.kubernetes.objects import InMemoryObjects
from tests.cli.test_uninstall import MAPPINGS, STACK, Account, place_of


class MemberAccount(Account):
    """With the stack of a member, whose home has its item in the register. ``settings``: as the item says them."""

    def __init__(self, settings: str = "") -> None:
        super().__init__()
        self.on -= set(MAPPINGS.values())
        self.settings: str | None = settings

    def _list_stack_resources(self, StackName: str) -> Any:  # noqa: N803
        listed = super()._list_stack_resources(StackName)["StackResourceSummaries"]
        return {"StackResourceSummaries": [one for one in listed if one["ResourceType"].endswith("Schedule")]}

    def _describe_stacks(self, StackName: str) -> Any:  # noqa: N803
        (stack,) = super()._describe_stacks(StackName)["Stacks"]
        home = {"ParameterKey": "Home", "ParameterValue": "joinery-home"}
        return {"Stacks": [{**stack, "Parameters": [*stack["Parameters"], home]}]}

    def _describe_stack_resource(self, StackName: str, LogicalResourceId: str) -> Any:  # noqa: N803
        assert (StackName, LogicalResourceId) == ("joinery-home", "Table")
        return {"StackResourceDetail": {"PhysicalResourceId": "table-1"}}

    def _get_item(self, TableName: str, Key: Any, ConsistentRead: bool) -> Any:  # noqa: N803
        assert (TableName, Key) == ("table-1", {"pk": {"S": "cluster#blue"}})
        return {} if self.settings is None else {"Item": {**Key, "settings": {"S": self.settings}}}

    def _update_item(self, ExpressionAttributeValues: Any, **_: Any) -> Any:  # noqa: N803
        self.settings = ExpressionAttributeValues[":settings"]["S"]
        return {}


class HomeAccount(Account):
    """With the stack of a home. ``members``: the clusters that it serves."""

    def __init__(self, *members: str) -> None:
        super().__init__()
        self.members = members

    def _describe_stacks(self, StackName: str = "") -> Any:  # noqa: N803
        if StackName:
            (stack,) = super()._describe_stacks(StackName)["Stacks"]
            settings = {"ParameterKey": "Settings", "ParameterValue": "MaxLaunches=3; Members=true"}
            return {"Stacks": [{**stack, "Parameters": [*stack["Parameters"], settings]}]}
        given = [{"Home": STACK, "ClusterName": name} for name in self.members] + [{"Home": "other"}, {}]
        stacks = [
            {
                "StackStatus": "UPDATE_COMPLETE",
                "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in one.items()],
            }
            for one in given
        ]
        return {"Stacks": stacks}


def test_a_home_goes_after_its_members(cluster: InMemoryObjects) -> None:
    """It is refused before anything is changed: CloudFormation would refuse it when its nodes have ended."""
    account = HomeAccount("green", "red")
    with pytest.raises(ConfigurationError, match=r"home of green, red: .*make undeploy CLUSTER=green NODES=\.\.\."):
        say_what_becomes_of_nodes(place_of(account, cluster))
    assert account.calls == []
    assert say_what_becomes_of_nodes(place_of(HomeAccount(), cluster)) == "retire"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "SwitchedOff=provisioning,disruption"),
        ("Canary=off; SwitchedOff=disruption, catalog", "Canary=off; SwitchedOff=disruption,catalog,provisioning"),
    ],
)
def test_a_member_s_home_stops_buying_for_it(cluster: InMemoryObjects, before: str, after: str) -> None:
    """The home's queues go on for others, and what is off for this one stands in the register."""
    account = MemberAccount(before)
    said = stop_buying(place_of(account, cluster))
    assert said == "its home no longer does provisioning, disruption for it"
    assert account.settings == after
    assert in_force(after)
    assert account.on == {"s2"}


def test_a_member_s_home_drains_until_the_end(cluster: InMemoryObjects) -> None:
    """Lifecycle and interruption are switched off when no node is left to drain."""
    account = MemberAccount()
    stop_buying(place_of(account, cluster))
    stop_everything(place_of(account, cluster))
    assert account.settings == "SwitchedOff=provisioning,disruption,interruption,lifecycle"
    assert account.on == set()


def test_a_member_that_is_registered_no_more_is_left_at_once(cluster: InMemoryObjects) -> None:
    """A command that is given again finds the rest."""
    account = MemberAccount()
    account.settings = None
    assert stop_buying(place_of(account, cluster)) == "its home serves it no more"


def test_a_member_whose_registration_ends_meanwhile_is_left_at_once(cluster: InMemoryObjects) -> None:
    """Whoever else deletes its stack has the installer remove the item, between two calls of ours."""

    class Removed(MemberAccount):
        def _update_item(self, ExpressionAttributeValues: Any, **_: Any) -> Any:  # noqa: N803
            raise error("ConditionalCheckFailedException", "The conditional request failed", doing="UpdateItem")

    assert stop_buying(place_of(Removed(), cluster)) == "its home serves it no more"


@pytest.mark.parametrize("nodes", Nodes)
def test_a_member_is_removed_like_any_other_cluster(cluster: InMemoryObjects, nodes: Nodes) -> None:
    """All steps, by the same command; the bucket is its home's."""
    account = MemberAccount()
    done = go_through(place_of(account, cluster, nodes=nodes))
    assert {one.step: one.result for one in done}["stack"] == "removed"
    assert not account.on


@pytest.fixture
def cluster() -> InMemoryObjects:
    """An installation without nodes."""
    cluster = InMemoryObjects()
    for reference in (MARKED, WEBHOOK, LEASE):
        cluster.put({"kind": reference.kind, "metadata": {"name": reference.name, "namespace": reference.namespace}})
    return cluster
