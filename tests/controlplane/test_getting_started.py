"""The page docs/getting-started.md does what it says: its commands, as far as they can be run without AWS.

EC2 and the kubelets are played. Kubernetes is real, and so are kubectl, `joinery plan` and the functions. What the
page installs in its third step is here beforehand: definitions, rights and webhook by the fixtures, NodePool and
EC2NodeClass as the installer makes them. Commands of AWS and of `make` are checked by tests/tree/test_page_commands.py.
"""

import re

import pytest

from tests.controlplane.reader import Reader, start
from tests.controlplane.story import living
from tools.controlplane.plane import ControlPlane
from tools.page_commands import commands
from tools.template import ROOT

PAGE = ROOT / "docs" / "getting-started.md"
#: What is run here, by its first words.
RUN = ("kubectl ", ".venv/bin/joinery plan ")


@pytest.fixture(scope="module")
def printed(joinery_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each command printed, in the page's order. Each must succeed."""
    with living(joinery_control_plane) as cluster:
        start(cluster)
        reader = Reader(tmp_path_factory.mktemp("reader"), joinery_control_plane, cluster)
        return {command: reader.run(command) for command in commands(PAGE) if command.startswith(RUN)}


def test_the_plan_names_the_node_that_is_bought(printed: dict[str, str]) -> None:
    """What was planned before the pods were there is what they got."""
    (plan,) = [text for command, text in printed.items() if "joinery plan" in command]
    (claims,) = [text for command, text in printed.items() if "get nodeclaims" in command]
    bought = {line.split()[1] for line in claims.splitlines()[1:]}
    assert bought
    assert all(instance_type in plan for instance_type in bought)


def test_every_command_does_what_the_page_says(printed: dict[str, str]) -> None:
    """Pods run, the reason is told, and the node goes again."""
    said = {command.split()[1]: text for command, text in printed.items() if command.startswith("kubectl")}
    assert "successfully rolled out" in said["rollout"]
    assert "condition met" in said["wait"] or "deleted" in said["wait"]
    nominated = next(text for command, text in printed.items() if "Nominated" in command)
    assert len(set(re.findall(r"pod/inflate-\S+", nominated))) == 3
