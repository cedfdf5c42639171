"""Containers that are registered with JAX as pytrees."""

from __future__ import annotations

from functools import cache, partial

from interop.plugin import Branch


class Row:
    """A pytree around some children, to try `open_pytree` out.

    Parameters
    ----------
    children : list of object
    """

    def __init__(self, children: list[object]) -> None:
        self.children = children


@cache
def _register() -> None:
    from jax.tree_util import register_pytree_node

    register_pytree_node(Row, lambda row: (row.children, None), lambda _, children: Row(children))


def row(children: list[object]) -> Row:
    """Return a pytree around some children, of a class that JAX has been told of."""
    _register()
    return Row(children)


def open_pytree(value: object) -> Branch | None:
    """Open a container that is registered with JAX; Python's own need no framework.

    Parameters
    ----------
    value : object

    Returns
    -------
    Branch or None
        The children as JAX has them, without what its registration keeps static.
    """
    if isinstance(value, tuple) or type(value).__module__ in ("builtins", "collections"):
        return None  # Python's own open in the same way without JAX
    from jax.tree_util import keystr, tree_flatten_with_path, tree_unflatten

    leaves, structure = tree_flatten_with_path(value, is_leaf=lambda node: node is not value)
    if len(leaves) == 1 and not leaves[0][0]:
        return None
    names = [keystr(path, simple=True) for path, _ in leaves]
    return Branch(names, [child for _, child in leaves], partial(tree_unflatten, structure))
