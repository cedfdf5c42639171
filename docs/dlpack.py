"""Whose DLPack keeps its promises to whom: every producer with every consumer.

``python -m docs.dlpack`` tries all pairs and prints them; ``--store`` writes them into the
reference, and draws the picture of twelve cases; ``--producer NAME`` tries those of one producer. A
library that is not installed is left out, and named.
"""

from __future__ import annotations

import argparse
import datetime as dt
import platform
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from interop.testing._conformance.library import Library, numbers
from interop.testing._conformance.producer import DTYPES, LAYOUTS, Produced
from interop.testing._conformance.rules import shown
from interop.testing._libraries import _version
from interop.testing._process import Say, Worker, WorkerEnded

from . import outcomes

STORED = Path(__file__).parent / "reference" / "_dlpack.md"
CASES = (*LAYOUTS, *(dtype for dtype in DTYPES if dtype != "float32"))
RIGHT, REFUSED, WRONG, ENDS = "right", "refused", "wrong", "ends the process"
#: The outcomes of a pair, the worst first.
OUTCOMES = (ENDS, WRONG, REFUSED, RIGHT)
_PATIENCE = 180.0


class Party(NamedTuple):
    """A library with its DLPack, and its name as a target of interop, if it has one.

    Parameters
    ----------
    library : Library
    to : str
        What `interop.convert` calls it; "" if it is no target.
    produces, consumes : bool
        Whether its arrays export, and whether it has a consumer.
    """

    library: Library
    to: str = ""
    produces: bool = True
    consumes: bool = True


def _party(module: str, to: str = "", make: str = "", take: str = "", **has: bool) -> Party:
    return Party(Library(module, make, take), to, **has)


PARTIES = {
    "NumPy": _party("numpy", "numpy"),
    "torch": _party("torch", "torch"),
    "JAX": _party("jax.numpy", "jax"),
    "TensorFlow": _party(
        "tensorflow",
        "tensorflow",
        make="tensorflow:constant",
        take="docs.dlpack:into_tensorflow",
    ),
    "MLX": _party("mlx.core", "mlx"),
    "array-api-strict": _party("array_api_strict", "array_api_strict"),
    "PyArrow": _party(
        "pyarrow",
        "pyarrow.tensor",
        make="docs.dlpack:pyarrow_array",
        take="pyarrow:Tensor.from_dlpack",
    ),
    "ONNX Runtime": _party(
        "onnxruntime",
        "onnxruntime",
        make="onnxruntime:OrtValue.ortvalue_from_numpy",
        take="onnxruntime:OrtValue.from_dlpack",
    ),
    "TVM FFI": _party("tvm_ffi", make="tvm_ffi:from_dlpack"),
    "Warp": _party("warp", make="warp:array", take="docs.dlpack:into_warp"),
    "Paddle": _party("paddle", make="docs.dlpack:paddle_tensor"),
    "Awkward": _party("awkward", "awkward", produces=False),
}


def pyarrow_array(array: Any) -> Any:
    """Return Arrow's array of one axis, which alone exports."""
    import pyarrow as pa

    return pa.array(array)


def paddle_tensor(array: Any) -> Any:
    """Return Paddle's tensor of an array; it would take integers of 16 bits for bfloat16."""
    import paddle

    if array.dtype == "uint16":
        raise TypeError("Paddle has no uint16")
    return paddle.to_tensor(array)


def into_tensorflow(value: Any) -> Any:
    """Give TensorFlow's consumer, which takes capsules, the capsule of a producer."""
    from tensorflow.experimental.dlpack import from_dlpack

    return from_dlpack(value.__dlpack__())


def into_warp(value: Any) -> Any:
    """Give Warp's consumer a producer, once Warp has been started."""
    import warp

    warp.init()
    return warp.from_dlpack(value)


def installed() -> dict[str, Party]:
    """Return the parties whose modules are here."""
    return {name: party for name, party in PARTIES.items() if _is_here(party.library.name)}


def _is_here(module: str) -> bool:
    return find_spec(module.partition(".")[0]) is not None


class Pair(NamedTuple):
    """What became of the cases of a producer and a consumer.

    Parameters
    ----------
    producer, consumer : str
    by : str
        ``"from_dlpack"`` or ``"interop"``.
    outcomes : dict of str to (str, str)
        By case, one of `OUTCOMES` and its reason; cases that the producer lacks are left out.
    """

    producer: str
    consumer: str
    by: str
    outcomes: dict[str, tuple[str, str]]

    @property
    def worst(self) -> str:
        """The worst outcome; "" if there is none."""
        found = {outcome for outcome, _ in self.outcomes.values()}
        return next((outcome for outcome in OUTCOMES if outcome in found), "")

    def cell(self) -> str:
        """Return the numbers of the outcomes, the worst first, as a cell shows them."""
        counts = {o: sum(found == o for found, _ in self.outcomes.values()) for o in OUTCOMES}
        parts = [f"{count} {outcome}" for outcome, count in counts.items() if count]
        text = ", ".join(parts) or "—"
        return f"**{text}**" if self.worst in (ENDS, WRONG) else text


def pairs(
    producer: str, consumers: Collection[str] = PARTIES, cases: Iterable[str] = CASES
) -> Iterator[Pair]:
    """Try arrays of a producer with consumers, and with interop."""
    with Worker("docs.dlpack:answer") as worker:
        for consumer, party in installed().items():
            ways = ["from_dlpack"] * party.consumes + ["interop"] * bool(party.to)
            for by in ways if consumer in consumers else ():
                questions = ([producer, consumer, by, case] for case in cases)
                yield Pair(producer, consumer, by, dict(_outcomes(worker, questions)))


def _outcomes(
    worker: Worker, questions: Iterable[list[str]]
) -> Iterator[tuple[str, tuple[str, str]]]:
    for question in questions:
        worker.send(question)
        try:
            outcome, reason = worker.answer(_PATIENCE)
        except WorkerEnded as end:
            outcome, reason = ENDS, str(end)
        if outcome:
            yield question[-1], (outcome, reason)


def answer(question: list[str], say: Say) -> None:
    """Try one case in this process."""
    producer, consumer, by, case = question
    party = PARTIES[consumer]
    if _is_here("paddle"):  # to import it after TensorFlow ends the process
        import_module("paddle")
    try:
        made = Produced(PARTIES[producer].library, case)
    except Exception as error:  # noqa: BLE001 - the producer has no such array
        say(["", shown(error)])
        return
    say(_outcome(made, _consumer(party, by)))


@cache
def _consumer(party: Party, by: str) -> Any:
    if by == "from_dlpack":
        return party.library.consumer()
    import interop

    module = party.library.name
    target: Any = sys.modules.get(module) if party.to == module else party.to
    return lambda value: interop.convert(value, to=target or __import__(module))


def _outcome(made: Produced, consume: Callable[[Any], Any]) -> tuple[str, str]:
    import numpy as np

    try:
        result = consume(made.value)
    except Exception as error:  # noqa: BLE001 - of a library that is looked at
        return REFUSED, shown(error)
    try:
        read = _read(result)
    except Exception as error:  # noqa: BLE001 - of a library that is looked at
        return WRONG, f"the result cannot be read: {shown(error)}"
    expected = made.expected
    if read.shape != expected.shape:
        return WRONG, f"the shape is {read.shape}, not {expected.shape}"
    if not np.array_equal(read.astype("complex128"), expected.astype("complex128")):
        return WRONG, f"the numbers are {read.tolist()}, not {expected.tolist()}"
    return RIGHT, ""


def _read(result: Any) -> Any:
    """Return the numbers of a result: of dtypes that a library cannot read itself, by interop."""
    import interop

    try:
        return interop.convert(result, to="numpy")
    except interop.errors.InteropError:
        return numbers(result)


def page(tried: list[Pair]) -> str:
    """Return the tables in Markdown, and below them each case that is wrong."""
    parties = installed()
    versions = ", ".join(f"{name} {_version(p.library.name)}" for name, p in parties.items())
    missing = [name for name in PARTIES if name not in parties]
    left_out = f" Not installed there: {', '.join(missing)}." if missing else ""
    head = (
        f"Tried on {dt.date.today()} with Python {platform.python_version()} on "
        f"{platform.system()}, on the host: {versions}.{left_out}"
    )
    parts = [head, "", "## By the consumer's `from_dlpack`", "", _matrix(tried, "from_dlpack")]
    parts += ["", "## By `interop.convert`", "", _matrix(tried, "interop"), ""]
    parts += ["## What is wrong", "", _faults(tried), ""]
    return "\n".join(parts)


def _matrix(tried: list[Pair], by: str) -> str:
    cells = {(p.producer, p.consumer): p.cell() for p in tried if p.by == by}
    producers = list(dict.fromkeys(producer for producer, _ in cells))
    consumers = list(dict.fromkeys(consumer for _, consumer in cells))
    heads = ["from, to", *consumers]
    rows = [[name, *(cells.get((name, c), "—") for c in consumers)] for name in producers]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _faults(tried: list[Pair]) -> str:
    """Return a row for each outcome of a pair, with the cases that share it."""
    rows = ["| from | to | by | what happens | with |", "| --- | --- | --- | --- | --- |"]
    for pair in tried:
        reasons: dict[str, list[str]] = {}
        for case, (outcome, reason) in pair.outcomes.items():
            if outcome in (ENDS, WRONG):
                reasons.setdefault(f"{outcome}: {reason}", []).append(case)
        rows += [
            f"| {pair.producer} | {pair.consumer} | `{pair.by}` | {_plain(reason)} | "
            f"{', '.join(cases)} |"
            for reason, cases in reasons.items()
        ]
    return "\n".join(rows)


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("[", "\\[")


def main() -> None:
    """Print the tables, or store and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="store_true", help=f"write {STORED.name}")
    parser.add_argument("--producer", choices=sorted(PARTIES), help="try this one alone")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    producers = [options.producer] if options.producer else list(installed())
    tried: list[Pair] = []
    for producer in producers:
        if PARTIES[producer].produces:
            print(producer, file=sys.stderr)
            tried += pairs(producer)
    text = page(tried)
    if options.store:
        STORED.write_text(text)
        shown = outcomes.chosen(tried)
        outcomes.STORED.write_text(outcomes.table(shown))
        outcomes.draw(shown, outcomes.PICTURE)
    else:
        print(text)


if __name__ == "__main__":
    main()
