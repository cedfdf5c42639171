"""Formats: what a format promises about its values, tried on samples of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any

from interop._calibration.sample import NoSample, Wanted
from interop._execution.runner import Halt
from interop._model.dtype import DTYPES, itemsize
from interop._model.effect import COPYING, EFFECTS
from interop._model.format import Format, itself
from interop._model.spec import MEMORY_TRAITS, Spec
from interop._registry.installed import importable
from interop.errors import Declined, InteropError, RefusedError

from ._memory import Memory
from ._notes import Notes
from ._subject import Bench, Promise
from ._trial import sampled
from ._truth import REFUSALS, Truth, numbers, same

__all__ = ["try_format"]

_SHAPES = ((3, 4), (5,), (), (0,), (2, 3, 4))
_PREFERRED = ("float32", "float64", "int64", "complex64", "uint8", "bool", "bfloat16")
#: Dtypes of less than a byte, of which some frameworks put several into one.
_NARROW = re.compile(r"^(u?int|float)[1-7](_|$)")
#: Variants whose numbers are not those of the value they were made from.
_OTHER_NUMBERS = frozenset({"broadcast", "scalar", "zero_tensor", "meta", "masked"})


def try_format(bench: Bench, promise: Promise, notes: Notes, skip: frozenset[str]) -> None:
    """Try everything that one format promises.

    Parameters
    ----------
    bench : Bench
    promise : Promise
    notes : Notes
    skip : frozenset of str
        Checks that have ended the process before.
    """
    one = promise.format
    assert one is not None
    if one.requires and not importable(one.requires):
        notes.skipped(f"{one.requires} is not installed")
    elif "cpu" not in one.devices:
        notes.skipped(f"{one.name} does not live on the host")
    else:
        _Format(bench, one, notes).run(skip, promise.checks)


class _Format:
    """One format under test."""

    def __init__(self, bench: Bench, one: Format, notes: Notes) -> None:
        self._bench = bench
        self._one = one
        self._notes = notes
        self._truth = Truth(bench.face)
        self._memory = Memory(bench.face, self._truth)

    def run(self, skip: frozenset[str], checks: tuple[str, ...]) -> None:
        """Try all checks but those that have ended the process."""
        stages: dict[str, Callable[[], None]] = {
            "describe": self._describe,
            "memory": self._addresses,
            "variants": self._variants,
            "identity": self._identity,
            "copy": self._copy,
            "components": self._components,
            "fill": self._fill,
        }
        for check in checks:
            if check in skip:
                continue
            self._notes.tell(check, f"it was tried with {self._one.name}")
            try:
                stages[check]()
            except (NoSample, Declined) as reason:
                self._notes.skipped(reason, check)
            except REFUSALS as error:
                said = f"{check} of format {self._one.name} fails: {type(error).__name__}: {error}"
                self._notes.failed(check, said.partition("\n")[0])

    def _dtypes(self) -> list[str]:
        rank = {dtype: place for place, dtype in enumerate(_PREFERRED)}
        return sorted(self._one.holds("cpu"), key=lambda d: (rank.get(d, len(rank)), d))

    def _wanted(self, shape: tuple[int, ...] = (3, 4), **facts: Any) -> Wanted:
        density = 0.5 if self._one.index_dtypes else 1.0
        return Wanted(self._one.name, self._dtypes()[0], shape, density=density, **facts)

    def _plain(self) -> tuple[Wanted, Any]:
        """Return a plain value, of the first shape and dtype of which one can be made."""
        reason = NoSample(f"{self._one.name} holds nothing on the host")
        for dtype in self._dtypes():
            for shape in _SHAPES:
                wanted = self._wanted(shape)._replace(dtype=dtype)
                try:
                    return wanted, sampled(self._bench.face, wanted)
                except NoSample as error:
                    reason = error
        raise reason

    # ------------------------------------------------------------------ describe

    def _describe(self) -> None:
        self._hold_descriptions_against_makers()
        for shape in _SHAPES:
            for dtype in self._dtypes() if shape == _SHAPES[0] else self._dtypes()[:1]:
                wanted = self._wanted(shape)._replace(dtype=dtype)
                try:
                    value = sampled(self._bench.face, wanted)
                except NoSample as reason:
                    self._notes.skipped(reason, "describe")
                    continue
                self._notes.judge("describe", self._problem_of_bytes(self._bench.face.spec(value)))

    def _problem_of_bytes(self, spec: Spec) -> str:
        one = self._one
        # What only its framework can make it may store as it likes.
        if not one.is_dense or one.forgets or one.sample or spec.element not in DTYPES:
            return ""
        nbytes = prod(spec.shape) * itemsize(spec.element)
        packed = nbytes > spec.nbytes and _NARROW.search(spec.element or "") is not None
        if packed or spec.nbytes == nbytes:
            return ""
        return f"describe of format {one.name} says {spec.nbytes} bytes of {spec}, not {nbytes}"

    def _hold_descriptions_against_makers(self) -> None:
        """Describe what comes straight from a conversion, and read it without being told of it."""
        one, registry = self._one, self._bench.registry
        if one.forgets or one.name == self._truth.hub:
            return
        dtype = self._dtypes()[0]
        for declared in registry.conversions:
            step = declared.conversion
            plain = not (step.requires or step.changes or step.bits)
            if not plain or (step.source, step.target) != (self._truth.hub, one.name):
                continue
            if step.dtypes is not None and dtype not in step.dtypes:
                continue
            ndims = one.ndims if step.ndims is None else step.ndims
            axes = 2 if ndims is None or 2 in ndims else min(ndims)
            truth = numbers(Wanted(one.name, dtype, (3, 4, 2)[:axes], full=True))
            try:
                value = step.function(truth)
            except REFUSALS:  # which is found out where it is tried
                continue
            self._judge_description(value, truth, dtype, step.label)

    def _judge_description(self, value: Any, truth: Any, dtype: str, maker: str) -> None:
        spec = registry_spec(self._bench, value)
        wanted = (self._one.name, dtype, "cpu", truth.shape)
        if isinstance(spec, Spec) and (spec.format, spec.dtype, spec.device, spec.shape) == wanted:
            return
        for array in self._truth.other_readings(value, self._one):
            if array.dtype == truth.dtype and same(array, truth):
                name, dtype, device, shape = wanted
                self._notes.failed(
                    "describe",
                    f"describe of format {self._one.name} says {spec} of what {maker} made and "
                    f"what reads back as {name} {dtype} {shape} on {device}",
                )

    # ------------------------------------------------------------------ memory

    def _addresses(self) -> None:
        one = self._one
        assert one.memory is not None
        _, value = self._plain()
        problem = self._memory.problem_of_addresses(value)
        extents = one.memory(value)
        spec = self._bench.face.spec(value)
        length = sum(nbytes for _, nbytes in extents)
        if not extents and not problem:
            self._notes.skipped(f"{one.name} tells no address of {spec}", "memory")
            return
        if problem:
            pass
        elif one.is_dense and length < spec.nbytes:
            problem = f"memory of format {one.name} tells {length} of the {spec.nbytes} bytes"
        self._notes.judge("memory", problem)

    # ------------------------------------------------------------------ variants

    def _variants(self) -> None:
        for trait in self._one.variants:
            self._variant(trait)

    def _variant(self, trait: str) -> None:
        face = self._bench.face
        reason: object = ""
        for dtype in self._dtypes():
            for shape in ((4, 4), (6,)):
                wanted = self._wanted(shape, traits=frozenset({trait}))._replace(dtype=dtype)
                try:
                    value = sampled(face, wanted)
                except NoSample as error:
                    reason = reason or error
                    if self._one.describe is not None and "lacks" in str(error):
                        said = f"describe of format {self._one.name} does not say that a value is"
                        self._notes.failed("variants", f"{said} {trait!r}, which it was made to be")
                    continue
                self._notes.judge("variants", self._problem_of_variant(trait, wanted, value))
                return
        self._notes.skipped(reason, "variants")

    def _problem_of_variant(self, trait: str, wanted: Wanted, value: Any) -> str:
        if trait in _OTHER_NUMBERS or self._one.layout == "affine":
            return ""
        reading = self._truth.read(value)
        # Whether a conversion reads it well is found out where that is tried.
        if reading is None or reading.by or same(reading.array, numbers(wanted)):
            return ""
        return f"a value of {self._one.name} that is {trait!r} holds other numbers"

    # ------------------------------------------------------------------ identity and copy

    def _identity(self) -> None:
        one = self._one
        assert one.identity is not None
        kind = one.types[0] if one.types else ""
        odd = [frozenset[str](), *(frozenset({trait}) for trait in one.variants)]
        for traits in odd:
            wanted = self._wanted((4, 4))._replace(traits=traits)
            try:
                value = sampled(self._bench.face, wanted)
            except NoSample as reason:
                self._notes.skipped(reason, "identity")
                continue
            if not self._bench.registry.is_plain(type(value), one._replace(types=(kind,))):
                continue
            spec = self._bench.face.spec(value)
            kept = one.identity(value)
            finished = spec.format == one.name and spec.traits <= one.carries
            problem = ""
            if kept is not NotImplemented and kept is not value:
                problem = f"identity of format {one.name} does not return {spec} itself"
            elif kept is value and not finished:
                problem = f"identity of format {one.name} keeps {spec}, which is not finished"
            self._notes.judge("identity", problem)

    def _copy(self) -> None:
        """Ask for a value as it is, and for a copy of it."""
        face, one = self._bench.face, self._one
        _, value = self._plain()
        try:
            for copy in (None, False):
                if face.convert(value, one.name, copy=copy) is not value:
                    said = f"a value of {one.name} is not returned as it is with copy={copy}"
                    self._notes.failed("copy", said)
            route = face.plan(value, one.name, copy=True, allow=EFFECTS.keys() - COPYING)
            copied = route(value)
        except (RefusedError, Halt) as reason:
            self._notes.skipped(reason, "copy")
            return
        before, after = self._truth.read(value), self._truth.read(copied)
        shared = self._memory.pointers_overlap(value, copied)
        spec = face.spec(copied)
        problem = ""
        steps = " → ".join(step.label for step in route.steps)
        if shared and spec.size and not one.forgets:
            problem = f"copy=True by {steps} gives a value that shares memory with its source"
        elif before and after and not same(before.array, after.array):
            problem = f"copy=True by {steps} gives other numbers"
        elif "readonly" in spec.traits:
            problem = f"copy=True by {steps} gives a value that cannot be written"
        elif shared is None and before is None:
            self._notes.skipped(f"{one.name} does not tell where it lies", "copy")
            return
        self._notes.judge("copy", problem)

    # ------------------------------------------------------------------ components

    def _components(self) -> None:
        one = self._one
        assert one.unpack is not None
        assert one.pack is not None
        wanted, value = self._plain()
        parts = one.unpack(value)
        spec = self._bench.face.spec(value)
        self._notes.judge("components", self._problem_of_parts(parts, spec))
        whole = one.pack(one.unpack(value))
        again = self._bench.face.spec(whole)
        before, after = self._truth.read(value, spec), self._truth.read(whole, again)
        problem = ""
        if (again.format, again.dtype, again.shape) != (spec.format, spec.dtype, spec.shape):
            problem = f"{one.name} taken apart and put together is {again}, and was {spec}"
        elif before and after and not same(before.array, after.array):
            problem = f"{one.name} taken apart and put together holds other numbers"
        self._notes.judge("components", problem)
        self._hand_over(wanted)

    def _problem_of_parts(self, parts: Any, spec: Spec) -> str:
        one, face = self._one, self._bench.face
        if parts.shape != spec.shape:
            return f"unpack of {one.name} gives the shape {parts.shape} for {spec.shape}"
        for role, array in parts.arrays.items():
            named = one.roles.get(role) or one.roles.get(role.partition("_")[0])
            if array is None:
                continue
            if named is None:
                return f"unpack of {one.name} gives the role {role!r}, which it does not declare"
            got = face.spec(array)
            dtype = getattr(spec, named) if named in Spec._fields else named
            if one.layout == "affine" and role != next(iter(one.roles)):
                dtype = None  # parameters are small, and handed over as they are
            if got.format != one.components:
                return f"unpack of {one.name} gives {role} as {got.format}, not {one.components}"
            if dtype is not None and got.dtype != dtype:
                return f"unpack of {one.name} gives {role} as {got.dtype}, not {dtype}"
            if not got.traits <= self._bench.registry.formats[got.format].carries | MEMORY_TRAITS:
                return f"unpack of {one.name} gives {role} as {got}"
        return ""

    def _hand_over(self, wanted: Wanted) -> None:
        """Convert to every format of the same layout, and back."""
        face, one = self._bench.face, self._one
        for other in list(self._bench.registry.formats.values()):
            alike = other.layout == one.layout and other is not one and "cpu" in other.devices
            if not alike or (other.requires and not importable(other.requires)):
                continue
            value = sampled(face, wanted)
            before = self._truth.read(value)
            try:
                route = face.plan(value, other.name)
                result = route(value)
                back = face.convert(result, one.name)
            except RefusedError:
                continue
            except InteropError as error:
                said = f"{one.name} fails on its way to {other.name}, or back: {error}"
                self._notes.failed("components", said.partition("\n")[0])
                continue
            after, again = self._truth.read(result), self._truth.read(back)
            steps = " → ".join(step.label for step in route.steps)
            problem = ""
            if before and after and not same(before.array, after.array):
                problem = f"{steps} gives other numbers than it was given"
            elif before and again and not same(before.array, again.array):
                problem = f"{other.name} to {one.name} gives other numbers than it was given"
            self._notes.judge("components", problem)

    # ------------------------------------------------------------------ fill

    def _fill(self) -> None:
        one, face = self._one, self._bench.face
        assert one.fill is not None
        wanted, value = self._plain()
        place = self._writable(sampled(face, wanted._replace(seed=1)))
        one.fill(place, value)
        before, after = self._truth.read(value), self._truth.read(place)
        problem = ""
        if before is None or after is None:
            self._notes.skipped(f"the numbers of {one.name} cannot be read", "fill")
            return
        if not same(before.array, after.array):
            problem = f"fill of format {one.name} writes other numbers than it was given"
        self._notes.judge("fill", problem)

    def _writable(self, place: Any) -> Any:
        """Return a place that ``out=`` may be, or else a variant of it that may."""
        face = self._bench.face
        for made in (itself, *self._one.variants.values()):
            found = made(place)
            if not face.spec(found).traits & {"readonly", "immutable"}:
                return found
        msg = f"no value of {self._one.name} that can be made may be written into"
        raise NoSample(msg)


def registry_spec(bench: Bench, value: Any) -> Spec | InteropError:
    """Return how a value is described, or what is said instead."""
    try:
        return bench.face.spec(value)
    except InteropError as error:
        return error
