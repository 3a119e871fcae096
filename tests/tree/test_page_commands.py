"""What pages ask their reader to copy is there: operations of AWS with their parameters, targets of make with theirs.

Those of `joinery` about files of the repository are run. Those of kubectl are run on a real control plane
(tests/controlplane/test_getting_started.py).
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import botocore.session
import pytest
import typer
from botocore import xform_name
from botocore.exceptions import UnknownServiceError

from joinery.objects.settings import SETTINGS, in_force
from joinery_cli.main import app
from tests.cli.conftest import outcome_of
from tools.page_commands import commands, mentioned, simple
from tools.template import ROOT, load

PAGES = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
#: What the AWS CLI adds to every operation, and operations that it has of its own, with their options.
OF_THE_CLI = {"query", "output", "region"}
CUSTOM = {
    ("eks", "update-kubeconfig"): {"name"},
    ("logs", "tail"): {"since", "format", "filter-pattern"},
    ("s3", "ls"): set[str](),
    ("s3", "cp"): set[str](),
}
MAKEFILE = (ROOT / "Makefile").read_text()
Words = Sequence[str]


def called(page: str, program: str, *, in_blocks: bool = True) -> Iterator[Words]:
    """The words of each call of a program, of the blocks or of the sentences of a page, also inside others."""
    path = ROOT / "docs" / f"{page}.md"
    for command in commands(path) if in_blocks else mentioned(path, program):
        for words in simple(command):
            if Path(words[0]).name == program:
                yield words


def everywhere(page: str, program: str) -> Iterator[Words]:
    """The same, of both."""
    yield from called(page, program)
    yield from called(page, program, in_blocks=False)


def options(words: Words) -> list[str]:
    """Those of a command, without their dashes."""
    return [word.removeprefix("--").partition("=")[0] for word in words if word.startswith("--")]


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_aws_exist(page: str) -> None:
    """The operation, and each parameter of it."""
    missing = [f"{shlex.join(words)}: {what}" for words in everywhere(page, "aws") for what in unknown(words)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_aws_are_complete(page: str) -> None:
    """Those in blocks have all that the operation demands. A sentence may leave parts out."""
    missing = []
    for words in called(page, "aws"):
        shape = input_of(words)
        needed = {xform_name(name, "-") for name in shape.required_members} if shape else set()
        missing += [f"{shlex.join(words)}: lacks --{name}" for name in needed - set(options(words))]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_queries_name_what_the_operation_answers(page: str) -> None:
    """The first step of ``--query``: a name that is not there prints ``None``, and no error."""
    wrong = []
    for words in everywhere(page, "aws"):
        if "--query" in words:
            query = words[words.index("--query") + 1]
            answer = operation(words).output_shape.members
            wrong += [query] if re.split(r"\W", query)[0] not in answer else []
    assert wrong == []


def unknown(words: Words) -> Iterator[str]:
    """The options that the operation does not have; or the operation itself."""
    custom = CUSTOM.get((words[1], words[2]))
    if custom is None and operation(words) is None:
        yield "is no operation"
        return
    shape = input_of(words)
    parameters = {xform_name(name, "-") for name in shape.members} if shape else custom or set()
    for option in options(words):
        if option.removeprefix("no-") not in parameters | OF_THE_CLI:
            yield f"--{option}"


def operation(words: Words) -> Any:
    """botocore's model of what a command calls; None if there is none."""
    try:
        model = botocore.session.get_session().get_service_model(words[1])
    except UnknownServiceError:
        return None
    names = {xform_name(name, "-"): name for name in model.operation_names}
    return model.operation_model(names[words[2]]) if words[2] in names else None


def input_of(words: Words) -> Any:
    """What the operation takes; None for one without parameters."""
    model = operation(words)
    return model.input_shape if model else None


@pytest.mark.parametrize("page", PAGES)
def test_parameters_of_make_are_the_stack_s(page: str) -> None:
    """`make deploy PARAMETERS="..."` names parameters of the template with values that it allows, or settings."""
    parameters = load()["Parameters"]
    for words in everywhere(page, "make"):
        for pairs in (word.removeprefix("PARAMETERS=") for word in words if word.startswith("PARAMETERS=")):
            given = dict(pair.split("=", 1) for pair in shlex.split(pairs))
            assert given.keys() <= {*parameters, *SETTINGS}
            for name in given.keys() & parameters.keys():
                assert given[name] in parameters[name].get("AllowedValues", [given[name]])
            in_force("; ".join(f"{name}={given[name]}" for name in given.keys() & SETTINGS.keys()))


@pytest.mark.parametrize("page", PAGES)
def test_variables_of_make_are_read(page: str) -> None:
    """A variable that the Makefile does not know is dropped in silence."""
    given = {word.partition("=")[0] for words in everywhere(page, "make") for word in words[2:] if "=" in word}
    assert {name for name in given - {"PARAMETERS"} if f"$({name})" not in MAKEFILE} == set()


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_joinery_exist(page: str) -> None:
    """The command, and each option of it."""
    group: Any = typer.main.get_command(app)
    for words in everywhere(page, "joinery"):
        if words[1] == words[1].upper():  # COMMAND stands for any
            continue
        command = group.get_command(None, words[1])
        assert command, words
        known = {option for parameter in command.params for option in parameter.opts}
        given = {word.partition("=")[0] for word in words[2:] if word.startswith("-")}
        assert given - known == set(), words


def about_files() -> dict[str, Sequence[str]]:
    """Each command of `joinery` that needs no more than files of the repository, and ends by itself."""
    found: dict[str, Sequence[str]] = {}
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for words in (words for command in commands(page) for words in simple(command)):
            if Path(words[0]).name != "joinery" or {"--top", "--watch", "--save"} & {*words}:
                continue
            given = [*takewhile(lambda word: word != ">", words[1:])]
            files = [word for word in given if re.search(r"\.(yaml|json|gz)$", word)]
            if files and all((ROOT / file).exists() for file in files):
                found[shlex.join(given)] = given
    return found


@pytest.mark.parametrize("words", about_files().values(), ids=about_files().keys())
def test_commands_of_joinery_about_files_run(words: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody's first plan is warned of what its page has left out."""
    monkeypatch.chdir(ROOT)
    done = outcome_of([*words])
    assert (done.status, "DaemonSet" in done.err) == (0, False), done.err
    assert done.out


PAGE = """Do:

    aws a \\
      --b 'c
    d'  # why

- item
    goes on

      make x

    no code

End
    of it
```json
    {}
```
- or

  ```sh
  make y
  ```
"""


def test_indented_blocks_are_seen(tmp_path: Path) -> None:
    """Also in an item of a list, where they are indented further, and lines that go on."""
    (tmp_path / "page.md").write_text(PAGE)
    assert commands(tmp_path / "page.md") == ("aws a --b 'c d'", "make x", "make y")
