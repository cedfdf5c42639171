"""The table of every pair of formats: what a conversion does, tried with real data.

``python -m docs.pairs`` prints it, ``--store`` writes it into the reference. A test makes the table
again and compares.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import interop
from interop._api.inspection import Inspection
from interop._cli.notation import common_axes
from interop._model.format import Format
from interop.errors import InteropError, RefusedError
from interop.testing._sample import NoSample, Recipe, sample

STORED = Path(__file__).parent / "reference" / "_pairs.md"

#: The effects of the route, the memory of the result, and what converting back gives.
Kind = tuple[str, ...]


class Pair(NamedTuple):
    """The result of trying one pair.

    Parameters
    ----------
    source, target : str
    effects : str
        Of the route, in order of their names; "refused" if there is none.
    memory : str
        Whether the result shares memory with the value, in part if it consists of several arrays.
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
    shared = Inspection(interop.default).shares_memory(value, result)
    assert shared in {None, route.aliases}, f"{names}: planned {route.aliases}, {shared}"
    assert np.array_equal(numbers(result), before), f"{names}: the numbers differ"
    assert np.array_equal(numbers(value), before), f"{names}: the value has changed"
    effects = ", ".join(f"`{effect}`" for effect in sorted(route.effects)) or "none"
    memory = _memory(route, seen=shared is not None)
    return Pair(*names, effects, memory, _back(value, result, source.name))


def _memory(route: interop.Plan, *, seen: bool) -> str:
    """Say whether a result shares memory; `seen` if the addresses of both are known."""
    if not route.aliases:
        return "its own"
    if route.zero_copy:
        return "shared"
    # Some of several arrays are copied; or only the value knows whether it shares its own.
    return "shared in part" if seen else "perhaps shared"


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
    """Return the pairs as Markdown: data to look one up in, and a table for each framework."""
    reached = {pair.target for pair in results if pair.effects != "refused"}
    rows = [pair for pair in results if pair.target in reached]
    lines = ["<!-- Written by `python -m docs.pairs --store`. -->", "", *_data(rows)]
    targets_of: dict[str, dict[Kind, list[str]]] = {}
    for pair in rows:
        kinds = targets_of.setdefault(pair.source, {})
        kinds.setdefault(pair[2:], []).append(pair.target)
    for framework, sources in groupby(targets_of, key=_framework):
        lines += ["", f"<details><summary>From {framework}</summary>", ""]
        lines += _tables({source: targets_of[source] for source in sources}, reached)
        lines.append("</details>")
    return "\n".join([*lines, ""])


def _framework(name: str) -> str:
    return name.partition(".")[0]


def _data(rows: list[Pair]) -> list[str]:
    """Return the lines that hold every pair, as JSON in a script that runs nothing."""
    kinds = list(dict.fromkeys(pair[2:] for pair in rows))
    targets = list(
        dict.fromkeys(pair.target for pair in sorted(rows, key=lambda pair: pair.target))
    )
    places = {(pair.source, pair.target): kinds.index(pair[2:]) for pair in rows}
    table = {
        source: [places.get((source, target)) for target in targets]
        for source in dict.fromkeys(pair.source for pair in rows)
    }
    plain = [[text.replace("`", "") for text in kind] for kind in kinds]
    document = {"targets": targets, "kinds": plain, "pairs": table}
    text = json.dumps(document, separators=(",", ":")).replace("],", "],\n")
    return ["```{raw} html", f'<script type="application/json" id="pairs">{text}</script>', "```"]


def _tables(sources: dict[str, dict[Kind, list[str]]], reached: set[str]) -> Iterator[str]:
    """Yield the lines of the tables of one framework, one table for formats that do the same."""
    alike: dict[str, list[str]] = {}
    for source, kinds in sources.items():
        rows = [
            f"| {_abbreviated(targets, reached - {source})} | {' | '.join(kind)} |"
            for kind, targets in sorted(kinds.items(), key=_order)
        ]
        alike.setdefault("\n".join(rows), []).append(source)
    for rows, names in alike.items():
        yield f"From {', '.join(f'`{name}`' for name in names)}:"
        yield from (
            "",
            "| to | effects | memory | and back |",
            "| --- | --- | --- | --- |",
            rows,
            "",
        )


def _abbreviated(targets: list[str], reached: set[str]) -> str:
    """Return names of formats, with a star for all those of a framework."""
    names = []
    for framework, group in groupby(targets, key=_framework):
        members = list(group)
        every = {name for name in reached if _framework(name) == framework}
        names += [f"{framework}.*"] if len(every) > 1 and every == set(members) else members
    return ", ".join(f"`{name}`" for name in names)


def _order(kind: tuple[Kind, list[str]]) -> tuple[bool, int, str]:
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
