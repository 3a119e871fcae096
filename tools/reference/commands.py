"""The command line, from the commands themselves."""

import textwrap
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import typer

from joinery_cli.main import app

COLUMNS = 120


def tables() -> Iterator[str]:
    """A heading, a sentence and a table of options for each command."""
    group: Any = typer.main.get_command(app)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        about = textwrap.fill(command.help or "", COLUMNS)
        yield from (
            "",
            f"### joinery {name}",
            "",
            about,
            "",
            "| option | values | default | meaning |",
            "|---|---|---|---|",
        )
        for option in command.params:
            if option.name != "help" and not option.hidden:
                yield f"| {_names(option)} | {_values(option)} | {_default(option)} | {_cell(option.help or '')} |"


def _names(option: Any) -> str:
    if option.param_type_name == "argument":
        return f"`{option.metavar or option.name.upper()}`"
    return ", ".join(f"`{name}`" for name in sorted(option.opts, key=len, reverse=True))


def _values(option: Any) -> str:
    if option.metavar:
        return f"`{_cell(option.metavar)}`" if option.param_type_name != "argument" else ""
    kind = option.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{member.value}`" for member in kind)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    return {bool: "", int: "number", float: "number"}.get(kind, "text")


def _default(option: Any) -> str:
    default = option.default
    if default is False or default in (None, "", ()) or callable(default):
        return ""
    return f"`{default.value if isinstance(default, Enum) else default}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
