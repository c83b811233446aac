"""A headless Chromium, spoken to over the pipe of its DevTools protocol."""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome",
    "chromium-headless-shell",
)

# The browser reads commands from descriptor 3 and writes answers to descriptor 4.
LAUNCHER = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.close(commands)
os.close(answers)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> str | None:
    """Path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """One page in a headless browser without network; use as a context manager."""

    def __init__(self, executable: str, timeout: float = 60.0) -> None:
        self.timeout = timeout
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._buffer = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser_read, self._to_browser = os.pipe()
        self._from_browser, from_browser_write = os.pipe()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                LAUNCHER,
                str(to_browser_read),
                str(from_browser_write),
                executable,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            pass_fds=(to_browser_read, from_browser_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser_read)
        os.close(from_browser_write)
        self._session = ""

    def __enter__(self) -> "Chromium":
        try:
            self._attach()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to_browser)
        os.close(self._from_browser)
        self._profile.cleanup()

    def open(
        self, path: Path, width: int = 1280, height: int = 900, scheme: str = "light"
    ) -> None:
        """Load a file in a window of this size and preferred colours; wait until it is there."""
        self.problems.clear()
        self.requests.clear()
        self._events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.call("Page.navigate", url=path.resolve().as_uri())
        self._wait_for("Page.loadEventFired")
        # Errors that follow the load, such as images that cannot be decoded.
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))")

    def evaluate(self, expression: str) -> Any:
        """Value of a JavaScript expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression!r} failed: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.timeout
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method} failed: {answer['error']}")
                return answer["result"]

    def _attach(self) -> None:
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        answer = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = answer["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _wait_for(self, method: str) -> None:
        deadline = time.monotonic() + self.timeout
        while not any(event["method"] == method for event in self._events):
            self._receive(deadline)

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._from_browser], [], [], left)[0]:
                raise TimeoutError(f"Chromium did not answer within {self.timeout:g} s")
            block = os.read(self._from_browser, 1 << 20)
            if not block:
                raise RuntimeError(f"Chromium ended with status {self._process.wait()}")
            self._buffer += block
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self._note(message)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        method, parameters = event["method"], event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.problems.append(json.dumps(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
