"""The page of the graph: one HTML file that loads nothing, to be moved, searched and asked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from interop import EFFECTS, Interop, __version__
from interop._cli.network import network

from .routes import RouteFacts, StepFacts, routes

_FOLDER = Path(__file__).parent
#: The files that the page is made of, by the marks in `page.html` that they replace.
_FILES = {
    "@@STYLE@@": "page.css",
    "@@CYTOSCAPE@@": "vendor/cytoscape.min.js",
    "@@DAGRE@@": "vendor/dagre.min.js",
    "@@SCRIPT@@": "page.js",
}
_MARK = re.compile("(@@[A-Z]+@@)")


class _Packed(TypedDict):
    """Routes as the page holds them: most consist of the same few steps.

    Parameters
    ----------
    steps : list of dict
        Every step once.
    pairs : dict of str to tuple or int
        For each pair the value, the seconds and the numbers of its steps; 0 where there is no
        route.
    """

    steps: list[StepFacts]
    pairs: dict[str, tuple[str, float, list[int]] | int]


def page(interop: Interop) -> str:
    """Return the page: what ``interop graph --json`` prints, and the route of each pair."""
    losing = sorted(effect.name for effect in EFFECTS.values() if effect.loses)
    data = {**network(interop).as_dict(), "losing": losing, "routes": _packed(routes(interop))}
    # "<" could begin a comment inside the script element, or end the element.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {mark: (_FOLDER / name).read_text("utf-8") for mark, name in _FILES.items()}
    parts |= {"@@DATA@@": text, "@@VERSION@@": __version__}
    pieces = _MARK.split((_FOLDER / "page.html").read_text("utf-8"))
    return "".join(parts[piece] if _MARK.fullmatch(piece) else piece for piece in pieces)


def _packed(routes: Mapping[str, RouteFacts | None]) -> _Packed:
    numbers: dict[str, int] = {}
    packed: _Packed = {"steps": [], "pairs": {}}
    for pair, route in routes.items():
        if route is None:
            packed["pairs"][pair] = 0
            continue
        route_numbers = []
        for step in route["steps"]:
            key = json.dumps(step, sort_keys=True)
            if key not in numbers:
                numbers[key] = len(packed["steps"])
                packed["steps"].append(step)
            route_numbers.append(numbers[key])
        packed["pairs"][pair] = route["value"], route["seconds"], route_numbers
    return packed
