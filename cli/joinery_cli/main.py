"""``joinery``: how a person meets the product, and how its decisions are checked from outside.

Starting must be quick, so nothing heavy is imported before a command runs: each command imports what it needs in its
body. Commands of other packages (the simulator's ``replay`` and ``simulate``) are found by entry point and imported
only when asked for.
"""

import gc
import io
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer import BadParameter
from typer.core import TyperGroup, TyperOption
from typer.exceptions import TyperException

from joinery import __version__
from joinery.objects.errors import ConfigurationError, JoineryError
from joinery.objects.wording import of_model_error, one_of
from joinery_cli.catalog import catalog
from joinery_cli.converting.command import convert
from joinery_cli.disrupt import disrupt
from joinery_cli.doctor.command import doctor
from joinery_cli.history import history
from joinery_cli.live.watching import watchable
from joinery_cli.notices import RefusedFilesError
from joinery_cli.output.visible import line_of
from joinery_cli.pausing import pause, resume
from joinery_cli.plan import plan
from joinery_cli.top import top
from joinery_cli.uninstall.command import uninstall

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "joinery.commands"
DONE, FAILED, BAD_INPUT = 0, 1, 2
_OF_A_CLONE = "It comes with a clone of the repository: make setup, then .venv/bin/joinery."
#: What people type that is no command here, and where it is.
_ELSEWHERE = {
    "explain": "A pod: joinery plan --explain POD. A node: joinery disrupt --explain NODE.",
    **dict.fromkeys(("simulate", "replay", "kwok"), _OF_A_CLONE),
}
#: After so many new objects garbage is looked for; Python's 700 would look at every module again while the next loads.
_OBJECTS_BETWEEN_COLLECTIONS = 200_000


def _offered() -> "dict[str, EntryPoint]":
    # It imports half of the standard library's email, for which commands of our own need not wait.
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _loaded(offer: "EntryPoint") -> Any:
    """The offered function as a command; where it cannot be imported, a command that says so."""
    try:
        function = offer.load()
    except (ImportError, AttributeError) as error:
        function = _missing(offer, error)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(offer.name)(function)
    return typer.main.get_command(single)


def _missing(offer: "EntryPoint", error: Exception) -> Any:
    def fail() -> None:
        raise JoineryError(f"{offer.name} is not available: {error}")

    fail.__doc__ = f"Not available: {error}"
    return fail


def _complete(ctx: Any, option: str, shell: str = "") -> None:
    """Print or install the completion of the named shell, and end. Raises ``ConfigurationError``."""
    from typer.completion import install_callback, show_callback

    if ctx.info_name != "joinery":
        raise ConfigurationError(f"{option}: kubectl completes its plugins itself; joinery {option} is for joinery")
    if shell:
        if shell not in _SHELLS:
            raise ConfigurationError(f"{option}: {one_of(_SHELLS, shell)}")
        (install_callback if option == "--install-completion" else show_callback)(ctx, ctx.command.params[0], shell)


class _Formatter(typer.Context.formatter_class):  # type: ignore[valid-type,misc]
    """Help with what to write for a value, in place of the type that Python has for it: ``NUMBER``, ``table|json``."""

    def write_dl(self, rows: Sequence[tuple[str, str]], *args: Any, **others: Any) -> None:
        super().write_dl([(_TYPE.sub(_value, term), said) for term, said in rows], *args, **others)


class _Context(typer.Context):
    formatter_class = _Formatter


def _value(match: re.Match[str]) -> str:
    """An argument is called what it is; an option's words are its values."""
    given = match[1]
    if given in ("int", "int range", "float", "float range"):
        return " NUMBER"
    return "" if given in ("str", "list[str]", "path") else f" {given}"


_TYPE = re.compile(r" <([^<>]+)>$")
_SHELLS = ["bash", "zsh", "fish", "powershell", "pwsh"]
#: The options that complete what is typed, and what is said of them.
_COMPLETIONS = {
    "--install-completion": "Install completion for this shell, or for one that is named: bash, zsh, fish, powershell.",
    "--show-completion": "Show completion for this shell, or for one that is named, to copy or change it.",
}


class Commands(TyperGroup):
    """Our own commands, and those that other packages offer."""

    context_class = _Context

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Without a word: help. ``--install-completion fish``: typer would overlook the name, and take the shell that
        it is run in.
        """
        if not args and not ctx.resilient_parsing:
            args = ["--help"]
        for option, shells in _COMPLETIONS.items():
            next(one for one in self.params if isinstance(one, TyperOption) and option in one.opts).help = shells
        if args and args[0] in _COMPLETIONS:
            _complete(ctx, *args[:2])
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *sorted(_offered())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        own = super().get_command(ctx, cmd_name)
        offer = None if own else _offered().get(cmd_name)
        command = _loaded(offer) if offer else own
        if command is not None:
            command.context_class = _Context
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """What each command is for, in a whole sentence: typer would cut it off at the end of the line."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help.partition("\n\n")[0]) for name, command in commands])


app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    # Plain help, as kubectl's: Rich's imports a Markdown parser, which nearly doubles the time that help takes.
    rich_markup_mode=None,
    help="Just-in-time nodes for Amazon EKS: see what would be bought for your pods, where each would run, and why.",
)
app.command()(watchable(plan))
app.command()(watchable(disrupt))
app.command()(top)
app.command()(history)
app.command()(catalog)
app.command()(convert)
app.command()(pause)
app.command()(resume)
app.command()(doctor)
app.command()(uninstall)


@app.command()
def version() -> None:
    """Print the version."""
    print(f"joinery {__version__}")


def _print_version(asked: bool) -> None:
    if asked:
        print(f"joinery {__version__}")
        raise typer.Exit


@app.callback()
def joinery(
    is_version_asked: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keeps ``joinery plan`` a subcommand, whatever else is offered."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command. Always ends in ``SystemExit``: 0 done, 2 bad input, 1 anything else; ``doctor`` has its own."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a letter gets its number, not an error.
            stream.reconfigure(errors="backslashreplace")
    try:
        ended = app(args=arguments, prog_name=_called(), standalone_mode=False)
        sys.stdout.flush()
    except (ConfigurationError, TyperException) as error:
        _end(error, BAD_INPUT)
    except JoineryError as error:
        _end(error, FAILED)
    except OSError as error:
        _end_unheard(error)
    raise SystemExit(ended if isinstance(ended, int) else DONE)


def _called() -> str:
    """What a person has typed: as a plugin of kubectl it is run as ``kubectl-joinery``."""
    return "kubectl joinery" if os.path.basename(sys.argv[0]) == "kubectl-joinery" else "joinery"


def _end(error: Exception, status: int) -> NoReturn:
    if isinstance(error, RefusedFilesError):
        for line in error.lines():
            print(f"joinery: {line_of(line)}", file=sys.stderr)
        raise SystemExit(status)
    said = _said_of(error) if isinstance(error, TyperException) else str(error)
    lines = (line_of(line) for line in said.split("\n")) if status == FAILED else (line_of(said),)
    if said:
        print("joinery: " + "\n".join(lines), file=sys.stderr)
    raise SystemExit(status)


def _end_unheard(error: OSError) -> NoReturn:
    """Nobody reads on (``joinery plan | head``), or the disk is full. What is left must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(error, BrokenPipeError):
        print(f"joinery: {line_of(error)}", file=sys.stderr)
    raise SystemExit(FAILED)


def _said_of(error: TyperException) -> str:
    """A bad argument in one line: ``--output: must be one of table, wide, json, html, is 'JSON'; is it json?``.

    Of every other error what it says itself.
    """
    from pydantic import ValidationError

    option, cause = getattr(error, "param", None), error.__cause__
    # Choices of an option that is missing are in lines of their own.
    said = " ".join(error.format_message().split())
    if not isinstance(error, BadParameter) or not isinstance(option, TyperOption):
        hint = next((hint for name, hint in _ELSEWHERE.items() if said.startswith(f"No such command '{name}'")), "")
        return f"{said.partition(' Did')[0]} {hint}" if hint else said
    if not isinstance(cause, ValidationError):
        return said
    wrong, choices = cause.errors(include_url=False)[0], option.type_descriptor.choices
    words = one_of([*map(str, choices)], wrong["input"]) if choices else of_model_error(wrong)
    longest = max(option.opts, key=len)
    return f"{longest}: {words}" if words else said
