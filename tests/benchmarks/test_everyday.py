"""The everyday calls that are timed: what is compared gives the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from benchmarks import bare, everyday


def _facts(value: Any) -> Any:
    """Return what is to be alike of two results."""
    if isinstance(value, dict):
        return {name: _facts(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_facts, value))
    if isinstance(value, torch.Tensor):
        return "torch", value.layout, value.dtype, value.to_dense().tolist()
    if isinstance(value, np.ndarray):
        return "numpy", value.dtype, value.tolist()
    assert not scipy.sparse.issparse(value)
    if not isinstance(value, list):
        return type(value), value.dtype, np.asarray(value).tolist()
    return value


@pytest.mark.parametrize("call", everyday.CALLS, ids=lambda call: call.name)
def test_the_barest_front_and_the_statement_by_hand_give_what_interop_does(
    call: everyday.Call,
) -> None:
    """Otherwise their times would say nothing of each other."""
    names = everyday.environment()
    result = _facts(eval(call.ours, names))
    by_hand = eval(call.by_hand, names)
    assert _facts(names["out"] if by_hand is None else by_hand) == result
    if call.bare is not None:
        names |= bare.names(everyday.same)
        assert _facts(eval(call.bare or call.ours, names)) == result
