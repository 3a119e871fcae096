"""IAM both ways: the template's policies allow whatever a door asks of AWS, and nothing that no door asks.

The policies are evaluated as IAM does, with actions, resources and conditions. What the doors ask is recorded while
they work (``story``), and not what somebody has written down.
"""

from collections.abc import Iterator, Mapping

import pytest

from simulator.awsserver.account import ACCOUNT, REGION
from simulator.iam.policies import Request, Statement, is_allowed, is_like
from simulator.serve import BUCKET, CLUSTER, ROLE, TABLE
from tests.rights import story
from tools.cloudformation import Stack
from tools.roles import statements_of, statements_of_member
from tools.template import MEMBER

pytestmark = pytest.mark.xdist_group("rights")


def _queue(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"


#: The stack whose resources are those of the story.
STACK = Stack(
    parameters={"ClusterName": CLUSTER, "Settings": story.SETTINGS},
    names={
        "Bucket.Arn": f"arn:aws:s3:::{BUCKET}",
        "Table.Arn": f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{TABLE}",
        "ProvisioningQueue.Arn": _queue("provisioning.fifo"),
        "LifecycleQueue.Arn": _queue("lifecycle.fifo"),
        "DisruptionQueue.Arn": _queue("disruption.fifo"),
        "InterruptionQueue.Arn": _queue("interruption"),
        "WebhookSecret": story.SECRET_ARN,
        "NodeRole": ROLE,
        "NodeRole.Arn": f"arn:aws:iam::{ACCOUNT}:role/{ROLE}",
        "NodeInstanceProfile.Arn": f"arn:aws:iam::{ACCOUNT}:instance-profile/{story.NODES_PROFILE}",
        "CatalogFunction.Arn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{story.CATALOG_FUNCTION}",
        "InstallerFunction.Arn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:installer",
        "InstallerRole": "installer",
        "InstallerRole.Arn": story.INSTALLER,
    },
)
ROLES = statements_of(STACK)
#: The roles that a member of that cluster would have, by the door that takes them.
MEMBER_ROLES = {
    name.removesuffix("Role").removesuffix("Function").lower(): statements
    for name, statements in statements_of_member(Stack(STACK.parameters, STACK.names, MEMBER)).items()
}
#: What the functions ask for in their own names for members too: the stack's own queues, bucket, table and log.
OF_THE_HOME = ("sqs:", "s3:", "dynamodb:", "logs:", "lambda:", "pricing:", "savingsplans:")
#: What Lambda does in the name of a role: it polls the queue (Lambda Developer Guide, "Using Lambda with Amazon SQS"),
#: writes the log, and sends on what failed for good ("Capturing records of Lambda asynchronous invocations").
BY_LAMBDA = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "logs:CreateLogStream"}
BY_LAMBDA |= {"logs:PutLogEvents"}
SENT_ON = "InstallerPolicy, statement TellOfAFailure"
Needed = Mapping[str, list[Request]]


@pytest.fixture(scope="module")
def needed() -> Needed:
    """What each door has asked for. Lambda gives each call of the installer's function the function's ARN."""
    with pytest.MonkeyPatch.context() as environment:
        recorded = story.told(environment).needed
    function = {"lambda:SourceFunctionArn": [STACK.names["InstallerFunction.Arn"]]}
    own = [Request(one.action, one.resource, {**one.context, **function}) for one in recorded["installer"]]
    return {**recorded, "installer": own}


def test_every_door_may_do_what_it_does(needed: Needed) -> None:
    """A right that is lacking is a door that fails in production alone."""
    assert set(needed) == set(ROLES)
    denied = {_advice(door, one) for door, asked in needed.items() for one in asked if not is_allowed(ROLES[door], one)}
    assert not denied, "\n".join(["", *sorted(denied)])


def test_no_door_may_do_what_none_of_its_work_needs(needed: Needed) -> None:
    """A stolen role is worth as little as the door's own work. Every action is asked for by each door that has it, and
    every resource by one of those that share the policy.
    """
    spare = {*_spare_actions(needed), *_spare_resources(needed)}
    assert not spare, "\n".join(["", *sorted(spare)])


def test_a_member_s_roles_are_enough_for_what_its_cluster_needs(needed: Needed) -> None:
    """Whatever a door asks about a cluster, it may ask as that member's role."""
    assert set(MEMBER_ROLES) == set(ROLES) - {"webhook", "catalog"}
    denied = {
        f"{door} calls {one.action} on {one.resource}"
        for door, statements in MEMBER_ROLES.items()
        for one in needed[door]
        if not one.action.startswith(OF_THE_HOME) and not is_allowed(statements, one)
    }
    assert denied == set()


def test_a_member_s_roles_have_the_statements_of_the_home_s_roles_and_no_others() -> None:
    """A policy is written once. The installer's lose the condition on its function, which no assumed role has."""
    for door, statements in MEMBER_ROLES.items():
        own = {(one.effect, one.actions, one.resources, _unbound(one)) for one in ROLES[door]}
        for one in statements:
            assert not [action for action in one.actions if action.startswith(OF_THE_HOME)]
            assert (one.effect, one.actions, one.resources, _unbound(one)) in own


def _unbound(statement: Statement) -> str:
    conditions = {
        (operator, key, values)
        for operator, block in statement.conditions.items()
        for key, values in block.items()
        if key != "lambda:SourceFunctionArn"
    }
    return str(sorted(conditions))


def _advice(door: str, denied: Request) -> str:
    """Which line of which policy to add: that of the statement which comes nearest."""
    text = f"{door} calls {denied.action} on {denied.resource}, which template.yaml does not allow."
    nearest = [one for one in ROLES[door] if one.effect == "Allow" and _names(one, denied.action)]
    if not nearest:
        policies = sorted({one.name.partition(",")[0] for one in ROLES[door]})
        return f"{text} No statement of its policies ({', '.join(policies)}) has it: add Action {denied.action}."
    return "\n  ".join([text, *(f"{one.name}: add {one.lacking(denied)}" for one in nearest)])


def _names(statement: Statement, action: str) -> bool:
    return any(is_like(action, one) for one in statement.actions)


def _spare_actions(needed: Needed) -> Iterator[str]:
    for door, statement in _allowing():
        used = {one.action for one in needed[door] if statement.applies(one)}
        for action in set(statement.actions) - used:
            yield f"template.yaml, {statement.name}: {door} never calls {action} so. {_REMEDY}"


def _spare_resources(needed: Needed) -> Iterator[str]:
    doors: dict[str, list[Request]] = {}
    by_name = {statement.name: statement for _, statement in _allowing()}
    for door, statement in _allowing():
        doors.setdefault(statement.name, []).extend(one for one in needed[door] if statement.applies(one))
    for name, statement in by_name.items():
        for resource in statement.resources:
            if not any(is_like(one.resource, resource) for one in doors[name]):
                yield f"template.yaml, {name}: nobody needs Resource {resource}. {_REMEDY}"


_REMEDY = "Remove the line, or add the scene of tests/rights/story.py that needs it."


def _allowing() -> Iterator[tuple[str, Statement]]:
    """Statements that allow what a door's own code does, by door."""
    for door, statements in ROLES.items():
        for statement in statements:
            is_lambdas = BY_LAMBDA.issuperset(statement.actions) or statement.name == SENT_ON
            if statement.effect == "Allow" and not is_lambdas:
                yield door, statement
