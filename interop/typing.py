"""What the keywords take, to annotate functions that hand them on.

>>> from interop.typing import Dtype, Effects, Target
>>> def batches(x: object, to: Target = "torch", dtype: Dtype | None = None, allow: Effects = ()):
...     return interop.convert(x, to, dtype=dtype, allow=allow)

Type checkers read the stub beside this file, in which these are the words that interop knows, and
the objects of all frameworks.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from interop._model.typing import CopyLike as Copy
from interop._model.typing import EffectNames as Effects
from interop._model.typing import OrderLike as Order
from interop._model.typing import TargetLike as Target

__all__ = ["Copy", "Device", "Dtype", "Effects", "Order", "Target"]

#: What ``dtype=`` takes.
Dtype: TypeAlias = Any
#: What ``device=`` takes.
Device: TypeAlias = Any
