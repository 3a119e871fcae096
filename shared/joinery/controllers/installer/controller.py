"""The installer: answers CloudFormation about its custom resources, and carries out operations that a person asks for.

CloudFormation is always answered, whatever happens, because it waits up to an hour for an answer that does not come. So
no call is begun that might outlast the run, and time is kept for removing the installer's access and for the answer.

A member's requests (``decisions.installation.members``) are carried out in the name of the member's role, which this
installer assumes. So its access entry, its secret and its nodes' role are the member's, and nothing else can be.

Two custom resources: ``Preparation`` is there before the doors and is deleted after them (``installer.preparation``),
``Connection`` the other way round (``installer.connection``). Deleting them is the hook of ``sam delete`` and ``make
undeploy``: what speaks against uninstalling is said by ``Connection``, while every door still works, and what the doors
need goes with ``Preparation``. Neither is called where another stack runs the cluster, or where the cluster is gone.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from joinery import __version__
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.installer import connection, preparation
from joinery.controllers.installer.access import with_access
from joinery.controllers.installer.rotation import rotate
from joinery.controllers.installer.run import InstallerRun, data
from joinery.controllers.telemetry import ERROR, OUTCOME, REASON, logger
from joinery.decisions.installation import members
from joinery.decisions.installation.answers import InstallerOutcome, answer
from joinery.decisions.installation.failures import failure_message
from joinery.decisions.installation.requests import (
    NOTHING_MADE,
    RequestKind,
    ResourceType,
    StackRequest,
    is_request,
    parse,
)
from joinery.gateways.account import gateway as account
from joinery.gateways.bundles import InstallerGateways
from joinery.objects.errors import ConfigurationError, NotFoundError
from joinery.objects.settings import in_force

#: Seconds that are kept at the end of a run, when its last call is over: the access is removed, and the answer given.
KEPT_SECONDS = 2 * account.LONGEST_CALL + 5
_WRITES: Mapping[str, Callable[[InstallerRun, StackRequest], Mapping[str, str]]] = {
    ResourceType.PREPARATION: preparation.write,
    ResourceType.CONNECTION: connection.write,
}
_REMOVALS: Mapping[str, Callable[[InstallerRun], None]] = {
    ResourceType.PREPARATION: preparation.remove,
    ResourceType.CONNECTION: connection.remove,
}
#: What a person, or a schedule, may ask for: ``{"operation": "rotate-token"}``.
ROTATE = "rotate-token"
#: What a run is at until it has access. A cluster that is not found then is gone, and nothing is left in it to remove.
_ENTERING = "Entering the cluster"


class InstallerController:
    """``cluster``: that of the function's settings. ``has_access_entries``: whether the installer may let itself in;
    without that, what is in the cluster is left to a person.
    """

    def __init__(
        self, gateways: InstallerGateways, cluster: str, *, has_access_entries: bool, version: str = __version__
    ) -> None:
        self._gateways = gateways
        self._cluster = cluster
        self._version = version
        self._has_access_entries = has_access_entries

    def handle(self, event: Mapping[str, Any], invocation: Invocation) -> dict[str, Any]:
        """Deal with one event. Raises only if an operation fails, or if CloudFormation cannot be answered."""
        kept = invocation.within(invocation.remaining() - KEPT_SECONDS)
        if not is_request(event):
            return dict(self._operate(event, kept))
        request = parse(event)
        outcome = self._outcome(request, kept)
        self._gateways.account.answer(request.url, answer(request, outcome))
        reason = outcome.failure or outcome.data.get("Notes", "")
        logger.info("answered", extra={OUTCOME: "failed" if outcome.failure else "done", REASON: reason})
        return {OUTCOME: "failed" if outcome.failure else "done"}

    def _outcome(self, request: StackRequest, invocation: Invocation) -> InstallerOutcome:
        """What comes of a request. Never raises: CloudFormation must hear of every error."""
        gateways = self._gateways
        if members.is_of_member(request):
            gateways = gateways.as_member(request.properties[members.ROLE], request.properties.get(members.SECRET, ""))
        run = InstallerRun(request.properties.get("ClusterName", ""), self._version, gateways, invocation)
        try:
            return self._performed(request, run)
        except Exception as error:
            logger.exception("failed", extra={ERROR: str(error)})
            return InstallerOutcome(
                failure=failure_message(run.doing, error, cluster=run.cluster), made=run.has_written
            )

    def _performed(self, request: StackRequest, run: InstallerRun) -> InstallerOutcome:
        match request.kind:
            case RequestKind.CREATE | RequestKind.UPDATE if request.type in _WRITES:
                return self._written(request, run)
            case RequestKind.DELETE if request.type in _REMOVALS:
                return self._removed(request, run)
        raise ConfigurationError(
            f"The installer does not know the request {request.kind or '(none)'} for {request.type or '(no type)'}. "
            "Is the function of the same release as the template?"
        )

    def _written(self, request: StackRequest, run: InstallerRun) -> InstallerOutcome:
        refuse_another_cluster(request)
        if members.is_of_member(request):
            run.begin("Reading the register of members")
            present = run.gateways.register.get(request.cluster)
            run.doing = ""
            members.refuse(request, home=self._cluster, version=self._version, present=present)
        # What the doors would not start with is refused before they get it.
        settings = in_force(request.properties.get("Settings", ""))
        request = replace(request, properties={**settings, **request.properties})
        given: Mapping[str, str] = {}
        if self._may_enter(request):
            with with_access(run.gateways, run.cluster, run.invocation) as run.objects:
                given = _WRITES[request.type](run, request)
        else:
            run.notes.append("AccessEntries is false: apply the manifests by hand")
        if members.is_of_member(request) and request.type == ResourceType.CONNECTION:
            run.begin("Registering the member")
            run.has_written = True
            run.gateways.register.put(members.registered(request, self._version))
        return InstallerOutcome(data={**data(run), **given})

    def _may_enter(self, request: StackRequest) -> bool:
        if members.is_of_member(request):
            return request.properties.get("AccessEntries", "true") == "true"
        return self._has_access_entries

    def _removed(self, request: StackRequest, run: InstallerRun) -> InstallerOutcome:
        if request.physical_id == NOTHING_MADE:
            return InstallerOutcome()
        if not self._may_enter(request):
            _unregister(run, request)
            return InstallerOutcome()
        if request.type == ResourceType.PREPARATION and preparation.stack_lives_on(run, request):
            return InstallerOutcome(data=data(run))
        run.begin(_ENTERING)
        try:
            with with_access(run.gateways, run.cluster, run.invocation) as run.objects:
                self._remove(request, run)
        except NotFoundError:
            if run.doing != _ENTERING:
                raise
            run.notes.append(f"there is no cluster {run.cluster}, so there is nothing to remove in it")
            if request.type == ResourceType.PREPARATION:
                preparation.remove_node_role(run, request)
        _unregister(run, request)
        return InstallerOutcome(data=data(run))

    def _remove(self, request: StackRequest, run: InstallerRun) -> None:
        if (owner := run.owner()) not in ("", request.stack):
            run.notes.append(f"cluster {run.cluster} is run by another stack, from which nothing is taken: {owner}")
            return
        _REMOVALS[request.type](run)
        if request.type == ResourceType.PREPARATION:
            preparation.remove_node_role_after_nodes(run, request)

    def _operate(self, event: Mapping[str, Any], invocation: Invocation) -> Mapping[str, Any]:
        name = str(event.get("operation", ""))
        if name != ROTATE:
            raise ConfigurationError(f"operation is {name!r}: expected {ROTATE}")
        return {OUTCOME: "done", **self._rotated(event, invocation)}

    def _rotated(self, event: Mapping[str, Any], invocation: Invocation) -> Mapping[str, Any]:
        """One step of a rotation. It enters the cluster only if that step writes there. A member's event says its
        ``cluster``, and by which ``role`` and ``secret``.
        """
        cluster, gateways = str(event.get("cluster", "")), self._gateways
        if cluster:
            gateways = gateways.as_member(str(event.get("role", "")), str(event.get("secret", "")))
        elif not self._has_access_entries:
            raise ConfigurationError("AccessEntries is false: the installer cannot write the webhook configuration")
        run = InstallerRun(cluster or self._cluster, self._version, gateways, invocation)
        access = partial(with_access, gateways, run.cluster, invocation)
        return rotate(run, event, access, gateways.now())


def _unregister(run: InstallerRun, request: StackRequest) -> None:
    """Take a member out of the register, so that nobody serves it any more, unless another stack has registered it."""
    if not members.is_of_member(request) or request.type != ResourceType.CONNECTION:
        return
    run.begin("Taking the member out of the register")
    present = run.gateways.register.get(run.cluster)
    if present is not None and present.stack == request.stack:
        run.gateways.register.remove(run.cluster)


def refuse_another_cluster(request: StackRequest) -> None:
    """Raises ``ConfigurationError`` for a stack that is to move to another cluster.

    The physical ID says which one it has, also while a refused move is rolled back.
    """
    present = request.physical_id.partition("/")[0] if "/" in request.physical_id else ""
    if present and present != request.cluster:
        raise ConfigurationError(
            f"ClusterName cannot be changed from {present} to {request.cluster} while the stack lives: nodes of "
            f"{present} would be left to nobody. Deploy a stack of its own for {request.cluster} "
            f"(make deploy CLUSTER={request.cluster}), and remove this one with make undeploy CLUSTER={present}."
        )
