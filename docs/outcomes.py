"""The picture of the table of DLPack: twelve of its cases, by ``from_dlpack`` and by interop.

``python -m docs.dlpack --store`` draws it, from the pairs that it has tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .dlpack import Pair

STORED = Path(__file__).parent / "reference" / "_outcomes.md"
PICTURE = STORED.with_name("outcomes.png")

#: The cases that are shown: the producer, the consumer, and what is particular about the array.
TWELVE = (
    ("NumPy", "torch", "one block"),
    ("NumPy", "torch", "reversed"),
    ("NumPy", "torch", "bfloat16"),
    ("NumPy", "MLX", "reversed"),
    ("torch", "NumPy", "bfloat16"),
    ("torch", "JAX", "every second"),
    ("torch", "JAX", "float64"),
    ("torch", "PyArrow", "bool"),
    ("JAX", "PyArrow", "one block"),
    ("JAX", "torch", "bfloat16"),
    ("MLX", "torch", "reversed"),
    ("MLX", "ONNX Runtime", "offset"),
)

#: The colour of each outcome.
COLOURS = {
    "right": "#2a9d5c",
    "refused": "#e0a82e",
    "wrong": "#7b1e3a",
    "ends the process": "#7b1e3a",
}


class Outcome(NamedTuple):
    """What becomes of an array.

    Parameters
    ----------
    name, array : str
        Producer and consumer, and what is particular about the array.
    by_dlpack, by_interop : str
        Of the consumer's ``from_dlpack``, and of `interop.convert`.
    """

    name: str
    array: str
    by_dlpack: str
    by_interop: str


def chosen(tried: Iterable[Pair]) -> list[Outcome]:
    """Return the outcomes that are shown, out of pairs that were tried."""
    outcomes = {(pair.producer, pair.consumer, pair.by): pair.outcomes for pair in tried}
    return [
        Outcome(
            f"{producer} → {consumer}",
            array,
            outcomes[producer, consumer, "from_dlpack"][array][0],
            outcomes[producer, consumer, "interop"][array][0],
        )
        for producer, consumer, array in TWELVE
    ]


def table(shown: Iterable[Outcome]) -> str:
    """Return outcomes as a table in Markdown."""
    rows = [f"| {' | '.join(outcome)} |" for outcome in shown]
    return "\n".join(
        ["| | array | from_dlpack | interop |", "| --- | --- | --- | --- |", *rows, ""]
    )


def draw(shown: list[Outcome], file: Path) -> None:
    """Draw outcomes as a table of coloured cells."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8.4, 0.34 * len(shown) + 0.5))
    axis.set_axis_off()
    axis.set(xlim=(0, 10), ylim=(len(shown), -1))
    titles = {
        0.05: "convert",
        2.7: "an array",
        4.65: "the target's from_dlpack",
        7.55: "interop.convert",
    }
    for x, title in titles.items():
        axis.text(x, -0.45, title, va="center", fontweight="bold", color="#333333", fontsize=9)
    for y, outcome in enumerate(shown):
        axis.text(0.05, y + 0.5, outcome.name, va="center", fontsize=9)
        axis.text(2.7, y + 0.5, outcome.array, va="center", fontsize=9)
        for x, text in ((4.6, outcome.by_dlpack), (7.5, outcome.by_interop)):
            cell = plt.Rectangle((x, y + 0.06), 2.5 if x > 7 else 2.8, 0.88, color=COLOURS[text])
            axis.add_patch(cell)
            axis.text(x + 0.1, y + 0.5, text, va="center", color="white", fontsize=9)
    figure.savefig(file, dpi=120, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
