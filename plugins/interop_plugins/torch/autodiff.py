"""Functions of other frameworks inside torch's autograd, and torch's functions inside theirs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

from interop.errors import RefusedError

from .describe import has_tangent, is_transformed

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    #: A function of tensors that returns a list of tensors.
    Function = Callable[[Sequence[Tensor]], list[Tensor]]
    #: A function of cotangents that returns gradients; None stands for zeros.
    Pullback = Callable[[Sequence[Tensor | None]], list[Tensor | None]]


def vjp(function: Function, arrays: Sequence[Tensor]) -> tuple[list[Tensor], Pullback]:
    """Call a function of tensors, and return its outputs and what maps cotangents to gradients.

    The tensors are taken without their history.
    """
    import torch

    inputs = [array.detach() for array in arrays]
    with torch.enable_grad():
        inputs = [
            tensor.requires_grad_() if _differentiable(tensor) else tensor for tensor in inputs
        ]
        outputs = function(inputs)
    leaves = [tensor for tensor in inputs if tensor.requires_grad]
    tied = [n for n, output in enumerate(outputs) if output.requires_grad]

    def pullback(cotangents: Sequence[Tensor | None]) -> list[Tensor | None]:
        used = [n for n in tied if cotangents[n] is not None]
        gradients: Iterator[Tensor | None] = repeat(None)
        if used and leaves:
            gradients = iter(
                torch.autograd.grad(
                    [outputs[n] for n in used],
                    leaves,
                    [_conjugate(cotangents[n]) for n in used],
                    retain_graph=True,  # a Jacobian is asked for row by row
                    allow_unused=True,
                )
            )
        return [_conjugate(next(gradients)) if tensor.requires_grad else None for tensor in inputs]

    return [output.detach() for output in outputs], pullback


def attach(
    plain: Function,
    forward: Callable[[Sequence[Tensor]], tuple[list[Tensor], Pullback]],
    arrays: Sequence[Tensor],
) -> list[Tensor]:
    """Return what a function makes of tensors, as one node of the autograd graph.

    Raises
    ------
    RefusedError
        A tensor carries a tangent, which the other framework would drop, or stands for others
        inside a transform.
    """
    import torch

    if any(map(is_transformed, arrays)):
        msg = (
            "a function of another framework is not traced by torch.func; differentiate by "
            "backward or torch.autograd.grad, or call it outside of the transform."
        )
        raise RefusedError(msg)
    if any(map(has_tangent, arrays)):
        msg = (
            "a function of another framework is not differentiated in forward mode; use reverse "
            "mode (backward or torch.autograd.grad), or give it the tensor's detach()."
        )
        raise RefusedError(msg)
    if torch.is_grad_enabled() and any(array.requires_grad for array in arrays):
        apply: Callable[..., tuple[Tensor, ...]] = _node().apply
        return list(apply(forward, *arrays))
    return plain([array.detach() for array in arrays])


def recorded(value: Any) -> str | None:
    """Return how to give a tensor, or what holds some, without a history that torch records.

    Under ``no_grad`` torch records none, but tangents go on.
    """
    requires_grad = getattr(value, "requires_grad", None)
    if requires_grad is None:
        held = value if isinstance(value, (list, tuple)) else [getattr(value, "data", None)]
        items = (
            item
            for item in held
            if hasattr(item, "requires_grad") or isinstance(item, (list, tuple))
        )
        return next(filter(None, map(recorded, items)), None)
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):  # the array of another library
        return None
    if requires_grad and torch.is_grad_enabled():
        return "calls it under torch.no_grad()"
    if torch.autograd.forward_ad._current_level >= 0 and has_tangent(value):
        return "passes x.detach()"
    return None


@cache
def _node() -> type[torch.autograd.Function]:
    import torch

    class Foreign(torch.autograd.Function):
        """A function of another framework."""

        @staticmethod
        def forward(ctx: Any, forward: Any, *arrays: Tensor) -> tuple[Tensor, ...]:
            ctx.set_materialize_grads(False)
            outputs, ctx.pullback = forward([array.detach() for array in arrays])
            ctx.mark_non_differentiable(
                *(output for output in outputs if not _differentiable(output))
            )
            return tuple(outputs)

        @staticmethod
        def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
            if torch.is_grad_enabled():  # `once_differentiable` lets it pass as a constant
                msg = (
                    "a function of another framework is differentiated once; leave out "
                    "create_graph=True, or compute the second derivative inside the function."
                )
                raise RefusedError(msg)
            gradients = ctx.pullback([_conjugate(cotangent) for cotangent in cotangents])
            return (None, *map(_conjugate, gradients))

    return Foreign


def _differentiable(tensor: Tensor) -> bool:
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


def _conjugate(gradient: Tensor | None) -> Tensor | None:
    """Go between the conventions: torch's gradient is the conjugate of the transposed Jacobian's.

    https://docs.pytorch.org/docs/stable/notes/autograd.html, "Autograd for Complex Numbers".
    """
    if gradient is None or not gradient.is_complex():
        return gradient
    return gradient.conj().resolve_conj()
