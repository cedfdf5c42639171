"""Dense formats by the short form: all that is derived, on a toy library over NumPy's memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from interop import Interop
from interop.errors import NotInstalledError, RefusedError
from interop.kit import dense_format
from interop.plugin import Format, make_spec
from interop.plugin.advanced import Advanced
from interop.testing import check
from tests.kit.library import (
    Array,
    DType,
    ElementArray,
    Shown,
    TracedArray,
    Vectors,
    from_dlpack,
    show,
)
from tests.kit.library_plugin import DENSE, interop_declarations

CUBE = np.arange(24.0).reshape(2, 3, 4)
LAYOUTS = [
    (CUBE, set()),
    (CUBE.transpose(2, 0, 1), {"noncontiguous"}),
    (CUBE[:, ::2], {"noncontiguous"}),
    (CUBE[:, :, ::-1], {"noncontiguous", "negative_strides"}),
    (np.lib.stride_tricks.as_strided(CUBE, (2, 5), (8, 0)), {"noncontiguous", "broadcast"}),
    (CUBE[:1, :, :1], {"noncontiguous"}),
    (CUBE[0, 0, :1], set()),
    (CUBE[:0], set()),
    (np.array(7.0), set()),
]


@pytest.fixture
def mine(loaded: Interop) -> Interop:
    """An instance to which the library is declared."""
    loaded.register(*interop_declarations())
    return loaded


@pytest.mark.parametrize("kind", [Array, ElementArray])
@pytest.mark.parametrize("first", [0, 1])
def test_strides_are_described_whatever_they_count(
    loaded: Interop, kind: type[Array], first: int
) -> None:
    """In bytes or in elements, as a capsule tells, whichever array comes first."""
    loaded.register(*dense_format(f"tests.kit.library:{kind.__name__}", **DENSE))
    for data, traits in [*LAYOUTS[first:], *LAYOUTS]:
        expected = make_spec("library", "float64", shape=data.shape, traits=traits)
        assert loaded.spec(kind(data)) == expected


def test_attributes_are_read_and_no_capsule(mine: Interop) -> None:
    """A contiguous array of a type is exported once, to learn what its strides count."""
    arrays = [Array(data) for data, _ in LAYOUTS]
    for array in arrays:
        mine.spec(array)
    assert [array.exports for array in arrays] == [1, *[0] * (len(arrays) - 1)]


def test_a_dtype_of_vectors_is_described_by_its_capsule(loaded: Interop) -> None:
    """Three numbers in one element are an axis to everybody else."""
    loaded.register(*dense_format("tests.kit.library:Vectors", **DENSE))
    vectors = Vectors(np.ones((4, 3), "f4"))
    for _ in range(2):
        assert loaded.spec(vectors) == make_spec("library", "float32", shape=(4, 3))
    array: Any = loaded.convert(vectors, to="numpy")
    assert array.shape == (4, 3)
    assert array.ctypes.data == vectors.data.ctypes.data


def test_memory_is_shared_both_ways(mine: Interop) -> None:
    """By DLPack, as it lies there; what must not be written is copied first."""
    array: Any = mine.convert(CUBE.T, to=Array)
    assert type(array) is Array
    assert (array.data.ctypes.data, array.data.strides) == (CUBE.ctypes.data, CUBE.T.strides)
    tensor: Any = mine.convert(array, to="torch", copy=False)
    assert tensor.data_ptr() == CUBE.ctypes.data
    assert torch.equal(tensor, torch.from_numpy(CUBE.T))
    back: Any = mine.convert(tensor, to="library", dtype=array.dtype)
    assert back.data.ctypes.data == CUBE.ctypes.data
    locked = CUBE[0].copy()
    locked.flags.writeable = False
    assert mine.plan(locked, to="library").effects == {"copy"}
    assert mine.convert(locked, to="library").data.flags.writeable


def test_memory_is_where_the_numbers_lie() -> None:
    """By the addresses of the first and of the last byte, whatever protocol tells them."""
    formats = [
        dense_format("tests.kit.library:Array", **DENSE)[0],
        dense_format("tests.kit.library:Shown", dtypes={"float64"}, array_interface=True)[0],
    ]
    for data, _ in LAYOUTS:
        low, high = np.lib.array_utils.byte_bounds(data)
        for format_, value in zip(formats, (Array(data), Shown(data)), strict=True):
            assert isinstance(format_, Format)
            assert format_.memory is not None
            assert format_.memory(value) == (((low, high - low),) if data.size else ())


def test_a_gradient_is_dropped_by_a_step_that_says_so(mine: Interop) -> None:
    """The result shares memory; the source keeps its gradient."""
    array = Array(np.ones(3), requires_grad=True)
    assert mine.spec(array).traits == {"grad"}
    plan = mine.plan(array, to="numpy")
    assert (plan.steps[0].label, plan.effects) == ("detach", {"detach"})
    result: Any = plan(array)
    assert (result.ctypes.data, array.requires_grad) == (array.data.ctypes.data, True)
    with pytest.raises(RefusedError):
        mine.convert(array, to="numpy", forbid={"detach"})


def test_an_array_that_exports_only_outside_of_its_graph(loaded: Interop) -> None:
    """It is described, found in memory and converted by what its `detach` returns."""
    declarations = dense_format("tests.kit.library:TracedArray", **DENSE | {"detach": "detach"})
    loaded.register(*declarations)
    array = TracedArray(CUBE.transpose(2, 0, 1), requires_grad=True)
    shape, traits = array.shape, {"grad", "noncontiguous"}
    assert loaded.spec(array) == make_spec("library", "float64", shape=shape, traits=traits)
    format_ = declarations[0]
    assert isinstance(format_, Format)
    assert format_.memory is not None
    assert format_.memory(array) == ((CUBE.ctypes.data, CUBE.nbytes),)
    result: Any = loaded.convert(array, to="numpy")
    assert (result.ctypes.data, result.strides) == (CUBE.ctypes.data, array.data.strides)


def test_the_name_of_a_dtype_counts_before_its_text() -> None:
    """A dtype is what it calls itself in capitals, even if its text is that of another."""

    class Named(DType):
        name = "UINT16"

    class Sixteen(Array):
        dtype = Named("float64")

    wide = dense_format(
        (f"{__name__}:Sixteen",), **DENSE | {"name": "sixteen", "dtypes": {"uint16", "float64"}}
    )
    [describe] = [part.describe for part in wide if isinstance(part, Format)]
    assert describe is not None
    for _ in range(2):  # by a capsule, then by its attributes
        spec = describe(Sixteen(np.arange(3, dtype="uint16")))
        assert spec == make_spec("sixteen", "uint16", shape=(3,))


def test_dense_format_declares_copies_of_a_library_that_copies(loaded: Interop) -> None:
    """A library that takes copies of what it is given copies to detach as well."""

    def from_copy(x: Any) -> Array:
        return Array(np.from_dlpack(x).copy())

    changes = {**DENSE, "from_dlpack": from_copy, "shares": False}
    loaded.register(*dense_format("tests.kit.library:Array", **changes))
    assert loaded.plan(CUBE, to="library").effects == {"copy"}
    array = Array(np.ones(3), requires_grad=True)
    assert loaded.plan(array, to="numpy").effects == {"detach", "copy"}
    result: Any = loaded.convert(array, to="numpy")
    assert result.tolist() == [1.0, 1.0, 1.0]
    assert not np.shares_memory(result, array.data)


def test_copies_and_casts_by_the_namespace(mine: Interop) -> None:
    """One step for a C-ordered block, whose casts keep the real part of complex numbers.

    It writes in C order, so a library that keeps the order of the elements copies the others.
    """
    for data, _ in LAYOUTS:
        plan = mine.plan(Array(data), to="library", copy=True)
        if data.flags.c_contiguous:
            assert [step.label for step in plan.steps] == ["cast"]
        copy: Any = plan(Array(data))
        if data.size:
            assert copy.data.strides == data.copy("C" if 0 in data.strides else "K").strides
        assert (copy.data.dtype, copy.data.shape) == (data.dtype, data.shape)
        assert np.array_equal(copy.data, data)
        assert not np.shares_memory(copy.data, data)
    plan = mine.plan(Array(CUBE), to="library", dtype="float32")
    assert [step.label for step in plan.steps] == ["cast"]
    cast: Any = plan(Array(CUBE))
    assert cast.data.dtype == np.float32
    assert np.array_equal(cast.data, CUBE)
    z = Array(np.array([1 + 2j, 3 - 4j], "c8"))
    real: Any = mine.convert(z, to="library", dtype="float32")
    assert real.data.tolist() == [1.0, 3.0]


def test_without_a_namespace_numpy_copies_and_casts(loaded: Interop) -> None:
    """The planner takes the way through NumPy, from which the memory is shared."""
    loaded.register(*dense_format("tests.kit.library:Array", **{**DENSE, "namespace": ""}))
    for request in ({"copy": True}, {"dtype": "float32"}):
        plan = loaded.plan(Array(CUBE.T), to="library", **request)
        assert {step.after.format for step in plan.steps} == {"numpy", "library"}
        result: Any = plan(Array(CUBE.T))
        assert np.array_equal(result.data, CUBE.T)
        assert not np.shares_memory(result.data, CUBE)


def test_a_copy_and_a_cast_of_its_own(loaded: Interop) -> None:
    """Functions of the author's take the place of those that are derived."""

    def copy(array: Array) -> Array:
        return Array(array.data.copy(), requires_grad=False)

    def cast(array: Array, *, dtype: str) -> Array:
        return Array(array.data.astype(dtype, order="C"))

    changes = {**DENSE, "namespace": "", "copy": copy, "cast": cast, "ndims": {1, 2}}
    loaded.register(*dense_format("tests.kit.library:Array", **changes))
    assert loaded.plan(Array(np.ones(2)), "library", copy=True).steps[0].label == "copy"
    result: Any = loaded.convert(Array(np.ones(2)), "library", dtype="int64")
    assert (result.data.dtype, result.data.tolist()) == (np.int64, [1, 1])
    with pytest.raises(RefusedError):
        loaded.convert(CUBE, "library")


def test_an_array_interface_in_place_of_dlpack(loaded: Interop) -> None:
    """It describes, exports and tells the memory; a function makes one of NumPy's."""
    loaded.register(
        *dense_format(
            "tests.kit.library:Shown",
            name="shown",
            from_formats={"numpy": "tests.kit.library:show"},
            dtypes={"float64", "bool"},
            carries={"noncontiguous", "readonly"},
            array_interface=True,
        )
    )
    for data, traits in LAYOUTS[:3]:
        shown = show(data)
        assert loaded.spec(shown) == make_spec("shown", "float64", shape=data.shape, traits=traits)
        array: Any = loaded.convert(shown, to="numpy", copy=False)
        assert (array.ctypes.data, array.strides) == (data.ctypes.data, data.strides)
        back: Any = loaded.convert(data, to=Shown)
        assert (type(back), back.data.ctypes.data) == (Shown, data.ctypes.data)
    flags = np.array([True, False])
    flags.flags.writeable = False
    assert loaded.spec(show(flags)) == make_spec("shown", "bool", shape=(2,), traits={"readonly"})


def test_every_field_can_be_overridden() -> None:
    """Fields of the format replace what is derived, and a name that is none is an error."""

    def describe(value: Array) -> Any:
        return make_spec("library", "float32")

    changes: dict[str, Any] = {
        "describe": describe,
        "advanced": Advanced(hub=True),
        "aliases": ("lib",),
    }
    format_, *_ = dense_format("tests.kit.library:Array", **DENSE, **changes)
    assert isinstance(format_, Format)
    assert (format_.describe, format_.hub, format_.aliases) == (describe, True, ("lib",))
    with pytest.raises(ValueError, match="installing"):
        dense_format("tests.kit.library:Array", **DENSE, installing="pip install library")


def test_dense_format_imports_nothing_and_says_how_to_install(loaded: Interop) -> None:
    """Declaring imports nothing; asking for such an array says how to install its library."""
    loaded.register(
        *dense_format(
            "not_there.arrays:Array",
            from_dlpack="not_there:from_dlpack",
            namespace="not_there",
            dtypes={"float32"},
            install="pip install not-there",
        )
    )
    assert "not_there" not in sys.modules
    with pytest.raises(NotInstalledError):
        loaded.convert([1.0], to="not_there")


def test_a_public_name_stands_for_a_class_that_is_defined_elsewhere(mine: Interop) -> None:
    """Values are recognised, and subclasses of their class."""
    assert Array.__module__ == "tests.kit.library._core"
    assert mine.spec(from_dlpack(np.ones(2))).format == "library"
    assert mine.spec(ElementArray(np.ones(2))).format == "library"


@pytest.mark.slow
def test_the_short_forms_keep_their_promises() -> None:
    """The suite finds nothing, and has tried every layout that NumPy can hand over."""
    report = check("tests.kit.library_plugin")
    assert report.ok, str(report)
    tried = {finding.name for finding in report.of("passed")}
    assert {
        "variants of format library",
        "extent of format library",
        "wrapper of format quantity",
        "copy of format quantity",
        "values of quantity → quantity: rewrap",
    } - tried == set()


def test_warp_in_ten_lines(in_subprocess: Callable[[str], str]) -> None:
    """A real library, where it is installed: memory is shared, and gradients are seen."""
    pytest.importorskip("warp", reason="warp-lang is not installed")
    said = in_subprocess(
        """
        import numpy as np
        import interop
        from interop.kit import INTEGERS, REALS, dense_format
        def from_dlpack(producer):
            import warp
            warp.init()
            return warp.from_dlpack(producer)
        interop.register(*dense_format(
            "warp:array", from_dlpack=from_dlpack, dtypes=REALS | INTEGERS, ndims={1, 2, 3, 4},
            devices=("cpu", "cuda"), grad="requires_grad", install="pip install warp-lang"))
        array = np.arange(6.0).reshape(2, 3)
        value = interop.convert(array.T, to="warp")
        import warp
        warp.config.quiet = True
        assert type(value) is warp.array and value.ptr == array.ctypes.data
        assert interop.spec(value).traits == {"noncontiguous", "fortran"}, interop.spec(value)
        assert interop.convert(value, to="torch").data_ptr() == array.ctypes.data
        graph = warp.zeros(3, dtype=float, requires_grad=True)
        assert interop.plan(graph, to="numpy").effects == {"detach"}
        vectors = warp.zeros(4, dtype=warp.vec3)
        assert interop.convert(vectors, to="numpy").shape == (4, 3)
        print("shared")
        """
    )
    assert said.strip().endswith("shared")
