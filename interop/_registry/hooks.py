"""The hook that a plugin implements, and the version of the interface."""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from interop._model.extension import Declaration

#: The version of the interface. A plugin module may set ``INTEROP_API`` to the one it was written
#: for.
API_VERSION = 1

hookspec: pluggy.HookspecMarker = pluggy.HookspecMarker("interop")
hookimpl: pluggy.HookimplMarker = pluggy.HookimplMarker("interop")


@hookspec
def interop_declarations() -> Iterable[Declaration]:
    """Return everything this plugin declares, in any order.

    These are formats, conversions and, if needed, declarations of the types `DtypeNames`,
    `Container`, `Autodiff`, `Namespaces`, `NoTrace` and `Problems`.
    `interop.register` takes the same.
    """
    raise NotImplementedError
