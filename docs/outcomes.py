"""What becomes of values that people convert: by the usual statement, and with interop.

``python -m docs.outcomes`` tries them all and prints a table; ``--store`` writes it into the
reference, and draws it. A test tries them again and compares.
"""

from __future__ import annotations

import argparse
import multiprocessing
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import interop
from interop.errors import RefusedError

STORED = Path(__file__).parent / "reference" / "_outcomes.md"
PICTURE = STORED.with_name("outcomes.png")

#: What can become of a value, and the colour of each.
COLOURS = {
    "shares": "#2a9d5c",
    "copies": "#4c8fd1",
    "refuses, says why": "#e0a82e",
    "raises an error": "#c0504d",
    "loses the mask": "#7b1e3a",
    "a write crashes": "#7b1e3a",
    "ends the process": "#7b1e3a",
}


class Case(NamedTuple):
    """A value, what people write to convert it, and the target.

    Parameters
    ----------
    name : str
    make : callable
        Returns the value.
    statement : str
        What people write; the value is ``x``.
    to : str
        The target for interop.
    """

    name: str
    make: Callable[[], Any]
    statement: str
    to: str


def _readonly() -> Any:
    return np.frombuffer(b"\0" * 32, "float64")


def cases() -> list[Case]:
    """Return the cases, the plainest first."""
    import pandas as pd
    import scipy.sparse as sp
    import torch

    matrix = sp.random_array((4, 5), density=0.5, format="csr", rng=np.random.default_rng(0))
    by_numpy, from_numpy = "x.numpy()", "torch.from_numpy(x)"
    return [
        Case("torch tensor → NumPy", lambda: torch.ones(3), by_numpy, "numpy"),
        Case("… that requires grad", lambda: torch.ones(3).requires_grad_(), by_numpy, "numpy"),
        Case("… of bfloat16", lambda: torch.ones(3, dtype=torch.bfloat16), by_numpy, "numpy"),
        Case("… conjugated", lambda: torch.ones(3, dtype=torch.cfloat).conj(), by_numpy, "numpy"),
        Case("… sparse → SciPy", _sparse_tensor, by_numpy, "scipy.csr"),
        Case("NumPy array → torch", lambda: np.ones(3), from_numpy, "torch"),
        Case("… reversed", lambda: np.ones(3)[::-1], from_numpy, "torch"),
        Case("… reversed, by DLPack", lambda: np.ones(3)[::-1], "torch.from_dlpack(x)", "torch"),
        Case("… read-only", _readonly, from_numpy, "torch"),
        Case("… masked", lambda: np.ma.array([1.0, 2.0], mask=[0, 1]), from_numpy, "torch"),
        Case("SciPy matrix → torch", lambda: matrix, from_numpy, "torch.sparse_csr"),
        Case("pandas column → torch", lambda: pd.Series([1.0, 2.0]), from_numpy, "torch"),
    ]


def _sparse_tensor() -> Any:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's notice that CSR is in beta
        return torch.eye(3).to_sparse_csr()


class Outcome(NamedTuple):
    """What becomes of the value of a case.

    Parameters
    ----------
    name : str
    statement : str
    by_hand, with_interop : str
        Of the statement, and of `interop.convert`.
    """

    name: str
    statement: str
    by_hand: str
    with_interop: str


def outcomes() -> list[Outcome]:
    """Try every case, each in a process of its own."""
    return [
        Outcome(case.name, case.statement, _tried(case, _by_hand), _tried(case, _with_interop))
        for case in cases()
    ]


def _tried(case: Case, convert: Callable[[Case, Any], Any]) -> str:
    context = multiprocessing.get_context("fork")  # the frameworks are imported already
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_tell, args=(theirs, case, convert))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Python says of a fork beside threads
        process.start()
    theirs.close()
    try:
        return str(ours.recv())
    except EOFError:
        process.join()
        if process.exitcode is None or process.exitcode >= 0:  # no signal has ended it
            raise
        return "ends the process"


def _tell(pipe: Connection, case: Case, convert: Callable[[Case, Any], Any]) -> None:
    warnings.simplefilter("ignore")
    pipe.send(_outcome(case, convert))


def _by_hand(case: Case, value: Any) -> Any:
    import torch

    return eval(case.statement, {"x": value, "torch": torch})


def _with_interop(case: Case, value: Any) -> Any:
    return interop.convert(value, to=case.to)


def _outcome(case: Case, convert: Callable[[Case, Any], Any]) -> str:
    value = case.make()
    try:
        result = convert(case, value)
    except RefusedError:
        return "refuses, says why"
    except (TypeError, ValueError, RuntimeError, BufferError):
        return "raises an error"
    if isinstance(value, np.ma.MaskedArray):
        return "loses the mask"
    if _address(value) != _address(result):
        return "copies"
    is_readonly = isinstance(value, np.ndarray) and not value.flags.writeable
    return "a write crashes" if is_readonly else "shares"


def _address(value: Any) -> int:
    """Return where the numbers of an array, a tensor, a column or a sparse matrix begin."""
    if hasattr(value, "indptr"):
        value = value.data
    elif hasattr(value, "crow_indices") and not _is_strided(value):
        value = value.values()
    elif hasattr(value, "to_numpy"):
        value = value.to_numpy()
    return int(value.data_ptr() if hasattr(value, "data_ptr") else value.ctypes.data)


def _is_strided(value: Any) -> bool:
    import torch

    return value.layout is torch.strided


def table(tried: list[Outcome]) -> str:
    """Return the outcomes as a table in Markdown."""
    rows = [f"| {o.name} | `{o.statement}` | {o.by_hand} | {o.with_interop} |" for o in tried]
    return "\n".join(["| | by hand | gives | `interop` |", "| --- | --- | --- | --- |", *rows, ""])


def draw(tried: list[Outcome], file: Path) -> None:
    """Draw the outcomes as a table of coloured cells."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8.4, 0.34 * len(tried) + 0.5))
    axis.set_axis_off()
    axis.set(xlim=(0, 10), ylim=(len(tried), -1))
    titles = {
        0.05: "convert",
        2.9: "the usual statement",
        5.65: "… and what it does",
        8.05: "interop.convert",
    }
    for x, title in titles.items():
        axis.text(x, -0.45, title, va="center", fontweight="bold", color="#333333", fontsize=9)
    for y, outcome in enumerate(tried):
        axis.text(0.05, y + 0.5, outcome.name, va="center", fontsize=9)
        axis.text(2.9, y + 0.5, outcome.statement, va="center", fontsize=8.5, family="monospace")
        for x, text in ((5.6, outcome.by_hand), (8.0, outcome.with_interop)):
            cell = plt.Rectangle((x, y + 0.06), 2.0 if x > 7 else 2.3, 0.88, color=COLOURS[text])
            axis.add_patch(cell)
            axis.text(x + 0.1, y + 0.5, text, va="center", color="white", fontsize=9)
    figure.savefig(file, dpi=120, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    """Print the outcomes, or store and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="store_true", help=f"write {STORED.name}, and draw it")
    tried = outcomes()
    if parser.parse_args().store:
        STORED.write_text(table(tried))
        draw(tried, PICTURE)
    else:
        print(table(tried))


if __name__ == "__main__":
    main()
