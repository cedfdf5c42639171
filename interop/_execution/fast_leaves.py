"""Fast leaves: the arrays of a tree, converted by the fast paths of their types, without a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from interop._model.typing import Value, ValueFunction
from interop._planning.cache import Calls, Case, Cases
from interop.errors import InteropError

from .fast_path import SMALL

#: Bytes of a batch. A device may need as many more for the time that it takes.
_BATCH = 2**28


def fast_leaves(leaves: Sequence[Value], cases: Cases, *, are_all: bool) -> Sequence[Value]:
    """Return the results of fast paths for leaves of a tree; `NotImplemented` for what has none.

    A leaf that occurs twice is converted once, but for Python's own numbers. Leaves that are the
    same elements in the same memory must get one copy. Two at one address are left to the planner,
    which knows whether they are the same, and so is all that is copied where an address is not
    known.

    Parameters
    ----------
    leaves : sequence
    cases : mapping of type to tuple of Case
        Those of the types of all `leaves`.
    are_all : bool
        Whether there are no other arrays in the tree.
    """
    if len({*map(id, leaves)}) == len(leaves):
        return _in_turn(leaves, cases, are_all)
    # One number may stand at many places; each gets an array of its own.
    keys = [
        ~place if type(leaf).__module__ == "builtins" else id(leaf)
        for place, leaf in enumerate(leaves)
    ]
    arrays = dict(zip(keys, leaves, strict=True))
    results = dict(zip(arrays, _in_turn([*arrays.values()], cases, are_all), strict=True))
    return [results[key] for key in keys]


def _in_turn(
    arrays: Sequence[Value], cases: Cases, are_all: bool, turn: int = 0
) -> Sequence[Value]:
    """Return the results for arrays that differ, each by the first case that takes it."""
    results = _results(arrays, cases, are_all, turn)
    taken = [
        place
        for place, result in enumerate(results)
        if result is NotImplemented and len(cases[type(arrays[place])]) > turn + 1
    ]
    if not taken:
        return results
    are_all = are_all and len(taken) == sum(result is NotImplemented for result in results)
    left = _in_turn([arrays[place] for place in taken], cases, are_all, turn + 1)
    made = dict(zip(taken, left, strict=True))
    return [made.get(place, result) for place, result in enumerate(results)]


def _results(
    arrays: Sequence[Value], all_cases: Cases, are_all: bool, turn: int
) -> Sequence[Value]:
    """Return the results for arrays that differ, by the cases of their types whose turn it is."""
    kinds = {*map(type, arrays)}
    if len(kinds) == 1:  # as nearly always
        case = all_cases[type(arrays[0])][turn]
        if case.address_of is None or (are_all and _are_apart(arrays, case.address_of)):
            return _mapped(case, arrays)
    cases = {kind: all_cases[kind][turn] for kind in kinds}
    results: list[Value] = [NotImplemented] * len(arrays)

    def convert(kind: type, places: Sequence[int]) -> None:
        """Put the results for arrays of a type into their places."""
        made = _mapped(cases[kind], [arrays[place] for place in places])
        for place, result in zip(places, made, strict=True):
            results[place] = result

    places = {kind: [n for n, x in enumerate(arrays) if type(x) is kind] for kind in kinds}
    copied = {kind: places.pop(kind) for kind in kinds if cases[kind].address_of is not None}
    for kind, own in places.items():
        convert(kind, own)
    # What a path that shares leaves out may have to be copied as well.
    shared = (results[place] for own in places.values() for place in own)
    if are_all and not any(result is NotImplemented for result in shared):
        for kind, own in _alone(arrays, copied, cases).items():
            convert(kind, own)
    return results


def _mapped(case: Case, arrays: Sequence[Value]) -> Sequence[Value]:
    path, calls = case.function, case.calls
    if path is None:
        return arrays
    try:
        if calls is not None and calls.batches:
            return _in_batches(calls, path, arrays)
        return [*map(path, arrays)]
    except InteropError:  # raised again by code that can say where in the tree it came up
        return [NotImplemented] * len(arrays)


def _in_batches(calls: Calls, path: ValueFunction, arrays: Sequence[Value]) -> Sequence[Value]:
    """Return the results for arrays, of which those with equal keys are converted at once."""
    by_key: dict[object, list[int]] = {}
    try:
        for place, array in enumerate(arrays):
            by_key.setdefault(calls.key_of(array), []).append(place)
    except Exception:  # noqa: BLE001 - the path asks each array for its key again
        return [*map(path, arrays)]
    results: list[Value] = [NotImplemented] * len(arrays)
    for key, places in by_key.items():
        for batch in batches([arrays[place].nbytes for place in places]):
            values = [arrays[places[n]] for n in batch]
            convert = calls.batches.get(key) if len(values) > 1 else None
            made = NotImplemented if convert is None else convert(values)
            if made is NotImplemented:
                made = map(path, values)
            for n, result in zip(batch, made, strict=True):
                results[places[n]] = result
    return results


def batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places of values that are converted at once, given the bytes of each.

    A large value is alone: it gains nothing.
    """
    places: list[int] = []
    room = _BATCH
    for place, nbytes in enumerate(sizes):
        if nbytes >= SMALL:
            yield [place]
            continue
        if nbytes > room:
            yield places
            places, room = [], _BATCH
        places.append(place)
        room -= nbytes
    if places:
        yield places


def _addresses(arrays: Iterable[Value], address_of: ValueFunction | None) -> list[int]:
    """Return where arrays begin; nothing if one has no address, or none is known."""
    try:
        return [address_of(array) for array in arrays] if callable(address_of) else []
    except (InteropError, RuntimeError):  # one has no memory of its own
        return []


def _are_apart(arrays: Sequence[Value], address_of: ValueFunction) -> bool:
    """Tell whether all arrays begin at addresses of their own."""
    addresses = _addresses(arrays, address_of)
    return bool(addresses) and len({*addresses}) == len(arrays)


def _alone(
    arrays: Sequence[Value], places: Mapping[type, list[int]], cases: Mapping[type, Case]
) -> Mapping[type, list[int]]:
    """Return the places of the arrays that share their address with no other.

    There are none if one address is unknown.
    """
    addresses: dict[int, int] = {}
    for kind, own in places.items():
        begins = _addresses((arrays[place] for place in own), cases[kind].address_of)
        if not begins:
            return {}
        addresses.update(zip(own, begins, strict=True))
    counts = Counter(addresses.values())
    return {
        kind: [place for place in own if counts[addresses[place]] == 1]
        for kind, own in places.items()
    }
