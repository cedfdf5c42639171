"""Convert the batches of Ray Data to torch in Ray's workers, and the results back.

Batches lie in memory that Ray's processes share, flagged read-only. torch cannot carry that flag,
and a write to a tensor over such memory would change other tasks' data. So read-only batches are
copied on the way to torch, and the others are shared.

    python examples/ray_data.py
"""

from __future__ import annotations

import numpy as np
import ray
import torch

import interop

ROWS, BATCH = 6_000, 1_000


def lengths(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the length of each row's vector, computed by torch; this runs in Ray's workers."""
    points = batch["data"]
    tensor = interop.convert(points, to="torch")
    shared = np.full(len(points), tensor.data_ptr() == points.ctypes.data)
    readonly = np.full(len(points), not points.flags.writeable)
    norms = interop.convert(torch.linalg.vector_norm(tensor, dim=1), to="numpy")
    return {"length": norms, "readonly": readonly, "shared": shared}


def main() -> None:
    """Compare the lengths with NumPy's."""
    points = np.random.default_rng(0).random((ROWS, 3))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        data = ray.data.from_numpy(np.array_split(points, 4))
        batches = data.map_batches(lengths, batch_size=BATCH, batch_format="numpy")
        rows = batches.take_all()
    finally:
        ray.shutdown()
    norms = np.sort([row["length"] for row in rows])  # batches may come back in any order
    assert np.allclose(norms, np.sort(np.linalg.norm(points, axis=1)))
    print(f"{len(norms)} rows through torch in Ray's workers, the lengths are NumPy's")
    assert all(bool(row["shared"]) is not bool(row["readonly"]) for row in rows)
    print("read-only batches were copied, the others shared")


if __name__ == "__main__":
    main()
