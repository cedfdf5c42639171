"""The types of values, arguments and keywords that callers hand over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Literal, TypeAlias

#: A value of any framework: an array, a tensor, a sparse matrix, a list of numbers.
Value: TypeAlias = Any

#: Types whose values hold nothing, and there are many of them.
SCALARS: frozenset[type] = frozenset({int, float, complex, bool, str, bytes, type(None)})

#: A function from a value to a value.
ValueFunction: TypeAlias = Callable[[Value], Value]

#: The targets that ``to=`` takes: a format, an array type, a module, or several of these.
TargetLike: TypeAlias = str | type | ModuleType | Iterable["str | type | ModuleType"]

#: The answers that ``copy=`` takes.
CopyLike: TypeAlias = Literal["writable"] | bool | None

#: The orders that ``order=`` takes, as `numpy.asarray` does.
OrderLike: TypeAlias = Literal["C", "F"] | None

#: The names of :data:`EFFECTS`.
EffectName: TypeAlias = Literal[
    "detach",
    "copy",
    "transfer",
    "densify",
    "pad",
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

#: The names that ``allow=`` and ``forbid=`` take; None names no effect. The effects of a route and
#: of a refusal are frozen sets, in which checkers find no misspelt literal.
EffectNames: TypeAlias = EffectName | Iterable[EffectName] | frozenset[str] | None
