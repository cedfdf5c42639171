"""Memory: where the numbers of a value really lie, found out by writing there."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from interop._api.inspection import Inspection
from interop._model.spec import UNWRITABLE, Spec
from interop._model.typing import Value
from interop.errors import Declined

from ._sample import REFUSALS, NoSample, Recipe
from ._trial import sampled
from ._truth import Truth, same

if TYPE_CHECKING:
    from interop._api.interop import Interop

    from ._truth import Array

#: Addresses of blocks of memory, and their lengths in bytes.
_Extents = tuple[tuple[int, int], ...]


class Place(NamedTuple):
    """Where a value lies: its extents and a NumPy view, each None if it is not known."""

    extents: _Extents | None
    view: Value | None


class Memory:
    """Finds out whether two values share memory.

    Parameters
    ----------
    interop : Interop
    truth : Truth
    """

    def __init__(self, interop: Interop, truth: Truth) -> None:
        self._interop = interop
        self._inspection = Inspection(interop)
        self._registry = self._inspection.registry
        self._truth = truth

    def extents(self, value: Value, spec: Spec) -> _Extents | None:
        """Return the extents of a value's numbers on the host, or None if they are not known."""
        format_ = self._registry.formats[spec.format]
        if spec.device != "cpu" or format_.not_recoverable:
            return None
        if format_.name == self._truth.hub:
            return _extents(value)
        components = format_.components
        if components is not None and components.roles:
            role = next(iter(components.roles))
            try:
                numbers = components.unpack(value).arrays.get(role)
            except Declined:
                return None
            if numbers is None or role in components.unpack_copies:
                return None
            return self.extents(numbers, self._interop.spec(numbers))
        # Other sparse arrays also report the addresses of indices, which must not be changed.
        memory = None if format_.index_dtypes else format_.memory
        return None if memory is None else memory(value)

    def addresses_overlap(self, source: Value, result: Value) -> bool | None:
        """Return whether two values overlap, by the addresses they report; None if unknown."""
        for value in (source, result):
            spec = self._interop.spec(value)
            memory = self._registry.formats[spec.format].memory
            if memory is not None and spec.size and not memory(value):
                return None
        return self._inspection.shares_memory(source, result)

    def numbers_overlap(self, source: Value, result: Value) -> bool:
        """Return whether the numbers of two values overlap, indices left aside."""
        pair = [self.extents(value, self._interop.spec(value)) or () for value in (source, result)]
        return any(a < b + m and b < a + n for a, n in pair[0] for b, m in pair[1] if n and m)

    def is_written_through(self, source: Value, result: Value) -> bool | None:
        """Return whether a write into the memory of one value changes the other; None if unknown.

        The values must not be used afterwards.
        """
        for written, other in ((source, result), (result, source)):
            spec = self._interop.spec(written)
            extents = self.extents(written, spec)
            if not extents and self.can_fill(spec):
                return self._is_filled_through(written, spec, other)
            if not extents or not all(address > 0 < length for address, length in extents):
                continue
            before = self._truth.read(other)
            if before is None:
                return None
            with _zeroed(extents) as is_changed:
                after = self._truth.read(other)
                is_shown = after is None or not same(before.array, after.array)
                zeroed = None if is_shown else self._truth.read(written)
            whole = None if zeroed is None else self._truth.read(written)
            # What does not show in the value itself, as below a mask, tells nothing.
            is_hidden = zeroed and whole and same(zeroed.array, whole.array)
            if is_changed and not is_hidden:
                return is_shown
        return None

    def can_fill(self, spec: Spec) -> bool:
        """Return whether a format writes into such values on a device, where nobody else can."""
        fill = self._registry.formats[spec.format].fill
        return fill is not None and spec.device != "cpu" and not spec.traits & UNWRITABLE

    def _is_filled_through(self, written: Value, spec: Spec, other: Value) -> bool | None:
        fill = self._registry.formats[spec.format].fill
        mine, before = self._truth.read(written), self._truth.read(other)
        try:
            recipe = Recipe(spec.format, spec.dtype or "", spec.shape, device=spec.device, seed=1)
            fill(written, sampled(self._interop, recipe))  # type: ignore[misc]
        except (NoSample, *REFUSALS):
            return None
        now, after = self._truth.read(written), self._truth.read(other)
        if mine and now and same(mine.array, now.array):
            return None  # what was written was there before, as truth values may be
        return before and after and not same(before.array, after.array)

    @contextmanager
    def overwritten(self, value: Value, *, inner: bool = False) -> Iterator[bool]:
        """Change the numbers of a value inside the block; yield whether they have changed.

        With `inner` the first and the last quarter of its bytes stay as they are.
        """
        extents = self.extents(value, self._interop.spec(value)) or ()
        if inner:
            extents = tuple((address + n // 4, n // 2) for address, n in extents)
        is_possible = all(address > 0 for address, length in extents if length)
        with _zeroed(extents if is_possible else ()) as is_changed:
            yield is_changed

    def place(self, out: Value, numbers: Array) -> Place | None:
        """Return where a value lies before it is written into; None if it is not read well."""
        spec, reading = self._interop.spec(out), self._truth.read(out)
        if reading is None or not same(reading.array, numbers):
            return None
        try:
            route = self._interop.plan(out, self._truth.hub, copy=False)
            view = route(out) if route.zero_copy else None
        except REFUSALS:  # it shows its memory to nobody
            view = None
        extents = self.extents(out, spec)
        is_steady = extents == self.extents(out, spec)
        # A conversion that promises a view and copies is to blame for that itself.
        is_view = view is not None and same(view, numbers) and _lies_within(view, extents)
        return Place(extents if is_steady else None, view if is_view else None)

    def problem_of_writing(
        self, out: Value, place: Place, truth: Array, certain: Array | None = None
    ) -> str:
        """Return a problem if a value lies elsewhere since it was written into, or is not that."""
        after = self._truth.read(out)
        if after is None or not same(after.array, truth, certain):
            return "writes other numbers than it was given"
        extents = self.extents(out, self._interop.spec(out))
        if place.extents is not None and extents != place.extents:
            return "gives out other memory than it had, and writes there"
        if place.view is not None and not same(place.view, truth, certain):
            return "does not write into the memory of out"
        return ""

    def problem_of_addresses(self, value: Value) -> str:
        """Return a problem if a format reports addresses where the numbers do not lie."""
        spec = self._interop.spec(value)
        format_ = self._registry.formats[spec.format]
        name, memory = format_.name, format_.memory
        if memory is None or name == self._truth.hub or spec.device != "cpu":
            return ""
        if memory(value) != memory(value):
            return f"memory of format {name} reports other addresses every time"
        extents = self.extents(value, spec) or ()
        if any(address <= 0 < length for address, length in extents):
            return f"memory of format {name} reports an address where nothing can lie"
        if self._truth.is_misplaced(format_, value, spec):
            return f"memory of format {name} reports addresses a few bytes beside its numbers"
        read = self._truth.indirect(value, spec)
        if read is None or not any(length for _, length in extents):
            return ""
        before = read()
        with _zeroed(extents) as is_changed:
            after = read()
        if not is_changed or before is None or after is None:
            return ""
        if before.tobytes() == after.tobytes():
            return f"memory of format {name} reports addresses where its numbers do not lie"
        return ""


def _extents(array: Value) -> _Extents:
    import numpy as np

    if isinstance(array, np.generic) or not array.size:
        return ()
    low, high = np.lib.array_utils.byte_bounds(array)
    return ((int(low), int(high - low)),)


def _lies_within(array: Value, extents: _Extents | None) -> bool:
    """Return whether an array lies in memory that a value reports, or the value reports none."""
    return extents is None or all(
        any(start <= low and low + n <= start + length for start, length in extents)
        for low, n in _extents(array)
    )


@contextmanager
def _zeroed(extents: _Extents) -> Iterator[bool]:
    """Fill memory with zeros inside the block; yield whether that changes it.

    Zeros never ask for more memory, as another length of a run might.
    """
    views = [memoryview((ctypes.c_ubyte * n).from_address(at)).cast("B") for at, n in extents if n]
    kept = [view.tobytes() for view in views]
    for view in views:
        view[:] = bytes(len(view))
    try:
        yield any(numbers.strip(b"\0") for numbers in kept)
    finally:
        for view, numbers in zip(views, kept, strict=True):
            view[:] = numbers


def overwrite_freed(nbytes: int) -> list[object]:
    """Collect garbage, and fill blocks of a size that was just freed.

    The memory stays filled for as long as the result is kept.
    """
    import numpy as np

    gc.collect(1)  # the objects of this trial are young
    filler: list[object] = []
    for size in (nbytes, nbytes + 16, nbytes + 64):
        filler += [np.full(size, 0x5B, "u1") for _ in range(16)]
        filler += [bytearray(b"\x5b" * size) for _ in range(16)]
    return filler
