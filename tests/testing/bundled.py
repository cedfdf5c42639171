"""The bundled plugins, by name."""

from __future__ import annotations

import interop

BUNDLED = sorted(
    plugin.name for plugin in interop.plugins() if plugin.distribution == "array-interop"
)
