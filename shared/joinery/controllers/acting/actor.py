"""The actor: it carries commands out through the gateways, many chains at a time.

Commands come in chains, one chain an object. Within a chain they are carried out in order, and the first failure stops
the rest, because what follows relies on it; other chains go on. Only a pod that cannot be made to go stops nothing
behind it: its neighbours can be asked all the same, and how far a drain has come is read from the pods that are left.
Deleting what is gone already counts as done. Failures are logged one by one, and raised together at the end
(``conclude``), so that the door rings again or redelivers.

Chains are worked on side by side (``Gateways.workers``). Where several have come to a command that EC2 or DynamoDB
takes for many objects, one call serves them all; one that is refused is repeated for each of them alone, so that an
object at fault stops only itself. Threads make calls and nothing else: the log, the Events and the failures come
afterwards, in the order of the chains.

No call is begun that might outlast the run (``Invocation.has_time_for``). What is left then is left to the next run,
which reads the world anew; ``is_cut_short`` says so.

What is logged as decided is also carried out, unless the line says mode ``observe``: then the gateways do not write
(``joinery.gateways.observing``).
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from joinery.controllers.acting.announcements import announce
from joinery.controllers.acting.chain import (
    Chain,
    batches,
    is_a_judgement,
    is_silence,
)
from joinery.controllers.acting.gateway_calls import GatewayCalls
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.telemetry import COMMAND, ERROR, REASON, Count, count, logger, metrics
from joinery.decisions.metrics.definitions import NODE_POOL_LABEL, Duration, Measurement
from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.actions import (
    Announce,
    Ask,
    Change,
    Command,
    Evict,
    MarkUnavailable,
    UpdateClaim,
    subject,
)
from joinery.objects.errors import JoineryError, RefusedError, together
from joinery.objects.karpenter.labels import NODE_POOL, TERMINATION_FINALIZER
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.refusals import Due, Refusals, due, failure_events, is_refusal, is_reported, refused, request
from joinery.objects.snapshot.claims import REGISTERED


class Actor:
    """Carries out the commands of one reconcile. ``now`` is its snapshot's moment.

    ``emits_at_the_end``: whether Events are sent when the run ends, because other things must not wait for them: a
    webhook of somebody's that is down may take ten seconds for each. ``attempted``: how many commands were tried so
    far, Events not counted.
    """

    def __init__(
        self, gateways: Gateways, now: datetime, invocation: Invocation, *, emits_at_the_end: bool = False
    ) -> None:
        self._gateways = gateways
        self.now = now
        self._invocation = invocation
        self._calls = GatewayCalls(gateways, now, invocation)
        self._emits_at_the_end = emits_at_the_end
        self._unsent: list[Announce] = []
        self._failures: list[Exception] = []
        self._left = 0
        self.attempted = 0

    @property
    def is_cut_short(self) -> bool:
        """Whether something was left undone because the run's time was over."""
        return self._left > 0

    def has_time_for(self, seconds: float) -> bool:
        """Whether a call that takes so long at most may be begun."""
        return self._invocation.has_time_for(seconds)

    def carry_out(self, *chains: Iterable[Command]) -> list[Sequence[Exception]]:
        """Carry out each chain as far as it goes. Never raises: see ``conclude``.

        Returns for each what went wrong with it, for a caller whose chains are not about the same thing. A chain that
        waits, because a command of it was refused (``joinery.objects.refusals``), has failed as well, without another
        Event.
        """
        refusals = self._gateways.refusals.at(self.now)
        begun = [_begun(due(tuple(chain), refusals, self.now)) for chain in chains]
        under_way: Sequence[Chain] = begun
        while under_way:
            self._gateways.workers.run([partial(self._advance, chain) for chain in under_way])
            self._carry_out_together(under_way)
            for chain in under_way:
                self._log(chain, refusals)
            under_way = [chain for chain in under_way if not chain.is_over]
        self.leave(sum(chain.is_left for chain in begun))
        self.emit([news for chain in begun for news in chain.news])
        return [chain.failures for chain in begun]

    def was_refused(self, ask: Ask) -> bool:
        """Whether that was refused when it was asked last."""
        return request(ask) in self._gateways.refusals.at(self.now)

    def waits(self, asked: Change | Ask) -> bool:
        """Whether that was refused a moment ago."""
        refusal = self._gateways.refusals.at(self.now).get(request(asked))
        return refusal is not None and not refusal.is_due(self.now)

    def answered(self, ask: Ask, error: Exception | None, *, with_event: bool = True) -> str:
        """Take note of what came of it, with an Event about a refusal. Returns why it was refused, if it was."""
        news = self._remembered(ask, error, self._gateways.refusals.at(self.now))
        if with_event:
            self.emit(news)
        refusal = self._gateways.refusals.at(self.now).get(request(ask))
        return refusal.message if refusal else ""

    def emit(self, news: Sequence[Announce]) -> None:
        """Send Events: now, or at the end of the run."""
        if self._emits_at_the_end:
            self._unsent += news
        else:
            announce(self._gateways, self._invocation, news)

    def leave(self, number: int) -> None:
        """Take note that so many things are left to the next run, because this one has no time for them."""
        self._left += number

    def end(self) -> None:
        """Send the Events that are left. Log and count it if the run was cut short, which is no failure."""
        announce(self._gateways, self._invocation, self._unsent)
        self._unsent = []
        if self._left:
            count(Count.RUNS_CUT_SHORT)
            logger.warning("the run ended in time", extra={REASON: f"{self._left} chains are left to the next run"})

    def conclude(self, *others: "Actor") -> None:
        """End, and raise what went wrong, if anything did, as one error that tells the door what to do about it.

        ``others``: those that carried out another part of the run.
        """
        for actor in (self, *others):
            actor.end()
        failures = [failure for actor in (self, *others) for failure in actor._failures]
        if failures:
            raise together(failures) from failures[0]

    def note(self, what: str, error: Exception) -> None:
        """Log a failure outside of a command, to be raised at the end."""
        self._failed(what, error, {})

    @contextmanager
    def noting(self, what: str) -> Iterator[None]:
        """Note a failure of the block as ``what``, and go on after it, even if the mistake is ours."""
        try:
            yield
        except Exception as error:
            self.note(what, error)

    def ring(self, bell: Bell, not_before: datetime | None = None) -> None:
        """Wake a door (``Doorbell.ring``). A failure is noted: nobody else goes without, and what follows in the run is
        done.
        """
        with self.noting(f"the bell of {bell.value} was not rung"):
            self._gateways.doorbell.ring(bell, not_before)

    # --- in the threads of the workers ---

    def _advance(self, chain: Chain) -> None:
        """Carry out commands of a chain, up to the first that is carried out together with those of other chains."""
        while not chain.is_over and chain.awaited is None:
            command = chain.commands[0]
            if isinstance(command, Announce):
                chain.news.append(chain.commands.popleft())  # type: ignore[arg-type]
            else:
                chain.tried(command, self._calls.make(command, chain))

    def _ask(self, batch: Sequence[Chain]) -> Sequence[Chain]:
        """Carry out what these chains have come to, by one call.

        Returns the chains to be asked for one by one, because the call was refused and may do for some of them.
        """
        commands = [command for chain in batch if (command := chain.awaited)]
        error = self._calls.make_together(commands)
        if error is not None and len(batch) > 1 and is_a_judgement(error):
            return batch
        for chain, command in zip(batch, commands, strict=True):
            chain.tried(command, error)
        return ()

    # --- between the calls ---

    def _carry_out_together(self, chains: Sequence[Chain]) -> None:
        refused = self._gateways.workers.run([partial(self._ask, batch) for batch in batches(chains)])
        alone = [[chain] for batch in refused if not isinstance(batch, JoineryError) for chain in batch]
        self._gateways.workers.run([partial(self._ask, batch) for batch in alone])

    def _log(self, chain: Chain, refusals: Refusals) -> None:
        """Log what was carried out of a chain since the last time, and note what failed."""
        for command, error in chain.outcomes:
            self.attempted += 1
            logger.info("decided", extra=_line(command))
            if error is None and self._gateways.may_launch:
                metrics.add(*transitions(command, self.now))
            if error is not None:
                self._failed("a command failed", error, _line(command))
            chain.news += self._remembered(command, error, refusals)
        chain.outcomes.clear()

    def _remembered(self, command: Change | Ask, error: Exception | None, refusals: Refusals) -> Sequence[Announce]:
        """Note that a command was refused, or accepted after refusals. Returns the Events about that.

        ``refusals``: those before.
        """
        before = refusals.get(request(command)) if refusals else None
        if error is None and before is not None:
            self._gateways.refusals.forget([before.request])
        if error is None or is_silence(error):
            return ()
        if not is_refusal(error):
            return failure_events(command, str(error)) if isinstance(command, Evict) else ()
        refusal = refused(command, error, self.now, before)
        was_reported = is_reported(refusal, refusals)
        self._gateways.refusals.note([refusal])
        return () if was_reported else failure_events(command, refusal.message)

    def _failed(self, what: str, error: Exception, about: Mapping[str, object]) -> None:
        bug = None if isinstance(error, JoineryError) else error
        logger.error(what, exc_info=bug, extra={**about, ERROR: str(error)})
        self._failures.append(error)


def _begun(found: Due) -> Chain:
    chain = Chain(deque(found.commands))
    if found.refusal is not None:
        chain.failures.append(RefusedError(f"it waits, because this was refused: {found.refusal.request}"))
    return chain


def _line(command: Change) -> dict[str, object]:
    """The command as the keys of a line of the log."""
    return {COMMAND: f"{type(command).__name__} {subject(command)}", REASON: command.reason}


def transitions(command: Command, now: datetime) -> Iterator[Measurement]:
    """What a command adds to the counters once it is carried out: nodes that joined or ended, capacity sold out.

    A node counts when its claim says Registered, and when the finalizer goes.
    """
    if isinstance(command, MarkUnavailable):
        yield Measurement(Count.POOLS_SOLD_OUT, 1)
    if not isinstance(command, UpdateClaim):
        return
    before, after = command.before, command.after
    labels = {NODE_POOL_LABEL: after.metadata.labels.get(NODE_POOL, "")}
    if after.is_true(REGISTERED) and not before.is_true(REGISTERED):
        yield Measurement(Count.NODES_CREATED, 1, labels)
    if _ends(before, after):
        yield Measurement(Count.NODES_TERMINATED, 1, labels)
        if before.metadata.deletion_timestamp is not None:
            seconds = (now - before.metadata.deletion_timestamp).total_seconds()
            yield Measurement(Duration.TERMINATION, max(0.0, seconds))


def _ends(before: NodeClaim, after: NodeClaim) -> bool:
    had, has = (TERMINATION_FINALIZER in claim.metadata.finalizers for claim in (before, after))
    return had and not has
