"""What a door asks of AWS: every call, with the rights that it needs as things are at that moment."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

from botocore.awsrequest import AWSResponse, HTTPHeaders

from joinery.gateways.aws import Clients
from simulator.awsserver.account import REGION
from simulator.awsserver.holdings import MotoHoldings
from simulator.iam.calls import rights
from simulator.iam.policies import Request

_HOOK = "before-parameter-build"
#: What AWS answers to calls that moto does not know, or knows too well: by service and operation.
_LACKING: Mapping[str, Any] = {
    "arc-zonal-shift.GetManagedResource": {"appliedWeights": {}, "zonalShifts": [], "autoshifts": []},
    "eks.CreateAccessEntry": {},
    "eks.AssociateAccessPolicy": {},
    "eks.DescribeAccessEntry": {"accessEntry": {"tags": {}}},
    "eks.DeleteAccessEntry": {},
    "iam.CreateServiceLinkedRole": {},
    "lambda.Invoke": {"StatusCode": 202},
    "cloudformation.DescribeStacks": {"Stacks": [{"StackStatus": "UPDATE_COMPLETE"}]},
}


@dataclass
class Recording:
    """``door``: whose calls they are now; those of nobody are not kept. ``needed``: what each door has asked for."""

    door: str = ""
    needed: dict[str, list[Request]] = field(default_factory=dict)

    def note(self, service: str, operation: str, params: Any) -> None:
        """Keep what a call needs."""
        if self.door:
            self.needed.setdefault(self.door, []).extend(rights(service, operation, params, MotoHoldings()))


@contextmanager
def recorded() -> Iterator[Recording]:
    """Record inside the ``with``: calls of boto3's clients as they are asked for, and of those of our own as they
    arrive at moto.
    """
    from moto.eks.responses import EKSResponse
    from moto.secretsmanager.responses import SecretsManagerResponse
    from moto.sqs.responses import SQSResponse

    recording = Recording()

    def note(params: Any, model: Any, **_: Any) -> None:
        recording.note(model.service_model.service_name, model.name, params)

    events = Clients(REGION)._session.events
    with ExitStack() as stack:
        for place, method, service, operation, asked in (
            (EKSResponse, "describe_cluster", "eks", "DescribeCluster", "name"),
            (SQSResponse, "send_message", "sqs", "SendMessage", "QueueUrl"),
            (SecretsManagerResponse, "get_secret_value", "secretsmanager", "GetSecretValue", "SecretId"),
        ):
            arrived = _noting(partial(recording.note, service, operation), asked, getattr(place, method))
            stack.enter_context(patch.object(place, method, arrived))
        hooks = {_HOOK: note} | {f"before-call.{call}": _answering(answer) for call, answer in _LACKING.items()}
        for name, hook in hooks.items():
            events.register(name, hook)
            stack.callback(events.unregister, name, hook)
        yield recording


def _answering(answer: Any) -> Any:
    """An answer before anything is sent (botocore, ``before-call``)."""
    return lambda **_: (AWSResponse("", 200, HTTPHeaders(), None), answer)


def _noting(note: Callable[[Any], None], asked: str, answered: Any) -> Any:
    def arrived(response: Any) -> Any:
        note({asked: response._get_param(asked)})
        return answered(response)

    return arrived
