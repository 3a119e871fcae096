"""IAM's rules, by which the template's policies are judged (IAM User Guide, "Policy evaluation logic")."""

from collections.abc import Mapping
from typing import Any

import pytest

from simulator.iam.calls import rights
from simulator.iam.policies import Request, is_allowed, statements

OWNED = "aws:ResourceTag/owner"
ENDING: dict[str, Any] = {"Effect": "Allow", "Action": "ec2:Terminate*", "Resource": "arn:aws:ec2:*:*:instance/*"}


def _decided(
    *given: dict[str, Any], action: str = "ec2:TerminateInstances", tags: Mapping[str, list[str]] | None = None
) -> bool:
    context = {f"aws:ResourceTag/{key}": values for key, values in (tags or {}).items()}
    request = Request(action, "arn:aws:ec2:us-east-1:1:instance/i-1", context)
    return is_allowed(statements("policy", {"Statement": list(given)}), request)


def test_what_nothing_allows_is_denied_and_a_deny_wins() -> None:
    """In whatever order the statements are."""
    assert _decided(ENDING)
    assert not _decided(ENDING, action="ec2:RebootInstances")
    assert not _decided(ENDING, {**ENDING, "Effect": "Deny"})


@pytest.mark.parametrize(
    ("condition", "tags", "allowed"),
    [
        ({"StringEquals": {OWNED: ["a", "b"]}}, {"owner": ["b"]}, True),
        ({"StringEquals": {OWNED: "a"}}, {"owner": ["A"]}, False),
        ({"StringEquals": {OWNED: "a"}}, {}, False),
        ({"StringEquals": {OWNED: "*"}}, {"owner": ["a"]}, False),
        ({"StringLike": {OWNED: "*"}}, {"owner": ["a"]}, True),
        ({"StringLike": {OWNED: "*"}}, {}, False),
        ({"StringEquals": {OWNED: "a"}, "StringLike": {"aws:ResourceTag/team": "*"}}, {"owner": ["a"]}, False),
        ({"Null": {OWNED: "false"}}, {"owner": ["a"]}, True),
        ({"Null": {OWNED: "false"}}, {}, False),
        ({"ForAllValues:StringEquals": {OWNED: ["a", "b"]}}, {}, True),
        ({"ForAllValues:StringEquals": {OWNED: ["a", "b"]}}, {"owner": ["a", "c"]}, False),
    ],
)
def test_all_keys_of_a_condition_must_be_met_each_by_any_value(
    condition: Any, tags: dict[str, list[str]], allowed: bool
) -> None:
    """A key that the request lacks meets no positive operator (IAM User Guide, "Condition operators")."""
    assert _decided({**ENDING, "Condition": condition}, tags=tags) is allowed


def test_a_call_that_is_not_known_is_no_call_that_needs_no_right() -> None:
    """Whoever adds a call says what it needs."""
    holdings: Any = None
    with pytest.raises(LookupError, match="simulator/iam/calls.py does not know the rights of ec2:StopInstances"):
        rights("ec2", "StopInstances", {}, holdings)
