"""Which further clusters the functions serve: their register, and what is remembered of it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from joinery.objects.errors import JoineryError
from joinery.objects.kubernetes.webhook_secret import REMEMBERED
from joinery.objects.member import Member

#: The register is not read more often for names that are not known.
_PAUSE = timedelta(seconds=10)


class Register(Protocol):
    """Every method may raise ``UnavailableError``, or ``ConfigurationError`` (no table, no right, a broken item)."""

    def get(self, cluster: str) -> Member | None:
        """The member of that name, as it is registered now; None where there is none."""
        ...

    def all(self) -> tuple[Member, ...]:
        """All members. An item that cannot be read is left out: it is no other cluster's business."""
        ...

    def put(self, member: Member) -> None: ...

    def remove(self, cluster: str) -> None:
        """Take a member out; one that is not there is none any more."""
        ...


class KnownMembers:
    """Members as they are known to whoever may be asked for any name: all are read at once, and remembered for minutes.

    Strangers may call the webhook, and instances may be of clusters that are none of ours. So a name that is not known
    has the register read again only if that is a while ago. Where it cannot be read, what was read before is gone by,
    and ``log`` hears of it.
    """

    def __init__(self, register: Register, *, now: Callable[[], datetime], log: Callable[[str], None]) -> None:
        self._register, self._now, self._log = register, now, log
        self._known: dict[str, Member] = {}
        self._read: datetime | None = None

    def find(self, cluster: str) -> Member | None:
        """The member of that name; None for a name that is none, as far as is known."""
        self._look(REMEMBERED if cluster in self._known else _PAUSE)
        return self._known.get(cluster)

    def all(self) -> tuple[Member, ...]:
        """All of them, as they were a moment ago."""
        self._look(_PAUSE)
        return tuple(self._known.values())

    def _look(self, after: timedelta) -> None:
        """Read them, if that is so long ago."""
        now = self._now()
        if self._read is not None and timedelta() <= now - self._read < after:
            return
        self._read = now
        try:
            self._known = {member.cluster: member for member in self._register.all()}
        except JoineryError as error:
            self._log(str(error))
