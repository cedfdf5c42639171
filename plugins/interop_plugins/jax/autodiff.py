"""Functions of other frameworks inside JAX's differentiation, and JAX's inside theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jax import Array

    Function = Callable[[Sequence[Array]], list[Array]]
    #: From cotangents to gradients; None stands for zeros, and for those of integers.
    Pullback = Callable[[Sequence[Array | None]], list[Array | None]]


def vjp(function: Function, arrays: Sequence[Array]) -> tuple[list[Array], Pullback]:
    """Call a function of arrays, and return what maps cotangents of its outputs to gradients."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    outputs, transpose = jax.vjp(lambda *inputs: list(function(inputs)), *arrays)

    def zeros(output: Array) -> object:
        if jnp.issubdtype(output.dtype, jnp.inexact):
            return jnp.zeros(output.shape, output.dtype)
        return np.zeros(output.shape, jax.dtypes.float0)

    def pullback(cotangents: Sequence[Array | None]) -> list[Array | None]:
        full = [
            zeros(output) if cotangent is None else cotangent.astype(output.dtype)
            for cotangent, output in zip(cotangents, outputs, strict=True)
        ]
        return [_none_if_integer(gradient) for gradient in transpose(full)]

    return outputs, pullback


def attach(
    plain: Function,
    forward: Callable[[Sequence[Array]], tuple[list[Array], Pullback]],
    arrays: Sequence[Array],
) -> list[Array]:
    """Return what a function makes of arrays, with a reverse-mode rule of its own.

    Notes
    -----
    Without ``jit`` JAX calls a custom rule with the arrays themselves, and so the function may be
    one that cannot be traced: https://docs.jax.dev/en/latest/_autosummary/jax.custom_vjp.html.
    """
    import jax

    @jax.custom_vjp
    def foreign(*inputs: Array) -> list[Array]:
        return plain(inputs)

    def forward_rule(*inputs: Array) -> tuple[list[Array], object]:
        outputs, pullback = forward(inputs)
        return outputs, _residuals_type()(pullback)

    def backward_rule(
        residuals: _Residuals, cotangents: Sequence[Array]
    ) -> tuple[Array | None, ...]:
        return tuple(residuals.pullback([_none_if_integer(array) for array in cotangents]))

    foreign.defvjp(forward_rule, backward_rule)
    return list(foreign(*arrays))


def _none_if_integer(cotangent: Array | None) -> Array | None:
    """Return a cotangent or a gradient, or None for the empty one that JAX has for integers."""
    import jax

    if cotangent is None or cotangent.dtype == jax.dtypes.float0:
        return None
    return cotangent


class _Residuals:
    """The values that the forward rule leaves to the backward rule; JAX carries them unopened."""

    def __init__(self, pullback: Pullback) -> None:
        self.pullback = pullback


@cache
def _residuals_type() -> type[_Residuals]:
    """Register the residuals with JAX as a container of no arrays, once."""
    import jax

    jax.tree_util.register_pytree_node(
        _Residuals,
        lambda residuals: ((), residuals.pullback),
        lambda pullback, _: _Residuals(pullback),
    )
    return _Residuals
