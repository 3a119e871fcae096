"""``--install-completion``: what it writes for each shell that it names, and what a shell is answered."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run

#: Where each shell reads what completes a command, below the home folder. PowerShell says itself where its profile is.
_WRITTEN = {
    "bash": ".bash_completions/joinery.sh",
    "zsh": ".zfunc/_joinery",
    "fish": ".config/fish/completions/joinery.fish",
}
#: What a shell tells a command of the line that is typed, as its script does.
_TYPED = {
    "bash": {"COMP_WORDS": "joinery pl", "COMP_CWORD": "1"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "joinery pl"},
    "fish": {"_TYPER_COMPLETE_ARGS": "joinery pl", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    "powershell": {"_TYPER_COMPLETE_ARGS": "joinery pl", "_TYPER_COMPLETE_WORD_TO_COMPLETE": "pl"},
    "pwsh": {"_TYPER_COMPLETE_ARGS": "joinery pl", "_TYPER_COMPLETE_WORD_TO_COMPLETE": "pl"},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("shell", _WRITTEN)
def test_a_named_shell_gets_its_own_script(shell: str, home: Path, run: Run) -> None:
    """Whatever shell the command is run in."""
    shown = run("--show-completion", shell).out
    installed = run("--install-completion", shell)
    assert installed.status == 0
    assert f"{shell} completion installed in {home / _WRITTEN[shell]}" in installed.out
    assert (home / _WRITTEN[shell]).read_text().strip() == shown.strip()
    assert f"complete_{shell}" in shown


@pytest.mark.parametrize("shell", ["powershell", "pwsh"])
def test_powershell_gets_a_script_of_its_own(shell: str, run: Run) -> None:
    """Where it is installed only PowerShell knows, so there has to be one."""
    assert "Register-ArgumentCompleter -Native -CommandName joinery" in run("--show-completion", shell).out


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_another_shell_is_refused_and_nothing_is_written(option: str, home: Path, run: Run) -> None:
    """tcsh got bash's script, and was told that all was well."""
    outcome = run(option, "tcsh")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"joinery: {option}: must be one of bash, zsh, fish, powershell, pwsh, is 'tcsh'")
    assert list(home.iterdir()) == []


def test_a_plugin_of_kubectl_leaves_the_completion_of_kubectl_alone(home: Path) -> None:
    """A script for ``kubectl joinery`` would take the place of that for ``kubectl``."""
    plugin = Path(sys.executable).parent / "kubectl-joinery"
    done = subprocess.run([plugin, "--install-completion", "bash"], capture_output=True, text=True, check=False)
    assert (done.returncode, list(home.iterdir())) == (2, [])
    assert "kubectl completes its plugins itself" in done.stderr


@pytest.mark.parametrize("shell", _TYPED)
def test_each_shell_is_answered_with_the_commands_that_fit(
    shell: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the protocol of its script."""
    for name, value in {"_JOINERY_COMPLETE": f"complete_{shell}", **_TYPED[shell]}.items():
        monkeypatch.setenv(name, value)
    answered = run().out
    assert "plan" in answered
    assert "disrupt" not in answered


_TAB = {
    "bash": "source {script}; COMP_WORDS=(joinery plan --time-l); COMP_CWORD=2; _joinery_completion joinery; "
    "echo ${{COMPREPLY[@]}}",
    "zsh": "autoload -Uz compinit; compinit -u -D; source {script}; words=(joinery plan --time-l); CURRENT=3; "
    "_arguments() {{ print -r -- $@ }}; _joinery_completion",
    "fish": "source {script}; complete -C 'joinery plan --time-l'",
}


@pytest.mark.parametrize("shell", _TAB)
def test_a_real_shell_completes_an_option(shell: str, tmp_path: Path, run: Run) -> None:
    """With the script that it was given, where that shell is installed."""
    if not (found := shutil.which(shell)):
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(run("--show-completion", shell).out)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [found, "-c", _TAB[shell].format(script=script)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": path, "HOME": str(tmp_path), "TERM": "dumb"},
    )
    assert "--time-limit" in done.stdout, done.stderr
