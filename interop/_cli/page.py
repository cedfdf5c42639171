"""The page: the network in one HTML file that needs no network, to be moved, searched and asked."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from interop._version import __version__

from .drawing import svg
from .network import Network

__all__ = ["page"]


def page(shown: Network, routes: dict[str, dict[str, Any] | None]) -> str:
    """Return the page.

    Parameters
    ----------
    shown : Network
    routes : dict of str to dict or None
        The route of each ordered pair of formats, as of `interop._cli.network.routes`.
    """
    template = files(__package__).joinpath("page.html").read_text("utf-8")
    data = {"formats": [node._asdict() for node in shown.nodes], "routes": _packed(routes)}
    # What ends the script element, or begins a comment in it, must not stand in it.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {"@@SVG@@": svg(shown, alone=False), "@@DATA@@": text, "@@VERSION@@": __version__}
    for mark, part in parts.items():
        head, found, tail = template.partition(mark)
        assert found
        template = head + part + tail
    return template


def _packed(routes: dict[str, dict[str, Any] | None]) -> dict[str, Any]:
    """Return routes with every step written once: most of them are the same few."""
    steps: dict[str, int] = {}
    packed: dict[str, Any] = {}
    for pair, route in routes.items():
        if route is None:
            packed[pair] = 0
            continue
        places = [
            steps.setdefault(json.dumps(step, sort_keys=True), len(steps))
            for step in route["steps"]
        ]
        packed[pair] = [route["value"], route["seconds"], places]
    return {"steps": [json.loads(step) for step in steps], "pairs": packed}
