"""The order of block scales in memory: row by row, or in the tiles that tensor cores read.

Tensor cores that multiply MXFP8, MXFP4 or NVFP4 take scales in tiles of 128 rows by 4 blocks. A
tile has its 512 elements in one piece: row ``r`` and block ``b`` of it are number
``r % 32 * 16 + r // 32 * 4 + b``. Tiles follow each other row by row, and zeros fill the last ones
up. Leading axes of the whole count as rows. These are cuBLAS' `block scaling factors
<https://docs.nvidia.com/cuda/cublas/index.html#d-block-scaling-factors-layout>`_, torch's
``SWIZZLE_32_4_4``, flashinfer's ``layout_128x4`` and torchao's ``is_swizzled_scales``.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .frameworks import Array

#: The orders that are known, by the words of callers.
SCALE_LAYOUTS = ("linear", "128x4")

#: Rows and blocks of a tile; how many times 32 rows there are in one.
_ROWS, _BLOCKS, _TIMES = 128, 4, 4


def tiled_size(shape: tuple[int, ...]) -> int:
    """Return how many elements the tiles have that hold scales of a shape."""
    return prod(_padded(shape))


def to_tiles(scale: Array) -> Array:
    """Return scales in tiles, as an array of one axis."""
    rows, blocks = _padded(tuple(scale.shape))
    padded = _zeros(scale, (rows, blocks))
    flat = scale.reshape(-1, scale.shape[-1])
    padded[: flat.shape[0], : flat.shape[1]] = flat
    tiles = padded.reshape(rows // _ROWS, _TIMES, _ROWS // _TIMES, blocks // _BLOCKS, _BLOCKS)
    return tiles.swapaxes(1, 3).reshape(-1)


def from_tiles(scale: Array, shape: tuple[int, ...]) -> Array:
    """Return scales of a shape row by row, which were in tiles."""
    rows, blocks = _padded(shape)
    tiles = scale.reshape(rows // _ROWS, blocks // _BLOCKS, _ROWS // _TIMES, _TIMES, _BLOCKS)
    padded = tiles.swapaxes(1, 3).reshape(rows, blocks)
    kept = padded[: prod(shape[:-1]), : shape[-1]]
    block = kept.contiguous() if hasattr(kept, "contiguous") else kept.copy()
    return block.reshape(shape)


def _padded(shape: tuple[int, ...]) -> tuple[int, int]:
    rows, blocks = prod(shape[:-1]), shape[-1]
    return -(-rows // _ROWS) * _ROWS, -(-blocks // _BLOCKS) * _BLOCKS


def _zeros(scale: Array, shape: tuple[int, int]) -> Array:
    """Return zeros of the dtype of scales, where they are."""
    if hasattr(scale, "new_zeros"):
        return scale.new_zeros(shape)
    import numpy as np

    return np.zeros_like(scale, shape=shape)  # CuPy's arrays answer for themselves
