"""Whether claims that were read some seconds ago are enough to answer notices, so that they need not be read again.

In a storm warnings come one by one, a dozen in a second, and each batch would list all claims of the cluster:
megabytes, of which it needs one claim. What was read for the last batch says which one that is, and it alone is read
then (``controllers.interruption``).

What old claims cannot say is that an instance is nobody's. A claim is written before its instance is launched, and
EC2 tells of nothing within moments of a launch. So of claims that were read a moment ago one knows every instance that
a notice may be about, or it still waits for its launch; then it may know its instance by now, and they are read again.
Notices about reservations concern whoever is in them, and are always answered from new claims.
"""

from collections.abc import Iterable
from datetime import timedelta

from joinery.decisions.interruption.notice import Notice
from joinery.decisions.interruption.ownership import may_become_known, unknown_instances
from joinery.objects.snapshot.snapshot import ClaimsSnapshot

#: How old claims may be that know every instance of the notices.
RECENT = timedelta(seconds=10)
#: How old they may be to say that an instance is nobody's. CreateFleet alone takes longer.
_A_MOMENT = timedelta(seconds=2)


def suffice(snapshot: ClaimsSnapshot, age: timedelta, notices: Iterable[Notice]) -> bool:
    """Whether the claims, read so long ago, are enough to answer these notices."""
    return timedelta() <= age <= RECENT and all(_suffice_for(notice, snapshot, age) for notice in notices)


def _suffice_for(notice: Notice, snapshot: ClaimsSnapshot, age: timedelta) -> bool:
    if notice.reservation:
        return False
    if not unknown_instances(notice, snapshot):
        return True
    return age <= _A_MOMENT and not may_become_known(notice, snapshot.managed_claims, snapshot.now + age)
