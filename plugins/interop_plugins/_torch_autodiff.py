"""Functions of other frameworks inside torch's autograd, and torch's inside theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from interop.errors import RefusedError

__all__ = ["attach", "vjp"]


def vjp(
    function: Callable[[Sequence[Any]], list[Any]], arrays: Sequence[Any]
) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
    """Call a function of tensors, and return what maps cotangents of its outputs to gradients.

    The tensors are taken without their history.
    """
    import torch

    given = [array.detach() for array in arrays]
    with torch.enable_grad():
        inputs = [one.requires_grad_() if _differentiable(one) else one for one in given]
        outputs = function(inputs)
    leaves = [one for one in inputs if one.requires_grad]
    tied = [n for n, one in enumerate(outputs) if one.requires_grad]

    def pullback(cotangents: Sequence[Any]) -> list[Any]:
        used = [n for n in tied if cotangents[n] is not None]
        found: Any = iter([None] * len(leaves))
        if used and leaves:
            found = iter(
                torch.autograd.grad(
                    [outputs[n] for n in used],
                    leaves,
                    [_conjugate(cotangents[n]) for n in used],
                    retain_graph=True,  # a Jacobian is asked for row by row
                    allow_unused=True,
                )
            )
        return [_conjugate(next(found)) if one.requires_grad else None for one in inputs]

    return [one.detach() for one in outputs], pullback


def attach(
    plain: Callable[[Sequence[Any]], list[Any]],
    forward: Callable[[Sequence[Any]], tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]],
    arrays: Sequence[Any],
) -> list[Any]:
    """Return what a function makes of tensors, as one node of the autograd graph."""
    import torch

    if torch.is_grad_enabled() and any(array.requires_grad for array in arrays):
        return list(_node().apply(forward, *arrays))
    return plain([array.detach() for array in arrays])


@cache
def _node() -> Any:
    import torch

    class Foreign(torch.autograd.Function):
        """A function of another framework."""

        @staticmethod
        def forward(ctx: Any, forward: Any, *arrays: Any) -> Any:
            ctx.set_materialize_grads(False)
            outputs, ctx.pullback = forward([array.detach() for array in arrays])
            ctx.mark_non_differentiable(*(o for o in outputs if not _differentiable(o)))
            return tuple(outputs)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            if torch.is_grad_enabled():  # `once_differentiable` lets it pass as a constant
                msg = (
                    "a function of another framework is differentiated once; leave out "
                    "create_graph=True, or compute the second derivative inside the function."
                )
                raise RefusedError(msg)
            found = ctx.pullback([_conjugate(one) for one in cotangents])
            return (None, *map(_conjugate, found))

    return Foreign


def _differentiable(value: Any) -> bool:
    return bool(value.dtype.is_floating_point or value.dtype.is_complex)


def _conjugate(value: Any) -> Any:
    """Go between the conventions: torch's gradient is the conjugate of the transposed Jacobian's.

    https://docs.pytorch.org/docs/stable/notes/autograd.html, "Autograd for Complex Numbers".
    """
    return value.conj().resolve_conj() if value is not None and value.is_complex() else value
