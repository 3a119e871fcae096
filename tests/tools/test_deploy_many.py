"""`make deploy` for several clusters: which of them is the home, what each is given, and what a failure stops."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from joinery import __version__
from tools.deploy_many import Arrangement, Stacks, arranged, clusters_in, stacks_of
from tools.deploy_plan import Account, plan_member, planned_for
from tools.deploy_settings import RefusedError
from tools.template import MEMBER

CLUSTER = {"version": "1.33", "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"}}
#: Blue serves green; red has a stack of its own.
STACKS = Stacks(
    names={"blue": "joinery-blue", "green": "joinery-green", "red": "joinery-red"},
    states={},
    settings={"blue": "Members=true; KmsKeyArn=arn:aws:kms:eu-west-1:1:key/1", "green": "", "red": ""},
    homes={"green": "joinery-blue"},
    versions={"blue": __version__, "green": __version__, "red": __version__},
)
ACCOUNT = Account(cluster=CLUSTER, concurrency=1000, stacks=STACKS)
NEW = replace(ACCOUNT, stacks=Stacks())


def tagged(key: str, value: str) -> Iterable[str]:
    """The clusters with a tag."""
    return {("joinery", "yes"): ["red", "green", "blue"]}.get((key, value), [])


def planned(clusters: str, account: Account, member_of: str = "", **given: str) -> Any:
    """All that would be deployed, where every cluster is like that account's."""
    return planned_for(clusters, member_of, given, lambda _: account, tagged)


def test_clusters_are_named_by_name_and_by_tag() -> None:
    """Each once, in the order of the list; those of a tag by name."""
    assert clusters_in("blue, green", tagged) == (["blue", "green"], True)
    assert clusters_in("green,tag:joinery=yes", tagged) == (["green", "blue", "red"], True)
    assert clusters_in("tag:joinery=yes", tagged) == (["blue", "green", "red"], False)


@pytest.mark.parametrize(
    ("text", "said"),
    [("tag:joinery", "form tag:key=value"), ("tag:a=b", "no EKS cluster .* has the tag a=b"), (" ,", "no cluster")],
)
def test_a_list_that_names_nothing_is_refused(text: str, said: str) -> None:
    """Before anything is built."""
    with pytest.raises(RefusedError, match=said):
        clusters_in(text, tagged)


def test_a_cluster_by_itself_has_a_stack_of_its_own() -> None:
    """As ever: nothing makes it a home."""
    assert arranged(["blue"], Stacks()) == Arrangement("blue")
    assert planned("blue", NEW).home.parameters == {"ClusterName": "blue", "Settings": ""}


def test_the_first_of_several_new_clusters_is_the_home() -> None:
    """And the others its members, in the order in which they are named."""
    assert arranged(["blue", "green", "red"], Stacks()) == Arrangement("blue", ("green", "red"))


def test_what_has_a_stack_of_its_own_is_the_home_wherever_it_is_named() -> None:
    """It is there already, and so are its nodes."""
    stacks = Stacks({"red": "joinery-red"})
    assert arranged(["green", "red"], stacks) == Arrangement("red", ("green",))
    with pytest.raises(RefusedError, match="make undeploy CLUSTER=green NODES=keep"):
        arranged(["red", "green"], Stacks({"red": "joinery-red", "green": "joinery-green"}))


def test_a_member_by_itself_is_deployed_without_its_home() -> None:
    """One by one: the home's code is of this release already, or it is refused."""
    assert arranged(["green"], STACKS) == Arrangement("blue", ("green",), deploys_home=False)
    assert planned("green", ACCOUNT).home is None
    older = replace(STACKS, versions={"blue": "0.0.9"})
    with pytest.raises(RefusedError, match="is of release 0.0.9, .* deploy the home first .make deploy CLUSTER=blue"):
        planned("green", replace(ACCOUNT, stacks=older))


def test_a_new_cluster_joins_the_home_that_is_said() -> None:
    """The home is deployed only if it has no members yet, and then with what it has."""
    assert arranged(["pink"], STACKS, member_of="blue") == Arrangement("blue", ("pink",), deploys_home=False)
    first = replace(STACKS, settings={"blue": "MaxLaunches=3"}, homes={}, names={"blue": "joinery-blue"})
    both = planned("pink", replace(ACCOUNT, stacks=first), "blue", Mode="observe", MaxLaunches="7")
    assert both.home.parameters == {"ClusterName": "blue", "Settings": "MaxLaunches=3; Members=true"}
    assert both.members["pink"].parameters["Mode"] == "observe"
    assert both.members["pink"].parameters["Settings"] == "MaxLaunches=7"


@pytest.mark.parametrize(
    ("named", "stacks", "member_of", "is_first_named", "said"),
    [
        (["green"], Stacks(), "", False, "There is no home yet: name it first"),
        (["pink"], STACKS, "green", True, "a member serves no others"),
        (["pink"], STACKS, "white", True, "has no stack that could be a home"),
        (["green", "red"], STACKS, "", True, "several homes: red, blue"),
    ],
)
def test_what_is_not_clear_is_refused(
    named: list[str], stacks: Stacks, member_of: str, is_first_named: bool, said: str
) -> None:
    """A cluster that changes its home would have to be removed and installed."""
    with pytest.raises(RefusedError, match=said):
        arranged(named, stacks, member_of=member_of, is_first_named=is_first_named)


def test_what_is_shared_is_said_of_the_home_alone() -> None:
    """All else is said of each cluster that is named."""
    both = planned("blue,green", NEW, SubnetIds="subnet-1", SecurityGroupIds="sg-1", LogLevel="DEBUG", Mode="observe")
    assert both.home.parameters == {
        "ClusterName": "blue", "SubnetIds": "subnet-1", "SecurityGroupIds": "sg-1", "Mode": "observe",
        "Settings": "LogLevel=DEBUG; Members=true",
    }  # fmt: skip
    assert both.members["green"].parameters == {
        "ClusterName": "green", "Home": "joinery-blue", "Mode": "observe", "Settings": "",
    }  # fmt: skip
    assert both.members["green"].template == MEMBER.name


def test_what_is_shared_is_not_said_of_a_member_alone() -> None:
    """It would be left out without a word."""
    with pytest.raises(RefusedError, match="LogLevel: that is said of the home, .* make deploy CLUSTER=blue"):
        planned("green", ACCOUNT, LogLevel="DEBUG")


def test_a_new_member_has_its_home_s_key_boundary_and_path() -> None:
    """And none of its home's other settings."""
    home = {
        "KmsKeyArn": "arn:aws:kms:eu-west-1:1:key/1",
        "RolePath": "/team/",
        "Members": "true",
        "NodeRepair": "reboot",
    }
    made = plan_member("pink", "blue", ACCOUNT, {}, home)
    assert made.parameters["Settings"] == "KmsKeyArn=arn:aws:kms:eu-west-1:1:key/1; RolePath=/team/"
    assert plan_member("pink", "blue", ACCOUNT, {"RolePath": "/"}, home).parameters["Settings"].endswith("RolePath=/")


def test_which_way_the_webhook_is_called_is_the_home_s_to_say() -> None:
    """A member may be called not at all."""
    given = {"WebhookEndpoint": "private", "WebhookVpcEndpointId": "vpce-1"}
    both = planned("blue,green", NEW, **given)
    assert "WebhookEndpoint=private" in both.home.parameters["Settings"]
    assert both.members["green"].parameters["Settings"] == ""
    assert planned("green", ACCOUNT, WebhookEndpoint="none").members["green"].parameters["Settings"] == (
        "KmsKeyArn=arn:aws:kms:eu-west-1:1:key/1; WebhookEndpoint=none"
    )


def test_one_member_that_would_fail_stops_no_other() -> None:
    """The home and the others are deployed. One that is deployed by itself is refused at once."""
    accounts = {"blue": NEW, "green": replace(NEW, cluster=None), "red": NEW}
    both = planned_for("blue,green,red", "", {}, accounts.__getitem__, tagged)
    assert list(both.members) == ["red"]
    assert "There is no EKS cluster green" in both.refused["green"]
    with pytest.raises(RefusedError, match="There is no EKS cluster green"):
        planned_for("green", "", {}, lambda name: replace(ACCOUNT, cluster=None), tagged)


def test_a_home_that_would_fail_stops_all() -> None:
    """Nothing could serve the others."""
    accounts = {"blue": replace(NEW, cluster=None), "green": NEW}
    with pytest.raises(RefusedError, match="There is no EKS cluster blue"):
        planned_for("blue,green", "", {}, accounts.__getitem__, tagged)


def test_stacks_are_known_by_their_parameters() -> None:
    """Members by the parameter Home; a stack that is being deleted is none any more."""
    described: list[dict[str, Any]] = [
        {
            "StackName": "joinery-green", "StackStatus": "CREATE_COMPLETE",
            "Parameters": [
                {"ParameterKey": "ClusterName", "ParameterValue": "green"},
                {"ParameterKey": "StarterNodePool", "ParameterValue": "false"},
                {"ParameterKey": "Settings", "ParameterValue": "NodeRepair=reboot"},
                {"ParameterKey": "Home", "ParameterValue": "joinery-blue"},
            ],
            "Outputs": [{"OutputKey": "Version", "OutputValue": "1.0.0"}],
        },
        {"StackName": "other", "StackStatus": "UPDATE_COMPLETE"},
        {
            "StackName": "joinery-red", "StackStatus": "DELETE_FAILED",
            "Parameters": [{"ParameterKey": "StarterNodePool", "ParameterValue": "false"}],
        },
    ]  # fmt: skip
    assert stacks_of(described) == Stacks(
        names={"green": "joinery-green"},
        states={"joinery-green": "CREATE_COMPLETE", "other": "UPDATE_COMPLETE", "joinery-red": "DELETE_FAILED"},
        settings={"green": "NodeRepair=reboot"},
        homes={"green": "joinery-blue"},
        versions={"green": "1.0.0"},
    )
