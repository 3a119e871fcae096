"""Admission rules that span fields, each in two forms: CEL for the API server, Python for files.

A type and a range say little about an object: ``In`` needs values, ``role`` excludes ``instanceProfile``. The API
server learns such rules from the CRD (``x-kubernetes-validations``), and a file given to ``joinery plan`` never meets
an API server. So a rule is one object with both forms, attached to a field with ``Annotated``; ``tools/crds.py`` reads
the CEL, pydantic runs the Python. Whether the two agree is tested with one table of bad objects, against both.

Rules about this file: a rule may not refuse what Karpenter's CRDs accept, unless such an object could never work;
a rule on a list item is written on the item, so that the message names it.
"""

from collections.abc import Callable
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

VALIDATIONS = "x-kubernetes-validations"


class RuleError(ValueError):
    """An object breaks a rule. ``field`` is the offender below the object that has the rule, empty for all of it."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Rule:
    """One rule. ``holds`` gets the validated value; ``field`` is who is blamed, in the wire's spelling.

    ``blamed``: of a map that breaks the rule, the key that does.
    """

    def __init__(
        self,
        cel: str,
        message: str,
        holds: Callable[[Any], bool],
        *,
        field: str = "",
        blamed: Callable[[Any], str] | None = None,
    ) -> None:
        self.cel = cel
        self.message = message
        self.holds = holds
        self.field = field
        self.blamed = blamed

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return with_validation(handler(schema), self.cel, self.message, self.field)

    def _check(self, value: Any) -> Any:
        if not self.holds(value):
            raise RuleError(self.message, self.blamed(value) if self.blamed else self.field)
        return value


class Transition:
    """A rule about a change (``oldSelf``): only the API server sees both objects."""

    def __init__(self, cel: str, message: str) -> None:
        self.cel = cel
        self.message = message

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return with_validation(handler(schema), self.cel, self.message)


def with_validation(schema: dict[str, Any], cel: str, message: str, field: str = "") -> dict[str, Any]:
    """The schema with one more CEL rule."""
    rule = {"rule": cel, "message": message} | ({"fieldPath": f".{field}"} if field else {})
    return {**schema, VALIDATIONS: [*schema.get(VALIDATIONS, []), rule]}
