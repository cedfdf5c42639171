"""NumPy: every dtype in every layout described, returned, cast and copied as promised."""

from __future__ import annotations

import ctypes
import gc
import warnings
import weakref
from importlib import import_module

import ml_dtypes
import numpy as np
import pytest

import interop
from interop.errors import BadRequestError, RefusedError
from interop.plugin import DTYPES, Declined, size_class
from interop_plugins.numpy.describe import fast_key
from interop_plugins.numpy.dtypes import class_name
from interop_plugins.numpy.samples import VARIANTS, mask_first
from tests.cases import together
from tests.plugins.promises import LATER
from tests.plugins.values import start

NAMES = sorted(set(DTYPES) - {"complex32"} - LATER)


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def numbers(name, shape=(4, 6)):
    """Return an array of zeros and ones, which every dtype but one holds."""
    pattern = np.arange(np.prod(shape)).reshape(shape) % 3 == 1
    if name == "float8_e8m0fnu":  # it has neither zero nor negative numbers
        return np.where(pattern, 2.0, 1.0).astype(dtype_of(name))
    if name == "int1":
        return np.where(pattern, -1, 0).astype(dtype_of(name))
    return pattern.astype(np.uint8).astype(dtype_of(name))


def readonly(a):
    a = a.copy()
    a.flags.writeable = False
    return a


LAYOUTS = {
    "C": lambda a: a,
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1],
    "readonly": readonly,
    "0-d": lambda a: a[0, 1:2].reshape(()),
    "empty": lambda a: a[:0],
}


def values(a):
    """Return numbers that compare, whatever the dtype."""
    wide = np.clongdouble if a.dtype.kind == "c" else np.longdouble
    return a.astype(wide)


# ------------------------------------------------------------------ describing


def test_subclasses_become_arrays(tmp_path):
    """Matrices, memory maps, records and masked arrays become plain arrays over their memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        matrix = np.matrix([[1.0, 2.0]])
    mapped = np.memmap(tmp_path / "m", "float32", "w+", shape=(2, 3))
    locked = np.memmap(tmp_path / "m", "int16", "r")
    for value, traits in (
        (matrix, {"subclass"}),
        (mapped, {"subclass"}),
        (locked, {"subclass", "readonly"}),
        (np.ones(2, "int16").view(np.recarray), {"subclass"}),
        (np.ma.array([1.0, 2.0]), set()),
        (np.ma.array([1.0], mask=[False]), set()),
        (np.ma.array([1.0, 2.0])[::-1], {"noncontiguous", "negative_strides"}),
    ):
        assert interop.spec(value).traits == traits
        result = interop.convert(value, to="numpy", copy=False)
        assert type(result) is np.ndarray
        assert result.tolist() == value.tolist()
        assert start(result) == start(value)
        assert result.flags.writeable is (value is not locked)


# ------------------------------------------------------------------ to numpy


@together("layout", LAYOUTS)
def test_a_copy_keeps_the_order_of_the_elements(layout):
    """``copy=True`` gives fresh memory that lies as NumPy's own copy does."""
    a = LAYOUTS[layout](numbers("float32"))
    result = interop.convert(a, to="numpy", copy=True)
    assert (result.strides, result.dtype) == (a.copy("K").strides, a.dtype)
    assert result.tobytes() == a.tobytes()
    assert result.flags.writeable
    assert not np.shares_memory(result, a)


def test_a_mask_is_not_dropped_unasked():
    """A masked array is refused with the keyword that permits it, and then its data are shared."""
    masked = np.ma.array([1.0, 2.0], mask=[True, False])
    assert (interop.spec(masked).format, interop.spec(masked).traits) == ("numpy.ma", {"masked"})
    with pytest.raises(RefusedError) as refused:
        interop.convert(masked, to="numpy")
    assert refused.value.effects == {"drop_mask"}
    result = interop.convert(masked, to="numpy", allow="drop_mask")
    assert type(result) is np.ndarray
    assert result.tolist() == [1.0, 2.0]
    assert start(result) == start(masked.data)
    assert masked.mask.tolist() == [True, False]


# ------------------------------------------------------------------ casts


@together("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_every_dtype_is_cast_to_every_other(source, target):
    """Every dtype is cast to every other, also where NumPy knows no cast between them."""
    a = numbers(source)[::-1]
    before = a.tobytes()
    result = interop.convert(a, to="numpy", dtype=target)
    assert result.dtype == dtype_of(target)
    assert a.tobytes() == before
    if target == "int1":
        expected = np.where(values(a) == 0, 0, -1)  # its one bit is the sign
    else:
        expected = np.abs(values(a)) if target == "bool" or target[0] == "u" else values(a)
    if "float8_e8m0fnu" in (source, target) or {"int1"} & {source}:
        return  # what becomes of 0, 2 and -1 there is ml_dtypes' to say
    np.testing.assert_array_equal(values(result), expected)


@together("target", [n for n in NAMES if DTYPES[n].kind in "ui"])
def test_casting_what_does_not_fit(target):
    """A cast that was asked for is carried out, whatever becomes of NaN and infinity."""
    a = np.array([np.nan, np.inf, -np.inf, 1e300, 1.0])
    result = interop.convert(a, to="numpy", dtype=target)
    assert result.dtype == dtype_of(target)
    assert values(result)[-1] == 1 or target in {"int1", "uint1"}


@together("target", ["float64", "float32", "int8", "bfloat16", "float8_e5m2"])
def test_complex_to_real(target):
    """Of complex numbers a real dtype keeps the real part."""
    a = np.array([1 + 5j, -2 + 0j], "complex64")
    assert values(interop.convert(a, to="numpy", dtype=target)).tolist() == [1, -2]
    assert interop.convert(a * 1j, to="numpy", dtype="bool").all()


def test_casting_to_the_same_dtype_shares():
    """Asking for the dtype that an array has is not a copy."""
    a = np.ones(3, ml_dtypes.bfloat16)
    assert interop.convert(a, to="numpy", dtype="bfloat16") is a
    assert interop.convert(a, to="numpy", dtype=ml_dtypes.bfloat16) is a


@together(
    "dtype, name",
    [
        (np.float32, "float32"),
        (np.dtype("=i2"), "int16"),
        (np.longdouble, "longdouble"),
        (np.dtype("G"), "clongdouble"),
        (ml_dtypes.float8_e4m3fn, "float8_e4m3fn"),
        (np.dtype(ml_dtypes.int4), "int4"),
        (bool, "bool"),
        (int, "int64"),
        (float, "float64"),
        (complex, "complex128"),
    ],
)
def test_dtypes_by_object(dtype, name):
    """NumPy's dtype objects and scalar types, and Python's numbers, name dtypes."""
    result = interop.convert(np.ones(2, "int8"), to="numpy", dtype=dtype)
    assert interop.spec(result).dtype == name


@together("kind", [np.floating, np.generic, str, list, dict, object])
def test_classes_that_are_not_dtypes(kind):
    """A class that stands for no dtype, or for several, is refused."""
    with pytest.raises(TypeError, match="is not a dtype"):
        class_name(kind)


# ------------------------------------------------------------------ dlpack


class Bits:
    """A producer whose capsule calls 8- and 16-bit unsigned integers another dtype."""

    def __init__(self, source, code):
        self.source = source
        self.code = code

    def __dlpack__(self, **keywords):
        capsule = self.source.__dlpack__(max_version=(1, 0))
        pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
        pointer = pointer_of(("PyCapsule_GetPointer", ctypes.pythonapi))(
            capsule, b"dltensor_versioned"
        )
        # version 8, context 8, deleter 8, flags 8, data 8, device 8, ndim 4: then the type code.
        ctypes.c_uint8.from_address(pointer + 52).value = self.code
        return capsule

    def __dlpack_device__(self):
        return (1, 0)


#: DLPack's numbers of the kinds of narrow floats.
CODES = [
    ("bfloat16", 4),
    ("float8_e3m4", 7),
    ("float8_e4m3", 8),
    ("float8_e4m3b11fnuz", 9),
    ("float8_e4m3fn", 10),
    ("float8_e4m3fnuz", 11),
    ("float8_e5m2", 12),
    ("float8_e5m2fnuz", 13),
    ("float8_e8m0fnu", 14),
]


@pytest.mark.slow
@together("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "code"), [pair for pair in CODES if pair[0] not in LATER])
def test_narrow_floats_of_a_producer_are_shared_and_kept_alive(name, code, layout):
    """Narrow floats of a producer, which NumPy's own DLPack refuses, are shared and kept alive."""
    a = LAYOUTS[layout](numbers(name))
    bits = a.view(f"uint{8 * a.itemsize}")
    owner = weakref.ref(bits)
    producer = Bits(bits, code)
    result = interop.convert(producer, to="numpy", copy=False)
    expected, address = a.copy(), start(a)
    del producer, bits, a
    gc.collect()
    assert owner() is not None
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert result.tobytes() == expected.tobytes()
    assert result.flags.writeable is (layout != "readonly")
    if expected.size:
        assert start(result) == address
    del result
    gc.collect()
    assert owner() is None


# ------------------------------------------------------------------ memory and out=


def windows(shape, strides, memory=64):
    return np.lib.stride_tricks.as_strided(np.zeros(memory), shape, strides)


@together(
    "out",
    [
        readonly(np.zeros(3)),
        np.ma.array(np.zeros(3), mask=[False, True, False]),  # what is under a mask is not seen
        *(np.zeros(3, dtype) for dtype in ("M8[s]", "m8[ns]", "S4", "U4", "i4,f4", "V4", "O")),
        # several elements at one place
        *(windows((3, 2), strides) for strides in ((8, 8), (0, 8), (16, 32))),
        *(windows((2, 3), (16, 8)), windows((3,), (4,))),
    ],
)
def test_an_out_that_cannot_keep_all_numbers_is_refused(out):
    """What is locked, masked, no array of numbers, or overlaps itself stays as it was."""
    before = out.copy()
    with pytest.raises(BadRequestError):
        interop.convert(np.arange(1.0, out.size + 1).reshape(out.shape), out=out)
    assert np.ma.getdata(out).tobytes() == np.ma.getdata(before).tobytes()


@together(
    "out",
    [
        np.ma.array(np.zeros(3), mask=[False, True, False]).data,
        *(windows((1, 3), (0, 8)), windows((0, 3), (0, 0)), windows((3, 2), (16, 24))),
        *(windows((2, 3), strides) for strides in ((8, 16), (64, 8))),
    ],
)
def test_an_out_of_any_strides_is_written(out):
    """Axes may lie in each other's gaps, as long as no two elements are at one place."""
    numbers = np.arange(1.0, out.size + 1).reshape(out.shape)
    interop.convert(numbers, out=out)
    assert np.array_equal(out, numbers)


# ------------------------------------------------------------------ what is not numbers


STRANGE = {
    "object": np.array([None, 1]),
    "str": np.array(["a", "bc"]),
    "bytes": np.array([b"a"]),
    "datetime": np.array(["2020-01-01"], "datetime64[D]"),
    "timedelta": np.array([1], "timedelta64[s]"),
    "structured": np.zeros(2, [("a", "int32"), ("b", "float64")]),
    "void": np.zeros(2, "V3"),
}
if hasattr(np.dtypes, "StringDType"):  # of NumPy 2
    STRANGE["string"] = np.array(["a"], np.dtypes.StringDType())


@together("array", STRANGE.values())
def test_other_dtypes_stay_in_numpy(array):
    """What is not numbers keeps NumPy's name and is returned as it is; others refuse it by name."""
    name = str(interop.spec(array).dtype)
    assert name not in DTYPES
    assert interop.convert(array, to="numpy") is array
    for target in ("python", "scipy.csr", "scipy.coo"):
        with pytest.raises(RefusedError) as refused:
            interop.convert(array, to=target)
        assert name in str(refused.value)


@pytest.mark.parametrize("name", ["longdouble", "clongdouble"])
def test_longdouble_needs_a_dtype(name):
    """Extended precision goes elsewhere only when a dtype is asked for."""
    a = numbers(name)
    with pytest.raises(RefusedError):
        interop.convert(a, to="python")
    assert interop.convert(a, to="python", dtype="complex128") == values(a).tolist()
    sparse = interop.convert(a, to="scipy.csr")
    assert sparse.dtype == a.dtype


class Unmasked(np.ndarray):
    """An array with a mask of another library's kind, such as astropy's."""

    @property
    def unmasked(self):
        return self.view(np.ndarray)

    @property
    def mask(self):
        return np.array([False, True])


def test_the_mask_of_another_librarys_array_is_not_dropped():
    """An array of a subclass that has a mask of its own is masked as NumPy's are."""
    array = np.array([1.0, 2.0]).view(Unmasked)
    assert interop.spec(array).traits == {"masked"}
    with pytest.raises(RefusedError):
        interop.convert(array, to="numpy")
    data = interop.convert(array, to="numpy", allow="drop_mask", copy=False)
    assert type(data) is np.ndarray
    assert data.ctypes.data == array.ctypes.data
    with pytest.raises(BadRequestError):
        interop.convert(np.zeros(2), out=array)
    for dtype in (None, "float32"):
        assert interop.convert(array, to="pyarrow", dtype=dtype).to_pylist() == [1.0, None]


class Length(np.ndarray):
    """An array with a unit, such as astropy's."""

    unit = None


class MaskedLength(Unmasked, Length):
    """One with a mask as well."""

    @property
    def unmasked(self):
        length = self.view(Length)
        length.unit = self.unit
        return length


def test_a_unit_under_a_mask_is_a_label():
    """What lies under a mask has labels of its own, which are not lost unsaid either."""
    array = np.array([1.0, 2.0]).view(MaskedLength)
    assert interop.spec(array).traits == {"masked"}
    array.unit = "m"
    assert interop.spec(array).traits == {"masked", "labelled"}
    for target in ("numpy", "torch", "scipy.coo"):
        assert {"drop_mask", "drop_labels"} <= interop.plan(
            array, to=target, allow="drop_mask"
        ).effects
        with pytest.raises(RefusedError):
            interop.convert(array, to=target, allow="drop_mask", forbid="drop_labels")
    kept = interop.plan(array, to="pyarrow")
    assert kept.effects == {"copy", "drop_labels"}
    assert interop.convert(array, to="pyarrow").to_pylist() == [1.0, None]


def test_a_dtype_of_the_other_byte_order_is_refused():
    """A dtype object in the other byte order is not taken for its native one."""
    other = np.dtype("f4").newbyteorder()
    with pytest.raises(BadRequestError):
        interop.convert(np.ones(2), to="numpy", dtype=other)
    swapped = np.ones(2, other)
    assert interop.convert(swapped, to="numpy", dtype="float64").dtype.isnative
    assert interop.convert(np.ones(2), like=swapped).tolist() == [1, 1]


@together("size", [1, 2, 7, 100, 10**5])
def test_the_fast_key_has_the_class_of_the_size(size: int) -> None:
    """Arrays with one fast key are of one class of sizes, so that they have one plan."""
    array = np.ones(size, "int16")
    interop.spec(array)  # whose dtype is met
    key = fast_key(array)
    assert key is not None
    assert key[-1] == size_class(array.nbytes)


# ------------------------------------------------------------------ samples


@together("shape", [(6,), (1, 6), (2, 3)])
@together("trait", sorted(VARIANTS.keys() - {"scalar", "masked"}))
def test_an_odd_sample_has_one_trait(trait, shape):
    """A sample is odd in the way that it is named for, and in no other but what that implies."""
    sample = VARIANTS[trait](np.arange(6.0).reshape(shape))
    implied = {"negative_strides": {"noncontiguous"}, "broadcast": {"noncontiguous"}}
    assert interop.spec(sample).traits - {"fortran"} == {trait} | implied.get(trait, set())
    assert sample.shape == shape
    assert trait == "broadcast" or np.array_equal(sample, np.arange(6.0).reshape(shape))


@together("shape", [(), (6,), (2, 3)])
def test_a_masked_sample_has_one_masked_element(shape):
    """Its first element is masked, and nothing else is, so that dropping the mask loses it."""
    sample = mask_first(np.ones(shape))
    assert sample.mask.sum() == 1
    assert sample.mask.flat[0]


@together("trait", ["noncontiguous", "negative_strides", "broadcast"])
@together("shape", [(), (1,), (1, 1), (0, 3)])
def test_few_elements_have_no_strides(trait, shape):
    """An array of less than two elements cannot be odd in its strides, and no sample is made."""
    with pytest.raises(Declined):
        VARIANTS[trait](np.ones(shape))


def test_an_ordinary_array_is_described_by_its_flags_alone(monkeypatch):
    """Only what is not contiguous, aligned and writable is looked at more closely."""
    array = np.ones((2, 3))
    assert interop.spec(array).traits == set()
    monkeypatch.setattr(import_module("interop_plugins.numpy.describe"), "memory_traits", None)
    assert interop.spec(array).traits == set()
    array.flags.writeable = False
    with pytest.raises(interop.errors.PluginError):
        interop.spec(array)
