"""Containers that are registered with JAX."""

from __future__ import annotations

from functools import partial
from typing import Any

from interop.plugin import Branch

__all__ = ["open_pytree"]


def open_pytree(value: Any) -> Branch | None:
    """Open a container that is registered with JAX; those of Python's own need no framework.

    Parameters
    ----------
    value : object

    Returns
    -------
    Branch or None
        The children as JAX has them, without what its registration keeps static.
    """
    if isinstance(value, tuple) or type(value).__module__ in ("builtins", "collections"):
        return None  # those of Python's own come out the same without JAX
    from jax.tree_util import keystr, tree_flatten_with_path, tree_unflatten

    found, structure = tree_flatten_with_path(value, is_leaf=lambda other: other is not value)
    if len(found) == 1 and not found[0][0]:
        return None
    names = [keystr(path, simple=True) for path, _ in found]
    return Branch(names, [child for _, child in found], partial(tree_unflatten, structure))
