"""What keeps torch.compile from looking into conversions.

Its tracer would follow a conversion into the other framework, and takes reads of addresses and
flags for constants. A function that is marked breaks the graph cleanly: what stands before and
after it in the compiled function is compiled, and it is called as it is.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["shield", "shield_all"]

_REASON = "interop chooses its steps by the value at hand"

#: Functions of which torch has yet to be told, because it is not imported.
_waiting: list[Any] = []


def shield(function: Any) -> None:
    """Mark a function for torch's tracer, which also is not to start anew inside of it.

    A compiled function is opaque to the tracer anyway, and says so in torch's words.
    """
    function._torchdynamo_disable = True
    function._torchdynamo_disable_msg = _REASON
    _waiting.append(function.__code__)
    if "torch" in sys.modules:
        shield_all()


def shield_all() -> None:
    """Tell torch of the functions that were marked before it was imported."""
    hooks: Any = getattr(getattr(sys.modules.get("torch._C"), "_dynamo", None), "eval_frame", None)
    told = getattr(hooks, "set_code_exec_strategy", None)
    if told is None:  # it is being imported, or is older than the rule
        return
    skip = hooks._FrameAction.SKIP
    while _waiting:
        told(_waiting.pop(), hooks._FrameExecStrategy(skip, skip))
