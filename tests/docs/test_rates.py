"""The picture of rates on a GPU: it is drawn from tables that can be read."""

from __future__ import annotations

from docs import rates


def test_the_tables_of_the_picture_can_be_read_and_do_not_exceed_the_link() -> None:
    """Each cell is a number or a range, and no transfer is faster than the link is."""
    transfers, hand_offs = rates.rows("transfer"), rates.rows("hand-off")
    assert transfers[-1][0] == "the link"
    _, link = rates.span(transfers[-1][2])
    spans = [rates.span(cell) for _, *cells in transfers for cell in cells]
    assert all(0 < least <= most <= link for least, most in spans)
    assert len(hand_offs) > 3
    assert all(len(row) == 3 and rates.span(row[1]) and rates.span(row[2]) for row in hand_offs)
    assert rates.PICTURE.exists()
