"""A headless Chromium, led through its driver by nothing but HTTP."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

__all__ = ["Browser", "browser"]

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-dev-shm-usage --window-size=1400,900"
).split()


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
        capabilities = {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"pageLoad": 15_000},  # in milliseconds
        }
        try:
            self._wait()
            body = {"capabilities": {"alwaysMatch": capabilities}}
            session = self._ask("POST", "/session", body)
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

    def _ask(self, method: str, way: str, body: dict[str, object] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}{way}", data, {"Content-Type": "application/json"})
        request.method = method
        try:
            with urlopen(request, timeout=90) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:
            message = json.load(error)["value"]["message"]
            raise RuntimeError(message.partition("\n")[0]) from None

    def close(self) -> None:
        """Close the window and end the driver."""
        try:
            self._ask("DELETE", self._session)
        finally:
            self._driver.terminate()
            self._driver.wait()

    def open(self, path: Path, fragment: str = "", query: str = "") -> None:
        """Open a file."""
        url = path.resolve().as_uri()
        url += f"?{urlencode({'q': query})}" if query else ""
        url += f"#{fragment}" if fragment else ""
        try:
            self._load(url)
        except RuntimeError:  # on a busy machine Chromium sometimes misses the end of a load
            self._load(url)

    def _load(self, url: str) -> None:
        for address in ("about:blank", url):
            self._ask("POST", f"{self._session}/url", {"url": address})

    def enter(self, selector: str) -> None:
        """Go into a frame of the page."""
        frame = {"id": {_ELEMENT: self.find(selector)}}
        self._ask("POST", f"{self._session}/frame", frame)

    def emulate(self, width: int, height: int, *, dark: bool = False) -> None:
        """Give the page a window of a size, on a system that is light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        for command, params in (
            ("Emulation.setDeviceMetricsOverride", size),
            ("Emulation.setEmulatedMedia", {"features": [scheme]}),
        ):
            body = {"cmd": command, "params": params}
            self._ask("POST", f"{self._session}/goog/cdp/execute", body)

    def run(self, script: str, *args: object) -> Any:
        """Run a script in the page and return what it returns."""
        body = {"script": script, "args": list(args)}
        return self._ask("POST", f"{self._session}/execute/sync", body)

    def find(self, selector: str) -> str:
        """Return the element that a selector of CSS names."""
        body = {"using": "css selector", "value": selector}
        element = self._ask("POST", f"{self._session}/element", body)
        return str(element[_ELEMENT])

    def click(self, selector: str) -> None:
        """Click on an element, as a mouse does."""
        self._ask("POST", f"{self._session}/element/{self.find(selector)}/click", {})

    def click_at(self, selector: str, place: tuple[float, float]) -> None:
        """Click on a place beside the middle of an element."""
        x, y = (round(offset) for offset in place)
        self._point(
            [
                {**self._move(selector), "x": x, "y": y},
                {"type": "pointerDown", "button": 0},
                {"type": "pointerUp", "button": 0},
            ]
        )

    def type(self, selector: str, text: str) -> None:
        """Type into an element."""
        body = {"text": text}
        self._ask("POST", f"{self._session}/element/{self.find(selector)}/value", body)

    def text(self, selector: str) -> str:
        """Return the text that an element shows."""
        return str(self._ask("GET", f"{self._session}/element/{self.find(selector)}/text"))

    def drag(self, selector: str, start: tuple[float, float], by: tuple[int, int]) -> None:
        """Drag with the mouse, from a place beside the middle of an element."""
        x, y = (round(offset) for offset in start)
        move = self._move(selector)
        self._point(
            [
                {**move, "x": x, "y": y},
                {"type": "pointerDown", "button": 0},
                {**move, "x": x + by[0] // 2, "y": y + by[1] // 2, "duration": 50},
                {**move, "x": x + by[0], "y": y + by[1], "duration": 50},
                {"type": "pointerUp", "button": 0},
            ]
        )

    def _move(self, selector: str) -> dict[str, object]:
        origin = {_ELEMENT: self.find(selector)}
        return {"type": "pointerMove", "duration": 0, "origin": origin}

    def _point(self, actions: list[dict[str, object]]) -> None:
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
        entries = self._ask("POST", f"{self._session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries]

    def screenshot(self) -> bytes:
        """Return a picture of the window, as PNG."""
        return base64.b64decode(self._ask("GET", f"{self._session}/screenshot"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser, or a skip that says which program is missing."""
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()
