"""The picture of rates and hand-offs on a GPU, drawn from the tables of their page.

``python -m docs.rates`` draws it anew. The numbers come from a machine with a device, so they stand
on the page alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "how-to" / "to-and-from-a-gpu.md"
PICTURE = PAGE.with_suffix(".png")
_BY_HAND, _OURS, _LINK = "#999999", "#0072B2", "#222222"


def rows(head: str) -> list[tuple[str, ...]]:
    """Return the rows of the table of the page whose first heading this is, without backticks."""
    table = PAGE.read_text("utf-8").partition(f"| {head} |")[2].partition("\n\n")[0]
    lines = table.splitlines()[2:]
    return [
        tuple(cell.strip().replace("`", "") for cell in line.split("|")[1:-1]) for line in lines
    ]


def span(cell: str) -> tuple[float, float]:
    """Return the least and the most that a cell says: of "16 to 23" both, of "36" that twice."""
    numbers = [float(number) for number in re.findall(r"[\d.]+", cell)]
    return numbers[0], numbers[-1]


def _bar(axis: Any, y: float, cell: str, colour: str, *, height: float = 0.75) -> None:
    least, most = span(cell)
    axis.barh(y, least, height, color=colour)
    axis.barh(y, most - least, height, left=least, color=colour, alpha=0.45)
    axis.annotate(f" {cell}", (most, y), va="center", fontsize=8)


def draw(file: Path) -> None:
    """Draw the rates of 1 GiB above the hand-offs."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    transfers, hand_offs = rows("transfer"), rows("hand-off")
    counts = len(transfers), 2 * len(hand_offs)
    figure, (top, bottom) = plt.subplots(
        2, figsize=(9.5, 0.24 * sum(counts) + 1.6), height_ratios=counts, layout="constrained"
    )
    for y, (name, _, rate) in enumerate(transfers):
        colour = _LINK if name == "the link" else _OURS if "chunks" in name else _BY_HAND
        _bar(top, y, rate, colour)
    top.set_yticks(range(len(transfers)), [name for name, *_ in transfers], fontsize=8)
    top.set_title(
        "Transfers of 1 GiB, in GB/s: more is better (grey: by hand, blue: interop's way)",
        loc="left",
        fontsize=9.5,
    )
    for number, (_, by_hand, ours) in enumerate(hand_offs):
        _bar(bottom, number - 0.2, by_hand, _BY_HAND, height=0.38)
        _bar(bottom, number + 0.2, ours, _OURS, height=0.38)
    bottom.set_yticks(range(len(hand_offs)), [name for name, *_ in hand_offs], fontsize=8)
    title = "Hand-offs of small arrays, in µs: less is better (grey: by hand, blue: interop)"
    bottom.set_title(title, loc="left", fontsize=9.5)
    for axis in (top, bottom):
        axis.invert_yaxis()
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=120, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    draw(PICTURE)
