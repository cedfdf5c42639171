"""The peak memory of conversions that write: room for one result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

#: Resets the peak of this process's resident memory, runs each case and prints peaks over results.
HEAD = """
    import json, time, warnings
    import numpy as np, scipy.sparse, torch
    import interop

    def status(key):
        lines = open("/proc/self/status").read().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))

    def settled():
        last, now = None, status("VmRSS")
        while now != last:  # some frameworks free memory in a thread of their own
            time.sleep(0.01)
            last, now = now, status("VmRSS")
        return now

    def peak(value, **keywords):
        interop.convert(value, **keywords)  # what is loaded and cached once is not the conversion's
        before = settled()
        open("/proc/self/clear_refs", "w").write("5")
        result = interop.convert(value, **keywords)
        spec = interop.spec(result)
        return (status("VmHWM") - before) / spec.nbytes

    def into(value, out):
        interop.convert(value, out=out)
        before = settled()
        open("/proc/self/clear_refs", "w").write("5")
        interop.convert(value, out=out)
        return 1 + (status("VmHWM") - before) / interop.spec(out).nbytes

    side = 4800
    f4 = torch.rand(side, side)
"""
PROGRAM = """
    z = torch.complex(f4[: side // 2], f4[side // 2 :])
    s = scipy.sparse.random_array((side, side), density=0.001, format="csr", rng=0, dtype="f4")
    csr = interop.convert(s, to="torch.sparse_csr")
    coo = csr.to_sparse_coo()
    twice = torch.sparse_coo_tensor(
        torch.cat([coo.indices()] * 2, 1), torch.cat([coo.values()] * 2), coo.shape,
        check_invariants=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says once that quantized tensors will go
        q = torch.quantize_per_tensor(f4, 0.01, 3, torch.quint8)
        scales, zeros = torch.rand(side, dtype=torch.float64) + 0.1, torch.zeros(side).long()
        per_channel = torch.quantize_per_channel(f4, scales, zeros, 0, torch.qint8)
        layouts = {
            name: interop.convert(csr, f"torch.sparse_{name}") for name in ("csc", "bsr", "bsc")
        }
    a = f4.numpy()
    out = np.ones((side, side), "f4")
    images = f4.view(-1, 240, 400, 4)[..., :3].permute(0, 3, 1, 2)
    fresh = {"to": "numpy", "copy": True}
    print(json.dumps({
        "copy": peak(f4, **fresh),
        "transposed": peak(f4.t(), **fresh),
        "permuted": peak(f4.view(120, 400, 480).permute(2, 0, 1), **fresh),
        "images": peak(images, **fresh),
        "columns": peak(f4[:, : side // 2], **fresh),
        "broadcast": peak(f4[0].expand_as(f4), **fresh),
        "widen": peak(f4, to="numpy", dtype="float64"),
        "narrow": peak(f4.double(), to="numpy", dtype="float32"),
        "integers": peak(f4, to="numpy", dtype="int32"),
        "float64 to float16": peak(f4.double(), to="numpy", dtype="float16"),
        "float16 in a graph": peak(f4.double().requires_grad_(), to="torch", dtype="float16"),
        "bfloat16": peak(f4.bfloat16(), to="numpy", dtype="float32"),
        "bfloat16 transposed": peak(f4.bfloat16().t(), to="numpy", dtype="float32"),
        "uint8 transposed": peak(f4.byte().t(), to="numpy", dtype="float32"),
        "float8": peak(f4.to(torch.float8_e4m3fn), to="numpy", dtype="float32"),
        "conj": peak(z.conj(), to="numpy"),
        "adjoint": peak(z.mH, to="numpy"),
        "neg": peak(z.conj().imag, to="numpy"),
        "csr": peak(csr, to="numpy"),
        "csr cast": peak(csr, to="numpy", dtype="float64"),
        "coo": peak(coo, to="torch"),
        "uncoalesced": peak(twice, to="numpy"),
        **{name: peak(value, to="numpy") for name, value in layouts.items()},
        "scipy dia": peak(scipy.sparse.eye_array(side, format="dia"), to="numpy"),
        "scipy lil": peak(s.tolil(), to="numpy"),
        "scipy dok": peak(s[:, :].todok(), to="numpy"),
        "quantized": peak(q, to="numpy"),
        "quantized to torch": peak(q, to="torch"),
        "per channel": peak(per_channel, to="numpy"),
        "to torch": peak(a, to="torch", copy=True),
        "transposed to torch": peak(a.T, to="torch", copy=True),
        "torch to torch": peak(f4, to="torch", copy=True),
        "backwards": peak(a[::-1], to="torch"),
        "big endian": peak(a.astype(">f4"), to="torch"),
        "half": peak(a, to="torch", dtype="float16"),
        "cast into out": into(f4.bfloat16(), out),
        "transposed into out": into(f4.t(), out),
        "adjoint into out": into(z.mH, np.ones(z.mH.shape, "c8")),
        "csr into out": into(csr, out),
        "uncoalesced into out": into(twice, torch.from_numpy(out)),
        "quantized into out": into(q, out),
    }))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="only Linux resets the peak of memory"
)
def test_a_conversion_holds_the_result_once(in_fork: Callable[[str], str]) -> None:
    """No conversion takes more memory at any time than its result and a little."""
    check(in_fork(HEAD + PROGRAM))


def check(printed: str) -> None:
    """Hold peaks, in results, to one result and a little."""
    peaks = json.loads(printed)
    assert {name: peak for name, peak in peaks.items() if peak > 1.15} == {}
    assert {name: peak for name, peak in peaks.items() if peak <= 0.5} == {}, "none is seen"


#: Without 64 bits in JAX, and so with a cast on the way into memory of the framework's own.
INTO_OWN_MEMORY = """
    import jax, tensorflow
    f8 = f4.double()
    rows = f8.repeat(2, 1)[::2]
    sources = {
        "plain": f8, "transposed": f8.t(), "rows": rows, "numpy": f8.numpy(),
        "numpy rows": rows.numpy(), "same dtype": f4.t(), "big endian": f4.numpy().astype(">f4"),
    }
    print(json.dumps({
        f"{name} to {to}": peak(value, to=to, dtype="float32")
        for name, value in sources.items() for to in ("jax", "tensorflow")
    }))
"""


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="only Linux resets the peak of memory"
)
@pytest.mark.slow
@pytest.mark.extra("tensorflow")
def test_a_cast_into_memory_of_its_own_holds_the_result_once(
    in_subprocess: Callable[[str], str],
) -> None:
    """JAX and TensorFlow get float64 as float32, of any strides, without a second array."""
    check(in_subprocess(HEAD.replace("4800", "3600") + INTO_OWN_MEMORY))
