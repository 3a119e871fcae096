"""How is it: stale prices, dead letters, alarms, throttling, failures?"""

import gzip
from collections.abc import Iterator
from datetime import datetime, timedelta

from joinery.gateways.ec2.catalog.document import decode as decoded_catalogue
from joinery.gateways.memory.bucket import CATALOG_KEY, PAID_FOR_KEY
from joinery.objects.commitments import decode
from joinery.objects.errors import NotFoundError
from joinery.objects.kubernetes.references import collection
from joinery.objects.settings import NOT_COUNTED
from joinery_cli.doctor.findings import Check, Finding, fail, note, ok, warn
from joinery_cli.doctor.site import Site, metric_sum

_HOUR = timedelta(hours=1)
#: It is written twice an hour.
_STALE = timedelta(minutes=90)
_LETTERS = {
    "InterruptionDeadLetters": "interruptions failed five times",
    "BellDeadLetters": "bells were given up",
    "ScheduleDeadLetters": "schedules could not reach their function",
}


def catalogue(site: Site) -> Iterator[Finding]:
    """How old the prices are."""
    remedy = f"aws lambda invoke --function-name {site.functions.get('Catalog', '')} /dev/stdout, and read its error"
    listed = site.aws.ask("s3", "list_objects_v2", Bucket=site.outputs["Bucket"], Prefix=CATALOG_KEY)
    moments: list[datetime] = [one["LastModified"] for one in listed.get("Contents") or () if one["Key"] == CATALOG_KEY]
    if not moments:
        yield fail("catalogue", "there is none yet", remedy)
        return
    (written,) = moments
    age = site.now() - written
    minutes = age.total_seconds() / 60
    if age > _STALE:
        yield warn("catalogue", f"its prices are {minutes:,.0f} minutes old", remedy)
    else:
        yield ok("catalogue", f"its prices are {minutes:.0f} minutes old")


def commitments(site: Site) -> Iterator[Finding]:
    """What the functions count as paid for already, where the stack lets them."""
    choice = site.parameters.get("Commitments", NOT_COUNTED)
    if choice == NOT_COUNTED:
        return
    remedy = "write it, docs/packing.md says how" if choice == "file" else "it is read within the hour"
    try:
        answer = site.aws.ask("s3", "get_object", Bucket=site.outputs["Bucket"], Key=PAID_FOR_KEY)
    except NotFoundError:
        yield warn("commitments", f"there is no {PAID_FOR_KEY} in the bucket yet: nothing counts as paid for", remedy)
        return
    document = decode(answer["Body"].read())
    for line in document.missing:
        yield warn("commitments", line, "give the right that is named, or a way to the service")
    plans = sum(max(0.0, one.commitment - one.used_elsewhere) for one in document.savings_plans)
    instances = sum(max(0.0, one.count - one.used_elsewhere) for one in document.reserved_instances)
    read = f", read {(site.now() - document.read).total_seconds() / 60:.0f} minutes ago" if document.read else ""
    text = f"others leave {plans:.4g} $/h of Savings Plans and {instances:g} Reserved Instances{read}"
    yield ok("commitments", text)


def catalogue_sources(site: Site) -> Iterator[Finding]:
    """What the catalogue lacks, and which capacity reservations nobody selects."""
    try:
        answer = site.aws.ask("s3", "get_object", Bucket=site.outputs["Bucket"], Key=CATALOG_KEY)
    except NotFoundError:
        return  # which the check before has said
    stored = decoded_catalogue(gzip.decompress(answer["Body"].read()))
    for missing in stored.missing:
        remedy = "give the function catalog that right; its log has the error"
        yield warn("catalogue", str(missing), remedy)
    selected = {
        one["id"]
        for node_class in site.listed(collection("EC2NodeClass"))
        for one in node_class.get("status", {}).get("capacityReservations") or ()
    }
    for one in stored.capacity_reservations:
        name = one.capacity_reservation_id
        if one.instance_match_criteria == "open" and one.is_usable(site.now()) and name not in selected:
            what = f"{one.instance_type} in {one.availability_zone}"
            yield note(
                "catalogue",
                f"no EC2NodeClass selects the open capacity reservation {name} ({what}): EC2 may use it for on-demand "
                "nodes, and plans price them as if nothing were paid for",
                "select it by capacityReservationSelectorTerms, where it is meant for this cluster",
            )


def dead_letters(site: Site) -> Iterator[Finding]:
    """Whether messages wait for a person."""
    waiting = False
    for name, what in _LETTERS.items():
        if url := site.resources.get(name):
            wanted = ["ApproximateNumberOfMessages"]
            answer = site.aws.ask("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=wanted)
            number = int(answer["Attributes"]["ApproximateNumberOfMessages"])
            if number:
                waiting = True
                yield fail("dead letters", f"{number} in {name}: {what}", "docs/runbook.md, dead letters")
    if not waiting:
        yield ok("dead letters", "there are none")


def alarms(site: Site) -> Iterator[Finding]:
    """Which alarms ring."""
    names = {name: logical for logical, name in site.resources.items() if logical.endswith("Alarm")}
    if not names:
        return
    answer = site.aws.ask("cloudwatch", "describe_alarms", AlarmNames=list(names))
    ringing = [names[one["AlarmName"]] for one in answer["MetricAlarms"] if one["StateValue"] == "ALARM"]
    for logical in ringing:
        yield fail("alarms", f"{logical} rings", f"docs/runbook.md, {logical}")
    if not ringing:
        yield ok("alarms", f"none of {len(names)} rings")


def throttles(site: Site) -> Iterator[Finding]:
    """Whether Lambda turned calls away, or functions ended in errors, in the last hour."""
    troubled = False
    for name, function in sorted(site.functions.items()):
        about = {"FunctionName": function}
        throttled = metric_sum(site, "AWS/Lambda", "Throttles", about, _HOUR)
        failed = metric_sum(site, "AWS/Lambda", "Errors", about, _HOUR)
        if throttled:
            troubled = True
            remedy = "raise Lambda's concurrency (see concurrency)"
            if name == "Webhook":
                remedy = "raise WebhookConcurrency; until then the schedule rings once a minute"
            yield warn("throttling", f"{name}: {throttled:.0f} calls were turned away in an hour", remedy)
        if failed:
            troubled = True
            yield warn(
                "throttling",
                f"{name}: {failed:.0f} calls ended in an error in an hour",
                "read its log: docs/runbook.md",
            )
    if not troubled:
        yield ok("throttling", "no call was turned away in the last hour, and none failed")


def failures(site: Site) -> Iterator[Finding]:
    """Whether runs failed, or were refused, in the last hour."""
    space = f"Joinery/{site.cluster}"
    for name, what in (("joinery_runs_failed_total", "failed"), ("joinery_refusals_total", "were refused")):
        number = metric_sum(site, space, name, {}, _HOUR)
        if number:
            remedy = "docs/runbook.md has the command for the log's errors"
            yield warn("runs", f"{number:.0f} runs {what} in an hour", remedy)


CHECKS = (
    Check("catalogue", catalogue),
    Check("catalogue", catalogue_sources),
    Check("commitments", commitments),
    Check("dead letters", dead_letters),
    Check("alarms", alarms),
    Check("throttling", throttles),
    Check("runs", failures),
)
