"""How plugins let a function of one framework take part in another's differentiation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["Autodiff", "Function", "Pullback"]

#: ``function(arrays) -> arrays``.
Function = Callable[[Sequence[Any]], list[Any]]
#: ``pullback(cotangents) -> gradients``.
Pullback = Callable[[Sequence[Any]], list[Any]]


class Autodiff(NamedTuple):
    """Reverse-mode differentiation by one framework.

    Where one of its functions is called with another framework's arrays, `vjp` answers for the
    function, and the other's `attach` ties it into the caller's graph. Cotangents and gradients
    are in the convention of JAX, whose pullback is the transpose of the Jacobian: of complex
    numbers a framework with the other convention conjugates both, going in and coming out. None
    stands for a cotangent or a gradient of zeros, and for those of integers, which have none.

    Parameters
    ----------
    format : str
        The dense format whose values it differentiates.
    vjp : callable
        ``vjp(function, arrays) -> (outputs, pullback)``: calls ``function(arrays)``, which returns
        a list of arrays, and returns that list and what maps cotangents of the outputs to
        gradients of the arrays. The pullback may be called more than once.
    attach : callable
        ``attach(plain, forward, arrays) -> outputs``: returns what ``plain(arrays)`` does, tied
        into the graph of the arrays. Where that is needed it calls ``forward(arrays)`` instead,
        which returns the outputs and the pullback. Both are given arrays without history.
    """

    format: str
    vjp: Callable[[Function, Sequence[Any]], tuple[list[Any], Pullback]]
    attach: Callable[
        [Function, Callable[[Sequence[Any]], tuple[list[Any], Pullback]], Sequence[Any]],
        list[Any],
    ]
