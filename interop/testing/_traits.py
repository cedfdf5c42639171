"""Traits: words for them in declarations that are probably misspelt."""

from __future__ import annotations

from collections.abc import Iterable, Set

from interop._model.conversion import Conversion
from interop._model.format import Format
from interop._model.spec import TRAITS
from interop._model.text import suggestion
from interop._registry.registry import Registry

#: Traits of values into which nobody may write.
LOCKED = frozenset({"readonly", "immutable"})


def silence(format_: str, trait: str) -> str:
    """Return the problem that the description of a value leaves a trait out."""
    return f"describe of format {format_} does not say that a value is {trait!r}, although it is"


def problem_of_traits(registry: Registry, declaration: Format | Conversion) -> str:
    """Say which trait of a declaration no value can have, judging by all declarations.

    A trait exists if interop defines it, if a format has samples or a text for it, or if a format
    and a conversion name it.
    """
    traits = _possible(registry)
    for trait in sorted(_named(declaration) - traits):
        move = suggestion(trait, traits, f"declare samples.variants[{trait!r}] for its format.")
        return f"no sample has {trait!r}, and nothing else declares it; {move}"
    return ""


def _possible(registry: Registry) -> Set[str]:
    formats = registry.formats.values()
    traits = {trait for format_ in formats for trait in format_.samples.variants}
    traits |= {trait for format_ in formats for trait in format_.limits.refusal_hints}
    conversions = (declared.conversion for declared in registry.conversions)
    return TRAITS.keys() | traits | (_union(formats) & _union(conversions))


def _union(declarations: Iterable[Format | Conversion]) -> Set[str]:
    return {trait for declaration in declarations for trait in _named(declaration)}


def _named(declaration: Format | Conversion) -> Set[str]:
    """Return the traits that a declaration names, leaving out those of its samples."""
    if isinstance(declaration, Conversion):
        return declaration.takes | declaration.requires | declaration.drops | declaration.adds
    components = declaration.components
    if components is None:
        return declaration.carries
    packing = components.pack_refuses | components.pack_requires
    return declaration.carries | components.unpack_keeps | packing
