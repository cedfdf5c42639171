"""The part of the authors' interface that few plugins need."""

from __future__ import annotations

from interop._model.extension import Namespaces, NoTrace, Problem, Problems
from interop._model.format import Advanced

__all__ = [
    "Advanced",
    "Namespaces",
    "NoTrace",
    "Problem",
    "Problems",
]
