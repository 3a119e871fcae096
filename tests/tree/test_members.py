"""A stack that is the home of other clusters has what members need, and one without members nothing of it."""

from simulator.iam.policies import Request, is_allowed
from tests.tree.resources import RESOURCES, TEMPLATE
from tools.cloudformation import Stack
from tools.roles import statements_of

ALONE = Stack({"ClusterName": "blue"}, {})
HOME = Stack({"ClusterName": "blue", "Settings": "Members=true"}, {"Table.Arn": "TABLE", "InstallerFunction.Arn": "FN"})


def _register(action: str, key: str) -> Request:
    return Request(f"dynamodb:{action}", "TABLE", {"dynamodb:LeadingKeys": [key]})


def test_a_stack_without_members_has_no_right_that_it_would_not_have_otherwise() -> None:
    """Nothing about the register, about others' roles and about others' instances."""
    more = {
        door: {one.name.partition(",")[0] for one in statements} - {one.name.partition(",")[0] for one in alone}
        for (door, statements), alone in zip(statements_of(HOME).items(), statements_of(ALONE).values(), strict=True)
    }
    assert more == {
        "webhook": {"MembersWebhookPolicy"},
        "provisioning": {"RegisterPolicy"},
        "interruption": {"RegisterPolicy", "MembersInstancesPolicy"},
        "expiration": {"RegisterPolicy"},
        "disruption": {"RegisterPolicy"},
        "lifecycle": {"RegisterPolicy"},
        "catalog": set(),
        "installer": {"MembersInstallerPolicy"},
    }


def test_only_the_installer_writes_the_register() -> None:
    """A door that is taken over points no other cluster to other roles; of the table it writes its marks alone."""
    function = {"lambda:SourceFunctionArn": ["FN"]}
    for door, statements in statements_of(HOME).items():
        for action in ("PutItem", "DeleteItem", "BatchWriteItem"):
            asked = _register(action, "cluster#green")
            asked = Request(asked.action, asked.resource, {**asked.context, **function})
            is_its_own = door == "installer" and action != "BatchWriteItem"
            assert is_allowed(statements, asked) == is_its_own, (door, action)


def test_the_register_is_all_that_is_read_item_by_item() -> None:
    """Of the functions that enter a cluster."""
    for door in ("provisioning", "interruption", "expiration", "disruption", "lifecycle"):
        statements = statements_of(HOME)[door]
        assert is_allowed(statements, _register("GetItem", "cluster#green"))
        assert not is_allowed(statements, _register("GetItem", "offering#m7g.large#a#spot"))


def test_the_installer_becomes_the_installer_of_its_own_members_alone() -> None:
    """By the tag of the role, and only in its function."""
    statements = statements_of(HOME)["installer"]
    role = "arn:aws:iam::123456789012:role/joinery-green-InstallerRole"
    its_own = {"iam:ResourceTag/joinery.dev/home": ["joinery"], "lambda:SourceFunctionArn": ["FN"]}
    assert is_allowed(statements, Request("sts:AssumeRole", role, its_own))
    for key, other in (("iam:ResourceTag/joinery.dev/home", "joinery-red"), ("lambda:SourceFunctionArn", "OTHER")):
        assert not is_allowed(statements, Request("sts:AssumeRole", role, {**its_own, key: [other]}))
        assert not is_allowed(statements, Request("sts:AssumeRole", role, {**its_own, key: []}))


def test_a_queue_s_messages_come_one_by_one_where_there_are_members() -> None:
    """A run serves one cluster: in a batch of several clusters one would wait for another."""
    for stack, size in ((ALONE, 10), (HOME, 1)):
        for name in ("ProvisioningBells", "LifecycleBells", "DisruptionBells"):
            assert stack.resources[name]["Properties"]["BatchSize"] == size


def test_what_members_import_is_exported_by_the_stack_s_name() -> None:
    """Only by a home: an export that is imported keeps its stack from being deleted, and its value from changing."""
    exported = {name: one for name, one in TEMPLATE["Outputs"].items() if "Export" in one}
    assert len(exported) == 16
    for name, one in exported.items():
        assert one["Condition"] == "HasMembers"
        assert one["Export"] == {"Name": {"Fn::Sub": f"${{AWS::StackName}}-{name}"}}
    assert {name for name, one in RESOURCES.items() if one.get("Condition") == "HasMembers"} == {
        "RegisterPolicy", "MembersWebhookPolicy", "MembersInstancesPolicy", "MembersInstallerPolicy",
    }  # fmt: skip
