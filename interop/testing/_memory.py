"""Memory: where a value really lies, seen by writing there."""

from __future__ import annotations

import ctypes
import gc
from typing import TYPE_CHECKING, Any

from interop._execution.trace import shares_memory
from interop._model.spec import Spec
from interop.errors import Declined

from ._truth import Truth, same

if TYPE_CHECKING:
    from interop._api.interop import Interop

__all__ = ["Memory", "overwrite_freed"]

_Extents = tuple[tuple[int, int], ...]


class Memory:
    """Finds out whether two values share memory.

    Parameters
    ----------
    face : Interop
    truth : Truth
    """

    def __init__(self, face: Interop, truth: Truth) -> None:
        self._face = face
        self._registry = face._loaded()
        self._truth = truth

    def extents(self, value: Any, spec: Spec) -> _Extents | None:
        """Return where the numbers of a value lie on the host, or None if nobody tells."""
        one = self._registry.formats[spec.format]
        if spec.device != "cpu" or one.forgets:
            return None
        if one.name == self._truth.hub:
            return _of_array(value)
        if one.unpack is not None and one.roles:
            role = next(iter(one.roles))
            try:
                values = one.unpack(value).arrays.get(role)
            except Declined:
                return None
            if values is None or role in one.unstacks:
                return None
            return self.extents(values, self._face.spec(values))
        # Among the addresses of other sparse arrays are those of indices, which had better stay.
        return None if one.memory is None or one.index_dtypes else one.memory(value)

    def pointers_overlap(self, source: Any, result: Any) -> bool | None:
        """Tell whether two values overlap by the addresses that their formats tell, if they do."""
        for value in (source, result):
            spec = self._face.spec(value)
            memory = self._registry.formats[spec.format].memory
            if memory is not None and spec.size and not memory(value):
                return None
        return shares_memory(self._registry, source, result)

    def numbers_overlap(self, source: Any, result: Any) -> bool:
        """Tell whether the numbers of two values overlap, whatever their indices do."""
        one, other = (self.extents(v, self._face.spec(v)) or () for v in (source, result))
        return any(a < b + m and b < a + n for a, n in one for b, m in other if n and m)

    def is_written_through(self, source: Any, result: Any) -> bool | None:
        """Tell whether a write into the memory of one shows in the other; None if none is known.

        The values are of no use afterwards.
        """
        for one, other in ((source, result), (result, source)):
            extents = self.extents(one, self._face.spec(one))
            if not extents or not all(address > 0 < length for address, length in extents):
                continue
            before = self._truth.read(other)
            if before is None:
                return None
            _flip(extents)
            after = self._truth.read(other)
            _flip(extents)
            return after is None or not same(before.array, after.array)
        return None

    def problem_of_addresses(self, value: Any) -> str:
        """Say so if the addresses that a format tells are not where a value's numbers lie."""
        spec = self._face.spec(value)
        one = self._registry.formats[spec.format]
        if one.memory is None or one.name == self._truth.hub or spec.device != "cpu":
            return ""
        if one.memory(value) != one.memory(value):
            return f"memory of format {one.name} gives other addresses every time"
        extents = self.extents(value, spec)
        if any(address <= 0 < length for address, length in extents or ()):
            return f"memory of format {one.name} tells an address where nothing can lie"
        reader = self._truth.indirect(value, spec)
        if not any(length for _, length in extents or ()) or reader is None:
            return ""
        assert extents
        before = reader()
        _flip(extents)
        after = reader()
        _flip(extents)
        if before is not None and after is not None and before.tobytes() == after.tobytes():
            return f"memory of format {one.name} tells addresses where its numbers are not"
        return ""


def _of_array(value: Any) -> _Extents:
    import numpy as np

    if isinstance(value, np.generic) or not value.size:
        return ()
    low, high = np.lib.array_utils.byte_bounds(value)
    return ((int(low), int(high - low)),)


def _flip(extents: _Extents) -> None:
    """Change the lowest bit of every byte; twice is as it was."""
    for address, length in extents:
        memory = (ctypes.c_ubyte * length).from_address(address)
        view = memoryview(memory).cast("B")
        number = int.from_bytes(view, "little") ^ int.from_bytes(b"\1" * length, "little")
        view[:] = number.to_bytes(length, "little")


def overwrite_freed(nbytes: int) -> list[Any]:
    """Collect what is unreachable, and fill memory of a size that was just freed with rubbish."""
    import numpy as np

    gc.collect(1)  # what this trial has made is young
    rubbish: list[Any] = []
    for near in (nbytes, nbytes + 16, nbytes + 64):
        rubbish += [np.full(near, 0x5B, "u1") for _ in range(16)]
        rubbish += [bytearray(b"\x5b" * near) for _ in range(16)]
    return rubbish
