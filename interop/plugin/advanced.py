"""The part of the authors' interface that few plugins need."""

from __future__ import annotations

from interop._model.extension import Namespaces, NoTrace, Problem, Problems
from interop._model.format import Advanced
from interop._toolkit.arrays import unlocked
from interop._toolkit.dlpack import ADDRESSES
from interop._toolkit.quiet import quietly
from interop._toolkit.sparse_indices import (
    check_coordinates,
    check_ends,
    check_lines,
    check_offsets,
    inspect_once,
    rising,
)
from interop._toolkit.staging import STAGED_FROM, Link, fetch_staged, send_staged
from interop._toolkit.threads import idle_cores, limit_threads

__all__ = [
    "ADDRESSES",
    "STAGED_FROM",
    "Advanced",
    "Link",
    "Namespaces",
    "NoTrace",
    "Problem",
    "Problems",
    "check_coordinates",
    "check_ends",
    "check_lines",
    "check_offsets",
    "fetch_staged",
    "idle_cores",
    "inspect_once",
    "limit_threads",
    "quietly",
    "rising",
    "send_staged",
    "unlocked",
]
