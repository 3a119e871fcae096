"""One run of the installer: what every custom resource and operation does its work with."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from joinery.controllers.acting.invocation import Invocation
from joinery.decisions.installation import objects as installed
from joinery.decisions.installation.removal import CLAIMS, of_ours
from joinery.gateways.account.gateway import LONGEST_CALL, Account
from joinery.gateways.bundles import InstallerGateways
from joinery.gateways.kubernetes.gateway import Objects
from joinery.objects.errors import ConfigurationError, TimeIsOverError
from joinery.objects.kubernetes.references import Document, FieldConflict, Reference, conflict_message, reference

#: An output of a stack may not be empty.
NOTHING_NOTED = "nothing"


@dataclass
class InstallerRun:
    """A run with access to the cluster.

    ``version``: of the release that is at work. ``objects``: those of the cluster, once the run has access. ``doing``:
    what it is at, for the words of a failure. ``has_written``: whether it has changed the cluster. ``notes``: what a
    person should know though nothing failed.
    """

    cluster: str
    version: str
    gateways: InstallerGateways
    invocation: Invocation
    objects: Objects = field(init=False)
    doing: str = ""
    has_written: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def account(self) -> Account:
        """The account, in the name of whoever works here: the installer, or a member's."""
        return self.gateways.account

    def begin(self, what: str) -> None:
        """Say what comes next. Raises ``TimeIsOverError`` if it might not end before the run does."""
        self.doing = what
        if not self.invocation.has_time_for(LONGEST_CALL):
            raise TimeIsOverError("the time of this run is over; deploy again, and it goes on from here")

    def apply(
        self, documents: Sequence[Document], mark: Reference, *, force: bool, left: Container[Reference] = ()
    ) -> None:
        """Bring the cluster's objects to these documents, and remove those of older releases.

        A change that meets somebody else's edits is refused before anything is written (``ConfigurationError``). What
        was applied before, to the end, is only mended: edits are left, and noted. So a rollback never fails because of
        them. ``mark``: the object that says what was applied. ``left``: the objects that are not ours to write.
        """
        self.begin(f"Reading {mark}")
        is_repeated = installed.applied(self.objects.read(mark)) == installed.fingerprint(documents)
        finished = installed.finished(documents, mark)
        documents = [one for one in documents if reference(one) not in left]
        if is_repeated and finished is not None:
            documents = [finished if reference(one) == mark else one for one in documents]
        elif not force:
            self._refuse_conflicts(documents)
        self._write(documents, force=force)
        if not is_repeated and finished is not None:
            self._write([finished], force=force)

    def remove_outdated(self, part: installed.Part, wanted: Sequence[Document]) -> None:
        """Remove what an older release, or other parameters, had the installer write."""
        stored: list[Document] = []
        for kind in installed.ORDER:
            self.begin(f"Listing every {kind}")
            stored += self.objects.labelled(kind, installed.PART, part)
        self.remove(installed.outdated(stored, wanted))

    def owner(self) -> str:
        """The stack that runs the cluster by the marks in it, as an ARN; empty where none does."""
        self.begin(f"Reading {installed.MARKED}")
        return installed.stack_of(self.objects.read(installed.MARKED))

    def claims(self) -> Sequence[Document]:
        """Every NodeClaim of ours, whatever it was called when it was written."""
        claims: list[Document] = []
        for kind in CLAIMS:
            self.begin(f"Listing every {kind}")
            claims += self.objects.labelled(kind)
        return of_ours(claims)

    def remove(self, references: Iterable[Reference]) -> None:
        """Remove these objects, in this order. Those that are gone are no error."""
        for name in references:
            self.begin(f"Removing {name}")
            self.has_written = True
            self.objects.remove(name)

    def _refuse_conflicts(self, documents: Sequence[Document]) -> None:
        conflicts: dict[Reference, Sequence[FieldConflict]] = {}
        for document in documents:
            name = reference(document)
            self.begin(f"Trying {name}")
            if edits := self.objects.apply(document, dry_run=True):
                conflicts[name] = edits
        if conflicts:
            self.doing = ""
            raise ConfigurationError(conflict_message(conflicts))

    def _write(self, documents: Sequence[Document], *, force: bool) -> None:
        for document in documents:
            name = reference(document)
            self.begin(f"Writing {name}")
            self.has_written = True
            if edits := self.objects.apply(document, force=force):
                self.notes.append(f"{name} was left as it is: {_editors(edits)} changed it")


def _editors(edits: Sequence[FieldConflict]) -> str:
    return ", ".join(sorted({edit.manager for edit in edits}))


def data(run: InstallerRun) -> Mapping[str, str]:
    """What the template can say of a run."""
    return {"Notes": "; ".join(run.notes) or NOTHING_NOTED}
