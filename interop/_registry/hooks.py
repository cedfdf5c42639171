"""The hooks that a plugin implements, and the version of the interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pluggy

from interop._model.conversion import Conversion
from interop._model.extension import Autodiff, Container, DtypeFamily, Trouble
from interop._model.format import Format

__all__ = ["API_VERSION", "hookimpl", "hookspec"]

#: The version of this door. A plugin module may set ``INTEROP_API`` to the one it was written for.
API_VERSION = 1

hookspec = pluggy.HookspecMarker("interop")
hookimpl = pluggy.HookimplMarker("interop")


@hookspec
def interop_formats() -> Iterable[Format]:
    """Return the formats this plugin knows."""
    raise NotImplementedError


@hookspec
def interop_conversions() -> Iterable[Conversion]:
    """Return the conversions this plugin offers."""
    raise NotImplementedError


@hookspec
def interop_dtypes() -> Iterable[DtypeFamily]:
    """Return how this plugin's framework names its dtypes."""
    raise NotImplementedError


@hookspec
def interop_containers() -> Iterable[Container]:
    """Return how this plugin's framework opens the containers that are registered with it."""
    raise NotImplementedError


@hookspec
def interop_troubles() -> Iterable[Trouble]:
    """Return what is wrong with this plugin's framework as it is installed here.

    It is asked by ``interop doctor`` alone, in a process of its own, in which the framework has
    been imported.
    """
    raise NotImplementedError


@hookspec
def interop_autodiffs() -> Iterable[Autodiff]:
    """Return how this plugin's framework differentiates, in reverse mode."""
    raise NotImplementedError


@hookspec
def interop_shields() -> Iterable[Callable[[Any], None]]:
    """Return what keeps this plugin's framework from tracing into a function.

    Each is called with every function through which values enter a conversion, and with every
    shortcut that has code, and marks it for the framework's compiler, if it has one. It must not
    import the framework.
    """
    raise NotImplementedError
