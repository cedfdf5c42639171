"""Declarations, with the plugins and distributions that they come from."""

from __future__ import annotations

from typing import NamedTuple, cast

from interop._model.conversion import Conversion
from interop._model.extension import Declaration
from interop._model.format import Format
from interop._model.provenance import Provenance


class Declared(NamedTuple):
    """A declaration, and where it comes from; in listings, a conversion.

    Parameters
    ----------
    declaration : Declaration
    provenance : Provenance
    state : str
        ``"ready"``, or ``"dormant"`` while a format or protocol that it names is not registered.
    part_of : Format or None
        The format of which it is a unary step; None for all other declarations.
    """

    declaration: Declaration
    provenance: Provenance
    state: str = "ready"
    part_of: Format | None = None

    @property
    def conversion(self) -> Conversion:
        """The declaration, where it is a conversion."""
        return cast("Conversion", self.declaration)

    def row(self) -> dict[str, str]:
        """Return its row in a listing."""
        return {
            "from": self.conversion.source,
            "to": self.conversion.target,
            "conversion": self.conversion.label,
            "effects": ", ".join(sorted(self.conversion.effects)),
            "state": self.state,
            "declared by": str(self.provenance),
        }

    @property
    def key(self) -> str:
        """The key of its cost in a table of costs."""
        source, target = self.conversion.source, self.conversion.target
        key = f"{self.provenance.distribution}: {source} → {target}: {self.conversion.label}"
        if self.conversion.devices is not None and self.conversion.devices != {"cpu"}:
            key += f" on {', '.join(sorted(self.conversion.devices))}"
        if self.conversion.requires:
            key += f" if {', '.join(sorted(self.conversion.requires))}"
        return key


class DeclaredFormat(NamedTuple):
    """A format, and where it comes from.

    Parameters
    ----------
    name : str
    format : Format
    provenance : Provenance
    state : str
        The state of its framework: ``"imported"``, ``"installed"`` or ``"missing"``.
    """

    name: str
    format: Format
    provenance: Provenance
    state: str

    def row(self) -> dict[str, str]:
        """Return its row in a listing."""
        return {
            "format": self.name,
            "state": self.state,
            "dtypes": str(len(self.format.dtypes)),
            "devices": ", ".join(self.format.devices),
            "declared by": str(self.provenance),
        }
