"""A Lease as a lock with a deadline: whoever writes it holds it until its time is over or it is given back.

The API server compares and swaps on the resource version, so of two writers that saw a free Lease one gets a conflict.
A holder that died is fenced by the Lease's duration, which is longer than its function's timeout. No holder is believed
more than that: a Lease whose time is far ahead of ours, or that claims to last for years, would stop every decision
until a person looks.
"""

import contextlib
from datetime import datetime

import msgspec

from joinery.gateways.kubernetes.gateway import Lease
from joinery.gateways.kubernetes.patches import Document, guarded
from joinery.gateways.kubernetes.transport import MERGE_PATCH, Transport
from joinery.objects.errors import ConfigurationError, ConflictError, NotFoundError, UnavailableError
from joinery.objects.kubernetes.core import ObjectMeta
from joinery.objects.kubernetes.decoding import decode

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class LeaseObject(msgspec.Struct, frozen=True):
    """coordination.k8s.io/v1 Lease."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()

    def is_held(self, now: datetime, most: int) -> bool:
        """Whether somebody holds it and the time is not over. ``most``: the seconds for which we would hold it, which
        nobody is believed to exceed, nor to be ahead of us by.
        """
        if not self.spec.holder_identity or self.spec.renew_time is None:
            return False
        seconds = min(self.spec.lease_duration_seconds or 0, most)
        return -most <= (now - self.spec.renew_time).total_seconds() < seconds


def acquire(transport: Transport, wanted: Lease, *, seconds: int, now: datetime) -> Lease:
    """Take the Lease; ``wanted`` carries no version yet. Raises ``ConflictError`` while another holds it, and
    ``ConfigurationError`` where it does not exist: we have no right to make a Lease, because RBAC can demand a name
    only of what exists.
    """
    try:
        return _take(transport, wanted, seconds=seconds, now=now)
    except UnavailableError:
        # A write without an answer may have taken the Lease. Then nobody could release it, and it would keep everybody
        # out until its time is over. Taking it a second time is harmless.
        return _take(transport, wanted, seconds=seconds, now=now)


def _take(transport: Transport, wanted: Lease, *, seconds: int, now: datetime) -> Lease:
    try:
        stored = _decode(transport.get(f"{PATH}/{wanted.name}"))
    except NotFoundError as error:
        text = f"Lease kube-system/{wanted.name} does not exist: deploy again, or apply manifests/rbac.yaml"
        raise ConfigurationError(text) from error
    holder = stored.spec.holder_identity
    if stored.is_held(now, seconds) and holder != wanted.holder:
        raise ConflictError(f"Lease {wanted.name} is held by {holder}")
    changed = int(holder != wanted.holder)
    spec = _spec(wanted.holder, seconds, now, (stored.spec.lease_transitions or 0) + changed)
    patch = guarded({"spec": spec}, stored.metadata.resource_version)
    return _held(wanted, transport.request("PATCH", f"{PATH}/{wanted.name}", patch, content_type=MERGE_PATCH))


def release(transport: Transport, lease: Lease) -> None:
    """Give it back, unless somebody has written it since we took it."""
    with contextlib.suppress(ConflictError, NotFoundError):
        try:
            _free(transport, lease)
        except UnavailableError:
            # A Lease that is kept for one lost request keeps everybody out until its time is over, and a spot instance
            # has two minutes. Once it has been given back, a second request meets a conflict.
            _free(transport, lease)


def _free(transport: Transport, lease: Lease) -> None:
    free = {"holderIdentity": None, "renewTime": None, "acquireTime": None}
    patch = guarded({"spec": free}, lease.resource_version)
    transport.request("PATCH", f"{PATH}/{lease.name}", patch, content_type=MERGE_PATCH)


def _held(wanted: Lease, body: bytes) -> Lease:
    return Lease(wanted.name, wanted.holder, _decode(body).metadata.resource_version)


def _decode(body: bytes) -> LeaseObject:
    return decode(body, LeaseObject)


def _spec(holder: str, seconds: int, now: datetime, transitions: int) -> Document:
    return {
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds,
        "acquireTime": micro_time(now),
        "renewTime": micro_time(now),
        "leaseTransitions": transitions,
    }


def micro_time(moment: datetime) -> str:
    """The moment (UTC) as Kubernetes' MicroTime, which wants six digits of a second, even if they are zeros."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
