"""The placement group of an EC2NodeClass (EC2 API DescribePlacementGroups).

A launch names the group as the class does. What EC2 says of it is for plans: which types it takes, and how many
partitions a node may be in. Karpenter's definition of the class has no place in its status for that, so it is looked up
and kept for a minute; where nobody answers, what was known last is good for longer.
"""

from datetime import timedelta
from typing import Any

from joinery.gateways.answers import at, entries
from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.nodeclass.lookups import Look
from joinery.gateways.ec2.nodeclass.placement import PlacementGroup
from joinery.objects.errors import ConfigurationError, JoineryError
from joinery.objects.karpenter.selectors import PlacementGroupSelector

_CALL = "EC2 DescribePlacementGroups"
_GOOD_FOR = timedelta(minutes=1)
#: Of a group that is looked for. To a launch that names one it is somebody's mistake.
_NO_GROUP = ("InvalidPlacementGroup.Unknown", "InvalidPlacementGroupId.Malformed")


class PlacementGroups:
    """Those that node classes name. Safe to use from several threads."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def find(self, selector: PlacementGroupSelector, look: Look) -> PlacementGroup | None:
        """The group; None where there is none that is available. Raises what keeps EC2 from saying so."""
        return look.ask(_question(selector), lambda: _described(self._clients, selector), good_for=_GOOD_FOR)

    def known(self, selector: PlacementGroupSelector, look: Look) -> PlacementGroup | None:
        """The same, but what EC2 said last where it does not say; None where it never has."""
        try:
            return look.ask_or_last(
                _question(selector), lambda: _described(self._clients, selector), good_for=_GOOD_FOR
            )
        except JoineryError as error:
            self._clients.log(f"placement group {selector.id or selector.name}: {error}")
            return None


def _question(selector: PlacementGroupSelector) -> str:
    return f"placement group {selector.id or selector.name}"


def _described(clients: Clients, selector: PlacementGroupSelector) -> PlacementGroup | None:
    named: Any = {"GroupIds": [selector.id]} if selector.id else {"GroupNames": [selector.name]}
    available: Any = [{"Name": "state", "Values": ["available"]}]
    try:
        with translated("describing placement groups"):
            answer = clients.ec2.describe_placement_groups(**named, Filters=available)
    except ConfigurationError as refused:
        if refused.code in _NO_GROUP:
            return None
        raise
    for entry in entries(answer, "PlacementGroups", "GroupId", "Strategy", call=_CALL, log=clients.log):
        partitions = at(entry, "PartitionCount") or 0
        return PlacementGroup(entry["GroupId"], at(entry, "GroupName") or "", entry["Strategy"], partitions)
    return None
