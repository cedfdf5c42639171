"""The table of every pair of formats: what a conversion does, tried with real data.

``python -m docs.pairs`` prints it, ``--store`` writes it into the reference. A test makes the table
again and compares.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import interop
from interop._calibration.sample import NoSample, Recipe, sample
from interop._execution.trace import shares_memory
from interop._model.format import Format, common_axes
from interop.errors import InteropError, RefusedError

STORED = Path(__file__).parent / "reference" / "_pairs.md"

_MEMORY = {True: "shared", False: "its own", None: "unknown"}


class Pair(NamedTuple):
    """What happens to one pair.

    Parameters
    ----------
    source, target : str
    effects : str
        Of the route, in order of their names; "refused" if there is none.
    memory : str
        Whether the result shares memory with the value.
    back : str
        Whether converting back gives the same value, bit for bit.
    """

    source: str
    target: str
    effects: str
    memory: str = ""
    back: str = ""


def pairs(formats: list[Format]) -> Iterator[Pair]:
    """Convert a value of every format to every other, and back."""
    for source in formats:
        for target in formats:
            if source is not target:
                yield _tried(source, target)


def _tried(source: Format, target: Format) -> Pair:
    names = source.name, target.name
    axes = common_axes(source, target)
    try:
        if axes is None:
            raise NoSample("they never have the same number of axes")
        value = small_value(source, axes)
        before = numbers(value)
        route = interop.plan(value, to=target.name)
        result = interop.convert(value, to=target.name)
    except (NoSample, RefusedError):
        return Pair(*names, "refused")
    shared = shares_memory(interop.default._registry, value, result)
    assert shared is None or shared == route.aliases, f"{names}: planned {route.aliases}, {shared}"
    assert np.array_equal(numbers(result), before), f"{names}: the numbers differ"
    assert np.array_equal(numbers(value), before), f"{names}: the value has changed"
    effects = ", ".join(f"`{effect}`" for effect in sorted(route.effects)) or "none"
    return Pair(*names, effects, _MEMORY[route.aliases], _back(value, result, source.name))


def _back(value: Any, result: Any, source: str) -> str:
    """Convert a result back to its source, and say whether it is the same."""
    try:
        again = interop.convert(result, to=source)
    except RefusedError:
        return "refused"
    before, after = interop.spec(value), interop.spec(again)
    is_same = (before.dtype, before.shape) == (after.dtype, after.shape)
    is_same = is_same and bits(again) == bits(value)
    return "the same" if is_same else f"as {after.dtype}"


def small_value(format_: Format, axes: int) -> Any:
    """Return a small value of a format; a sparse one leaves out zeros."""
    dtypes = format_.holds("cpu")
    dtype = "float32" if "float32" in dtypes else min(dtypes)
    shape = {0: (), 1: (12,), 2: (3, 4)}.get(axes, (1,) * (axes - 2) + (3, 4))
    density = 0.5 if format_.index_dtypes else 1.0
    return sample(interop.default, Recipe(format_.name, dtype, shape, density=density))


def numbers(value: Any) -> Any:
    """Return the numbers a value stands for."""
    return np.asarray(interop.convert(value, to="numpy", allow="narrow"))


def bits(value: Any) -> bytes:
    """Return the bits of the numbers a value stands for."""
    return bytes(numbers(value).tobytes())


def available() -> list[Format]:
    """Return the formats of which this machine can make a value on the host."""
    formats = []
    for declared in interop.formats():
        format_ = declared.format
        describable = "cpu" in format_.devices and format_.describe is not None
        if declared.state == "missing" or not describable:
            continue
        try:
            axes = common_axes(format_)
            small_value(format_, 2 if axes is None else axes)
        except (NoSample, InteropError):
            continue
        formats.append(format_)
    return sorted(formats, key=lambda format_: format_.name)


def rendered(results: list[Pair]) -> str:
    """Return the pairs as Markdown: a table for each source, with a row for targets of one kind."""
    lines = ["<!-- Written by `python -m docs.pairs --store`. -->", ""]
    reached = {pair.target for pair in results if pair.effects != "refused"}
    rows = [pair for pair in results if pair.target in reached]
    for source, group in groupby(rows, key=lambda pair: pair.source):
        lines += [f"## From {source}", "", "| to | effects | memory | and back |"]
        lines += ["| --- | --- | --- | --- |"]
        kinds: dict[tuple[str, str, str], list[str]] = {}
        for pair in group:
            kinds.setdefault((pair.effects, pair.memory, pair.back), []).append(pair.target)
        for (effects, memory, back), targets in sorted(kinds.items(), key=_order):
            names = ", ".join(f"`{name}`" for name in targets)
            lines.append(f"| {names} | {effects} | {memory} | {back} |")
        lines.append("")
    return "\n".join(lines)


def _order(kind: tuple[tuple[str, str, str], list[str]]) -> tuple[bool, int, str]:
    effects = kind[0][0]
    return effects == "refused", 0 if effects == "none" else effects.count("`"), effects


def table() -> str:
    """Return the table as this machine makes it now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # frameworks warn on import
        return rendered(list(pairs(available())))


def main() -> None:
    """Print the table, or store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="store_true", help=f"write it to {STORED.name}")
    if parser.parse_args().store:
        STORED.write_text(table())
    else:
        print(table())


if __name__ == "__main__":
    main()
