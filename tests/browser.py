"""A headless Chromium, led through its driver by nothing but HTTP."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

__all__ = ["Browser", "missing"]

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-dev-shm-usage --window-size=1400,900"
).split()


def missing() -> str | None:
    """Return which program there is not, if any."""
    return next((name for name in ("chromium", "chromedriver") if not shutil.which(name)), None)


class Browser:
    """A window of Chromium's.

    Parameters
    ----------
    folder : Path
        Where it keeps its profile.
    """

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._url = f"http://127.0.0.1:{port}"
        self._driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        options = {
            "binary": shutil.which("chromium"),
            "args": [*_FLAGS, f"--user-data-dir={folder / 'profile'}"],
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        try:
            self._wait()
            session = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self._driver.kill()
            self._driver.wait()
            raise
        self._session = f"/session/{session['sessionId']}"

    def _wait(self) -> None:
        for _ in range(200):
            try:
                self._ask("GET", "/status")
            except (URLError, ConnectionError):
                time.sleep(0.1)
            else:
                return
        raise TimeoutError("the driver does not answer")

    def _ask(self, method: str, way: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}{way}", data, {"Content-Type": "application/json"})
        request.method = method
        try:
            with urlopen(request, timeout=90) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:
            said = json.load(error)["value"]["message"]
            raise RuntimeError(said.partition("\n")[0]) from None

    def close(self) -> None:
        """Close the window and end the driver."""
        try:
            self._ask("DELETE", self._session)
        finally:
            self._driver.terminate()
            self._driver.wait()

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a file."""
        self._ask("POST", f"{self._session}/url", {"url": "about:blank"})
        url = path.resolve().as_uri() + (f"#{fragment}" if fragment else "")
        self._ask("POST", f"{self._session}/url", {"url": url})

    def enter(self, selector: str) -> None:
        """Go into a frame of the page."""
        frame = {"id": {_ELEMENT: self.find(selector)}}
        self._ask("POST", f"{self._session}/frame", frame)

    def run(self, script: str, *words: Any) -> Any:
        """Run a script in the page and return what it returns."""
        body = {"script": script, "args": list(words)}
        return self._ask("POST", f"{self._session}/execute/sync", body)

    def find(self, selector: str) -> str:
        """Return the element that a selector of CSS names."""
        body = {"using": "css selector", "value": selector}
        found = self._ask("POST", f"{self._session}/element", body)
        return str(found[_ELEMENT])

    def click(self, selector: str) -> None:
        """Click on an element, as a mouse does."""
        self._ask("POST", f"{self._session}/element/{self.find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Type into an element."""
        body = {"text": text}
        self._ask("POST", f"{self._session}/element/{self.find(selector)}/value", body)

    def text(self, selector: str) -> str:
        """Return the text that an element shows."""
        return str(self._ask("GET", f"{self._session}/element/{self.find(selector)}/text"))

    def drag(self, selector: str, start: tuple[int, int], by: tuple[int, int]) -> None:
        """Drag with the mouse, from a place beside the middle of an element."""
        origin = {_ELEMENT: self.find(selector)}
        move = {"type": "pointerMove", "duration": 0, "origin": origin}
        actions = [
            {**move, "x": start[0], "y": start[1]},
            {"type": "pointerDown", "button": 0},
            {**move, "x": start[0] + by[0], "y": start[1] + by[1], "duration": 100},
            {"type": "pointerUp", "button": 0},
        ]
        pointer = {"type": "pointer", "id": "mouse", "actions": actions}
        self._ask("POST", f"{self._session}/actions", {"actions": [pointer]})

    def wheel(self, selector: str, amount: int) -> None:
        """Turn the wheel over the middle of an element."""
        origin = {_ELEMENT: self.find(selector)}
        turn = {"type": "scroll", "x": 0, "y": 0, "deltaX": 0, "deltaY": amount, "origin": origin}
        wheel = {"type": "wheel", "id": "wheel", "actions": [turn]}
        self._ask("POST", f"{self._session}/actions", {"actions": [wheel]})

    def complaints(self) -> list[str]:
        """Return what the console of the page has said since it was last asked."""
        said = self._ask("POST", f"{self._session}/se/log", {"type": "browser"})
        return [one["message"] for one in said]

    def screenshot(self) -> bytes:
        """Return a picture of the window, as PNG."""
        return base64.b64decode(self._ask("GET", f"{self._session}/screenshot"))
