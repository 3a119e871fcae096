"""ministack with corrections. Run by the Python of ``.venv-standin``, which is the only one that has ministack.

Each correction makes it behave as AWS documents:

- ``AWS::EKS::AccessEntry`` goes to the stand-in of EKS that ``AWS_ENDPOINT_URL_EKS`` names.
- An alarm on metric math is kept with its first metric. Nothing evaluates alarms here.
- What a condition selects, splits, joins or substitutes is worked out before it is compared (CloudFormation User Guide,
  "Conditions").
- A bucket that is not empty cannot be deleted (S3 API DeleteBucket, ``BucketNotEmpty``).
- What a resource depends on stays while that resource cannot be deleted (CloudFormation User Guide, "Delete stack
  fails"): ministack would delete everything else.
- ``Ref`` of a secret is its ARN, of an instance profile its name. A generated secret has no punctuation, where that is
  asked for (CloudFormation, resource reference).
- What is done to an instance profile is evaluated against the profile, and not the role in it (IAM, "Actions,
  resources, and condition keys").
- A function that is changed finishes what it runs: ministack would kill it, and what it was woken for would stay hidden
  in its queue for minutes (Lambda Developer Guide, "Understanding the Lambda execution environment lifecycle").
- A line for a log group that is gone is dropped: no role may make one (``logs:CreateLogGroup``).
- A layer is unpacked once, and not once for every execution environment: that would take gigabytes and minutes.
- ``AWS::SecretsManager::ResourcePolicy`` is a secret's policy.
- Who is named in a role's trust policy may assume the role without another right in the same account, and a right to
  assume roles may ask for a tag of the role (IAM User Guide, "Policy evaluation logic"; STS API AssumeRole).
- ``aws:PrincipalArn`` of a session is the ARN of its role (IAM User Guide, "Global condition context keys").
- What a function's role does carries ``lambda:SourceFunctionArn`` (Lambda Developer Guide, "Using source function
  ARN").
- Every request counts as one over TLS (``aws:SecureTransport``), because AWS has no other.

The process ends when its parent does, however that ends.
"""

import ctypes
import hashlib
import json
import os
import secrets
import signal
import string
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

from ministack import app
from ministack.core import iam_actions, iam_evaluator, lambda_runtime
from ministack.services import cloudwatch_logs, iam, lambda_svc, s3, secretsmanager
from ministack.services.cloudformation import changesets, engine, handlers, provisioners, stacks

_PR_SET_PDEATHSIG = 1
_LETTERS = string.ascii_letters + string.digits
#: Layers are larger, functions are smaller.
_LARGE_BYTES = 200_000


def main() -> None:
    _end_with_parent()
    evaluate = _with_functions(engine._evaluate_conditions)
    for module in (engine, changesets, handlers, stacks):
        module._evaluate_conditions = evaluate
    kinds = provisioners._RESOURCE_HANDLERS
    kinds["AWS::EKS::AccessEntry"] = {"create": _create_entry, "update": _update_entry, "delete": _delete_entry}
    for operation in ("create", "update"):
        kinds["AWS::CloudWatch::Alarm"][operation] = _with_one_metric(kinds["AWS::CloudWatch::Alarm"][operation])
    kinds["AWS::S3::Bucket"]["delete"] = _empty_only(kinds["AWS::S3::Bucket"]["delete"])
    stacks._delete_resource = _dependents_first(stacks._delete_resource)
    kinds["AWS::SecretsManager::Secret"] |= _by_arn(dict(kinds["AWS::SecretsManager::Secret"]))
    profiles = kinds["AWS::IAM::InstanceProfile"]
    profiles["create"] = _by_name(profiles["create"])
    iam_actions.extract_resource_arn = _with_profiles(iam_actions.extract_resource_arn)
    kinds["AWS::SecretsManager::ResourcePolicy"] = {
        "create": _put_policy, "update": lambda physical_id, old, new, stack: _put_policy("", new, stack),
        "delete": lambda physical_id, props: secretsmanager._delete_resource_policy({"SecretId": physical_id}),
    }  # fmt: skip
    iam.trust_policy_for_arn = _trust_policy
    iam_evaluator._RESOURCE_POLICY_LOOKUPS["sts"] = ("iam", "trust_policy_for_arn")
    iam_evaluator._resolve_condition_key = _with_roles(iam_evaluator._resolve_condition_key)
    iam_evaluator.enforce = _with_tags_of_roles(iam_evaluator.enforce)
    iam_evaluator._principal_keys = _with_function(iam_evaluator._principal_keys)
    lambda_runtime.zipfile = _SharedArchives
    _end_environments_between_runs()
    lambda_svc._emit_lambda_logs = _to_kept_groups(lambda_svc._emit_lambda_logs)
    pin = app.pin_request_origin
    app.pin_request_origin = lambda address, is_secure: pin(address, True)
    app.main()


def _with_functions(evaluate: Any) -> Any:
    def corrected(template: dict[str, Any], params: dict[str, Any]) -> dict[str, bool]:
        conditions = _worked_out(template.get("Conditions", {}), params)
        evaluated: dict[str, bool] = evaluate({**template, "Conditions": conditions}, params)
        return evaluated

    return corrected


def _worked_out(value: Any, params: dict[str, Any]) -> Any:
    """The part of a condition with values in the place of functions that make text."""
    if isinstance(value, list):
        return [_worked_out(one, params) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() & {"Fn::Select", "Fn::Split", "Fn::Join", "Fn::Sub"}:
        return engine._resolve_refs(value, {}, params, {}, {}, "", "")
    return {key: _worked_out(one, params) for key, one in value.items()}


def _end_with_parent() -> None:
    """Linux sends this process SIGTERM when its parent is gone. Elsewhere only an orderly end stops it."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    except (AttributeError, OSError):
        return


def _end_environments_between_runs() -> None:
    """An execution environment that is to end while it runs ends when it has answered. Nobody gets it any more."""
    kill, release = lambda_runtime.kill_workers, lambda_runtime.release_worker
    ending: set[Any] = set()

    def kill_later(workers: Any) -> None:
        with lambda_runtime._lock:
            running = {worker for worker in workers if worker is not None and worker.in_use}
            ending.update(running)
        kill([worker for worker in workers if worker not in running])

    def release_or_kill(worker: Any) -> None:
        release(worker)
        with lambda_runtime._lock:
            is_due = worker in ending
            ending.discard(worker)
        if is_due:
            kill([worker])

    lambda_runtime.kill_workers = kill_later
    lambda_svc.release_worker = release_or_kill


def _to_kept_groups(emit: Any) -> Any:
    def corrected(function: dict[str, Any], *arguments: Any, **named: Any) -> None:
        settings = (function.get("config") or function).get("LoggingConfig") or {}
        if settings.get("LogGroup") in cloudwatch_logs._log_groups:
            emit(function, *arguments, **named)

    return corrected


def _with_function(principal_keys: Any) -> Any:
    """The condition keys of a caller, with the function that it is: sessions of functions bear the function's name."""

    def corrected(credential: Any) -> dict[str, Any]:
        keys: dict[str, Any] = dict(principal_keys(credential))
        if credential.principal_type == "AssumedRole":
            region, name = os.environ["MINISTACK_REGION"], credential.principal_arn.rpartition("/")[2]
            keys["lambda:sourcefunctionarn"] = f"arn:aws:lambda:{region}:{credential.account_id}:function:{name}"
        return keys

    return corrected


def _by_arn(handlers: dict[str, Any]) -> dict[str, Any]:
    """A secret's handlers, with its ARN for its name."""

    def name_of(arn: str) -> str:
        return arn.partition(":secret:")[2].rpartition("-")[0] or arn

    def create(logical_id: str, props: dict[str, Any], stack_name: str) -> tuple[str, dict[str, Any]]:
        wanted = props.get("GenerateSecretString")
        if wanted and wanted.get("ExcludePunctuation"):
            token = "".join(secrets.choice(_LETTERS) for _ in range(int(wanted["PasswordLength"])))
            text = {**json.loads(wanted["SecretStringTemplate"]), wanted["GenerateStringKey"]: token}
            props = {**props, "GenerateSecretString": None, "SecretString": json.dumps(text)}
        _, attributes = handlers["create"](logical_id, props, stack_name)
        return attributes["Arn"], attributes

    def update(physical_id: str, *arguments: Any) -> tuple[str, dict[str, Any]]:
        _, attributes = handlers["update"](name_of(physical_id), *arguments)
        return physical_id, attributes

    def delete(physical_id: str, *arguments: Any) -> Any:
        return handlers["delete"](name_of(physical_id), *arguments)

    return {"create": create, "update": update, "delete": delete}


def _by_name(create: Any) -> Any:
    """An instance profile's creation, with its name for its ARN."""

    def corrected(logical_id: str, props: dict[str, Any], stack_name: str) -> tuple[str, dict[str, Any]]:
        arn, attributes = create(logical_id, props, stack_name)
        return arn.rpartition("/")[2], attributes

    return corrected


def _with_profiles(resource_arn: Any) -> Any:
    def corrected(service: str, method: str, path: str, headers: Any, body: Any, query: Any, *more: Any) -> Any:
        if service == "sts" and (role := _parameter(body, query, "RoleArn")):
            return role
        name = _parameter(body, query, "InstanceProfileName") if service == "iam" else ""
        if not name:
            return resource_arn(service, method, path, headers, body, query, *more)
        stored = iam._instance_profiles.get(name) or {}
        place = stored.get("Path") or _parameter(body, query, "Path") or "/"
        return f"arn:aws:iam::{os.environ['MINISTACK_ACCOUNT_ID']}:instance-profile{place}{name}"

    return corrected


def _parameter(body: Any, query: Any, name: str) -> str:
    """A parameter of a call of the Query protocol, wherever it was sent."""
    sent = urllib.parse.parse_qs(body.decode() if isinstance(body, bytes) else str(body or ""))
    given = sent.get(name) or query.get(name) or [""]
    return str(given[0] if isinstance(given, list) else given)


def _put_policy(logical_id: str, props: dict[str, Any], stack_name: str) -> tuple[str, dict[str, Any]]:
    policy = json.dumps(props["ResourcePolicy"])
    secretsmanager._put_resource_policy({"SecretId": props["SecretId"], "ResourcePolicy": policy})
    return str(props["SecretId"]), {}


def _role(arn: str) -> dict[str, Any]:
    role: dict[str, Any] = iam._roles.get(arn.rpartition("/")[2]) or {}
    return role


def _trust_policy(arn: str) -> tuple[str, str] | None:
    """A role's trust policy and account, as the policy of a resource."""
    document = _role(arn).get("AssumeRolePolicyDocument")
    if not document:
        return None
    trust = json.loads(document) if isinstance(document, str) else document
    statements = [{**one, "Resource": "*"} for one in trust["Statement"]]
    return json.dumps({**trust, "Statement": statements}), os.environ["MINISTACK_ACCOUNT_ID"]


def _with_roles(resolve: Any) -> Any:
    """``aws:PrincipalArn`` of a session is the ARN of its role (IAM User Guide, "Global condition context keys")."""

    def corrected(key: str, context: Any) -> Any:
        value = resolve(key, context)
        if key.lower() != "aws:principalarn" or ":assumed-role/" not in str(value):
            return value
        return _role(str(value).rpartition("/")[0]).get("Arn", str(value))

    return corrected


def _with_tags_of_roles(enforce: Any) -> Any:
    def corrected(
        key: str, action: str, service: str, region: str, resource_arn: str = "*", service_context: Any = None
    ) -> Any:
        context = dict(service_context or {})
        if action == "sts:AssumeRole":
            tags = _role(resource_arn).get("Tags") or []
            context |= {f"iam:ResourceTag/{tag['Key']}": tag["Value"] for tag in tags}
        return enforce(key, action, service, region, resource_arn, context)

    return corrected


def _create_entry(logical_id: str, props: dict[str, Any], stack_name: str) -> tuple[str, dict[str, Any]]:
    body = {
        "principalArn": props["PrincipalArn"],
        "kubernetesGroups": props.get("KubernetesGroups", []),
        "type": props.get("Type", "STANDARD"),
    }
    _eks("POST", f"/clusters/{props['ClusterName']}/access-entries", body)
    return f"{props['PrincipalArn']}|{props['ClusterName']}", {"AccessEntryArn": props["PrincipalArn"]}


def _update_entry(
    physical_id: str, old: dict[str, Any], new: dict[str, Any], stack_name: str
) -> tuple[str, dict[str, Any]]:
    _delete_entry(physical_id, old)
    return _create_entry("", new, stack_name)


def _delete_entry(physical_id: str, props: dict[str, Any]) -> None:
    principal = urllib.parse.quote(props["PrincipalArn"], safe="")
    try:
        _eks("DELETE", f"/clusters/{props['ClusterName']}/access-entries/{principal}", None)
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise


def _eks(method: str, path: str, body: object) -> None:
    url = os.environ["AWS_ENDPOINT_URL_EKS"] + path
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data=data, method=method), timeout=10):
        return


def _with_one_metric(operation: Any) -> Any:
    """Create or update of an alarm, which takes the first metric for an expression over several."""

    def corrected(*arguments: Any) -> Any:
        return operation(*(_plain(value) if isinstance(value, dict) else value for value in arguments))

    return corrected


def _plain(props: dict[str, Any]) -> dict[str, Any]:
    stats = [query["MetricStat"] for query in props.get("Metrics", ()) if "MetricStat" in query]
    if not stats:
        return props
    first = stats[0]
    kept = {name: value for name, value in props.items() if name != "Metrics"}
    return {**kept, **first["Metric"], "Period": first["Period"], "Statistic": first["Stat"]}


def _empty_only(delete: Any) -> Any:
    def corrected(physical_id: str, props: dict[str, Any]) -> None:
        if (s3._buckets.get(physical_id) or {}).get("objects"):
            raise ValueError("The bucket you tried to delete is not empty (BucketNotEmpty)")
        delete(physical_id, props)

    return corrected


def _dependents_first(delete: Any) -> Any:
    def corrected(kind: str, physical_id: str, props: dict[str, Any], stack_name: str, logical_id: str) -> Any:
        from ministack.services.cloudformation import _stacks

        stack = _stacks[stack_name]
        resources, definitions = stack["_resources"], stack["_template"].get("Resources", {})
        # Dependents come first, and what is deleted is no longer among the resources: those that are left have failed.
        needing = [
            name for name in resources if logical_id in engine._extract_deps(definitions.get(name, {}), set(resources))
        ]
        if needing and stack["StackStatus"] == "DELETE_IN_PROGRESS":
            raise ValueError(f"{', '.join(sorted(needing))} could not be deleted and needs it")
        return delete(kind, physical_id, props, stack_name, logical_id)

    return corrected


class _SharedArchives:
    """The module ``zipfile`` for ministack: a large archive is unpacked once, and then linked to."""

    BadZipFile, LargeFileError = zipfile.BadZipFile, zipfile.LargeZipFile

    class ZipFile(zipfile.ZipFile):
        _unpacked: dict[str, Path] = {}
        _lock = threading.Lock()

        def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
            """As ``zipfile`` does it, or a link in place of the empty folder ``path``."""
            if os.path.getsize(str(self.filename)) < _LARGE_BYTES:
                super().extractall(path, members, pwd)
                return
            digest = hashlib.sha256(Path(str(self.filename)).read_bytes()).hexdigest()
            with self._lock:
                if digest not in self._unpacked:
                    folder = Path(tempfile.mkdtemp(prefix="layer-"))
                    super().extractall(folder)
                    self._unpacked[digest] = folder
            Path(path).rmdir()
            Path(path).symlink_to(self._unpacked[digest])


if __name__ == "__main__":
    main()
