"""Chromium without a window, over a pipe of its DevTools protocol: pages as a reader's browser shows them."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def program() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def _be_3_and_4(first: int, second: int) -> None:
    """Makes these files the third and the fourth of this process."""
    kept = [fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in (first, second)]
    for number, one in enumerate(kept, start=3):
        os.dup2(one, number)


class Browser:
    """One page, and what it has complained of since it was opened."""

    def __init__(self, path: str) -> None:
        self._profile = tempfile.mkdtemp()
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        self._process = subprocess.Popen(
            [path, *_FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            pass_fds=(3, 4),  # by which it reads and writes
            preexec_fn=lambda: _be_3_and_4(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._page: Path | None = None
        self._rest = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        self._session = ""
        (target,) = (one for one in self._call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def close(self) -> None:
        os.close(self._write)  # ends it
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        shutil.rmtree(self._profile, ignore_errors=True)

    def look(self, width: int, is_dark: bool, height: int = 900) -> None:
        """What pages are shown in from here on."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, page: Path, fragment: str = "") -> None:
        """Returns when it has loaded."""
        self._events.clear()
        if page == self._page:  # another fragment alone would load nothing
            self._call("Page.navigate", url="about:blank")
            self._wait("Page.loadEventFired")
        self._page = page
        self._call("Page.navigate", url=page.as_uri() + fragment)
        self._wait("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """Of JavaScript; of a promise what it comes to."""
        told = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise RuntimeError(told["exceptionDetails"]["exception"]["description"])
        return told["result"].get("value")

    def picture(self, path: Path) -> None:
        told = self._call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(told["data"]))

    # -- The protocol ---

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        number = self._number
        while True:
            answer = self._message()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _wait(self, event: str) -> None:
        while not any(one["method"] == event for one in self._events):
            self._message()
        self._events.clear()

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self._events.append(message)
            self._note(message["method"], message["params"])
        return message

    def _note(self, method: str, about: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(one.get("value")) for one in about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
