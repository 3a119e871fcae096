"""What IAM lets each function do, statement by statement, from the template's own policies."""

from collections.abc import Iterator

from simulator.iam.policies import Statement
from tools.cloudformation import Stack
from tools.roles import statements_of
from tools.template import load

#: Settings that give rights, each with a value that does.
_GIVING = {
    "Commitments": "100%",
    "Members": "true",
    "KmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/KEY",
    "MoreNodeRoles": "ANOTHER-ROLE",
}
_NAMES = {
    "us-east-1": "REGION", "123456789012": "ACCOUNT", "arn:aws:": "arn:", "Bucket.Arn": "arn:s3:::BUCKET",
}  # fmt: skip


def tables() -> Iterator[str]:
    """A section a policy, with a row a statement."""
    usual, written = _policies(), load()["Resources"]
    only_with = {policy: name for name in _GIVING for policy in _policies(name) if policy not in usual}
    for policy, by_statement in _policies(*_GIVING).items():
        yield from ("", f"### {policy}", "")
        if description := written.get(policy, {}).get("Properties", {}).get("Description"):
            yield description
        if policy in only_with:
            yield f"Only with the setting `{only_with[policy]}`."
        doors = dict.fromkeys(door for each in by_statement.values() for door in each)
        yield f"Functions: {', '.join(doors)}."
        yield from ("", "| actions | on | only if |", "|---|---|---|")
        yield from by_statement


def _policies(*giving: str) -> dict[str, dict[str, list[str]]]:
    """By policy and row of a statement, the functions that have it in a stack with these settings."""
    settings = "; ".join(f"{name}={_GIVING[name]}" for name in giving)
    policies: dict[str, dict[str, list[str]]] = {}
    for door, statements in statements_of(Stack({"ClusterName": "CLUSTER", "Settings": settings}, {})).items():
        for statement in statements:
            rows = policies.setdefault(statement.name.partition(", statement ")[0], {})
            rows.setdefault(_row(statement), []).append(door)
    return policies


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
    return value.replace("|", "\\|")
