"""Pod classes: pods with the same constraints and requests, which are placed together.

All work grows with the number of classes, not of pods. Two pods are of one class when nothing that scheduling looks at
tells them apart: namespace, the labels that some selector looks at, requests, affinity, tolerations, topology spread,
host ports, priority, and what their volumes demand.
"""

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

import msgspec

from joinery.decisions.scheduling.constraints.mounted_claims import claims_of
from joinery.decisions.scheduling.constraints.nodeterms import PreferredTerm, alternatives, preferences, selector
from joinery.decisions.scheduling.constraints.pod_validation import invalid
from joinery.decisions.scheduling.constraints.requirements import Requirements, UnknownOperatorError
from joinery.decisions.scheduling.constraints.resources import (
    attachment,
    host_ports_of,
    negative_in,
    requests_of,
    resized,
    wants_gpus,
)
from joinery.decisions.scheduling.constraints.taints import TOLERATE_PREFERRED, TaintLike, first_untolerated
from joinery.decisions.scheduling.constraints.volume_needs import VolumeChoice, VolumeNeeds
from joinery.decisions.scheduling.constraints.volumes import Volumes
from joinery.decisions.scheduling.devices.claims import Claims
from joinery.decisions.scheduling.devices.needs import Needs
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.objects.kubernetes.core import Affinity, NodeAffinity, NodeSelector, Pod, Toleration
from joinery.objects.snapshot.pods import lasting, priority_of

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, eq=False)
class PodClass:
    """Pods that nothing tells apart. Compared by identity.

    names        of the pods (namespace/name), in the order in which they are placed: the oldest first
    example      one of them; what it says of scheduling holds for all
    requests     what each of them takes of a node, "pods" as 1, and attachments where some instance type limits them;
                 without zeros
    terms        requirements on the node: the node selector with each required node affinity term, in the listed order;
                 any one of them will do
    preferred    preferred node affinity, the heaviest first
    impossible   a sentence for each preference that no node can match
    ports        (protocol, host IP, port) of each host port
    volumes      what the volumes of each of them need
    devices      what the claims of each of them need of its node's devices
    priority     of the PriorityClass; larger ones are placed first
    problems     why none of them can be scheduled at all; empty if they can
    """

    names: tuple[str, ...]
    example: Pod
    requests: Mapping[str, int]
    terms: tuple[Requirements, ...]
    preferred: tuple[PreferredTerm, ...]
    impossible: tuple[str, ...]
    ports: frozenset[tuple[str, str, int]]
    volumes: VolumeNeeds
    priority: int
    problems: tuple[Reason, ...]
    devices: Needs = ()

    @property
    def name(self) -> str:
        """The name of its first pod. It stands for the class in explanations, and breaks ties between classes."""
        return self.names[0]

    @property
    def namespace(self) -> str:
        return self.example.metadata.namespace or "default"

    @property
    def labels(self) -> Mapping[str, str]:
        return self.example.metadata.labels

    @cached_property
    def tolerations(self) -> tuple[Toleration, ...]:
        return tuple(lasting(self.example.spec.tolerations))

    def untolerated(self, taints: Iterable[TaintLike]) -> TaintLike | None:
        """The first taint that keeps the class away whatever is relaxed. A PreferNoSchedule taint never does."""
        return first_untolerated((*self.tolerations, TOLERATE_PREFERRED), taints)

    @cached_property
    def shared_claims(self) -> tuple[str, ...]:
        """The claims (namespace/name) that other pods use too: all of them are on the node that has their devices."""
        return tuple(claim.shared for claim in self.devices if claim.shared)

    @property
    def affinity(self) -> Affinity:
        return self.example.spec.affinity or Affinity()


class Classifier:
    """Groups pods into classes.

    label_keys   the pod labels that some selector of the problem looks at; others tell no pods apart
    priorities   the values of PriorityClasses by name, that of the global default under the empty name
    in_use       the claims (namespace/name) of pods that run
    limited      the CSI drivers of which some instance type attaches so many volumes and no more
    claims       what pods claim of devices
    """

    def __init__(
        self,
        volumes: Volumes,
        priorities: Mapping[str, int],
        label_keys: frozenset[str],
        in_use: frozenset[str],
        limited: Container[str],
        claims: Claims,
    ) -> None:
        self._claims = claims
        self._volumes = volumes
        self._priorities = priorities
        self._label_keys = label_keys
        self._in_use = in_use
        self._limited = limited
        self._refused: dict[str, Reason] = {}
        self._needed: dict[str, VolumeNeeds] = {}
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def classes(self, pods: Iterable[Pod]) -> tuple[PodClass, ...]:
        """The classes of the pods, in the order in which their first pods come."""
        all_pods = tuple(pods)
        shared = self._shared_claims(all_pods)
        self._refused = self._late_users(all_pods)
        groups: dict[Hashable, list[Pod]] = {}
        for pod in all_pods:
            groups.setdefault(self._key(pod, shared), []).append(pod)
        return tuple(self._pod_class(members, shared) for members in groups.values())

    def _key(self, pod: Pod, shared: frozenset[str]) -> Hashable:
        spec = pod.spec
        body = self._encode(
            (
                spec.node_selector, spec.affinity, lasting(spec.tolerations), spec.topology_spread_constraints,
                [(container.resources, container.ports) for container in spec.containers],
                [(init.resources, init.restart_policy, init.ports) for init in spec.init_containers],
                spec.overhead, spec.resources, spec.host_network, self._claims.of(pod),
                _resized(pod),
            )
        )  # fmt: skip
        labels = tuple(sorted(item for item in pod.metadata.labels.items() if item[0] in self._label_keys))
        namespace = pod.metadata.namespace or "default"
        volumes = self._volume_key(pod, shared) if spec.volumes else ""
        return namespace, labels, body, priority_of(spec, self._priorities), volumes, self._refused.get(pod.key)

    def _needs(self, pod: Pod) -> VolumeNeeds:
        """What its volumes need. A pod that has a node is placed anew because it goes, and comes back without them."""
        if pod.key not in self._needed:
            self._needed[pod.key] = self._volumes.needs(pod, is_anew=bool(pod.spec.node_name))
        return self._needed[pod.key]

    def _volume_key(self, pod: Pod, shared: frozenset[str]) -> Hashable:
        needs = self._volume_needs(pod, shared)
        alternatives = tuple(frozenset(requirements.sets.items()) for requirements in needs.alternatives)
        of_claims = tuple(sorted(shared & set(needs.claims))), needs.made_for, needs.problems
        return alternatives, needs.choices, needs.drivers, of_claims

    def _shared_claims(self, pods: tuple[Pod, ...]) -> frozenset[str]:
        """Claims that several pods use. Such pods must end up in one zone, so a class does not mix them with others."""
        seen = set(self._in_use)
        twice: set[str] = set()
        for pod in pods:
            if pod.spec.volumes:
                names = claims_of(pod)
                twice |= names & seen
                seen |= names
        return frozenset(twice)

    def _late_users(self, pods: tuple[Pod, ...]) -> dict[str, Reason]:
        """The pods that come too late for a claim that only one pod may use (ReadWriteOncePod), by namespace/name.

        A pod that runs keeps the claim. Among those that wait, the one with the highest priority gets it, then the
        oldest.
        """
        taken, late = set(self._in_use), {}
        mounting = (pod for pod in pods if pod.spec.volumes)
        for pod in by_precedence(mounting, self._priorities):
            exclusive = self._needs(pod).exclusive
            name = next((name for name in exclusive if name in taken), "")
            if name:
                late[pod.key] = Reason.of(
                    ReasonCode.VOLUME, "its volume claim {claim} lets one pod use it, and another one does", claim=name
                )
            taken.update(() if name else exclusive)
        return late

    def _pod_class(self, members: list[Pod], shared: frozenset[str]) -> PodClass:
        members.sort(key=_seniority)
        example = members[0]
        needs = self._volume_needs(example, shared)
        late = self._refused.get(example.key)
        claimed = self._claims.of(example)
        problems = [*needs.problems, *([late] if late else []), *invalid(example.spec)]
        problems += [Reason(ReasonCode.DEVICES, claimed.problem)] if claimed.problem else []
        preferred, impossible = _preferred(example, problems)
        requests = _requests(example, problems)
        return PodClass(
            names=tuple(pod.key for pod in members),
            example=example,
            requests={**requests, **self._attachments(needs)},
            terms=tuple(
                replace(term, whole_gpus=wants_gpus(requests), devices=claimed.needs)
                for term in usable_from(terms_of(example, problems), claimed.where, problems)
            ),
            preferred=preferred,
            impossible=impossible,
            ports=host_ports_of(example),
            volumes=needs,
            priority=priority_of(example.spec, self._priorities),
            problems=tuple(problems),
            devices=claimed.needs,
        )

    def _volume_needs(self, pod: Pod, shared: frozenset[str]) -> VolumeNeeds:
        needs = self._needs(pod)
        return replace(
            needs,
            choices=tuple(_of_any_pod(choices, shared) for choices in needs.choices),
            unbound=tuple(claim for claim in needs.unbound if claim in shared),
            shared=self._attached_together(pod, shared),
        )

    def _attachments(self, needs: VolumeNeeds) -> Mapping[str, int]:
        taken = needs.taken(self._limited, ())
        return {attachment(driver): own for driver, (_, own) in taken.items() if own}

    def _attached_together(self, pod: Pod, shared: frozenset[str]) -> tuple[tuple[str, str], ...]:
        by_driver = self._volumes.by_driver(pod)
        return tuple(sorted((name, driver) for driver, names in by_driver.items() for name in names & shared))


def _of_any_pod(choices: Iterable[VolumeChoice], shared: Container[str]) -> tuple[VolumeChoice, ...]:
    """The choices without the names of claims that are each pod's own."""
    alike = Counter(choice._replace(claim=choice.claim if choice.claim in shared else "") for choice in choices)
    return tuple(choice._replace(number=number) for choice, number in alike.items())


def _resized(pod: Pod) -> object:
    """What the pod holds while it is resized, which tells it from others of its kind."""
    try:
        return resized(pod)
    except ValueError:
        return None  # a quantity that is none is reported where the requests are read


def _seniority(pod: Pod) -> tuple[datetime, str]:
    return pod.metadata.creation_timestamp or _BEGINNING, pod.key


def _requests(pod: Pod, problems: list[Reason]) -> Mapping[str, int]:
    try:
        requests = requests_of(pod)
    except ValueError as error:
        problems.append(Reason(ReasonCode.RESOURCES, f"a resource quantity of the pod: {error}"))
        return {}
    negative = negative_in(pod)
    if negative:
        problems.append(
            Reason.of(ReasonCode.RESOURCES, "the pod asks for a negative amount of {resource}", resource=negative)
        )
    return {name: value for name, value in requests.items() if value}


def _node_affinity(pod: Pod) -> NodeAffinity:
    return (pod.spec.affinity or Affinity()).node_affinity or NodeAffinity()


def terms_of(pod: Pod, problems: list[Reason]) -> tuple[Requirements, ...]:
    """The node selector with each required node affinity term; what is wrong with them goes to ``problems``.

    A term without expressions selects no node (kube-scheduler `NewNodeSelector`).
    """
    required = _node_affinity(pod).required_during_scheduling_ignored_during_execution
    whose = "node selector"
    try:
        chosen = selector(pod.spec.node_selector.items())
        if required is None:
            return (chosen,)
        whose = "node affinity"
        terms = [term for term in required.node_selector_terms if term.match_expressions or term.match_fields]
        if any(term.match_fields for term in terms):
            problems.append(
                Reason(ReasonCode.NOT_SUPPORTED, "not supported yet: matchFields in required node affinity")
            )
        if not terms:
            problems.append(
                Reason(ReasonCode.REQUIREMENTS, "its required node affinity has no term that selects a node")
            )
        return tuple(chosen.intersect(term) for term in alternatives(terms))
    except UnknownOperatorError as error:
        problems.append(Reason(ReasonCode.REQUIREMENTS, f"the pod's {whose}: {error}"))
        return ()


def _preferred(pod: Pod, problems: list[Reason]) -> tuple[tuple[PreferredTerm, ...], tuple[str, ...]]:
    """Preferred node affinity, and a sentence for each term that no node can match."""
    try:
        return preferences(_node_affinity(pod).preferred_during_scheduling_ignored_during_execution)
    except UnknownOperatorError as error:
        problems.append(Reason(ReasonCode.REQUIREMENTS, f"the pod's preferred node affinity: {error}"))
        return (), ()


def suits(pod: Pod, nodes: NodeSelector) -> bool:
    """Whether the pod may be on some node that the selector matches, as far as its node selector and affinity say."""
    problems: list[Reason] = []
    terms = usable_from(terms_of(pod, problems), (nodes,), problems)
    return any(all(not allowed.is_impossible for allowed in term.canonical().sets.values()) for term in terms)


def by_precedence(pods: Iterable[Pod], priorities: Mapping[str, int]) -> list[Pod]:
    """The pods in the order in which they get what only some of them can have."""
    return sorted(pods, key=lambda pod: (-priority_of(pod.spec, priorities), *_seniority(pod)))


def usable_from(
    terms: tuple[Requirements, ...], where: Iterable[NodeSelector], problems: list[Reason]
) -> tuple[Requirements, ...]:
    """The terms on nodes that can use the devices of all claims that have some already."""
    try:
        for selected in where:
            nodes = alternatives(selected.node_selector_terms)
            terms = tuple(term.intersect(node) for term in terms for node in nodes)
    except UnknownOperatorError as error:
        problems.append(Reason(ReasonCode.DEVICES, f"the nodes that can use its claim's devices: {error}"))
    return terms
