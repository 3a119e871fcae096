"""``Connection``: what is set up once the doors are there: the webhook configuration, the first catalogue, and the
first NodePool where one is asked for.
"""

from collections.abc import Mapping

from joinery.controllers.installer import rotation
from joinery.controllers.installer.preparation import refuse_another_stack
from joinery.controllers.installer.run import InstallerRun
from joinery.decisions.installation import objects, removal, shipped, starter
from joinery.decisions.installation.requests import StackRequest
from joinery.objects.errors import ConfigurationError, RefusedError, UnavailableError
from joinery.objects.kubernetes.references import reference


def write(run: InstallerRun, request: StackRequest) -> Mapping[str, str]:
    """Connect the cluster to its doors. Returns what the template may say of it."""
    # Two stacks that are created side by side both found the cluster without an owner in Preparation. The mark names
    # the one that wrote last, and the other is refused here.
    refuse_another_stack(run, request)
    wanted = objects.connection(shipped.webhook(), _address(run, request), version=run.version)
    if wanted:
        run.apply(wanted, objects.WEBHOOK, force=request.properties.get("ForceConflicts") == "true")
    run.remove_outdated(objects.Part.CONNECTION, wanted)
    _refresh_catalog(run, request.properties.get("CatalogFunction", ""))
    for document in starter.documents(request):
        run.begin(f"Making {reference(document)}")
        if not run.objects.create(document):
            run.notes.append(f"{reference(document)} was there already and is left as it is")
    return {}


def remove(run: InstallerRun) -> None:
    """Raises ``RefusedError`` with what to run, where the cluster must not be left yet: the stack stays as it is."""
    claims, webhook = run.claims(), run.objects.read(objects.WEBHOOK)
    # An installation that failed is rolled back, whoever's NodeClaims there are: it has launched nothing.
    is_complete = webhook is None or bool(objects.applied(webhook))
    if is_complete and (why := removal.refusal(claims, run.objects.read(objects.MARKED), run.cluster)):
        run.doing = ""
        raise RefusedError(why)
    run.remove_outdated(objects.Part.CONNECTION, ())


def _address(run: InstallerRun, request: StackRequest) -> str:
    """The webhook's address with its token; empty where it is not called. CloudFormation never sees the token."""
    url = request.properties.get("Url", "")
    if not url.startswith("https://"):  # "none", and of a member of such a home "none" with something behind it
        return ""
    run.begin("Reading the webhook's secret")
    return f"{url.rstrip('/')}/{rotation.read(run.account.webhook_secret()).token}"


def _refresh_catalog(run: InstallerRun, function: str) -> None:
    """Have a catalogue at once. Without it the doors wait for its schedule: half an hour at most."""
    if not function:
        return
    run.begin(f"Having {function} read the catalogue")
    try:
        run.account.refresh_catalog(function)
    except (ConfigurationError, UnavailableError) as error:
        run.notes.append(f"the catalogue is read by its schedule, within half an hour: {error}")
