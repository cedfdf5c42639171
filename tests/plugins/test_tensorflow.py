"""TensorFlow: tensors, variables and sparse tensors, in and out; what would end the process."""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import interop
from interop.errors import BadRequestError, Declined, DeviceError, RefusedError
from interop_plugins.tensorflow import dense, describe, sparse
from tests.cases import together
from tests.inside import format_named
from tests.plugins.immutable import framework
from tests.plugins.promises import (
    is_kept,
)
from tests.plugins.values import numbers, numpy_dtype, same, start

tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the group `test-all`")
keras = pytest.importorskip("keras", reason="TensorFlow brings it")
pytestmark = pytest.mark.extra

SHAREABLE = sorted(describe.DLPACK_DTYPES)
tensor, address = framework("tensorflow").make, framework("tensorflow").address


def content(value):
    """Return a tensor's elements by TensorFlow's own means, and check that they are its own."""
    assert isinstance(value, tf.Tensor)
    assert not tf.is_symbolic_tensor(value)
    assert value.device.endswith("CPU:0")
    return value.numpy()


# ------------------------------------------------------------------ describing


def test_dtypes_that_a_release_lacks(monkeypatch):
    """What the imported release does not know is refused by name, and not tried."""
    assert describe._unknown_to(tf.as_dtype) <= {"float4_e2m1fn"}  # which 2.20 lacks

    def as_dtype(name):
        if name == "int2":
            raise TypeError(name)

    monkeypatch.setattr(tf, "as_dtype", as_dtype)
    assert describe.unsupported_now() == {"int2"}
    array = np.ones(3, np.int8)
    with pytest.raises(RefusedError):
        interop.convert(array, to="tensorflow", dtype="int2")


# ------------------------------------------------------------------ out of TensorFlow


def test_views_outlive_the_tensor():
    """What shares the memory of a tensor keeps it, and no operation writes to it."""
    for target in ("numpy", "torch"):
        value = tf.constant(np.arange(1000.0))
        result = interop.convert(value, to=target)
        variable = tf.Variable(value)  # which shares it too, until it is assigned to
        del value
        gc.collect()
        variable.assign_add(tf.ones(1000, tf.float64))
        variable.scatter_nd_update([[0]], [7.0])
        tf.constant(np.zeros(1000))
        assert result.tolist() == list(range(1000))
        assert variable[999] == 1000


# ------------------------------------------------------------------ variables

CHANGES = [
    lambda v: v.assign([9.0, 9.0, 9.0]),
    lambda v: v.assign_add([1.0, 1.0, 1.0]),
    lambda v: v[1:].assign([7.0, 7.0]),
    lambda v: v.scatter_nd_update([[0]], [5.0]),
]


@pytest.mark.parametrize("history", [None, *CHANGES])
@pytest.mark.parametrize("target", ["numpy", "torch", "tensorflow", "jax"])
def test_conversions_of_a_variable_are_snapshots(target, history):
    """Later assignments do not change the result, nor writes to the result the variable."""
    for change in CHANGES:
        variable = tf.Variable([1.0, 2.0, 3.0])
        if history:
            history(variable)
        before = variable.numpy().tolist()
        assert interop.spec(variable).traits == {"variable"}
        route = interop.plan(variable, to=target)
        assert "copy" in route.effects
        assert not route.aliases
        assert "alias_immutable" not in route.effects
        result = interop.convert(variable, to=target)
        written = interop.convert(interop.convert(variable, to=target), to="torch")
        written.fill_(0)  # in the memory of what was made
        assert variable.numpy().tolist() == before
        change(variable)
        assert np.asarray(result).tolist() == before
        with pytest.raises(RefusedError):
            interop.convert(variable, to=target, copy=False)


@together("name", ["bool", "bfloat16", "int64", "complex128", "float8_e4m3fn"])
@together("shape", [(), (2, 3), (0, 3), (1100, 1000)])
def test_variables_of_every_kind(name, shape):
    """A variable's dtype, shape and elements arrive, even where its shape is not fixed."""
    free = tf.TensorShape(None)
    for variable in (
        tf.Variable(tensor(name, shape)),
        tf.Variable(tensor(name, shape), shape=free),
    ):
        spec = interop.spec(variable)
        assert (spec.dtype, spec.shape, spec.nbytes) == (name, shape, numbers(name, shape).nbytes)
        assert same(interop.convert(variable, to="numpy"), numbers(name, shape))
        assert same(content(interop.convert(variable, to=tf)), numbers(name, shape))


def test_variables_of_keras_and_of_a_strategy():
    """A variable that holds another is read like it."""
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        mirrored = tf.Variable([1.0, 2.0])
    for variable in (keras.Variable(np.array([1.0, 2.0], "f4")), mirrored):
        assert interop.spec(variable).traits == {"variable"}
        for target in ("numpy", "torch", "tensorflow"):
            result = interop.convert(variable, to=target)
            variable.assign_add([1.0, 1.0])
            assert np.asarray(result).tolist() == [1, 2]
            variable.assign([1.0, 2.0])


def test_written_into_variables():
    """``out=`` may be a variable, which keeps its dtype; a tensor may not."""
    for out in (tf.Variable(tf.zeros(3)), keras.Variable(np.zeros(3, "f4"))):
        for value in (np.array([1.5, 2, 3]), torch.tensor([1.5, 2, 3]), tf.constant([1.5, 2, 3])):
            assert interop.convert(value, out=out) is out
            assert interop.convert(out, to="numpy").tolist() == [1.5, 2, 3]
            assert interop.spec(out).dtype == "float32"
    real = interop.convert(np.array([1 + 2j, 3j, -1]), out=tf.Variable(tf.zeros(3)))
    assert real.numpy().tolist() == [1, 0, -1]
    source = np.ones(3, "f4")
    out = interop.convert(source, out=tf.Variable(tf.zeros(3)))
    source[...] = 5
    assert out.numpy().tolist() == [1, 1, 1]
    with pytest.raises(BadRequestError):
        interop.convert(source, out=tf.zeros(3))


@pytest.mark.parametrize(
    ("make", "fail"),
    [
        (np.ones, partial(dense.upload, device="cuda")),
        (tf.ones, partial(dense.move, device="cuda:1")),
        (tf.ones, partial(dense.move, device="tpu:0")),
        (tf.ones, partial(dense.cast, dtype="float32")),
        (tf.ones, partial(dense.fill, tf.zeros(3))),
        (np.ones, partial(interop.convert, to="tensorflow", copy=False)),
        (partial(np.full, fill_value="text"), partial(interop.convert, to="tensorflow")),
        (partial(tf.fill, value="text"), partial(interop.convert, to="numpy")),
        (tf.ones, partial(interop.convert, to="numpy", dtype="float64", copy=False)),
    ],
)
def test_errors_keep_nothing(make, fail):
    """A large array is freed with the error that refused it, without a collection."""
    is_kept(partial(make, [2**17]), fail)  # a first call imports, and plans
    assert not is_kept(partial(make, [2**17]), fail)


# ------------------------------------------------------------------ traces


def test_inside_of_functions():
    """A traced tensor is refused with the reason, and converts to TensorFlow as itself."""
    variable, outside = tf.Variable([1.0, 2.0]), tf.constant([3.0, 4.0])
    out = tf.Variable([0.0, 0.0])
    for target in ("numpy", "torch"):  # so that fast paths are known
        interop.convert(outside, to=target), interop.convert(outside, to=target)
    shared = []

    def look(x):
        assert interop.spec(x).traits == {"traced"}
        assert interop.spec(variable).traits == {"traced", "variable"}
        for target in ("numpy", "torch", "jax", "python", "tensorflow.sparse"):
            for value in (x, variable):
                with pytest.raises(RefusedError):
                    interop.convert(value, to=target)
        with pytest.raises(RefusedError):
            interop.convert(variable, to="tensorflow")
        with pytest.raises(RefusedError):
            interop.convert(x, to="tensorflow", dtype="int8")
        with pytest.raises(BadRequestError):
            interop.convert(np.ones(2, "f4"), out=out)
        assert interop.convert(x, to="tensorflow") is x
        assert interop.convert(outside, to="numpy").tolist() == [3, 4]
        shared.append(interop.convert(outside, to="torch").tolist())
        return x

    for options in ({"autograph": False}, {"autograph": False, "jit_compile": True}):
        assert tf.function(look, **options)(tf.ones(2)).numpy().tolist() == [1, 1]
    assert shared == [[3, 4], [3, 4]]
    assert out.numpy().tolist() == [0, 0]


def test_shapes_that_a_trace_does_not_know():
    """Axes of unknown length, and tensors of unknown rank, are described all the same."""
    shapes = []

    @tf.function(autograph=False)
    def look(x):
        assert interop.spec(x).traits == {"traced", "unknown_shape"}
        shapes.append(interop.spec(x).shape)
        assert interop.convert(x, to="tensorflow") is x
        with pytest.raises(RefusedError):
            interop.convert(x, to="numpy")
        return x

    for shape in ((None, 3), None):
        look.get_concrete_function(tf.TensorSpec(shape))
    assert shapes == [(0, 3), ()]


@together("name", ["float32", "bfloat16", "float8_e5m2", "int4"])
@together("autograph", [False, True])
def test_into_functions(name, autograph):
    """What is converted inside a function has a value, with or without AutoGraph."""
    dense_, rows = numbers(name), sp.coo_array(np.eye(3, dtype="f4"))
    results = []

    @tf.function(autograph=autograph)
    def make():
        results.append(interop.convert(dense_, to="tensorflow"))
        results.append(interop.convert(rows, to="tensorflow.sparse"))
        results.append(interop.convert(results[-1], to="tensorflow"))
        return tf.identity(results[0])

    assert same(content(make()), dense_)
    assert same(content(results[0]), dense_)
    assert same(content(results[1].values), np.ones(3, "f4"))
    assert same(content(results[1].dense_shape), np.array([3, 3]))
    assert same(content(results[2]), np.eye(3, dtype="f4"))


def test_autograph_stays_out(caplog):
    """AutoGraph does not rewrite the code of interop that a function calls."""
    errors = []
    to_numpy = interop.converter("numpy")

    @tf.function
    def look(x):
        for convert in (interop.convert, interop.Interop().convert):
            try:
                convert(x, to="numpy")
            except RefusedError as error:
                errors.append(error)
        try:
            to_numpy(x)
        except RefusedError as error:
            errors.append(error)
        return x

    look(tf.ones(2))
    assert len(errors) == 3
    for error in errors:
        files = {frame.path for frame in traceback_of(error)}
        assert any(Path(interop.__file__).parent in path.parents for path in files)
        assert not [f for f in files if f.name.startswith("__autograph_generated")][1:]
    assert "could not transform" not in caplog.text


def traceback_of(error):
    """Return the entries of the traceback of an error."""
    return pytest.ExceptionInfo.from_exception(error).traceback


@pytest.mark.slow
def test_without_eager_execution(in_subprocess):
    """Without eager execution, where tensors have no values, none is made."""
    program = """
        import numpy as np, tensorflow as tf, interop
        tf.compat.v1.disable_eager_execution()
        for value in (np.ones(2), np.ones(2, "i1")):
            for to in ("tensorflow", "tensorflow.sparse"):
                try:
                    interop.convert(value, to=to)
                except interop.errors.RefusedError as error:
                    print("eager execution is disabled" in str(error))
        x = tf.constant(1.0)
        print(interop.spec(x).traits == {"traced"}, interop.convert(x, to=tf) is x)
    """
    assert in_subprocess(program, TF_CPP_MIN_LOG_LEVEL="3").split() == ["True"] * 6


# ------------------------------------------------------------------ bad input


@pytest.mark.slow
def test_strings(in_subprocess):
    """Strings, whose export ends the process, are refused on every way and stay as they are."""
    program = """
        import tensorflow as tf, interop
        for target in ("numpy", "torch", "jax", "python"):
            for _ in range(2):  # so that fast paths are known
                interop.convert(tf.ones(2), to=target)
            for value in (tf.constant(["a", "b"]), tf.constant("a"), tf.Variable(["a"])):
                try:
                    interop.convert(value, to=target)
                except interop.errors.RefusedError as error:
                    assert "are strings" in str(error) and "tf.strings" in str(error), error
                else:
                    raise AssertionError(target)
        value = tf.constant(["a"])
        assert interop.convert(value, to="tensorflow") is value
        pairs = tf.SparseTensor([[0]], ["a"], [1])
        assert interop.convert(pairs, to="tensorflow.sparse") is pairs
        try:
            interop.convert(pairs, to="scipy.coo")
        except interop.errors.RefusedError as error:
            assert "are strings" in str(error)
        else:
            raise AssertionError(pairs)
        print("alive")
    """
    assert in_subprocess(program, TF_CPP_MIN_LOG_LEVEL="3").split() == ["alive"]


@together("name", sorted(describe.DTYPES - describe.unsupported_now()))
def test_a_tensor_tells_where_it_lies(name):
    """Of every dtype, the address and the bytes are those that NumPy sees, or a copy would count as shared."""
    value = tf.constant(numbers(name, (3, 4)))
    array = interop.convert(value, to="numpy")
    assert format_named("tensorflow").memory(value) == ((start(array), array.nbytes),)


@pytest.mark.slow
def test_memory_that_would_end_the_process(in_subprocess):
    """TensorFlow can work on foreign memory at every offset, of arrays, tensors and capsules."""
    program = """
        import numpy as np, tensorflow as tf, torch, interop

        class Foreign:
            def __init__(self, array):
                self.array = array
            def __dlpack__(self, **keywords):
                return self.array.__dlpack__(**keywords)
            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        for offset in range(0, 64, 4):
            raw = np.zeros(1 << 14, "u1")
            start = -raw.__array_interface__["data"][0] % 64 + offset
            array = raw[start : start + 4096].view("f4").reshape(32, 32)
            array[...] = np.arange(1024).reshape(32, 32)
            for value in (array, torch.from_numpy(array), Foreign(array), memoryview(array)):
                result = interop.convert(value, to="tensorflow")
                for part in tf.unstack(result[:, 1:] * 2):
                    tf.reduce_sum(part[1:])
                assert np.array_equal(result, array)
        print("alive")
    """
    assert in_subprocess(program, TF_CPP_MIN_LOG_LEVEL="3").split() == ["alive"]


def test_only_tensors_are_returned_as_they_are():
    """TensorFlow takes handles and codes for tensors, but not rows of several lengths."""
    codes = tf.bitcast(tf.constant([1, 2], tf.int8), tf.qint8)
    assert interop.convert(codes, to="tensorflow") is codes
    for value in (tf.ragged.constant([[1.0], [2.0, 3.0]]), keras.Input((3,))):
        with pytest.raises(RefusedError):
            interop.convert(value, to="tensorflow")


def test_places_that_are_not_this_processs():
    """A device of a plugin or of another process is not taken for the host or for CUDA."""
    local = "/job:localhost/replica:0/task:0/device:"
    assert describe.place(f"{local}CPU:0") == ("cpu", {"immutable"})
    assert describe.place(f"{local}TPU:1") == ("tpu:1", {"immutable"})
    for name in ("/job:worker/replica:0/task:1/device:CPU:0", f"{local}CUSTOM:0", ""):
        assert describe.place(name) == ("cpu", {"immutable", "elsewhere"})
    elsewhere = interop.make_spec(
        "tensorflow", "float32", shape=(2,), traits={"immutable", "elsewhere"}
    )
    with pytest.raises(RefusedError):
        interop.plan(elsewhere, to="numpy")


# ------------------------------------------------------------------ accelerators


def test_a_device_without_a_number_is_the_first(monkeypatch):
    """A device is named as TensorFlow names it, if there are as many."""
    monkeypatch.setattr(describe, "_is_built_with", lambda platform: platform == "cuda")
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [kind])
    assert [*map(describe.logical_device, ("cpu", "cuda", "cuda:0", "tpu"))] == [
        *("/CPU:0", "/GPU:0", "/GPU:0", "/TPU:0")
    ]
    for name in ("cuda:1", "rocm", "tpu:1"):
        with pytest.raises(DeviceError):
            describe.logical_device(name)


def test_steps_of_accelerators_on_the_host():
    """The steps for devices give the right numbers, here on the only device there is."""
    value = tf.constant([[1.5, 2.5], [-3.0, 0.0]])
    moved = dense.move(value, device="cpu")
    assert same(content(moved), value.numpy())
    assert same(content(dense.deep_copy(value)), value.numpy())
    assert address(dense.deep_copy(value)) != address(value)
    assert same(content(dense.cast(value, dtype="int8")), np.array([[1, 2], [-3, 0]], "i1"))
    down = dense.download(value, device="cpu")
    down[...] = 0
    assert value[0, 0] == 1.5
    with pytest.raises(Declined):
        dense.cast(value, dtype="float32")
    producer = dense._AnyStream(value)
    assert np.array_equal(np.from_dlpack(producer), value)
    assert dense.to_consumer("torch", value).tolist() == value.numpy().tolist()
    twice = tf.SparseTensor([[1, 0], [0, 1], [1, 0]], [1.0, 2.0, 3.0], (2, 2))
    assert sparse.to_tensor_there(twice).numpy().tolist() == [[0, 2], [4, 0]]


# ------------------------------------------------------------------ sparse

DENSE = np.array([[0, 1, 0, 4], [2, 0, 0, 0], [0, 3, 5, 0]], "f4")


def sparse_tensor(dtype="float32", array=DENSE):
    """Return a sparse tensor of TensorFlow's own making."""
    places = np.argwhere(array)
    values = tf.constant(array[array != 0].astype(numpy_dtype(dtype)))
    return tf.SparseTensor(places, values, array.shape)


SPARSE_TARGETS = (
    "tensorflow.sparse",
    "tensorflow",
    "numpy",
    "torch",
    *(f"scipy.{layout}" for layout in ("coo", "csr", "csc")),
    *(f"torch.sparse_{layout}" for layout in ("coo", "csr")),
    "sparse.coo",
    "jax.bcoo",
)


def test_a_canonical_copy_is_in_order_and_holds_sums():
    """Coordinates out of order or given twice are sorted and summed."""
    value = tf.SparseTensor([[2, 1], [0, 3], [2, 1], [0, 0]], [1.0, 2.0, 3.0, 4.0], (3, 4))
    assert interop.spec(value).traits == {"immutable", "uncoalesced"}
    result = sparse.canonicalize(value)
    assert result.indices.numpy().tolist() == [[0, 0], [0, 3], [2, 1]]
    assert result.values.numpy().tolist() == [4, 2, 4]
    assert interop.spec(result).traits == {"immutable"}


@together("values", [[], [2.5], [2.5, 1.0]])
def test_a_sparse_tensor_without_axes(values):
    """A SparseTensor of no axes is the sum of its elements, and a copy of it has them all."""
    value = tf.SparseTensor(np.zeros((len(values), 0), "i8"), np.array(values, "f4"), [])
    assert interop.spec(value).shape == ()
    for target in ("numpy", "tensorflow", "torch"):
        result = interop.convert(value, to=target)
        assert (tuple(result.shape), float(result)) == ((), sum(values))
        assert interop.spec(result).dtype == "float32"
    copied = interop.convert(value, to="tensorflow.sparse", copy=True)
    assert (copied.shape, copied.values.numpy().tolist()) == ((), values)
    assert copied.indices.shape == (len(values), 0)


@together("dtype", ["bool", "bfloat16", "float32", "int8", "uint64", "complex64"])
def test_sums_are_tensorflows(dtype):
    """Duplicates give, bit for bit, what TensorFlow's own scatter gives."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, 5, (60, 2))
    values = tf.constant((rng.standard_normal(60) * 9).astype(numpy_dtype(dtype)))
    value = tf.SparseTensor(places, values, (5, 5))
    expected = tf.scatter_nd(places, values, (5, 5)).numpy()
    assert same(interop.convert(value, to="numpy"), expected)
    assert same(content(interop.convert(value, to="tensorflow")), expected)
    assert same(content(interop.convert(sparse.canonicalize(value), to=tf)), expected)


@together("place", [[0, 4], [-1, 0], [3, 0], [0, 2**40]])
def test_indices_that_others_would_read_beyond_memory(place):
    """Indices outside the shape, which other libraries would follow, are refused."""
    value = tf.SparseTensor([[0, 0], place], [1.0, 2.0], (3, 4))
    for target in SPARSE_TARGETS[1:]:
        with pytest.raises(RefusedError):
            interop.convert(value, to=target)


def test_the_check_of_indices_is_forgotten_with_them():
    """What an inspection of indices gave is forgotten with them, and kept apart by shape."""
    for _ in range(50):
        good = tf.SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2))
        assert interop.spec(good).traits == {"immutable"}
        small = tf.SparseTensor(good.indices, good.values, (1, 1))
        assert "invalid_indices" in interop.spec(small).traits
        del good, small
        bad = tf.SparseTensor([[1, 1], [0, 0]], [1.0, 2.0], (2, 2))
        assert interop.spec(bad).traits == {"immutable", "uncoalesced"}
        del bad
    gc.collect()
    assert len(sparse._inspected) < 20


def test_sparse_inside_of_functions():
    """A traced sparse tensor is refused with the reason, and converts to TensorFlow as itself."""

    @tf.function(autograph=False)
    def look(x):
        assert "traced" in interop.spec(x).traits
        for target in ("numpy", "scipy.coo", "torch.sparse_coo", "tensorflow"):
            with pytest.raises(RefusedError):
                interop.convert(x, to=target)
        assert interop.convert(x, to="tensorflow.sparse") is x
        return tf.sparse.to_dense(x)

    assert same(look(sparse_tensor()).numpy(), DENSE)


# ------------------------------------------------------------------ indexed slices


#: Slices of a tensor: the rows that they go to, and the lengths of its other axes.
SLICES = {
    "a row twice": ((2, 0, 2), (3,)),
    "in order": ((0, 1, 3), (3,)),
    "out of order": ((3, 1, 0), (3,)),
    "numbers": ((2, 0, 2), ()),
    "planes": ((2, 0, 2), (2, 4)),
}


@together("rows, inner", SLICES.values())
@together("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex128"])
def test_slices_become_dense_and_sparse(dtype, index, rows, inner):
    """Each slice goes to its row, and slices of one row are summed, as TensorFlow does it.

    What is sparse stores every element of a slice once, be it zero or not.
    """
    array = np.arange(np.prod((3, *inner))).reshape(3, *inner) % 5
    shape = (4, *inner)
    values = tf.constant(array.astype(numpy_dtype(dtype)))
    value = tf.IndexedSlices(values, tf.constant(rows, index), tf.constant(shape, tf.int64))
    spec = interop.spec(value)
    assert (spec.format, spec.dtype, spec.shape) == ("tensorflow.indexed_slices", dtype, shape)
    assert (spec.nnz, spec.index_dtype) == (array.size, index)
    assert spec.nbytes == values.numpy().nbytes + 3 * np.dtype(index).itemsize
    expected = tf.math.unsorted_segment_sum(value.values, value.indices, 4).numpy()
    for target in ("numpy", "tensorflow", "torch", "tensorflow.sparse"):
        result = interop.convert(value, to=target)
        assert same(interop.convert(result, to="numpy"), expected)
    assert result.values.shape == (array.size * len({*rows}) // 3,)
    assert "uncoalesced" not in interop.spec(result).traits
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy", forbid="densify")
