"""Foreign values that show arrays by the older protocols are read right, checked, and shared."""

from __future__ import annotations

import array
import ctypes
import mmap
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pickle import PickleBuffer
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import interop
from interop.errors import HandOffError, RefusedError, UnknownValueError
from interop.kit import ADDRESSES, dtype_name
from interop_plugins.protocols import buffers, interfaces
from tests.cases import together
from tests.kit.capsules import bounds


class Interface:
    """A foreign value whose ``__array_interface__`` is NumPy's own with some entries changed."""

    def __init__(self, source, **changes):
        self.source = source
        entries = {**source.__array_interface__, **changes}
        self.entries = {key: entry for key, entry in entries.items() if entry is not LEFT_OUT}

    @property
    def __array_interface__(self):
        return self.entries


LEFT_OUT = object()


class CudaInterface:
    """A foreign value with a ``__cuda_array_interface__``."""

    def __init__(self, **changes):
        self.entries = {
            "shape": (2, 3),
            "typestr": "<f4",
            "data": (0x7F0000000000, False),
            "version": 3,
            **changes,
        }

    @property
    def __cuda_array_interface__(self):
        return self.entries


class Answer:
    """A foreign value that has only ``__array__``, with the signature before ``copy``."""

    def __init__(self, answer):
        self.answer = answer
        self.calls = 0

    def __array__(self, dtype=None):
        self.calls += 1
        return self.answer


class Labelled(Answer):
    """A foreign value that also says what its array is."""

    def __init__(self, answer, dtype, shape):
        super().__init__(answer)
        self.dtype = dtype
        self.shape = shape


def matrix():
    return np.arange(6.0).reshape(2, 3)


def locked():
    result = matrix()
    result.flags.writeable = False
    return result


LAYOUTS = {
    "plain": (matrix, set()),
    "transposed": (lambda: matrix().T, {"noncontiguous", "fortran"}),
    "strided": (lambda: matrix()[:, ::2], {"noncontiguous"}),
    "backwards": (lambda: matrix()[::-1], {"noncontiguous", "negative_strides"}),
    "broadcast": (
        lambda: np.broadcast_to(np.arange(3.0), (2, 3)),
        {"noncontiguous", "broadcast", "readonly"},
    ),
    "readonly": (locked, {"readonly"}),
    "swapped": (lambda: matrix().astype(">f8"), {"byteswapped"}),
    "unaligned": (lambda: np.zeros(17, "u1")[1:].view("f8"), {"unaligned"}),
    "unaligned_complex": (lambda: np.zeros(33, "u1")[1:].view("c16"), {"unaligned"}),
    "half_aligned_complex": (lambda: np.zeros(40, "u1")[8:].view("c16"), {"unaligned"}),
    "unaligned_half": (lambda: np.zeros(9, "u1")[1:].view("f2"), {"unaligned"}),
    "columns_of_bytes": (lambda: np.zeros((2, 4), "u1")[:, :3], {"noncontiguous"}),
    "columns_of_one_row": (lambda: matrix()[:1, ::2], {"noncontiguous"}),
    "empty": (lambda: np.zeros((0, 3)), set()),
    "scalar": (lambda: np.array(3.0), set()),
}
if sys.byteorder == "big":
    LAYOUTS["swapped"] = (lambda: matrix().astype("<f8"), {"byteswapped"})

DTYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DTYPES += [
    "bool",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "longdouble",
    "clongdouble",
]


def check_view(result, source, *, writeable=None):
    """Assert that `result` is a plain array over the memory of `source`, locked as that is."""
    assert type(result) is np.ndarray
    assert result.dtype == source.dtype
    assert result.shape == source.shape
    assert result.ctypes.data == source.ctypes.data
    assert result.flags.writeable == (source.flags.writeable if writeable is None else writeable)
    np.testing.assert_array_equal(result, source)


@together(
    "show, memory", [(Interface, interfaces.interface_memory), (memoryview, buffers.buffer_memory)]
)
@together(
    "make, traits",
    [*LAYOUTS.values(), *((lambda name=name: np.zeros(3, name), set()) for name in DTYPES)],
)
def test_layouts_and_dtypes_are_described_and_shared(make, traits, show, memory):
    """Interfaces and buffers of every layout and dtype show traits and memory, and become views."""
    source = make()
    value = show(source)
    spec = interop.spec(value)
    assert spec.format == ("buffer" if show is memoryview else "array_interface")
    assert (spec.dtype, spec.shape, spec.nbytes) == (
        dtype_name(source.dtype),
        source.shape,
        source.nbytes,
    )
    assert spec.traits == traits
    low, high = bounds(source)
    assert memory(value) == (((low, high - low),) if source.size else ())
    check_view(interop.convert(value, to="numpy", copy=False), source)


@together("dtype", ["M8[s]", "m8[ns]", "S3", "U2", "V4", object, [("a", "i4")], ml_dtypes.bfloat16])
def test_what_are_not_numbers_is_described_and_refused(dtype):
    """Dates, texts, objects, records and the bare bits of other dtypes have a spec alone."""
    value = Interface(np.zeros(2, dtype))
    assert interop.spec(value).dtype == str(np.dtype(value.entries["typestr"]))
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy")


LIES = {
    "null": {"data": (0, False)},
    "small_address": {"data": (8, False)},
    "address_below_zero": {"data": (-4096, False)},
    "address_beyond_all": {"data": (2**64 - 8, False)},
    "data_is_short": {"data": (4096,)},
    "data_is_a_float": {"data": (4096.0, False)},
    "data_is_a_number": {"data": 140000000000},
    "flag_is_text": {"data": (1 << 40, "no")},
    "no_data_no_buffer": {"data": LEFT_OUT},
    "negative_length": {"shape": (-2, 3)},
    "float_length": {"shape": (2.0, 3)},
    "shape_is_a_list": {"shape": [2, 3]},
    "no_shape": {"shape": LEFT_OUT},
    "many_axes": {"shape": (1,) * 65},
    "overflow": {"shape": (2**62, 2**62)},
    "far_strides": {"strides": (2**62, 2**62)},
    "strides_below_zero": {"strides": (-(2**62), 8)},
    "few_strides": {"strides": (8,)},
    "strides_is_text": {"strides": "24,8"},
    "strides_are_text": {"strides": ("24", "8")},
    "no_typestr": {"typestr": LEFT_OUT},
    "typestr_is_bytes": {"typestr": b"<f8"},
    "typestr_is_nonsense": {"typestr": "<q99"},
    "typestr_of_odd_size": {"typestr": "<i3"},
    "buffer_too_short": {"data": b"12345678"},
    "buffer_behind_offset": {"data": bytes(48), "offset": 8},
    "negative_offset": {"data": bytes(48), "offset": -8},
    "backwards_out_of_buffer": {"data": bytes(48), "strides": (-24, 8)},
    "buffer_with_gaps": {"data": memoryview(bytes(96))[::2]},
}


if ADDRESSES < 2**64:
    LIES["address_of_nobody"] = {"data": (ADDRESSES, False)}
    LIES["address_of_the_kernel"] = {"data": (2**63 + 2**40, False)}


@together("lie", [*LIES.values(), None, "shape", [("shape", (3,))]])
def test_a_lying_interface_is_refused(lie):
    """What an interface says is checked before NumPy sees it, and it has to be a dict."""
    value = Interface(matrix(), **lie) if isinstance(lie, dict) else Interface(matrix())
    if not isinstance(lie, dict):
        value.entries = lie
    with pytest.raises(HandOffError):
        interop.convert(value, to="numpy")


@together("name", ["__array_interface__", "__array__"])
def test_code_that_fails_is_the_cause_of_a_refusal(name):
    """What a protocol of a value raises is the cause of the error."""

    def fail(self):
        raise RuntimeError("not computed yet")

    value = type("Failing", (), {name: property(fail) if "interface" in name else fail})()
    with pytest.raises(HandOffError) as caught:
        interop.spec(value)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_numpy_sees_what_was_checked():
    """An interface that changes when it is read again cannot slip past the checks."""

    class Fickle:
        calls = 0

        @property
        def __array_interface__(self):
            self.calls += 1
            fine = source.__array_interface__
            return fine if self.calls <= 2 else {**fine, "data": (0, False)}

    source = matrix()
    check_view(interop.convert(Fickle(), to="numpy"), source)


def test_interface_over_a_buffer():
    """An interface may give a buffer and an offset instead of a pointer."""
    buffer = bytearray(np.arange(8.0).tobytes())
    value = Interface(matrix(), data=buffer, offset=16)
    result = interop.convert(value, to="numpy", copy=False)
    np.testing.assert_array_equal(result, np.arange(2.0, 8.0).reshape(2, 3))
    buffer[16:24] = np.float64(7).tobytes()
    assert result[0, 0] == 7
    frozen = Interface(matrix(), data=matrix().tobytes())
    assert interop.spec(frozen).traits == {"readonly"}
    assert not interop.convert(frozen, to="numpy").flags.writeable


def test_interface_over_its_own_buffer():
    """An interface without data stands for the value's own buffer."""

    class Own(bytearray):
        @property
        def __array_interface__(self):
            return {"version": 3, "shape": (2,), "typestr": "<i4", "data": None}

    value = Own(np.array([5, 6], "<i4").tobytes())
    spec = interfaces.describe_array_interface(value)
    assert (spec.dtype, spec.shape) == ("int32", (2,))
    assert interfaces.from_array_interface(value).tolist() == [5, 6]


def test_numbers_of_numpy_are_numbers():
    """Lengths and strides may be NumPy's integers."""
    value = Interface(matrix(), shape=(np.int64(2), np.int32(3)), strides=(np.int64(24), 8))
    assert interop.spec(value).shape == (2, 3)
    np.testing.assert_array_equal(interop.convert(value, to="numpy"), matrix())


@together("value", [b"four", bytearray(b"four"), memoryview(b"four"), memoryview(b"fourfour")[::2]])
def test_bytes_are_copied_cold_and_warm(value):
    """Whatever the type of bytes, a copy has the same numbers in memory of its own."""
    pytest.importorskip("torch")
    mine = interop.Interop()
    for keywords in ({"to": "torch", "copy": True}, {"to": "numpy", "dtype": "int64"}):
        for longer in (1, 1, 1, 50, 1):
            bytes_ = value if longer == 1 else type(value)(bytes(value) * longer)
            result = np.asarray(mine.convert(bytes_, **keywords))
            assert result.tolist() == list(bytes(bytes_))
            assert result.dtype == keywords.get("dtype", "uint8")
            assert result.flags.writeable
            assert not np.shares_memory(result, np.asarray(memoryview(bytes_)))


def test_locked_bytes_are_copied_by_warm_calls_that_share_others():
    """Views of one type, some of which are read-only, each get what a first call gives them."""
    pytest.importorskip("torch")
    mine, whole = interop.Interop(), bytearray(b"four")
    for _ in range(3):
        for view in (memoryview(whole), memoryview(whole).toreadonly()):
            result = mine.convert(view, to="torch").numpy()
            assert result.tolist() == list(whole)
            assert np.shares_memory(result, np.asarray(view)) is not view.readonly


class Chunk(bytes):
    """Bytes of a class of their own."""


def _views(code):
    """Return what makes views of numbers of a code: plain, locked, backwards, of two axes."""
    whole = np.arange(1, 7).astype("uintp" if code == "N" else code)
    view = memoryview(whole)
    bytes_ = memoryview(whole.view("u1"))
    return [
        *(lambda: view, view.toreadonly, lambda: view[::-2]),
        lambda: bytes_.cast("B", (2, whole.nbytes // 2)),
    ]


def _buffer_of_arrow():
    return pytest.importorskip("pyarrow").py_buffer(b"abc")


#: What makes buffers, of which most cannot be told from others by their type.
BUFFERS = [
    *(
        partial(kind, text)
        for kind in (bytes, bytearray, Chunk, PickleBuffer)
        for text in (b"", b"ab")
    ),
    *(partial(array.array, code, range(n)) for code in "bBhHiIlLqQfd" for n in (3, 2, 0)),
    *(make for code in "?bhilqBHILQefdNg" for make in _views(code)),
    *(partial(ctypes.c_int, 3), partial(ctypes.c_double, 1.5), partial(ctypes.c_bool, True)),
    *(partial(ctypes.c_uint8, 255), partial(ctypes.c_int16 * 2, 1, -1), ctypes.c_int16 * 3 * 2),
    _buffer_of_arrow,
]


@together("make", BUFFERS)
def test_buffers_are_shared_cold_and_warm(make):
    """Bytes, numbers, ctypes and views of any are shared as NumPy reads them, time and again."""
    for _ in range(3):
        value = make()
        source = np.asarray(memoryview(value))
        check_view(interop.convert(value, to="numpy", copy=False), source)
        spec = interop.spec(value)
        assert (spec.format, spec.dtype, spec.shape) == (
            "buffer",
            dtype_name(source.dtype),
            source.shape,
        )
        assert ("readonly" in spec.traits) is memoryview(value).readonly


def test_views_that_are_odd_are_described():
    """A released view, one of characters, and one of numbers at odd addresses are not taken as plain."""
    pytest.importorskip("torch")
    for target in ("numpy", "torch", "numpy", "torch"):
        for plain in (memoryview(b"ab"), memoryview(b"cd")):  # the second by the fast path
            assert np.asarray(interop.convert(plain, to=target)).tolist() == list(plain)
        released = memoryview(bytearray(2))
        released.release()
        with pytest.raises(HandOffError):
            interop.convert(released, to="numpy")
        with pytest.raises(RefusedError):
            interop.convert(memoryview(b"ab").cast("c"), to=target)
        odd = memoryview(np.frombuffer(bytearray(17), np.uint8)[1:].view("f8"))
        assert "unaligned" in interop.spec(odd).traits
        assert interop.convert(odd, to="torch").tolist() == [0, 0]


def test_mapped_memory_is_shared_and_stays_open():
    """A mapping is a view of the same bytes, cold and warm, which cannot be closed under it."""
    for closed in (False, False, True):
        with mmap.mmap(-1, 4) as mapped:
            mapped[:] = b"four"
            result = interop.convert(mapped, to="numpy", copy=False)
            result[0] = 1
            assert (bytes(mapped), result.dtype) == (b"\x01our", np.uint8)
            with pytest.raises(BufferError):
                mapped.close()
            del result
        if closed:
            with pytest.raises(HandOffError):
                interop.convert(mapped, to="numpy")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="__buffer__ is of Python 3.12")
def test_a_foreign_value_with_a_buffer():
    """A class that writes __buffer__ in Python is a buffer."""

    class Foreign:
        def __buffer__(self, flags):
            return memoryview(source)

    source = matrix()
    check_view(interop.convert(Foreign(), to="numpy"), source)


def test_standard_formats_of_buffers():
    """A format with a byte order has the size that the buffer gives."""
    assert buffers._format("<i", 4) == ("int32", sys.byteorder == "big")
    assert buffers._format(">q", 8) == ("int64", sys.byteorder == "little")
    assert buffers._format("!B", 1) == ("uint8", False)
    assert buffers._format("Zf", 8) == ("complex64", False)
    assert buffers._format("@e", 2) == ("float16", False)
    assert buffers._format("bfloat16", 2)[0] not in interop.plugin.DTYPES
    assert buffers._format("T{i:a:}", 4)[0] not in interop.plugin.DTYPES


@together("dtype", [np.dtype("float64"), "float64", np.float64])
@together("rows", [2, 0])
def test_a_value_is_described_by_its_dtype_and_its_shape(dtype, rows):
    """Its array is asked for by the conversion alone; a dtype may be a name or a scalar type."""
    value = Labelled(matrix()[:rows], dtype, (rows, 3))
    assert interop.spec(value)[:4] == ("array", "float64", "cpu", (rows, 3))
    assert value.calls == 0
    np.testing.assert_array_equal(interop.convert(value, to="numpy"), matrix()[:rows])
    assert value.calls == 1


@together("label", [(None, (2, 3)), ("category", (2, 3)), ("float64", [2, 3])])
def test_without_a_label_the_array_is_asked_for(label):
    """A value that does not say what it is in NumPy's terms is what its array is."""
    value = Labelled(matrix(), *label)
    assert interop.spec(value)[:4] == ("numpy", "float64", "cpu", (2, 3))
    np.testing.assert_array_equal(interop.convert(value, to="numpy"), matrix())
    assert interop.spec(Answer(matrix().astype(ml_dtypes.bfloat16))).dtype == "bfloat16"


@pytest.mark.parametrize("target", ["numpy", "torch"])
def test_an_array_is_asked_for_once(target):
    """A conversion and a plan ask for the array once each, the first time and the next."""
    pytest.importorskip(target)
    for value in (Answer(matrix()), Labelled(matrix(), np.dtype("float64"), (2, 3))):
        for _ in range(3):
            value.calls = 0
            interop.convert(value, to=target)
            assert value.calls == 1
        value.calls = 0
        interop.convert_tree({"a": [value]}, to=target)
        assert value.calls == 1
        value.calls = 0
        interop.plan(value, to=target)
        assert value.calls == (type(value) is Answer)


@together("layout", LAYOUTS)
@together("copy", [None, False, True])
def test_the_answer_of_a_value_that_says_nothing_is_converted(layout, copy):
    """Its array is shared, refused or copied as the same NumPy array is, and so is the plan."""
    pytest.importorskip("torch")
    source = LAYOUTS[layout][0]()
    for target in ("numpy", "torch"):
        outcomes = []
        for value in (source, Answer(source)):
            try:
                route = interop.plan(value, to=target, copy=copy)
                result = np.asarray(interop.convert(value, to=target, copy=copy))
                outcomes.append((route.aliases, np.shares_memory(result, source), result.tolist()))
            except RefusedError:
                outcomes.append(None)
        assert outcomes[0] == outcomes[1], target


class Heedless(Labelled):
    """A foreign value whose method takes ``copy=``, and hands its own memory over all the same."""

    def __array__(self, dtype=None, copy=None):
        self.calls += 1
        return self.answer


@together("kind", [Labelled, Heedless])
@together("view", [lambda array: array, lambda array: array[:]])
def test_the_answer_of_a_value_that_says_what_it_is_is_copied(kind, view):
    """No plan can know what it will be, so the result is in memory of its own, and says so."""
    source = matrix()
    value = kind(view(source), np.dtype("float64"), (2, 3))
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy", copy=False)
    for copy in (None, True):
        route = interop.plan(value, to="numpy", copy=copy)
        assert not route.aliases
        assert "fresh memory" in str(route).splitlines()[0]
        owned = interop.convert(value, to="numpy", copy=copy)
        assert not np.shares_memory(owned, source)
        np.testing.assert_array_equal(owned, source)


@together("takes_copy", [True, False])
@together("target", ["numpy", "torch"])
def test_arrays_made_for_the_answer_are_not_copied_again(takes_copy, target):
    """An array that is made for the answer is the caller's, whoever gets it in the end."""
    pytest.importorskip("torch")
    made = []

    def read(self, copy=None):
        array = np.arange(6.0)
        made.append(array.ctypes.data)
        return array

    def read_as_before(self):
        return read(self)

    method = read if takes_copy else read_as_before
    fields = {"dtype": np.dtype("float64"), "shape": (6,), "__array__": method}
    result = interop.convert(type("Lazy", (), fields)(), to=target)
    assert np.asarray(result).ctypes.data == made[-1]
    np.testing.assert_array_equal(np.asarray(result), np.arange(6.0))


@together("make", [*(make for make, _ in LAYOUTS.values()), lambda: np.ones(2).view(np.recarray)])
def test_answers_become_plain_arrays(make):
    """Whatever __array__ returns, the result is C-ordered, aligned, native, writable and plain."""
    source = make()
    value = Labelled(source, source.dtype, source.shape)
    result = interop.convert(value, to="numpy")
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, source)
    assert result.flags.carray
    assert result.dtype == source.dtype.newbyteorder("=")


@together("name", ["unit", "units"])
@together("labelled", [True, False])
def test_a_unit_is_a_label(name, labelled):
    """The unit of a value of any library is dropped only where labels may be."""
    value = Labelled(matrix(), np.dtype("float64"), (2, 3)) if labelled else Answer(matrix())
    setattr(value, name, "metre")
    for target in ("numpy", "python"):
        with pytest.raises(RefusedError):
            interop.convert(value, to=target, forbid="drop_labels")
        result = np.asarray(interop.convert(value, to=target))
        np.testing.assert_array_equal(result, matrix())


def test_a_quantity_is_handed_over_as_what_it_is():
    """What pint wraps goes on as itself, with its memory, its graph and its unit as a label."""
    pint = pytest.importorskip("pint")
    torch = pytest.importorskip("torch")
    metre = pint.UnitRegistry().metre
    array = np.arange(3.0)
    quantity = pint.Quantity(array, metre)
    for target in ("numpy", "torch"):
        with pytest.raises(RefusedError):
            interop.convert(quantity, to=target, forbid="drop_labels")
        result = interop.convert(quantity, to=target, copy=False)
        assert np.shares_memory(np.asarray(result), array)
        owned = interop.convert(quantity, to=target, copy=True)
        assert not np.shares_memory(np.asarray(owned), array)
    tensor = torch.ones(2, requires_grad=True)
    assert interop.convert(pint.Quantity(tensor, metre), to="torch") is tensor


@together(
    "answer, label",
    [
        (np.array([1.5, 2.5]), (np.dtype("int16"), (2,))),  # as NIfTI files with a slope give it
        (np.array([1, 2], "int16"), (np.dtype("float64"), (2,))),
        (np.array([[1.0, 2.0]]), (np.dtype("float64"), (2,))),
    ],
)
def test_the_array_that_a_value_gives_counts_and_not_what_the_value_says(answer, label):
    """A file may be scaled when it is read, so that its array has another dtype or shape."""
    for target in ("numpy", "python"):
        assert_given(interop.convert(Labelled(answer, *label), to=target), answer, target)
    tree = interop.convert_tree({"a": Labelled(answer, *label)}, to="numpy", copy=True)
    assert_given(tree["a"], answer, "numpy")
    narrow = interop.convert(Labelled(answer, *label), to="numpy", dtype="float32")
    assert narrow.dtype == np.float32
    np.testing.assert_array_equal(narrow, np.asarray(answer, np.float32))
    if label[1] == answer.shape:
        out = np.zeros(answer.shape)
        interop.convert(Labelled(answer, *label), out=out)
        np.testing.assert_array_equal(out, np.asarray(answer))


def assert_given(result, answer, target):
    """Check that a result is the array that was given, dtype included."""
    if target == "python":
        assert result == answer.tolist()
        return
    assert type(result) is np.ndarray
    assert result.dtype == answer.dtype
    np.testing.assert_array_equal(result, np.asarray(answer))


@together(
    "changes, traits",
    [
        ({}, set()),
        ({"data": (0x7F0000000000, True)}, {"readonly"}),
        ({"strides": (4, 8)}, {"noncontiguous", "fortran"}),
        ({"strides": (12, 4)}, set()),
        ({"mask": object()}, {"masked"}),
        ({"data": (0x7F0000000002, False)}, {"unaligned"}),
        ({"shape": (0, 3), "data": (0, False)}, set()),
        ({"version": 2}, set()),
        ({"stream": 7}, set()),
    ],
)
def test_cuda_interfaces_are_described(changes, traits):
    """Flags, strides and masks become traits, and the device is some CUDA device."""
    value = CudaInterface(**changes)
    spec, shape = interop.spec(value), value.entries["shape"]
    assert (spec.format, spec.dtype, spec.device) == ("cuda_array_interface", "float32", "cuda")
    assert (spec.shape, spec.nbytes, spec.traits) == (shape, 4 * np.prod(shape), traits)
    memory = ((value.entries["data"][0], spec.nbytes),) if spec.nbytes else ()
    assert interfaces.cuda_memory(value) == memory


def test_lies_do_not_end_the_process():
    """The worst lies end in exceptions, and not in the end of the process."""
    script = """
        import numpy as np, interop
        class Liar:
            def __init__(self, **entries):
                self.__dict__["entries"] = entries
            @property
            def __array_interface__(self):
                return {"version": 3, "typestr": "<f8", **self.entries}
        for entries in (
            dict(shape=(1000,), data=(0, False)),
            dict(shape=(1000,), data=(64, False)),
            dict(shape=(2**61,), data=(2**63, False)),
            dict(shape=(1000,), data=b"short"),
            dict(shape=(3,), strides=(-(2**50),), data=(1 << 20, False)),
        ):
            try:
                interop.convert(Liar(**entries), to="numpy").sum()
            except BufferError:
                continue
            raise SystemExit(f"{entries} was believed")
    """
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr


class Proxy:
    """Something that stands for another object."""

    def __init__(self, value):
        self._value = value

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "_value"), name)


class Holder:
    """Something whose attributes are set on each instance."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


@pytest.mark.parametrize("target", ["numpy", "torch", "python"])
@pytest.mark.parametrize("offer", ["__dlpack__", "__array_interface__", "__array__", "proxy"])
def test_protocols_of_an_instance(convert, offer, target):
    """A protocol that only the instance has serves as one of its type does, time and again."""
    if target == "torch":
        pytest.importorskip("torch")
    array = np.arange(6.0).reshape(2, 3)
    value = Proxy(array) if offer == "proxy" else Holder(**{offer: getattr(array, offer)})
    if offer == "__dlpack__":
        value.__dlpack_device__ = array.__dlpack_device__
    result = convert(value, to=target)
    assert np.array_equal(np.asarray(result), array)
    if target == "numpy" and offer != "__array__":
        assert np.shares_memory(result, array)
    other = Holder()
    with pytest.raises(UnknownValueError):
        interop.convert(other, to=target)


def missing(self):
    raise AttributeError("only on the device")


@pytest.mark.parametrize("target", ["numpy", "torch", "python"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("__dlpack__", "__array__"),
        ("__cuda_array_interface__", "__dlpack__"),
        ("__cuda_array_interface__", "__array_interface__"),
        ("__array_interface__", "__array__"),
    ],
)
def test_a_protocol_that_raises_attribute_error_gives_way_to_the_next(first, second, target):
    """A protocol whose property raises AttributeError gives way to the next, call after call."""
    if target == "torch":
        pytest.importorskip("torch")
    array = np.arange(6.0).reshape(2, 3)
    kind = type(
        "Picky",
        (),
        {
            first: property(missing),
            second: property(lambda self: getattr(array, second)),
            "__dlpack_device__": lambda self: (1, 0),
        },
    )
    for _ in range(3):
        result = interop.convert(kind(), to=target)
        assert np.array_equal(np.asarray(result), array)
        if target == "numpy" and second != "__array__":
            assert np.shares_memory(result, array)


class Image:
    """Works its memory out whenever it is asked for its interface, as an image of Pillow's does."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.reads = shape, 0

    @property
    def __array_interface__(self) -> dict[str, Any]:
        self.reads += 1
        data = np.full(self.shape, self.reads, np.uint8).tobytes()
        return {"version": 3, "shape": self.shape, "typestr": "|u1", "data": data}


class Table:
    """A foreign table, whose columns have dtypes that its array may not show."""

    columns = ("a", "b")

    def __init__(self, answer: np.ndarray, *dtypes: object) -> None:
        self.answer, self.dtypes = answer, dtypes

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.answer, dtype, copy=copy)


class Missing:
    """A dtype with a missing value of its own, as pandas has them."""

    na_value = None


@together("names", [False, True])
@together("stated", [[np.dtype("i8"), np.dtype("f8")], [np.dtype("f8"), Missing()]])
def test_tables_whose_array_would_lose_numbers_are_refused(
    *, stated: list[Any], names: bool
) -> None:
    """Integers that floats would round and nulls that become NaN are refused, whatever consents."""
    table = Table(np.array([[2.0**53, np.nan]]), *stated)
    if names:
        table.dtypes = dict(zip("ab", stated, strict=True))
    for words in ({}, {"dtype": "float64"}, {"allow": "narrow"}):
        for target in ("numpy", "python"):
            with pytest.raises(HandOffError):
                interop.convert(table, to=target, **words)


def test_a_table_without_loss_is_converted_and_its_names_are_labels() -> None:
    """Columns that the dtype of the array holds are handed over, unless labels must be kept."""
    table = Table(np.array([[1.0, 0.5]]), np.dtype("i2"), np.dtype("f8"))
    result = interop.convert(table, to="numpy")
    assert (result.dtype, result.tolist()) == (np.dtype("f8"), [[1.0, 0.5]])
    assert interop.plan(table, to="numpy").effects >= {"drop_labels"}
    with pytest.raises(RefusedError):
        interop.convert(table, to="numpy", forbid="drop_labels")


def test_a_value_of_an_interface_is_its_own_conversion_to_that(convert: Callable[..., Any]) -> None:
    """To its own format a value is returned as it is, and not what it was read as."""
    value = Interface(np.arange(3.0))
    for copy in (None, False):
        assert convert(value, to="array_interface", copy=copy) is value


@pytest.mark.parametrize("request_", [{}, {"copy": True}, {"dtype": "float32"}], ids=str)
@pytest.mark.parametrize("target", ["numpy", "torch", "python"])
def test_an_interface_is_asked_for_once(target: str, request_: dict[str, Any]) -> None:
    """A conversion reads the interface of a value once, and takes shape and numbers from it."""
    if target == "torch":
        pytest.importorskip("torch")
    for convert in (
        lambda image: interop.convert(image, to=target, **request_),
        lambda image: interop.convert_tree({"a": image}, to=target, **request_)["a"],
        interop.converter(target, **request_),
    ):
        image = Image((2, 3))
        assert np.array_equal(np.asarray(convert(image)), np.ones((2, 3)))
        assert image.reads == 1
    image = Image((2, 3))
    with interop.trace() as receipts:
        interop.convert(image, to=target, **request_)
    assert image.reads == 1
    assert [receipt.source.format for receipt in receipts] == ["array_interface"]


@pytest.mark.parametrize("to", ["jax", "mlx"])
def test_dtypes_that_numpy_knows_by_registration_go_as_before(
    in_subprocess: Callable[[str], str], to: str
) -> None:
    """Where a dtype is registered with NumPy for DLPack, values and effects stay what they are."""
    if not hasattr(np.dtypes, "register_dlpack_dtype"):
        pytest.skip(f"NumPy {np.__version__} has no register_dlpack_dtype, which came with 2.5")
    pytest.importorskip(to)
    in_subprocess(
        f"""
    import numpy as np, ml_dtypes, interop
    from interop.kit.dlpack import DLPACK_DTYPES

    def outcomes():
        for name in ("bfloat16", "float8_e4m3fn", "float8_e8m0fnu"):
            array = np.array([1, 2, 4], getattr(ml_dtypes, name))
            there = interop.convert(array, {to!r})
            back = interop.convert(there, "numpy")
            yield name, str(there.dtype), str(back.dtype), back.astype("f4").tolist()
            yield back.flags.writeable, sorted(interop.plan(there, "numpy").effects)

    before = [*outcomes()]
    for key, name in DLPACK_DTYPES.items():
        if key[1] >= 8 and hasattr(ml_dtypes, name):
            np.dtypes.register_dlpack_dtype(key, np.dtype(getattr(ml_dtypes, name)))
    np.array(1, ml_dtypes.bfloat16).__dlpack__(max_version=(1, 3))  # which NumPy refused before
    assert [*outcomes()] == before
    """
    )
