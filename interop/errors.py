"""Every exception that interop raises, and the tree that they form.

::

    InteropError
    ├─ UnknownValueError      (TypeError)    no format recognises the value
    ├─ UnknownTargetError     (TypeError)    ``to=`` names nothing that is registered
    ├─ BadRequestError        (ValueError)   a request, or a list, that makes no sense
    ├─ RefusedError           (ValueError)   no route is allowed for this value and request
    │  └─ RefusedLeavesError  (ValueError)   several values of a tree are refused; a group of errors
    ├─ HandOffError           (BufferError)  a producer's memory cannot be handed over
    ├─ DoesNotFitError        (MemoryError)  the result does not fit in memory
    │  └─ DensifyMemoryError  (MemoryError)  the dense result of a sparse or lazy value does not
    ├─ NotInstalledError      (ImportError)  a framework that is needed is not installed
    ├─ DeviceError            (RuntimeError) a device that is asked for is not on this machine
    ├─ ConversionError        (RuntimeError) a step failed for a reason of its own
    ├─ Declined               (RuntimeError) raised *by* a conversion that cannot convert a value
    └─ PluginError            (RuntimeError) a plugin's declarations are unusable
       └─ ConflictError       (RuntimeError) two distributions claim the same place

Every leaf is also the builtin exception that a user would expect. A message says what was asked
and what stood in the way, and ends with the next move.

One class is a warning, which is shown once for each line: `ComplexWarning` (a RuntimeWarning) says
that a cast discards imaginary parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._text import legible, lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "BadRequestError",
    "ComplexWarning",
    "ConflictError",
    "ConversionError",
    "Declined",
    "DensifyMemoryError",
    "DeviceError",
    "DoesNotFitError",
    "HandOffError",
    "InteropError",
    "NotInstalledError",
    "PluginError",
    "RefusedError",
    "RefusedLeavesError",
    "UnknownTargetError",
    "UnknownValueError",
]


class InteropError(Exception):
    """Base class of everything that interop raises on purpose.

    Attributes
    ----------
    where : str
        The path to the value inside a tree (``"model/layers/3/weight"``), "" outside of one.
    """

    where: str = ""

    def __init__(self, *args: object, **attributes: object) -> None:
        # A message quotes names and texts of others.
        legibly = (legible(arg) if isinstance(arg, str) else arg for arg in args)
        super().__init__(*legibly, **attributes)

    def __str__(self) -> str:
        return legible(super().__str__()) if len(self.args) != 1 else legible(str(self.args[0]))

    def locate(self, where: str) -> None:
        """Add the path to the value inside a tree to the message."""
        self.where = legible(where)
        first, *others = str(self).split("\n")
        self.args: tuple[object, ...] = (lines([f"{where}: {first}", *others]), *self.args[1:])


class UnknownValueError(InteropError, TypeError):
    """No registered format and no protocol recognises the value."""


class UnknownTargetError(InteropError, TypeError):
    """``to=`` names no registered format, framework or array type."""


class BadRequestError(InteropError, ValueError):
    """The request contradicts itself, uses an unknown word, or is for a list that is no array.

    A list is no array if its rows differ in length or no dtype holds its numbers, for example.
    """


class RefusedError(InteropError, ValueError):
    """No route is allowed for this value under this request.

    Attributes
    ----------
    effects : frozenset of str
        The refused effects that, if allowed, would open the nearest routes.
    """

    def __init__(self, message: str, effects: frozenset[str] = frozenset()) -> None:
        super().__init__(message)
        self.effects = effects


class RefusedLeavesError(RefusedError, ExceptionGroup[RefusedError]):
    """Several values of a tree are refused; it is a group of their errors.

    Parameters
    ----------
    message : str
        It is that of the first error, and has the paths of the others.
    errors : sequence of RefusedError
        Those of the first ten at most, each with its path. They are the attribute `exceptions`.
    """

    def __new__(cls, message: str, errors: Sequence[RefusedError]) -> RefusedLeavesError:
        """Return a group: it is not made from its message alone."""
        return ExceptionGroup.__new__(cls, message, errors)

    def __init__(self, message: str, errors: Sequence[RefusedError]) -> None:
        effects = frozenset(effect for error in errors for effect in error.effects)
        super().__init__(message, effects)
        self.args: tuple[Any, ...] = (message, errors)

    def __str__(self) -> str:
        return legible(str(self.args[0]))

    def derive(self, errors: Sequence[Any], /) -> Any:
        """Return a group of some of the errors, as `split` and ``except*`` make."""
        return RefusedLeavesError(self.message, errors)


class HandOffError(InteropError, BufferError):
    """A producer's memory cannot be shared safely, or a value fails to expose it.

    What the value's own code has raised, of a closed file, say, is the ``__cause__``.
    """


class DoesNotFitError(InteropError, MemoryError):
    """The result of a step does not fit in the memory available on its device."""


class DensifyMemoryError(DoesNotFitError):
    """The dense form of a sparse array, or the result of a lazy one, does not fit."""


class NotInstalledError(InteropError, ImportError):
    """A framework that the route needs is not installed, or is broken and cannot be imported."""

    def locate(self, where: str) -> None:
        """Add the path to the value inside a tree to the message."""
        super().locate(where)
        self.msg: str = str(self.args[0])  # an ImportError prints its `msg`


class DeviceError(InteropError, RuntimeError):
    """A device that is asked for is not on this machine, or its framework cannot use it."""


class ConversionError(InteropError, RuntimeError):
    """A step of a route failed.

    Attributes
    ----------
    step : str
        The name of the conversion that failed.
    distribution : str
        The distribution whose plugin declared it.
    """

    def __init__(self, message: str, step: str = "", distribution: str = "") -> None:
        super().__init__(message)
        self.step = step
        self.distribution = distribution


class ComplexWarning(RuntimeWarning):
    """A cast keeps only the real parts of complex numbers.

    Frameworks have warnings of their own for this. It has the name of NumPy's, and the text of
    NumPy's and torch's.
    """


class Declined(InteropError, RuntimeError):  # noqa: N818 - it reports a fact, not a fault
    """Raised by a conversion that cannot convert this value, before it changes anything.

    The core then plans the rest of the route again, without that conversion.

    Parameters
    ----------
    *reason : object
    instead : object, optional
        What the value turned out to be once it was read. If it is given, the core converts it in
        place of the value.
    """

    def __init__(self, *reason: object, instead: object = None) -> None:
        super().__init__(*reason)
        self.instead = instead


class PluginError(InteropError, RuntimeError):
    """A plugin's declarations are malformed, or no plugin was found at all."""


class ConflictError(PluginError):
    """Two distributions declare something in one place, and neither replaces the other."""
