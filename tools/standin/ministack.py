"""ministack's process: started, waited for, and ended with everything that it has started."""

import contextlib
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.controlplane.plane import free_ports
from tools.template import ROOT

PYTHON = ROOT / ".venv-standin" / "bin" / "python"
ACCOUNT, REGION = "123456789012", "us-east-1"
#: The account's root user: IAM allows it everything. Functions have sessions of their roles.
ROOT_KEYS = {"AWS_ACCESS_KEY_ID": ACCOUNT, "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
_START_SECONDS, _END_SECONDS = 30, 10


class MissingStandInError(Exception):
    """ministack is not installed. The message says which target does it."""


@dataclass(frozen=True)
class Ministack:
    """``gateway``: host and port, where every service answers."""

    gateway: str

    @property
    def url(self) -> str:
        return f"http://{self.gateway}"


@contextlib.contextmanager
def ministack(folder: Path, endpoints: Mapping[str, str]) -> Iterator[Ministack]:
    """ministack inside the ``with``. ``folder`` gets its log and what its functions unpack.

    ``endpoints``: services that are answered elsewhere, by the variable that the SDKs read
    (``AWS_ENDPOINT_URL_EC2``). Functions get these variables. Raises ``MissingStandInError``.
    """
    if not PYTHON.exists():
        raise MissingStandInError(".venv-standin is not there: make .venv-standin/.current")
    port = free_ports(1)[0]
    gateway = f"127.0.0.1:{port}"
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    environment = {
        "PATH": os.environ["PATH"], "TMPDIR": str(temporary), "HOME": str(folder), **ROOT_KEYS, **endpoints,
        "GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_ACCOUNT_ID": ACCOUNT, "MINISTACK_REGION": REGION, "AUTH": "true",
        "IOT_MTLS_ENABLED": "0", "SFTP_ENABLED": "0", "LOG_LEVEL": "INFO",
    }  # fmt: skip
    with (folder / "ministack.log").open("wb") as log:
        process = subprocess.Popen(
            [str(PYTHON), "-m", "tools.standin.server"],
            cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            _wait(process, f"http://{gateway}/_ministack/health")
            yield Ministack(gateway)
        finally:
            _end(process)


def _wait(process: "subprocess.Popen[bytes]", url: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2):
            return
        time.sleep(0.05)
    raise RuntimeError("ministack did not start: see its log")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process, and whatever it has started: they are a session, and so a process group, of their own."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_END_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
