"""Arrays in shards: over devices of one process, and over two processes."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest

import interop
from interop.errors import BadRequestError, RefusedError

pytestmark = pytest.mark.slow  # they start several processes with frameworks

Run = Callable[[str], None]

#: Runs the programs that it reads, one a line, and answers each with what went wrong.
WORKER = """
import json, os, sys, traceback
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # where libraries print
for line in sys.stdin:
    try:
        exec(json.loads(line), {})
        problem = ""
    except BaseException:
        problem = traceback.format_exc()
    print(json.dumps(problem), file=answers, flush=True)
"""


class Pair:
    """Two processes that know RANK and PORT, and run the same programs."""

    def __init__(self, **environment: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        facts = {**os.environ, **environment, "PORT": str(port), "OMP_NUM_THREADS": "1"}
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-W", "error", "-c", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**facts, "RANK": str(rank)},
            )
            for rank in range(2)
        ]

    def run(self, program: str) -> None:
        """Run a program in both, and fail if it fails in one or does not end."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps(textwrap.dedent(program)) + "\n")
            process.stdin.flush()
        problems = list(map(self._answer, self._processes))
        assert problems == ["", ""], "\n".join(problems)

    def _answer(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], 120)[0]:
            return "it does not end"
        line = process.stdout.readline()
        return str(json.loads(line)) if line else f"exit {process.wait()}"

    def end(self) -> None:
        """End both, whatever they wait for."""
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def in_two_processes() -> Iterator[Run]:
    """Run programs in two processes that are started for one test."""
    pair = Pair()
    yield pair.run
    pair.end()


@pytest.fixture(scope="module")
def in_torch() -> Iterator[Run]:
    """Run programs in two processes of torch that several tests share."""
    pair = Pair()
    yield lambda program: pair.run(TORCH + program)
    pair.end()


# ------------------------------------------------------------------ JAX


def test_jax_over_two_processes(in_two_processes: Run) -> None:
    """What other processes hold is collected with consent; a replica is shared without it."""
    in_two_processes(
        """
        import os, jax, numpy as np
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        rank = int(os.environ["RANK"])
        jax.distributed.initialize("127.0.0.1:" + os.environ["PORT"], 2, rank)
        import interop
        from interop.errors import RefusedError
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

        array = np.arange(24, dtype="f4").reshape(6, 4)
        mesh = Mesh(np.array(jax.devices()), ("x",))
        def placed(spec):
            sharding = NamedSharding(mesh, spec)
            return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

        value = placed(P("x"))
        assert interop.spec(value).traits == {"immutable", "distributed"}
        assert interop.spec(value).shape == (6, 4) and interop.convert(value, to="jax") is value
        for to in ("numpy", "torch", "scipy.csr"):
            try:
                interop.convert(value, to=to)
            except RefusedError as error:
                assert error.effects == {"gather"} and "value.addressable_shards" in str(error)
            else:
                raise AssertionError(to)
            route = interop.plan(value, to=to, allow="gather")
            assert "gather" in route.effects, route
            result = interop.convert(value, to=to, allow="gather")
            dense = result.toarray() if to == "scipy.csr" else np.asarray(result)
            assert np.array_equal(dense, array) and dense.flags.writeable

        local = value.addressable_shards[0].data
        assert interop.spec(local).traits == {"immutable"}
        assert np.array_equal(interop.convert(local, to="numpy"), array[3 * rank : 3 * rank + 3])

        replicated = placed(P())
        assert interop.spec(replicated).traits == {"immutable", "replicated"}
        shared = interop.convert(replicated, to="numpy", copy=False)
        assert np.array_equal(shared, array)
        here = replicated.addressable_data(0).unsafe_buffer_pointer()
        assert shared.ctypes.data == here
        """
    )


def test_jax_over_devices_of_one_process(in_subprocess: Callable[..., str]) -> None:
    """A named device gets all the parts in one place, at the price of the result alone."""
    in_subprocess(
        """
        import numpy as np, jax, interop
        from tests.processes import PeakMeter
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

        devices = jax.devices()
        mesh = Mesh(np.array(devices).reshape(2, 2), ("x", "y"))
        array = np.arange(2**24, dtype="f4").reshape(2**12, 2**12)
        for spec in (P("x", "y"), P("y"), P(None, "x"), P()):
            value = jax.device_put(array, NamedSharding(mesh, spec), may_alias=False)
            jax.block_until_ready(value)
            before = value.addressable_data(0).unsafe_buffer_pointer()
            for device in ("cpu:0", "cpu:2"):
                for words in ({}, {"copy": True}):
                    interop.convert(value, to="jax", device=device)
                    meter = PeakMeter()
                    result = interop.convert(value, to="jax", device=device, **words)
                    rise = meter.rise()
                    assert result.devices() == {devices[int(device[-1])]}
                    assert np.array_equal(result, array)
                    assert result.unsafe_buffer_pointer() != before
                    assert rise is None or rise < 1.3 * array.nbytes, (spec, device, rise)
                    del result
            meter = PeakMeter()
            result = interop.convert(value, to="numpy")
            rise, wanted = meter.rise(), 0 if spec == P() else array.nbytes
            assert np.array_equal(result, array)
            assert rise is None or rise < wanted + array.nbytes // 3, (spec, rise)
            assert (result.ctypes.data == before) == (spec == P())
            del result
        """,
        XLA_FLAGS="--xla_force_host_platform_device_count=4",
    )


def test_to_gather_is_to_copy() -> None:
    """``copy=False`` forbids to gather, and contradicts the consent to it."""
    spec = interop.make_spec("jax", "float32", shape=(64, 64), traits={"immutable", "distributed"})
    assert interop.plan(spec, to="numpy", allow="gather").effects == {"gather"}
    with pytest.raises(BadRequestError):
        interop.plan(spec, to="numpy", allow="gather", copy=False)
    with interop.policy(allow="gather"), pytest.raises(RefusedError):
        interop.plan(spec, to="numpy", copy=False)


# ------------------------------------------------------------------ torch

#: Two processes of torch, their mesh, and a tensor that both know.
TORCH = """
import os, warnings, numpy as np, torch, torch.distributed as dist, interop
from interop.errors import RefusedError
from torch.distributed.tensor import (
    DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh
)

# What torch 2.6 says of every tensor that it divides over processors.
warnings.filterwarnings("ignore", "DTensor random operators may not", UserWarning)
rank = int(os.environ["RANK"])
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["PORT"])
if not dist.is_initialized():
    dist.init_process_group("gloo", rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
whole = torch.arange(15.0).reshape(5, 3)
"""


def test_dtensor_in_shards(in_torch: Run) -> None:
    """A DTensor is put together with consent alone, on every process and for every target."""
    in_torch(
        """
for placement in (Shard(0), Shard(1), Partial()):
    local = placement.is_partial()
    value = (
        DTensor.from_local(whole, mesh, [placement])
        if local
        else distribute_tensor(whole, mesh, [placement])
    )
    wanted = 2 * whole if local else whole
    spec = interop.spec(value)
    assert (spec.format, spec.dtype, spec.shape) == ("torch.dtensor", "float32", (5, 3))
    assert (spec.traits, spec.nbytes) == ({"distributed"}, 60)
    assert interop.convert(value, to="torch.dtensor") is value
    for to in ("numpy", "torch", "jax", "scipy.csr"):
        try:
            interop.convert(value, to=to)
        except RefusedError as error:
            assert error.effects == {"gather"}
            for place in ("to_local()", "placements", "device_mesh", "allow={'gather'}"):
                assert place in str(error), error
        else:
            raise AssertionError((placement, to))
        route = interop.plan(value, to=to, allow="gather")
        assert "gather" in route.effects and route.result.device == "cpu"
        result = interop.convert(interop.convert(value, to=to, allow="gather"), to="numpy")
        assert np.array_equal(result, wanted), (placement, to, result)
    copied = interop.convert(value, to="torch.dtensor", copy=True)
    assert copied.placements == value.placements
    assert copied.to_local().data_ptr() != value.to_local().data_ptr()
    assert torch.equal(copied.to_local(), value.to_local())
"""
    )


def test_dtensor_with_replicas(in_torch: Run) -> None:
    """The local tensor of a replicated DTensor is shared, without a word from other processes."""
    in_torch(
        """
value = DTensor.from_local(whole, mesh, [Replicate()], run_check=False)
if rank == 0:  # alone: whoever waited for the other would wait for ever
    assert interop.spec(value).traits == {"replicated"}
    shared = interop.convert(value, to="numpy", copy=False)
    assert shared.ctypes.data == value.to_local().data_ptr() == whole.data_ptr()
    assert np.array_equal(shared, whole)
    assert interop.convert(value, to="torch", copy=False).data_ptr() == whole.data_ptr()
    turned = DTensor.from_local(whole.T, mesh, [Replicate()], run_check=False)
    assert interop.spec(turned).traits == {"replicated", "noncontiguous", "fortran"}
    assert np.array_equal(interop.convert(turned, to="numpy"), whole.T)
    signs = torch.tensor([1 + 2j, 3 - 4j]).conj()
    lazy = DTensor.from_local(signs, mesh, [Replicate()], run_check=False)
    assert np.array_equal(interop.convert(lazy, to="numpy"), [1 - 2j, 3 + 4j])
"""
    )


def test_dtensor_dtypes_and_graphs(in_torch: Run) -> None:
    """Bits of every dtype arrive, conjugates resolved; gradients flow back into the shards."""
    in_torch(
        """
names = "bool uint8 int64 uint16 bfloat16 float16 float8_e5m2 float64 complex64 complex128"
for name in names.split():
    every = (whole - 7 * (name[0] in "ifc")).to(getattr(torch, name))
    local = every[:, :2] if rank == 0 else every[:, 2:]
    shape = {"shape": every.shape, "stride": every.stride(), "run_check": False}
    value = DTensor.from_local(local.contiguous(), mesh, [Shard(1)], **shape)
    result = interop.convert(value, to="torch", allow="gather")
    assert result.dtype == every.dtype and result.is_contiguous()
    assert torch.equal(result.view(torch.uint8), every.view(torch.uint8)), name
    if every.is_complex():
        lazy = DTensor.from_local((local * 1j).contiguous().conj(), mesh, [Shard(1)], **shape)
        result = interop.convert(lazy, to="numpy", allow="gather")
        assert np.array_equal(result, (every * 1j).conj().resolve_conj().numpy())
for shape in ((1, 3), (0, 3), (3, 1, 2)):  # of which one process has nothing
    few = torch.arange(float(np.prod(shape))).reshape(shape)
    for dim in range(2):
        value = distribute_tensor(few, mesh, [Shard(dim)])
        assert np.array_equal(interop.convert(value, to="numpy", allow="gather"), few)
uneven = DTensor.from_local(whole[:1], mesh, [Shard(0)], run_check=False, shape=(5, 3), stride=(3, 1))
try:
    interop.convert(uneven, to="numpy", allow="gather")
except RefusedError as error:
    assert "its local shard is of shape (1, 3)" in str(error)
else:
    raise AssertionError("a shard that does not fit was taken")

leaf = distribute_tensor(whole, mesh, [Shard(0)]).requires_grad_()
assert interop.spec(leaf).traits == {"distributed", "grad"}
route = interop.plan(leaf, to="numpy", allow="gather")
assert route.effects == {"detach", "gather"}, route
assert np.array_equal(interop.convert(leaf, to="numpy", allow="gather"), whole)
result = interop.convert(leaf, to="torch", allow="gather")
assert result.requires_grad and torch.equal(result.detach(), whole)
(result * 3).sum().backward()
assert torch.equal(leaf.grad.full_tensor(), torch.full_like(whole, 3))
"""
    )


def test_dtensor_on_a_mesh_of_two_axes(in_torch: Run) -> None:
    """Axes of the mesh that divide nothing, or are of length one, take no part."""
    in_torch(
        """
for lengths in ((1, 2), (2, 1)):
    plane = init_device_mesh("cpu", lengths)
    for placements in ([Shard(0), Shard(0)], [Shard(1), Shard(0)], [Replicate(), Shard(1)]):
        value = distribute_tensor(whole, plane, placements)
        result = interop.convert(value, to="numpy", allow="gather")
        assert np.array_equal(result, whole), (lengths, placements)
alone = init_device_mesh("cpu", (2, 1), mesh_dim_names=("a", "b"))["b"]
value = DTensor.from_local(whole, alone, [Shard(0)])
assert interop.spec(value).traits == {"replicated"}
assert interop.convert(value, to="torch", copy=False).data_ptr() == whole.data_ptr()
"""
    )


def test_dtensor_takes_one_shard_beside_the_result(in_torch: Run) -> None:
    """To gather takes the memory of the result, and of one shard if it lies apart in the result."""
    in_torch(
        """
from tests.processes import PeakMeter

rows = 2**12
for dim, most in ((0, 1.1), (1, 1.6)):
    local = torch.full((rows // 2, rows) if dim == 0 else (rows, rows // 2), float(rank))
    value = DTensor.from_local(local, mesh, [Shard(dim)], run_check=False)
    interop.convert(value, to="numpy", allow="gather")
    meter = PeakMeter()
    result = interop.convert(value, to="numpy", allow="gather")
    rise = meter.rise()
    assert (result[0, 0], result[-1, -1]) == (0, 1)
    assert rise is None or rise < most * result.nbytes, (dim, rise / result.nbytes)
"""
    )


# ------------------------------------------------------------------ from one to the other

#: Two processes of torch and JAX, with four devices of JAX's, and arrays that both know.
BOTH = (
    """
import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

jax.config.update("jax_cpu_collectives_implementation", "gloo")
"""
    + TORCH
    + """
if not jax.distributed.is_initialized():
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        import socket
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            store.set("jax", str(free.getsockname()[1]))
    jax.distributed.initialize("127.0.0.1:" + store.get("jax").decode(), 2, rank)
four = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
matrix = np.arange(24, dtype="f4").reshape(6, 4)

def sharded(spec, array=matrix):
    return jax.make_array_from_callback(
        array.shape, NamedSharding(four, spec), lambda index: array[index]
    )

def divided(*placements, mesh=mesh):  # what like= takes its mesh and its placements from
    return distribute_tensor(torch.zeros(2, 2), mesh, placements)

def pointers(array):
    return {shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards}

def refusal(*args, **words):
    try:
        interop.convert(*args, **words)
    except RefusedError as error:
        return str(error)
    raise AssertionError("it was not refused")
"""
)


@pytest.fixture(scope="module")
def in_both() -> Iterator[Run]:
    """Run programs in two processes of torch and JAX that several tests share."""
    pair = Pair(XLA_FLAGS="--xla_force_host_platform_device_count=2")
    yield lambda program: pair.run(BOTH + program)
    pair.end()


def test_shards_of_jax_become_those_of_a_dtensor(in_both: Run) -> None:
    """A DTensor like another has JAX's shard as its local tensor where the layouts agree."""
    in_both(
        """
for spec, placement in (
    (P("x"), Shard(0)), (P(None, "x"), Shard(1)), (P(), Replicate()), (P(), Shard(1))
):
    array, like = sharded(spec), divided(placement)
    route = interop.plan(array, like=like)
    assert route.zero_copy and route.effects == {"alias_immutable"}, route
    assert route.result.traits == interop.spec(like).traits, route.result
    result = interop.convert(array, like=like)
    assert result.placements == (placement,) and result.device_mesh == mesh
    assert result.shape == (6, 4) and result.stride() == (4, 1)
    assert np.array_equal(result.full_tensor(), matrix)
    begin = 8 * rank if (spec, placement) == (P(), Shard(1)) else 0  # a view within the replica
    assert result.to_local().data_ptr() - begin in pointers(array)
    assert interop.convert(result, like=divided(Shard(0))) is result
    copied = interop.convert(array, like=like, copy=True)
    assert copied.to_local().data_ptr() - begin not in pointers(array)
    assert np.array_equal(copied.full_tensor(), matrix)
"""
    )


def test_several_shards_of_jax_become_one_of_a_dtensor(in_both: Run) -> None:
    """The parts of one process are put together in memory of the local tensor alone."""
    in_both(
        """
for spec, placement in (
    (P("x", "y"), Shard(0)), (P(("x", "y")), Shard(0)), (P(None, ("x", "y")), Shard(1))
):
    shape = (8, 4) if spec == P(("x", "y")) else (6, 4)
    numbers = np.arange(np.prod(shape)).reshape(shape).astype("c8") * 1j
    array = sharded(spec, numbers)
    result = interop.convert(array, like=divided(placement))
    assert np.array_equal(interop.convert(result, to="numpy", allow="gather"), numbers), spec
    assert result.to_local().data_ptr() not in pointers(array)
    assert "join_shards declined" in refusal(array, like=divided(Shard(1 - placement.dim)))
    assert "has the effect 'copy'" in refusal(array, like=divided(placement), forbid="copy")
"""
    )


def test_shards_of_a_dtensor_become_those_of_jax(in_both: Run) -> None:
    """Each device of JAX's gets a copy of its part of the local tensor, and nothing else moves."""
    in_both(
        """
for spec, placement in (
    (P("x"), Shard(0)), (P("x", "y"), Shard(0)), (P(None, ("x", "y")), Shard(1)),
    (P("x", "y"), Replicate()),
):
    like = sharded(spec, np.zeros((2, 4), "f4"))
    for name in ("float32", "bfloat16", "bool", "complex64"):
        every = torch.from_numpy(matrix).to(getattr(torch, name))
        replica = DTensor.from_local(every, mesh, [Replicate()], run_check=False)
        tensor = replica.redistribute(placements=[placement])
        route = interop.plan(tensor, like=like)
        assert route.effects == {"copy"} and "distributed" in route.result.traits, route
        result = interop.convert(tensor, like=like)
        assert result.sharding == like.sharding and result.shape == (6, 4)
        assert str(result.dtype) == name
        for shard in result.addressable_shards:
            wanted = interop.convert(every, to="numpy")[shard.index]
            assert np.array_equal(np.asarray(shard.data), wanted), (spec, name)
        here = tensor.to_local().data_ptr()
        assert here not in pointers(result)
leaf = distribute_tensor(torch.from_numpy(matrix), mesh, [Shard(0)]).requires_grad_()
assert interop.plan(leaf, like=sharded(P("x"))).effects == {"copy", "detach"}
tensor = distribute_tensor(torch.from_numpy(matrix), mesh, [Shard(1)])
assert "from_dtensor declined: this process has ((0, 6)," in refusal(tensor, like=sharded(P("x")))
partial_ = DTensor.from_local(torch.from_numpy(matrix), mesh, [Partial()])
assert "its parts are added up" in refusal(partial_, like=sharded(P("x")))
odd = distribute_tensor(torch.zeros(5, 4), mesh, [Shard(0)])
assert "does not divide (5, 4)" in refusal(odd, like=sharded(P("x")))
"""
    )


def test_values_of_one_process_are_not_divided_over_a_mesh(in_both: Run) -> None:
    """Nothing tells whether the processes have the same, so only a mesh of one takes a value."""
    in_both(
        """
here = np.arange(4.0) + rank
near = jax.device_put(here.astype("f4"), NamedSharding(
    Mesh(np.array(jax.local_devices()), ("x",)), P("x")
))
whole = jax.device_put(here.astype("f4"), NamedSharding(
    Mesh(np.array(jax.local_devices()), ("x",)), P()
))
for value in (here, torch.from_numpy(here), near, whole):
    for placement in (Shard(0), Replicate()):
        text = refusal(value, like=divided(placement))
        assert "whether each of them has the same" in text and "Replicate()" in text, text
alone = init_device_mesh("cpu", (2, 1), mesh_dim_names=("a", "b"))["b"]
like = DTensor.from_local(torch.zeros(1), alone, [Shard(0)])
result = interop.convert(here, like=like, copy=False)
assert result.device_mesh == alone and result.placements == (Shard(0),)
assert result.to_local().data_ptr() == here.ctypes.data
assert np.array_equal(interop.convert(near, like=like).to_local(), here)
shared = interop.convert(whole, like=like)
assert shared.to_local().data_ptr() in pointers(whole)
leaf = torch.ones(3, requires_grad=True)
interop.convert(leaf, like=like).to_local().sum().backward()
assert torch.equal(leaf.grad, torch.ones(3))
"""
    )


def test_jax_takes_one_shard_beside_the_result(in_both: Run) -> None:
    """To gather takes the memory of the result, and little more; every bit arrives."""
    in_both(
        """
from tests.processes import PeakMeter

for dtype in ("bool", "int8", "bfloat16", "float8_e5m2", "complex64"):
    numbers = interop.convert(matrix, to="numpy", dtype=dtype) if dtype != "bool" else matrix > 4
    signs = -numbers if dtype[0] in "bfc" and dtype != "bool" else numbers  # zeros have signs
    for spec in (P("x"), P(None, ("x", "y")), P("x", "y"), P(None, "y")):
        result = interop.convert(sharded(spec, signs), to="numpy", allow="gather")
        assert result.dtype == signs.dtype and result.flags.writeable
        assert result.tobytes() == signs.tobytes(), (dtype, spec)
assert interop.convert(sharded(P("x"), np.zeros((0, 3))), to="numpy", allow="gather").shape == (0, 3)

large = np.random.default_rng(0).random((4096, 4096), "f4")
for spec, most in ((P(("x", "y")), 1.3), (P(None, ("x", "y")), 1.6)):
    array, rises = sharded(spec, large), []
    for _ in range(4):  # as often in both, and the first time JAX compiles
        result = None
        meter = PeakMeter()
        result = interop.convert(array, to="numpy", allow="gather")
        rises.append(meter.rise())
        assert np.array_equal(result, large)
    assert None in rises or min(rises[1:]) < most * large.nbytes, (spec, rises)
"""
    )
