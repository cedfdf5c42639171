"""The table of dtypes against what NumPy and ml_dtypes say of them."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from interop._model.dtype import (
    DTYPES,
    KINDS,
    bit_carrier,
    common_first,
    itemsize,
    narrowed,
    preserves,
    promoted,
    spelled,
    unknown_kind,
)
from tests.cases import together


def _numpy(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


REAL = [n for n, d in DTYPES.items() if d.kind == "f" and n != "longdouble"]
SMALL = [n for n, d in DTYPES.items() if d.bits <= 16 and d.kind != "c"]
NUMBERS = [n for n in DTYPES if n not in ("longdouble", "clongdouble", "complex32")]


@pytest.mark.parametrize("name", REAL)
def test_reals_are_as_finfo_says(name: str) -> None:
    """The facts of every real dtype are those that ``finfo`` and casts report."""
    info = ml_dtypes.finfo(_numpy(name))
    facts = DTYPES[name]
    assert facts.digits == info.nmant + 1
    smallest = np.float64(info.smallest_subnormal)
    assert facts.low == int(np.log2(smallest)) if name != "float8_e8m0fnu" else facts.low == -127
    assert facts.high == int(np.frexp(np.float64(info.max))[1]) - 1
    with np.errstate(over="ignore"):
        infinity, zero = (np.float64(x).astype(_numpy(name)).astype("f8") for x in (np.inf, -0.0))
    assert facts.infinite == bool(np.isinf(infinity))
    assert facts.signed_zero == bool(np.signbit(zero))


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("complex32", "float16"),
        ("complex64", "float32"),
        ("complex128", "float64"),
        ("clongdouble", "longdouble"),
    ],
)
def test_complex_numbers_are_two_reals(name: str, part: str) -> None:
    """The facts of a complex dtype are those of its parts, in twice as many bits."""
    facts = DTYPES[part]
    assert DTYPES[name] == facts._replace(kind="c", bits=2 * facts.bits)


@together("name", NUMBERS)
def test_itemsize_is_numpys(name: str) -> None:
    """The bytes of an element are those NumPy reports."""
    assert itemsize(name) == _numpy(name).itemsize


def _every_value(name: str) -> np.ndarray:
    dtype = _numpy(name)
    if name == "bool":
        return np.array([False, True])
    if DTYPES[name].kind in "iu" and DTYPES[name].digits < 7:
        low = 0 if name[0] == "u" else -(2 ** DTYPES[name].digits)
        return np.arange(low, 2 ** DTYPES[name].digits).astype(dtype)
    bits = np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}")
    if name in ("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"):
        bits = bits[: 2 ** int(name[5])]
    values = bits.view(dtype)
    with np.errstate(invalid="ignore"):  # some NaNs signal
        return values[~np.isnan(values.astype("f8"))]


@pytest.mark.parametrize("source", SMALL)
def test_preserves_exactly_when_every_value_survives(source: str) -> None:
    """A cast counts as lossless exactly if every value but NaN comes back, with its sign."""
    values = _every_value(source).astype("f8")
    for target in (t for t in NUMBERS if DTYPES[t].kind != "c"):
        with np.errstate(all="ignore"):
            back = values.astype(_numpy(target)).astype("f8")
        survives = np.array_equal(back, values) and np.array_equal(
            np.signbit(back), np.signbit(values)
        )
        if DTYPES[source].kind == "f" and DTYPES[target].kind in "bui":
            survives = False  # NaN has no integer
        if target == "bool":
            survives = source == "bool"  # truth is no number
        assert preserves(source, target) == survives, (source, target)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("int64", "float64", False),
        ("int32", "float64", True),
        ("int32", "float32", False),
        ("uint64", "int64", False),
        ("uint32", "int64", True),
        ("float64", "complex64", False),
        ("float32", "complex64", True),
        ("complex64", "float64", False),
        ("complex32", "complex64", True),
        ("float64", "longdouble", True),
        ("longdouble", "float64", False),
        ("object", "float64", False),
    ],
)
def test_wide_dtypes(source: str, target: str, expected: bool) -> None:
    """The pairs too wide to enumerate are as arithmetic says."""
    assert preserves(source, target) is expected


def test_promoted_is_the_narrowest_that_holds_all() -> None:
    """Promotion keeps the kind and takes the narrowest width that holds every value."""
    available = ["float32", "float64", "int32", "int64", "complex64"]
    assert promoted("bfloat16", available) == "float32"
    assert promoted("float16", available) == "float32"
    assert promoted("uint16", available) == "int32"
    assert promoted("complex32", available) == "complex64"
    assert promoted("uint64", available) is None


def test_narrowed_is_the_widest_of_the_kind() -> None:
    """A narrowing that may lose values still keeps the kind and loses as little as it can."""
    assert narrowed("float64", ["float16", "float32", "int64"]) == "float32"
    assert narrowed("complex128", ["float64"]) is None
    assert narrowed("object", ["float64"]) is None


def test_bits_are_carried_by_integers_of_the_same_width() -> None:
    """Only the dtypes that most frameworks lack have a carrier, which is as wide."""
    for name in DTYPES:
        carrier = bit_carrier(name)
        if carrier is not None:
            assert itemsize(carrier) == itemsize(name)
    assert bit_carrier("bfloat16") == "uint16"
    assert bit_carrier("float16") is bit_carrier("float32") is bit_carrier("int8") is None


def test_preserves_is_transitive() -> None:
    """A chain of lossless casts is lossless."""
    for a, b, c in itertools.product(DTYPES, repeat=3):
        if preserves(a, b) and preserves(b, c):
            assert preserves(a, c), (a, b, c)


@pytest.mark.parametrize("code", ["<f4", ">f4", "=f4", "f4"])
def test_a_code_of_numpys_counts_in_the_byte_order_of_the_machine(code: str) -> None:
    """A code of the other order is left as it is, because it names another dtype."""
    assert spelled(code) == ("float32" if np.dtype(code).isnative else code)


def test_everyday_dtypes_are_named_before_all_others() -> None:
    """Of each kind the narrow ones come first; what is no dtype of the table comes last."""
    common = (
        "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
    )
    names = common_first(["of my own", *sorted(DTYPES)])
    assert names[:12] == common.split()
    assert sorted(names[12:-1]) == sorted(DTYPES.keys() - {*common.split()})
    assert names[-1] == "of my own"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("integer integers integral", "integral"),
        ("signed signd signed_integer signedinteger", "signed integer"),
        ("unsigned unsinged unsigned_integer unsignedinteger", "unsigned integer"),
        ("floating floating_point floating-point floats real reals inexact", "real floating"),
        ("complexfloating complex_floating", "complex floating"),
        ("number numbers numeric", "numeric"),
    ],
)
def test_everyday_words_for_dtypes_are_answered_with_the_name(words: str, kind: str) -> None:
    """Words of everyday use, and NumPy's for its classes, stand for the standard's names."""
    assert kind in KINDS
    for word in words.split():
        assert unknown_kind(word) == f"did you mean {kind!r}?"


def test_spellings_mean_what_they_mean_to_numpy() -> None:
    """NumPy's other names and its codes stand for its dtypes, and those with bits for what they say."""
    words = "bool_ int float complex short long uint half single double f2 f4 f8 c8 c16"
    for word in (*words.split(), *(f"{kind}{n}" for kind in "iu" for n in (1, 2, 4, 8))):
        assert spelled(word) == np.dtype(word).name
    for bits in ("16", "32", "64"):
        assert spelled(f"fp{bits}") == f"float{bits}"
        assert (spelled(f"i{bits}"), spelled(f"u{bits}")) == (f"int{bits}", f"uint{bits}")
    assert (spelled("f32"), spelled("f64")) == ("float32", "float64")
    assert spelled("bf16") == "bfloat16"
