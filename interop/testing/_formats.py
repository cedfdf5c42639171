"""Formats: the promises of a format about its values, tried on samples."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from math import prod
from timeit import Timer
from typing import TYPE_CHECKING, Any, TypeGuard

from interop._model.conversion import Conversion
from interop._model.dtype import DTYPES, itemsize
from interop._model.effect import COPYING, EFFECTS
from interop._model.format import Format, itself
from interop._model.spec import (
    LABELLED,
    MEMORY_TRAITS,
    UNWRITABLE,
    Spec,
    in_any_order,
    shape_text,
    spec_class,
)
from interop._model.text import listed
from interop._model.typing import Value
from interop._planning.plan import StepDeclined
from interop._recognition.installed import not_installed
from interop.errors import (
    Declined,
    InteropError,
    PluginError,
    RefusedError,
    UnknownValueError,
)

from ._components import CompositeSubject
from ._memory import Memory
from ._notes import Notes
from ._sample import (
    REFUSALS,
    NoSample,
    Recipe,
    WrongSample,
    first_line,
    preferred,
    source_of,
)
from ._subject import Bench, Promise
from ._traits import problem_of_traits, silence
from ._trial import handed_over, possible, sampled, variants_of
from ._truth import Truth, numbers, same

if TYPE_CHECKING:
    from ._truth import Array

_SHAPES = ((3, 4), (5,), (), (0,), (2, 3, 4), (2, 1, 2, 1, 2))
#: The shape of a value of 2 MB or more, whose rows are few, since some formats have one for each.
_LARGE = (4, 150_000)
#: Shapes of variants: even lengths, for formats of blocks.
_EVEN_SHAPES = ((4, 6), (6,), (2, 4, 6))
#: How many times as long as describing a NumPy array it may take to describe a value, and how
#: many times as long as a small value a large one may take. The least time of several calls counts.
_SLOWER, _GROWTH, _CALLS = 500, 20, 20
#: Dtypes of less than a byte, which some frameworks pack.
_NARROW = re.compile(r"^(?:u?int|float)([1-7])(?:_|$)")
#: The types of what a wrapper may keep beside its array.
_PLAIN_TYPES = (bool, int, float, complex, str, type(None))
#: Traits of memory that others must know of, who write there or take strides.
_TELLING = ("readonly", "negative_strides", "broadcast", "noncontiguous")
#: Errors that mean a mistake in a function, not a refusal.
_MISTAKES = (AttributeError, LookupError, NameError, TypeError)
#: Traits that a value with a fast key may have, beside those of all plain ones.
_KEYED = frozenset({"grad", "noncontiguous", "fortran", "negative_strides", "weak"})
#: Variants that change the numbers of the value.
_OTHER_NUMBERS = frozenset({"broadcast", "scalar", "zero_tensor", "meta", "masked", "nested"})


def try_format(bench: Bench, promise: Promise, notes: Notes) -> None:
    """Try everything that one format promises, and note what becomes of it."""
    format_ = promise.format
    assert format_ is not None
    if problem := problem_of_traits(bench.registry, format_):
        notes.failed("extent", problem)
    if problem := not_installed(format_):
        notes.skipped(problem)
    else:
        _Format(bench, format_, notes).run(promise.checks)


class _Format:
    """One format under test."""

    def __init__(self, bench: Bench, format_: Format, notes: Notes) -> None:
        self._interop = bench.interop
        self._registry = bench.registry
        self._format = format_
        self._name = format_.name
        self._device = "cpu" if "cpu" in format_.devices else format_.devices[0]
        self._notes = notes
        self._truth = Truth(bench.interop)
        self._memory = Memory(bench.interop, self._truth)
        self._tried: set[str] = set()

    def run(self, checks: tuple[str, ...]) -> None:
        """Try all checks but those that have crashed before."""
        stages: dict[str, Callable[[], None]] = {
            "describe": self._describe,
            "memory": self._addresses,
            "variants": self._variants,
            "fast_path": self._fast_path,
            "fast_key": self._fast_key,
            "copy": self._copy,
            "components": self._components,
            "wrapper": self._wrapper,
            "labels": self._labels,
            "fill": self._fill,
            "extent": self._extent,
        }
        for check in checks:
            if not self._notes.wants(check):
                continue
            self._notes.tell(check, f"it was tried with {self._name}")
            try:
                stages[check]()
            except (NoSample, Declined) as reason:
                self._notes.skipped(reason, check)
            except REFUSALS as error:
                problem = f"{check} of format {self._name} fails: {type(error).__name__}: {error}"
                self._notes.failed(check, first_line(problem))

    def _dtypes(self) -> list[str]:
        return preferred(self._format.holds(self._device))

    def _trait_sets(self) -> list[frozenset[str]]:
        """Return no traits, and each of those alone for which there is a variant."""
        return [frozenset(), *map(_single, self._format.samples.variants)]

    def _shapes(self) -> list[tuple[int, ...]]:
        return possible(_SHAPES, self._format.ndims)

    def _even_shapes(self) -> list[tuple[int, ...]]:
        return possible(_EVEN_SHAPES, self._format.ndims)

    def _recipe(
        self, shape: tuple[int, ...] = (3, 4), traits: frozenset[str] = frozenset()
    ) -> Recipe:
        density = 0.5 if self._format.is_sparse else 1.0
        return Recipe(self._name, self._dtypes()[0], shape, traits, self._device, density)

    def _plain(self) -> tuple[Recipe, Value]:
        """Return a plain value of the first dtype and shape that works, with its recipe."""
        failure = NoSample(f"{self._name} holds nothing on {self._device}")
        for dtype in self._dtypes():
            for shape in self._shapes():
                recipe = self._recipe(shape)._replace(dtype=dtype)
                try:
                    return recipe, sampled(self._interop, recipe)
                except NoSample as reason:
                    failure = reason
        raise failure

    # ------------------------------------------------------------------ describe

    def _describe(self) -> None:
        import numpy as np

        self._compare_with_makers()
        self._describe_shared()
        mistake, describe = "", f"describe of format {self._name}"
        for shape in self._shapes():
            # Every dtype is described in the first shape, and one dtype in the others.
            for dtype in self._dtypes()[: 1 if self._tried else None]:
                recipe = self._recipe(shape)._replace(dtype=dtype)
                try:
                    value = sampled(self._interop, recipe)
                except NoSample as reason:
                    self._note_missing(reason)
                    mistake = mistake or _mistake(reason)
                    continue
                spec = self._interop.spec(value)
                self._tried |= {*spec.traits, spec.dtype or ""}
                self._notes.judge("describe", self._problem_of_bytes(spec))
                problem = f"takes more than {_SLOWER} times as long as that of numpy"
                is_slow = self._pace(value, np.empty((3, 4))) > _SLOWER
                self._notes.judge("describe", f"{describe} {problem}" * is_slow)
        self._describe_large()
        if mistake and self._format.samples.make and not self._tried:
            source = source_of(self._interop, self._format, len(shape))
            self._notes.failed("describe", f"samples.make fails on a value of {source}: {mistake}")

    def _describe_large(self) -> None:
        """Judge time and memory of describing a large array, which must not depend on its size."""
        is_array = self._format.is_dense and not self._format.not_recoverable
        # Tables, of two axes, are described column by column.
        if is_array and (self._format.ndims is None or {2, 3} <= self._format.ndims):
            with suppress(NoSample):
                small, large = (sampled(self._interop, self._recipe(s)) for s in ((3, 4), _LARGE))
                describe = f"describe of format {self._name}"
                # Its memory comes first: how long that takes depends on the machine.
                loads = self._allocated(large) > 0.5 * prod(_LARGE)  # half a byte an element
                problem = f"{describe} reads the numbers of a large value into memory"
                self._notes.judge("describe", problem * loads)
                is_slow = self._pace(large, small) > _GROWTH
                problem = f"{describe} takes more than {_GROWTH} times as long for a large value"
                self._notes.judge("describe", f"{problem} as for a small one" * is_slow)

    def _note_missing(self, reason: NoSample) -> None:
        """Note why a sample could not be made, which may be the fault of `describe`."""
        start = f"describe of format {self._name!r}"
        if start in str(reason):
            self._notes.failed("describe", start + str(reason).partition(start)[2])
        elif self._is_own(reason):
            maker = "samples.make" if self._format.samples.make else "what makes a sample"
            self._notes.failed("describe", _contradiction(maker, reason))
        else:
            self._notes.skipped(reason, "describe")

    def _is_own(self, reason: NoSample) -> TypeGuard[WrongSample]:
        """Return whether a sample of this format is described as something else."""
        return isinstance(reason, WrongSample) and reason.recipe.format == self._name

    def _pace(self, value: Value, reference: Value) -> float:
        """Return how many times as long as a reference it takes to describe a value.

        The two are described in turn, and the least time of each counts, because a busy machine
        can only add to it.
        """
        values = (value, reference)
        timers = [Timer(partial(self._interop.spec, described)) for described in values]
        rounds = [[timer.timeit(1) for timer in timers] for _ in range(_CALLS)]
        return min(own for own, _ in rounds) / min(other for _, other in rounds)

    def _allocated(self, value: Value) -> int:
        """Return how many bytes Python and NumPy allocate to describe a value."""
        tracemalloc.start()
        try:
            self._interop.spec(value)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def _extent(self) -> None:
        """Note which dtypes and traits of the format no sample had."""
        declared = {*self._format.dtypes, *self._format.carries}
        declared |= LABELLED if self._format.labels else set()
        self._notes.judge_extent((declared - self._tried) | self._constant())

    def _constant(self) -> set[str]:
        """Return the attributes that wrappers have and that are the same in all samples.

        A wrapper may keep a scale or a unit in them, and nothing tells whether it is kept.
        """
        if self._format.wrapper is None:
            return set()
        constants: dict[str, set[str]] = {}
        for traits in self._trait_sets():
            with suppress(NoSample):
                value = sampled(self._interop, self._plain()[0]._replace(traits=traits))
                for name, field in getattr(value, "__dict__", {}).items():
                    if not name.startswith("_") and isinstance(field, _PLAIN_TYPES):
                        constants.setdefault(name, set()).add(repr(field))
        return {f"another {name}" for name, fields in constants.items() if len(fields) == 1}

    def _problem_of_bytes(self, spec: Spec) -> str:
        format_, element = self._format, spec.element
        if not format_.is_dense or format_.not_recoverable or element not in DTYPES:
            return ""
        nbytes = prod(spec.shape) * itemsize(element)
        narrow = _NARROW.search(element or "")
        packed = nbytes if narrow is None else -(-prod(spec.shape) * int(narrow[1]) // 8)
        if packed <= spec.nbytes <= nbytes:
            return ""
        return f"describe of format {self._name} says {spec.nbytes} bytes of {spec}, not {nbytes}"

    def _compare_with_makers(self) -> None:
        """Compare the descriptions of results with their numbers, without trusting the former."""
        for value, truth, dtype, maker in self._made():
            self._judge_description(value, truth, dtype, maker)

    def _made(self) -> Iterator[tuple[Value, Array, str, str]]:
        """Yield what conversions from NumPy make: values, with their numbers, dtypes and makers."""
        if self._format.not_recoverable or self._name == self._truth.hub:
            return
        dtypes = self._dtypes()[:2]
        for dtype, declared in product(dtypes, self._registry.conversions):
            conversion = declared.conversion
            if not self._is_maker(conversion, dtype):
                continue
            ndims = self._format.ndims if conversion.ndims is None else conversion.ndims
            axes = 2 if ndims is None or 2 in ndims else min(ndims)
            truth = numbers(Recipe(self._name, dtype, (3, 4, 2)[:axes], full=True))
            try:
                value = conversion.function(truth)
            except REFUSALS:  # found where the conversion is tried
                continue
            yield value, truth, dtype, conversion.label

    def _is_maker(self, conversion: Conversion, dtype: str) -> bool:
        """Return whether a conversion turns plain arrays of a dtype into this format."""
        is_offered = conversion.dtypes is None or dtype in conversion.dtypes
        return is_offered and _is_plain(conversion, self._truth.hub, self._name)

    def _judge_description(self, value: Value, truth: Array, dtype: str, maker: str) -> None:
        name, shape = self._name, truth.shape
        spec = self._spec_or_error(value)
        facts = (name, dtype, "cpu", shape)
        if isinstance(spec, PluginError):
            self._notes.failed("describe", str(spec))
            return
        if isinstance(spec, UnknownValueError):
            kind = f"{type(value).__module__}:{type(value).__qualname__}"
            problem = f"{maker} made a value of the type {kind!r}, which interop does not recognise"
            self._notes.failed("describe", f"{problem}; types names {listed(self._format.types)}")
            return
        if isinstance(spec, Spec) and (spec.format, spec.dtype, spec.device, spec.shape) == facts:
            return
        for array in self._truth.other_readings(value, self._format):
            if array.dtype == truth.dtype and same(array, truth):
                self._notes.failed(
                    "describe",
                    f"describe of format {name} says {spec} of what {maker} made, which reads back "
                    f"as {name} {dtype} {shape} on cpu",
                )

    def _describe_shared(self) -> None:
        """Judge how values are described over memory that is locked, or laid out oddly.

        What reads a value shows whether the value could tell.
        """
        conversions = [declared.conversion for declared in self._registry.conversions]
        readers = [c.function for c in conversions if _is_plain(c, self._name, self._truth.hub)]
        makers = [c.function for c in conversions if _is_plain(c, self._truth.hub, self._name)]
        for trait, make, read in product(_TELLING, makers, readers):
            with suppress(NoSample, *REFUSALS):
                if self._is_hidden(trait, make, read):
                    self._notes.failed("describe", silence(self._name, trait))

    def _is_hidden(self, trait: str, make: Callable[..., Any], read: Callable[..., Any]) -> bool:
        """Return whether a value is read as memory with a trait that its description leaves out."""
        recipe = self._plain()[0]._replace(format=self._truth.hub)
        plain, value = (
            make(sampled(self._interop, recipe._replace(traits=t)))
            for t in (frozenset(), _single(trait))
        )
        if trait in self._interop.spec(read(plain)).traits:
            return False  # which says nothing of the memory of the value
        shown, traits = self._interop.spec(read(value)).traits, self._interop.spec(value).traits
        is_told = trait in traits or (trait == "readonly" and "immutable" in traits)
        shares = self._memory.addresses_overlap(value, read(value))
        return trait in shown and not is_told and bool(shares)

    def _spec_or_error(self, value: Value) -> Spec | InteropError:
        try:
            return self._interop.spec(value)
        except InteropError as error:
            return error

    # ------------------------------------------------------------------ memory

    def _addresses(self) -> None:
        assert self._format.memory is not None
        _, value = self._plain()
        problem = self._memory.problem_of_addresses(value)
        extents = self._format.memory(value)
        spec = self._interop.spec(value)
        if not extents and not problem:
            self._notes.skipped(f"{self._name} reports no address of {spec}", "memory")
            return
        length = sum(nbytes for _, nbytes in extents)
        if not problem and self._format.is_dense and length < spec.nbytes:
            problem = f"memory of format {self._name} reports {length} of the {spec.nbytes} bytes"
        self._notes.judge("memory", problem)

    # ------------------------------------------------------------------ variants

    def _variants(self) -> None:
        # A variant of its components is no promise of the format's: it may lay them out anew.
        promised = (*handed_over(self._registry, self._format), *self._format.samples.variants)
        for trait in promised:
            failures: list[NoSample] = []
            outcomes = [self._variant(trait, shape, failures) for shape in self._even_shapes()]
            if any(outcomes):
                continue
            problem = next(filter(None, map(partial(self._fault, trait), failures)), "")
            if problem:
                self._notes.failed("variants", problem)
            else:
                self._notes.skipped([*failures, "it holds nothing on the host"][0], "variants")

    def _variant(self, trait: str, shape: tuple[int, ...], failures: list[NoSample]) -> bool:
        """Make a variant in the first dtype that works, and tell whether there is one."""
        for dtype in self._dtypes():
            recipe = self._recipe(shape)._replace(dtype=dtype)
            odd = recipe._replace(traits=_single(trait))
            try:
                value = sampled(self._interop, odd)
            except NoSample as reason:
                failures.append(self._without_traits(recipe) or reason)
                if failures[-1] is reason and self._is_own(reason) and reason.field != "traits":
                    text = _contradiction(f"variants[{trait!r}]", reason)
                    self._notes.failed("variants", text)
                continue
            self._tried |= self._interop.spec(value).traits
            self._notes.judge("variants", self._problem_of_variant(trait, odd, value))
            return True
        return False

    def _without_traits(self, recipe: Recipe) -> NoSample | None:
        """Return why there is no plain value either, which is no fault of a variant."""
        try:
            sampled(self._interop, recipe)
        except NoSample as reason:
            return NoSample(str(reason))
        return None

    def _fault(self, trait: str, failure: NoSample) -> str:
        """Name the function of the plugin that is at fault for a variant that cannot be made."""
        if self._is_own(failure) and failure.field == "traits" and self._format.describe:
            return silence(self._name, trait)
        mistake = _mistake(failure)
        return f"variants[{trait!r}] fails: {mistake}" if mistake else ""

    def _problem_of_variant(self, trait: str, recipe: Recipe, value: Value) -> str:
        if trait in _OTHER_NUMBERS or self._format.layout == "affine":
            return ""
        reading = self._truth.read(value)
        # Conversions that misread the value are found where they are tried.
        if reading is None or reading.by or same(reading.array, numbers(recipe)):
            return ""
        return f"a value of {self._name} that is {trait!r} holds other numbers"

    # ------------------------------------------------------------------ fast path and copy

    def _fast_path(self) -> None:
        """Call the fast path with finished values and with odd ones."""
        format_ = self._format
        assert format_.fast_path is not None
        first = format_._replace(types=(format_.types[0] if format_.types else "",))
        for traits in self._trait_sets():
            try:
                value = sampled(self._interop, self._recipe(self._even_shapes()[0], traits))
            except NoSample as reason:
                self._notes.skipped(reason, "fast_path")
                continue
            if not self._registry.recognition.is_plain(type(value), first):
                continue
            spec = self._interop.spec(value)
            result = format_.fast_path(value)
            is_finished = spec.format == self._name and spec.traits <= in_any_order(format_.carries)
            problem = ""
            if result is not NotImplemented and result is not value:
                problem = f"does not return {spec} itself"
            elif result is value and not is_finished:
                problem = f"returns {spec} as it is, which is not a finished value"
            subject = f"the fast path of format {self._name}"
            self._notes.judge("fast_path", problem and f"{subject} {problem}")

    def _fast_key(self) -> None:
        """Compare the keys of values with different plans, and of odd values."""
        assert self._format.fast_key is not None
        shape, traits = self._even_shapes()[0], self._format.samples.variants
        recipes = [self._recipe(shape, _single(trait)) for trait in traits]
        plain = product(self._shapes(), self._dtypes())
        recipes += [self._recipe(shape)._replace(dtype=dtype) for shape, dtype in plain]
        specs: dict[object, Spec] = {}
        usual = _KEYED | self._interop.spec(self._plain()[1]).traits
        for recipe in recipes:
            try:
                value = sampled(self._interop, recipe)
            except NoSample as reason:
                self._notes.skipped(reason, "fast_key")
                continue
            spec, kind = self._interop.spec(value), type(value)
            key = self._format.fast_key(value)
            if key is None or not self._registry.recognition.is_plain(kind, self._format):
                continue
            other = specs.setdefault((kind, key), spec)
            is_odd = bool(spec.traits - usual) and not self._format.is_table
            problem = f"gives {spec} a key, although it is not plain" if is_odd else ""
            if spec_class(other) != spec_class(spec):
                problem = f"gives {other} and {spec} the same key"
            address, memory = self._format.advanced.address, self._format.memory
            if address is not None and memory is not None and memory(value) and spec.nbytes:
                begins = address(value) == memory(value)[0][0]
                problem = problem or ("" if begins else f"begins elsewhere than at address({spec})")
            self._notes.judge("fast_key", problem and f"fast_key of format {self._name} {problem}")

    def _copy(self) -> None:
        """Convert a value to its own format, as it is and as a copy."""
        interop, name = self._interop, self._name
        recipe, value = self._plain()
        if problem := self._problem_of_labels(interop.spec(value), recipe):
            self._notes.failed("copy", problem)
        try:
            for copy in (None, False):
                if interop.convert(value, name, copy=copy) is not value:
                    problem = f"a value of {name} is not returned as it is with copy={copy}"
                    self._notes.failed("copy", problem)
            route = interop.plan(value, name, copy=True, allow=frozenset(EFFECTS) - COPYING)
            way = f"copy=True by {' → '.join(step.label for step in route.steps)}"
            self._notes.tell("copy", f"{way} was tried")
            copied = route(value)
        except (RefusedError, StepDeclined) as reason:
            self._notes.skipped(reason, "copy")
            return
        before, after = self._truth.read(value), self._truth.read(copied)
        shares = self._memory.addresses_overlap(value, copied)
        spec = interop.spec(copied)
        problem = ""
        if shares and spec.size and not self._format.not_recoverable:
            problem = "returns a value that shares memory with its source"
        elif before and after and not same(before.array, after.array):
            problem = "returns other numbers"
        elif "readonly" in spec.traits:
            problem = "returns a value that cannot be written"
        elif shares is None and before is None:
            self._notes.skipped(f"{name} does not tell where its numbers lie", "copy")
            return
        self._notes.judge("copy", problem and f"{way} {problem}")

    def _problem_of_labels(self, plain: Spec, recipe: Recipe) -> str:
        """Return a problem if plain values can be copied or cast, and values with labels cannot."""
        if self._format.labels is None:
            return ""
        labelled = plain._replace(traits=plain.traits | LABELLED)
        if self._is_lost(plain, labelled, copy=True):
            return self._lack("copies", "effects={'copy'}")
        # A framework may have labels that this format does not have.
        with suppress(NoSample):
            labelled = self._interop.spec(sampled(self._interop, recipe._replace(traits=LABELLED)))
            dtypes = (dtype for dtype in self._dtypes() if dtype != plain.dtype)
            if any(self._is_lost(plain, labelled, dtype=dtype) for dtype in dtypes):
                return self._lack("casts", "changes={'dtype'}, effects={'copy'}")
        return ""

    def _is_lost(self, plain: Spec, labelled: Spec, **request: Any) -> bool:
        """Return whether a request is refused only because a value has labels."""
        return self._is_planned(plain, **request) and not self._is_planned(labelled, **request)

    def _is_planned(self, spec: Spec, **request: Any) -> bool:
        try:
            self._interop.plan(spec, self._name, **request)
        except RefusedError:
            return False
        return True

    def _lack(self, verb: str, fields: str) -> str:
        """Return the problem that a format with labels lacks a step within its framework."""
        name, framework = self._name, self._format.framework
        return (
            f"{name} has labels, so that routes of values with labels do not leave {framework}, "
            f"and no step there {verb} them; register Conversion({name!r}, {name!r}, …, {fields})"
        )

    # ------------------------------------------------------------------ components

    def _components(self) -> None:
        subject = CompositeSubject(self._interop, self._format)
        self._tried |= subject.examine(self._plain()[0], self._notes)

    # ------------------------------------------------------------------ wrapper

    def _wrapper(self) -> None:
        """Unwrap a plain value and one with labels, and wrap what was in them again."""
        wrapper = self._format.wrapper
        assert wrapper is not None
        for value, truth, _, maker in self._made():
            array = wrapper.unwrap(value)
            reading = None if array is None else self._truth.read(array)
            if reading is not None and not same(reading.array, truth):
                problem = f"unwrap of {self._name} returns other numbers than {maker} was given"
                self._notes.failed("wrapper", problem)
        for recipe in (self._plain()[0]._replace(traits=one) for one in self._trait_sets()):
            try:
                value = sampled(self._interop, recipe)
            except NoSample as reason:
                self._notes.skipped(reason, "wrapper")
                continue
            self._notes.judge("wrapper", self._problem_of_wrapped(recipe, value))

    def _problem_of_wrapped(self, recipe: Recipe, value: Value) -> str:
        wrapper, labels = self._format.wrapper, self._format.labels
        assert wrapper is not None
        array = wrapper.unwrap(value)
        if array is None:  # it is not loaded yet
            return ""
        spec, kind = self._interop.spec(value), f"a value of {self._name}"
        kind += f" that is {', '.join(sorted(recipe.traits))}" if recipe.traits else ""
        before = self._truth.read(array)
        has_numbers = recipe.traits.isdisjoint(_OTHER_NUMBERS)
        if before and has_numbers and not same(before.array, numbers(recipe)):
            return f"unwrap of {kind} returns other numbers than those of the value"
        if labels is None or not labels.present(value):
            return ""
        again = labels.give(self._interop.convert(array, self._name), value)
        after = self._interop.spec(again)
        if after != spec:
            return f"give of the labels of {kind} makes {after}, and the value was {spec}"
        inner = self._truth.read(wrapper.unwrap(again))
        if before and inner and not same(before.array, inner.array):
            return f"give of the labels of {kind} changes the numbers"
        return ""

    # ------------------------------------------------------------------ labels

    def _labels(self) -> None:
        """Give a plain value the labels of another."""
        labels, recipe = self._format.labels, self._plain()[0]
        assert labels is not None
        like = sampled(self._interop, recipe._replace(traits=LABELLED))
        value = sampled(self._interop, recipe._replace(seed=1))
        before = self._truth.read(value)
        given = labels.give(value, like)
        spec, after = self._interop.spec(given), self._truth.read(given)
        problem = ""
        if not spec.traits >= LABELLED:
            problem = f"makes {spec}, which has none"
        elif before and after and not same(before.array, after.array):
            problem = "changes the numbers"
        elif self._memory.addresses_overlap(value, given) is False:
            problem = "copies the numbers"
        subject = f"give of the labels of format {self._name}"
        self._notes.judge("labels", problem and f"{subject} {problem}")

    # ------------------------------------------------------------------ fill

    def _fill(self) -> None:
        """Write into values in every order of memory, and from values in every order."""
        recipe, value = self._plain()
        variants = variants_of(self._registry, self._format)
        orders = [_single(trait) for trait in variants if trait in MEMORY_TRAITS - _OTHER_NUMBERS]
        recipes = [recipe._replace(traits=traits) for traits in orders]
        outs = [out for other in (recipe, *recipes) for out in self._writable(other)]
        if not outs:
            msg = f"no value of {self._name} that can be made may be written into"
            raise NoSample(msg)
        for out in outs:
            self._judge_fill(out, value)
        for other in recipes:
            with suppress(NoSample):
                value = sampled(self._interop, other)
                self._judge_fill(self._writable(recipe)[0], value)

    def _writable(self, recipe: Recipe) -> list[Value]:
        """Return the first value that may be ``out=``: a sample as it is, or a variant of it."""
        try:
            value = sampled(self._interop, recipe._replace(seed=1))
        except NoSample:
            return []
        variants = self._format.samples.variants.items()
        for variant in (itself, *(make for trait, make in variants if trait in MEMORY_TRAITS)):
            with suppress(*REFUSALS):
                out = variant(value)
                if not self._interop.spec(out).traits & UNWRITABLE:
                    return [out]
        return []

    def _judge_fill(self, out: Value, value: Value) -> None:
        assert self._format.fill is not None
        spec = self._interop.spec(out)
        written = numbers(self._plain()[0])
        earlier = numbers(self._plain()[0]._replace(seed=1))
        place = self._memory.place(out, earlier)
        if place is None:
            self._notes.skipped(f"the numbers of {spec} are not read as they were made", "fill")
            return
        self._format.fill(out, value)
        problem = self._memory.problem_of_writing(out, place, written)
        self._notes.judge(
            "fill", problem and f"fill of format {self._name} {problem} (out is {spec})"
        )


def _is_plain(conversion: Conversion, source: str, target: str) -> bool:
    """Return whether a conversion turns plain values of one format into another."""
    is_plain = not (conversion.requires or conversion.changes or conversion.result.bits)
    return is_plain and (conversion.source, conversion.target) == (source, target)


def _single(trait: str) -> frozenset[str]:
    return frozenset({trait})


def _contradiction(maker: str, wrong: WrongSample) -> str:
    """Say how the result of a plugin's function contradicts the plugin's `describe`."""
    field, spec, recipe = wrong.field, wrong.spec, wrong.recipe
    actual, requested = getattr(spec, field), getattr(recipe, field)
    if field == "shape":
        actual, requested = shape_text(actual), shape_text(requested)
    return (
        f"{maker} returned {field} {actual}, as describe has it, for a sample of {requested}; "
        f"a {'variant' if recipe.traits else 'sample'} keeps the {field}"
    )


def _mistake(failure: NoSample) -> str:
    """Return the error of a function with a mistake in it; "" if it only refused."""
    error = failure.__cause__
    is_mistake = isinstance(error, _MISTAKES) and not isinstance(error, InteropError)
    return f"{type(error).__name__}: {first_line(error)}" if is_mistake else ""
