"""The owners of single pods: a ReplicaSet, and the Deployment that it belongs to.

They are in no snapshot, because a cluster has thousands of them and few are ever of interest. So they are read one by
one, those of pods that must leave their node and ask for their successor first; what several pods share is read once.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.invocation import Invocation
from joinery.decisions.termination.surge import DEPLOYMENT, REPLICA_SET, Owners, owner_of_kind
from joinery.gateways.bundles import Gateways
from joinery.gateways.kubernetes.gateway import LONGEST_CALL
from joinery.objects.errors import DeniedError, JoineryError, NotFoundError, TimeIsOverError
from joinery.objects.kubernetes.core import ObjectMeta, Pod
from joinery.objects.kubernetes.rollouts import Deployment, ReplicaSet

T = TypeVar("T", ReplicaSet, Deployment)
#: Namespace and name of an owner; None where there is no such owner.
_Key = tuple[str, str] | None


def read_owners(
    gateways: Gateways, pods: Collection[Pod], actor: Actor, invocation: Invocation
) -> Mapping[str, Owners]:
    """The owners of each pod, by namespace/name. What could not be read is noted, and the pod's owners say so."""
    reader = _Reader(gateways, actor, invocation)
    sets_of = {pod.key: _key(pod.metadata, REPLICA_SET) for pod in pods}
    sets = reader.read(gateways.cluster.replica_set, sets_of.values())
    deployments_of: dict[_Key, _Key] = {
        key: _key(answer.metadata, DEPLOYMENT) for key, answer in sets.items() if isinstance(answer, ReplicaSet)
    }
    deployments = reader.read(gateways.cluster.deployment, deployments_of.values())
    return {name: _owners(sets.get(key), deployments.get(deployments_of.get(key))) for name, key in sets_of.items()}


def _key(metadata: ObjectMeta, kind: str) -> _Key:
    """Where the controller of that kind is. It is in the namespace of what it owns."""
    owner = owner_of_kind(metadata.owner_references, kind)
    return (metadata.namespace, owner.name) if owner else None


@dataclass(frozen=True)
class _Reader:
    gateways: Gateways
    actor: Actor
    invocation: Invocation

    def read(self, get: Callable[[str, str], T], keys: Iterable[_Key]) -> dict[_Key, T | JoineryError]:
        """What each key names, or why it could not be read."""
        wanted = [key for key in dict.fromkeys(keys) if key is not None]
        answers = self.gateways.workers.run([partial(self._get, get, key) for key in wanted])
        for (namespace, name), answer in zip(wanted, answers, strict=True):
            if isinstance(answer, TimeIsOverError):
                self.actor.leave(1)
            elif isinstance(answer, JoineryError) and not isinstance(answer, NotFoundError):
                self.actor.note(f"the owner {namespace}/{name} of a pod could not be read", answer)
        return dict(zip(wanted, answers, strict=True))

    def _get(self, get: Callable[[str, str], T], key: tuple[str, str]) -> T:
        if not self.invocation.has_time_for(LONGEST_CALL):
            raise TimeIsOverError(f"no time is left to read {'/'.join(key)}")
        return get(*key)


def _owners(replica_set: ReplicaSet | JoineryError | None, deployment: Deployment | JoineryError | None) -> Owners:
    failures = [answer for answer in (replica_set, deployment) if isinstance(answer, JoineryError)]
    is_refused = any(isinstance(failure, DeniedError) for failure in failures)
    is_missing = all(isinstance(failure, NotFoundError) for failure in failures)
    return Owners(
        replica_set if isinstance(replica_set, ReplicaSet) else None,
        deployment if isinstance(deployment, Deployment) else None,
        is_refused=is_refused,
        is_unknown=not is_refused and not is_missing,
    )
