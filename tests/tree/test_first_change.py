"""The first change that CONTRIBUTING.md walks through can be repeated as it stands there."""

import re
import subprocess
import textwrap

from joinery.objects.karpenter.labels import OS
from joinery.objects.spelling import value_meant_by
from tools.template import ROOT

_DIFF = re.compile(r"^ *```diff\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def test_its_diffs_apply() -> None:
    """To the files as they are now, both that of the test and that of the code."""
    diffs = [textwrap.dedent(diff) for diff in _DIFF.findall((ROOT / "CONTRIBUTING.md").read_text())]
    assert len(diffs) == 2
    for diff in diffs:
        command = ["git", "apply", "--check", "-p0", "-"]
        done = subprocess.run(command, cwd=ROOT, input=diff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_it_is_still_to_be_made() -> None:
    """Its test fails without it. Whoever makes that change for good finds another example for the page."""
    assert value_meant_by(OS, "ubuntu", ("linux", "windows")) == ""
