"""What is different where a stack serves several clusters: a home goes last, and a member's functions are its home's.

A member has no queues that could be let go. What is to end for it is switched off in the register, which the home's
functions read at the start of each run.
"""

from collections.abc import Iterator

from joinery.gateways.memory.register import key_of
from joinery.objects.errors import ConfigurationError, JoineryError
from joinery.objects.stack_settings import pairs_of, written
from joinery_cli.doctor.site import parameters_of
from joinery_cli.uninstall.place import Place

#: The parameter of a member's stack that names its home's, and the setting of a home's.
HOME, MEMBERS = "Home", "Members=true"
_SETTING = "SwitchedOff"
#: Between reading the item and writing it (DynamoDB API UpdateItem).
_WAS_REMOVED = "ConditionalCheckFailedException"


def refuse_a_home(place: Place) -> None:
    """Raise ``ConfigurationError`` while the stack serves other clusters: CloudFormation would refuse to delete it,
    when nodes have ended and functions are off.
    """
    if MEMBERS not in place.parameters().get("Settings", ""):
        return
    if members := sorted(_members(place)):
        first = members[0]
        raise ConfigurationError(
            f"stack {place.stack} is the home of {', '.join(members)}: remove them first (make undeploy "
            f"CLUSTER={first} NODES=...). Nothing was changed"
        )


def _members(place: Place) -> Iterator[str]:
    for stack in place.aws.ask("cloudformation", "describe_stacks")["Stacks"]:
        given = parameters_of(stack)
        if given.get(HOME) == place.stack and stack["StackStatus"] != "DELETE_COMPLETE":
            yield given.get("ClusterName", "")


def switch_off(place: Place, doors: tuple[str, ...]) -> str:
    """Switch these functions off for a member. What became of it, in words; empty for a stack of its own."""
    home = place.parameters().get(HOME, "")
    if not home:
        return ""
    described = place.aws.ask("cloudformation", "describe_stack_resource", StackName=home, LogicalResourceId="Table")
    its_item = {"TableName": described["StackResourceDetail"]["PhysicalResourceId"], "Key": key_of(place.cluster)}
    item = place.aws.ask("dynamodb", "get_item", **its_item, ConsistentRead=True).get("Item")
    if item is None:
        return "its home serves it no more"
    try:
        place.aws.ask(
            "dynamodb", "update_item", **its_item,
            UpdateExpression="SET settings = :settings", ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":settings": {"S": _without(item.get("settings", {}).get("S", ""), doors)}},
        )  # fmt: skip
    except JoineryError as error:
        if error.code == _WAS_REMOVED:
            return "its home serves it no more"
        raise
    return f"its home no longer does {', '.join(doors)} for it"


def _without(text: str, doors: tuple[str, ...]) -> str:
    """A member's settings with these functions switched off, besides those that are off already."""
    settings = pairs_of(text)
    off = (name.strip() for name in settings.get(_SETTING, "").split(","))
    names = dict.fromkeys([*filter(None, off), *doors])
    return written({**settings, _SETTING: ",".join(names)})
