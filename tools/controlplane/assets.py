"""Where the control plane's binaries are.

The convention is envtest's: ``KUBEBUILDER_ASSETS`` names a folder. Without it, the cache that
``tools/controlplane/build`` fills is looked at; nothing is built from here, because a build takes five minutes and a
test must not.
"""

import os
import subprocess
from pathlib import Path

BUILD = Path(__file__).with_name("build")


class MissingBinaryError(Exception):
    """A binary of the control plane is not on this machine. The message says which, and how to get it."""


def folder() -> Path | None:
    """The folder of the binaries, or None where there is neither a setting nor a finished build."""
    if named := os.environ.get("KUBEBUILDER_ASSETS"):
        return Path(named)
    answer = subprocess.run([BUILD, "--find"], capture_output=True, text=True, check=False)
    return Path(answer.stdout.strip()) if answer.returncode == 0 else None


def binary(name: str) -> Path:
    """The path of one binary. Raises ``MissingBinaryError``."""
    where = folder()
    if where is None:
        raise MissingBinaryError(f"{name} is missing: run tools/controlplane/build, or set KUBEBUILDER_ASSETS")
    if not os.access(where / name, os.X_OK):
        raise MissingBinaryError(f"{name} is missing in {where}")
    return where / name
