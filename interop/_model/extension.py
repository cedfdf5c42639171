"""What a plugin may declare beside formats and conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .conversion import Conversion

__all__ = ["Autodiff", "Branch", "Container", "DtypeFamily", "Function", "Pullback", "Trouble"]


class DtypeFamily(NamedTuple):
    """How one framework's dtype objects are named.

    Parameters
    ----------
    type : str
        The type of the dtype objects, as ``"module:Class"``; a metaclass counts.
    name : callable
        ``name(dtype_object) -> str``, a NumPy or ml_dtypes name.
    """

    type: str
    name: Callable[[Any], str]


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


class Trouble(NamedTuple):
    """Something that keeps conversions from working on this machine.

    Parameters
    ----------
    problem : str
        What is wrong, in one sentence.
    fix : str
        The line that mends it, to be typed into a shell if there is one.
    formats : tuple of str
        The formats concerned; ``"grid"`` stands for ``"grid.csr"``, too.
    others : tuple of str or None
        If only conversions between `formats` and some others are disabled, these.
    devices : frozenset of str or None
        If only conversions are disabled that need a device of some types, these.
    """

    problem: str
    fix: str
    formats: tuple[str, ...]
    others: tuple[str, ...] | None = None
    devices: frozenset[str] | None = None

    def disables(self, one: Conversion) -> bool:
        """Tell whether a conversion cannot be used because of it."""
        here = _among(one.source, self.formats), _among(one.target, self.formats)
        if self.others is not None:
            there = _among(one.source, self.others), _among(one.target, self.others)
            concerned = (here[0] and there[1]) or (here[1] and there[0])
        else:
            concerned = any(here)
        return concerned and (
            self.devices is None or self._needs(one.devices) or self._needs(one.to_devices)
        )

    def _needs(self, devices: frozenset[str] | None) -> bool:
        """Tell whether what runs on some devices needs one that is in trouble."""
        return bool(devices and self.devices and devices & self.devices and "cpu" not in devices)


def _among(name: str, formats: tuple[str, ...]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in formats)
