"""`make deploy` and `make rotate-token` before there is a stack, against AWS over HTTP."""

import os
import subprocess
import sys

import boto3

from simulator.awsserver.account import REGION
from tools.deploy import events
from tools.template import ROOT


def test_a_stack_that_was_never_made_has_no_events(aws: str) -> None:
    """CloudFormation refused the first change set, and SAM has said why."""
    assert aws
    assert events(boto3.client("cloudformation"), "joinery-blue") == ()


def test_a_rotation_without_a_stack_is_one_line(aws: str) -> None:
    """It names the cluster and the region: one of the two is wrong, most often."""
    assert aws
    command = [sys.executable, "-m", "tools.rotate_token", "--cluster", "team_blue", "--region", REGION]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"make rotate-token: the stack of team_blue in {REGION}: ")
    assert "joinery-team-blue" in line
    assert "does not exist" in line
