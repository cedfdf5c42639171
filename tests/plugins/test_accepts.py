"""accepts among real frameworks: histories that are cut or kept, gradients, sparse results, tables."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
import sparse
import torch
from torch.autograd import forward_ad

import interop
from interop.errors import BadRequestError, RefusedError
from tests.cases import together


@interop.accepts("numpy")
def centred(x: np.ndarray, *, scale: Any = 1) -> np.ndarray:
    """Return `x` less its mean, scaled."""
    assert isinstance(x, np.ndarray)
    return (x - x.mean()) * scale


@together("make", [torch.tensor, jnp.array])
def test_the_caller_gets_back_its_own_framework(make: Any) -> None:
    """The result is of the first array's framework, whatever is beside it; a warm call, too."""
    for _ in range(3):
        result = centred(make([1.0, 2.0, 3.0]), scale=np.float32(2))
        assert type(result) is type(make([1.0]))
        assert np.asarray(result).tolist() == [-2.0, 0.0, 2.0]


def test_functions_that_a_script_defines_are_sent_by_value() -> None:
    """cloudpickle takes them apart, and what they have learnt stays behind."""

    @interop.accepts("numpy", lists=True)
    def summed(x: Any, y: Any = 0) -> Any:
        return x + y

    summed([1])
    assert pickle.loads(cloudpickle.dumps(summed))([1], torch.ones(1)).tolist() == [2]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")  # torch announces it once
def test_sparse_results_come_back_in_the_same_layout() -> None:
    """A function over SciPy gives a torch caller torch's tensor of the same layout."""

    @interop.accepts("scipy.csr")
    def twice(x: Any) -> Any:
        assert isinstance(x, scipy.sparse.csr_array)
        return x * 2, x.sum(axis=0)

    sparse, sums = twice(torch.eye(2).to_sparse_csr())
    assert sparse.layout is torch.sparse_csr
    assert sparse.to_dense().tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert (sums.layout, sums.tolist()) == (torch.strided, [1.0, 1.0])


def test_sparse_callers_get_dense_results_of_their_components() -> None:
    """A caller with SciPy arrays gets dense results in NumPy."""
    result = centred(scipy.sparse.csr_array(np.eye(2)))
    assert isinstance(result, np.ndarray)
    assert result.tolist() == [[0.5, -0.5], [-0.5, 0.5]]


def test_a_layout_that_the_caller_does_not_have_is_dense() -> None:
    """A sparse result of a layout that the caller's framework lacks comes back dense."""

    @interop.accepts("numpy")
    def made(x: np.ndarray) -> Any:
        return sparse.DOK.from_numpy(x)

    result = made(torch.eye(2))
    assert (result.layout, result.tolist()) == (torch.strided, [[1.0, 0.0], [0.0, 1.0]])


#: What holds a tensor that requires a gradient, by how it is handed over.
WITH_HISTORY: dict[str, Callable[[torch.Tensor], Any]] = {
    "a parameter": torch.nn.Parameter,
    "a result": lambda x: x.requires_grad_() * 1,
    "a transpose": lambda x: x.requires_grad_()[::2],
    "a sparse tensor": lambda x: x.to_sparse().requires_grad_(),
    "a list": lambda x: [x.requires_grad_(), x],
    "a tree": lambda x: {"x": [x.requires_grad_()]},
}


@together("name", WITH_HISTORY)
@together("to", ["numpy", "jax"])
def test_history_is_cut_only_where_that_is_asked_for(name: str, to: str) -> None:
    """A call that would cut a history is refused while one is recorded; each way out works."""
    make = WITH_HISTORY[name]
    first = np.ones(1, np.float32)  # the function takes part in no differentiation of NumPy's
    for arguments in ((make(torch.ones(4)),), (first, make(torch.ones(4)))):

        def call(arguments: Any = arguments, **keywords: Any) -> Any:
            function = interop.accepts(to, lists=True, **keywords)(lambda *x: first)
            return function(*arguments), function(*arguments)

        with pytest.raises(RefusedError) as refusal:
            call()
        assert refusal.value.effects == {"detach"}
        assert len(call(allow="detach")) == 2
        with torch.no_grad():
            assert len(call()) == 2


# torch itself scripts a few functions when it makes the first dual tensor.
@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
def test_warm_calls_cut_no_history() -> None:
    """Whether a history is recorded is seen at each call, also once the calls are fast."""
    double = interop.accepts("numpy")(lambda x: x * 2)
    plain, weight = torch.ones(2), torch.ones(2, requires_grad=True)
    for _ in range(3):
        assert double(plain).tolist() == [2, 2]
        with torch.no_grad():
            assert double(weight).tolist() == [2, 2]
        with pytest.raises(RefusedError):
            double(weight)
    with forward_ad.dual_level(), pytest.raises(RefusedError):
        double(forward_ad.make_dual(plain, plain))


def test_history_that_goes_on_is_not_refused() -> None:
    """A function of the caller's own framework, and one with grad=True, get the history."""
    weight = torch.ones(2, requires_grad=True)
    for words in ({}, {"grad": True}, {"dtype": "float64"}):
        assert interop.accepts("torch", **words)(lambda x: x * 2)(weight).requires_grad
    stacked = interop.accepts("torch", lists=True)(lambda x, y: y)([weight, weight], weight)
    assert stacked.requires_grad
    with pytest.raises(RefusedError):
        interop.accepts("jax", grad=True)(lambda x, y: y)(np.ones(2, np.float32), weight)


@interop.accepts("jax", grad=True)
def smooth(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A JAX function with two results."""
    return jnp.sin(x) * y, (x**2).sum(axis=0)


@pytest.fixture
def wide() -> Any:
    # Its place before JAX 0.8.
    enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    with enable_x64(True):
        yield


@pytest.mark.usefixtures("wide")
def test_gradcheck_of_a_jax_function_in_torch() -> None:
    """torch's own check agrees with the gradients of a JAX function."""
    x = torch.linspace(0.1, 2, 6, dtype=torch.float64).reshape(3, 2).requires_grad_()
    y = torch.linspace(-1, 1, 2, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(smooth, (x, y))


@pytest.mark.usefixtures("wide")
def test_gradcheck_of_a_complex_jax_function_in_torch() -> None:
    """Complex gradients come in torch's convention."""
    holomorphic = interop.accepts("jax", grad=True)(lambda z: jnp.exp(z) * (1 + 2j) + jnp.conj(z))
    z = torch.tensor([0.3 + 0.5j, -1.0 + 0.2j], dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(holomorphic, (z,))


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_of_a_torch_function_in_jax(dtype: str) -> None:
    """JAX's gradients of a torch function are those of the same function in JAX."""
    mixed = interop.accepts("torch", grad=True)(lambda x: (torch.sin(x) * x).abs().sum())

    def same(x: jax.Array) -> jax.Array:
        return jnp.abs(jnp.sin(x) * x).sum()

    x = jnp.asarray([0.1, 2.0, -1.5], dtype)
    x = x * (1 + 0.5j) if dtype == "complex128" else x
    value, gradient = jax.value_and_grad(mixed)(x)
    expected, slope = jax.value_and_grad(same)(x)
    assert isinstance(gradient, jax.Array)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-12)


@pytest.mark.usefixtures("wide")
def test_gradients_go_through_what_is_around() -> None:
    """Gradients flow through the function from the graph behind it to the graph before it."""
    x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    first, second = smooth(x * 3, torch.ones(2, dtype=torch.float64))
    (torch.exp(first).sum() + second).backward()
    a = x.detach() * 3
    expected = torch.exp(torch.sin(a)) * torch.cos(a) * 3 + 2 * a * 3
    assert torch.allclose(x.grad, expected)


def test_integers_and_constants_get_no_gradient() -> None:
    """Integers and unused results have no gradient, and arrays of other frameworks are constants."""

    @interop.accepts("jax", grad=True)
    def pick(x: jax.Array, index: jax.Array, weight: Any) -> Any:
        return x[index] * weight, index + 1, x * 2

    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    index = torch.tensor([2, 0], dtype=torch.int32)
    picked, following, _ = pick(x, index, np.float32([10, 20]))
    assert following.requires_grad is False
    assert following.tolist() == [3, 1]
    picked.sum().backward()
    assert x.grad.tolist() == [20.0, 0.0, 10.0]


def test_without_gradients_nothing_is_differentiated() -> None:
    """Under no_grad, or of tensors without history, the result has none."""
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert smooth(x, x)[0].requires_grad is False
    assert smooth(torch.ones(2), torch.ones(2))[0].requires_grad is False


def test_under_jit_it_is_refused() -> None:
    """A torch function cannot be traced by JAX, and the refusal says so."""
    sine = interop.accepts("torch", grad=True)(torch.sin)
    with pytest.raises(RefusedError):
        jax.jit(jax.grad(lambda x: sine(x).sum()))(jnp.ones(2))


def test_a_history_that_would_be_lost_is_refused() -> None:
    """A sparse tensor with history beside a dense first argument is refused with its place."""
    weight = torch.eye(2).to_sparse_coo().requires_grad_()
    product = interop.accepts("jax", grad=True)(lambda x, w: x @ w)
    with pytest.raises(BadRequestError):
        product(torch.ones(2, requires_grad=True), weight)


def test_the_same_framework_is_differentiated_by_itself() -> None:
    """A torch function called with tensors is in torch's own graph, and twice differentiable."""
    cube = interop.accepts("torch", grad=True)(lambda x: x**3)
    x = torch.tensor(2.0, requires_grad=True)
    (slope,) = torch.autograd.grad(cube(x), x, create_graph=True)
    slope.backward()
    assert x.grad.item() == 12.0


def test_callers_without_gradients_get_their_own_arrays() -> None:
    """A NumPy caller of a function with grad=True gets NumPy arrays."""
    first, _ = smooth(np.ones(2, "float32"), np.ones(2, "float32"))
    assert isinstance(first, np.ndarray)
    assert first == pytest.approx(np.sin(1), abs=1e-6)


def test_its_policy_holds_for_the_results_too() -> None:
    """What `allow` permits is permitted on the way back, and what `forbid` refuses is refused."""
    spread = interop.accepts("numpy", allow="narrow")(lambda x: x - x.mean())
    for _ in range(3):  # cold, and then as fast as can be
        result = spread(jnp.arange(3))
        assert (result.dtype, result.tolist()) == (jnp.float32, [-1.0, 0.0, 1.0])
        assert spread(torch.arange(3)).dtype == torch.float64
    alike = interop.accepts("torch", forbid="copy")(lambda x: x.expand(2, 2).conj())
    with pytest.raises(RefusedError):
        alike(np.ones(2, complex))


TEXTS = {
    "text": lambda: np.array(["a", "b"]),
    "objects": lambda: np.array(["a", None], dtype=object),
    "dates": lambda: np.array(["2026-01-01"], "datetime64[D]"),
    "records": lambda: np.zeros(2, [("a", "int32")]),
    "Series": lambda: pd.Series(["a", "b"], index=[1, 2]),
    "Index": lambda: pd.Index(["a", "b"]),
    "Arrow": lambda: pa.array(["a", "b"]),
}


@pytest.mark.parametrize("make", TEXTS.values(), ids=TEXTS)
@together("words", [{}, {"dtype": "float16"}, {"grad": True}])
def test_arrays_of_text_pass_through(make: Any, words: dict[str, Any]) -> None:
    """What is no array of numbers reaches the function as it is, also first and in containers."""
    names, received = make(), []

    @interop.accepts("torch", **words)
    def doubled(names: Any, x: Any, *, inner: Any = None) -> Any:
        received.append((names, x, inner))
        return x * 2

    for _ in range(2):
        result = doubled(names, jnp.ones(2), inner={"n": [names]})
        assert received[-1][0] is names
        assert isinstance(received[-1][1], torch.Tensor)
        assert received[-1][2]["n"][0] is names
        assert isinstance(result, jax.Array)
        assert result.tolist() == [2, 2]
    assert interop.accepts("torch")(lambda names: names)(names) is names


def test_a_frame_with_text_is_refused_as_an_argument() -> None:
    """A table that is an argument may have columns of numbers, and never passes silently."""
    frame = pd.DataFrame({"a": [1.0], "text": ["x"]})
    function = interop.accepts("numpy")(lambda x: x)
    with pytest.raises(RefusedError, match=r"^x: "):
        function(frame)
    assert interop.accepts("numpy")(lambda x: x["f"])({"f": frame, "n": torch.ones(1)}) is frame


def test_a_table_gets_back_an_array_of_its_framework() -> None:
    """Nothing makes a table, so its framework's arrays of two axes have to do."""
    table = pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    for _ in range(3):
        result = centred(table)
        assert interop.spec(result).format.startswith("pyarrow.")
        assert interop.convert(result, to="numpy").tolist() == [[-1.5, 0.5], [-0.5, 1.5]]
