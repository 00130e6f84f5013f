"""A headless Chromium for tests of pages: what it shows, what it says on its console, what it asks the
network for."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
        if (path := shutil.which(name))
    ),
    None,
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--mute-audio",
)


class Browser:
    """One process, one page at a time; speaks the DevTools protocol over a pipe, so nothing listens on the
    network."""

    def __init__(self, folder: Path) -> None:
        """`folder`: for its profile and downloads."""
        assert CHROMIUM is not None
        to_read, self.out = os.pipe()
        self.into, to_write = os.pipe()
        command = ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh", CHROMIUM, *FLAGS]
        command += [f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(
            command, pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.number = 0
        self.session = ""
        self.console: list[str] = []
        """Errors on the console and exceptions, of the page that is open."""
        self.requested: list[str] = []
        """Every address that the page asked for."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)

    def send(self, method: str, **parameters: Any) -> Any:
        """Returns the answer; what comes in between is noted."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters} | (
            {"sessionId": self.session} if self.session else {}
        )
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            answers = []
            for message in self._messages():
                if message.get("id") == self.number:
                    answers.append(message)
                else:
                    self._note(message)
            for answer in answers:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
        raise TimeoutError(method)

    def _messages(self) -> list[dict[str, Any]]:
        ready, _, _ = select.select([self.into], [], [], 1)
        if ready:
            self.buffer += os.read(self.into, 1 << 20)
        *whole, self.buffer = self.buffer.split(b"\0")
        return [json.loads(message) for message in whole]

    def _note(self, event: dict[str, Any]) -> None:
        about = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.console.append(
                    str(about["exceptionDetails"].get("exception", about["exceptionDetails"]))
                )
            case "Log.entryAdded" if about["entry"]["level"] in ("error", "warning"):
                self.console.append(about["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requested.append(about["request"]["url"])

    def open(
        self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False, scripts: bool = True
    ) -> None:
        """Goes there, afresh."""
        self.send("Page.navigate", url="about:blank")
        self.console, self.requested = [], []
        self.resize(width, height)
        self.send(
            "Emulation.setEmulatedMedia",
            media="",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.send("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def resize(self, width: int, height: int = 900) -> None:
        """Makes the window as large as that, in pixels."""
        size = {"width": width, "height": height}
        self.send("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)

    def ask(self, expression: str) -> Any:
        """Returns the value of the expression in the page; a promise is awaited."""
        reply = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in reply:
            raise RuntimeError(f"{expression}: {reply['exceptionDetails']}")
        return reply["result"].get("value")

    def until(self, expression: str, seconds: float = 20) -> None:
        """Waits until the expression holds. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while not self.ask(f"Boolean({expression})"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{expression} (console: {self.console})")
            time.sleep(0.02)

    def go(self, state: str) -> None:
        """To a state of the case explorer, e.g. `/cases?state=failing`."""
        self.ask(f"location.hash = {json.dumps('#' + state)}; 0")
        wanted = f"decodeURIComponent({json.dumps('#' + state)})"
        self.until(
            f"explorer.dataset.ready === location.hash && decodeURIComponent(location.hash) === {wanted}"
        )

    def on_paper(self, *, dark: bool = False) -> None:
        """The page that is open, as it is printed."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", media="print", features=features)

    def picture(self, path: Path) -> None:
        """What is in the window as a PNG."""
        shown = self.send("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shown["data"]))

    def press(self, key: str) -> None:
        """A key, as if typed."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = {"Enter": 13, "Escape": 27, "Tab": 9}.get(
            key, ord(key.upper()) if len(key) == 1 and key.isalpha() else 191
        )
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
