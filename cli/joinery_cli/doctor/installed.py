"""Is it installed, whole, in one version, once, and switched on?"""

from collections.abc import Iterator

from joinery import __version__
from joinery.decisions.installation.objects import MARKED, stack_of
from joinery.gateways.memory.register import key_of
from joinery.objects.errors import NotFoundError
from joinery.objects.karpenter.labels import VERSION
from joinery.objects.kubernetes.references import reference
from joinery_cli.doctor.findings import Check, Finding, fail, note, ok, warn
from joinery_cli.doctor.site import NoStackError, Site, parameters_of

_DEPLOY = "make deploy CLUSTER={cluster}"


def stack(site: Site) -> Iterator[Finding]:
    """Whether the stack is there and at rest."""
    try:
        state = str(site.description["StackStatus"])
    except NoStackError as error:
        yield fail("stack", str(error), _DEPLOY.format(cluster=site.cluster))
        return
    if state in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        yield ok("stack", f"{site.stack} is {state}")
    elif state.endswith("_IN_PROGRESS"):
        yield note("stack", f"{site.stack} is {state}", "wait until it is done, and look again")
    elif state == "UPDATE_ROLLBACK_COMPLETE":
        yield warn("stack", f"{site.stack}: the last update failed and was rolled back", _events(site))
    else:
        yield fail("stack", f"{site.stack} is {state}", _events(site))


def _events(site: Site) -> str:
    return f"aws cloudformation describe-stack-events --stack-name {site.stack}: the first *_FAILED says why"


def other_stacks(site: Site) -> Iterator[Finding]:
    """Whether another stack serves the same cluster: both would buy for the same pods."""
    stacks = site.aws.ask("cloudformation", "describe_stacks")["Stacks"]
    others = [
        one["StackName"]
        for one in stacks
        if one["StackName"] != site.stack
        and str(one.get("Description", "")).startswith("Joinery")
        and parameters_of(one).get("ClusterName") == site.cluster
        and one["StackStatus"] != "DELETE_COMPLETE"
    ]
    if others:
        remedy = "one stack a cluster: remove one (sam delete --stack-name NAME)"
        yield fail("stack", f"{', '.join(others)} is for cluster {site.cluster}, too", remedy)


def versions(site: Site) -> Iterator[Finding]:
    """Whether stack and this command are of one version."""
    installed = site.outputs.get("Version", "")
    if installed and installed != __version__:
        remedy = "use the joinery of that version, or deploy this one"
        yield warn("version", f"the stack is {installed}, this command is {__version__}", remedy)
    elif installed:
        yield ok("version", f"the stack is {installed}")


def written(site: Site) -> Iterator[Finding]:
    """Whether the cluster has the definitions and rights of the stack's version."""
    installed = site.outputs.get("Version", "")
    others = []
    for name in map(reference, site.wanted):
        try:
            stored = site.get(name.path)
        except NotFoundError:
            yield fail("version", f"{name} is missing in the cluster", "deploy again: the installer applies it")
            continue
        version = stored.get("metadata", {}).get("annotations", {}).get(VERSION)
        if installed and version and version != installed:
            others.append(f"{name.name} ({version})")
    if others:
        yield warn(
            "version",
            f"of another version than the stack: {', '.join(others)}",
            "deploy again: the installer brings them to the stack's version",
        )


def owner(site: Site) -> Iterator[Finding]:
    """Whether the cluster was installed into by this stack: another may be in another account or region."""
    try:
        stored = site.get(MARKED.path)
    except NotFoundError:
        return  # that it is missing is said of the versions
    other = stack_of(dict(stored))
    if other and other != site.description["StackId"]:
        remedy = "remove one of the two: make undeploy CLUSTER=NAME, with that stack's account and region"
        yield fail("stack", f"the cluster says that {other} runs it", remedy)


def member(site: Site) -> Iterator[Finding]:
    """Whether a member's home is of its release, and knows it."""
    if not site.home:
        return
    home, installed = site.home, site.outputs.get("Version", "")
    if (theirs := home.outputs.get("Version", "")) != installed:
        remedy = f"make deploy CLUSTER={home.parameters.get('ClusterName', '')},{site.cluster}"
        yield warn("member", f"its home, {home.stack}, is {theirs}, and this stack is {installed}", remedy)
    answer = site.aws.ask("dynamodb", "get_item", TableName=home.resources["Table"], Key=key_of(site.cluster))
    if "Item" not in answer:
        yield fail("member", f"{home.stack} does not know this cluster, and serves it not", "deploy again")
        return
    item = {name: value.get("S", "") for name, value in answer["Item"].items()}
    if item.get("stack") != site.description["StackId"]:
        yield fail("member", f"{home.stack} serves it for another stack: {item.get('stack')}", "remove one of the two")
    elif item.get("settings") != site.parameters.get("Settings") or item.get("mode") != site.parameters.get("Mode"):
        remedy = "finish make undeploy, or deploy again"
        yield warn("member", f"{home.stack} serves it with other settings: {item.get('settings')}", remedy)
    else:
        yield ok("member", f"{home.stack} serves it")


def settings(site: Site) -> Iterator[Finding]:
    """Whether something is switched off, or only watched, or tells nobody."""
    given, wrong = site.parameters, site.wrong_settings
    if wrong:
        remedy = "deploy with Settings that are right; all else here is looked at as if every setting had its default"
        yield fail("settings", f"the stored Settings are not valid: {wrong}", remedy)
    if given.get("Mode") == "observe":
        remedy = "deploy with Mode=act when its decisions are to your liking"
        yield warn("settings", "Mode=observe: everything is decided, and nothing is done", remedy)
    off = given["SwitchedOff"]
    if off:
        yield warn("settings", f"switched off: {off}", "deploy with SwitchedOff=")
    if not given.get("AlarmTopicArn"):
        yield warn("settings", "alarms notify nobody", "deploy with AlarmTopicArn=ARN of an SNS topic")
    if not off and not wrong and given.get("Mode") != "observe":
        yield ok("settings", "it acts, and every function is switched on")


def functions(site: Site) -> Iterator[Finding]:
    """Whether each function can run."""
    broken = False
    for name, function in sorted(site.functions.items()):
        about = site.configuration(name)
        if about.get("State", "Active") not in ("Active", "Inactive") or about.get("LastUpdateStatus") == "Failed":
            why = about.get("StateReason") or about.get("LastUpdateStatusReason") or about.get("State")
            broken = True
            yield fail("functions", f"{name}: {why}", "deploy again")
        limit = site.aws.ask("lambda", "get_function_concurrency", FunctionName=function)
        if limit.get("ReservedConcurrentExecutions") == 0:
            broken = True
            remedy = f"aws lambda delete-function-concurrency --function-name {function}"
            yield fail("functions", f"{name} is stopped: its concurrency is 0", remedy)
    if not broken:
        yield ok("functions", f"{len(site.functions)} functions can run")


def wakeups(site: Site) -> Iterator[Finding]:
    """Whether what wakes the functions is enabled: queues' event sources, and schedules."""
    broken = []
    for function in site.functions.values():
        for source in site.aws.ask("lambda", "list_event_source_mappings", FunctionName=function)[
            "EventSourceMappings"
        ]:
            if source.get("State") not in ("Enabled", "Creating", "Enabling", "Updating"):
                broken.append(source["UUID"])
                remedy = f"aws lambda update-event-source-mapping --enabled --uuid {source['UUID']}"
                yield fail("wake-ups", f"the queue of {function} is {source.get('State')}", remedy)
    for logical, name in site.resources.items():
        if logical.endswith("Schedule") and _state(site, name) != "ENABLED":
            broken.append(name)
            remedy = f"enable {name} in EventBridge Scheduler, or finish make undeploy: a deployment does neither"
            yield fail("wake-ups", f"{logical} is disabled", remedy)
    if not broken:
        yield ok("wake-ups", "queues and schedules are enabled")


def _state(site: Site, schedule: str) -> str:
    # The physical id of a schedule is its name, or its group's and its own.
    group, _, name = schedule.rpartition("|")
    answer = site.aws.ask("scheduler", "get_schedule", Name=name, **({"GroupName": group} if group else {}))
    return str(answer.get("State", "ENABLED"))


def karpenter(site: Site) -> Iterator[Finding]:
    """Whether a Karpenter runs beside it."""
    listed = site.listed("/apis/apps/v1/deployments?labelSelector=app.kubernetes.io/name%3Dkarpenter")
    running = [one["metadata"] for one in listed if one.get("spec", {}).get("replicas", 1) > 0]
    if not running:
        return
    name = f"{running[0].get('namespace')}/{running[0]['name']}"
    if site.parameters.get("Mode") == "observe":
        yield note("karpenter", f"{name} runs, and Joinery observes beside it")
    else:
        scale = f"kubectl -n {running[0].get('namespace')} scale deployment {running[0]['name']} --replicas=0"
        yield fail("karpenter", f"{name} runs too: both buy for the same pods", scale)


def webhooks_of_karpenter(site: Site) -> Iterator[Finding]:
    """Whether the API server asks a Karpenter that is gone before it writes or reads Karpenter's kinds (charts of v0.31
    to v1.0; Karpenter, "v1 Migration").
    """
    for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        names = [one["metadata"]["name"] for one in site.listed(f"/apis/admissionregistration.k8s.io/v1/{kind}")]
        left = [name for name in names if ".webhook.karpenter." in name or ".webhook.config.karpenter." in name]
        if left:
            text = f"{', '.join(left)}: with Karpenter at zero, NodeClaims and node classes cannot be written"
            yield warn("karpenter", text, f"once Karpenter is at zero: kubectl delete {kind} {' '.join(left)}")
    for name in ("nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"):
        try:
            one = site.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        except NotFoundError:
            continue
        asks = one.get("spec", {}).get("conversion", {}).get("strategy") == "Webhook"
        stored = one.get("status", {}).get("storedVersions") or ()
        if asks and set(stored) != {"v1"}:
            text = f"{name} is stored as {', '.join(stored)}, and only a running Karpenter converts it"
            yield fail("karpenter", text, "let Karpenter v1.0.6 or newer bring it to v1 before you scale it to zero")


CHECKS = (
    Check("stack", stack),
    Check("stack", other_stacks),
    Check("stack", owner),
    Check("version", versions),
    Check("version", written),
    Check("member", member),
    Check("settings", settings),
    Check("functions", functions),
    Check("wake-ups", wakeups),
    Check("karpenter", karpenter),
    Check("karpenter", webhooks_of_karpenter),
)
