"""The caller: the line of a user's that has asked for something."""

from __future__ import annotations

import sys
import warnings

from interop._text import legible

#: The packages of this distribution.
_OWN = frozenset({__name__.partition(".")[0], "interop_plugins"})


def warn_caller(warning: Warning) -> None:
    """Warn the line outside of this distribution that has asked for a conversion.

    Python's usual filter shows a warning once for each line.
    """
    level, frame = 1, sys._getframe(1)
    # A thread or an exit handler may have called this distribution itself.
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _OWN:
        level, frame = level + 1, frame.f_back
    # The warning itself, if it were raised, would keep what its traceback holds.
    warnings.warn(legible(str(warning)), type(warning), stacklevel=level + 1)
