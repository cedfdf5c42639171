"""Arrays in shards: over devices of one process, and over two processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

import interop
from interop.errors import BadRequestError, RefusedError

Run = Callable[[str], list[str]]


@pytest.fixture
def in_two_processes() -> Run:
    """Run a program in two processes that know RANK and PORT, and return what each printed."""

    def run(program: str) -> list[str]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        arguments = [sys.executable, "-W", "error", "-c", textwrap.dedent(program)]
        processes = [
            subprocess.Popen(
                arguments,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "RANK": str(rank), "PORT": str(port), "OMP_NUM_THREADS": "1"},
            )
            for rank in range(2)
        ]
        try:
            printed = [process.communicate(timeout=180) for process in processes]
        finally:
            for process in processes:
                process.kill()
        for process, (out, errors) in zip(processes, printed, strict=True):
            assert process.returncode == 0, f"exit {process.returncode}\n{out}\n{errors}"
        return [out for out, _ in printed]

    return run


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
        from interop._execution.memory import PeakMeter
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
    with pytest.raises(BadRequestError, match="copy=False forbids 'gather'"):
        interop.plan(spec, to="numpy", allow="gather", copy=False)
    with interop.policy(allow="gather"), pytest.raises(RefusedError, match="leave out copy=False"):
        interop.plan(spec, to="numpy", copy=False)
