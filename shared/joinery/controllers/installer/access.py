"""The installer's rights in the cluster, which are there only while it works.

The installer lets itself in: it makes its own access entry of EKS, waits until the API server knows of it, and removes
it at the end, also after a failure. A run that is killed leaves its entry behind; Lambda calls the function once more,
and that run takes the entry over and removes it.

The entry is a lock as well, so that no run removes it while another is at work. Its tags say whose it is and until
when: a run begins nothing after its time, but for one call that removes the entry.
"""

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from joinery.controllers.acting.invocation import Invocation
from joinery.gateways.account import gateway as account
from joinery.gateways.account.gateway import AccessEntry
from joinery.gateways.bundles import InstallerGateways
from joinery.gateways.kubernetes import gateway as cluster_gateway
from joinery.gateways.kubernetes.gateway import Objects
from joinery.objects.codes import DENIED
from joinery.objects.errors import ConflictError, JoineryError, NotFoundError, UnavailableError
from joinery.objects.karpenter.labels import OWN_GROUP

#: Tags of the entry: the run that made it, and the second (Unix time) by which that run has removed it.
RUN, UNTIL = f"{OWN_GROUP}/run", f"{OWN_GROUP}/until"
#: Between two looks at the cluster, and at another run's entry.
_LOOK_SECONDS = 2.0
#: Lambda ends every run by then, and a call that was begun before ends soon after.
_LONGEST_RUN_SECONDS = 15 * 60 + account.LONGEST_CALL + 1
#: For so long a new policy may count nowhere yet (IAM User Guide, "Changes that I make are not always immediately
#: visible"). Whoever is denied for good waits that long for the answer.
_IAM_SECONDS = 45.0
#: To make the entry takes two calls.
_ENTERING_SECONDS = 2 * account.LONGEST_CALL


@contextmanager
def with_access(gateways: InstallerGateways, cluster: str, invocation: Invocation) -> Iterator[Objects]:
    """The cluster's objects, with an administrator's rights for the length of a ``with``.

    Raises ``ConflictError`` while another run is at work for longer than this one can wait, ``UnavailableError`` if the
    cluster does not know the entry in time, and ``NotFoundError`` for a cluster that is not there.
    """
    _enter(gateways, cluster, invocation)
    try:
        objects = gateways.objects(cluster)
        _wait_until_known(objects, gateways, invocation)
        yield objects
    finally:
        gateways.account.revoke_access(cluster)


def _enter(gateways: InstallerGateways, cluster: str, invocation: Invocation) -> None:
    """Make the entry. While it is another run's that may still be at work, wait."""
    since = invocation.stopwatch()
    while True:
        try:
            gateways.account.grant_access(cluster, _tags(gateways, invocation))
            return
        except ConflictError:
            reason = _make_way(gateways, cluster, invocation)
        except Exception as error:
            # The entry may be there without the rights that were to go with it; or it is another run's, still at work.
            with contextlib.suppress(JoineryError):
                _make_way(gateways, cluster, invocation)
            if isinstance(error, NotFoundError):
                raise NotFoundError(
                    f"There is no EKS cluster {cluster} in this account and region. Deploy with the name of one that "
                    "is there."
                ) from error
            if not _may_be_too_early(error) or since() > _IAM_SECONDS:
                raise
            reason = "IAM does not know the installer's rights yet"
        _wait(gateways, invocation, reason, before=_ENTERING_SECONDS)


def _make_way(gateways: InstallerGateways, cluster: str, invocation: Invocation) -> str:
    """Remove an entry that nobody uses any more. Returns what there is to wait for."""
    entry = gateways.account.access(cluster)
    if entry is not None and _is_at_work(entry, gateways, invocation):
        return f"another run of the installer ({entry.tags[RUN]}) is at work on {cluster}"
    # That of a run that was killed, or of this very run before Lambda repeated it.
    gateways.account.revoke_access(cluster)
    return "EKS still has the access entry of a run that was killed"


def _may_be_too_early(error: Exception) -> bool:
    """Whether IAM denied it. In a new stack that may be because the policy was attached a moment ago."""
    return isinstance(error, JoineryError) and error.code in DENIED


def _tags(gateways: InstallerGateways, invocation: Invocation) -> Mapping[str, str]:
    end = gateways.now() + timedelta(seconds=invocation.remaining() + account.LONGEST_CALL)
    return {RUN: invocation.id, UNTIL: str(int(end.timestamp()) + 1)}


def _is_at_work(entry: AccessEntry, gateways: InstallerGateways, invocation: Invocation) -> bool:
    run, until = entry.tags.get(RUN, ""), entry.tags.get(UNTIL, "")
    now = gateways.now().timestamp()
    # Nobody is at work for longer than Lambda lets it: such a tag would keep every installer waiting.
    return run not in ("", invocation.id) and until.isdecimal() and now < int(until) <= now + _LONGEST_RUN_SECONDS


def _wait_until_known(objects: Objects, gateways: InstallerGateways, invocation: Invocation) -> None:
    """EKS tells the API servers of an entry within seconds; until then they do not know us."""
    while not objects.is_administrator():
        reason = "the cluster does not know the installer's access entry yet"
        _wait(gateways, invocation, reason, before=cluster_gateway.LONGEST_CALL)


def _wait(gateways: InstallerGateways, invocation: Invocation, reason: str, *, before: float) -> None:
    """Wait a moment. Raises ``UnavailableError`` if what comes then, which takes ``before`` seconds, has no time."""
    if not invocation.has_time_for(_LOOK_SECONDS + before):
        raise UnavailableError(f"no time is left to wait: {reason}. Deploy again.")
    gateways.sleep(_LOOK_SECONDS)
