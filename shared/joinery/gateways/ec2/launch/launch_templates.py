"""The launch templates that EC2 keeps for a cluster: made when a launch needs them, removed when none has for a day.

A region takes 5,000 of them (EC2 User Guide, "Launch template restrictions"), and every size of pods, every image and
every change of a class makes new ones. Nothing says when a template was used last, except the instances: EC2 tags each
with the template that it came from. One that is removed too early is made again by the next launch, for one call.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from joinery.gateways.answers import at, entries
from joinery.gateways.aws import LONGEST_REQUEST, Clients, code, translated
from joinery.gateways.deadlines import in_time
from joinery.gateways.ec2.launch.templates import PREFIX, Template, creation
from joinery.gateways.ec2.nodeclass.tags import OWNER_PREFIX
from joinery.objects.codes import ALREADY_EXISTS, DENIED, TEMPLATE_LIMIT, TEMPLATE_NOT_FOUND
from joinery.objects.snapshot.instances import Instance

#: The tag that EC2 gives an instance: the id of its launch template.
TEMPLATE_TAG = "aws:ec2launchtemplate:id"
#: How long after its making, and after the last launch from it, a template is kept.
KEPT = timedelta(days=1)
#: The same where the region takes no more of them.
KEPT_AT_THE_LIMIT = timedelta(hours=1)
#: How many are removed at a time: each takes a call. It is more than a busy cluster makes in ten minutes, which is how
#: often lifecycle looks.
MOST_REMOVED = 100


class LaunchTemplates:
    """Those of one cluster. It remembers which are there, so that a warm launch asks for none. Safe to use from
    several threads.
    """

    def __init__(self, clients: Clients, cluster: str, now: Callable[[], datetime]) -> None:
        self._clients, self._cluster, self._now = clients, cluster, now
        self._made: set[str] = set()

    def forget(self) -> None:
        """Somebody has deleted one that was remembered: the next launch makes what it needs."""
        self._made.clear()

    def ensure(self, templates: Iterable[Template]) -> None:
        """Make the templates that are not there. To be called within ``translated``.

        A template's name is a digest of its data, so one that exists is the right one.
        """
        for wanted in templates:
            if wanted.name not in self._made:
                self._make(wanted)
                self._made.add(wanted.name)

    def remove_unused(self, instances: Iterable[Instance]) -> None:
        """Remove templates from which nothing was launched for a day. ``instances``: all that the cluster has."""
        since = self._now() - KEPT
        used = {(one.tags or {}).get(TEMPLATE_TAG) for one in instances if one.launched_at > since}
        with translated("removing launch templates"):
            listed = self._listed()
            unused = (one for one in listed if one["LaunchTemplateId"] not in used and _made_at(one) <= since)
            self._remove(unused)

    def _make(self, wanted: Template) -> None:
        from botocore.exceptions import ClientError

        call = creation(wanted)
        in_time("creating a launch template", LONGEST_REQUEST)
        try:
            self._clients.ec2.create_launch_template(**call)
        except ClientError as refused:
            if code(refused) in ALREADY_EXISTS:
                return
            if code(refused) not in TEMPLATE_LIMIT or not self._make_room():
                raise
            self._clients.ec2.create_launch_template(**call)

    def _make_room(self) -> bool:
        """Whether some of ours could be removed, the oldest first. The region has no room for another one.

        Of the roles that launch, lifecycle's alone may remove them: it launches what others had to leave.
        """
        from botocore.exceptions import ClientError

        before = self._now() - KEPT_AT_THE_LIMIT
        try:
            listed = sorted(self._listed(), key=_made_at)
            return (
                self._remove(
                    one for one in listed if one["LaunchTemplateName"] not in self._made and _made_at(one) <= before
                )
                > 0
            )
        except ClientError as refused:
            self._clients.log(f"launch templates could not be removed: {refused}")
            return False

    def _listed(self) -> list[Mapping[str, Any]]:
        in_time("listing launch templates", LONGEST_REQUEST)
        filters: Any = [{"Name": f"tag:{OWNER_PREFIX}{self._cluster}", "Values": ["owned"]}]
        pages = self._clients.ec2.get_paginator("describe_launch_templates").paginate(Filters=filters)
        needed = ("LaunchTemplateId", "LaunchTemplateName", "CreateTime")
        listed = (
            one
            for page in pages
            for one in entries(page, "LaunchTemplates", *needed, call="EC2 DescribeLaunchTemplates")
        )
        return [one for one in listed if at(one, "LaunchTemplateName").startswith(PREFIX)]

    def _remove(self, templates: Iterable[Mapping[str, Any]]) -> int:
        """How many were removed. One that EC2 does not remove keeps no other; raises its error if none was removed.

        Who may not remove one is not asked to remove a hundred.
        """
        from botocore.exceptions import ClientError

        removed, kept = 0, None
        for one in islice(templates, MOST_REMOVED):
            in_time("removing a launch template", LONGEST_REQUEST)
            self._made.discard(one["LaunchTemplateName"])
            try:
                self._clients.ec2.delete_launch_template(LaunchTemplateId=one["LaunchTemplateId"])
            except ClientError as refused:
                if code(refused) not in TEMPLATE_NOT_FOUND:
                    kept = kept or refused
                    if code(refused) in DENIED:
                        break
                    continue
            removed += 1
        if kept and not removed:
            raise kept
        if kept:
            self._clients.log(f"not every unused launch template could be removed: {kept}")
        return removed


def _made_at(template: Mapping[str, Any]) -> datetime:
    made: datetime = template["CreateTime"]
    return made if made.tzinfo else made.replace(tzinfo=UTC)
