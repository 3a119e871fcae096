"""The actor: it carries commands out through the gateways, one call a command.

Commands come in chains, one chain an object. Within a chain the first failure stops the rest, because what follows
relies on it; other chains go on. Only a pod that cannot be made to go stops nothing behind it: its neighbours can be
asked all the same, and how far a drain has come is read from the pods that are left. Deleting what is gone already
counts as done. Failures are logged one by one, and raised together at the end (``conclude``), so that the door rings
again or redelivers.

What is logged as decided is also carried out, unless the line says mode ``observe``: then the gateways do not write
(``joinery.observing``).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import assert_never

from joinery.cluster.gateway import Eviction
from joinery.commands import (
    Announce,
    Change,
    Command,
    DeleteClaim,
    DeleteNode,
    DeletePod,
    Evict,
    MarkUnavailable,
    Reject,
    TagInstance,
    TerminateInstance,
    Tolerate,
    UpdateClaim,
    UpdateClass,
    UpdateNode,
    UpdatePool,
)
from joinery.controllers.announcements import announce
from joinery.errors import ConfigurationError, ConflictError, JoineryError, NotFoundError, UnavailableError
from joinery.gateways import Gateways
from joinery.observability import COMMAND, ERROR, REASON, logger, said


class Actor:
    """Carries out the commands of one reconcile. ``now`` is its snapshot's moment.

    ``attempted``: how many commands were tried so far, Events not counted.
    """

    def __init__(self, gateways: Gateways, now: datetime) -> None:
        self._gateways = gateways
        self._now = now
        self._failures: list[Exception] = []
        self.attempted = 0

    def carry_out(self, *chains: Iterable[Command]) -> None:
        """Carry out each chain as far as it goes. Never raises: see ``conclude``."""
        for chain in chains:
            for command in chain:
                try:
                    self._carry_out(command)
                except JoineryError as error:
                    logger.error("a command failed", extra=_line(command) | {ERROR: str(error)})
                    self._failures.append(error)
                    if not _fails_alone(command, error):
                        break

    def conclude(self) -> None:
        """Raise what went wrong, if anything did, as one error that tells the door what to do about it.

        If all failures are of one kind that needs no retry, it is that kind; otherwise ``UnavailableError``.
        """
        if not self._failures:
            return
        text = f"{len(self._failures)} failed, first: {self._failures[0]}"
        for kind in (ConflictError, ConfigurationError, NotFoundError):
            if all(isinstance(failure, kind) for failure in self._failures):
                raise kind(text) from self._failures[0]
        raise UnavailableError(text) from self._failures[0]

    def note(self, what: str, error: Exception) -> None:
        """Log a failure outside of a command, to be raised at the end."""
        logger.error(what, extra=said(**{ERROR: str(error)}))
        self._failures.append(error)

    @contextmanager
    def noting(self, what: str) -> Iterator[None]:
        """Note a failure of the block as ``what``, and go on after it."""
        try:
            yield
        except JoineryError as error:
            self.note(what, error)

    def _carry_out(self, command: Command) -> None:
        if isinstance(command, Announce):
            announce(self._gateways.recorder, [command])
            return
        logger.info("decided", extra=_line(command))
        self.attempted += 1
        try:
            self._change(command)
        except NotFoundError as error:
            if not _is_done_when_gone(command):
                # It was there when it was read, so the decision is out of date.
                raise ConflictError(f"{_subject(command)} is gone") from error

    def _change(self, command: Change) -> None:  # noqa: C901 - one flat table, a line a command
        cluster = self._gateways.cluster
        match command:
            case UpdateClaim(before, after):
                cluster.update_node_claim(before, after)
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
            case Reject(kind, name, reason):
                cluster.reject(kind, name, reason)
            case Tolerate(pods, toleration):
                cluster.tolerate(pods, toleration)
            case Evict():
                self._evict(command)
            case DeletePod(pod, seconds):
                cluster.delete_pod(pod, grace_seconds=seconds)
            case TerminateInstance(instance_id):
                self._gateways.cloud.terminate([instance_id])
            case TagInstance(instance_id, tags):
                self._gateways.cloud.tag(instance_id, tags)
            case MarkUnavailable(offering, reason):
                self._gateways.unavailable.mark([offering], now=self._now, reason=reason)
            case _:
                assert_never(command)

    def _evict(self, command: Evict) -> None:
        try:
            answer = self._gateways.cluster.evict(command.pod)
        except JoineryError as error:
            if not _is_silence(error):
                text = (
                    f"its node {command.node.metadata.name} is being drained, but it was not evicted: {_cause(error)}"
                )
                announce(self._gateways.recorder, [Announce("FailedEviction", text, command.pod, warning=True)])
            raise
        match answer:
            case Eviction.EVICTED:
                event = Announce("Evicted", f"evicted: {command.reason}", command.pod)
            case Eviction.BLOCKED:
                text = f"a disruption budget keeps the pod {command.pod.key}"
                event = Announce("FailedDraining", text, command.node, warning=True)
            case Eviction.GONE | Eviction.NOT_ASKED:
                return
        announce(self._gateways.recorder, [event])


def _is_done_when_gone(command: Change) -> bool:
    return isinstance(command, DeleteClaim | DeleteNode | DeletePod | TerminateInstance | TagInstance)


def _fails_alone(command: Command, error: JoineryError) -> bool:
    """Whether what follows in the chain is carried out all the same.

    Not where nobody answers: each of the node's pods would wait for that as long as this one did.
    """
    return isinstance(command, Evict | DeletePod) and not _is_silence(error)


def _is_silence(error: JoineryError) -> bool:
    """Whether nobody answered, so that the next request would wait as long and probably for nothing."""
    return isinstance(error, UnavailableError) and not error.is_answer


def _cause(error: JoineryError) -> str:
    return error.cause if isinstance(error, ConfigurationError) else str(error)


def _line(command: Command) -> dict[str, object]:
    """The command as the keys of a line of the log."""
    return {COMMAND: f"{type(command).__name__} {_subject(command)}", REASON: command.reason}


def _subject(command: Command) -> str:  # noqa: C901, PLR0911 - one flat table
    """What the command is about, for a person."""
    match command:
        case UpdateClaim(before) | UpdateNode(before) | UpdatePool(before) | UpdateClass(before):
            return before.metadata.name
        case DeleteClaim(claim):
            return claim.metadata.name
        case DeleteNode(node):
            return node.metadata.name
        case Tolerate(pods):
            return f"{len(pods)} pods, first {pods[0].key}"
        case Evict(pod) | DeletePod(pod):
            return pod.key
        case TerminateInstance(instance_id) | TagInstance(instance_id):
            return instance_id
        case Reject(kind, name):
            return f"{kind} {name}"
        case MarkUnavailable(offering):
            return f"{offering.instance_type} {offering.zone} {offering.capacity_type}"
        case Announce(about):
            return about
