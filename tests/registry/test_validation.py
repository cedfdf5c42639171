"""Validation: what a declaration may hold, and what is said of one that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import interop
from interop import Conversion, Format, Interop
from interop._model.provenance import OWN
from interop._model.unary import within
from interop._registry import plugins as discovery
from interop._registry.validation import frozen, validated
from interop.plugin import Components, Limits, Result
from interop.testing._plugin import contradiction


def test_a_device_type_may_be_new(empty: Interop) -> None:
    """A name that resembles none of those that are known is a device of the plugin's own."""
    empty.register(Format("a", devices=("cpu", "opencl", "cerebras", "qpu")))
    assert empty.formats()[0].format.devices == ("cpu", "opencl", "cerebras", "qpu")


def test_a_role_of_components_may_name_a_field_or_a_dtype(empty: Interop) -> None:
    """What names a field of the spec is not taken for an unknown dtype."""
    roles = {"codes": "code_dtype", "scale": "float64"}
    empty.register(Format("a", components=Components("affine", "b", roles, id, id)))
    assert [declared.name for declared in empty.formats()] == ["a"]


def keys(items: Any) -> Any:
    """Return the view of the keys of a dict."""
    return dict.fromkeys(items).keys()


@pytest.mark.parametrize("kind", [set, frozenset, list, tuple, keys])
def test_sets_are_taken_in_every_form_and_frozen(
    empty: Interop, kind: Callable[[Any], Any]
) -> None:
    """A set, a frozenset, a list, a tuple or a view of keys is registered as a frozenset."""

    def some(*items: Any) -> Any:
        return kind(items)

    empty.register(
        Format(
            "a",
            dtypes=some("float32", "int64"),
            devices=("cpu", "cuda"),
            ndims=some(1, 2),
            exports={"dlpack": some("float32")},
            components=Components("csr", "a", {}, id, id, unpack_copies=some("values")),
            limits=Limits(unsupported={"cuda": some("int64")}),
        ),
        Conversion(
            "a",
            "b",
            print,
            effects=some("copy"),
            takes=some("readonly"),
            result=Result(dtypes=some("float32")),
        ),
    )
    format_, conversion = empty.formats()[0].format, empty.conversions()[0].conversion
    assert format_.dtypes == frozenset({"float32", "int64"})
    assert format_.ndims == frozenset({1, 2})
    assert format_.components is not None
    fields = (
        format_.dtypes,
        format_.ndims,
        format_.exports["dlpack"],
        format_.components.unpack_copies,
        format_.limits.unsupported["cuda"],
        conversion.effects,
        conversion.takes,
        conversion.result.dtypes,
    )
    assert {type(field) for field in fields} == {frozenset}
    assert conversion.effects == {"copy"}


def _bundled() -> list[str]:
    """Return the modules of the bundled plugins."""
    points = interop.default._registry.loaded() and discovery.found()
    return [point.value for point, origin in points if origin.distribution == OWN]


@pytest.mark.parametrize("name", _bundled())
def test_declarations_of_bundled_plugins_are_valid(name: str) -> None:
    """A process does not validate it; sets come out as if it did, and labels are words of code."""
    module = import_module(name)
    assert hasattr(module.interop_declarations, "interop_impl")
    declarations = list(module.interop_declarations())
    steps = [
        step
        for format_ in declarations
        if isinstance(format_, Format)
        for step in (within(format_, step) for step in validated(format_, name).unary)
    ]
    for declaration in (*declarations, *steps):
        assert frozen(declaration) == validated(declaration, name)
        assert contradiction(declaration) == ""
    conversions = [item for item in (*declarations, *steps) if isinstance(item, Conversion)]
    assert all(hash(frozen(conversion)) for conversion in conversions)
    # Routes, receipts and errors name steps by their labels.
    assert all(c.label.isidentifier() and c.label.islower() for c in conversions)
