"""The controllers over one simulated world, and hands for its machines:
what is woken by a queue in Lambda is called here.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace as changed

from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.catalog import CatalogController
from joinery.controllers.disruption import Decide, DisruptionController
from joinery.controllers.expiration import ExpirationController
from joinery.controllers.interruption import InterruptionController
from joinery.controllers.lifecycle import LifecycleController
from joinery.controllers.provisioning import ProvisioningController
from joinery.decisions.disruption.paid import decide_paid
from joinery.decisions.interruption.notice import Notice, parse
from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.observing import read_only
from joinery.objects.karpenter.labels import PLANNED_TAINT
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.policies import Rebalance
from joinery.objects.settings import Settings
from simulator import builders
from simulator.actors.base import Stage
from simulator.actors.kubelet import Kubelets
from simulator.engine import Engine
from simulator.world import CLUSTER, World

EVENTS = Path(__file__).parents[2] / "events"
#: With this affinity, pods that have the label app=web go to different nodes.
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}


class Stand:
    """Controllers with their settings.

    ``with_defaults`` adds a NodePool of nodes that hold three pods of ``pods`` each.
    """

    def __init__(self, world: World, *, gateways: Gateways | None = None, **settings: Any) -> None:
        self.world = world
        self.gateways = gateways or world.gateways
        self.settings = Settings(cluster=CLUSTER, **settings)
        self.engine = Engine(world.clock, world.seed)
        self._invocations = count(1)
        self.kubelets = Kubelets(Stage(self.engine, world.cluster, world.cloud), world.cloud.catalog())

    def with_defaults(self) -> "Stand":
        """Put the NodePool and the EC2NodeClass there, and let lifecycle find them ready."""
        pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"])
        self.world.cluster.add(builders.node_class(), pool)
        self.live()
        return self

    # --- the doors ---

    def provision(self) -> Mapping[str, Any]:
        return ProvisioningController(self.gateways, self.settings).reconcile(self.invocation())

    def invocation(self) -> Invocation:
        """A new call of a door."""
        return Invocation(f"call-{next(self._invocations)}")

    def live(self) -> Mapping[str, Any]:
        return LifecycleController(self.gateways, self.settings).reconcile(self.invocation())

    def expire(self) -> Mapping[str, Any]:
        controller = ExpirationController(self.gateways, obeys_budgets=self.settings.expiration_obeys_budgets)
        return controller.reconcile(self.invocation())

    def consolidate(self, decide: Decide = decide_paid) -> Mapping[str, Any]:
        """A run of the disruption door, with its own decision or another."""
        invocation = Invocation(f"call-{next(self._invocations)}", lambda: 300.0)
        return DisruptionController(self.gateways, self.settings, decide).reconcile(invocation)

    def refresh(self) -> Mapping[str, Any]:
        return CatalogController(self.gateways, self.world.clock.now).reconcile()

    def receive(self, event: str, about: str) -> Mapping[str, Any]:
        """A sample event of ``events/``, about that instance or capacity reservation."""
        record = json.loads((EVENTS / f"{event}.json").read_text())["Records"][0]
        envelope = {**json.loads(record["body"]), "time": self.world.clock.now().isoformat()}
        if "affectedEntities" in envelope["detail"]:
            envelope["detail"]["affectedEntities"] = [{"entityValue": about}]
        named = "capacity-reservation-id"
        envelope["detail"][named if named in envelope["detail"] else "instance-id"] = about
        notice = parse(envelope)
        assert isinstance(notice, Notice)
        return self.notify(notice)

    def notify(self, *notices: Notice) -> Mapping[str, Any]:
        """A batch of notices: what came of the first. Raises what went wrong with any."""
        outcomes = InterruptionController(self.gateways, Rebalance(self.settings.rebalance)).reconcile(
            notices, self.invocation()
        )
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        first = outcomes[0]
        assert not isinstance(first, Exception)
        return first

    # --- the world's own doings ---

    def wait(self, seconds: float) -> None:
        self.engine.run_for(timedelta(seconds=seconds))

    def pods(self, count: int, **given: Any) -> None:
        """Pending pods that the scheduler has marked, each of a Deployment's size."""
        self.world.cluster.add(*(builders.pod(f"pod-{number}", **{"cpu": "900m", **given}) for number in range(count)))

    def boot(self) -> None:
        """Let ten seconds pass, in which every new instance runs and its kubelet registers a Node that is Ready."""
        self.wait(10)
        registered = {node.spec.provider_id for node in self.world.cluster.nodes.values()}
        for instance in self.world.cloud.instances():
            if instance.state == "running" and instance.provider_id not in registered:
                self.kubelets.become_ready(self.kubelets.register(instance.instance_id).metadata.name)

    def bind(self) -> None:
        """Bind every pod to the node that is kept for it, as the scheduler would, and let it run."""
        for node in self.world.cluster.nodes.values():
            for pod in list(self.world.cluster.pods.values()):
                if not pod.spec.node_name and _is_kept_for(node, pod):
                    self.world.cluster.api.update(_bound(pod, node))

    def settle(self) -> None:
        """From pending pods to running ones."""
        self.provision()
        self.boot()
        self.live()
        self.bind()
        self.live()

    def free_nodes(self, count: int, **given: Any) -> list[str]:
        """So many nodes that are fit and run nothing, one for each of such pods: their names."""
        self.pods(count, **given)
        self.settle()
        for pod in list(self.world.cluster.pods.values()):
            self.world.cluster.remove(pod)
        return sorted(self.world.cluster.nodes)

    def grow_old(self, seconds: float) -> None:
        """From pending pods to nodes that have run them for so long."""
        self.settle()
        self.wait(seconds)
        self.live()

    # --- what there is ---

    @property
    def claims(self) -> list[NodeClaim]:
        return list(self.world.cluster.node_claims.values())

    @property
    def claim(self) -> NodeClaim:
        """The only one."""
        (claim,) = self.claims
        return claim

    @property
    def alive(self) -> list[str]:
        """Instances that cost money."""
        return [instance.instance_id for instance in self.world.cloud.instances() if not instance.is_going]

    def rung(self) -> set[Bell]:
        """The bells that rang since this was last asked."""
        bells = {bell for _, bell in self.world.doorbell.rings}
        self.world.doorbell.rings.clear()
        return bells

    def event_reasons(self, about: str = "") -> set[str]:
        """Reasons of the Events so far, of one kind of object or of all."""
        return {event.reason for event in self.world.cluster.events if about in ("", event.kind)}

    def messages(self, reason: str) -> dict[str, str]:
        """What Events of that reason say, by the name of the object that they are about."""
        return {event.name: event.message for event in self.world.cluster.events if event.reason == reason}

    def observing(self) -> "Stand":
        """The same world, in ``observe`` mode."""
        watching = Stand(self.world, gateways=read_only(self.gateways))
        watching.settings = self.settings
        return watching


def _is_kept_for(node: Node, pod: Pod) -> bool:
    kept = [taint.value for taint in node.spec.taints if taint.key == PLANNED_TAINT]
    return any(toleration.key == PLANNED_TAINT and toleration.value in kept for toleration in pod.spec.tolerations)


def _bound(pod: Pod, node: Node) -> Pod:
    scheduled = [condition for condition in pod.status.conditions if condition.type != "PodScheduled"]
    status = changed(pod.status, phase="Running", conditions=scheduled)
    return changed(pod, spec=changed(pod.spec, node_name=node.metadata.name), status=status)
