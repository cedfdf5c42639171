"""What is registered: declarations of every kind, and who made them.

Declaring an equal value again is harmless. Another value in the same place is a conflict, settled
by the larger `priority` of the two conversions, or else refused with the names of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from interop._model.conversion import Conversion
from interop._model.cost import Cost
from interop._model.extension import Autodiff, Container, Declaration, DtypeNames, NoTrace
from interop._model.format import Format
from interop.errors import ConflictError

from .declared import HERE, Declared, Provenance
from .recognition import Recognition
from .validation import validated

__all__ = ["Registry"]

_Item = TypeVar("_Item")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Registry(Recognition):
    """Everything that is declared."""

    def __init__(self) -> None:
        super().__init__()
        self._costs: Mapping[str, Cost] = {}
        #: Counts changes.
        self.version = 0
        #: Called after every change, to clear caches of what follows from the declarations.
        self.on_change: list[Callable[[], None]] = []
        self.forget()

    def forget(self) -> None:
        """Forget all declarations."""
        self.formats = {}
        self.dtype_names = []
        self.provenance: dict[str, Provenance] = {}
        self.containers: list[Container] = []
        self.autodiffs: list[Autodiff] = []
        self.no_trace: list[NoTrace] = []
        self._conversions: dict[tuple[object, ...], Declared] = {}
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        self.forget_types()
        for notify in self.on_change:
            notify()

    @property
    def conversions(self) -> tuple[Declared, ...]:
        """All conversions in force, in the order of registration."""
        return tuple(self._priced(declared) for declared in self._conversions.values())

    @property
    def sources(self) -> set[str]:
        """The names that a conversion may start from: of formats, and of protocols they export."""
        protocols = (protocol for format_ in self.formats.values() for protocol in format_.exports)
        return {*self.formats, *protocols}

    def untraced(self, function: _Function) -> _Function:
        """Keep the frameworks' compilers from tracing into a function, which is returned."""
        inner = getattr(function, "func", function)  # of a partial one
        if hasattr(inner, "__code__"):  # there is nothing to trace into in a built-in one
            for no_trace in self.no_trace:
                no_trace.mark(inner)
        return function

    def price(self, costs: Mapping[str, Cost]) -> None:
        """Take the costs of a table, by `Declared.key`, in the place of those declared.

        The latency of a format's name is what it takes to pack or unwrap its values.
        """
        self._costs = dict(costs)
        self.formats = {name: self._timed(format_) for name, format_ in self.formats.items()}
        self._changed()

    def _priced(self, declared: Declared) -> Declared:
        cost = self._costs.get(declared.key) if self._costs else None
        if cost is None:
            return declared
        return declared._replace(conversion=declared.conversion._replace(cost=cost))

    def _timed(self, format_: Format) -> Format:
        cost = self._costs.get(format_.name)
        return format_ if cost is None else _with_seconds(format_, cost.latency)

    def add(self, declarations: Iterable[Declaration], provenance: Provenance = HERE) -> None:
        """Register declarations, all or none of them."""
        sound: list[Any] = [validated(declaration, provenance) for declaration in declarations]
        formats = _of(Format, sound)
        for format_ in formats:
            self._check_conflict(format_, provenance)
        places = self._places(_of(Conversion, sound), provenance)
        # New tables take the places of the old ones, through which other threads may be going.
        names = [format_.name for format_ in formats]
        self.provenance = {**self.provenance, **dict.fromkeys(names, provenance)}
        self.formats = {**self.formats, **dict(zip(names, map(self._timed, formats), strict=True))}
        self._conversions = {**self._conversions, **places}
        self.dtype_names = _extended(self.dtype_names, _of(DtypeNames, sound))
        self.containers = _extended(self.containers, _of(Container, sound))
        self.autodiffs = _extended(self.autodiffs, _of(Autodiff, sound))
        self.no_trace = _extended(self.no_trace, _of(NoTrace, sound))
        self._changed()

    def _check_conflict(self, format_: Format, provenance: Provenance) -> None:
        """Refuse a format that is registered already, and otherwise declared."""
        other = self.formats.get(format_.name)
        if other is None or _with_seconds(other, 0.0) == _with_seconds(format_, 0.0):
            return
        msg = (
            f"format {format_.name!r} is declared by {self.provenance[format_.name]} and, "
            f"differently, by {provenance}; rename one, or block one of them with "
            "INTEROP_DISABLE_PLUGINS."
        )
        raise ConflictError(msg)

    def _places(
        self, conversions: Iterable[Conversion], provenance: Provenance
    ) -> dict[tuple[object, ...], Declared]:
        """Return the conversions that are to be in force, by what sets them apart."""
        places: dict[tuple[object, ...], Declared] = {}
        for conversion in conversions:
            place = _place(conversion)
            rival = places.get(place) or self._conversions.get(place)
            if rival is None or rival.conversion == conversion:
                places[place] = rival or Declared(conversion, provenance)
            elif rival.conversion.priority == conversion.priority:
                raise ConflictError(_conflict(rival, conversion, provenance))
            elif rival.conversion.priority < conversion.priority:
                places[place] = Declared(conversion, provenance)
        return places


def _of(kind: type[_Item], declarations: Iterable[Any]) -> list[_Item]:
    return [declaration for declaration in declarations if isinstance(declaration, kind)]


def _extended(table: list[_Item], items: Iterable[_Item]) -> list[_Item]:
    return [*table, *(item for item in items if item not in table)]


def _with_seconds(format_: Format, seconds: float) -> Format:
    """Return a format whose values take some time to be packed, or to be unwrapped."""
    if format_.components is not None:
        format_ = format_._replace(components=format_.components._replace(pack_seconds=seconds))
    if format_.wrapper is not None:
        format_ = format_._replace(wrapper=format_.wrapper._replace(seconds=seconds))
    return format_


def _place(conversion: Conversion) -> tuple[object, ...]:
    """Return what makes two conversions the same: what they take, and what they make of it."""
    return (
        conversion.source,
        conversion.target,
        conversion.dtypes,
        conversion.devices,
        conversion.requires,
        conversion.ndims,
        conversion.index_dtypes,
        conversion.changes,
        conversion.result._replace(index_dtype=None),
        conversion.effects,
        conversion.name,
    )


def _conflict(rival: Declared, conversion: Conversion, provenance: Provenance) -> str:
    return (
        f"the conversion {conversion.source} → {conversion.target} is declared by "
        f"{rival.provenance} ({rival.conversion.label}) and by {provenance} "
        f"({conversion.label}) with the same priority {conversion.priority}; give one a larger "
        "priority, or block one of them with INTEROP_DISABLE_PLUGINS."
    )
