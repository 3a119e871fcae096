"""The call of a gateway that each command stands for."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import assert_never

from joinery.controllers.acting.chain import (
    Chain,
    Together,
    is_done_when_gone,
    is_silence,
    longest,
)
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.telemetry import Count, count
from joinery.gateways.bundles import Gateways
from joinery.gateways.kubernetes.gateway import LONGEST_CALL, Eviction
from joinery.objects.actions import (
    Announce,
    Change,
    DeleteClaim,
    DeleteNode,
    DeletePod,
    Evict,
    MarkUnavailable,
    RebootInstance,
    Reject,
    RestartDeployment,
    TagInstance,
    TerminateInstance,
    Tolerate,
    UpdateBuffer,
    UpdateClaim,
    UpdateClass,
    UpdateNode,
    UpdateOverlay,
    UpdatePod,
    UpdatePool,
    UpdateRequest,
    subject,
)
from joinery.objects.errors import ConflictError, JoineryError, NotFoundError, TimeIsOverError
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim


class GatewayCalls:
    """Makes the calls of one run, in the threads of its workers. ``now``: the moment of its snapshot."""

    def __init__(self, gateways: Gateways, now: datetime, invocation: Invocation) -> None:
        self._gateways = gateways
        self._now = now
        self._invocation = invocation

    def make(self, command: Change, chain: Chain) -> Exception | None:
        """Carry out a command of a chain, if there is time for it. Returns what went wrong, also by our own mistake."""
        return self._made(partial(self._change, command, chain), command)

    def make_together(self, commands: Sequence[Together]) -> Exception | None:
        """Carry out commands of several chains by one call. Returns what went wrong."""
        return self._made(partial(self._change_together, commands), commands[0])

    def _made(self, call: partial[None], command: Change) -> Exception | None:
        """Make a call for a command, if there is time for it; what went wrong, or None."""
        if not self._invocation.has_time_for(longest(command)):
            return TimeIsOverError(f"no time is left for {subject(command)}")
        try:
            call()
        except NotFoundError as error:
            if is_done_when_gone(command):
                return None
            # It was there when it was read, so the decision is out of date.
            gone = ConflictError(f"{subject(command)} is gone")
            gone.__cause__ = error
            return gone
        except Exception as error:  # also a mistake of our own stops no other chain
            return error
        return None

    def _change(self, command: Change, chain: Chain) -> None:  # noqa: C901 - one flat table, a line a command
        cluster = self._gateways.cluster
        match command:
            case UpdateClaim(before, after):
                self._update_claim(before, after, chain)
            case DeleteClaim(claim):
                cluster.delete_node_claim(claim)
            case UpdateNode(before_node, after_node):
                cluster.update_node(before_node, after_node)
            case DeleteNode(node):
                cluster.delete_node(node)
            case UpdatePool(before_pool, after_pool):
                cluster.update_node_pool(before_pool, after_pool)
            case UpdateClass(before_class, after_class):
                cluster.update_node_class(before_class, after_class)
            case UpdateOverlay(before_overlay, after_overlay):
                cluster.update_node_overlay(before_overlay, after_overlay)
            case UpdateBuffer(before_buffer, after_buffer):
                cluster.update_capacity_buffer(before_buffer, after_buffer)
            case UpdateRequest(before_request, after_request):
                cluster.update_provisioning_request(before_request, after_request)
            case Reject(kind, name, reason):
                cluster.reject(kind, name, reason)
            case UpdatePod(before_pod, after_pod):
                cluster.update_pod(before_pod, after_pod)
            case Tolerate():
                self._tolerate(command)
            case Evict():
                self._evict(command, chain.news)
            case RestartDeployment():
                cluster.restart(command.before, command.after)
            case DeletePod(pod, seconds):
                cluster.delete_pod(pod, grace_seconds=seconds)
                chain.news.append(Announce("Disrupted", command.reason, pod))
            case RebootInstance(instance_id):
                self._gateways.cloud.reboot(instance_id)
            case TagInstance(instance_id, tags):
                self._gateways.cloud.tag(instance_id, tags)
            case TerminateInstance() | MarkUnavailable():
                self._change_together([command])
            case _:
                assert_never(command)

    def _change_together(self, commands: Sequence[Together]) -> None:
        """Make one call for commands of one kind, and of one reason where the call carries it."""
        instances = [command.instance_id for command in commands if isinstance(command, TerminateInstance)]
        offerings = [command.offering for command in commands if isinstance(command, MarkUnavailable)]
        if instances:
            self._gateways.cloud.terminate(instances)
        if offerings:
            self._gateways.unavailable.mark(offerings, now=self._now, reason=commands[0].reason)

    def _update_claim(self, before: NodeClaim, after: NodeClaim, chain: Chain) -> None:
        name, version = before.metadata.name, before.metadata.resource_version
        current = with_metadata(before, resource_version=chain.stored.get(name, version))
        stored = self._gateways.cluster.update_node_claim(current, after)
        chain.stored[name] = stored.metadata.resource_version

    def _tolerate(self, command: Tolerate) -> None:
        """Try every pod, unless nobody answers. Raises what was wrong with the first that was refused."""
        refused = None
        for pod in command.pods:
            if not self._invocation.has_time_for(LONGEST_CALL):
                raise TimeIsOverError(f"no time is left for pod {pod.key}")
            try:
                self._gateways.cluster.tolerate(pod, command.toleration)
            except NotFoundError:
                continue
            except JoineryError as error:
                if is_silence(error):
                    raise
                refused = refused or error
        if refused is not None:
            raise refused

    def _evict(self, command: Evict, news: list[Announce]) -> None:
        match self._gateways.cluster.evict(command.pod):
            case Eviction.EVICTED:
                count(Count.EVICTIONS, code="201")
                news.append(Announce("Evicted", f"evicted: {command.reason}", command.pod))
            case Eviction.BLOCKED:
                count(Count.EVICTIONS, code="429")
                # On the pod: its node has an Event of that reason already, and a second one would be dropped.
                text = f"its node {command.node.metadata.name} is being drained, but a disruption budget keeps it"
                news.append(Announce("FailedEviction", text, command.pod))
            case Eviction.GONE | Eviction.NOT_ASKED:
                pass
