"""``Preparation``: what is there before any door: definitions, rights, policies, the Lease; EC2's role for spot.

It is updated before the doors too, so a new release finds its definitions. Its rights are those of the doors that are
running until then as well: a release takes a right away only once the doors of the release before did not need it.
"""

from collections.abc import Mapping

from joinery.controllers.installer.run import InstallerRun
from joinery.decisions.installation import definitions, objects, shipped
from joinery.decisions.installation.removal import UNINSTALLING
from joinery.decisions.installation.requests import StackRequest
from joinery.objects.errors import ConfigurationError, ConflictError, NotFoundError, RefusedError, UnavailableError
from joinery.objects.kubernetes.references import Reference, reference


def stack_lives_on(run: InstallerRun, request: StackRequest) -> bool:
    """Whether the resource goes and the stack does not: an update is rolled back that had brought the installer.

    The doors of the release before need the rights, which somebody had applied by hand.
    """
    run.begin("Asking what becomes of the stack")
    try:
        status = run.account.stack_status(request.stack)
    except (ConfigurationError, NotFoundError, UnavailableError) as error:
        run.notes.append(f"whether the stack itself is deleted is not known: {error}")
        return False
    if status.startswith("UPDATE_"):
        run.notes.append("the stack stays, and so does what its functions need in the cluster")
        return True
    return False


def remove_node_role_after_nodes(run: InstallerRun, request: StackRequest) -> None:
    """Remove the role of the nodes if no node is left.

    CloudFormation keeps it: nodes that were kept would lose the cluster without it.
    """
    if left := run.claims():
        run.notes.append(f"the role of the nodes is kept, because {len(left)} NodeClaims are left")
    else:
        remove_node_role(run, request)


def remove_node_role(run: InstallerRun, request: StackRequest) -> None:
    """Remove the role of the nodes, if the stack has made one."""
    role, profile = request.properties.get("NodeRole", ""), request.properties.get("NodeInstanceProfile", "")
    if not role:
        return
    run.begin(f"Removing the role {role}")
    try:
        run.account.remove_node_role(run.cluster, role, profile)
    except ConflictError as error:
        run.notes.append(f"the role {role} is kept, because something else holds it: {error}")


def write(run: InstallerRun, request: StackRequest) -> Mapping[str, str]:
    """Bring the cluster to this release. Returns what the template may say of it."""
    _refuse_old_kubernetes(run)
    refuse_another_stack(run, request)
    wanted = objects.preparation(
        shipped.definitions(), shipped.rights(), request.properties, stack=request.stack, version=run.version
    )
    force = request.properties.get("ForceConflicts") == "true"
    run.apply(wanted, objects.MARKED, force=force, left=_left_to_others(run, wanted))
    run.remove_outdated(objects.Part.PREPARATION, wanted)
    _stay(run)
    _make_spot_role(run)
    return {"Version": run.version}


def remove(run: InstallerRun) -> None:
    """Rights last, definitions never."""
    run.remove_outdated(objects.Part.PREPARATION, ())
    run.remove([objects.LEASE])


def _stay(run: InstallerRun) -> None:
    """Take back what an uninstalling said of nodes that was stopped: whoever deploys stays, and so a later deletion of
    the stack asks about nodes again.
    """
    marked = run.objects.read(objects.MARKED)
    if marked is not None and UNINSTALLING in (marked["metadata"].get("annotations") or {}):
        run.begin(f"Taking {UNINSTALLING} off {objects.MARKED}")
        run.objects.patch(objects.MARKED, {"metadata": {"annotations": {UNINSTALLING: None}}})


def _make_spot_role(run: InstallerRun) -> None:
    run.begin("Making EC2's service-linked role for spot instances")
    try:
        run.account.ensure_spot_role()
    except (ConfigurationError, UnavailableError) as error:
        # Most accounts have the role, and a private subnet may have no way to IAM: only spot launches would need it.
        run.notes.append(f"whether EC2's service-linked role for spot instances is there is not known: {error}")


def _refuse_old_kubernetes(run: InstallerRun) -> None:
    run.begin("Asking for Kubernetes' version")
    version = run.objects.server_version()
    if version < objects.LEAST_KUBERNETES:
        least = _dotted(objects.LEAST_KUBERNETES)
        raise RefusedError(
            f"Cluster {run.cluster} runs Kubernetes {_dotted(version)}. Joinery needs {least} or newer, because "
            "older ones cannot fence in the rights that it is given. Upgrade the cluster first."
        )


def refuse_another_stack(run: InstallerRun, request: StackRequest) -> None:
    """Raises ``RefusedError`` where the marks in the cluster name another stack."""
    if (owner := run.owner()) not in ("", request.stack):
        run.doing = ""
        raise RefusedError(
            f"Cluster {run.cluster} is run by another stack: {owner}. Update that one, or remove it first. If it is "
            f"gone: kubectl annotate clusterrole {objects.MARKED.name} {objects.STACK}-"
        )


def _left_to_others(run: InstallerRun, wanted: objects.Documents) -> set[Reference]:
    """The definitions that are not written, with a note of the reason."""
    left = set()
    for where in (reference(one) for one in wanted if one["kind"] == "CustomResourceDefinition"):
        run.begin(f"Reading {where}")
        decision = definitions.decide(run.objects.read(where), run.version)
        if not decision.applies:
            run.notes.append(decision.reason)
            left.add(where)
    return left


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
