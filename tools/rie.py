"""A door as Lambda runs it, without Lambda: the build, under the Runtime Interface Emulator.

The SAM CLI brings the emulator along, a single binary; ``awslambdaric`` is the Python half of the real runtime. Neither
needs a container. The emulator handles one call at a time and falls over at the second, so a door serves one caller.
"""

import contextlib
import json
import os
import platform
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tools.template import BUILD, ROOT, Door

RIC = ROOT / ".venv-ric"
SAM = ROOT / ".venv-sam"
_INVOKE = "2015-03-31/functions/function/invocations"


class NotBuiltError(Exception):
    """Something that the emulator needs is not there. The message says what, and which target makes it."""


class EmulatedDoor:
    """One door from the build, started when entered. ``environment`` is all that it sees of this machine.

    ``extra_path``: folders after the layers on its import path (the simulator, where its gateways are wanted).
    """

    def __init__(self, door: Door, environment: Mapping[str, str], *, extra_path: tuple[Path, ...] = ()) -> None:
        self._door = door
        self._environment = environment
        self._extra_path = extra_path
        self._stack = contextlib.ExitStack()
        self.log = BUILD.parent / f"{door.name}.log"

    def __enter__(self) -> "EmulatedDoor":
        self._address, runtime_api = (f"127.0.0.1:{port}" for port in _free_ports(2))
        # If it does not start, nothing is left open.
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(self.log.open("wb"))
            process = subprocess.Popen(
                [
                    str(_emulator()), "--log-level", "error",
                    "--runtime-interface-emulator-address", self._address, "--runtime-api-address", runtime_api,
                    str(_interpreter()), "-m", "awslambdaric", self._door.handler,
                ],
                cwd=_built(self._door), env=self._variables(), stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
            stack.callback(_stop, process)
            _wait_for(self._address)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def invoke(self, event: Mapping[str, Any]) -> Any:
        """What the handler returns; for one that raised, a mapping with ``errorType`` and ``errorMessage``."""
        request = urllib.request.Request(f"http://{self._address}/{_INVOKE}", json.dumps(event).encode())
        try:
            with urllib.request.urlopen(request, timeout=self._door.timeout + 10) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            with error:
                return {"errorType": f"HTTP {error.code}", "errorMessage": error.read().decode(errors="replace")}

    def lines(self) -> list[dict[str, Any]]:
        """The log lines and metrics that the door wrote as JSON."""
        documents = []
        for line in self.log.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                documents.append(json.loads(line))
        return [line for line in documents if isinstance(line, dict)]

    def _variables(self) -> dict[str, str]:
        layers = (BUILD / "DependenciesLayer" / "python", BUILD / "SharedLayer" / "python")
        path = (_built(self._door), *layers, *self._extra_path)
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_SESSION_TOKEN": "test",
            "AWS_LAMBDA_FUNCTION_NAME": self._door.logical_id,
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(self._door.timeout),
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self._door.memory),
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "LAMBDA_TASK_ROOT": str(_built(self._door)),
            "POWERTOOLS_SERVICE_NAME": self._door.name,
            **self._environment,
        }


def _built(door: Door) -> Path:
    folder = BUILD / door.logical_id
    if not folder.exists():
        raise NotBuiltError(f"{folder.relative_to(ROOT)} is not there: make build-host")
    return folder


def _emulator() -> Path:
    architecture = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
    emulators = sorted(SAM.glob(f"lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-{architecture}"))
    if not emulators:
        raise NotBuiltError(".venv-sam has no Runtime Interface Emulator: make .venv-sam/bin/sam")
    return emulators[0]


def _interpreter() -> Path:
    if not (RIC / ".current").exists():
        raise NotBuiltError(".venv-ric is not there: make .venv-ric/.current")
    return RIC / "bin" / "python"


def _free_ports(number: int) -> Iterator[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
    yield from ports


def _wait_for(address: str, *, attempts: int = 200) -> None:
    host, _, port = address.partition(":")
    for _ in range(attempts):
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"the emulator does not listen on {address}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
