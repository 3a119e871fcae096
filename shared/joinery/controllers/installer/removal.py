"""What deleting a custom resource does: the hook of ``sam delete`` and ``make undeploy``.

CloudFormation deletes ``Connection`` first of all, while every door still works, and ``Preparation`` last of all, when
no door is left. So what speaks against uninstalling is said in the first (a ``RefusedError`` stops the deletion of the
stack, and everything goes on working), and what the doors need goes in the last.

Neither is called where another stack runs the cluster, or where the cluster is gone: then there is nothing of ours.
"""

from joinery.controllers.installer.run import InstallerRun
from joinery.decisions.installation import objects as installed
from joinery.decisions.installation import removal
from joinery.decisions.installation.objects import Part
from joinery.objects.errors import RefusedError


def disconnect(run: InstallerRun) -> None:
    """Delete ``Connection``. Raises ``RefusedError`` with what to run, where the cluster must not be left yet."""
    claims, webhook = run.claims(), run.objects.read(installed.WEBHOOK)
    # An installation that failed is rolled back, whoever's NodeClaims there are: it has launched nothing.
    is_complete = webhook is None or bool(installed.applied(webhook))
    if is_complete and (why := removal.refusal(claims, run.objects.read(installed.MARKED), run.cluster)):
        run.doing = ""
        raise RefusedError(why)
    run.remove_outdated(Part.CONNECTION, ())


def withdraw(run: InstallerRun) -> None:
    """Delete ``Preparation``: rights last, definitions never."""
    run.remove_outdated(Part.PREPARATION, ())
    run.remove([installed.LEASE])
