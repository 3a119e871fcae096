"""The timeline: what happened, as lines for people to read.

A narrator watches the cluster, the doors and EC2, and turns what happens at one moment into few lines: one for forty
pods that wait, not forty. It changes nothing.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from joinery.objects.annotations.disruption import is_candidate
from joinery.objects.annotations.plans import planned_pods
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from simulator.actors.ec2 import Envelope
from simulator.doors.doors import Call
from simulator.kubernetes.apiserver import Change
from simulator.kubernetes.budgets import is_ready
from simulator.kubernetes.resources import StoredEvent
from simulator.story.scenario import Happening
from simulator.story.simulation import Simulation
from simulator.story.speech import counted, names, place, pods_by_owner, short, tail

#: More lines than this that differ only in their subject become one.
MOST_ALIKE = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. ``hourly`` is what all instances cost at that moment, $/h."""

    at: datetime
    who: str
    word: str
    subject: str
    why: str
    hourly: float


@dataclass
class _Moment:
    """What happened since the last line, by kind."""

    created: list[Pod] = field(default_factory=list)
    bound: list[Pod] = field(default_factory=list)
    evicted: list[Pod] = field(default_factory=list)
    ended: list[Pod] = field(default_factory=list)
    waiting: list[StoredEvent] = field(default_factory=list)
    claims: list[NodeClaim] = field(default_factory=list)


class Narrator:
    """Collects ``entries`` while a simulation runs."""

    def __init__(self, simulation: Simulation) -> None:
        self.entries: list[Entry] = []
        self.when_said: list[Callable[[Entry], None]] = []
        self._simulation = simulation
        self._world = simulation.world
        self._moment = _Moment()
        self._heard: set[str] = set()
        self._all_ran = True
        self._reviews: list[datetime] = []
        self._waiting: list[Entry] = []
        self._failures: dict[tuple[str, str], datetime] = {}
        self._has_news = False
        self._is_collecting = False
        simulation.world.cluster.api.watch(self._notice)
        simulation.world.cluster.listen(self._hear)
        simulation.doors.when_called.append(self._called)
        simulation.when_happening.append(self._happening)
        simulation.when_published.append(self._published)
        simulation.engine.after_each(self._tell)

    def say(self, who: str, word: str, subject: str, why: str = "") -> None:
        """Add a line. While a door is at work its lines wait, so that what it decided comes before what followed."""
        entry = Entry(self._world.clock.now(), who, word, subject, why, self._world.cloud.hourly)
        if self._simulation.doors.active or self._is_collecting:
            self._waiting.append(entry)
        else:
            self._ring()
            self._keep(entry)

    # --- what happens ---------------------------------------------------------------------------------------------

    def _happening(self, happening: Happening) -> None:
        if happening.say:
            self.say("story", "scene", happening.say)

    def _published(self, envelope: Envelope) -> None:
        kind, detail = envelope["detail-type"], envelope["detail"]
        if kind == "AWS Health Event":
            # It is about many instances, and names none by a field of its own.
            for instance in envelope["resources"]:
                self.say(
                    "health", "warns", tail(instance), f"{self._node_of(instance)}: gone from {detail['startTime']}"
                )
            return
        instance = detail["instance-id"]
        if "Interruption" in kind:
            self.say("ec2", "warns", tail(instance), f"{self._node_of(instance)}: EC2 takes it back in two minutes")
        elif "Rebalance" in kind:
            self.say("ec2", "warns", tail(instance), f"{self._node_of(instance)}: an interruption is more likely")
        elif detail.get("state") in ("terminated", "stopped"):
            self.say("ec2", "stopped", tail(instance), detail["state"])

    def _hear(self, stored: StoredEvent) -> None:
        if stored.reason == "FailedScheduling" and stored.reporter == "default-scheduler":
            if stored.event.uid not in self._heard:
                self._heard.add(stored.event.uid)
                self._moment.waiting.append(stored)
        elif stored.reason == "FailedEviction" and "budget" in stored.message:
            self.say("lifecycle", "waits", short(stored.name), stored.message)

    def _notice(self, change: Change) -> None:
        match change.kind:
            case "Pod":
                self._pod(change.before, change.after)
            case "Node":
                self._node(change.before, change.after)
            case "NodeClaim":
                self._claim(change.before, change.after)
            case "Deployment":
                self._deployment(change.before, change.after)

    def _deployment(self, before: Any, after: Any) -> None:
        if before is not None and after is not None:
            was, now = (one.spec.template.metadata.annotations.get(keys.RESTARTED_AT) for one in (before, after))
            if now != was:
                text = "the successors of its pods are to be Ready before they go"
                self.say(self._author(""), "restarts", after.metadata.name, text)

    def _pod(self, before: Pod | None, after: Pod | None) -> None:
        if after is None:
            return
        moment = self._moment
        if before is None:
            moment.created.append(after)
            return
        if after.spec.node_name and not before.spec.node_name:
            moment.bound.append(after)
        if after.metadata.deletion_timestamp and not before.metadata.deletion_timestamp:
            # Nobody evicts but a door; a rollout ends pods too.
            (moment.evicted if self._author("") else moment.ended).append(after)

    def _node(self, before: Node | None, after: Node | None) -> None:
        if before is None and after is not None:
            instance = after.spec.provider_id.rpartition("/")[2]
            launched = self._world.cloud.look(instance)[0].launched_at
            took = (self._world.clock.now() - launched).total_seconds()
            self.say(
                "kubelet", "joins", short(after.metadata.name), f"{tail(instance)} booted {took:.0f} s after its launch"
            )
        elif after is None and before is not None:
            self.say(self._author("kubelet"), "left", short(before.metadata.name), "its Node object is gone")
        elif (
            before is not None
            and after is not None
            and _has(after, keys.DISRUPTED_TAINT) > _has(before, keys.DISRUPTED_TAINT)
        ):
            self.say(self._author("kubelet"), "taints", short(after.metadata.name), "no new pods go there")

    def _claim(self, before: NodeClaim | None, after: NodeClaim | None) -> None:
        name = (after or before).metadata.name  # type: ignore[union-attr]
        if before is None and after is not None:
            self._moment.claims.append(after)
        elif after is None:
            had = before is not None and before.status.provider_id
            text = "node and instance are gone, and so is the claim" if had else "it never had an instance"
            self.say(self._author(""), "closed", name, text)
        elif before is not None:
            self._claim_changed(before, after)

    def _claim_changed(self, before: NodeClaim, after: NodeClaim) -> None:
        name, who = after.metadata.name, self._author("")
        if _gained(before, after, keys.REPLACEMENT_LAUNCHED) and after.status.node_name:
            self.say(who, "covered", name, "its pods have a place to go: the drain may start")
        if after.is_true("Registered") and not before.is_true("Registered"):
            pods = self._world.cluster.pods
            waiting = [key for key in planned_pods(after) if key in pods and not pods[key].spec.node_name]
            purpose = f", kept for {counted(len(waiting), 'pod')}" if waiting else ""
            self.say(who, "registers", name, f"it is {short(after.status.node_name)}{purpose}")
        if after.is_true("Initialized") and not before.is_true("Initialized"):
            self.say(who, "completes", name, f"{short(after.status.node_name)} is ready for everything it promised")

    # --- what is said of it ---------------------------------------------------------------------------------------

    def _called(self, call: Call) -> None:
        followed, self._waiting, self._is_collecting = self._waiting, [], True
        self._decided(call)
        decided, self._waiting, self._is_collecting = self._waiting, [], False
        if decided or followed:
            self._ring()
        for entry in folded([*decided, *followed]):
            self._keep(entry)
        self._tell()

    def _decided(self, call: Call) -> None:
        """What the door did, from its answer and its log."""
        if call.error:
            self._failed(call.door, "raised", call.error)
        lines = [json.loads(line) for line in call.log.splitlines() if line.startswith("{")]
        if call.door == "provisioning":
            self._packed(call.result or {})
        if call.door == "disruption":
            self._gave_up(call.result or {})
        for line in lines:
            self._logged(call.door, line)
        if call.door == "webhook" and '"resource": "events"' in str(call.event.get("body", ""))[:600]:
            self._reviews.append(call.at)
        self._avoided(call.door, lines)

    def _keep(self, entry: Entry) -> None:
        self.entries.append(entry)
        for listener in self.when_said:
            listener(entry)

    def _ring(self) -> None:
        """The reviews of a burst are one line, printed once the burst is over, and only if new pods wait."""
        if not self._reviews or self._reviews[-1] == self._world.clock.now():
            return
        reviews, self._reviews = self._reviews, []
        if self._has_news:
            self._has_news = False
            hourly = self.entries[-1].hourly
            text = counted(len(reviews), "FailedScheduling review")
            self._keep(Entry(reviews[0], "webhook", "rings", "provisioning", text, hourly))

    def _logged(self, door: str, line: dict[str, Any]) -> None:
        command = str(line.get("command", ""))
        if command.startswith("DeleteClaim ") and _is_carried_out(line):
            self.say(door, "retires", command.partition(" ")[2], str(line.get("reason", "")))
        elif line.get("level") in ("ERROR", "CRITICAL"):
            self._failed(door, str(line.get("message", "")), str(line.get("error", "")))

    def _failed(self, door: str, what: str, why: str) -> None:
        """A failure that goes on is printed once a minute."""
        now, last = self._world.clock.now(), self._failures.get((door, why))
        if last is None or now - last >= timedelta(minutes=1):
            self._failures[door, why] = now
            self.say(door, "failed", what.partition(";")[0], why)

    def _packed(self, result: dict[str, Any]) -> None:
        if result.get("launches"):
            text = f"{counted(result['launches'], 'node')} to buy, {_bound(self._last_record(), result['hourly_cost'])}"
            self.say("provisioning", "packs", counted(result["placed"], "pod"), text)
        self._launched("provisioning")

    def _gave_up(self, result: dict[str, Any]) -> None:
        """Which nodes are consolidated. Those that a command of the record did not begin are left out."""
        commands = self._last_record()["joinery"]["result"]["commands"] if result.get("commands") else []
        begun = {claim.metadata.name for claim in self._world.cluster.node_claims.values() if is_candidate(claim)}
        for command in commands:
            if begun.issuperset(command["retire"]):
                self.say("disruption", "gives up", names(command["retire"], most=2), command["message"])
        self._launched("disruption")

    def _launched(self, door: str) -> None:
        for claim in self._moment.claims:
            current = self._world.cluster.node_claims.get(claim.metadata.name, claim)
            self.say(door, "launches", claim.metadata.name, self._bought(current))
        self._moment.claims.clear()

    def _bought(self, claim: NodeClaim) -> str:
        planned = json.loads(claim.metadata.annotations.get(keys.PLANNED_PODS, "[]"))
        pods = [pod for key in planned if (pod := self._world.cluster.pods.get(key))]
        if not claim.status.provider_id:
            return "EC2 gave nothing for it"
        price = self._world.cloud.price(claim.status.provider_id.rpartition("/")[2])
        pool = self._world.cluster.node_pools.get(claim.metadata.labels.get(keys.NODE_POOL, ""))
        whom = "its NodePool's replicas" if pool is not None and pool.is_static else pods_by_owner(pods)
        return f"{place(claim)} at {price:.4f} $/h for {whom}"

    def _avoided(self, door: str, lines: Iterable[dict[str, Any]]) -> None:
        marked = [str(line.get("command", "")) for line in lines if _is_carried_out(line)]
        pools = sorted(text.partition(" ")[2] for text in marked if text.startswith("MarkUnavailable"))
        if pools:
            self.say(door, "avoids", counted(len(pools), "pool"), f"{names(pools, most=2)}, for a while")

    def _tell(self) -> None:
        """Turn what was collected since into lines."""
        moment, self._moment = self._moment, _Moment(claims=self._moment.claims)
        ordinary = [pod for pod in moment.created if not _is_daemon(pod)]
        if ordinary:
            self.say("workloads", "create", counted(len(ordinary), "pod"), pods_by_owner(ordinary))
        if moment.waiting:
            common, _ = Counter(condition.message for condition in moment.waiting).most_common(1)[0]
            self._has_news = True
            self.say("scheduler", "waits", counted(len(moment.waiting), "pod"), common)
        self._tell_pods(moment)

    def _tell_pods(self, moment: _Moment) -> None:
        for node, came in _by_node(moment.bound).items():
            self.say("scheduler", "binds", short(node), pods_by_owner(came))
        for node, gone in _by_node(moment.evicted).items():
            self.say("lifecycle", "evicts", short(node), pods_by_owner(gone))
        for node, gone in _by_node(moment.ended).items():
            self.say("workloads", "end", short(node), pods_by_owner(gone))
        pods = list(self._world.cluster.pods.values())
        all_run = all(is_ready(pod) and not pod.metadata.deletion_timestamp for pod in pods)
        if all_run and not self._all_ran:
            self.say("kubelet", "all run", counted(len(pods), "pod"), "every pod is bound, running and ready")
        self._all_ran = all_run

    def _author(self, otherwise: str) -> str:
        return self._simulation.doors.active or otherwise

    def _node_of(self, instance: str) -> str:
        its_nodes = (
            node for node in self._world.cluster.nodes.values() if node.spec.provider_id.endswith(f"/{instance}")
        )
        return next((short(node.metadata.name) for node in its_nodes), instance)

    def _last_record(self) -> dict[str, Any]:
        newest = max(self._world.store.documents, default="")
        return self._world.store.read(newest) if newest else {}


def _bound(record: dict[str, Any], hourly: float) -> str:
    result = record.get("joinery", {}).get("result", {})
    bound = float(result.get("lower_bound") or result.get("lowerBound") or 0)
    proven = f", proven to cost at least {bound:.4f}" if bound else ""
    return f"{hourly:.4f} $/h{proven}"


def _by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if not _is_daemon(pod):
            by_node.setdefault(pod.spec.node_name, []).append(pod)
    return by_node


def _is_carried_out(line: dict[str, Any]) -> bool:
    """Whether a line of the log is a decision that was not only observed."""
    return line.get("message") == "decided" and line.get("mode") != "observe"


def _is_daemon(pod: Pod) -> bool:
    return any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references)


def _has(node: Node, taint: str) -> bool:
    return any(found.key == taint for found in node.spec.taints)


def _gained(before: NodeClaim, after: NodeClaim, annotation: str) -> bool:
    return annotation in after.metadata.annotations and annotation not in before.metadata.annotations


def folded(entries: Iterable[Entry]) -> list[Entry]:
    """Many lines that say the same of different claims as one."""
    alike: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in entries:
        alike.setdefault((entry.who, entry.word, entry.why), []).append(entry)
    result: list[Entry] = []
    for same in alike.values():
        result += same if len(same) <= MOST_ALIKE else [replace(same[0], subject=counted(len(same), "claim"))]
    return result
