"""Take scikit-learn's handwritten digits through torch, scipy.sparse, quantized codes and back.

The program plans every conversion first and prints its route. It asserts every claim about values,
bits and shared memory. At the end it prints the receipts: what each conversion really did.

    python examples/digits.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

import interop


def route(x: Any, **request: Any) -> Any:
    """Print the route for a request, then take it."""
    print(interop.plan(x, **request), end="\n\n")
    return interop.convert(x, **request)


def same_memory(array: np.ndarray, tensor: torch.Tensor) -> bool:
    """Tell whether an array and a tensor begin at one address."""
    return array.ctypes.data == tensor.data_ptr()


def through_torch(pixels: np.ndarray) -> torch.Tensor:
    """Cast to float32 on the way to torch, and return a tensor that requires grad to NumPy."""
    tensor = route(pixels, to="torch", dtype="float32")
    assert tensor.dtype is torch.float32
    assert not same_memory(pixels, tensor)

    tensor.requires_grad_()
    array = route(tensor, to="numpy", copy=False)
    assert same_memory(array, tensor)
    assert np.array_equal(array, pixels)
    print("a tensor that requires grad: shared, values equal\n")
    return tensor.detach()


def through_bfloat16(tensor: torch.Tensor) -> None:
    """Hand bfloat16 to NumPy and back without changing a bit."""
    half = tensor.to(torch.bfloat16)
    array = route(half, to="numpy", copy=False)
    assert array.dtype.name == "bfloat16"
    assert same_memory(array, half)
    # The pixels are whole numbers up to 16, which bfloat16 holds exactly.
    assert np.array_equal(array.astype("float32"), tensor.numpy())

    back = route(array, to="torch", copy=False)
    assert back.dtype is torch.bfloat16
    assert torch.equal(back.view(torch.uint16), half.view(torch.uint16))
    print("bfloat16: shared both ways, bits equal\n")


def through_sparse(tensor: torch.Tensor) -> None:
    """Store the pixels that are not zero; SciPy and torch share the three arrays."""
    csr = route(tensor, to="scipy.csr")
    stored = csr.nnz / tensor.numel()
    assert csr.nnz == int(tensor.count_nonzero())

    shared = route(csr, to="torch.sparse_csr", copy=False)
    assert same_memory(csr.data, shared.values())
    assert same_memory(csr.indices, shared.col_indices())
    assert same_memory(csr.indptr, shared.crow_indices())

    dense = route(shared, to="numpy")
    assert np.array_equal(dense, tensor.numpy())
    print(f"sparse: {stored:.0%} of the pixels stored, three arrays shared, values equal\n")


def through_codes(tensor: torch.Tensor) -> None:
    """Take the pixels as codes in steps of 1/16; torch shares these codes."""
    codes = route(tensor, to="numpy", dtype="uint8")
    quantized = interop.QuantizedArray(codes, np.array(1 / 16), np.array(0))

    in_torch = route(quantized, to="torch.quantized", copy=False)
    assert in_torch.q_scale() == 1 / 16
    assert in_torch.data_ptr() == codes.ctypes.data

    numbers = route(in_torch, to="numpy")
    assert np.array_equal(numbers, tensor.numpy() / 16)

    back = route(in_torch, to="quantized.numpy", copy=False)
    assert back.codes.ctypes.data == codes.ctypes.data
    print("quantized: codes shared both ways, numbers equal\n")


def refused(tensor: torch.Tensor) -> None:
    """Ask for the impossible, and print why it is refused."""
    csr = interop.convert(tensor, to="scipy.csr")
    try:
        interop.convert(csr, to="torch", copy=False)
    except interop.errors.RefusedError as error:
        print(f"refused, as it should be:\n{error}\n")
    else:
        raise AssertionError("a dense tensor cannot share a sparse array's memory")


def main() -> None:
    """Run the whole journey under a trace, and print the receipts."""
    pixels = load_digits().data
    print(f"{len(pixels)} digits of 8x8 pixels, {pixels.dtype}\n")
    with interop.trace() as receipts:
        tensor = through_torch(pixels)
        through_bfloat16(tensor)
        through_sparse(tensor)
        through_codes(tensor)
        refused(tensor)
    print(f"receipts of {len(receipts)} conversions:\n{receipts}\n")
    print("Everything held: each value, bit and pointer is as promised.")


if __name__ == "__main__":
    main()
