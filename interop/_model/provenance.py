"""Provenance: the plugin and the distribution that a declaration comes from."""

from __future__ import annotations

import re
from typing import NamedTuple


class Provenance(NamedTuple):
    """Where a declaration comes from.

    Parameters
    ----------
    plugin : str
        Name of the entry point; ``"run time"`` for what was registered by a call.
    distribution, version : str
    """

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".strip()

    @property
    def remedy(self) -> str:
        """The advice to give if a declaration is wrong."""
        if self == HERE:
            return "correct what was registered at run time."
        return (
            f"report it to {self.distribution}, or leave that plugin out with "
            f"INTEROP_DISABLE_PLUGINS={self.plugin}."
        )


def normal(name: str) -> str:
    """Return the name of a distribution or a plugin as package indices compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


#: The distribution that interop and the bundled plugins are installed by.
OWN = "array-interop"

#: Provenance of what is registered by a call rather than by a plugin.
HERE = Provenance("run time", "run time", "")
