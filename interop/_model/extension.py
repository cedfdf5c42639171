"""What a plugin may declare beside formats and conversions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from types import ModuleType
from typing import Any, NamedTuple

from interop._model.typing import Value

from .conversion import Conversion
from .format import Format


class DtypeNames(NamedTuple):
    """How one framework's dtype objects are named.

    Parameters
    ----------
    type : str
        The type of the dtype objects, as ``"module:Class"``; a metaclass counts.
    name : callable
        ``name(dtype_object) -> str``, a NumPy or ml_dtypes name.
    """

    type: str
    name: Callable[[Value], str]


class Branch(NamedTuple):
    """One container, opened.

    Parameters
    ----------
    names : sequence of object
        What leads to each child: keys, indices or names of attributes.
    children : sequence of object
        The contents, as many as names.
    rebuild : callable
        ``rebuild(children) -> container``: a new one like it, around other children.
    """

    names: Sequence[Value]
    children: Sequence[Value]
    rebuild: Callable[[list[Value]], Any]


class Container(NamedTuple):
    """A framework's way to open the containers that are registered with it.

    Parameters
    ----------
    requires : str
        The module, or a class or function of it (``"module:Class"``), without which there are no
        such containers: `open` is called only once that is imported.
    open : callable
        ``open(value) -> Branch``, or None if the value is not one of its containers. It is not
        asked about Python's own dicts, lists, tuples and deques, but about all types derived from
        them.
    make : callable or None
        ``make(children) -> container`` around a list of children, to try `open` out; never used
        to convert.
    """

    requires: str
    open: Callable[[Value], Branch | None]
    make: Callable[[list[Value]], Any] | None = None


#: ``function(arrays) -> arrays``.
Function = Callable[[Sequence[Value]], list[Value]]
#: ``pullback(cotangents) -> gradients``.
Pullback = Callable[[Sequence[Value]], list[Value]]


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
        a list of arrays, and returns that list and a function that maps cotangents of the outputs
        to gradients of the arrays. The pullback may be called more than once.
    attach : callable
        ``attach(plain, forward, arrays) -> outputs``: returns what ``plain(arrays)`` does, tied
        into the graph of the arrays. Where that is needed it calls ``forward(arrays)`` instead,
        which returns the outputs and the pullback. Both are given arrays without history.
    recorded : callable or None
        ``recorded(value) -> str | None``: how a caller gives a value, which is an array of the
        framework or holds some, so that no history is lost, as the end of "a caller who needs no
        gradient"; None if none is being recorded at this moment.
    """

    format: str
    vjp: Callable[[Function, Sequence[Value]], tuple[list[Value], Pullback]]
    attach: Callable[
        [Function, Callable[[Sequence[Value]], tuple[list[Value], Pullback]], Sequence[Value]],
        list[Value],
    ]
    recorded: Callable[[Value], str | None] | None = None


class Namespaces(NamedTuple):
    """How modules become targets that no plugin has heard of.

    Parameters
    ----------
    declare : callable
        ``declare(module) -> iterable of Declaration``: what makes a module a framework, or nothing
        if the module is not of the kind. It is called with a module that names no format and is
        given as ``to=``, or is the ``__array_namespace__`` of an array given as ``like=``. A type
        that names no format, and an array in ``like=`` without a namespace, stand for the module
        in which their package begins. What it returns is registered for good.
    """

    declare: Callable[[ModuleType], Iterable[Declaration]]


class NoTrace(NamedTuple):
    """How to keep a framework's compiler from tracing into a function.

    Parameters
    ----------
    mark : callable
        ``mark(function)`` marks a function for the framework's compiler, if it has one. It is
        called with every function through which values enter a conversion, and with every fast
        path that has code. It must not import the framework.
    """

    mark: Callable[[Callable[..., Any]], None]


class Problem(NamedTuple):
    """Something that keeps conversions from working on this machine.

    Parameters
    ----------
    problem : str
        What is wrong, in one sentence.
    fix : str
        The command that fixes it, to be typed into a shell if there is one.
    formats : tuple of str
        The formats concerned; ``"grid"`` stands for ``"grid.csr"``, too.
    others : tuple of str or None
        If only conversions between `formats` and some others are disabled, these.
    devices : set of str or None
        If only conversions are disabled that need a device of some types, these.
    """

    problem: str
    fix: str
    formats: tuple[str, ...]
    others: tuple[str, ...] | None = None
    devices: Set[str] | None = None


class Problems(NamedTuple):
    """How to find out what is wrong with a framework as it is installed.

    Parameters
    ----------
    find : callable
        ``find() -> iterable of Problem``. Only ``interop doctor`` calls it, in a process of its
        own, in which the framework has been imported.
    """

    find: Callable[[], Iterable[Problem]]


#: What the hook of a plugin returns, and `interop.register` takes.
Declaration = (
    Format | Conversion | DtypeNames | Container | Autodiff | Namespaces | NoTrace | Problems
)
