"""AWS's recorded answers, given to the real adapters by botocore's own stub, as its parser would have read them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from botocore.stub import Stubber
from botocore.utils import parse_to_aware_datetime

from joinery.gateways.aws import Clients
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass

REAL = Path(__file__).parents[1] / "data/real/aws"


def read(name: str) -> Any:
    """One of the real answers."""
    return json.loads((REAL / f"{name}.json").read_text())


#: The real errors by operation and code.
ERRORS = {f"{answer['operation']} {answer['Error']['Code']}": answer for answer in read("errors")}


def as_parsed(client: Any, operation: str, answer: Mapping[str, Any]) -> Any:
    """The answer with moments for the texts of its timestamps."""
    return _parsed(client.meta.service_model.operation_model(operation).output_shape, answer)


def _parsed(shape: Any, value: Any) -> Any:
    match shape.type_name:
        case "structure":
            return {key: _parsed(shape.members[key], item) for key, item in value.items()}
        case "list":
            return [_parsed(shape.member, item) for item in value]
        case "timestamp":
            return parse_to_aware_datetime(value)
    return value


@contextmanager
def answering(clients: Clients, *script: tuple[str, str, Any]) -> Iterator[None]:
    """Give these answers, in their order, each a client, an operation in snake case, and what it answers.

    An exception of botocore's in the place of an answer is a refusal. All must have been asked for in the end.
    """
    with ExitStack() as stack:
        stubs = {name: stack.enter_context(Stubber(getattr(clients, name))) for name in {step[0] for step in script}}
        for name, method, answer in script:
            client = getattr(clients, name)
            operation = client.meta.method_to_api_mapping[method]
            if "Error" in answer:
                _refuse(stubs[name], method, answer)
            else:
                stubs[name].add_response(method, as_parsed(client, operation, answer))
        yield
        for stub in stubs.values():
            stub.assert_no_pending_responses()


def _refuse(stub: Stubber, method: str, answer: Mapping[str, Any]) -> None:
    error, status = answer["Error"], answer["ResponseMetadata"]["HTTPStatusCode"]
    stub.add_client_error(method, error["Code"], error["Message"], http_status_code=status)


def node_class() -> EC2NodeClass:
    """A class with the three subnets of the answers."""
    subnets = [{"id": f"subnet-0a1b2c3d4e5f6000{n}", "zone": f"us-east-1{zone}"} for n, zone in enumerate("abc", 1)]
    status = {"subnets": subnets, "amis": [{"id": "ami-1", "requirements": []}], "instanceProfile": "prod"}
    spec = {
        "subnetSelectorTerms": [{"id": "subnet-1"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
        "role": "nodes",
    }
    spec |= {"amiSelectorTerms": [{"alias": "al2023@latest"}]}
    return EC2NodeClass.model_validate({"metadata": {"name": "default"}, "spec": spec, "status": status})
