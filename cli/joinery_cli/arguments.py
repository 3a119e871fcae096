"""A bad argument in one plain line: the option, what it must be, and what was written, as for a field of a file."""

from typer import BadParameter
from typer.core import TyperOption
from typer.exceptions import TyperException

from joinery.objects.wording import of_model_error, one_of


def said_of(error: TyperException) -> str:
    """``--output: must be one of table, json, html, is 'JSON'; is it json?``;
    of every other error what it says itself.
    """
    from pydantic import ValidationError

    option, cause = getattr(error, "param", None), error.__cause__
    if not isinstance(error, BadParameter) or not isinstance(option, TyperOption):
        return error.format_message()
    if not isinstance(cause, ValidationError):
        return error.format_message()
    wrong, choices = cause.errors(include_url=False)[0], option.type_descriptor.choices
    words = one_of([*map(str, choices)], wrong["input"]) if choices else of_model_error(wrong)
    longest = max(option.opts, key=len)
    return f"{longest}: {words}" if words else error.format_message()
