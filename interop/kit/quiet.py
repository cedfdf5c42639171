"""Warnings that a framework gives once per process, kept from users who cannot act on them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from threading import Lock

_lock = Lock()
_silenced: set[str] = set()


def quietly(message: str, make: Callable[[], object]) -> None:
    """Call `make` once per process, without the warning that a framework gives once per process.

    Parameters
    ----------
    message : str
        How the warning begins.
    make : callable
        What provokes it.
    """
    if message in _silenced:
        return
    with _lock:
        # `warnings.catch_warnings` would put back the filters of all threads as they were.
        warnings.filterwarnings("ignore", f"(?:{message})", UserWarning)
        filters, added = warnings.filters, warnings.filters[0]
        try:
            make()
        finally:
            if added in filters:
                filters.remove(added)  # type: ignore[attr-defined]
        _silenced.add(message)
