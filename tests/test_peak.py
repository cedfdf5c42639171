"""The peak memory of conversions that write: the result, once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

#: Resets the peak of this process's resident memory, runs each case and prints peaks over results.
PROGRAM = """
    import json, warnings
    import numpy as np, scipy.sparse, torch
    import interop

    def status(key):
        lines = open("/proc/self/status").read().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))

    def peak(value, **words):
        interop.convert(value, **words)  # what is loaded and cached once is not the conversion's
        open("/proc/self/clear_refs", "w").write("5")
        before = status("VmRSS")
        result = interop.convert(value, **words)
        spec = interop.spec(result)
        return (status("VmHWM") - before) / spec.nbytes

    side = 6000
    f4 = torch.rand(side, side)
    z = torch.complex(f4[:3000], f4[3000:])
    s = scipy.sparse.random_array((side, side), density=0.001, format="csr", rng=0, dtype="f4")
    csr = interop.convert(s, to="torch.sparse_csr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says once that quantized tensors will go
        q = torch.quantize_per_tensor(f4, 0.01, 3, torch.quint8)
    a = f4.numpy()
    print(json.dumps({
        "copy": peak(f4, to="numpy", copy=True),
        "transposed": peak(f4.t(), to="numpy", copy=True),
        "widen": peak(f4, to="numpy", dtype="float64"),
        "bfloat16": peak(f4.bfloat16(), to="numpy", dtype="float32"),
        "conj": peak(z.conj(), to="numpy"),
        "neg": peak(z.conj().imag, to="numpy"),
        "csr": peak(csr, to="numpy"),
        "coo": peak(csr.to_sparse_coo(), to="torch"),
        "quantized": peak(q, to="numpy"),
        "to torch": peak(a, to="torch", copy=True),
        "backwards": peak(a[::-1], to="torch"),
        "big endian": peak(a.astype(">f4"), to="torch"),
        "half": peak(a, to="torch", dtype="float16"),
    }))
"""


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="only Linux resets the peak of memory"
)
def test_a_conversion_holds_the_result_once(in_subprocess: Callable[[str], str]) -> None:
    """Above what was there before, no conversion ever holds more than its result and a little."""
    peaks = json.loads(in_subprocess(PROGRAM))
    assert {name: peak for name, peak in peaks.items() if peak > 1.15} == {}
    assert all(peak > 0.5 for peak in peaks.values()), "the measurement must see the result"
