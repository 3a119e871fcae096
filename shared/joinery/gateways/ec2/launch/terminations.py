"""TerminateInstances, which EC2 refuses as a whole for one id that it does not know (EC2 API TerminateInstances)."""

import re
from collections.abc import Sequence

from joinery.gateways.aws import Clients, translated
from joinery.objects.errors import NotFoundError

_WORD = re.compile(r"[\w-]+")


def terminate(clients: Clients, instance_ids: Sequence[str]) -> None:
    """Terminate those of these instances that EC2 knows. Raises ``NotFoundError`` if it knows none of them.

    Its refusal names what it does not know ("The instance IDs 'i-1, i-2' do not exist"), so that one more call does
    for the others. Where it names none of them, each half is asked for alone.
    """
    if not _terminated(clients, instance_ids):
        raise NotFoundError(f"none of the instances exists: {', '.join(instance_ids)}")


def _terminated(clients: Clients, instance_ids: Sequence[str]) -> bool:
    """Whether EC2 knows any of them."""
    if not instance_ids:
        return False
    try:
        with translated("terminating instances"):
            clients.ec2.terminate_instances(InstanceIds=list(instance_ids))
    except NotFoundError as refused:
        named = set(_WORD.findall(str(refused)))
    else:
        return True
    others = [name for name in instance_ids if name not in named]
    if len(others) < len(instance_ids):
        return _terminated(clients, others)
    if len(instance_ids) == 1:
        return False
    half = len(instance_ids) // 2
    return any([_terminated(clients, part) for part in (instance_ids[:half], instance_ids[half:])])
