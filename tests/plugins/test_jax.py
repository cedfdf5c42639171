"""JAX: dense and sparse arrays in and out, what shares memory, and what is never narrowed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp
import sparse
import torch
from jax.experimental import sparse as jsparse

import interop
from interop.errors import Declined, DeviceError, RefusedError
from interop_plugins.jax import dense, describe
from interop_plugins.jax import sparse as steps
from tests.cases import together
from tests.plugins.immutable import framework
from tests.plugins.promises import (
    is_kept,
)
from tests.plugins.values import same

array, address = framework("jax").make, framework("jax").address

# Its place before JAX 0.8.
enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64


# ------------------------------------------------------------------ describing


def test_references_give_what_they_hold_now():
    """A Ref is read once, and later writes to it do not show in the result."""
    ref = jax.new_ref(jnp.arange(3.0))
    assert interop.spec(ref).dtype == "float32"
    for target in ("numpy", "torch", "jax"):
        result = interop.convert(ref, to=target)
        before = np.asarray(result).copy()
        ref[0] = ref[0] + 5.0
        assert np.asarray(result).tolist() == before.tolist()
        assert np.asarray(ref[...]).tolist() == [before[0] + 5.0, 1.0, 2.0]
    narrow = jax.new_ref(jnp.ones((2, 3), jnp.bfloat16))
    assert interop.convert(narrow, to="torch").dtype == torch.bfloat16
    assert interop.convert_tree({"state": [ref]}, to="numpy")["state"][0].tolist() == [15, 1, 2]


def test_dtypes_by_their_objects():
    """JAX's scalar types name dtypes."""
    result = interop.convert(np.arange(3.0), to="jax", dtype=jnp.bfloat16)
    assert result.dtype == jnp.bfloat16
    assert interop.convert(jnp.ones(2), to=np.ndarray, dtype=jnp.float16).dtype == np.float16


# ------------------------------------------------------------------ out of JAX


def test_views_outlive_the_array_and_donation():
    """What shares the memory of an array keeps it, also when the array is deleted or donated."""
    step = jax.jit(lambda x: x * 0, donate_argnums=0)
    for target in ("numpy", "torch"):
        value = jnp.arange(12.0)
        result = interop.convert(value, to=target)
        zeros = step(value)
        value.delete()
        del value
        assert result.tolist() == list(range(12))
        assert zeros.tolist() == [0] * 12


def by_columns():
    """Return the place of a matrix that is laid out by columns."""
    from jax.experimental import layout

    sharding = jnp.ones(1).sharding
    if hasattr(layout, "Format"):
        return layout.Format(layout.Layout((1, 0)), sharding)
    # Their names before JAX 0.7.
    return layout.Layout(layout.DeviceLocalLayout((1, 0)), sharding)


def test_layouts_of_the_users_choice():
    """An array laid out by columns is shared as it lies."""
    layout = by_columns()
    value = jax.device_put(jnp.arange(12.0).reshape(3, 4), layout)
    assert interop.spec(value).traits == {"immutable", "noncontiguous", "fortran"}
    for target in ("numpy", "torch"):
        result = interop.convert(value, to=target, copy=False)
        assert result.tolist() == np.arange(12.0).reshape(3, 4).tolist()
    assert np.isfortran(interop.convert(value, to="numpy"))
    copied = interop.convert(value, to="numpy", copy=True)
    copied[...] = 0
    assert value[2, 3] == 11
    assert (interop.convert(value, to="jax", copy=True) == value).all()


def test_what_is_not_plain_has_no_fast_key():
    """An array that is deleted, or laid out by columns, is described on each call."""
    plain, deleted = (jnp.arange(12.0).reshape(3, 4) for _ in range(2))
    odd = jax.device_put(plain, by_columns())
    deleted.delete()
    mine = interop.Interop()
    for _ in range(4):
        assert mine.convert(plain, "numpy", copy=True).flags.c_contiguous
    assert describe.fast_key(plain) is not None
    assert describe.fast_key(odd) is describe.fast_key(deleted) is None
    assert np.isfortran(mine.convert(odd, "numpy", copy=False))
    assert mine.convert(odd, "numpy", copy=True).tolist() == np.arange(12.0).reshape(3, 4).tolist()
    with pytest.raises(RefusedError):
        mine.convert(deleted, "numpy", copy=True)


# ------------------------------------------------------------------ into JAX


@together("name", sorted(describe.PACKED))
def test_packed_elements_take_the_memory_they_lie_in(name: str) -> None:
    """The reported memory ends where the packed elements do, and not where bytes would."""
    x = jnp.asarray(np.array([1, 0, 1, 1, 1], getattr(ml_dtypes, name)))
    assert interop.spec(x).dtype == name
    ((address, length),) = describe.memory(x)
    assert length == (2 if name.endswith("2") else 3)
    assert address == x.unsafe_buffer_pointer()


# ------------------------------------------------------------------ 64 bits


@pytest.mark.parametrize("make", [np.array, lambda x: torch.from_numpy(np.array(x))])
@together(
    "name, numbers, misfit",
    [
        ("int64", [-(2**31), 2**31 - 1], "-2147483649"),
        ("uint64", [0, 2**32 - 1], "4294967296"),
    ],
)
def test_integers_of_64_bits_arrive_if_32_hold_them(convert, make, name, numbers, misfit):
    """Without x64 whole numbers that fit become 32 bits; the first that does not is named."""
    outside = int(misfit.replace("_", ""))
    for shape in ((2,), (1, 2), (2, 1)):
        for size in (1, 40_000):
            array = np.tile(np.array(numbers, name).reshape(shape), size)
            value = make(array)
            plan = interop.plan(value, to="jax")
            assert (plan.result.dtype, plan.effects) == (name.replace("64", "32"), {"copy"})
            result = convert(value, to="jax")
            assert same(result, array.astype(name.replace("64", "32")))
            assert np.array_equal(np.asarray(value), array)
            array = array.copy()
            array.flat[-1] = outside
            value = make(array)
            with pytest.raises(RefusedError, match=f"{misfit} does not fit in") as caught:
                interop.convert(value, to="jax")
            assert caught.value.effects == {"narrow"}
            assert interop.convert(value, to="jax", allow="narrow").dtype.itemsize == 4
    assert interop.convert(make(np.zeros((0, 3), name)), to="jax").shape == (0, 3)
    assert interop.convert(make(np.array(7, name)), to="jax").tolist() == 7


def test_routes_are_not_kept_beyond_the_option():
    """The same request follows the option both ways: no route for one state is used in the other."""
    value = np.array([1e300])
    convert = interop.converter("jax", allow="narrow")
    for _ in range(3):
        assert convert(value).dtype == "float32"
        assert "narrow" in interop.plan(value, to="jax", allow="narrow").effects
        with enable_x64(True):
            assert convert(value).tolist() == [1e300]
            assert interop.plan(value, to="jax", allow="narrow").effects == {"copy"}
            assert interop.convert(value, to="jax").dtype == "float64"
        with pytest.raises(RefusedError):
            interop.convert(value, to="jax")


def test_a_plan_that_is_older_than_the_option():
    """A step that was planned while the option was on declines once it is off."""
    for step in (dense.from_numpy, partial(dense.from_numpy, dtype="float64")):
        with pytest.raises(Declined):
            step(np.ones(2))
    with pytest.raises(Declined):
        dense.from_torch(torch.ones(100_000, dtype=torch.float64))
    with enable_x64(True):
        route = interop.plan(np.ones(2), to="jax")
    with pytest.raises(RefusedError):
        route(np.ones(2))


def test_arrays_of_64_bits_stay_what_they_are():
    """An array made while the option was on keeps its width after it is off."""
    value = array("float64")
    for target in ("jax", "numpy", "torch"):
        for copy in (None, True):
            result = interop.convert(value, to=target, copy=copy)
            assert str(result.dtype).endswith("float64")


def test_the_option_from_outside(in_subprocess):
    """Before JAX is imported, plans follow its environment variable."""
    program = """
        import sys, interop
        spec = interop.make_spec("numpy", "float64", shape=(3,))
        try:
            print(interop.plan(spec, to="jax").effects)
        except interop.errors.RefusedError as error:
            print("narrow" in str(error))
        assert "jax" not in sys.modules
    """
    assert in_subprocess(program, JAX_ENABLE_X64="True").strip() == "frozenset({'copy'})"
    assert in_subprocess(program, JAX_ENABLE_X64="0").strip() == "True"


# ------------------------------------------------------------------ bad input


def test_inside_traces():
    """A tracer has no elements to hand over, and converts to JAX as itself."""
    constants = []

    def look(x):
        assert interop.spec(x).traits == {"traced"}
        for target in ("numpy", "torch", "python", "jax.bcoo"):
            with pytest.raises(RefusedError):
                interop.convert(x, to=target)
        assert interop.convert(x, to="jax") is x
        constants.append(interop.convert(np.ones(4, "f4"), to="jax"))
        return (x * constants[-1]).sum()

    x = jnp.ones((2, 4))
    interop.convert(x, to="numpy")  # so that fast paths are known
    assert jax.jit(look)(x) == 8
    assert jax.vmap(look)(x).tolist() == [4, 4]
    assert jax.grad(look)(x).tolist() == [[1] * 4] * 2
    assert jax.jvp(look, (x,), (x,))[1] == 8
    assert len(constants) == 4


def test_random_keys():
    """Random keys are not numbers."""
    key = jax.random.key(0)
    interop.convert(jnp.ones(2), to="numpy")
    for target in ("numpy", "torch", "python"):
        with pytest.raises(RefusedError):
            interop.convert(key, to=target)
    assert interop.convert(key, to="jax") is key
    assert interop.convert(jax.random.key_data(key), to="numpy").tolist() == [0, 0]


@pytest.mark.parametrize("target", ["numpy", "torch", "jax", "python"])
def test_deleted_and_donated_buffers(target):
    """An array whose memory is gone is refused, and the reason is named."""
    for _ in range(2):
        interop.convert(jnp.ones((2, 3)), to=target)
    deleted, donated = jnp.ones((2, 3)), jnp.ones((2, 3))
    deleted.delete()
    jax.block_until_ready(jax.jit(lambda x: x + 1, donate_argnums=0)(donated))
    assert donated.is_deleted()
    for value in (deleted, donated):
        with pytest.raises(RefusedError):
            interop.convert(value, to=target)


@pytest.mark.slow
def test_several_devices(in_subprocess):
    """Parts on several devices are gathered for formats on the host; one replica is shared."""
    in_subprocess(
        """
        import numpy as np, jax, torch, interop
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

        a = np.arange(32, dtype="f4").reshape(8, 4)
        devices = jax.devices()
        assert len(devices) == 4
        mesh = Mesh(np.array(devices).reshape(2, 2), ("x", "y"))
        for spec in (P("x", "y"), P("y"), P(None, "x"), P()):
            value = jax.device_put(a, NamedSharding(mesh, spec))
            trait = "sharded" if any(spec) else "replicated"
            assert interop.spec(value).traits == {"immutable", trait}
            assert interop.convert(value, to="jax") is value
            for target in ("numpy", "torch", "python"):
                route = interop.plan(value, to=target)
                if trait == "replicated":
                    assert route.steps[0].label == "replica"
                    if target != "python":
                        result = interop.convert(value, to=target, copy=False)
                        assert np.shares_memory(np.asarray(result), value.addressable_data(0))
                    assert np.array_equal(interop.convert(value, to=target), a)
                    continue
                assert route.steps[0].label == "gather" and "copy" in route.effects
                result = interop.convert(value, to=target)
                assert np.array_equal(np.asarray(result), a)
                if target == "numpy":
                    assert result.flags.writeable and result.flags.owndata
                try:
                    interop.convert(value, to=target, copy=False)
                except interop.errors.RefusedError as error:
                    assert "copy" in str(error)
                else:
                    raise AssertionError(target)
            copied = interop.convert(value, to="jax", copy=True)
            assert copied.sharding == value.sharding and np.array_equal(copied, a)
            places = [{shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards}
                      for array in (value, copied)]
            assert places[0].isdisjoint(places[1]), trait  # a cast to its own dtype would share
        one = jax.device_put(a, devices[2])
        for target in ("numpy", "torch"):
            interop.convert(one, to=target), interop.convert(one, to=target)
            result = interop.convert(one, to=target, copy=False)
            assert np.array_equal(result, a)
        assert interop.spec(one).device == "cpu:2"

        from interop_plugins.jax import dense
        moved = dense.download(one, device="cpu")  # which on a host is another of its devices
        assert moved.flags.writeable and np.array_equal(moved, a)
        moved[...] = 0
        assert np.array_equal(one, a)
        narrow = dense.download(one.astype("bfloat16"), device="cpu")
        assert narrow.dtype == one.astype("bfloat16").dtype and narrow[7, 3] == 31
        """,
        XLA_FLAGS="--xla_force_host_platform_device_count=4",
    )


@pytest.mark.slow
def test_parts_of_the_host(in_subprocess):
    """A part of the host that JAX knows by a number is a place: arrays are put there, and stay."""
    in_subprocess(
        """
        import numpy as np, jax, jax.numpy as jnp, scipy.sparse as sp, torch, interop
        from importlib.util import find_spec
        from interop.errors import DeviceError, RefusedError

        others = [name for name in ("tensorflow",) if find_spec(name)]
        devices = jax.devices()
        # JAX 0.8 does not name the devices of the host so.
        fourth, third = (d if str(d) == name else name for name, d in
                         (("cpu:3", devices[3]), ("cpu:2", devices[2])))

        def check(value, to="jax", device="cpu:2", **words):
            route = interop.plan(value, to=to, device=device, **words)
            result = interop.convert(value, to=to, device=device, **words)
            spec, part = interop.spec(result), devices[int(str(device)[-1])]
            assert spec.device == route.result.device == str(device), (route, spec)
            parts = jax.tree.leaves(result)
            assert all(leaf.devices() == {part} and leaf.committed for leaf in parts), route
            return result, route

        for count in (0, 3, 10**5):
            for dtype in ("float32", "int32", "bool", "complex64", "bfloat16"):
                array = np.arange(count).astype(jnp.dtype(dtype))
                tensor = torch.arange(count).to(getattr(torch, dtype))
                for value in (array, tensor):
                    for device in ("cpu:0", "cpu:2", fourth, torch.device("cpu", 1)):
                        result, route = check(value, device=device)
                        assert np.array_equal(result, array) and route.effects == {"copy"}
                if count:  # the array's memory stays the array's
                    result, _ = check(array)
                    array[...] = 0
                    assert np.any(np.asarray(result)) and result.dtype == dtype
        wide = np.arange(7.0)
        assert np.array_equal(check(wide, dtype="float32")[0], wide)

        one = jax.device_put(jnp.arange(6.0).reshape(2, 3), devices[2])
        for device in (None, "cpu", "cpu:2", third):
            assert interop.convert(one, to="jax", device=device) is one
        assert interop.convert(wide, like=one, dtype="float32").devices() == {devices[2]}
        for words in ({}, {"dtype": "int32"}, {"copy": True}):
            assert check(one, **words)[0] is one or words
            moved, route = check(one, device="cpu:0", **words)
            assert np.array_equal(moved, one) and route.effects == {"copy"}
            assert moved.unsafe_buffer_pointer() != one.unsafe_buffer_pointer()
        assert np.shares_memory(interop.convert(one, to="numpy"), one)
        sparse = sp.random(20, 30, 0.2, dtype="f4", format="csr", random_state=1)
        for to in ("jax", "jax.bcoo", "jax.bcsr"):
            there, _ = check(sparse, to=to)
            back = interop.convert(there, to="scipy.csr")
            assert interop.spec(back).device == "cpu" and (back != sparse).nnz == 0
            for other in ("jax", "jax.bcoo", "jax.bcsr"):
                stays = interop.convert(there, to=other)
                assert interop.spec(stays).device == "cpu:2", (to, other)
                check(there, to=other, device="cpu:1")

        for value in (wide.astype("f4"), one, sparse):
            try:
                interop.convert(value, to="jax", device="cpu:9")
            except DeviceError as error:
                assert "no device cpu:9; it has 4 of that type" in str(error)
            else:
                raise AssertionError(value)
            for to in ("numpy", "torch", "scipy.csr", *others):
                for ask in (interop.convert, interop.plan):
                    try:
                        ask(value, to=to, device="cpu:2")
                    except RefusedError as error:
                        assert f"{to} cannot be on cpu:2" in str(error)
                    else:
                        raise AssertionError(to)
                if to == "numpy" and value is not sparse:
                    assert np.array_equal(interop.convert(value, to=to, device="cpu:0"), value)
        """,
        XLA_FLAGS="--xla_force_host_platform_device_count=4",
    )


@pytest.mark.slow
def test_host_where_nothing_is_named(in_subprocess):
    """Without a number arrays are where JAX makes them by default, and free to be moved."""
    in_subprocess(
        """
        import numpy as np, jax, jax.numpy as jnp, torch, interop

        arrays = [np.ones(n, dtype) for n in (0, 3, 10**5) for dtype in ("float32", "float64")]
        devices = jax.devices()
        for name in ("cpu", torch.device("cpu")):
            for value in arrays:
                result = interop.convert(value, to="jax", dtype="float32", device=name)
                assert result.devices() == {devices[0]} and not result.committed
        # Where JAX makes arrays by default, if that is on the host.
        for default in (devices[2], "cpu"):
            jax.config.update("jax_default_device", default)
            for value in (*arrays, torch.ones(3), torch.ones(10**5)):
                for dtype in ("float32", "bfloat16"):
                    result = interop.convert(value, to="jax", dtype=dtype)
                    assert result.devices() == jnp.ones(1).devices(), (default, value.shape)
                    assert not result.committed
                    result + jax.device_put(jnp.ones(result.shape), devices[3])
        """,
        XLA_FLAGS="--xla_force_host_platform_device_count=4",
    )


@pytest.mark.parametrize("make", [np.ones, torch.ones, jnp.ones])
def test_host_of_one_part(make):
    """Where the host is one device that is its first part, and there is no second."""
    value = make(4) if make is not np.ones else np.ones(4, "f4")
    result = interop.convert(value, to="jax", device="cpu:0")
    assert interop.spec(result).device == "cpu"
    assert (result is value) == (make is jnp.ones)
    assert interop.convert(result, to="jax", device="cpu:0", copy=False) is result
    copied = interop.convert(result, to="jax", device="cpu:0", copy=True)
    assert copied.unsafe_buffer_pointer() != result.unsafe_buffer_pointer()
    with pytest.raises(DeviceError):
        interop.convert(value, to="jax", device="cpu:1")


# ------------------------------------------------------------------ accelerators


@together(
    "platform, version, name",
    [
        ("gpu", "PJRT C API\ncuda 12090", "cuda:3"),
        ("gpu", "PJRT C API\nROCm 60300", "rocm:3"),
        ("tpu", "PJRT C API", "tpu:3"),
    ],
)
def test_a_device_has_the_name_of_its_type(platform: str, version: str, name: str) -> None:
    """JAX calls NVIDIA's and AMD's devices alike, and its client tells whose they are."""
    client = SimpleNamespace(platform_version=version)
    device: Any = SimpleNamespace(platform=platform, client=client, local_hardware_id=3)
    assert describe._device_name(device) == name


@pytest.mark.parametrize("other", ["torch", "cupy"])
def test_doubles_on_a_device_are_shared_while_the_option_is_on(other):
    """With x64, JAX takes the memory of a tensor of 64 bits, and without it refuses."""
    doubles = interop.make_spec(other, "float64", device="cuda:1", shape=(64, 64))
    with pytest.raises(RefusedError):
        interop.plan(doubles, to="jax")
    with enable_x64(True):
        assert interop.plan(doubles, to="jax").zero_copy


@pytest.mark.parametrize(
    ("make", "fail"),
    [
        (np.ones, dense.from_numpy),
        (np.ones, partial(dense.upload, device="cuda")),
        (partial(np.ones, dtype="f4"), partial(dense.upload, device="cuda")),
        (jnp.ones, partial(dense.move, device="cuda:1")),
        (jnp.ones, partial(dense.move, device="tpu:0")),
        (partial(torch.ones, dtype=torch.float64), dense.from_torch),
        (np.ones, partial(interop.convert, to="jax")),
        (np.ones, partial(interop.convert, to="jax", copy=False)),
        (partial(np.full, fill_value="text"), partial(interop.convert, to="jax")),
        (jnp.ones, partial(interop.convert, to="numpy", dtype="float64", copy=False)),
        (jnp.ones, lambda value: (value.delete(), interop.convert(value, to="numpy"))),
    ],
)
def test_errors_keep_nothing(make, fail):
    """A large array is freed with the error that refused it, without a collection."""
    is_kept(partial(make, 2**17), fail)  # a first call imports, and plans
    assert not is_kept(partial(make, 2**17), fail)


# ------------------------------------------------------------------ sparse

DENSE = np.array([[0, 1, 0, 4], [2, 0, 0, 0], [0, 3, 5, 0]], "f4")


@pytest.mark.parametrize("layout", ["bcoo", "bcsr"])
def test_sparse_truth_values(layout):
    """JAX cannot add bools up; duplicates are true if any of them is."""
    value = interop.convert(DENSE.astype(bool), to=f"jax.{layout}", dtype="bool")
    assert value.dtype == bool
    for keywords in ({}, {"copy": True}):
        assert (interop.convert(value, to="jax", **keywords) == DENSE.astype(bool)).all()
    places = jnp.array([[2, 1], [0, 3], [2, 1]])
    twice = jsparse.BCOO((jnp.array([True, True, False]), places), shape=(3, 4))
    result = interop.convert(twice, to=f"jax.{layout}")
    dense_ = interop.convert(result, to="jax")
    assert (str(result.dtype), str(dense_.dtype), int(dense_.sum())) == ("bool", "bool", 2)


def test_sparse_arrays_in_order_say_so():
    """What is made of an array in order is flagged: else JAX adds, which takes the least numbers for zeros."""
    least = value = np.array([[0, 1e-40], [-1e-45, 0]], "f4")
    for target in ("jax.bcoo", "jax.bcsr", "jax.bcoo"):
        value = interop.convert(value, to=target)
        assert (value.indices_sorted, value.unique_indices) == (True, True)
        assert same(steps.to_dense(value), least)


@together("axes", [{"n_batch": 1}, {"n_dense": 1}])
def test_batches_and_dense_axes(axes):
    """Batched and hybrid arrays, which only JAX has, become dense and nothing else."""
    value = jsparse.BCOO.fromdense(jnp.array(DENSE), **axes)
    assert (interop.convert(value, to="numpy") == DENSE).all()
    with pytest.raises(RefusedError):
        interop.convert(value, to="scipy.coo", forbid="densify")


def test_indices_that_others_would_read_beyond_memory(in_fork):
    """Indices below zero and pointers out of order, which torch follows, are refused."""
    in_fork("""
        import jax.numpy as jnp, interop, torch, scipy.sparse
        from jax.experimental import sparse
        ones = jnp.ones(2)
        bad = [sparse.BCSR((ones, jnp.array([0, 9]), jnp.array([0, 1, 2])), shape=(2, 3)),
               sparse.BCSR((ones, jnp.array([0, 1]), jnp.array([0, 900, 2])), shape=(2, 3)),
               sparse.BCSR((ones, jnp.array([0, 1]), jnp.array([0, 1, 90])), shape=(2, 3)),
               sparse.BCSR((ones, jnp.array([0, 1]), jnp.array([1, 1, 2])), shape=(2, 3)),
               sparse.BCOO((ones, jnp.array([[0, 0], [0, -100000000]])), shape=(2, 3))]
        for value in bad:
            for target in ("torch.sparse_csr", "torch.sparse_coo", "scipy.csr", "scipy.coo"):
                try:
                    interop.convert(value, to=target, forbid="densify")
                except interop.errors.RefusedError as error:
                    assert "invalid_indices" in str(error) or "below zero" in str(error), error
                else:
                    raise AssertionError((value, target))
    """)


def test_sparse_inside_traces():
    """A sparse array of tracers is refused with the reason."""

    def look(x):
        with pytest.raises(RefusedError):
            interop.convert(x, to="scipy.coo")
        return x.data.sum()

    assert jax.jit(look)(jsparse.BCOO.fromdense(jnp.array(DENSE))) == 15


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(
    ("value", "narrow", "wide"),
    [
        (3, "int32", "int64"),
        (-(2**31), "int32", "int64"),
        (1 / 3, "float32", "float64"),
        (-0.0, "float32", "float64"),
        (2j, "complex64", "complex128"),
        ([[1, 2], [3, 4]], "int32", "int64"),
        ((1, 0.1, float("inf")), "float32", "float64"),
        ([0.1j, float("nan")], "complex64", "complex128"),
        ([], "float32", "float64"),
    ],
)
def test_numbers_without_a_dtype_become_jaxs_own(value, narrow, wide, x64):
    """Python's numbers become 32 bits where JAX has no more, and 64 where it has."""
    with enable_x64(x64):
        result = interop.convert(value, to="jax")
        assert str(result.dtype) == (wide if x64 else narrow)
        assert np.array_equal(result, jnp.asarray(value), equal_nan=True)
        assert interop.plan(value, to="jax").effects == {"copy"}


@pytest.mark.parametrize(
    "value",
    [
        2**31,
        -(2**31) - 1,
        [1, 2**40],
        1e39,
        [1.0, 1e-39],
        1e300j,
        np.float64(0.5),
        [np.int64(2**40)],
    ],
)
def test_numbers_that_32_bits_do_not_hold_are_not_narrowed(value):
    """A number beyond 32 bits, or a real of NumPy's, which has a dtype, needs a permission."""
    with enable_x64(False):
        with pytest.raises(RefusedError) as caught:
            interop.convert(value, to="jax")
        if (
            type(np.max(value).item()) is int and "weak" in interop.spec(value).traits
        ):  # it would wrap around
            assert not caught.value.effects
            with pytest.raises(RefusedError):
                interop.convert(value, to="jax", allow="narrow")
            return
        assert caught.value.effects == {"narrow"}
        assert interop.convert(value, to="jax", allow="narrow").dtype.itemsize in {4, 8}


def test_torch_that_takes_no_versioned_capsules(monkeypatch):
    """Releases of torch that take legacy capsules alone share JAX's memory as well."""
    take = torch.utils.dlpack.from_dlpack

    def from_dlpack(capsule):
        if "versioned" in repr(capsule):
            msg = "from_dlpack received an invalid capsule"
            raise RuntimeError(msg)
        return take(capsule)

    monkeypatch.setattr(dense, "_torch_from_dlpack", lambda: from_dlpack)
    dense._takes_versions.cache_clear()
    try:
        assert not dense._takes_versions()
        for array in (jnp.arange(6.0).reshape(2, 3), jnp.float32(2), jnp.ones(3, "bfloat16")):
            for function in (dense.to_torch, dense.torch_fast_path):
                tensor = function(array)
                if tensor is not NotImplemented:
                    assert tensor.data_ptr() == array.unsafe_buffer_pointer()
                    assert tensor.tolist() == array.tolist()
            assert dense.to_torch(array).shape == array.shape
    finally:
        dense._takes_versions.cache_clear()


@pytest.mark.parametrize("make", [np.ones, torch.ones, lambda n: [1.0] * n])
def test_a_conversion_is_an_explicit_transfer(make: Any) -> None:
    """A guard against implicit transfers lets it through, and the copy is still a copy."""
    with jax.transfer_guard("disallow"):
        for keywords in ({}, {"dtype": "float32"}, {"device": "cpu"}):
            value = make(3)
            result = interop.convert(value, to="jax", allow={"narrow"}, **keywords)
            if not isinstance(value, list):
                value[0] = 7
            assert np.asarray(result).tolist() == [1, 1, 1]


#: Sparse values of one row, whose one element is the last but five; by their library.
FAR: dict[str, Callable[[int, str], Any]] = {
    "scipy.coo": lambda n, dtype: sp.coo_array((np.ones(1, dtype), ([0], [n - 5])), shape=(1, n)),
    "scipy.csr": lambda n, dtype: sp.csr_array(
        (np.ones(1, dtype), np.array([n - 5]), np.array([0, 1])), shape=(1, n)
    ),
    "torch.sparse_coo": lambda n, dtype: torch.sparse_coo_tensor(
        torch.tensor([[0], [n - 5]]),
        torch.ones(1, dtype=getattr(torch, dtype)),
        (1, n),
        check_invariants=True,
    ),
    "torch.sparse_csr": lambda n, dtype: torch.sparse_csr_tensor(
        torch.tensor([0, 1]),
        torch.tensor([n - 5]),
        torch.ones(1, dtype=getattr(torch, dtype)),
        (1, n),
        check_invariants=True,
    ),
    "sparse.coo": lambda n, dtype: sparse.COO(
        np.array([[0], [n - 5]]), np.ones(1, dtype), shape=(1, n)
    ),
}


# github.com/jax-ml/jax/issues/25182
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@together("name", FAR)
@together("target", ["jax.bcoo", "jax.bcsr"])
@together("length, dtype", [(2**31 + 10, "bool"), (2**33, "float32")])
def test_indices_of_64_bits_are_refused_or_kept(
    name: str, target: str, length: int, dtype: str
) -> None:
    """Without JAX's option nothing is made, and the option is named; with it every index is right."""
    x = FAR[name](length, dtype)
    with pytest.raises(RefusedError) as refusal:
        interop.convert(x, to=target)
    assert interop.plan(x, to=target).problem == str(refusal.value)
    with enable_x64(True):
        for _ in range(2):
            result = interop.convert(x, to=target)
            assert result.shape == (1, length)
            assert (result.indices.dtype, result.indices.ravel()[-1]) == ("int64", length - 5)
        back = interop.convert(result, to="scipy.coo")
        assert (back.coords[1].tolist(), back.dtype) == ([length - 5], dtype)
    with pytest.raises(RefusedError):
        interop.convert(x, to=target)


@pytest.mark.parametrize("size", [12, 2**16])
def test_an_array_that_was_sent_may_be_overwritten(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """JAX reads memory some time later: of few numbers it gets a copy, and many are waited for."""
    from interop_plugins.jax import dense

    sent: list[Any] = []

    class Later:
        """An array whose numbers are read when somebody waits for it, or else at the end."""

        def __init__(self, value: Any, device: str) -> None:
            sent.append(value)
            self.numbers = None

        def block_until_ready(self) -> Later:
            self.numbers = sent[-1].copy()
            return self

    monkeypatch.setattr(jax, "device_put", Later)
    monkeypatch.setattr(dense, "_device", lambda name: name)
    value = np.arange(size, dtype="float32")
    result: Any = dense.upload(value, device="cuda:0")
    value[:] = -1
    numbers = sent[0] if result.numbers is None else result.numbers
    assert np.array_equal(numbers, np.arange(size, dtype="float32"))
    assert (result.numbers is None) == (size == 12)
