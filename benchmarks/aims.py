"""What each row on a CUDA device is to reach: a ratio to the statement by hand, or GB/s."""

from __future__ import annotations

__all__ = ["RATES", "RATIOS"]

#: By row, the most that interop's time may be of the statement's by hand.
RATIOS = {
    "torch → cupy": 0.4,
    "torch → cupy, grad": 0.4,
    "torch → cupy, bfloat16": 0.4,
    "torch → cupy, transposed": 0.4,
    "torch → cupy, converter": 0.4,
    "torch → cupy → torch, accepts": 1.5,
    "torch → cupy, copy=True": 1.0,
    "torch → cupy, dtype=": 1.0,
    "torch → cupy, stream=": 1.2,
    "torch → cupy, 64 M elements": 0.4,
    "torch → cupy, cast of 64 M elements": 1.1,
    "cupy → torch": 0.5,
    "tree of 200, torch → cupy": 0.5,
    "tree of 200, cuda → numpy": 0.3,
    "cuda → numpy": 1.1,
    "cuda → numpy, grad": 1.1,
    "cuda → python, one number": 1.2,
    "cupy → numpy": 1.2,
    "numpy → torch on cuda": 1.2,
    "jax → torch": 0.7,
    "jax → cupy": 1.1,
    "torch → jax": 0.8,
    "cupy → jax": 1.1,
    "numpy → jax on cuda": 1.2,
    "numba → torch": 1.2,
    "numba → cupy": 1.2,
}

#: By row, the least GB/s; the link of the H200 does 55.
RATES = {
    "torch → numpy, 64 MiB": 12.0,
    "torch → numpy, 1 GiB": 16.0,
    "cupy → numpy, 64 MiB": 12.0,
    "cupy → numpy, 1 GiB": 16.0,
    "frozen Parameter → numpy, 1 GiB": 16.0,
    "numpy → torch, 64 MiB": 15.0,
    "numpy → torch, 1 GiB": 25.0,
    "numpy → cupy, 64 MiB": 15.0,
    "numpy → cupy, 1 GiB": 25.0,
    "out= warm array, 1 GiB": 25.0,
    "out= page-locked tensor, 1 GiB": 50.0,
    "out= page-locked array, 1 GiB": 50.0,
    "device='cuda_host', 1 GiB": 50.0,
    "64 × 4 MiB, down": 18.0,
    "64 × 4 MiB, up": 18.0,
    "1,000 × 64 KiB, down": 4.0,
    "1,000 × 64 KiB, up": 4.0,
    "the shapes of a ResNet-50, down": 10.0,
}
