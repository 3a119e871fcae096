"""EC2 will take instances away: retire their claims and have their replacements launched first.

Only marks and deletions are written here, so no lock is needed; provisioning buys the replacement and lifecycle drains.

EventBridge's rules are account-wide: most messages are about instances of others. So a batch reads the claims alone,
once, and Nodes one by one where a claim of ours is concerned. A warm function need not read the claims for every batch
(``interruption.ownership``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain, zip_longest

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.telemetry import ERROR, NODE_CLAIM, REASON, Count, count, logger, nonempty
from joinery.controllers.triggers.dispatcher import Summary
from joinery.decisions.interruption.batch import Nodes, NoticeBatch, NoticeResponse, respond_to_all
from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.decisions.interruption.ownership import EarlyNoticeError, may_become_known, suffice, unknown_instances
from joinery.decisions.interruption.rebalance import mode_of
from joinery.decisions.interruption.response import concerned
from joinery.decisions.interruption.status import notices_of
from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell, ring_each
from joinery.objects.actions import Command
from joinery.objects.errors import ConflictError, JoineryError, NotFoundError, together
from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.policies import Rebalance
from joinery.objects.snapshot.snapshot import ClaimsSnapshot


class InterruptionController:
    """A batch of notices at a time; the queue repeats those that failed."""

    def __init__(
        self, gateways: Gateways, rebalance: Rebalance = Rebalance.OFF, *, now: Callable[[], datetime] | None = None
    ) -> None:
        """``rebalance``: what is done about recommendations for nodes of NodePools that do not say. ``now``: the clock
        by which claims that an earlier batch read are used again for some seconds; None: they never are.
        """
        self._gateways = gateways
        self._rebalance = rebalance
        self._now = now
        self._last_snapshot: ClaimsSnapshot | None = None

    def reconcile(self, notices: Sequence[Notice], invocation: Invocation) -> tuple[Summary | Exception, ...]:
        """Read, decide, act. For each notice what came of it, or what went wrong with it alone.

        Raises what concerns them all: the claims cannot be read, a bell cannot be rung.
        """
        sent_by_ec2 = [notice for notice in notices if notice.kind is not NoticeKind.STATUS_POLL]
        # What EC2 has sent leaves little time, so EC2 is asked for more afterwards.
        outcomes = iter(self._answer(sent_by_ec2, invocation))
        return tuple(
            self._poll(invocation) if notice.kind is NoticeKind.STATUS_POLL else next(outcomes) for notice in notices
        )

    def _poll(self, invocation: Invocation) -> Summary | Exception:
        """Ask EC2 what is wrong with instances, and answer as if it had sent notices about them.

        The cluster is read only where something is wrong.
        """
        try:
            statuses = self._gateways.cloud.impaired()
            snapshot = self._read() if statuses else None
        except JoineryError as error:
            return error
        notices = notices_of(statuses, snapshot) if snapshot else ()
        outcomes = self._answer(notices, invocation)
        failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        if failures:
            return failures[0]
        return {"notice": NoticeKind.STATUS_POLL.value, "statuses": len(statuses), "answers": list(outcomes)}

    def _answer(self, notices: Sequence[Notice], invocation: Invocation) -> Sequence[Summary | Exception]:
        """What came of each notice. One that meets a conflict is decided once more, in a new snapshot."""
        if not notices:
            return ()
        outcomes = list(self._answer_in(self._recent_snapshot(notices) or self._read(), notices, invocation))
        # At once: the queue would bring it again after a third of a spot warning's time.
        conflicts = [index for index, outcome in enumerate(outcomes) if isinstance(outcome, ConflictError)]
        if conflicts:
            retried = self._answer_in(self._read(), [notices[index] for index in conflicts], invocation)
            for index, outcome in zip(conflicts, retried, strict=True):
                outcomes[index] = outcome
        return outcomes

    def _read(self) -> ClaimsSnapshot:
        self._last_snapshot = self._gateways.cluster.claims_snapshot()
        return self._last_snapshot

    def _recent_snapshot(self, notices: Sequence[Notice]) -> ClaimsSnapshot | None:
        """The claims as they were read last, with those that the notices concern as they are now.

        None where claims that were read before are not enough for these notices.
        """
        last = self._last_snapshot
        if last is None or self._now is None:
            return None
        now = self._now()
        if not suffice(last, now - last.now, notices):
            return None
        concerned_claims = [claim for notice in notices for claim in concerned(notice, last.managed_claims)]
        if any(claim.origin for claim in concerned_claims):
            return None  # An object of an older API has another place.
        names = list(dict.fromkeys(claim.metadata.name for claim in concerned_claims))
        answers = self._gateways.workers.run([partial(self._gateways.cluster.node_claim, name) for name in names])
        current = {claim.metadata.name: claim for claim in answers if isinstance(claim, NodeClaim)}
        if len(current) < len(names):
            return None  # One that is gone or cannot be read says nothing by itself.
        claims = tuple(current.get(claim.metadata.name, claim) for claim in last.node_claims)
        return replace(last, now=now, node_claims=claims)

    def _answer_in(
        self, snapshot: ClaimsSnapshot, notices: Sequence[Notice], invocation: Invocation
    ) -> Sequence[Summary | Exception]:
        batch = NoticeBatch(notices, snapshot)
        nodes, rebalance = self._nodes(batch), self._rebalance_modes(batch.recommended)
        responses = respond_to_all(batch, nodes, rebalance)
        failures = [list(response.failures) for response in responses]
        actor = Actor(self._gateways, snapshot.now, invocation, emits_at_the_end=True)
        _carry_out(
            actor, [(own, chains) for own, one in zip(failures, responses, strict=True) for chains in one.chains]
        )
        try:
            # Also for claims that are being deleted already: an earlier delivery may have failed before it woke the
            # others.
            if any(response.is_loss for response in responses) or set(rebalance.values()) - {Rebalance.OFF}:
                ring_each(self._gateways.doorbell, Bell.PROVISIONING, Bell.LIFECYCLE)
        finally:
            # Within the second that provisioning's bell takes.
            _carry_out(actor, [(own, one.shortages) for own, one in zip(failures, responses, strict=True)])
            actor.end()
        return [_outcome(response, own, snapshot) for response, own in zip(responses, failures, strict=True)]

    def _nodes(self, batch: NoticeBatch) -> Nodes:
        """The Nodes of the claims that may have to be retired. Lifecycle taints what cannot be read now."""
        names = batch.node_names
        answers = self._gateways.workers.run([partial(self._gateways.cluster.node, node) for node in names.values()])
        nodes = dict(zip(names, answers, strict=True))
        for claim, answer in nodes.items():
            if isinstance(answer, JoineryError) and not isinstance(answer, NotFoundError):
                about = {NODE_CLAIM: claim, ERROR: str(answer)}
                logger.warning("its Node cannot be read, and is left for lifecycle to taint", extra=about)
        for invalid in chain.from_iterable(batch.unreadable):
            about = {NODE_CLAIM: invalid.name, REASON: invalid.reason}
            logger.warning("EC2 takes an instance whose NodeClaim cannot be read: only its Node goes", extra=about)
        return nodes

    def _rebalance_modes(self, claims: Mapping[str, NodeClaim]) -> Mapping[str, Rebalance]:
        """By the claim's name, what its NodePool wants done about a recommendation.

        Where the pool cannot be read, nothing: it may have said so.
        """
        pool_of_claim = {name: claim.metadata.labels.get(NODE_POOL, "") for name, claim in claims.items()}
        pool_names = list(dict.fromkeys(pool_of_claim.values()))
        answers = self._gateways.workers.run([partial(self._gateways.cluster.node_pool, name) for name in pool_names])
        mode_of_pool = {}
        for name, answer in zip(pool_names, answers, strict=True):
            if isinstance(answer, JoineryError):
                about = {"node_pool": name, ERROR: str(answer)}
                logger.warning(
                    "a NodePool cannot be read, so for a recommendation its nodes get an Event alone", extra=about
                )
                mode_of_pool[name] = Rebalance.OFF
            else:
                mode_of_pool[name] = mode_of(answer, self._rebalance)
        return {claim: mode_of_pool[pool] for claim, pool in pool_of_claim.items()}


def _carry_out(actor: Actor, answers: Sequence[tuple[list[Exception], Sequence[tuple[Command, ...]]]]) -> None:
    """Carry out chains side by side: the first of each claim, then the second, and so on. What goes wrong is added to
    the failures beside them.

    The chains of one claim do not rely on each other, but must not overlap: its mark is written before its deletion.
    """
    for wave in zip_longest(*(chains for _, chains in answers), fillvalue=()):
        for (failures, _), new in zip(answers, actor.carry_out(*wave), strict=True):
            failures += new


def _outcome(response: NoticeResponse, failures: Sequence[Exception], snapshot: ClaimsSnapshot) -> Summary | Exception:
    """What came of a notice."""
    notice = response.notice
    if failures:
        return together(failures)
    if notice.unread:
        logger.warning("a part of a notice cannot be read", extra={REASON: notice.unread})
    unknown = unknown_instances(notice, snapshot)
    if unknown and may_become_known(notice, snapshot.managed_claims, snapshot.now):
        return EarlyNoticeError(f"no claim knows {', '.join(unknown)}, and claims wait for their instances")
    if response.claims:
        count(Count.INTERRUPTIONS, message_type=notice.kind.value)
    subject = nonempty(instances=list(notice.instances), reservation=notice.reservation)
    return {"notice": notice.kind.value, **subject, "claims": response.claims}
