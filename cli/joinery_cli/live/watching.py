"""``--watch``: a command again and again, in one process, so that only what has changed is read anew.

On a terminal its output fills the screen; elsewhere it is printed each time, JSON as one line.
"""

import inspect
import io
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import wraps
from typing import Annotated, Any

import typer

from joinery.objects.errors import ConfigurationError, JoineryError
from joinery_cli.options import DecisionFormat, EveryOption, check_every
from joinery_cli.output.visible import line_of

WatchOption = Annotated[bool, typer.Option("--watch", "-w", help="Look again and again, until q or Ctrl-C.")]


def watchable(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with ``--watch`` and ``--every``."""

    @wraps(command)
    def watched(*, watch: bool, every: float, **options: Any) -> None:
        if not watch:
            command(**options)
            return
        _check(options, every)
        _watch(lambda: command(**options), every, is_json=options["output"] == DecisionFormat.JSON)

    added = {"watch": (WatchOption, False), "every": (EveryOption, 5.0)}
    signature = inspect.signature(command)
    parameters = [
        *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in signature.parameters.values()),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in added.items()
        ),
    ]
    watched.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    watched.__annotations__ = {**command.__annotations__, **{name: kind for name, (kind, _) in added.items()}}
    return watched


def _check(options: dict[str, Any], every: float) -> None:
    # Each command has formats of its own; those of one name are equal, as strings are.
    if options["output"] not in (DecisionFormat.TABLE, DecisionFormat.WIDE, DecisionFormat.JSON):
        raise ConfigurationError(f"--watch: shows a table or JSON, not -o {options['output'].value}")
    if "-" in (*(options["files"] or ()), *(options["more_files"] or ())):
        raise ConfigurationError("--watch: standard input can be read only once; give a file instead of -f -")
    check_every(every)


def _watch(command: Callable[[], None], every: float, *, is_json: bool) -> None:
    if not is_json and sys.stdout.isatty() and sys.stdin.isatty():
        from joinery_cli.live.output_screen import OutputScreen

        if error := OutputScreen(lambda: output_of(command), every).run():
            raise error
        return
    _print(command, every, is_json=is_json)


def _print(command: Callable[[], None], every: float, *, is_json: bool) -> None:
    """What fails the first time is raised; after that it is said, because it may be mended while one watches."""
    has_worked, heard = False, ""
    while True:
        said = io.StringIO()
        try:
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(said):
                command()
        except JoineryError as error:
            if not has_worked:
                sys.stderr.write(said.getvalue())
                raise
            said.write(f"joinery: {line_of(error)}\n")
        else:
            has_worked = True
            sys.stdout.write(_one_line(out.getvalue()) if is_json else out.getvalue())
            sys.stdout.flush()
        # Notices once, and again where they change.
        sys.stderr.write("" if said.getvalue() == heard else said.getvalue())
        sys.stderr.flush()
        heard = said.getvalue()
        time.sleep(every)


def _one_line(document: str) -> str:
    import msgspec

    return msgspec.json.format(document, indent=-1) + "\n"


def output_of(command: Callable[[], None]) -> str:
    """What the command prints on a terminal, notices first."""
    said, printed = _Terminal(), _Terminal()
    with redirect_stderr(said), redirect_stdout(printed):
        command()
    return f"{said.getvalue()}\n{printed.getvalue()}" if said.getvalue() else printed.getvalue()


class _Terminal(io.StringIO):
    """Rich asks the file that it prints on whether it is a terminal, and uses colours then."""

    def isatty(self) -> bool:
        return True
