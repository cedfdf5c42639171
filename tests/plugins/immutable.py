"""The frameworks whose arrays never change, as the tests that they share see them."""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from interop_plugins import mlx as mlx_plugin
from interop_plugins.jax import describe as jax_plugin
from interop_plugins.tensorflow import describe as tensorflow_plugin
from tests.plugins.values import numbers, numpy_dtype, start

__all__ = ["DTYPES", "SHARED_WITH_TORCH", "Framework", "framework"]

#: By framework, the dtypes that it holds.
DTYPES: dict[str, Set[str]] = {
    "jax": jax_plugin.DTYPES,
    "mlx": mlx_plugin._DTYPES,
    "tensorflow": tensorflow_plugin.DTYPES,
}
#: By framework, the dtypes of which it shares memory with torch.
SHARED_WITH_TORCH: dict[str, Set[str]] = {
    "jax": jax_plugin.DLPACK_DTYPES - {"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"},
    "mlx": mlx_plugin._DTYPES,
    "tensorflow": tensorflow_plugin.DLPACK_DTYPES,
}


class Framework(NamedTuple):
    """A framework whose arrays never change.

    Parameters
    ----------
    make : callable
        It makes an array of a dtype and a shape, by the framework's own means, of `numbers`.
    address : callable
        Where the framework says that an array lies, in bytes.
    of_numpy : callable
        It makes an array of one of NumPy's.
    read : callable
        It returns the elements as NumPy has them, and checks that an array is the framework's.
    names : tuple
        What names its dense format, in requests.
    aligned : tuple of object and str
        Where the function is that allocates what the framework shares without a copy.
    packed : set of str
        The dtypes whose elements do not fill a byte, of which NumPy gets a copy.
    unsupported : set of str
        The dtypes that the installed release lacks.
    """

    make: Callable[..., Any]
    address: Callable[[Any], int]
    of_numpy: Callable[[np.ndarray], Any]
    read: Callable[[Any], np.ndarray]
    names: tuple[Any, ...]
    aligned: tuple[Any, str] | None = None
    packed: Set[str] = frozenset()
    unsupported: Set[str] = frozenset()


@cache
def framework(name: str) -> Framework:
    """Return a framework, having imported it."""
    return {"jax": _jax, "mlx": _mlx, "tensorflow": _tensorflow}[name]()


def _jax() -> Framework:
    import jax
    import jax.numpy as jnp

    from interop_plugins.jax import dense as jax_dense

    # Its place before JAX 0.8.
    enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

    def of_numpy(array: np.ndarray) -> Any:
        with enable_x64(True):
            return jnp.array(array)

    def read(value: Any) -> np.ndarray:
        assert isinstance(value, jax.Array)
        return np.asarray(value)

    return Framework(
        lambda name, shape=(3, 4): of_numpy(numbers(name, shape)),
        lambda value: value.unsafe_buffer_pointer(),
        of_numpy,
        read,
        names=("jax", jax, jax.Array),
        aligned=(jax_dense, "_aligned"),
        packed=jax_plugin.PACKED,
    )


def _mlx() -> Framework:
    import mlx.core as mx

    import interop

    def make(name: str, shape: tuple[int, ...] = (3, 4)) -> Any:
        """Return an array of Python's numbers, which has not been computed."""
        flat = numbers(name, shape).astype("c16").real.ravel().tolist()
        dtype = mx.bool_ if name == "bool" else getattr(mx, name)
        return mx.array(flat, dtype=mx.float32).reshape(shape).astype(dtype)

    def address(value: Any) -> int:
        value = value.view(mx.uint16) if value.dtype == mx.bfloat16 else value
        return start(np.from_dlpack(value))

    def read(value: Any) -> np.ndarray:
        assert type(value) is mx.array
        flat = value.view(mx.uint16) if value.dtype == mx.bfloat16 else value
        array = np.array(flat)
        return array.view(numpy_dtype("bfloat16")) if flat is not value else array

    def of_numpy(array: np.ndarray) -> Any:
        return interop.convert(array, to="mlx")

    return Framework(make, address, of_numpy, read, names=("mlx", mx, mx.array))


def _tensorflow() -> Framework:
    import tensorflow as tf

    from interop_plugins.tensorflow import dense as tensorflow_dense

    def read(value: Any) -> np.ndarray:
        assert isinstance(value, tf.Tensor)
        assert not tf.is_symbolic_tensor(value)
        assert value.device.endswith("CPU:0")
        return value.numpy()

    return Framework(
        lambda name, shape=(3, 4): tf.constant(numbers(name, shape)),
        # TensorFlow does not say where a tensor without axes lies.
        lambda value: start(tf.reshape(value, [-1]).__array__()),
        tf.constant,
        read,
        names=("tensorflow", tf, tf.Tensor, type(tf.constant(1))),
        aligned=(tensorflow_dense, "aligned"),
        unsupported=tensorflow_plugin.unsupported_now(),
    )
