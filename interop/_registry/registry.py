"""What is registered: declarations of every kind, and who made them.

Declaring an equal value again is harmless. Another value in the same place is a conflict, settled
by the larger `priority` of the two, or else refused with the names of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from interop._model.conversion import Conversion
from interop._model.cost import Cost
from interop._model.extension import (
    Autodiff,
    Container,
    Declaration,
    DtypeNames,
    Namespaces,
    NoTrace,
)
from interop._model.format import Format
from interop.errors import ConflictError, PluginError

from .claims import Claim, settled
from .declared import HERE, Declared, Provenance
from .recognition import Recognition
from .validation import validated

#: The kinds of declarations beside formats and conversions that may be in dispute.
_OTHERS = (Autodiff, DtypeNames)

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
        self.provenance = {}
        self.containers: list[Container] = []
        self._hear([])
        self.no_trace: list[NoTrace] = []
        self._namespaces: list[tuple[Namespaces, Provenance]] = []
        #: Why there is nothing of the plugins that are not loaded, by their names.
        self.unavailable: dict[str, str] = {}
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
        declared = self._conversions.values()
        return tuple(map(self._priced, declared) if self._costs else declared)

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
        cost = self._costs.get(declared.key)
        if cost is None:
            return declared
        return declared._replace(conversion=declared.conversion._replace(cost=cost))

    def _timed(self, format_: Format) -> Format:
        cost = self._costs.get(format_.name)
        return format_ if cost is None else format_.timed(cost.latency)

    def add(self, declarations: Iterable[Declaration], provenance: Provenance = HERE) -> None:
        """Register declarations beside those of others, all or none of them.

        What others have declared in one place with them yields to a larger priority, and to nothing
        else.
        """
        newcomers = [Claim(validated(item, provenance), provenance) for item in declarations]
        standing = self._claims()
        heard, disputes = settled([*standing, *newcomers])
        if disputes:
            raise ConflictError(str(disputes[0]))
        before = {id(claim) for claim in standing}
        news = [claim for claim in heard if claim.origin == provenance and id(claim) not in before]
        if before - {id(claim) for claim in heard}:  # some yield
            self._yield_to([claim for claim in heard if claim not in news])
        self.enter([claim.declaration for claim in news], provenance)

    def adopt(self, module: ModuleType) -> None:
        """Register what a plugin declares for a module that names no format yet, if one does."""
        if self.named(module):
            return
        for namespaces, provenance in self._namespaces:
            try:
                declarations = list(namespaces.declare(module))
            except Exception as error:
                msg = (
                    f"{provenance} cannot tell what makes a framework of the module "
                    f"{module.__name__!r}: {type(error).__name__}: {error}"
                )
                raise PluginError(msg) from error
            if declarations:
                self.add(declarations, provenance)
                return

    def _claims(self) -> list[Claim]:
        """Return what is registered and may be in dispute, with who declared it."""
        claims = [Claim(format_, self.provenance[name]) for name, format_ in self.formats.items()]
        claims += [Claim(item.conversion, item.provenance) for item in self._conversions.values()]
        return claims + self._others

    def _yield_to(self, claims: list[Claim]) -> None:
        """Keep what is left of the formats and conversions of others."""
        origins = [(claim.format, claim.origin) for claim in claims if claim.format]
        self.provenance = {format_.name: origin for format_, origin in origins}
        self.formats = {format_.name: format_ for format_, _ in origins}
        declared = (
            Declared(claim.conversion, claim.origin) for claim in claims if claim.conversion
        )
        self._conversions = {_place(item.conversion): item for item in declared}
        self._hear([claim for claim in claims if isinstance(claim.declaration, _OTHERS)])

    def _hear(self, claims: list[Claim]) -> None:
        """Keep the claims that are about neither formats nor conversions."""
        declarations = [claim.declaration for claim in claims]
        self._others = claims
        self.dtype_names = _of(DtypeNames, declarations)
        self.autodiffs = _of(Autodiff, declarations)

    def enter(self, sound: list[Declaration], provenance: Provenance) -> None:
        """Register valid declarations that are in no dispute with those of others."""
        formats = _of(Format, sound)
        for format_ in formats:
            self._check_conflict(format_, provenance)
        places = self._places(_of(Conversion, sound), provenance)
        # New tables take the places of the old ones, through which other threads may be going.
        names = [format_.name for format_ in formats]
        self.provenance = {**dict.fromkeys(names, provenance), **self.provenance}
        self.formats = {**self.formats, **dict(zip(names, map(self._timed, formats), strict=True))}
        self._conversions = {**self._conversions, **places}
        self.containers = _extended(self.containers, _of(Container, sound))
        others = [Claim(item, provenance) for item in sound if isinstance(item, _OTHERS)]
        registered = [claim.declaration for claim in self._others]
        news = [claim for claim in others if claim.declaration not in registered]
        self._hear([*self._others, *news])
        self.no_trace = _extended(self.no_trace, _of(NoTrace, sound))
        namespaces = [(item, provenance) for item in _of(Namespaces, sound)]
        self._namespaces = _extended(self._namespaces, namespaces)
        self._changed()

    def _check_conflict(self, format_: Format, provenance: Provenance) -> None:
        """Refuse a format that is registered already, and otherwise declared."""
        other = self.formats.get(format_.name)
        if other is None or other.timed(0.0) == format_.timed(0.0):
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
