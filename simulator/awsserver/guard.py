"""What EC2 asks before it does anything: whether the caller may (IAM), and whether it was asked too often.

A call that the caller has no right to is refused, dry run or not; a dry run that it has the right to says so and does
nothing (EC2 API, "DryRun"; EC2 User Guide, "Test whether you have the required permissions").
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from simulator.awsserver.account import ACCOUNT
from simulator.awsserver.holdings import MotoHoldings
from simulator.cloud.throttling import CODE, MESSAGE, Throttle
from simulator.iam.calls import rights
from simulator.iam.policies import Statement, is_allowed

#: moto's names of the operations that are guarded.
_OPERATIONS = {
    "create_fleet": "CreateFleet", "create_launch_template": "CreateLaunchTemplate", "create_tags": "CreateTags",
    "describe_images": "DescribeImages", "describe_instances": "DescribeInstances",
    "describe_instance_types": "DescribeInstanceTypes", "describe_security_groups": "DescribeSecurityGroups",
    "describe_subnets": "DescribeSubnets", "reboot_instances": "RebootInstances", "run_instances": "RunInstances",
    "terminate_instances": "TerminateInstances",
}  # fmt: skip
_DENIED = "You are not authorized to perform this operation. {} is not allowed on resource: {}"


#: Who has signed a request (AWS Signature Version 4, "Authorization header").
_SIGNED_BY = re.compile("Credential=([^/]+)/")


@contextmanager
def guarded(
    role: Iterable[Statement] = (),
    throttle: Throttle | None = None,
    *,
    assumed: Mapping[str, Iterable[Statement]] | None = None,
) -> Iterator[list[tuple[str, str]]]:
    """Guard EC2 inside the ``with``. ``role``: what the caller's policies say; none at all asks nobody for rights.
    ``assumed``: the same of roles that callers have taken from STS, by their ARN. Gives the operations that were asked
    for, each with the ARN of the caller's role if it is one of those.
    """
    from moto.ec2.responses import EC2Response

    given = {"": tuple(role)} | {arn: tuple(statements) for arn, statements in (assumed or {}).items()}
    asked: list[tuple[str, str]] = []
    with ExitStack() as stack:
        for method, operation in _OPERATIONS.items():
            answered = _guarding(operation, given, throttle, getattr(EC2Response, method), asked)
            stack.enter_context(patch.object(EC2Response, method, answered))
        yield asked


def _guarding(
    operation: str,
    roles: Mapping[str, tuple[Statement, ...]],
    throttle: Throttle | None,
    answer: Callable[[Any], Any],
    asked: list[tuple[str, str]],
) -> Callable[[Any], Any]:
    def guard(response: Any) -> Any:
        from moto.ec2.exceptions import EC2ClientError

        params, caller = response._get_params(), _assumed_by(response)
        asked.append((operation, caller))
        instances = len(params.get("InstanceIds", ())) if operation == "TerminateInstances" else 0
        if throttle and not throttle.lets(operation, instances):
            raise EC2ClientError(CODE, MESSAGE)
        role = roles[caller]
        for needed in rights("ec2", operation, params, MotoHoldings()) if role else ():
            if not is_allowed(role, needed):
                raise EC2ClientError("UnauthorizedOperation", _DENIED.format(needed.action, needed.resource))
        return answer(response)

    return guard


def _assumed_by(response: Any) -> str:
    """The ARN of the role whose session has signed the request; empty for one that nobody has taken from STS."""
    from moto.sts.models import sts_backends

    signed = _SIGNED_BY.search(response.headers.get("Authorization", ""))
    taken = sts_backends[ACCOUNT]["aws"].get_assumed_role_from_access_key(signed[1]) if signed else None
    return str(taken.role_arn) if taken else ""
