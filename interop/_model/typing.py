"""The types that stand for what callers hand over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from types import ModuleType
from typing import Any, Literal, TypeAlias

#: A value of any framework: an array, a tensor, a sparse matrix, a list of numbers.
Value: TypeAlias = Any

#: What takes a value and returns another.
ValueFunction: TypeAlias = Callable[[Value], Value]

#: What ``to=`` takes: a format, an array type, a module, or several of these.
TargetLike: TypeAlias = str | type | ModuleType | Iterable["str | type | ModuleType"]

#: What ``copy=`` takes.
CopyLike: TypeAlias = Literal["writable"] | bool | None

#: The names of :data:`EFFECTS`.
EffectName: TypeAlias = Literal[
    "detach",
    "copy",
    "transfer",
    "densify",
    "dequantize",
    "materialize",
    "gather",
    "drop_labels",
    "alias_immutable",
    "narrow",
    "drop_mask",
    "share_readonly",
    "host_round_trip",
]

#: What ``allow=`` and ``forbid=`` take; None names no effect.
EffectNames: TypeAlias = EffectName | Iterable[EffectName] | Set[str] | None
