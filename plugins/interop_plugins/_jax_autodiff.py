"""Functions of other frameworks inside JAX's differentiation, and JAX's inside theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

__all__ = ["attach", "vjp"]


def vjp(
    function: Callable[[Sequence[Any]], list[Any]], arrays: Sequence[Any]
) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
    """Call a function of arrays, and return what maps cotangents of its outputs to gradients."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    outputs, pull = jax.vjp(lambda *given: list(function(given)), *arrays)

    def zero(output: Any) -> Any:
        differentiable = jnp.issubdtype(output.dtype, jnp.inexact)
        return (jnp.zeros if differentiable else np.zeros)(
            output.shape, output.dtype if differentiable else jax.dtypes.float0
        )

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        given = [
            zero(o) if c is None else c.astype(o.dtype)
            for c, o in zip(cotangents, outputs, strict=True)
        ]
        return [None if _is_nothing(one) else one for one in pull(given)]

    return outputs, pullback


def attach(
    plain: Callable[[Sequence[Any]], list[Any]],
    forward: Callable[[Sequence[Any]], tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]],
    arrays: Sequence[Any],
) -> list[Any]:
    """Return what a function makes of arrays, with a reverse-mode rule of its own.

    Notes
    -----
    Without ``jit`` JAX calls a custom rule with the arrays themselves, and so the function may be
    one that cannot be traced: https://docs.jax.dev/en/latest/_autosummary/jax.custom_vjp.html.
    """
    import jax

    @jax.custom_vjp
    def foreign(*given: Any) -> list[Any]:
        return plain(given)

    def ahead(*given: Any) -> tuple[list[Any], Any]:
        outputs, pullback = forward(given)
        return outputs, _kept()(pullback)

    def back(kept: Any, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(kept.pullback([None if _is_nothing(c) else c for c in cotangents]))

    foreign.defvjp(ahead, back)
    return list(foreign(*arrays))


def _is_nothing(value: Any) -> bool:
    """Tell whether a cotangent is one of integers."""
    import jax

    return value is None or value.dtype == jax.dtypes.float0


@cache
def _kept() -> Any:
    """Return a container that JAX carries from the forward to the backward rule unopened."""
    import jax

    class Kept:
        def __init__(self, pullback: Any) -> None:
            self.pullback = pullback

    jax.tree_util.register_pytree_node(Kept, lambda k: ((), k.pullback), lambda p, _: Kept(p))
    return Kept
