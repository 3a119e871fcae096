"""Whether a check that fails is heard, and what the linters of the template are told to leave alone."""

import re
import subprocess

import yaml

from tools.template import ROOT

_ENTRY = re.compile(r"^  - (CKV\w+)( # .+)?$")


def test_every_check_that_is_left_out_has_a_reason() -> None:
    """Beside it, or above it: a reviewer asks why, and should not have to."""
    lines = (ROOT / ".checkov.yaml").read_text().splitlines()
    listed = yaml.safe_load("\n".join(lines))["skip-check"]
    explained, has_reason = [], False
    for line in lines:
        entry = _ENTRY.match(line)
        if entry and (entry[2] or has_reason):
            explained.append(entry[1])
        elif not entry:
            has_reason = line.startswith("  # ")
    assert explained == listed


def test_both_linters_look_at_both_templates() -> None:
    """A configuration that names no file checks nothing, and says so to nobody."""
    checkov = yaml.safe_load((ROOT / ".checkov.yaml").read_text())
    cfn_lint = yaml.safe_load((ROOT / ".cfnlintrc.yaml").read_text())
    assert checkov["file"] == cfn_lint["templates"] == ["template.yaml", "member.yaml"]
    assert "ignore_checks" not in cfn_lint


def test_a_check_whose_output_is_cut_short_fails_all_the_same() -> None:
    """As that of the import contracts in ``make lint``, of which the last lines are shown."""
    probe = ["make", "--no-print-directory", "--eval", "probe: ; @false | cat", "probe"]
    assert subprocess.run(probe, cwd=ROOT, capture_output=True).returncode != 0
