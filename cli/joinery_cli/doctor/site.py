"""What the doctor looks at: a stack, its cluster and its account, as they answer.

Three gateways, each one method wide. Facts that several checks want are asked for once, by whoever comes first.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Protocol, TypeVar

from joinery.decisions.installation.objects import preparation
from joinery.decisions.installation.shipped import definitions, rights
from joinery.objects.errors import ConfigurationError, JoineryError, NotFoundError, UnavailableError
from joinery.objects.settings import in_force

#: Parameters of a home that hold for its members.
_SHARED = ("AlarmTopicArn", "SecurityGroupIds", "SubnetIds")
T = TypeVar("T")
Answer = Mapping[str, Any]


class NoStackError(ConfigurationError):
    """There is no stack, so there is nothing to look at."""


class OutOfReachError(UnavailableError):
    """The API server cannot be spoken to at all, neither about this nor about anything else."""


class Aws(Protocol):
    """AWS. ``service`` and ``operation`` are botocore's names; pages are put together. Raises our errors."""

    def ask(self, service: str, operation: str, **parameters: Any) -> Answer: ...


class Api(Protocol):
    """The Kubernetes API server: status and JSON of an answer. Raises ``UnavailableError`` without one."""

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Answer]: ...


class Web(Protocol):
    """An address of the web: status and body of a POST. Raises ``UnavailableError`` without an answer."""

    def post(self, url: str, body: bytes) -> tuple[int, bytes]: ...


class Site:
    """``cluster``, ``region``, ``stack``: their names. ``now``: the clock of this machine."""

    def __init__(
        self, *, cluster: str, region: str, stack: str, aws: Aws, api: Api, web: Web, now: Callable[[], datetime]
    ) -> None:
        self.cluster, self.region, self.stack = cluster, region, stack
        self.aws, self.api, self.web, self.now = aws, api, web, now
        self._facts: dict[str, Any] = {}
        self._locks: dict[str, Lock] = {}
        self._making = Lock()

    def ask_api(self, method: str, path: str, body: object = None) -> tuple[int, Answer]:
        """What the API server answers. Raises ``OutOfReachError`` where it does not even tell its version."""
        if trouble := self._once("trouble", self._trouble):
            raise OutOfReachError(trouble)
        return self.api.ask(method, path, body)

    def _trouble(self) -> str:
        try:
            status, answer = self.api.ask("GET", "/version")
        except JoineryError as error:
            return str(error)
        # Whoever has a valid token may ask for the version (ClusterRole system:public-info-viewer).
        return f"GET /version: 401 {answer.get('message', '')}" if status == 401 else ""

    def get(self, path: str) -> Answer:
        """An object or a list of the cluster. Raises ``NotFoundError``, or ``ConfigurationError`` without the right."""
        status, answer = self.ask_api("GET", path)
        if status == 404:
            raise NotFoundError(f"GET {path}: there is none")
        if status >= 400:
            raise ConfigurationError(f"GET {path}: {status} {answer.get('message', '')}")
        return answer

    def listed(self, path: str) -> list[Any]:
        """The items of a list; empty where the cluster does not know the kind."""
        try:
            return list(self.get(path).get("items") or ())
        except NotFoundError:
            return []

    # --- facts ---

    @property
    def description(self) -> Answer:
        """The stack, as CloudFormation describes it. Raises ``NoStackError``."""
        return self._once("description", self._described)

    @property
    def parameters(self) -> Mapping[str, str]:
        """The stack's parameters, and every setting: with its default where the stored settings are not valid."""
        given = self._given()
        settings = "" if self.wrong_settings else given.get("Settings", "")
        return {**in_force(settings), **given}

    @property
    def wrong_settings(self) -> str | None:
        """Why the stored settings are not valid; None if they are."""
        try:
            in_force(self._given().get("Settings", ""))
        except ConfigurationError as error:
            return str(error)
        return None

    def _given(self) -> Mapping[str, str]:
        shared = {name: value for name, value in self.home._given().items() if name in _SHARED} if self.home else {}
        return {**shared, **parameters_of(self.description)}

    @property
    def home(self) -> "Site | None":
        """Of a member, the stack whose functions serve it; None for a stack of its own.

        What follows has its parts, too: a member's resources have the names that they have in a home.
        """
        name = parameters_of(self.description).get("Home", "")
        if not name:
            return None

        def made() -> Site:
            return Site(
                cluster=self.cluster, region=self.region, stack=name, aws=self.aws, api=self.api, web=self.web,
                now=self.now,
            )  # fmt: skip

        return self._once("home", made)

    @property
    def outputs(self) -> Mapping[str, str]:
        """The stack's outputs."""
        own = {one["OutputKey"]: one["OutputValue"] for one in self.description.get("Outputs", ())}
        return {**self.home.outputs, **own} if self.home else own

    @property
    def resources(self) -> Mapping[str, str]:
        """The stack's resources: physical by logical id."""
        return {one["LogicalResourceId"]: one.get("PhysicalResourceId", "") for one in self._resources()}

    @property
    def wanted(self) -> tuple[Mapping[str, Any], ...]:
        """The definitions and rights that the installer of this release gives a cluster, by the stack's parameters."""
        return self._once(
            "wanted",
            lambda: tuple(preparation(definitions(), rights(), self.parameters, stack="", version="")),
        )

    @property
    def functions(self) -> Mapping[str, str]:
        """Its functions, by what they are called in the template without ``Function``."""
        return {
            one["LogicalResourceId"].removesuffix("Function"): one["PhysicalResourceId"]
            for one in self._resources()
            if one["ResourceType"] == "AWS::Lambda::Function"
        }

    def configuration(self, function: str) -> Answer:
        """How one of ``functions`` is configured."""
        ask, name = self.aws.ask, self.functions[function]
        return self._once(
            f"function {function}", lambda: ask("lambda", "get_function_configuration", FunctionName=name)
        )

    @property
    def eks(self) -> Answer:
        """The cluster, as EKS describes it."""
        ask = self.aws.ask
        return self._once("eks", lambda: ask("eks", "describe_cluster", name=self.cluster)["cluster"])

    def _described(self) -> Answer:
        try:
            (stack, *_) = self.aws.ask("cloudformation", "describe_stacks", StackName=self.stack)["Stacks"]
        except JoineryError as error:
            if error.code == "ValidationError":  # DescribeStacks has no code of its own for it
                raise NoStackError(f"there is no stack {self.stack} in {self.region}") from error
            raise
        return dict(stack)

    def _resources(self) -> list[Any]:
        def ask() -> list[Any]:
            _ = self.description
            answer = self.aws.ask("cloudformation", "list_stack_resources", StackName=self.stack)
            own = list(answer["StackResourceSummaries"])
            names = {one["LogicalResourceId"] for one in own}
            others = self.home._resources() if self.home else ()
            return [*own, *(one for one in others if one["LogicalResourceId"] not in names)]

        return self._once("resources", ask)

    def _once(self, name: str, ask: Callable[[], T]) -> T:
        with self._making:
            lock = self._locks.setdefault(name, Lock())
        with lock:
            if name not in self._facts:
                self._facts[name] = ask()
            answer: T = self._facts[name]
            return answer


def parameters_of(described: Mapping[str, Any]) -> Mapping[str, str]:
    """The parameters of a stack, of what CloudFormation says of it."""
    return {one["ParameterKey"]: one.get("ParameterValue", "") for one in described.get("Parameters", ())}


def metric_sum(site: Site, namespace: str, name: str, dimensions: Mapping[str, str], span: timedelta) -> float:
    """The sum of a metric over the last ``span``; 0 where it has no values."""
    now = site.now()
    answer = site.aws.ask(
        "cloudwatch",
        "get_metric_statistics",
        Namespace=namespace,
        MetricName=name,
        Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
        StartTime=now - span,
        EndTime=now,
        # A whole number of minutes, and few enough values for one answer.
        Period=max(60, int(span.total_seconds() // 60 // 100) * 60),
        Statistics=["Sum"],
    )
    return float(sum(point["Sum"] for point in answer.get("Datapoints") or ()))
