"""What IAM lets each function do, statement by statement, from the template's own policies."""

import re
from collections.abc import Iterator
from typing import Any

from simulator.iam.policies import Statement
from tools.cloudformation import Stack
from tools.roles import statements_of
from tools.template import load

#: Settings that give rights, each with a value that does.
_GIVING = {
    "KmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/KEY",
    "MoreNodeRoles": "ANOTHER-ROLE",
}
_NAMES = {
    "us-east-1": "REGION", "123456789012": "ACCOUNT", "arn:aws:": "arn:", "Bucket.Arn": "arn:s3:::BUCKET",
}  # fmt: skip


def tables() -> Iterator[str]:
    """A section a policy, with a row a statement."""
    policies: dict[str, tuple[list[Statement], list[str]]] = {}
    settings = "; ".join(f"{name}={value}" for name, value in _GIVING.items())
    for door, statements in statements_of(Stack({"ClusterName": "CLUSTER", "Settings": settings}, {})).items():
        for statement in statements:
            policy = statement.name.partition(", statement ")[0]
            of_policy, doors = policies.setdefault(policy, ([], []))
            if door not in doors:
                doors.append(door)
            if statement not in of_policy:
                of_policy.append(statement)
    written = load()["Resources"]
    for policy, (of_policy, doors) in policies.items():
        yield from ("", f"### {policy}", "")
        yield from _purpose(written.get(policy, {}))
        yield f"Functions: {', '.join(doors)}."
        yield from ("", "| actions | on | only if |", "|---|---|---|")
        yield from map(_row, of_policy)


def _purpose(policy: dict[str, Any]) -> Iterator[str]:
    setting = {"HasKey": "KmsKeyArn", "HasMoreNodeRoles": "MoreNodeRoles"}.get(policy.get("Condition", ""))
    description = policy.get("Properties", {}).get("Description", "")
    if description:
        yield description
    if setting:
        yield f"Only with the setting `{setting}`."


def _row(statement: Statement) -> str:
    conditions = [
        f"{operator} `{key}`: {_code(values)}"
        for operator, block in statement.conditions.items()
        for key, values in block.items()
    ]
    never = "never<br>" if statement.effect == "Deny" else ""
    return f"| {never}{_code(statement.actions)} | {_code(statement.resources)} | {'<br>'.join(conditions)} |"


def _code(values: tuple[str, ...]) -> str:
    return "<br>".join(f"`{_named(value)}`" for value in values)


def _named(value: str) -> str:
    for literal, name in _NAMES.items():
        value = value.replace(literal, name)
    return re.sub(r"\|", r"\\|", value)
