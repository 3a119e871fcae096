"""What is uninstalled, and what a step may use for it.

Steps keep nothing: each looks at account and cluster, and does what is still to be done. So a command that was stopped
anywhere is simply given again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joinery.decisions.installation.removal import Disposal, Nodes
from joinery.gateways.kubernetes.gateway import Objects
from joinery.objects.errors import JoineryError
from joinery_cli.doctor.site import Aws, parameters_of


class UnfinishedError(JoineryError):
    """Something is not over within the time that was given. The same command goes on from there."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """``nodes``, ``bucket``, ``definitions``: what the user has chosen. ``now``: seconds since some beginning.

    ``objects`` is None where there is no such cluster (any more). ``deadline``: by ``now``. ``say`` prints what goes
    on.
    """

    cluster: str
    region: str
    stack: str
    nodes: Nodes
    bucket: Disposal
    definitions: Disposal
    aws: Aws
    objects: Objects | None
    now: Callable[[], float]
    sleep: Callable[[float], None]
    deadline: float
    say: Callable[[str], None]

    def until(self, question: Callable[[], str], *, every: float = 2.0) -> None:
        """Ask what is still in the way until nothing is, and print it whenever the answer changes.

        Raises ``UnfinishedError`` at the deadline.
        """
        printed = ""
        while in_the_way := question():
            if in_the_way != printed:
                self.say(f"  {in_the_way}")
                printed = in_the_way
            if self.now() >= self.deadline:
                raise UnfinishedError(
                    f"not over in time: {in_the_way}. Run the same command again: it goes on from here"
                )
            self.sleep(every)

    def resources(self) -> Sequence[Mapping[str, Any]]:
        """The resources of the living stack; none if there is no such stack."""
        if not self.stack_id():
            return ()
        listed = self.aws.ask("cloudformation", "list_stack_resources", StackName=self.stack)
        return [one for one in listed["StackResourceSummaries"] if one.get("PhysicalResourceId")]

    def parameters(self) -> Mapping[str, str]:
        """The parameters of the living stack; none if there is no such stack."""
        stack = self.stack_id()
        if not stack:
            return {}
        return parameters_of(self.described(stack))

    def described(self, stack: str) -> Mapping[str, Any]:
        """What CloudFormation says of a stack. ``stack``: its ARN, by which one that is deleted is described too."""
        (described,) = self.aws.ask("cloudformation", "describe_stacks", StackName=stack)["Stacks"]
        one: Mapping[str, Any] = described
        return one

    def stack_id(self, *statuses: str) -> str:
        """The ARN of the living stack, or of the last one in these statuses; empty if there is none."""
        wanted = statuses or LIVING
        listed = self.aws.ask("cloudformation", "list_stacks", StackStatusFilter=list(wanted))["StackSummaries"]
        ids = [one["StackId"] for one in listed if one["StackName"] == self.stack]
        return str(ids[0]) if ids else ""


#: Every status of a stack that is there (CloudFormation API StackSummary).
LIVING = (
    "CREATE_IN_PROGRESS", "CREATE_FAILED", "CREATE_COMPLETE",
    "ROLLBACK_IN_PROGRESS", "ROLLBACK_FAILED", "ROLLBACK_COMPLETE",
    "DELETE_IN_PROGRESS", "DELETE_FAILED",
    "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_COMPLETE", "UPDATE_FAILED",
    "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_FAILED", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
    "UPDATE_ROLLBACK_COMPLETE",
)  # fmt: skip
