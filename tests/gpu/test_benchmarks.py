"""The benchmarks on a CUDA device: staged transfers, and that the hand-offs' rows can be timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.mark.parametrize("size", [1, 8, 1000, 4096])
def test_staged_transfers_move_every_byte(torch: Any, size: int) -> None:
    """Staging through two small page-locked buffers gives the numbers back, both ways."""
    from benchmarks.staging import Staging

    way = Staging(chunk=1024)
    numbers = np.arange(size, dtype="float32")
    staged = way.to_device(numbers)
    assert staged.device.type == "cuda"
    assert np.array_equal(staged.cpu().numpy().view("float32"), numbers)
    for _ in range(2):  # the buffers are used again
        back = way.to_host(torch.from_numpy(numbers).cuda())
        assert np.array_equal(back.view("float32"), numbers)


def test_the_hand_offs_can_be_measured(torch: Any, cupy: Any) -> None:
    """Each pair has a ratio, and none of the statements raises."""
    from benchmarks import gpu

    assert gpu.missing() == ""
    table = gpu._hand_offs(None, rounds=1)
    assert len(table.ratios()) == len(gpu._calls())


def test_the_transfers_can_be_measured(
    torch: Any, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every way gives the right numbers, and the link's bandwidth stands in the note."""
    from benchmarks import gpu

    monkeypatch.setattr(gpu, "_SIZE", 1 << 24)
    table = gpu._transfers(rounds=1)
    assert table.columns == ("pageable", "staged", "link")
    assert "GB/s to the host" in table.note


def test_the_trees_can_be_measured(torch: Any, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways have a ratio to the loop by hand."""
    from benchmarks import gpu

    monkeypatch.setattr(gpu, "_TREES", {"3 × 4 KiB": (3, 1 << 12)})
    assert len(gpu._trees(rounds=1).ratios()) == 2
