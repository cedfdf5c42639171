"""How plugins open the containers of a framework, declared as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["Branch", "Container"]


class Branch(NamedTuple):
    """One container, opened.

    Parameters
    ----------
    names : sequence of object
        What leads to each child: keys, indices or names of attributes.
    children : sequence of object
        What is inside, as many as names.
    rebuild : callable
        ``rebuild(children) -> container``: a new one like it, around other children.
    """

    names: Sequence[Any]
    children: Sequence[Any]
    rebuild: Callable[[list[Any]], Any]


class Container(NamedTuple):
    """A framework's way to open the containers that are registered with it.

    Parameters
    ----------
    requires : str
        The module without which there are no such containers: it is asked once that is imported.
    open : callable
        ``open(value) -> Branch``, or None if the value is none of its containers.
    """

    requires: str
    open: Callable[[Any], Branch | None]
