"""The page: the network in one HTML file that loads nothing, to be moved, searched and asked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import TypedDict

from interop._model.effect import LOSING
from interop._version import __version__

from .network import Network, RouteFacts, StepFacts

#: The files that the page is made of, by the marks in `page.html` where they are put in.
_FILES = {
    "@@STYLE@@": "page.css",
    "@@CYTOSCAPE@@": "vendor/cytoscape.min.js",
    "@@DAGRE@@": "vendor/dagre.min.js",
    "@@SCRIPT@@": "page.js",
}
_MARK = re.compile("(@@[A-Z]+@@)")


class _Packed(TypedDict):
    """Routes as they stand in the page: most of them consist of the same few steps.

    Parameters
    ----------
    steps : list of dict
        Every step once.
    pairs : dict of str to tuple or int
        For each pair the value, the seconds and the places of its steps; 0 where there is no route.
    """

    steps: list[StepFacts]
    pairs: dict[str, tuple[str, float, list[int]] | int]


def page(shown: Network, routes: Mapping[str, RouteFacts | None]) -> str:
    """Return the page.

    Parameters
    ----------
    shown : Network
    routes : mapping of str to dict or None
        The route of each ordered pair of formats, as of `interop._cli.network.routes`.
    """
    folder = files(__package__)
    data = {**shown.as_dict(), "losing": sorted(LOSING), "routes": _packed(routes)}
    # "<" could begin a comment inside the script element, or end the element.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {mark: folder.joinpath(name).read_text("utf-8") for mark, name in _FILES.items()}
    parts |= {"@@DATA@@": text, "@@VERSION@@": __version__}
    pieces = _MARK.split(folder.joinpath("page.html").read_text("utf-8"))
    return "".join(parts[piece] if _MARK.fullmatch(piece) else piece for piece in pieces)


def _packed(routes: Mapping[str, RouteFacts | None]) -> _Packed:
    places: dict[str, int] = {}
    packed: _Packed = {"steps": [], "pairs": {}}
    for pair, route in routes.items():
        if route is None:
            packed["pairs"][pair] = 0
            continue
        route_places = []
        for step in route["steps"]:
            key = json.dumps(step, sort_keys=True)
            if key not in places:
                places[key] = len(packed["steps"])
                packed["steps"].append(step)
            route_places.append(places[key])
        packed["pairs"][pair] = route["value"], route["seconds"], route_places
    return packed
