"""The registry: valid declarations of every kind, free of conflicts, and tables made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeVar

from interop._model.conversion import Conversion, Cost
from interop._model.extension import (
    Autodiff,
    Container,
    Declaration,
    DtypeNames,
    Namespaces,
    NoTrace,
)
from interop._model.format import Format
from interop._model.provenance import HERE, Provenance
from interop._recognition.recognition import Recognition
from interop.errors import ConflictError

from .containment import with_guards
from .declared import Declared
from .plugins import Loader
from .precedence import declared_by, without_conflicts

_Kind = TypeVar("_Kind")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Registry:
    """Everything that is declared.

    Parameters
    ----------
    costs : mapping of str to Cost, optional
        Costs by `Declared.key`, which replace those that the conversions declare.
    plugins : bool, default False
        Whether it gets the installed plugins, each when something shows the need for it.
    """

    def __init__(self, costs: Mapping[str, Cost] | None = None, *, plugins: bool = False) -> None:
        #: Loads the plugins for which a value or a name shows the need.
        self.loader = Loader(self.replace, has_plugins=plugins)
        #: Tells what values are.
        self.recognition = Recognition(self.loader.load, self.loader.load_all)
        self.formats: dict[str, Format] = {}
        #: Where each format comes from. Formats that were replaced stay in it.
        self.provenance: dict[str, Provenance] = {}
        self._costs = dict(costs or {})
        #: Counts changes.
        self.version = 0
        #: Called after every change, to clear caches of results that depend on the declarations.
        self.on_change: list[Callable[[], None]] = []
        self.replace([])

    def loaded(self) -> Registry:
        """Return this registry, with the declarations of all plugins."""
        self.loader.load_all()
        return self

    def replace(self, declared: Sequence[Declared]) -> None:
        """Register declarations that are in no conflict, in the place of all that there are."""
        self._declared = declared
        # New tables replace the old ones, which other threads may be reading.
        self.provenance = self.provenance | {f.name: origin for f, origin in self._all(Format)}
        self._fill_tables()

    def _fill_tables(self) -> None:
        formats = {f.name: f for f, _ in self._with_guards(Format)}
        # Other threads plan meanwhile. Whoever finds a format must find its conversions too, so the
        # formats come last, and no graph of what came before them is taken for the whole.
        self.version += 1
        #: All conversions in force, in the order of registration.
        self.conversions = tuple(
            self._priced(Declared(conversion, origin))
            for conversion, origin in self._with_guards(Conversion)
        )
        targets = {
            d.conversion.target
            for d in self.conversions
            if d.conversion.source != d.conversion.target
        }
        #: The formats that values of others can become; those of protocols are read alone.
        self.attainable = targets | {
            name for name, format_ in formats.items() if format_.components
        }
        self._containers = [container for container, _ in self._with_guards(Container)]
        self.dtype_names = [names for names, _ in self._with_guards(DtypeNames)]
        self.autodiffs = [autodiff for autodiff, _ in self._all(Autodiff)]
        #: What makes targets of modules that no plugin has heard of, and where it comes from.
        self.namespaces = list(self._all(Namespaces))
        self.no_trace = [no_trace for no_trace, _ in self._with_guards(NoTrace)]
        self.formats = formats
        self.changed()

    def changed(self) -> None:
        """Invalidate whatever was derived from the old declarations."""
        self.version += 1
        self.recognition.replace(self.formats, self.provenance)
        for notify in self.on_change:
            notify()

    def _all(self, kind: type[_Kind]) -> Iterator[tuple[_Kind, Provenance]]:
        """Yield the declarations of a kind, and where they come from."""
        for entry in self._declared:
            if isinstance(entry.declaration, kind):
                yield entry.declaration, entry.provenance

    def extensions(self) -> Iterator[tuple[Declaration, Provenance]]:
        """Yield what is declared beside formats and conversions, and where it comes from."""
        for entry in self._declared:
            if not isinstance(entry.declaration, (Format, Conversion)):
                yield entry.declaration, entry.provenance

    def _with_guards(self, kind: type[_Kind]) -> Iterator[tuple[_Kind, Provenance]]:
        """Yield the declarations of a kind with guards, and where they come from."""
        for declaration, origin in self._all(kind):
            yield with_guards(declaration, origin), origin

    def containers(self) -> list[Container]:
        """Return what plugins open: the containers of all frameworks that are imported by now."""
        self.loader.load()
        return self._containers

    @property
    def sources(self) -> set[str]:
        """The names that a conversion may start from: of formats, and of protocols they export."""
        protocols = (protocol for format_ in self.formats.values() for protocol in format_.exports)
        return {*self.formats, *protocols}

    def untraced(self, function: _Function) -> _Function:
        """Keep the frameworks' compilers from tracing into a function, which is returned."""
        inner = getattr(function, "func", function)  # a `functools.partial` has it as `func`
        # A guard calls another function. Compilers cannot trace into built-in ones.
        for called in (inner, getattr(inner, "__wrapped__", None)):
            if isinstance(called, FunctionType):
                for no_trace in self.no_trace:
                    no_trace.mark(called)
        return function

    def _priced(self, declared: Declared) -> Declared:
        if not self._costs or declared.key not in self._costs:
            return declared
        conversion = declared.conversion._replace(cost=self._costs[declared.key])
        return declared._replace(declaration=conversion)

    def register(self, declarations: Iterable[Declaration], origin: Provenance = HERE) -> None:
        """Register all `declarations`, or none if any of them is in a conflict.

        Declarations of others that they say they replace are left out.
        """
        newcomers = declared_by(declarations, origin)
        declared, conflicts = without_conflicts([*self._declared, *newcomers])
        if conflicts:
            raise ConflictError(str(conflicts[0]))
        self.replace(declared)
