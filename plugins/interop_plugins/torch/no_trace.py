"""Keeping torch.compile out of conversions.

Its tracer would follow a conversion into the other framework, and would take addresses and flags
for constants. A marked function breaks the graph cleanly instead: torch compiles what comes before
it and what comes after it, and calls the function as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, ModuleType

_REASON = "interop chooses its steps by the value at hand"

#: The code of marked functions that torch has yet to be told of, because it is not imported.
_waiting: list[CodeType] = []


def mark(function: Callable[..., object]) -> None:
    """Mark a function for torch's tracer, which must not start anew inside of it either."""
    vars(function).update(_torchdynamo_disable=True, _torchdynamo_disable_msg=_REASON)
    _waiting.append(function.__code__)
    if "torch" in sys.modules:
        mark_waiting()


def mark_waiting() -> None:
    """Tell torch of the functions that were marked before it was imported."""
    if not _waiting:
        return
    dynamo: ModuleType | None = getattr(sys.modules.get("torch._C"), "_dynamo", None)
    eval_frame: ModuleType | None = getattr(dynamo, "eval_frame", None)
    # Missing while torch is being imported, and in versions older than the rule.
    set_strategy = getattr(eval_frame, "set_code_exec_strategy", None)
    if eval_frame is None or set_strategy is None:
        return
    skip = eval_frame._FrameAction.SKIP
    strategy = eval_frame._FrameExecStrategy(skip, skip)
    with suppress(IndexError):  # none is left, perhaps because another thread has told of the last
        while True:
            set_strategy(_waiting.pop(), strategy)
