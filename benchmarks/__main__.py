"""``python -m benchmarks``: every table, in one run."""

from __future__ import annotations

import sys
import warnings

import torch

from . import copies, planning, zero_copy

if __name__ == "__main__":
    # torch announces once a process that its quantized tensors will go; the rows make some.
    warnings.filterwarnings("ignore", message="torch.quantize_per_tensor", category=UserWarning)
    torch.manual_seed(0)
    chosen = sys.argv[1:] or ["planning", "zero_copy", "copies"]
    for module in (planning, zero_copy, copies):
        if module.__name__.rpartition(".")[2] in chosen:
            module.main()
