"""PyArrow: arrays and their nulls, chunks, tensors, tables; what is shared, and with whom."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

import interop
from interop.errors import BadRequestError, RefusedError
from interop.kit import address
from interop_plugins.pyarrow import dense, describe, dtypes
from tests.cases import together
from tests.plugins.values import data, same, start

DTYPES = sorted(dtypes.DTYPES)


def numbers(name, shape=(6,)):
    """Return small numbers that the dtype can hold; of a real one, also halves and negatives."""
    size = int(np.prod(shape))
    values = np.arange(size).reshape(shape) % 100
    if name.startswith("float"):
        values = values / 2 - 1
    return (values % 3 == 1) if name == "bool" else values.astype(name)


def array(name, nulls=False):
    """Return an array that Arrow itself has made, perhaps with every other element null."""
    a = numbers(name)
    mask = np.arange(6) % 2 == 1 if nulls else None
    return pa.array(a, type=dtypes.arrow_type(name), mask=mask)


def filled(name):
    """Return the numbers of `array(name, nulls=True)` after the fill rule."""
    expected = numbers(name)
    expected[1::2] = np.nan if name.startswith("float") else 0
    return expected


@pytest.mark.parametrize("has_dlpack", [True, False])
def test_plain_arrays_are_shared_by_what_the_installed_version_has(monkeypatch, has_dlpack):
    """PyArrow's own consumer of DLPack, and what is made of a buffer before 26, give the same."""
    if has_dlpack and not hasattr(pa.Array, "from_dlpack"):
        pytest.skip(f"PyArrow {pa.__version__} does not consume DLPack")
    types, from_dlpack, *rest = dense._constructors()
    monkeypatch.setattr(
        dense, "_constructors", lambda: (types, from_dlpack if has_dlpack else None, *rest)
    )
    for name in sorted(dtypes.NUMBERS):
        for length in (0, 1, 6):
            values = numbers(name)[:length]
            values.flags.writeable = length != 1
            result = dense.array_fast_path(values)
            assert result.type == dtypes.arrow_type(name)
            assert (result.null_count, result.to_pylist()) == (0, values.tolist())
            assert not length or result.buffers()[1].address == address(values)


# ------------------------------------------------------------------ describing


def test_nulls_are_those_of_the_slice():
    """A slice has nulls only if they are inside it, whoever counts them first."""
    value = pa.array([1, None, 3, 4, None])
    assert interop.spec(value[2:4]).traits == {"immutable"}
    assert interop.spec(value[1:3]).traits == {"immutable", "masked"}
    assert interop.convert(value[2:4], to="numpy").tolist() == [3, 4]
    unknown = pa.Array.from_buffers(pa.int64(), 3, value.buffers(), -1, 2)
    assert "masked" in interop.spec(unknown).traits
    bits_and_no_nulls = pa.Array.from_buffers(
        pa.int8(), 2, [pa.py_buffer(b"\x03"), pa.py_buffer(bytearray(b"\x05\x06"))], -1
    )
    assert interop.spec(bits_and_no_nulls).traits == {"immutable"}
    assert interop.convert(bits_and_no_nulls, to="numpy").tolist() == [5, 6]


def test_memory_that_is_flagged():
    """Buffers that are flagged read-only, or not aligned, are described as such."""
    raw = bytes(range(33))
    locked = pa.Array.from_buffers(pa.uint8(), 3, [None, pa.py_buffer(raw)])
    assert interop.spec(locked).traits == {"immutable", "readonly"}
    odd = pa.Array.from_buffers(pa.int32(), 8, [None, pa.py_buffer(bytearray(raw)).slice(1)])
    assert "unaligned" in interop.spec(odd).traits
    result = interop.convert(odd, to="numpy", copy=False)
    assert same(np.array(result), np.frombuffer(raw, "i4", offset=1))
    assert interop.convert(odd, to="torch").tolist() == result.tolist()


def test_names_of_dtypes():
    """Arrow's types name dtypes, and its classes and its module name formats."""
    assert interop.convert([1, 2], to="pyarrow", dtype=pa.float32()).type == pa.float32()
    assert interop.convert(array("int8"), to="torch", dtype=pa.float16()).dtype == torch.float16
    assert interop.convert([True], to="numpy", dtype=pa.bool8()).dtype == bool
    for target, type_ in (
        (pa, pa.DoubleArray),
        (pa.Array, pa.DoubleArray),
        (pa.ChunkedArray, pa.ChunkedArray),
        (pa.Tensor, pa.Tensor),
    ):
        assert type(interop.convert(np.ones(2), to=target)) is type_
    value = array("int8", nulls=True)
    assert interop.convert(value, to="pyarrow") is value
    assert type(interop.convert([1.0], like=value)) is pa.DoubleArray


# ------------------------------------------------------------------ out of Arrow


def test_memory_flagged_read_only_is_copied_for_torch(loaded):
    """Memory that cannot be written does not reach torch, by no fast path and no detour."""
    plain = array("int32")
    locked = pa.Array.from_buffers(pa.int32(), 6, [None, pa.py_buffer(numbers("int32").tobytes())])
    for _ in range(3):
        loaded.convert(plain, to="torch")  # so that there is a fast path
        result = loaded.convert(locked, to="torch")
        assert result.data_ptr() != data(locked)
        result.zero_()
    assert same(locked.to_numpy(), numbers("int32"))
    assert "copy" in interop.plan(locked, to="torch").effects
    with pytest.raises(RefusedError, match="share_readonly"):
        interop.convert(locked, to="torch", copy=False, forbid="materialize")
    shared = interop.convert(locked, to="torch", allow="share_readonly")
    assert shared.data_ptr() == data(locked)
    view = interop.convert(locked, to="numpy", copy=False)
    assert (start(view), view.flags.writeable) == (data(locked), False)
    assert "readonly" in interop.spec(view).traits


def test_mapped_files(tmp_path, in_fork):
    """A tensor made of a mapped file can be written, although the mapped memory cannot."""
    in_fork(
        f"""
        import pyarrow as pa, interop
        path = {str(tmp_path / "numbers.arrow")!r}
        batch = pa.record_batch({{"a": pa.array(range(1000))}})
        with pa.ipc.new_file(path, batch.schema) as file:
            file.write(batch)
        column = pa.ipc.open_file(pa.memory_map(path)).get_batch(0).column(0)
        assert interop.spec(column).traits == {{"immutable", "readonly"}}
        tensor = interop.convert(column, to="torch")
        tensor.zero_()
        assert column[7].as_py() == 7
        lists = pa.ListArray.from_arrays(pa.array([0, 3, 5], pa.int32()), column)
        interop.convert(lists, to="torch.jagged").values().zero_()
        assert lists.to_pylist() == [[0, 1, 2], [3, 4]]
        """
    )


@pytest.mark.parametrize("target", ["numpy", "torch", "jax", "python"])
def test_bits_become_bytes(target):
    """Truth values of a bit each get a byte each, wherever a slice begins."""
    truth = np.random.default_rng(0).random(77) < 0.5
    value = pa.array(truth)
    for rows in (slice(None), slice(3, 40), slice(13, 14), slice(77, None), slice(8, 16)):
        assert np.asarray(interop.convert(value[rows], to=target)).tolist() == truth[rows].tolist()
    assert interop.plan(value, to=target).effects >= {"copy"}
    with pytest.raises(RefusedError, match="copy"):
        interop.convert(value, to=target, copy=False)
    result = interop.convert(value, to="numpy")
    assert (result.dtype, result.flags.writeable) == (bool, True)


def test_truth_values_of_a_byte_each():
    """Every byte of bool8 but zero is true, and becomes 1."""
    storage = pa.array([0, 1, 2, -1, None], pa.int8())
    value = pa.ExtensionArray.from_storage(pa.bool8(), storage)
    result = interop.convert(value[1:4], to="numpy")
    assert (result.dtype, result.tobytes()) == (bool, b"\1\1\1")
    with pytest.raises(RefusedError, match="drop_mask"):
        interop.convert(value, to="numpy")
    result = interop.convert(value, to="numpy", allow="drop_mask")
    assert result.tobytes() == b"\0\1\1\1\0"


# ------------------------------------------------------------------ nulls


@pytest.mark.parametrize("target", ["numpy", "torch", "jax", "python", "pyarrow.tensor"])
def test_nulls_are_never_lost_in_silence(target):
    """Nulls are refused, and the refusal says what fills or keeps them before the keyword that drops."""
    for value in (
        array("float32", nulls=True),
        array("bool", nulls=True),
        pa.chunked_array([[1], [None]], pa.int32()),
        pa.scalar(None, pa.int32()),
        pa.table({"a": [1, None]}, pa.schema([("a", pa.int32())])),
    ):
        interop.convert(array("float32"), to="numpy")
        with pytest.raises(RefusedError, match=r"fill_null.*numpy\.ma.*\n.*pass allow="):
            interop.convert(value, to=target)
        with pytest.raises(RefusedError):
            interop.convert(value, to=target, copy=False, allow="drop_mask")


@pytest.mark.parametrize("name", DTYPES)
def test_nulls_are_filled_by_rule(name):
    """With ``drop_mask``, nulls become NaN, 0 or False, whatever lies under them."""
    value = array(name, nulls=True)
    garbage = pa.Array.from_buffers(
        value.type, 6, [value.buffers()[0], pa.py_buffer(b"\xab" * 6 * 8)]
    )
    assert garbage.null_count == 3
    result = interop.convert(garbage, to="numpy", allow="drop_mask")
    filled_in = result[1::2]
    assert np.isnan(filled_in).all() if name.startswith("float") else not filled_in.any()
    for odd in (value, pa.concat_arrays([value[:2], value])[2:]):
        result = interop.convert(odd, to="numpy", allow="drop_mask")
        assert same(result, filled(name))
        assert result.flags.writeable
        result[...] = 0
        assert odd.to_pylist()[::2] == numbers(name)[::2].tolist()
        assert odd.null_count == 3
    tensor = interop.convert(value, to="torch", allow="drop_mask")
    assert same(tensor.numpy(), filled(name))


def test_nulls_stay_among_arrows_formats():
    """Copies, casts and chunks keep the nulls."""
    value = array("int32", nulls=True)[1:]
    copied = interop.convert(value, to="pyarrow", copy=True)
    assert copied.equals(value)
    assert data(copied) != data(value)
    real = interop.convert(value, to="pyarrow", dtype="float64")
    assert real.to_pylist() == [None, 2.0, None, 4.0, None]
    chunks = interop.convert(value, to="pyarrow.chunked_array", copy=False)
    assert chunks.to_pylist() == value.to_pylist()
    assert data(chunks.chunk(0)) == data(value)
    assert interop.convert(chunks, to="pyarrow", copy=False).equals(value)


@pytest.mark.parametrize("name", DTYPES)
@together("step", [1, -1, 2])
def test_masked_arrays_become_nulls(name, step):
    """The mask of a NumPy array becomes nulls; numbers in one block are shared."""
    a = numbers(name)
    value = np.ma.array(a, mask=np.arange(6) % 4 == 2)[::step]
    result = interop.convert(value, to="pyarrow")
    assert result.type == dtypes.arrow_type(name)
    assert result.to_pylist() == value.tolist()
    assert (data(result) == start(a)) is (step == 1 and name != "bool")
    with pytest.raises(RefusedError, match="copy"):
        interop.convert(value, to="pyarrow", copy=False)
    with pytest.raises(RefusedError, match="drop_mask"):
        interop.convert(value, to="pyarrow.tensor")
    nothing_masked = np.ma.array(a)
    assert interop.convert(nothing_masked, to="pyarrow").null_count == 0


def test_masked_numbers_of_the_other_byte_order():
    """A masked array of the other byte order arrives in native order."""
    value = np.ma.array(np.arange(4, dtype=">f4"), mask=[0, 0, 1, 0])
    assert interop.convert(value, to="pyarrow").to_pylist() == [0, 1, None, 3]


# ------------------------------------------------------------------ into Arrow


@together(
    "odd",
    [
        lambda a: a[::-1],
        lambda a: a[::2],
        lambda a: np.broadcast_to(a[1], 4),
        lambda a: a.astype(">f4"),
        lambda a: np.frombuffer(b"x" + a.tobytes(), "f4", offset=1),
        lambda a: np.frombuffer(a.tobytes(), "f4"),
        lambda a: a[:0],
        lambda a: a.view(type("Sub", (np.ndarray,), {})),
    ],
)
@pytest.mark.parametrize("target", ["pyarrow", "pyarrow.tensor", "pyarrow.chunked_array"])
def test_memory_of_every_kind(odd, target):
    """The numbers of reversed, repeated, swapped, read-only and unaligned memory arrive."""
    plain = np.arange(6, dtype="f4")
    interop.convert(plain, to=target)
    value = odd(plain)
    for _ in range(2):
        result = interop.convert(value, to=target)
        assert interop.spec(result).traits <= {
            "immutable",
            "readonly",
            "noncontiguous",
            "broadcast",
        }
        assert same(np.array(result.to_numpy(), "f4"), np.array(value, "f4"))


def test_axes_that_an_array_cannot_have():
    """A refusal of more axes than one names the formats that have them."""
    for value in (np.ones((2, 3)), torch.ones(2, 3), [[1.0, 2.0]]):
        with pytest.raises(RefusedError, match=r"1 axis, not of 2; ask for .*pyarrow\.tensor"):
            interop.convert(value, to="pyarrow")
    with pytest.raises(RefusedError, match="not of 1"):
        interop.convert(np.ones(2), to="pyarrow.fixed_shape_tensor")
    with pytest.raises(RefusedError, match="no axes"):
        interop.convert(np.ones(2), to="pyarrow.scalar")
    assert type(interop.convert(np.ones((2, 3)), to=["pyarrow", "pyarrow.tensor"])) is pa.Tensor


def test_dtypes_that_arrow_lacks():
    """A dtype that Arrow lacks is widened where nothing is lost, and refused elsewhere."""
    half = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    assert interop.convert(half, to="pyarrow").equals(pa.array([1.5, -2.0], pa.float32()))
    with pytest.raises(RefusedError, match="complex64"):
        interop.convert(np.ones(2, "c8"), to="pyarrow")
    with pytest.raises(RefusedError, match="narrow"):
        interop.convert(np.ones(2, "g"), to="pyarrow")


def test_not_written_into():
    """``out=`` cannot be an Arrow array, which never changes; it can be a tensor."""
    with pytest.raises(BadRequestError, match="cannot be written"):
        interop.convert(np.ones(2), out=array("float64"))
    memory = np.zeros((2, 2), "f4")
    out = pa.Tensor.from_numpy(memory)
    assert interop.convert(torch.ones(2, 2, dtype=torch.float64), out=out) is out
    assert memory.tolist() == [[1, 1], [1, 1]]
    memory.flags.writeable = False
    with pytest.raises(BadRequestError, match="read-only"):
        interop.convert(np.ones((2, 2)), out=pa.Tensor.from_numpy(memory))


# ------------------------------------------------------------------ what is not numbers


class Metres(pa.ExtensionType):
    """Numbers of a unit: another type than that of the numbers, and not hashable."""

    __hash__ = None

    def __init__(self) -> None:
        super().__init__(pa.int64(), "test.metres")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Metres:
        return cls()


def metres() -> pa.ExtensionArray:
    return pa.ExtensionArray.from_storage(Metres(), pa.array([1, 2]))


NOT_NUMBERS = {
    "extension": metres,
    "extension<test.metres": lambda: pa.FixedSizeListArray.from_arrays(metres(), 2),
    "string": lambda: pa.array(["a", "b"]),
    "string_view": lambda: pa.array(["a"], pa.string_view()),
    "binary": lambda: pa.array([b"a"]),
    "null": lambda: pa.nulls(3),
    "timestamp": lambda: pa.array([1], pa.timestamp("ns")),
    "date32": lambda: pa.array([1], pa.date32()),
    "time64": lambda: pa.array([1], pa.time64("us")),
    "duration": lambda: pa.array([1], pa.duration("s")),
    "decimal128": lambda: pa.array([1], pa.decimal128(5, 2)),
    "dictionary": lambda: pa.array(["a", "b"]).dictionary_encode(),
    "struct": lambda: pa.array([{"a": 1}]),
    "list<": lambda: pa.array([["a"], ["b", "c"]]),
    "large_list<": lambda: pa.array([["a"]], pa.large_list(pa.string())),
    "map": lambda: pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8())),
    "fixed_size_binary": lambda: pa.array([b"ab"], pa.binary(2)),
    "fixed_size_list": lambda: pa.array([["a", "b"]], pa.list_(pa.string(), 2)),
    "run_end_encoded": lambda: pa.RunEndEncodedArray.from_arrays(
        pa.array([2], pa.int32()), pa.array([1.0])
    ),
    "union": lambda: pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    "uuid": lambda: pa.array([b"0123456789abcdef"], pa.uuid()),
    "interval": lambda: pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
}
if hasattr(pa, "decimal32"):  # from Arrow 19 on
    NOT_NUMBERS["decimal32"] = lambda: pa.array([1], pa.decimal32(5, 2))


#: What NumPy has, too, and lists of it, of which one is an array of it.
HELD = {"string", "string_view", "binary", "timestamp", "date32", "duration"}
LISTS = {"list<", "large_list<", "fixed_size_list"}


@pytest.mark.parametrize("name", NOT_NUMBERS)
@together("target", ["numpy", "torch", "python"])
def test_refusals_of_other_arrow_types_name_the_type(name, target):
    """A refusal of timestamps, decimals, strings, dictionaries or lists names the type."""
    value = NOT_NUMBERS[name]()
    assert interop.convert(value, to=interop.spec(value).format) is value
    expected, is_held = interop.spec(value), target == "numpy" and name in HELD
    columns = [] if is_held else [value, pa.chunked_array([value])]
    for container in (*columns, pa.table({"a": value})):
        spec = interop.spec(container)
        assert (spec.dtype, spec.shape[0]) == (expected.dtype, len(value))
        with pytest.raises(RefusedError, match=f"{name}.* is not a dtype of numbers"):
            interop.convert(container, to=target, allow="drop_mask")
    if not (is_held or (target == "numpy" and name in LISTS)):
        with pytest.raises(RefusedError, match="is not a dtype of numbers"):
            interop.convert(value[0], to=target, allow="drop_mask")


# ------------------------------------------------------------------ chunks


@pytest.mark.parametrize("name", DTYPES)
def test_chunks_are_put_together(name):
    """Several chunks, or none, become one writable block."""
    a = numbers(name)
    value = pa.chunked_array([a[:2], a[:0], a[2:5], a[5:]], dtypes.arrow_type(name))
    assert interop.spec(value).traits == {"immutable", "chunked"}
    for _ in range(2):
        result = interop.convert(value, to="numpy")
        assert same(result, a)
        assert result.flags.writeable
    assert same(interop.convert(value, to="torch").numpy(), a)
    assert interop.convert(value, to="pyarrow").to_pylist() == value.to_pylist()
    for target in ("numpy", "pyarrow", "torch"):
        with pytest.raises(RefusedError, match="copy"):
            interop.convert(value, to=target, copy=False)
    none = pa.chunked_array([], dtypes.arrow_type(name))
    assert same(interop.convert(none, to="numpy"), a[:0])
    assert interop.convert(none, to="pyarrow").type == dtypes.arrow_type(name)
    masked = pa.chunked_array([array(name, nulls=True)[:3], array(name, nulls=True)[3:]])
    assert same(interop.convert(masked, to="numpy", allow="drop_mask"), filled(name))
    assert interop.convert(masked, to="pyarrow").null_count == 3


# ------------------------------------------------------------------ tensors


def test_tensors_over_read_only_memory():
    """A tensor that is not mutable is read-only in NumPy, and copied for torch."""
    if not hasattr(pa.Array, "to_tensor"):
        pytest.skip("this Arrow makes no tensors of arrays")
    value = array("float64").to_tensor()
    assert interop.spec(value).traits == {"readonly"}
    view = interop.convert(value, to="numpy", copy=False)
    assert (start(view), view.flags.writeable) == (data(array("float64")) * 0 + start(view), False)
    tensor = interop.convert(value, to="torch")
    assert tensor.data_ptr() != start(view)
    repeated = interop.convert(np.broadcast_to(np.arange(3.0), (2, 3)), to="pyarrow.tensor")
    assert interop.spec(repeated).traits == {"readonly", "noncontiguous", "broadcast"}
    assert repeated.to_numpy().tolist() == [[0, 1, 2]] * 2


@pytest.mark.parametrize("target", ["pyarrow.fixed_shape_tensor", "pyarrow.fixed_size_list"])
@pytest.mark.parametrize("name", DTYPES)
@together("shape", [(2, 3), (2, 3, 4), (0, 3), (3, 0), (1, 2, 3, 4)])
def test_nested_arrays(target, name, shape):
    """Arrays of tensors and of lists share compact arrays of several axes, both ways."""
    a = numbers(name, shape)
    value = interop.convert(a, to=target)
    value.validate(full=True)
    assert interop.spec(value) == interop.Spec(
        target, name, "cpu", shape, frozenset({"immutable"}), a.nbytes
    )
    assert value.to_pylist() == a.tolist() or target.endswith("tensor")
    for rows, expected in ((value, a), (value[1:], a[1:])):
        back = interop.convert(rows, to="numpy")
        assert same(np.ascontiguousarray(back), np.ascontiguousarray(expected))
        if name == "bool":
            assert back.flags.writeable
        else:
            assert not back.flags.writeable
            assert start(back) == start(a) + a[0:1].nbytes * (rows is not value) or not back.size
    if target.endswith("tensor") and name != "bool" and a.size:
        assert (value.to_numpy_ndarray() == a).all()
    flipped = interop.convert(a[::-1], to=target)
    assert same(np.ascontiguousarray(interop.convert(flipped, to="numpy")), a[::-1].copy())
    copied = interop.convert(value, to=target, copy=True)
    assert copied.equals(value)


@pytest.mark.parametrize("name", ["float32", "bool"])
def test_permuted_tensors(name):
    """The axes of tensors come in the order of their type, not in that of their memory."""
    a = numbers(name, (2, 3, 4, 5))
    plain = interop.convert(a, to="pyarrow.fixed_shape_tensor")
    type_ = pa.fixed_shape_tensor(dtypes.arrow_type(name), [3, 4, 5], permutation=[2, 0, 1])
    value = pa.ExtensionArray.from_storage(type_, plain.storage)
    spec = interop.spec(value)
    assert (spec.shape, spec.traits) == ((2, 5, 3, 4), {"immutable", "noncontiguous"})
    result = interop.convert(value, to="numpy")
    assert (result == a.transpose(0, 3, 1, 2)).all()
    assert (start(result) == start(a)) is (name != "bool")
    chunks = pa.chunked_array([value, value[1:]])
    assert (interop.convert(chunks, to="numpy")[2] == result[1]).all()
    assert (interop.convert(pa.chunked_array([value]), to="torch").numpy() == result).all()


def test_nulls_of_rows_and_inside_them():
    """A null row is filled as a whole, and a null inside a row by itself."""
    inner = pa.array([1, 2, None, 4, 5, 6, 7, 8], pa.float32())
    type_ = pa.list_(pa.float32(), 2)
    rows = pa.Array.from_buffers(type_, 4, [pa.py_buffer(b"\x0b")], children=[inner])
    tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float32(), [2]), rows)
    nan = np.nan
    expected = np.array([[1, 2], [nan, 4], [nan, nan], [7, 8]], "f4")
    for value in (rows, tensors, pa.chunked_array([tensors[:1], tensors[1:]])):
        assert "masked" in interop.spec(value).traits
        with pytest.raises(RefusedError, match="drop_mask"):
            interop.convert(value, to="numpy")
        result = interop.convert(value, to="numpy", allow="drop_mask")
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(
            interop.convert(value[1:3], to="numpy", allow="drop_mask"), expected[1:3]
        )
    assert interop.spec(rows[3:]).traits == {"immutable"}
    inside = pa.chunked_array([rows[1:2], rows[3:]])
    assert inside.null_count == 0
    assert "masked" in interop.spec(inside).traits
    assert interop.convert(rows, to="pyarrow.fixed_size_list", copy=True).equals(rows)


# ------------------------------------------------------------------ tables


@together("make", [pa.table, pa.record_batch])
@pytest.mark.parametrize("name", DTYPES)
@together("rows", [5, 0, 9000])
def test_columns_of_one_type(make, name, rows):
    """A table or batch whose columns are of one type is an array of rows and columns."""
    a = numbers(name, (rows, 3))
    value = make({f"c{i}": pa.array(a[:, i], dtypes.arrow_type(name)) for i in range(3)})
    spec = interop.spec(value)
    assert (spec.dtype, spec.shape, spec.nbytes) == (name, (rows, 3), a.nbytes)
    result = interop.convert(value, to="numpy")
    assert same(result, a)
    assert result.flags.writeable
    assert result.flags.c_contiguous
    assert same(interop.convert(value, to="torch").numpy(), a)
    with pytest.raises(RefusedError, match="copy"):
        interop.convert(value, to="numpy", copy=False)
    assert same(interop.convert(value.slice(2), to="numpy"), a[2:])


def test_columns_in_chunks_and_with_nulls():
    """Columns cut in different places are put together, and their nulls filled if permitted."""
    first = pa.chunked_array([[1.0, None], [3.0]])
    second = pa.chunked_array([[4.0], [5.0, 6.0]])
    value = pa.table({"a": first, "b": second})
    with pytest.raises(RefusedError, match="drop_mask"):
        interop.convert(value, to="numpy")
    result = interop.convert(value, to="numpy", allow="drop_mask")
    np.testing.assert_array_equal(result, [[1, 4], [np.nan, 5], [3, 6]])
    truth = pa.table({"a": [True, None, True], "b": [False, True, None]})
    result = interop.convert(truth, to="numpy", allow="drop_mask")
    assert result.tolist() == [[True, False], [False, True], [True, False]]


@together("make", [pa.table, pa.record_batch])
def test_columns_of_other_types_are_named(make):
    """The refusal of text and dates says which columns are of which type, and what to do."""
    value = make({"a": pa.array([1]), "b": pa.array(["x"]), "c": pa.array([3])})
    with pytest.raises(RefusedError, match=r"int64 \('a', 'c'\) / string \('b'\)") as caught:
        interop.convert(value, to="numpy")
    assert str(caught.value).endswith(
        "choose those of one (a table's method select, a dataset's select_columns)."
    )
    assert interop.convert(value.select(["a", "c"]), to="numpy").tolist() == [[1, 3]]
    wide = make({f"c{i}": pa.array(["x"] if i % 2 else [0]) for i in range(20)})
    with pytest.raises(RefusedError, match="'c4' and 7 more"):
        interop.convert(wide, to="numpy")
    assert interop.convert(value.select([]), to="numpy").shape == (1, 0)


def test_an_array_becomes_columns_named_by_their_numbers():
    """An array of two axes becomes a table whose columns have the names that mean none."""
    table = interop.convert(np.array([[1, 2], [3, 4]]), to="pyarrow.table")
    assert table.to_pydict() == {"0": [1, 3], "1": [2, 4]}
    assert "labelled" not in interop.spec(table).traits
    with pytest.raises(RefusedError, match="no conversion from numpy leads to"):
        interop.convert(np.ones((2, 2)), to="pyarrow.record_batch")


# ------------------------------------------------------------------ scalars


@pytest.mark.parametrize("name", DTYPES)
def test_scalars(name):
    """A scalar becomes an array of no axes, and the other way round."""
    a = numbers(name)[4:5].reshape(())
    value = pa.array(a.reshape(1))[0]
    assert interop.spec(value).traits == set()
    assert same(interop.convert(value, to="numpy"), a)
    assert interop.convert(value, to="torch").item() == a.item()
    scalar = interop.convert(a, to="pyarrow.scalar")
    assert scalar.equals(value)
    null = pa.scalar(None, dtypes.arrow_type(name))
    expected = numbers(name)[:1].reshape(()).copy()
    expected[...] = np.nan if name.startswith("float") else 0
    assert same(interop.convert(null, to="numpy", allow="drop_mask"), expected)


# ------------------------------------------------------------------ what is called


def test_the_memory_of_every_array_is_known():
    """The addresses of an array's numbers are known, so receipts can tell what is shared."""
    value = array("int32", nulls=True)[2:4]
    (bits, bit_bytes), (numbers_, eight) = describe.memory(value)
    assert (numbers_, eight) == (data(value), 8)
    assert (bits, bit_bytes) == (value.buffers()[0].address, 1)
    with interop.trace() as receipts:
        interop.convert(array("int32"), to="numpy")
        interop.convert(array("bool"), to="numpy")
        interop.convert(numbers("int32", (2, 3)), to="pyarrow.fixed_shape_tensor")
        interop.convert(numbers("int32", (2, 3)), to="pyarrow.tensor")
    assert [receipt.aliased for receipt in receipts] == [True, False, True, True]


# ---------------------------------------------------------------------- lists


def lists_of(rows, type_=None):
    """Return an array of lists; its rows of one length lie one after another."""
    return pa.array(rows, pa.list_(pa.float64()) if type_ is None else type_)


REGULAR = {
    "list": lambda: lists_of([[1, 2], [3, 4], [5, 6]]),
    "large_list": lambda: lists_of([[1, 2], [3, 4], [5, 6]], pa.large_list(pa.float64())),
    "slice": lambda: lists_of([[0], [1, 2], [3, 4], [5, 6], [7]])[1:4],
    "chunk": lambda: pa.chunked_array([lists_of([[1, 2], [3, 4], [5, 6]])]),
    "column": lambda: pa.table({"a": lists_of([[1, 2], [3, 4], [5, 6]])}),
    "batch": lambda: pa.record_batch({"a": lists_of([[1, 2], [3, 4], [5, 6]])}),
}


def first_value(value):
    """Return the address of the first number in the first list."""
    if isinstance(value, pa.Table | pa.RecordBatch):
        value = value.column(0)
    rows = value.chunk(0) if isinstance(value, pa.ChunkedArray) else value
    return rows.values.buffers()[1].address + rows.offsets[0].as_py() * 8


@together("name", REGULAR)
def test_lists_of_one_length_are_two_axes(name):
    """Offsets are read, and the numbers shared, where all rows of lists have one length."""
    value = REGULAR[name]()
    result = interop.convert(value, to="numpy", copy=False)
    assert same(result, np.array([[1.0, 2], [3, 4], [5, 6]]))
    assert start(result) == first_value(value)
    assert not result.flags.writeable
    assert interop.spec(value).shape == (3, 2)
    assert interop.convert(value, to="torch", dtype="float32").tolist() == result.tolist()


@together(
    "value, expected",
    [
        (
            pa.chunked_array([lists_of([[1, 2]]), lists_of([]), lists_of([[3, 4]])]),
            [[1, 2], [3, 4]],
        ),
        (pa.chunked_array([], pa.list_(pa.float64())), np.empty((0, 0))),
        (lists_of([]), np.empty((0, 0))),
        (lists_of([[], []]), np.empty((2, 0))),
        (pa.array([[[1.0], [2]], [[3], [4]]]), [[[1], [2]], [[3], [4]]]),
        (pa.array([[True, False], [False, True]]), [[True, False], [False, True]]),
    ],
)
def test_odd_lists_of_one_length(value, expected):
    """Chunks, no rows, empty rows, lists of lists, and bits become arrays of as many axes."""
    result = interop.convert(value, to="numpy")
    expected = np.array(expected, "bool" if value.type == pa.list_(pa.bool_()) else "float64")
    assert same(result, expected)


def test_lists_come_of_matrices():
    """A matrix becomes lists over its memory, with new offsets."""
    matrix = np.arange(6.0).reshape(3, 2)
    result = interop.convert(matrix, to="pyarrow.list", copy=False)
    result.validate(full=True)
    assert result.to_pylist() == matrix.tolist()
    assert result.values.buffers()[1].address == start(matrix)


# ---------------------------------------------------------------------- an only column, a row


@together("make", [pa.table, pa.record_batch])
def test_an_only_column_of_tensors_is_all_of_its_table(make):
    """A table of one column of tensors has the axes of that column, and shares its memory."""
    tensors = interop.convert(np.arange(12.0).reshape(2, 2, 3), to="pyarrow.fixed_shape_tensor")
    table = make({"a": tensors})
    assert interop.spec(table).shape == (2, 2, 3)
    result = interop.convert(table, to="numpy", copy=False)
    assert same(result, np.arange(12.0).reshape(2, 2, 3))
    assert start(result) == tensors.storage.values.buffers()[1].address


def test_a_row_is_an_array():
    """A row of tensors or lists is the array in it, over the same memory; a null one is refused."""
    tensors = interop.convert(np.arange(12.0).reshape(2, 2, 3), to="pyarrow.fixed_shape_tensor")
    result = interop.convert(tensors[1], to="numpy", copy=False)
    assert same(result, np.arange(6.0, 12).reshape(2, 3))
    assert start(result) == tensors.storage.values.buffers()[1].address + 48
    lists = lists_of([[1, 2], [3], None])
    row = interop.convert(lists[1], to="numpy", copy=False)
    assert same(row, np.array([3.0]))
    assert start(row) == lists.values.buffers()[1].address + 16
    with pytest.raises(RefusedError, match="rows are null"):
        interop.convert(lists[2], to="numpy")


def test_lists_without_rows_are_refused_where_their_width_would_be_lost() -> None:
    """Lists of one length each tell it by their rows; without any, the shape could not come back."""
    for width in (0, 1, 3):
        array = np.zeros((0, width))
        if width:
            with pytest.raises(RefusedError, match=f"would have {width} numbers each"):
                interop.convert(array, to="pyarrow.list")
        else:
            assert interop.spec(interop.convert(array, to="pyarrow.list")).shape == (0, 0)
        fixed = interop.convert(array, to="pyarrow.fixed_size_list")
        assert interop.spec(fixed).shape == (0, width)


def test_empty_arrays_of_any_strides_are_tensors() -> None:
    """PyArrow refuses strides below zero, also of arrays without elements, which need none."""
    for array in (np.arange(3.0)[::-1][:0], np.ones((2, 3))[::-1, ::-1][:, :0], np.ones((0, 2)).T):
        result = interop.convert(array, to="pyarrow.tensor")
        assert (result.shape, result.to_numpy().dtype) == (array.shape, "float64")


def test_a_step_that_declines_a_batch_and_its_table_is_named_once() -> None:
    """A refusal names the step, not each format that has it."""
    columns = {"a": pa.array([2**60 + 1]), "b": pa.array([1.5])}
    (batch,) = pa.table(columns).to_batches()
    with pytest.raises(RefusedError, match=r"^gather_if_exact declined: .*\. Without it: "):
        interop.convert(batch, "numpy")


def test_a_table_whose_columns_were_cast_tells_pandas_their_dtypes():
    """The metadata that pandas leaves in a schema name the dtypes of the result, the index's too."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": [1.5, 2.5]}, index=pandas.Index([5, 6], name="k"))
    table = pa.Table.from_pandas(frame)
    result = interop.convert(table, to="pyarrow.table", dtype={"integral": "float32"})
    noted = {c["field_name"]: c["numpy_type"] for c in result.schema.pandas_metadata["columns"]}
    assert noted == {"a": "float32", "b": "float64", "k": "float32"}
    assert noted == {
        field.name: str(field.type.to_pandas_dtype().__name__) for field in result.schema
    }
