"""Validation: what a declaration may hold, and what is said of one that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import interop
from interop import Conversion, Cost, DtypeNames, Format, Interop
from interop._model.provenance import OWN
from interop._model.unary import within
from interop._registry import plugins as discovery
from interop._registry.validation import frozen, validated
from interop.plugin import Components, Copy, Limits, Result, Wrapper
from interop.plugin.advanced import NoTrace
from interop.testing._plugin import contradiction
from tests.cases import together


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("nonsense", "'nonsense', which is not a declaration"),
        ({n: n for n in range(300)}, r"\{0: 0, .*….*299\}, which is not"),
        (Format("a", limits={n: n for n in range(300)}), r"limits=\{0: 0, .*….*299\}; it must"),  # type: ignore[arg-type]
        (Format(""), "no name"),
        (Copy(print), "no source; a step within a format stands in that format's `unary`"),
        (Format("a", types=("torch.Tensor",)), "'module:Class'"),
        (Format("a", types=("builtins:object",)), "which everything may be an instance of"),
        (Format("a", types=("collections.abc:Sized",)), "the type collections.abc:Sized, which"),
        (Format("a", devices=()), "no devices"),
        (Format("a", dtypes="float32"), "dtypes='float32'"),  # type: ignore[arg-type]
        (Format("a", ndims={True}), r"ndims=\{True\}"),
        (Format("a", exports={"dlpack": "float32"}), r"exports\['dlpack'\]="),  # type: ignore[dict-item]
        (Format("a", lazy=1), "lazy=1"),  # type: ignore[arg-type]
        (Format("a", describe="not callable"), "describe='not callable'"),  # type: ignore[arg-type]
        (Format("a", components=Components("csr", "a", {}, None, id)), "components.unpack=None"),  # type: ignore[arg-type]
        (Format("a", components=Components("csr", "a", {}, id, id, pack_seconds=-1.0)), "-1.0"),
        (Format("a", wrapper=Wrapper("x")), "wrapper.unwrap='x'"),  # type: ignore[arg-type]
        (Format("a", wrapper=id), "wrapper=<built-in"),  # type: ignore[arg-type]
        (Conversion("a", "b", "not callable"), "function='not callable'"),  # type: ignore[arg-type]
        (
            Conversion("a", "b", print, result=Result(bits="twist")),
            "word 'twist' in result.bits; the words are carry, restore.$",
        ),
        (Conversion("a", "b", print, result=Result(orders={"A"})), "word 'A' in result.orders"),
        (
            Conversion("a", "b", print, changes={"shape"}),
            "word 'shape' in changes; the words are columns, device, dtype, order.$",
        ),
        (Conversion("a", "b", print, changes={"dtypes"}), "in changes; did you mean 'dtype'"),
        (Conversion("a", "b", print, effects={"explode"}), "word 'explode' in effects; the words"),
        (Conversion("a", "b", print, effects={"copi"}), "in effects; did you mean 'copy'"),
        (Conversion("a", "b", print, like={"matrx"}), "in like; did you mean 'matrix'"),
        (Conversion("a", "b", print, replaces="x"), "replaces='x'"),  # type: ignore[arg-type]
        (Conversion("a", "b", print, cost=1e-6), "cost=1e-06"),  # type: ignore[arg-type]
        (Conversion("a", "b", print, cost=Cost(float("inf"))), "cost="),
        (Conversion("a", "b", print, cost=Cost(1e-6, 0.0)), "cost="),
        (NoTrace("x"), "mark='x'"),  # type: ignore[arg-type]
        (Format("a", devices=("cpu", "gpu")), "type 'gpu' in devices; did you mean 'cuda'.$"),
        (Format("a", devices=("host",)), "type 'host' in devices; did you mean 'cpu'"),
        (Format("a", devices=("cdua",)), "type 'cdua' in devices; did you mean 'cuda'"),
        (Format("a", devices=("CPU",)), "type 'CPU' in devices; did you mean 'cpu'"),
        (Format("a", devices=("cuda:0",)), "type 'cuda:0' in devices; did you mean 'cuda'"),
        (Format("a", devices=("my device",)), "type 'my device' in devices, which is no name"),
        (
            Format("a", limits=Limits(unsupported={"gpu": {"float64"}})),
            "type 'gpu' in limits.unsupported; did you mean 'cuda'",
        ),
        (Conversion("a", "b", print, devices={"vulcan"}), "in devices; did you mean 'vulkan'"),
        (
            Conversion("a", "b", print, result=Result(devices={"cdua"})),
            "type 'cdua' in result.devices; did you mean 'cuda'",
        ),
        (DtypeNames("builtins:object", str), "which everything may be an instance of"),
        (DtypeNames("collections.abc:Hashable", str), "which everything may be an instance of"),
        (DtypeNames("float32", str), "'float32'; write it as 'module:Class'"),
    ],
)
def test_malformed_declarations_are_refused(empty: Interop, declaration: Any, message: str) -> None:
    """Each kind of malformed declaration is refused with what is wrong about it."""
    with pytest.raises(interop.errors.PluginError, match=message):
        empty.register(declaration)


@together(
    "declaration, message",
    [
        (Format("a", types="slab:Slab"), "types='slab:Slab'; it must be a set or a tuple of str"),  # type: ignore[arg-type]
        (Format("a", dtypes=[1]), "dtypes=[1]; it must be a set or a tuple of str"),  # type: ignore[list-item]
        (Format("a", ndims={"1"}), "ndims={'1'}; it must be a set or a tuple of int"),  # type: ignore[arg-type]
        (Format("a", memory=1), "memory=1; it must be a function"),  # type: ignore[arg-type]
        (Format("a", exports=1), "exports=1; it must be a mapping from strings"),  # type: ignore[arg-type]
        (
            Format("a", exports={"b": "c"}),  # type: ignore[dict-item]
            "exports['b']='c'; it must be a set or a tuple of str",
        ),
        (Format("a", unary=(1,)), "unary=(1,); it must be a set or a tuple of Conversion"),  # type: ignore[arg-type]
        (Conversion("a", "b", print, cost=(1, 2)), "cost=(1, 2); it must be of type Cost"),  # type: ignore[arg-type]
        (
            Conversion("a", "b", print, cost=Cost(-1)),
            "cost.latency=-1; it must be a number of 0 or more",
        ),
        (Conversion("a", "b", print, checked=1), "checked=1; it must be a bool"),  # type: ignore[arg-type]
    ],
)
def test_a_refusal_says_what_a_field_must_be(
    empty: Interop, declaration: Any, message: str
) -> None:
    """A field that holds something else is refused with its value and with the kind it takes."""
    with pytest.raises(interop.errors.PluginError) as caught:
        empty.register(declaration)
    assert str(caught.value).endswith(f"{message}.")


def test_a_device_type_may_be_new(empty: Interop) -> None:
    """A name that resembles none of those that are known is a device of the plugin's own."""
    empty.register(Format("a", devices=("cpu", "opencl", "cerebras", "qpu")))
    assert empty.formats()[0].format.devices == ("cpu", "opencl", "cerebras", "qpu")


_LIMITS = Limits(unsupported={"cuda": {"flaot32"}})


@pytest.mark.parametrize(
    ("declaration", "field"),
    [
        (Format("a", dtypes={"float64", "flaot32"}), "dtypes"),
        (Format("a", index_dtypes={"flaot32"}), "index_dtypes"),
        (Format("a", exports={"dlpack": {"flaot32"}}), "exports['dlpack']"),
        (Format("a", limits=_LIMITS), "limits.unsupported['cuda']"),
        (
            Format("a", components=Components("affine", "b", {}, id, id, code_dtypes={"flaot32"})),
            "components.code_dtypes",
        ),
        (
            Format("a", components=Components("coo", "b", {"indices": "flaot32"}, id, id)),
            "components.roles['indices']",
        ),
        (Conversion("a", "b", print, dtypes={"flaot32"}), "dtypes"),
        (Conversion("a", "b", print, index_dtypes={"flaot32"}), "index_dtypes"),
        (Conversion("a", "b", print, result=Result(dtypes={"flaot32"})), "result.dtypes"),
        (Conversion("a", "b", print, result=Result(index_dtype="flaot32")), "result.index_dtype"),
    ],
)
def test_an_unknown_dtype_is_refused_with_a_guess(
    empty: Interop, declaration: Any, field: str
) -> None:
    """Wherever a declaration names a dtype that does not exist, the error guesses what was meant."""
    message = f"the unknown dtype 'flaot32' in {field}; did you mean 'float32'?"
    with pytest.raises(interop.errors.PluginError) as caught:
        empty.register(declaration)
    assert str(caught.value).endswith(message)


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
