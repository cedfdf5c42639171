"""Libraries without a plugin convert by the protocols; each is tried for real."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

#: How to make a value of each library from an array that can be written.
LIBRARIES = {
    "tvm_ffi": "import tvm_ffi\ndef make(a): return tvm_ffi.from_dlpack(a)",
    "cuda.core": (
        "from cuda.core.utils import StridedMemoryView\n"
        "def make(a): return StridedMemoryView.from_any_interface(a, stream_ptr=-1)"
    ),
    "warp": (
        "import warp\nwarp.config.quiet = True\nwarp.init()\n"
        "def make(a): return warp.from_numpy(a, device='cpu')"
    ),
    "paddle": "import paddle\ndef make(a): return paddle.to_tensor(a)",
}
CHECK = """
import numpy as np, torch, interop
{made}
numbers = np.arange(6, dtype="float32").reshape(2, 3)
value = make(numbers.copy())
assert interop.spec(value).format == "dlpack", interop.spec(value)
for target in ("numpy", "torch"):
    result = interop.convert(value, to=target)
    assert np.array_equal(np.asarray(result), numbers)
    again = interop.convert(value, to=target)
    address = [r.ctypes.data if target == "numpy" else r.data_ptr() for r in (result, again)]
    assert address[0] == address[1], "it is a view both times"
    copied = interop.convert(value, to=target, copy=True)
    copied[:] = 0
    assert np.array_equal(np.asarray(result), numbers)
    shared = interop.convert(value, to=target, copy=False)
    del value, again
    assert np.array_equal(np.asarray(shared), numbers), "it lives as long as its view"
    value = make(numbers.copy())
print("done")
"""


def _run(code: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(p for p in sys.path if p)
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )


# warp and paddle are much larger than everything else, and in no extra.
@pytest.mark.slow
@pytest.mark.parametrize(
    "library", [pytest.param(name, marks=pytest.mark.extra(name)) for name in LIBRARIES]
)
def test_values_of_a_library_without_a_plugin_are_shared(library: str) -> None:
    """Its values become NumPy's and torch's without a copy, and stay alive with them."""
    ran = _run(CHECK.format(made=LIBRARIES[library]))
    assert ran.stdout.endswith("done\n"), ran.stderr


@pytest.mark.extra("paddle")
def test_a_foreign_value_with_a_history_is_refused() -> None:
    """A Paddle tensor that requires a gradient is refused in Paddle's own words."""
    ran = _run(
        "import paddle, interop\n"
        "try: interop.convert(paddle.to_tensor([1.0], stop_gradient=False), to='numpy')\n"
        "except interop.errors.HandOffError as error: print(error)"
    )
    assert "detach()" in ran.stdout, ran.stderr


def test_the_cuda_array_interface_alone_leads_to_cupy_without_a_copy() -> None:
    """A device array such as Numba's goes to CuPy without a copy, by what its interface says."""
    ran = _run(
        "import interop\n"
        "class DeviceArray:\n"
        "    __cuda_array_interface__ = {'shape': (3,), 'typestr': '<f4', 'data': (4096, False),\n"
        "        'version': 3, 'strides': None, 'stream': None}\n"
        "route = interop.plan(DeviceArray(), to='cupy')\n"
        "print(route.zero_copy, route.result.device)"
    )
    assert ran.stdout.startswith("True cuda"), ran.stderr
