"""Cases: what is tried, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interop._model.format import Components, Format
from interop._model.typing import Value

from ._memory import Memory
from ._notes import Notes
from ._sample import NoSample, Recipe, preferred
from ._subject import Bench
from ._trial import possible, sampled
from ._truth import Truth, same

_SHAPES = ((3, 4), (5,), (), (0,), (2, 3, 4), (2, 1, 2, 1, 2))
#: Shapes of variants: even lengths, for formats of blocks.
_EVEN_SHAPES = ((4, 6), (6,), (2, 4, 6))


class Case:
    """A declaration under test, with values for it, what reads them, and where answers are noted.

    Parameters
    ----------
    bench : Bench
    notes : Notes
    """

    #: What is told before each check, which may end the process.
    activity: str

    def __init__(self, bench: Bench, notes: Notes) -> None:
        self.bench = bench
        self.interop = bench.interop
        self.registry = bench.registry
        self.notes = notes
        self.truth = Truth(bench.interop, notes.reading)
        self.memory = Memory(bench.interop, self.truth)
        #: The traits and dtypes of the values on which it has been tried.
        self.tried: set[str] = set()

    def sample(self, recipe: Recipe) -> Value:
        """Return the value of a recipe."""
        return sampled(self.interop, recipe)

    def samples(self, recipes: Iterable[Recipe]) -> Iterator[tuple[Recipe, Value]]:
        """Yield the values of recipes, and note why others cannot be made."""
        for recipe in recipes:
            try:
                value = self.sample(recipe)
            except NoSample as reason:
                self.notes.skipped(reason, self.notes.check)
            else:
                yield recipe, value

    def differ(self, value: Value, other: Value) -> bool:
        """Return whether two values are read as different numbers."""
        readings = self.truth.read(value), self.truth.read(other)
        return all(readings) and not same(*(reading.array for reading in readings if reading))


class FormatCase(Case):
    """One format under test."""

    def __init__(self, bench: Bench, format_: Format, notes: Notes) -> None:
        super().__init__(bench, notes)
        self.activity = f"it was tried with {format_.name}"
        self.format = format_
        self.name = format_.name
        self.device = "cpu" if "cpu" in format_.devices else format_.devices[0]

    @property
    def components(self) -> Components:
        """What the format is made of, if it is composite."""
        assert self.format.components is not None
        return self.format.components

    def dtypes(self) -> list[str]:
        return preferred(self.format.holds(self.device))

    def trait_sets(self) -> list[frozenset[str]]:
        """Return no traits, and each of those alone for which there is a variant."""
        variants = self.format.samples.variants
        return [frozenset(), *(frozenset({trait}) for trait in variants)]

    def shapes(self) -> list[tuple[int, ...]]:
        return possible(_SHAPES, self.format.ndims)

    def even_shapes(self) -> list[tuple[int, ...]]:
        return possible(_EVEN_SHAPES, self.format.ndims)

    def recipe(
        self, shape: tuple[int, ...] = (3, 4), traits: frozenset[str] = frozenset()
    ) -> Recipe:
        density = 0.5 if self.format.is_sparse else 1.0
        return Recipe(self.name, self.dtypes()[0], shape, traits, self.device, density)

    def plain(self) -> tuple[Recipe, Value]:
        """Return a plain value of the first dtype and shape that works, with its recipe."""
        failure = NoSample(f"{self.name} holds nothing on {self.device}")
        for dtype in self.dtypes():
            for shape in self.shapes():
                recipe = self.recipe(shape)._replace(dtype=dtype)
                try:
                    return recipe, self.sample(recipe)
                except NoSample as reason:
                    failure = reason
        raise failure
