"""A template as CloudFormation would make it of given parameters: every intrinsic function of it resolved.

Names that AWS makes up are said by the caller: of what is not said, the logical id is the name. So are the values that
other stacks export; of those that are not said, the export's name is the value.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tools.template import TEMPLATE, load

#: Pseudo parameters (CloudFormation, "Pseudo parameters reference").
PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "AWS::AccountId": "123456789012",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::StackName": "joinery",
    "AWS::StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/joinery/1",
}
_NO_VALUE = object()
_NAMED = re.compile(r"\$\{([^!}]+)\}")


_loaded = cache(load)


@dataclass(frozen=True)
class Stack:
    """A stack of a template. ``parameters``: those that are not to have their default.

    ``names``: what AWS calls resources, by ``LogicalId`` for a Ref and ``LogicalId.Attribute`` for a GetAtt; and what
    is exported, by the export's name.
    """

    parameters: Mapping[str, Any]
    names: Mapping[str, str]
    path: Path = TEMPLATE

    @property
    def template(self) -> dict[str, Any]:
        """As it is written."""
        return _loaded(self.path)

    @cached_property
    def resources(self) -> dict[str, dict[str, Any]]:
        """The resources whose condition is met, by logical id."""
        found = self.template["Resources"]
        return {
            name: self.resolved(resource)
            for name, resource in found.items()
            if "Condition" not in resource or self._is_met(resource["Condition"])
        }

    def resolved(self, value: Any) -> Any:
        """A value of the template with every function in it replaced by what it stands for."""
        if isinstance(value, list):
            items = [self.resolved(item) for item in value]
            return [item for item in items if item is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((function, argument),) = value.items()
            if function in ("Ref", "Condition") or function.startswith("Fn::"):
                return self._called(function.removeprefix("Fn::"), argument)
        fields = {key: self.resolved(item) for key, item in value.items()}
        return {key: item for key, item in fields.items() if item is not _NO_VALUE}

    def _called(self, function: str, argument: Any) -> Any:
        match function:
            case "Ref":
                return self._named(argument)
            case "GetAtt":
                return self._named(argument if isinstance(argument, str) else ".".join(argument))
            case "Condition":
                return self._is_met(argument) if isinstance(argument, str) else {function: self.resolved(argument)}
            case "If":
                condition, met, unmet = argument
                return self.resolved(met if self._is_met(condition) else unmet)
            case "Sub":
                text, values = (argument, {}) if isinstance(argument, str) else argument
                given = {name: self.resolved(item) for name, item in values.items()}
                return _NAMED.sub(lambda name: str(given.get(name[1]) or self._named(name[1])), text)
            case "FindInMap":
                mapping, first, second = self.resolved(argument)
                return self.template["Mappings"][mapping][first][second]
            case "ImportValue":
                export = str(self.resolved(argument))
                return self.names.get(export) or export
        return _CALLS[function](self.resolved(argument))

    def _named(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NO_VALUE
        parameters = self.template["Parameters"]
        if name in parameters:
            return self.parameters.get(name, parameters[name].get("Default"))
        return self.names.get(name) or PSEUDO.get(name) or name

    def _is_met(self, condition: str) -> bool:
        return bool(self.resolved(self.template["Conditions"][condition]))


#: The functions that need their arguments alone.
_CALLS: Mapping[str, Callable[[Any], Any]] = {
    "Join": lambda a: a[0].join(a[1] if isinstance(a[1], list) else [a[1]]),
    "Split": lambda a: a[1].split(a[0]),
    "Select": lambda a: a[1][int(a[0])],
    "Equals": lambda a: a[0] == a[1],
    "And": all,
    "Or": any,
    "Not": lambda a: not a[0],
}
