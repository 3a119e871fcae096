"""A real browser to look at a page with: headless Chromium over its debugging pipe, with nothing but the standard
library.

The DevTools protocol is JSON, one message a NUL byte, on the browser's file descriptors 3 and 4. Only what looking at a
page needs is here: open a file, ask the page questions, press keys, see what it said on the console and asked of the
network.
"""

import base64
import fcntl
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INSTALL = Path(__file__).with_name("install")
_PATIENCE_SECONDS = 60.0
_FLAGS = (
    "--headless", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage",
    "--no-first-run", "--hide-scrollbars", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--mute-audio",
)  # fmt: skip


class MissingBrowserError(Exception):
    """There is no headless Chromium on this machine. The message says how to get one."""


class BrowserError(Exception):
    """The browser refused a command, or the page threw an exception."""


def executable() -> str:
    """The browser's path. Raises ``MissingBrowserError``."""
    answer = subprocess.run([INSTALL, "--find"], capture_output=True, text=True, check=False)
    if answer.returncode:
        raise MissingBrowserError(answer.stderr.strip())
    return answer.stdout.strip()


@contextmanager
def browsing(profile: Path) -> Iterator["Browser"]:
    """A browser of its own, with ``profile`` as its folder; ended with the block."""
    to_browser, to_us = os.pipe(), os.pipe()
    theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (to_browser[0], to_us[1])]
    moves = [(os.POSIX_SPAWN_DUP2, theirs[0], 3), (os.POSIX_SPAWN_DUP2, theirs[1], 4)]
    log = (os.POSIX_SPAWN_OPEN, 2, str(profile / "log"), os.O_WRONLY | os.O_CREAT, 0o600)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    path = executable()
    command = [path, *_FLAGS, *sandbox, f"--user-data-dir={profile}", "about:blank"]
    # The browser's children must go with it: a group of its own can be ended as one.
    pid = os.posix_spawn(path, command, dict(os.environ), file_actions=[*moves, log], setpgroup=0)
    for fd in (to_browser[0], to_us[1], *theirs):
        os.close(fd)
    try:
        yield Browser(Pipe(to_us[0], to_browser[1]))
    finally:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(to_us[0])
        os.close(to_browser[1])


@dataclass
class Pipe:
    """The debugging pipe: commands go out, answers and events come in."""

    reads: int
    writes: int
    _buffer: bytes = b""
    _number: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """One command and its answer; events that come in between are kept. Raises ``BrowserError``."""
        self._number += 1
        about = {"sessionId": session} if session else {}
        message = {"id": self._number, "method": method, "params": parameters, **about}
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self.writes, rest) :]
        answer = self._wait(lambda message: message.get("id") == self._number, method)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return dict(answer.get("result", {}))

    def event(self, method: str, session: str, **parameters: Any) -> dict[str, Any]:
        """The next such event, or one that has come already. ``parameters``: what it must say."""

        def fits(message: dict[str, Any]) -> bool:
            is_such = message.get("method") == method and message.get("sessionId") == session
            return is_such and parameters.items() <= message["params"].items()

        received = next((message for message in self.events if fits(message)), None)
        return received or self._wait(fits, method)

    def _wait(self, fits: Any, what: str) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            message = self._next(deadline, what)
            if "method" in message:
                self.events.append(message)
            if fits(message):
                return message

    def _next(self, deadline: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self.reads], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise BrowserError(f"{what}: no answer within {_PATIENCE_SECONDS:.0f} s")
            more = os.read(self.reads, 1 << 20)
            if not more:
                raise BrowserError(f"{what}: the browser has ended")
            self._buffer += more
        first, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(first))


class Browser:
    """Opens pages."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def open(self, file: Path, *, dark: bool = False, width: int = 1280, height: int = 900) -> "Page":
        """The file in a tab of its own, once it has loaded."""
        target = self._pipe.call("Target.createTarget", url="about:blank")["targetId"]
        session = self._pipe.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self._pipe, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        page.media(dark=dark)
        page.call("Page.bringToFront")  # a tab behind others sees no pointer
        page.call("Page.setLifecycleEventsEnabled", enabled=True)
        # The empty page that was there may load only now: its event is not the one to wait for.
        loader = page.call("Page.navigate", url=file.as_uri())["loaderId"]
        self._pipe.event("Page.lifecycleEvent", session, loaderId=loader, name="load")
        return page


class Page:
    """One page, as a person and a debugger see it."""

    def __init__(self, pipe: Pipe, session: str) -> None:
        self._pipe = pipe
        self._session = session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._pipe.call(method, self._session, **parameters)

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page. Raises ``BrowserError`` where it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(str(answer["exceptionDetails"]["exception"].get("description")))
        return answer["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """One key, down and up, as from a keyboard."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27}.get(key, ord(key[0].upper()))
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **typed)

    def write(self, text: str) -> None:
        """Text into what has the focus."""
        self.call("Input.insertText", text=text)

    def point(self, x: float, y: float) -> None:
        """Moves the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def media(self, *, dark: bool = False, kind: str = "screen") -> None:
        """What the reader prefers, and whether it is a screen or ``print``."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[scheme])

    def close(self) -> None:
        """Close the tab."""
        self.call("Page.close")

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings on the console, and exceptions nobody caught."""
        errors = []
        for event in self._events():
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                errors.append(str(parameters["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled":
                errors.append(str([argument.get("value") for argument in parameters["args"]]))
            elif event["method"] == "Log.entryAdded":
                errors.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        return errors

    @property
    def requests(self) -> list[str]:
        """Every address that the page asked for, itself included; data in the page's own text is no request."""
        sent = [e["params"]["request"]["url"] for e in self._events() if e["method"] == "Network.requestWillBeSent"]
        return [address for address in sent if not address.startswith("data:")]

    def picture(self, file: Path, *, whole: bool = False) -> None:
        """What is seen, as a PNG; ``whole``: down to the page's end."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(taken["data"]))

    def printed(self, file: Path) -> None:
        """The page on paper, as a PDF."""
        taken = self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=False)
        file.write_bytes(base64.b64decode(taken["data"]))

    def _events(self) -> list[dict[str, Any]]:
        return [event for event in self._pipe.events if event.get("sessionId") == self._session]
