"""Recognition: which format a value, a type or a dtype object stands for."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import interop
from interop import DtypeNames, Format, Interop
from interop._registry import recognition
from tests.toys import Box, copy, toy


def test_a_subclass_is_recognised_by_its_nearest_base(empty: Interop) -> None:
    """Recognition walks the MRO."""

    class Special(Box):
        pass

    empty.register(toy("a"))
    assert empty.spec(Special("a", [1.0])).format == "a"


def test_a_foreign_value_is_recognised_by_its_protocol(empty: Interop) -> None:
    """An attribute of the type is enough where a format declares a protocol."""

    class Foreign:
        __proto__ = True

    empty.register(
        Format(
            "proto", protocol="__proto__", describe=lambda v: interop.make_spec("proto", "int64")
        )
    )
    assert empty.spec(Foreign()).format == "proto"
    with pytest.raises(
        interop.errors.UnknownValueError, match=r"builtins\.object.*register a Format"
    ):
        empty.spec(object())


def test_dtype_objects_are_named_by_their_framework(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A framework's dtype object means the name that the framework's DtypeNames gives it."""

    class Kind:
        name = "float64"

    home = ModuleType("toy_dtypes")
    home.Kind = Kind  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toy_dtypes", home)
    spec = interop.make_spec("a", "float32", shape=(2,))
    empty.register(toy("a"), copy("a", "a", changes=frozenset({"dtype"})))
    empty.register(DtypeNames("toy_dtypes:Kind", lambda dtype: dtype.name))
    assert empty.plan(spec, to="a", dtype=Kind()).result.dtype == "float64"
    with pytest.raises(interop.errors.BadRequestError, match="name it as a string"):
        empty.plan(spec, to="a", dtype=object())


def test_types_that_are_remembered_are_bounded(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that makes classes as it goes starts over, and every value is recognised."""
    monkeypatch.setattr(recognition, "_MOST_TYPES", 3)
    empty.register(toy("a"))
    for number in range(10):
        kind = type(f"Box{number}", (Box,), {})
        assert empty.spec(kind("a", [1.0])).format == "a"
        assert len(empty._registry._describers) <= 3
        assert len(empty._registry._recognised) <= 3
