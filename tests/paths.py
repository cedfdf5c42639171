"""Where the processes that tests start import from: where this process does."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import interop

__all__ = ["python_path"]

_PLUGINS = find_spec("interop_plugins")
#: The folders of the code that is tested here, which need not be those of an editable install.
_TESTED = [
    str(Path(package).parent)
    for package in (
        Path(interop.__file__).parent,
        *((_PLUGINS and _PLUGINS.submodule_search_locations) or []),
    )
]


def python_path(*folders: str | Path) -> str:
    """Return a PYTHONPATH of some folders, and after them of the code that is tested here."""
    return os.pathsep.join(dict.fromkeys([*filter(None, map(str, folders)), *_TESTED]))
