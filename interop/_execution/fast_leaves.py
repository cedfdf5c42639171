"""Fast leaves: the arrays of a tree, converted by the fast paths of their types, without a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from interop._model.typing import Value, ValueFunction
from interop._planning.plan import Plan
from interop.errors import InteropError

from .fast import SMALL, Fast

#: Bytes of a batch. A device may need as many more for the time that it takes.
_BATCH = 2**28


def fast_leaves(leaves: Sequence[Value], learnt: Mapping[type, Fast]) -> Sequence[Value]:
    """Return the results of fast paths for leaves of a tree; `NotImplemented` for what has none.

    A leaf that occurs twice is converted once, but for Python's own numbers. Leaves of one type
    that are the same elements in the same memory must get one copy. Two at one address are left to
    the planner, which knows whether they are the same, and so is all that is copied where an
    address is not known.

    Parameters
    ----------
    leaves : sequence
    learnt : mapping of type to Fast
    """
    kinds = {*map(type, leaves)}
    if len(kinds) == 1 and kinds <= learnt.keys():  # as nearly always
        fast = learnt[type(leaves[0])]
        return _of_one_type(leaves, fast, fast.parts)
    results: list[Value] = [NotImplemented] * len(leaves)
    for kind in kinds & learnt.keys():
        indices = [index for index, leaf in enumerate(leaves) if type(leaf) is kind]
        _put(
            results,
            indices,
            _of_one_type([leaves[index] for index in indices], learnt[kind], learnt[kind].parts),
        )
    return results


def _put(results: list[Value], indices: Iterable[int], made: Iterable[Value]) -> None:
    for index, result in zip(indices, made, strict=True):
        results[index] = result


def _of_one_type(leaves: Sequence[Value], fast: Fast, parts: Sequence[Any]) -> Sequence[Value]:
    """Return the results for leaves, each by the first case that takes it."""
    # One number may stand at many indices; each gets an array of its own.
    if len({*map(id, leaves)}) < len(leaves) and type(leaves[0]).__module__ != "builtins":
        arrays = {id(leaf): leaf for leaf in leaves}
        made = dict(zip(arrays, _of_one_type([*arrays.values()], fast, parts), strict=True))
        return [made[id(leaf)] for leaf in leaves]
    results = _by_part(leaves, fast, *parts[0])
    if len(parts) > 1:
        indices = [index for index, result in enumerate(results) if result is NotImplemented]
        if indices:
            results = [*results]
            _put(results, indices, _of_one_type([leaves[n] for n in indices], fast, parts[1:]))
    return results


def _by_part(arrays: Sequence[Value], fast: Fast, path: Any, address_of: Any) -> Sequence[Value]:
    """Return the results for arrays; `NotImplemented` where two are at one address and copied."""
    if address_of is None:
        return _mapped(path, arrays)
    addresses = _addresses(arrays, address_of)
    if len({*addresses}) == len(arrays):  # as nearly always
        return _mapped(path, arrays, fast)
    counts = Counter(addresses)
    results: list[Value] = [NotImplemented] * len(arrays)
    indices = [index for index, address in enumerate(addresses) if counts[address] == 1]
    _put(results, indices, _mapped(path, [arrays[index] for index in indices], fast))
    return results


def _mapped(path: Any, arrays: Sequence[Value], fast: Fast | None = None) -> Sequence[Value]:
    if path is None:
        return arrays
    try:
        if fast is not None and fast.batches:
            return _in_batches(fast, path, arrays)
        return [*map(path, arrays)]
    except InteropError:  # raised again by code that can say where in the tree it came up
        return [NotImplemented] * len(arrays)


def _in_batches(fast: Fast, path: ValueFunction, arrays: Sequence[Value]) -> Sequence[Value]:
    """Return the results for arrays, of which those with one kind of plan are converted at once."""
    by_key: dict[object, list[int]] = {}
    try:
        for index, array in enumerate(arrays):
            by_key.setdefault(fast.key_of(array), []).append(index)
    except Exception:  # noqa: BLE001 - the path asks each array for its key again
        return [*map(path, arrays)]
    results: list[Value] = [NotImplemented] * len(arrays)
    at_once: dict[object, tuple[Plan, list[int]]] = {}
    for key, indices in by_key.items():
        plan = fast.batches.get(key)
        if plan is None:
            _put(results, indices, map(path, [arrays[index] for index in indices]))
        elif plan._batch_verified:  # else the leaves are left to be compared with their plans
            at_once.setdefault(plan._key, (plan, []))[1].extend(indices)
    for plan, indices in at_once.values():
        assert plan._batch is not None
        for batch in batches([arrays[index].nbytes for index in indices]):
            values = [arrays[indices[n]] for n in batch]
            made = plan._batch(values) if len(values) > 1 else NotImplemented
            made = map(path, values) if made is NotImplemented else made
            _put(results, [indices[n] for n in batch], made)
    return results


def batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indices of values that are converted at once, given the bytes of each.

    A large value is alone: it gains nothing.
    """
    indices: list[int] = []
    room = _BATCH
    for index, nbytes in enumerate(sizes):
        if nbytes >= SMALL:
            yield [index]
            continue
        if nbytes > room:
            yield indices
            indices, room = [], _BATCH
        indices.append(index)
        room -= nbytes
    if indices:
        yield indices


def _addresses(arrays: Iterable[Value], address_of: ValueFunction) -> list[int]:
    """Return where arrays begin; nothing if one has no address, or none is known."""
    try:
        return [address_of(array) for array in arrays] if callable(address_of) else []
    except (InteropError, RuntimeError):  # one has no memory of its own
        return []
