"""Hugging Face's formats beside `interop`: how long a column of a dataset takes to be an array.

``python -m benchmarks.formatters`` prints the table of the how-to. A ratio is the time of a format
over that of `interop`, each the best of several runs in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from timeit import repeat
from typing import TYPE_CHECKING

import interop

if TYPE_CHECKING:
    from datasets import Dataset

#: Rows of a dataset, numbers of a row, and runs of which the best counts.
ROWS, WIDTH, RUNS = 20_000, 64, 7


def columns() -> Iterator[tuple[str, Dataset]]:
    """Yield the kinds of columns, each as the column "x" of a dataset."""
    import datasets
    import numpy as np

    numbers = np.random.default_rng(0).random((ROWS, WIDTH), dtype="float32")
    for name, feature, values in (
        ("`int64`", datasets.Value("int64"), np.arange(ROWS)),
        (
            f"{WIDTH} float32 in lists of a fixed length",
            datasets.List(datasets.Value("float32"), WIDTH),
            numbers,
        ),
        (f"{WIDTH} float32 in lists", datasets.List(datasets.Value("float32")), numbers),
    ):
        features = datasets.Features({"x": feature})
        yield name, datasets.Dataset.from_dict({"x": list(values)}, features=features)


def ratio(rows: Dataset, framework: str) -> float:
    """Return the time of the format of a dataset over that of a conversion of its column."""
    formatted = rows.with_format(framework)
    slow = _best(lambda: formatted["x"][:])
    return slow / _best(lambda: interop.convert(rows["x"], to=framework))


def _best(call: Callable[[], object]) -> float:
    """Return the seconds of the best run; calls of less than a millisecond are made many times."""
    once = min(repeat(call, number=1, repeat=2))
    number = max(1, int(1e-3 / once))
    return min(repeat(call, number=number, repeat=RUNS)) / number


def main() -> None:
    """Print the table."""
    print("| column | to NumPy | to torch | rows in random order, to torch |")
    print("| --- | --- | --- | --- |")
    for name, rows in columns():
        shuffled = rows.shuffle(seed=0)
        cases = (rows, "numpy"), (rows, "torch"), (shuffled, "torch")
        ratios = [f"{float(f'{ratio(*case):.1g}'):,.0f}" for case in cases]
        print(f"| {name} | {' | '.join(ratios)} |")


if __name__ == "__main__":
    main()
