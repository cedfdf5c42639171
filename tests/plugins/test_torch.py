"""torch: every dtype and layout, whatever a tensor may be in secret, all ways to NumPy and back."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import dask.array as da
import ml_dtypes
import numpy as np
import pytest
import scipy.sparse
import torch
from torch.autograd import forward_ad

import interop
from interop import Cost, Interop
from interop.errors import BadRequestError, InteropError, RefusedError
from interop.kit import quiet as toolkit_quiet
from interop.plugin import size_class
from interop_plugins.torch import dense as torch_dense
from interop_plugins.torch import sparse as torch_sparse
from interop_plugins.torch.describe import fast_key
from tests.cases import together
from tests.inside import forget
from tests.plugins.values import address, numpy_dtype

NARROW = {
    "bfloat16",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
}
PLAIN = {
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
}
DTYPES = sorted(PLAIN | NARROW)
REALS = ["bfloat16", "float16", "float32", "float64", "complex64", "complex128"]


def dense(name: str, shape: tuple[int, ...] = (4, 6)) -> torch.Tensor:
    """Distinct small powers and counts, which every dtype holds."""
    numbers = torch.arange(int(np.prod(shape))).reshape(shape)
    if name == "bool":
        return numbers % 2 == 0
    if name in NARROW:
        numbers = 2.0 ** (numbers % 5)  # e8m0 holds powers of two only
    if name.startswith("complex"):
        return (numbers + 1j * (numbers - 3)).to(getattr(torch, name))
    return numbers.to(getattr(torch, name))


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda t: t,
    "transposed": lambda t: t.t(),
    "sliced": lambda t: t[1:, ::2],
    "offset": lambda t: t[2],
    "expanded": lambda t: t[:1].expand(5, 6),
    "permuted": lambda t: t.reshape(2, 3, 4).permute(2, 0, 1),
    "scalar": lambda t: t[1, 2],
    "empty": lambda t: t[:0],
    "no columns": lambda t: t[:, :0],
    "one": lambda t: t[:1, :1],
}


def reference(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the numbers of a tensor, element by element, as complex128."""
    flat = [complex(x) for x in tensor.detach().resolve_conj().resolve_neg().flatten().tolist()]
    return np.array(flat, "complex128").reshape(tuple(tensor.shape))


def numbers(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    exact = (
        array.astype("float64") if array.dtype.kind == "V" or array.dtype.itemsize == 1 else array
    )
    return exact.astype("complex128")


# ------------------------------------------------------------------ torch → numpy


def bits_equal(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Compare tensors of dtypes that torch cannot compare."""
    widths = {1: torch.uint8, 2: torch.int16}
    if str(tensor.dtype).removeprefix("torch.") in NARROW:
        tensor, other = tensor.view(widths[tensor.itemsize]), other.view(widths[other.itemsize])
    return torch.equal(tensor, other)


def test_a_conjugate_stays_lazy_in_torch() -> None:
    """A lazy tensor already is what `to="torch"` asks for."""
    lazy = dense("complex64").conj()
    assert interop.convert(lazy, to="torch") is lazy
    assert interop.convert(lazy.imag, to="torch").is_neg()
    assert not interop.convert(lazy, to="torch", copy=True).is_conj()


# ------------------------------------------------------------------ autograd

G = {
    "leaf": lambda: dense("float32").requires_grad_(),
    "parameter": lambda: torch.nn.Parameter(dense("float32")),
    "non-leaf": lambda: dense("float32").requires_grad_() * 2,
    "transposed": lambda: dense("float32").requires_grad_().t(),
    "bfloat16": lambda: dense("bfloat16").requires_grad_(),
    "float8": lambda: dense("float8_e5m2").requires_grad_(),
    "scalar": lambda: dense("float32").requires_grad_().sum(),
}


@pytest.mark.parametrize("kind", G)
def test_numpy_shares_the_memory_of_a_tensor_that_requires_grad(kind: str) -> None:
    """A tensor in a graph reaches NumPy without a copy, and the graph is as it was."""
    tensor = G[kind]()
    array = interop.convert(tensor, to="numpy")
    assert address(array) == tensor.data_ptr()
    assert tensor.requires_grad
    np.testing.assert_array_equal(numbers(array), reference(tensor))
    assert interop.plan(tensor, to="numpy").effects == {"detach"}
    with pytest.raises(RefusedError):
        interop.convert(tensor, to="numpy", forbid="detach")


@pytest.mark.parametrize("shape", [(4, 6), (600, 700)])
@pytest.mark.parametrize("request_", [{"copy": True}, {"dtype": "float64"}], ids=str)
def test_copies_and_casts_keep_the_graph(request_: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Copying or casting a tensor of a graph gives another tensor of it, small or large."""
    tensor = dense("float32", shape).requires_grad_()
    result = interop.convert(tensor, to="torch", **request_)
    assert result.requires_grad
    assert result.data_ptr() != tensor.data_ptr()
    result.sum().backward()
    assert tensor.grad is not None
    assert torch.equal(tensor.grad, torch.ones(shape))


def test_inference_tensors_are_ordinary() -> None:
    """A tensor made in inference mode is shared like any other."""
    with torch.inference_mode():
        tensor = dense("float32") * 2
    array = interop.convert(tensor, to="numpy")
    assert address(array) == tensor.data_ptr()
    assert interop.spec(tensor).traits == frozenset()


# ------------------------------------------------------------------ numpy → torch


@pytest.mark.parametrize("name", ["float32", "int64", "complex64", "bfloat16"])
def test_an_array_whose_strides_are_no_whole_elements_is_copied(name: str) -> None:
    """What torch cannot walk through becomes a fresh tensor, and the array stays as it is."""
    plain = interop.convert(dense(name), to="numpy", copy=True)
    step = plain.itemsize * 3 // 2
    room = np.zeros((24, step), "uint8")[:, : plain.itemsize].view(plain.dtype)
    array = np.lib.stride_tricks.as_strided(room, (4, 6), (6 * step, step))
    array[...] = plain
    tensor = interop.convert(array, to="torch")
    assert tensor.dtype == getattr(torch, name)
    np.testing.assert_array_equal(reference(tensor), numbers(array))
    tensor.zero_()
    assert array.tobytes() == plain.tobytes()


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_readonly_memory_is_shared_on_request_only(name: str) -> None:
    """`allow="share_readonly"` shares read-only memory, without torch's warning."""
    array = interop.convert(dense(name), to="numpy", copy=True)
    array.flags.writeable = False
    with pytest.raises(RefusedError):
        interop.convert(array, to="torch", copy=False)
    tensor = interop.convert(array, to="torch", allow="share_readonly")
    assert tensor.data_ptr() == address(array)
    assert not array.flags.writeable
    pointer = tensor.data_ptr()
    del array
    assert tensor.data_ptr() == pointer
    assert tensor.float().sum() == dense(name).float().sum()


@pytest.mark.parametrize("before", ["one", "plain", "grad", "both"])
def test_the_fast_paths_serve_plain_values_only(before: str) -> None:
    """Whatever came before, a value of the same type but another kind goes its own way."""
    plain, grad = dense("float32"), dense("float32").requires_grad_()
    runs = {
        "one": [plain],
        "plain": [plain] * 200,
        "grad": [grad] * 200,
        "both": [plain, grad] * 99,
    }
    for tensor in runs[before]:
        assert address(interop.convert(tensor, to="numpy")) == tensor.data_ptr()
    half = dense("bfloat16").requires_grad_()
    assert address(interop.convert(half, to="numpy")) == half.data_ptr()
    assert address(interop.convert(plain.t(), to="numpy")) == plain.data_ptr()
    assert address(interop.convert(grad[1:], to="numpy")) == grad[1:].data_ptr()
    interop.convert(np.zeros(3, "float32"), to="torch")
    freed = torch.ones(1000)
    freed.untyped_storage().resize_(0)
    with pytest.raises(RefusedError):
        interop.convert(freed, to="numpy")
    assert interop.convert(dense("complex64").conj(), to="numpy")[0, 1] == 1 + 2j
    assert interop.convert(dense("float32").to_sparse(), to="numpy").shape == (4, 6)
    locked = np.ones(3)
    locked.flags.writeable = False
    assert interop.convert(locked, to="torch").data_ptr() != address(locked)


@pytest.mark.parametrize("lazy", [torch.Tensor.conj, torch._neg_view], ids=["conj", "neg"])
def test_a_lazy_tensor_of_a_graph_shares_with_numpy_in_no_warm_call(lazy: Any) -> None:
    """Its numbers are not those in memory: it is refused where nothing may be copied, and not tied."""
    mine, z = interop.Interop(), torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    for _ in range(200):  # until nothing that was refused before is looked for
        for copy in (False, True):
            mine.convert_tree([z], to="numpy", copy=copy)
            mine.convert(z, to="numpy", copy=copy)
    with pytest.raises(RefusedError):
        mine.convert(lazy(z), to="numpy", copy=False)
    plain, resolved = mine.convert_tree([z, lazy(z)], to="numpy", copy=True)
    assert plain.tolist() == z.tolist()
    assert resolved.tolist() == lazy(z).tolist() != z.tolist()


@pytest.mark.parametrize("size", [1, 2, 7, 100, 10**5])
def test_the_fast_key_has_the_class_of_the_size(size: int) -> None:
    """Tensors with one fast key are of one class of sizes, so that they have one plan."""
    tensor = torch.ones(size, dtype=torch.int16)
    interop.spec(tensor)  # whose dtype is met
    key = fast_key(tensor)
    assert key is not None
    assert key[-1] == size_class(tensor.nbytes)


# ------------------------------------------------------------------ torch → torch


def test_complex32_widens_to_complex64() -> None:
    """NumPy has no complex32; it arrives as complex64, which holds every value of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        half = torch.tensor([1 + 2j, 3 - 4j]).to(torch.complex32)
    array = interop.convert(half, to="numpy")
    assert array.dtype == np.complex64
    np.testing.assert_array_equal(array, [1 + 2j, 3 - 4j])
    assert interop.convert(half, to="torch") is half


def test_a_large_cast_to_complex32_is_torchs() -> None:
    """NumPy has no memory for complex32, so that torch allocates it, however large it is."""
    value = torch.full((2**20,), 1.5)
    result = interop.convert(value, to="torch", dtype="complex32")
    assert (result.dtype, result.shape) == (torch.complex32, value.shape)
    assert torch.equal(torch.view_as_real(result)[:, 0].float(), value)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e8m0fnu", "float8_e5m2", "float16"])
def test_integers_are_written_as_numpy_casts_them(name: str) -> None:
    """Where torch would clip an integer that is too large, ``out=`` gets what NumPy makes of it."""
    value = torch.tensor([1, 7, 1000])
    out = torch.zeros(3, dtype=getattr(torch, name))
    interop.convert(value, out=out)
    numbers = value.numpy().astype(getattr(ml_dtypes, name, name))
    assert out.view(torch.uint8).numpy().tobytes() == numbers.tobytes()


def test_complex32_is_quiet_from_the_start(in_fork: Callable[[str], str]) -> None:
    """The warning of experimental support, given once per process, does not reach the user."""
    program = """
        import warnings, torch, interop
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            half = torch.view_as_complex(torch.ones(3, 2, dtype=torch.float16))
        before = list(warnings.filters)
        print(interop.convert(half, to="numpy").tolist())
        assert warnings.filters == before
    """
    assert in_fork(program).strip() == "[(1+1j), (1+1j), (1+1j)]"


EXOTIC = ["int4", "uint4", "int1", "uint7", "bits8", "bits16"]


@pytest.mark.parametrize("name", [n for n in EXOTIC if hasattr(torch, n)])
def test_exotic_dtypes_are_refused_by_name(name: str) -> None:
    """What torch packs or fakes is refused with its name, and stays torch's."""
    tensor = torch.empty(4, dtype=torch.uint8).view(torch.uint8)
    dtype = getattr(torch, name)
    tensor = (
        torch.empty(8, dtype=torch.uint8)[:4].view(dtype)
        if dtype.itemsize == 1
        else torch.empty(2, dtype=torch.int16).view(dtype)
    )
    with pytest.raises(InteropError, match=f"torch.{name}"):
        interop.convert(tensor, to="numpy")
    assert interop.convert(tensor, to="torch") is tensor


def test_oneDNN_tensors_become_ordinary() -> None:  # noqa: N802 - its name
    """A tensor in oneDNN's opaque layout is copied out."""
    tensor = dense("float32").to_mkldnn()
    assert interop.spec(tensor).format == "torch.mkldnn"
    np.testing.assert_array_equal(
        interop.convert(tensor, to="numpy"), reference(dense("float32")).real
    )
    assert interop.convert(tensor, to="torch").layout is torch.strided


def test_zeros_that_are_not_stored_have_no_address(loaded: interop.Interop) -> None:
    """Two of them do not share memory, and nobody is told to look for it at NULL."""
    zeros = torch._efficientzerotensor((3, 4))
    assert loaded._registry.loaded().formats["torch"].memory(zeros) == ()


class Tagged(torch.Tensor):
    """A subclass that answers for every attribute and function, and stores as torch does."""

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise AssertionError(f"interop ran the code of a subclass: {function}")


def test_a_subclass_with_real_memory_is_shared() -> None:
    """What a subclass stores is shared, and a value of it is returned, without running its code."""
    tensor = dense("float32")
    tagged = tensor.as_subclass(Tagged)
    assert "subclass" in interop.spec(tagged).traits
    array = interop.convert(tagged, to="numpy")
    assert address(array) == tensor.data_ptr()
    assert interop.convert(tagged, to="torch") is tagged


def test_buffers_and_parameters_are_not_subclasses() -> None:
    """Parameters and buffers count as plain tensors."""
    buffer = torch.nn.Buffer(dense("float32"))
    assert interop.spec(buffer).traits == frozenset()
    assert interop.spec(torch.nn.Parameter(dense("float32"))).traits == {"grad"}


# ------------------------------------------------------------------ what has no data


class Wrapper(torch.Tensor):
    """A wrapper subclass: its data pointer is NULL, its data is elsewhere."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise AssertionError(f"interop ran the code of a subclass: {function}")


def fake() -> torch.Tensor:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(2, 3)


def quiet(make: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def masked() -> Any:
    from torch.masked import masked_tensor

    return masked_tensor(dense("float32"), dense("float32") > 2)


def freed() -> torch.Tensor:
    tensor = torch.ones(100)
    tensor.untyped_storage().resize_(0)
    return tensor


DEAD: dict[str, tuple[Callable[[], Any], str]] = {
    "meta": (lambda: torch.ones(2, 3, device="meta"), "meta"),
    "meta parameter": (lambda: torch.nn.Linear(2, 3, device="meta").weight, "meta"),
    "meta sparse": (
        lambda: torch.empty((2, 3), layout=torch.sparse_coo, device="meta"),
        "meta",
    ),
    "fake": (fake, "meta"),
    "nested strided": (
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "nested",
    ),
    "nested jagged": (
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        "nested",
    ),
    "wrapper": (lambda: Wrapper(dense("float32")), "no_storage"),
    "masked": (masked, "masked"),
    "uninitialized": (lambda: torch.nn.LazyLinear(3).weight, "uninitialized"),
    "functional": (lambda: torch._to_functional_tensor(dense("float32")), "traced"),
    "freed": (freed, "no_storage"),
}


@together("target", ["numpy", "cupy", "scipy", "python"])
@pytest.mark.parametrize("kind", DEAD)
def test_tensors_without_data_are_refused(kind: str, target: str) -> None:
    """A tensor without readable data is refused with a reason, never read."""
    make, trait = DEAD[kind]
    value = quiet(make)
    assert trait in interop.spec(value).traits
    with pytest.raises(InteropError) as caught:
        interop.convert(value, to=target)
    assert str(caught.value).endswith((".", ")"))


def test_strided_nested_tensors_are_described_by_their_longest_rows() -> None:
    """A strided nested tensor has no shape of torch's, and is described as if it were padded."""
    shapes = [(2, 4), (3, 1)], [(2,), (2,)], []
    for rows in shapes:
        value = quiet(lambda rows=rows: torch.nested.nested_tensor([torch.ones(s) for s in rows]))
        padded = [max(lengths) for lengths in zip(*rows, strict=True)]
        assert interop.spec(value).shape == (len(rows), *padded)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp", "functionalize", "vmap of grad"])
def test_values_inside_transforms_are_refused(transform: str, name: str) -> None:
    """Inside a functorch transform the tensor is a stand-in, whose numbers cannot be read."""
    from torch import func

    interop.convert(dense(name), to="numpy")  # so that the fast path is in force
    traits = []

    def function(x: torch.Tensor) -> torch.Tensor:
        for target in ("numpy", "python"):
            with pytest.raises(InteropError):
                interop.convert(x, to=target)
        traits.append(interop.spec(x).traits)
        return x.sum()

    tensor = dense(name)
    {
        "grad": lambda: func.grad(function)(tensor),
        "vmap": lambda: func.vmap(function)(tensor),
        "jvp": lambda: quiet(lambda: func.jvp(function, (tensor,), (tensor,))),
        "functionalize": lambda: func.functionalize(function)(tensor),
        "vmap of grad": lambda: func.vmap(func.grad(function))(tensor),
    }[transform]()
    assert traits
    assert "traced" in traits[0]


def test_fake_tensors_under_tracing_are_refused() -> None:
    """What a tracer passes through a function is refused."""
    from torch.fx.experimental.proxy_tensor import make_fx

    def function(x: torch.Tensor) -> torch.Tensor:
        with pytest.raises(InteropError):
            interop.convert(x, to="numpy")
        return x + 1

    make_fx(function, tracing_mode="fake")(torch.ones(3))


# ------------------------------------------------------------------ sparse

MATRIX = torch.tensor([[0.0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 0], [0, 5, 0, 6]])


def sparse(layout: str, name: str = "float32", index: torch.dtype = torch.int64) -> torch.Tensor:
    matrix = MATRIX.to(getattr(torch, name))
    if layout == "coo":
        return matrix.to_sparse()
    compressed = quiet(
        lambda: getattr(matrix, f"to_sparse_{layout}")(*([(2, 2)] if layout[0] == "b" else []))
    )
    values, indices, pointers = parts(compressed)
    return torch.sparse_compressed_tensor(
        pointers.to(index),
        indices.to(index),
        values,
        compressed.shape,
        layout=compressed.layout,
        check_invariants=False,
    )


def parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    if tensor.layout is torch.sparse_coo:
        return tensor._values(), tensor._indices()
    rows = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
    plain, compressed = ("col", "crow") if rows else ("row", "ccol")
    return (
        tensor.values(),
        getattr(tensor, f"{plain}_indices")(),
        getattr(tensor, f"{compressed}_indices")(),
    )


COMPRESSED = ["csr", "csc", "bsr", "bsc"]


@pytest.mark.parametrize("layout", COMPRESSED)
@pytest.mark.parametrize("number", [0.0, 1.0])
@pytest.mark.parametrize("name", ["float32", "bfloat16", "complex64"])
def test_coalescence_follows_the_layout_of_the_source(
    layout: str, number: float, name: str
) -> None:
    """Whether a COO tensor counts as coalesced follows from its source's layout, not its numbers."""
    dense = torch.full((4, 4), number, dtype=getattr(torch, name))
    source = interop.convert(dense, to=f"torch.sparse_{layout}")
    result = interop.convert(source, to="torch.sparse_coo")
    assert result.is_coalesced() is (layout != "csc")
    assert result.to_dense().tolist() == dense.tolist()
    assert (number == 0) is (result._nnz() == 0)


PAIRS = [
    ("coo", "csr"),
    ("coo", "csc"),
    ("csr", "coo"),
    ("csc", "coo"),
    ("csr", "csc"),
    ("csc", "csr"),
    ("bsr", "coo"),
    ("bsc", "coo"),
    ("bsr", "csr"),
    ("bsc", "csc"),
]


@pytest.mark.parametrize("shape", [(3, 3000), (3000, 3), (1, 900), (900, 1), (2, 0), (0, 2)])
def test_rows_are_counted_or_searched_alike(shape: tuple[int, int]) -> None:
    """Rows of many elements and of few become CSR as with torch, the last ones empty or not."""
    dense = (torch.arange(float(shape[0] * shape[1])) % 7).reshape(shape)
    dense[shape[0] // 2 :, : shape[1] // 2] = 0
    tensor = dense.to_sparse_coo()
    result, expected = interop.convert(tensor, to="torch.sparse_csr"), tensor.to_sparse_csr()
    for name in ("values", "col_indices", "crow_indices"):
        component, expected_component = getattr(result, name)(), getattr(expected, name)()
        assert component.dtype == expected_component.dtype
        assert torch.equal(component, expected_component)
    assert result.shape == shape


@pytest.mark.parametrize(
    ("source", "target"), [pair for pair in PAIRS if pair not in (("bsr", "csr"), ("bsc", "csc"))]
)
def test_the_graph_goes_along_when_layouts_change(source: str, target: str) -> None:
    """Within torch a change of layout keeps the graph; from blocks only to COO."""
    tensor = sparse(source).requires_grad_()
    result = interop.convert(tensor, to=f"torch.sparse_{target}", forbid="detach")
    assert result.requires_grad
    assert torch.equal(result.detach().to_dense(), MATRIX)


def test_hybrid_and_batched_tensors_densify() -> None:
    """Sparse tensors whose elements are arrays, and batches of them, become dense, and only that."""
    hybrid = torch.sparse_coo_tensor(
        torch.tensor([[0, 2]]), torch.ones(2, 3), (4, 3), check_invariants=False
    )
    batched = quiet(torch.stack([MATRIX, MATRIX]).to_sparse_csr)
    blocks = quiet(lambda: MATRIX.reshape(4, 4, 1).expand(4, 4, 3).to_sparse_csr(dense_dim=1))
    for tensor, trait in ((hybrid, "hybrid"), (batched, "batched"), (blocks, "hybrid")):
        assert trait in interop.spec(tensor).traits
        np.testing.assert_array_equal(
            interop.convert(tensor, to="numpy"), tensor.to_dense().numpy()
        )
        with pytest.raises(InteropError, match=trait):
            interop.convert(tensor, to="scipy", forbid="densify")


def test_gaps_between_the_values_are_no_obstacle() -> None:
    """Values with a stride are shared with SciPy as they lie."""
    values = torch.arange(10.0)[::2]
    tensor = quiet(
        lambda: torch.sparse_csr_tensor(
            torch.tensor([0, 2, 5]), torch.tensor([0, 1, 0, 1, 2]), values, (2, 3)
        )
    )
    assert "noncontiguous" in interop.spec(tensor).traits
    array = interop.convert(tensor, to="scipy.csr")
    assert address(array.data) == values.data_ptr()
    np.testing.assert_array_equal(array.toarray(), [[0, 2, 0], [4, 6, 8]])


def test_compressed_layouts_are_quiet_from_the_start(in_fork: Callable[[str], str]) -> None:
    """The warning that CSR is in beta, given once per process, does not reach the user."""
    program = """
        import warnings, numpy, scipy.sparse, torch, interop
        before = list(warnings.filters)
        tensor = interop.convert(scipy.sparse.csr_array(numpy.eye(3)), to="torch.sparse_csr")
        print(tensor.to_dense().sum().item())
        assert warnings.filters == before
    """
    assert in_fork(program).strip() == "3.0"


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_sparse_layouts_are_not_checked_quietly(
    monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """What torch 2.11 says once of tensors that it is told not to check does not reach the user."""
    said: list[str] = []

    def warn_once(function: Any) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            if not said:
                said.append("Sparse invariant checks are implicitly disabled. Memory errors …")
                warnings.warn(said[0], UserWarning, stacklevel=2)
            return function(*arguments, **keywords)

        return call

    for name in ("sparse_coo_tensor", "sparse_compressed_tensor"):
        monkeypatch.setattr(torch, name, warn_once(getattr(torch, name)))
    monkeypatch.setattr(toolkit_quiet, "_silenced", set())
    monkeypatch.setattr(torch_sparse, "_makers", {})
    kind = layout.removeprefix("sparse_")
    value = getattr(scipy.sparse, f"{kind}_array")(np.eye(3, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensor = interop.convert(value, to=f"torch.{layout}")
    assert tensor.to_dense().tolist() == np.eye(3, 4).tolist()
    assert len(said) == 1


# ------------------------------------------------------------------ specs, out=, protocols


def test_out_must_not_be_in_a_graph() -> None:
    """A tensor that requires grad is not written without its graph knowing."""
    out = torch.zeros(3, requires_grad=True)
    with pytest.raises(BadRequestError):
        interop.convert(np.ones(3, "float32"), out=out)
    assert out.detach().sum() == 0


class Producer:
    """A foreign value with DLPack over a NumPy array."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_a_foreign_value_without_memory_is_refused() -> None:
    """A capsule with a NULL pointer and elements is refused, before and after a sound one."""

    class Freed(Producer):
        def __dlpack__(self, **keywords: Any) -> Any:
            source: Any = self.array if self.array.size == 4 else freed()
            return source.__dlpack__(**keywords)

    for _ in range(2):
        with pytest.raises(InteropError):
            interop.convert(Freed(np.zeros(3)), to="torch")
        assert interop.convert(Freed(np.ones(4)), to="torch").sum() == 4


def test_dtype_objects_are_dtypes() -> None:
    """`torch.float64` names a dtype; one that only torch has does not pass for ml_dtypes' own."""
    assert interop.convert(np.zeros(2), to="torch", dtype=torch.bfloat16).dtype == torch.bfloat16
    with pytest.raises(InteropError):
        interop.convert(np.zeros(2), to="torch", dtype=torch.int4)


# ------------------------------------------------------------------ planned, without a device


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize(
    "value",
    [
        np.zeros(2),
        torch.zeros(2),
        torch.zeros(2).as_subclass(type("Boxes", (torch.Tensor,), {})),
        torch.eye(2).to_sparse(),
    ],
    ids=["numpy", "torch", "subclass", "sparse"],
)
def test_a_device_that_is_not_there_is_named(value: Any) -> None:
    """Asking for CUDA where there is none names the device and the next move."""
    with pytest.raises(RuntimeError, match=r"no cuda device.*device='cpu'") as info:
        interop.convert(value, to="torch", device="cuda")
    assert isinstance(info.value, interop.InteropError)


def test_indices_with_gaps_are_compressed_rightly(in_fork: Callable[[str], str]) -> None:
    """Strided indices of a tensor in a graph give its CSR form; torch itself ends the process."""
    program = """
        import warnings, torch, interop
        warnings.simplefilter("ignore")
        at = torch.stack([torch.arange(400) // 20, torch.arange(400) % 20 * 2])
        for indices in (at.repeat_interleave(3, 1)[:, ::3], at.t().contiguous().t()):
            values = torch.rand(400, dtype=torch.float64, requires_grad=True)
            x = torch.sparse_coo_tensor(
                indices, values, (20, 40), is_coalesced=True, check_invariants=False
            )
            assert not x._indices().is_contiguous()
            for _ in range(50):
                csr = interop.convert(x, to="torch.sparse_csr")
                assert torch.equal(csr.detach().to_dense(), x.detach().to_dense())
                csr.to_dense().sum().backward(retain_graph=True)
            print(values.grad.unique().tolist())
    """
    assert in_fork(program).split() == ["[50.0]"] * 2


def test_the_fast_path_of_dlpack_does_not_serve_tensors() -> None:
    """However cheap DLPack is declared to be, its fast path never sees torch's neg bit."""
    mine = Interop()
    imports = [entry for entry in mine.conversions() if entry.conversion.source == "dlpack"]
    keys = [entry.key for entry in imports]
    cheap = Interop(costs=dict.fromkeys(keys, Cost(1e-12)))
    plain = dense("float64")
    for _ in range(2):
        assert address(cheap.convert(plain, to="numpy")) == plain.data_ptr()
    assert [step.label for step in cheap.plan(plain, to="numpy").steps] == ["from_dlpack"]
    negated = dense("complex128").conj().imag
    np.testing.assert_array_equal(cheap.convert(negated, to="numpy"), negated.resolve_neg().numpy())


@pytest.mark.parametrize("odd", [lambda a: a[::-1], lambda a: a.astype(">f4")])
def test_torch_is_not_asked_for_what_it_refuses(
    odd: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fast path itself recognises what torch would take long to refuse."""
    array = np.arange(3.0, dtype="float32")
    interop.convert(array, to="torch")
    requests: list[Any] = []
    monkeypatch.setitem(torch_dense._sharers, array.dtype, requests.append)
    assert torch_dense.torch_fast_path(odd(array)) is NotImplemented
    assert not requests
    torch_dense.torch_fast_path(array)
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("unusual", "refusals"),
    [
        (lambda: dense("float32").requires_grad_(), 1),
        (lambda: dense("bfloat16"), 1),
        (lambda: dense("complex64").conj(), 2),
        (lambda: dense("float32").to_sparse(), 2),
    ],
    ids=["grad", "bfloat16", "conj", "sparse"],
)
def test_torch_refuses_only_the_first_of_many_unusual_tensors(
    unusual: Callable[[], torch.Tensor], refusals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a refusal, which takes torch long, the fast path looks at a tensor before it asks."""
    tensor, counted = unusual(), 0

    class Counter(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function: Any, _: Any, args: Any, keywords: Any = None) -> Any:
            nonlocal counted
            try:
                return function(*args, **keywords or {})
            except (RuntimeError, TypeError):
                counted += 1
                raise

    interop.convert(tensor, to="numpy")
    for name in ("_looks_left", "_checks_left"):
        monkeypatch.setattr(torch_dense, name, 0)
    with Counter():
        for _ in range(200):
            torch_dense.numpy_fast_path(tensor)
    assert counted == refusals


@pytest.mark.parametrize("looks_left", [0, 1, 64])
@pytest.mark.parametrize("checks_left", [0, 1, 64])
def test_the_fast_path_answers_alike_whatever_torch_refused_before(
    looks_left: int, checks_left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the fast path shares, and what it leaves alone, is for the tensor to say."""
    freed = torch.ones(1000)
    freed.untyped_storage().resize_(0)
    shared = [dense("float32"), dense("float32").t(), dense("bfloat16"), dense("complex64")]
    shared += [tensor.clone().requires_grad_() for tensor in shared]
    others = [freed, dense("complex64").conj(), dense("complex64").conj().imag]
    others += [dense("float32").to_sparse(), torch.ones(2, device="meta"), freed.detach()]
    for tensor in (*shared, *others):
        with suppress(InteropError):
            interop.convert(tensor, to="numpy")  # so that every dtype and layout is known
    for tensor in (*shared, *others):
        monkeypatch.setattr(torch_dense, "_looks_left", looks_left)
        monkeypatch.setattr(torch_dense, "_checks_left", checks_left)
        for _ in range(3):
            array = torch_dense.numpy_fast_path(tensor)
            if any(tensor is other for other in others):
                assert array is NotImplemented
            else:
                assert address(array) == tensor.data_ptr()
                assert array.strides == tuple(n * array.itemsize for n in tensor.stride())
                assert array.dtype.name == str(tensor.dtype).removeprefix("torch.")


# ------------------------------------------------------------------ lazy bits

LAZY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "neg": torch._neg_view,
    "conj": torch.conj,
    "conj of neg": lambda t: torch._neg_view(t).conj(),
    "imag of conj": lambda t: t.conj().imag,
    "real of neg": lambda t: torch._neg_view(t).real,
}


def signed(name: str, rows: int) -> torch.Tensor:
    """Return every pair of signed numbers, over and over."""
    numbers = [0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf")]
    plane = torch.tensor([complex(a, b) for a in numbers for b in numbers], dtype=torch.complex128)
    return plane.repeat(rows).reshape(-1, 6).to(getattr(torch, name))


def signs(array: Any) -> tuple[Any, ...]:
    """Return the shape and the bits of an array in C order."""
    array = np.asarray(interop.convert(array, to="numpy"))
    return array.shape, array.dtype, np.ascontiguousarray(array).tobytes()


@pytest.mark.parametrize("rows", [1, 2000])
@pytest.mark.parametrize("kind", LAZY)
def test_the_graph_goes_along_when_lazy_tensors_are_copied(kind: str, rows: int) -> None:
    """A copy of a lazy tensor in a graph has the gradients that torch's own copy has."""
    gradients = []
    wide = "complex128" if "of" not in kind or kind == "conj of neg" else "float64"
    for copied in (
        partial(interop.convert, to="torch", copy=True),
        partial(interop.convert, to="torch", dtype=wide),
        lambda tensor: tensor.resolve_conj().resolve_neg().clone(),
    ):
        leaf = torch.ones(6 * rows, 6, dtype=torch.complex64).requires_grad_()
        result = copied(LAZY[kind](leaf))
        (result * result).real.sum().backward()
        gradients.append(leaf.grad)
    assert gradients[0] is not None
    assert torch.equal(gradients[0], gradients[2])
    assert torch.equal(gradients[1], gradients[2])


@together("kind", LAZY)
@together("target", ["numpy", "torch"])
@together("narrow", [False, True])
def test_lazy_tensors_are_cast_in_one_step(kind: str, target: str, narrow: bool) -> None:
    """A conjugate is resolved while it is cast, so that nothing but the result is written."""
    tensor = LAZY[kind](signed("complex128" if narrow else "complex64", 1))
    name = "complex64" if narrow else "complex128"
    dtype = name if tensor.is_complex() else {"complex64": "float32"}.get(name, "float64")
    route = interop.plan(tensor, to=target, dtype=dtype)
    assert sum(step.writes > 0 for step in route.steps) == 1
    result = interop.convert(tensor, to=target, dtype=dtype)
    expected = tensor.resolve_conj().resolve_neg().to(getattr(torch, dtype))
    np.testing.assert_array_equal(np.asarray(result), expected.numpy())


@pytest.mark.parametrize("kind", LAZY)
@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_out_is_written_from_the_lazy_tensor(
    kind: str, framework: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the dtype of `out`, no tensor is resolved beside it."""
    allocated: list[Any] = []
    fresh = torch_dense.fresh
    monkeypatch.setattr(
        torch_dense, "fresh", lambda *given, **kw: allocated.append(given) or fresh(*given, **kw)
    )
    tensor = LAZY[kind](signed("complex128", 2000))
    dtype = name if tensor.is_complex() else {"complex64": "float32"}.get(name, "float64")
    out = np.ones(tensor.shape, dtype)
    interop.convert(tensor, out=out if framework == "numpy" else torch.from_numpy(out))
    assert not allocated
    np.testing.assert_array_equal(out, tensor.resolve_conj().resolve_neg().numpy().astype(dtype))


# ------------------------------------------------------------------ defaults of torch's


@pytest.fixture
def odd_defaults() -> Iterator[None]:
    """Other defaults than torch's own, for the device and for the dtype."""
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            yield
    finally:
        torch.set_default_dtype(torch.float32)


def of_every_kind() -> dict[str, Any]:
    """Return a value of each of torch's formats, and of those that share its layouts."""
    matrix = scipy.sparse.csr_array(MATRIX.numpy())
    quantized = quiet(lambda: torch.quantize_per_tensor(MATRIX, 0.5, 1, torch.quint8))
    channels = quiet(
        lambda: torch.quantize_per_channel(
            MATRIX, torch.ones(4).double(), torch.zeros(4).long(), 0, torch.qint8
        )
    )
    duplicates = torch.sparse_coo_tensor(
        torch.tensor([[1, 0, 1], [2, 0, 2]]),
        torch.tensor([1.0, 2, 3]),
        (4, 4),
        check_invariants=False,
    )
    gaps = quiet(
        lambda: torch.sparse_csr_tensor(
            torch.tensor([0, 2, 3, 4, 5]),
            torch.tensor([0, 1, 0, 1, 2]),
            torch.arange(10.0)[::2],
            (4, 4),
        )
    )
    return {
        "numpy": MATRIX.numpy(),
        "bits": MATRIX.numpy().astype(ml_dtypes.bfloat16),
        "torch": MATRIX,
        "large": torch.eye(300),
        "lazy": (MATRIX * (1 + 1j)).conj(),
        "half": quiet(lambda: (MATRIX * (1 + 1j)).to(torch.complex32)),
        "grad": MATRIX.clone().requires_grad_(),
        "onednn": MATRIX.to_mkldnn(),
        "quantized": quantized,
        "channels": channels,
        "uncoalesced": duplicates,
        "gaps": gaps,
        **{layout: sparse(layout) for layout in ("coo", *COMPRESSED)},
        **{f"scipy.{name}": matrix.asformat(name) for name in ("coo", "csr", "csc", "bsr")},
        "sparse.coo": interop.convert(MATRIX, to="sparse.coo"),
        "quantized.numpy": interop.convert(quantized, to="quantized.numpy"),
    }


DEFAULTS_TARGETS = [
    *("numpy", "torch", "torch.quantized"),
    *(f"torch.sparse_{layout}" for layout in ("coo", "csr", "csc", "bsr", "bsc")),
]


@pytest.mark.slow
@pytest.mark.parametrize("request_", [{}, {"copy": True}, {"dtype": "float64"}], ids=str)
@pytest.mark.parametrize("target", DEFAULTS_TARGETS)
def test_torchs_defaults_decide_nothing(
    target: str, request_: dict[str, Any], odd_defaults: None
) -> None:
    """Under another default device and dtype, every result is what it is without."""
    with torch.device("cpu"):
        values, other = of_every_kind(), Interop()
    mine = Interop()
    for kind, value in values.items():
        forget(mine)
        forget(other)
        try:
            result = mine.convert(value, to=target, **request_)
        except RefusedError:
            continue
        with torch.device("cpu"):
            expected = other.convert(value, to=target, **request_)
            assert interop.spec(result) == interop.spec(expected), kind
            np.testing.assert_array_equal(
                *(interop.convert(x, "numpy") for x in (result, expected))
            )


class Contested(list[Any]):
    """A list that another thread empties between a look at it and the next step."""

    def __len__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        return True


def test_two_threads_may_tell_torch_what_not_to_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who finds that another thread has told torch of the last function goes on."""
    from interop_plugins.torch import no_trace

    monkeypatch.setattr(no_trace, "_waiting", Contested())
    no_trace.mark_waiting()


def test_torchs_defaults_decide_nothing_from_the_start(in_fork: Callable[[str], str]) -> None:
    """What is made once per process is made where it belongs, whatever the default device."""
    program = """
        import warnings, numpy, scipy.sparse, torch, interop
        from interop_plugins.torch import problems
        warnings.simplefilter("ignore")
        matrix = torch.eye(4)
        quantized = torch.quantize_per_tensor(matrix, 0.5, 1, torch.quint8)
        with torch.device("meta"):
            codes = interop.convert(quantized, to="quantized.numpy")
            print(interop.convert(codes, to="torch.quantized").device)
            for layout in ("coo", "csr", "csc", "bsr"):
                array = scipy.sparse.eye_array(4, format=layout)
                print(interop.convert(array, to=f"torch.sparse_{layout}").device)
            print(interop.convert(matrix * 1j, to="torch", dtype="complex128").device)
            print(len(list(problems.find())))
    """
    assert in_fork(program).split() == ["cpu"] * 6 + ["0"]


# ------------------------------------------------------------------ tensors that hold another


class Answering(torch.Tensor):
    """A class that answers for torch's functions with another tensor's numbers."""

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        unwrapped = (cls.inner_of(arg) if isinstance(arg, cls) else arg for arg in args)
        return function(*unwrapped, **(kwargs or {}))

    @classmethod
    def inner_of(cls, value: Any) -> torch.Tensor:
        with torch._C.DisableTorchFunctionSubclass():
            inner = next(iter(value.__dict__.values())) if value.__dict__ else value.slot
        return inner[0] if isinstance(inner, list | tuple) else inner


class Slotted(Answering):
    __slots__ = ("slot",)


def holding(make: Callable[[torch.Tensor], Any], name: str, inner: Any) -> Any:
    value = make(torch.arange(3.0))
    with torch._C.DisableTorchFunctionSubclass():
        setattr(value, name, inner)
    return value


HOLDERS: dict[str, Callable[[], Any]] = {
    "zeros": lambda: holding(
        lambda t: torch.zeros(t.shape).as_subclass(Answering), "inner", torch.arange(3.0)
    ),
    "empty": lambda: holding(
        lambda t: torch.Tensor._make_subclass(Answering, torch.empty(0)), "inner", torch.arange(3.0)
    ),
    "slot": lambda: holding(
        lambda t: torch.zeros(t.shape).as_subclass(Slotted), "slot", torch.arange(3.0)
    ),
    "list": lambda: holding(
        lambda t: torch.zeros(t.shape).as_subclass(Answering), "shards", [torch.arange(3.0)]
    ),
    "sparse": lambda: holding(
        lambda t: torch.zeros(t.shape).as_subclass(Answering),
        "inner",
        torch.arange(3.0).to_sparse(),
    ),
}


@pytest.mark.parametrize("target", ["numpy", "python", "torch", "jax"])
@pytest.mark.parametrize("kind", HOLDERS)
def test_a_tensor_that_answers_with_anothers_numbers_is_refused(
    convert: Callable[..., Any], kind: str, target: str
) -> None:
    """What lies in its own memory is not what it stands for, and is never given out."""
    value = HOLDERS[kind]()
    assert "no_storage" in interop.spec(value).traits
    with pytest.raises(RefusedError):
        convert(value, to=target)


class Annotated(torch.Tensor):
    """A class that watches torch's functions and stores as torch does (TVTensor, MetaTensor)."""

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return super().__torch_function__(function, types, args, kwargs or {})


def test_annotations_do_not_make_a_wrapper() -> None:
    """A subclass with memory of its own is shared, whatever is noted beside it."""
    tensor = dense("float32")
    annotated: Any = tensor.as_subclass(Annotated)
    annotated.meta = {"affine": torch.eye(4)}
    annotated.canvas_size, annotated.base = (4, 6), tensor.t()
    assert address(interop.convert(annotated, to="numpy")) == tensor.data_ptr()
    plain: Any = dense("float32").as_subclass(type("Plain", (torch.Tensor,), {}))
    plain.momentum = torch.zeros(3)
    assert address(interop.convert(plain, to="numpy")) == plain.data_ptr()
    parameter: Any = torch.nn.Parameter(dense("float32"))
    parameter.main_grad = torch.zeros(3)
    assert address(interop.convert(parameter, to="numpy")) == parameter.data_ptr()


# ------------------------------------------------------------------ what cannot be written into


def dual(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor with a tangent; torch warns of something of its own."""
    return quiet(lambda: forward_ad.make_dual(tensor, torch.ones_like(tensor)))


def inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.full((2, 3), 7.0)


UNWRITABLE: dict[str, Callable[[], torch.Tensor]] = {
    "expanded": lambda: torch.full((1, 3), 7.0).expand(2, 3),
    "expanded rows": lambda: torch.full((2, 1), 7.0).expand(2, 3),
    "overlapping rows": lambda: torch.full((6,), 7.0).as_strided((2, 3), (2, 1)),
    "windows": lambda: torch.full((4,), 7.0).unfold(0, 3, 1),
    "inference": inference,
    "zeros": lambda: torch._efficientzerotensor((2, 3)),
    "functional": lambda: torch._to_functional_tensor(torch.full((2, 3), 7.0)),
    "wrapper": lambda: Wrapper(torch.full((2, 3), 7.0)),
    "holder": lambda: holding(
        lambda t: torch.full((2, 3), 7.0).as_subclass(Answering), "inner", torch.zeros(2, 3)
    ),
    "dual": lambda: dual(torch.full((2, 3), 7.0)),
}
INTO: dict[str, Callable[[], Any]] = {
    "numpy": lambda: np.arange(6.0).reshape(2, 3),
    "torch": lambda: torch.arange(6.0).reshape(2, 3),
    "conj": (torch.arange(6.0).reshape(2, 3) + 1j).conj,
    "python": lambda: [[0.0, 1, 2], [3, 4, 5]],
    "quantized": lambda: quiet(
        lambda: torch.quantize_per_tensor(torch.arange(6.0).reshape(2, 3), 1, 0, torch.quint8)
    ),
}


@together("source", INTO)
@pytest.mark.parametrize("kind", UNWRITABLE)
def test_out_that_cannot_hold_the_result_is_refused(kind: str, source: str) -> None:
    """Elements that share memory, or are not there, are refused before anything is written."""
    with forward_ad.dual_level():
        out = UNWRITABLE[kind]()
        value = INTO[source]()
        with pytest.raises(BadRequestError):
            interop.convert(value, out=out)
        if kind not in ("zeros", "wrapper", "functional"):
            with torch._C.DisableTorchFunctionSubclass():
                assert (out.as_subclass(torch.Tensor) == 7).all()


def test_a_tensor_longer_than_its_storage_is_refused(in_fork: Callable[[str], str]) -> None:
    """Memory given back, all of it or its end, is neither read nor written; torch itself does both."""
    program = """
        from itertools import product
        import numpy, torch, interop
        def shrunk(change, left):
            whole = torch.ones(1000, 1000)
            value = change(whole)
            whole.untyped_storage().resize_(left)
            return value
        whole, wide = torch.ones(1000, 1000), torch.ones(1000, 1000, dtype=torch.float64)
        views = (lambda t: t, torch.t, lambda t: t[:, ::2], lambda t: t[500:], lambda t: t[1:2].expand(9, 1000))
        for left, change in product((0, 80), views):
            value, plain = shrunk(change, left), change(whole)
            calls = [lambda x: interop.convert(x, to="numpy"), lambda x: interop.convert(x, to="numpy", copy=True)]
            calls += [lambda x: interop.convert(x, to="torch", copy=True), lambda x: interop.convert_tree([x], to="numpy")]
            for out in (numpy.zeros(plain.shape, "f4"), torch.zeros(plain.shape), change(wide)):
                calls.append(lambda x, out=out: interop.convert(x, out=out))
                calls.append(lambda x, out=out: interop.convert(out, out=x))
            for call in calls:
                for _ in range(2):  # by a plan, and by a fast path
                    try:
                        call(value)
                    except interop.InteropError:
                        print("refused")
                    if value.shape[0] != 9:  # expanded tensors are written into by nobody
                        call(plain)
        for left in (0, 80):
            values, indices = torch.ones(1000), torch.arange(1000)
            sparse = torch.sparse_coo_tensor(indices[None], values, (1000,), check_invariants=False)
            jagged = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 300, 1000]))
            values.untyped_storage().resize_(left)
            for value, target in product((sparse, jagged), ("numpy", "python")):
                try:
                    interop.convert(value, to=target)
                except interop.InteropError:
                    print("refused")
    """
    assert in_fork(program).split() == ["refused"] * 2 * (5 * 10 * 2 + 4)


def test_an_out_that_cannot_be_written_is_refused_before_anything_is_computed() -> None:
    """Of a lazy value no chunk is computed for a tensor of inference mode."""
    computed = []

    def counted(block: np.ndarray) -> np.ndarray:
        computed.append(block.shape)
        return block

    lazy = da.ones((2, 3), dtype="float32").map_blocks(counted, meta=np.empty((0, 0), "float32"))
    with pytest.raises(BadRequestError):
        interop.convert(lazy, out=inference())
    assert not computed
    assert (interop.convert(lazy, out=torch.zeros(2, 3)) == 1).all()
    assert computed == [(2, 3)]


def test_an_inference_tensor_is_written_in_inference_mode() -> None:
    """Where torch lets it be written, so does interop."""
    out = inference()
    with torch.inference_mode():
        assert interop.convert(np.ones((2, 3)), out=out) is out
    assert (out == 1).all()


def test_elements_that_share_memory_have_a_trait() -> None:
    """Over all small strides, "broadcast" is said of every overlap, and of little else."""
    memory = torch.zeros(200)
    lengths = [1, 2, 3, 4]
    for shape in itertools.product(lengths, repeat=2):
        for strides in itertools.product(range(9), repeat=2):
            assert_overlap_is_told(memory, shape, strides)
    for shape in ((2, 3, 2), (3, 2, 4), (2, 2, 2, 3)):
        for strides in itertools.product((0, 1, 2, 3, 5, 6, 12, 24), repeat=len(shape)):
            assert_overlap_is_told(memory, shape, strides, exact=False)


def assert_overlap_is_told(
    memory: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...], *, exact: bool = True
) -> None:
    places = np.zeros((), int)
    for length, stride in zip(shape, strides, strict=True):
        places = np.add.outer(places, np.arange(length) * stride)
    overlaps = np.unique(places).size < places.size
    told = "broadcast" in interop.spec(memory.as_strided(shape, strides)).traits
    assert told == overlaps if exact else told >= overlaps, (shape, strides)


@together("dtype", DTYPES)
@pytest.mark.parametrize("name", DTYPES)
def test_out_gets_the_numbers_that_a_cast_gives(name: str, dtype: str) -> None:
    """`out=` of a dtype holds, to the bit, what `dtype=` gives, from torch and from NumPy."""
    limits = [0.0, -0.0, 1.0, -1.0, 3.0, 240.0, 449.0, 1e9, -1e9, 65519.9999, 1 + 2.0**-11, 0.1]
    # What an infinity is as a whole number depends in NumPy on how many are cast at a time.
    if not {name, dtype} & {n for n in PLAIN if "int" in n} and name != "bool":
        limits += [float("inf"), float("-inf"), float("nan")]
    with np.errstate(all="ignore"):
        array = np.array(limits * 2).astype("float32" if name in NARROW else "float64")
        array = array.astype(numpy_dtype(name))
    for value in (array, array[::2], interop.convert(array, to="torch")):
        try:
            expected = interop.convert(value, to="torch", dtype=dtype)
        except RefusedError:
            continue
        out = torch.zeros(value.shape, dtype=getattr(torch, dtype))
        gaps = torch.zeros((*value.shape, 2), dtype=getattr(torch, dtype))[..., 0]
        for filled in (interop.convert(value, out=out), interop.convert(value, out=gaps)):
            assert same_numbers(filled, expected)


def same_numbers(tensor: torch.Tensor, expected: torch.Tensor) -> bool:
    """Compare all bits, but of NaN only that it is one."""
    arrays = [np.asarray(interop.convert(t, to="numpy")) for t in (tensor, expected)]
    with np.errstate(all="ignore"):
        nan = [array != array for array in arrays]  # noqa: PLR0124 - of dtypes without isnan
    zeros = [np.where(where, 0, array).tobytes() for where, array in zip(nan, arrays, strict=True)]
    return np.array_equal(*nan) and zeros[0] == zeros[1]


# ------------------------------------------------------------------ forward mode


@together("layout", LAYOUTS)
@pytest.mark.parametrize("name", [*REALS, "float8_e5m2"])
def test_tangents_are_detached_like_history(name: str, layout: str) -> None:
    """A dual tensor is in a graph as one that requires grad is: `forbid="detach"` keeps it."""
    with forward_ad.dual_level():
        plain = dense(name)
        tensor = LAYOUTS[layout](dual(plain))
        assert "grad" in interop.spec(tensor).traits
        assert interop.plan(tensor, to="numpy").effects == {"detach"}
        with pytest.raises(RefusedError):
            interop.convert(tensor, to="numpy", forbid="detach")
        array = interop.convert(tensor, to="numpy")
        np.testing.assert_array_equal(numbers(array), reference(tensor))
        assert address(array) == tensor.data_ptr() or not array.size
        assert interop.convert(tensor, to="torch") is tensor
        copied = interop.convert(tensor, to="torch", copy=True)
        assert forward_ad.unpack_dual(copied).tangent is not None
        assert "grad" not in interop.spec(LAYOUTS[layout](plain)).traits
    assert "grad" not in interop.spec(tensor).traits


def test_functions_of_other_frameworks_have_no_forward_mode() -> None:
    """With `grad`, a tangent is refused: its derivative would come out as zero."""
    twice = interop.accepts("jax", grad=True)(lambda x: x * 2)
    tensor = torch.ones(3, requires_grad=True)
    with forward_ad.dual_level():
        with pytest.raises(RefusedError):
            twice(dual(torch.ones(3)))
        assert twice(tensor).requires_grad
    plain = interop.accepts("numpy", allow="detach")(lambda x: x * 2)
    assert plain(tensor).tolist() == [2, 2, 2]


# ------------------------------------------------------------------ every dtype, every shape


@pytest.mark.slow
@together("dtype", DTYPES)
@pytest.mark.parametrize("name", DTYPES)
def test_large_strided_tensors_are_cast_like_small_ones(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any pair of dtypes, a transposed tensor of many bytes becomes a transposed one."""
    monkeypatch.setattr(torch_dense, "_LARGE", 2**16)  # as many are quick to compare
    small = dense(name, (3, 4))
    large = small.repeat(100, 75).t()
    assert large.nbytes >= torch_dense._LARGE
    try:
        expected = interop.convert(small, to="torch", dtype=dtype)
    except RefusedError:
        return
    result = interop.convert(large, to="torch", dtype=dtype)
    assert result.stride() == large.stride()
    assert bits_equal(result.t(), expected.repeat(100, 75))
    array = interop.convert(large, to="numpy", dtype=dtype)
    assert signs(array) == signs(result)


@together("layout", ["coo", *COMPRESSED])
@together("axes", range(5))
@pytest.mark.parametrize("source", ["numpy", "torch", "scipy.coo", "scipy.csr", "sparse.coo"])
def test_plans_to_sparse_layouts_hold(source: str, axes: int, layout: str) -> None:
    """What has too few or too many axes is refused by `plan`, as it is by `convert`."""
    numbers = np.eye(4)[:1, 0] if axes == 1 else np.ones((2,) * axes)
    try:
        value = interop.convert(numbers, to=source)
    except RefusedError:
        return
    try:
        interop.plan(value, to=f"torch.sparse_{layout}")
    except RefusedError:
        with pytest.raises(RefusedError):
            interop.convert(value, to=f"torch.sparse_{layout}")
        assert axes != 2
    else:
        result = interop.convert(value, to=f"torch.sparse_{layout}")
        assert torch.equal(result.to_dense(), torch.from_numpy(numbers))


@together("code", "?bBhHiIlLqQefdFD")
@pytest.mark.parametrize("odd", ["plain", "sliced", "reversed", "readonly", "empty", "swapped"])
def test_every_c_type_of_numpys_reaches_torch(code: str, odd: str) -> None:
    """NumPy has two types for some integers, of which torch knows one (not numpy.ulonglong)."""
    array = np.arange(6).astype(code)
    array = {
        "plain": array,
        "sliced": array[::2],
        "reversed": array[::-1],
        "readonly": np.broadcast_to(array[:1], (6,)),
        "empty": array[:0],
        "swapped": array.astype(array.dtype.newbyteorder(">")),
    }[odd]
    for _ in range(2):
        tensor = interop.convert(array, to="torch")
        assert str(tensor.dtype) == f"torch.{array.dtype.name}"
        np.testing.assert_array_equal(tensor.numpy(), array)
        if odd in ("plain", "sliced"):
            assert tensor.data_ptr() == address(array)
        interop.convert(np.arange(6).astype("uint64"), to="torch")


@together("dtype", [np.float32, ml_dtypes.bfloat16])
@together("shape", [(1, 4), (4, 1), (0, 4), (4, 0), (2, 0, 3), (0,), (1,)])
@pytest.mark.parametrize("request_", [{}, {"copy": False}, {"forbid": "copy"}], ids=str)
def test_strides_that_lead_nowhere_are_shared(
    shape: tuple[int, ...], dtype: Any, request_: dict[str, Any]
) -> None:
    """Negative strides of axes of length 1 and of empty arrays need no copy, as is planned."""
    whole = np.arange(np.prod(shape), dtype="f4").reshape(shape).astype(dtype)
    for axes in itertools.product((1, -1), repeat=len(shape)):
        if any(step < 0 and n > 1 and whole.size for n, step in zip(shape, axes, strict=True)):
            continue
        reversed_ = whole[tuple(slice(None, None, step) for step in axes)]
        assert interop.plan(reversed_, to="torch", **request_).zero_copy
        tensor = interop.convert(reversed_, to="torch", **request_)
        assert tuple(tensor.shape) == shape
        assert str(tensor.dtype) == f"torch.{whole.dtype.name}"
        np.testing.assert_array_equal(reference(tensor), numbers(whole))
        assert tensor.data_ptr() == address(whole) or not whole.size


@pytest.mark.parametrize(
    "name",
    [
        *("float8_e4m3b11fnuz", "float8_e3m4", "int2", "int4", "uint4"),
        *(name for name in ("int1", "uint1") if hasattr(ml_dtypes, name)),  # since 0.6
    ],
)
def test_dtypes_are_told_apart_by_more_than_a_character(name: str) -> None:
    """A dtype of ml_dtypes that has the character of one of NumPy's is not taken for it."""
    expected = interop.Interop().convert(np.ones(3, getattr(ml_dtypes, name)), to="torch")
    for code in "?bBhHiIlLqQefdgFDG":
        try:
            interop.convert(np.ones(3, code), to="torch")
        except RefusedError:
            continue
        result = interop.convert(np.ones(3, getattr(ml_dtypes, name)), to="torch")
        assert result.dtype == expected.dtype
        assert torch.equal(result, expected)


#: The dtypes that torch stores in sparse tensors and does not compute with.
STORED = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]
STORED += ["uint16", "uint32", "uint64"]
SPARSE_LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


@pytest.mark.parametrize("target", SPARSE_LAYOUTS)
@pytest.mark.parametrize("layout", SPARSE_LAYOUTS)
@pytest.mark.parametrize("dtype", STORED)
def test_sparse_tensors_that_torch_cannot_compute_with(
    dtype: str, layout: str, target: str
) -> None:
    """They change their layout and become dense bit by bit: NaN, infinities, signs of zeros."""
    width = np.dtype(getattr(ml_dtypes, dtype, dtype)).itemsize
    bits = np.arange(256, dtype=f"u{width}").reshape(16, 16)
    bits[bits == 3] = np.iinfo(bits.dtype).max
    tensor = torch.from_numpy(bits).view(getattr(torch, dtype))
    value = interop.convert(tensor, to=getattr(torch, layout))  # a layout names its format
    assert (value.dtype, value.layout) == (tensor.dtype, getattr(torch, layout))
    changed = interop.convert(value, to=f"torch.{target}")
    assert (changed.dtype, changed.layout) == (tensor.dtype, getattr(torch, target))
    for to in ("torch", "numpy"):
        result = np.asarray(interop.convert(interop.convert(changed, to=to), to="numpy"))
        assert result.dtype.name == dtype
        assert result.tobytes() == bits.tobytes()


@pytest.mark.parametrize("to", ["torch", "numpy", "torch.sparse_csr", "torch.sparse_bsr"])
@pytest.mark.parametrize(
    ("dtype", "numbers", "total"),
    [
        ("float8_e5m2", [1.0, 2.0], 3.0),
        ("float8_e4m3fn", [16.0, 1.0, 1.0], 18.0),  # 17 would be rounded to 16
        ("float8_e4m3fn", [448.0, -np.inf], np.nan),
        ("uint16", [65535, 3], 2),
        ("uint64", [2**63, 2**63 + 5], 5),
    ],
    ids=str,
)
def test_duplicates_that_torch_cannot_sum_are_summed(
    dtype: str, numbers: list[Any], total: float, to: str
) -> None:
    """Integers overflow as theirs do, and sums of narrow floats are rounded once."""
    dtype_of = np.dtype(getattr(ml_dtypes, dtype, dtype))
    with np.errstate(all="ignore"):
        values = interop.convert(np.array(numbers, dtype_of), to="torch")
    places = torch.full((2, len(numbers)), 1)
    value = torch.sparse_coo_tensor(places, values, (2, 2), check_invariants=False)
    assert interop.spec(value).traits == {"uncoalesced"}
    result = interop.convert(interop.convert(value, to=to), to="numpy")
    assert result.dtype == dtype_of
    np.testing.assert_array_equal(result.astype("f8"), [[0, 0], [0, total]])


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("target", ["sparse.coo", "numpy", "torch"])
def test_duplicates_of_a_scalar_are_summed(target: str, grad: bool) -> None:
    """A COO tensor without axes has one place, which it may hold twice."""
    scalar = torch.sparse_coo_tensor(
        torch.zeros((0, 2), dtype=torch.int64), torch.tensor([1.0, 2]), (), check_invariants=False
    )
    result = interop.convert(scalar.requires_grad_(grad), to=target)
    result = result.detach() if target == "torch" else result
    assert float(result.todense() if target == "sparse.coo" else np.asarray(result)) == 3


HYBRIDS: dict[str, Callable[[], torch.Tensor]] = {
    "hybrid": lambda: torch.stack([MATRIX, MATRIX], -1),
    "batched": lambda: torch.stack([MATRIX, MATRIX.t()]),
    "batched hybrid": lambda: torch.stack([torch.stack([MATRIX, MATRIX], -1)] * 2),
}


@together("gaps", [False, True])
@together("grad", [False, True])
@pytest.mark.parametrize(("source", "target"), [("csr", "csc"), ("csc", "csr")])
@pytest.mark.parametrize("kind", HYBRIDS)
def test_hybrid_and_batched_tensors_change_their_layout(
    kind: str, source: str, target: str, grad: bool, gaps: bool
) -> None:
    """CSR becomes CSC, and the reverse, with its dense axes and its batches as they are."""
    numbers = HYBRIDS[kind]()
    dense_axes = int("hybrid" in kind)
    tensor = quiet(lambda: getattr(numbers, f"to_sparse_{source}")(dense_dim=dense_axes))
    if gaps:
        values, *indices = parts(tensor)
        strided = torch.stack([values, values], -1)[..., 0]
        make = getattr(torch, f"sparse_{source}_tensor")
        tensor = make(indices[1], indices[0], strided, tensor.shape, check_invariants=False)
    tensor.requires_grad_(grad)
    result = interop.convert(tensor, to=f"torch.sparse_{target}")
    assert str(result.layout) == f"torch.sparse_{target}"
    assert result.dense_dim() == dense_axes
    assert torch.equal(result.detach().to_dense(), numbers)
    with pytest.raises(RefusedError):
        interop.convert(tensor, to=f"torch.sparse_{target}", copy=False)


def test_a_batch_of_no_matrices_does_not_end_the_process(in_fork: Callable[[str], str]) -> None:
    """torch divides by the number of matrices; the other layout of none of them is none of them."""
    program = """
        import torch, interop, warnings
        warnings.simplefilter("ignore")
        for shape in ((0, 2, 3), (2, 0, 3, 2), (1, 0, 0, 0)):
            for one, other in (("csr", "csc"), ("csc", "csr")):
                value = interop.convert(torch.ones(shape), f"torch.sparse_{one}")
                result = interop.convert(value, f"torch.sparse_{other}")
                assert result.layout is getattr(torch, f"sparse_{other}")
                assert (tuple(result.shape), result._nnz()) == (shape, 0)
                assert result.to_dense().shape == shape
                lines = result.crow_indices() if other == "csr" else result.ccol_indices()
                assert lines.shape[-1] == shape[-2 if other == "csr" else -1] + 1
        print("done")
    """
    assert in_fork(program).strip() == "done"


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("source", ["torch", "torch.sparse_coo", "numpy", "sparse.coo"])
def test_arrays_of_more_axes_become_batches(source: str, layout: str) -> None:
    """The last two axes are compressed; a matrix that would store less than others stores zeros."""
    batches = torch.stack([torch.stack([MATRIX, MATRIX.roll(1, 0)]), torch.stack([MATRIX] * 2)])
    target = f"torch.sparse_{layout}"
    result = interop.convert(interop.convert(batches, to=source), to=target)
    assert interop.spec(result).format == target
    assert "batched" in interop.spec(result).traits
    assert torch.equal(result.to_dense(), batches)
    batches[0, 0, 0, 0] += MATRIX[0, 0] == 0
    batches[0, 0, 0, 1:] = 0
    batches[1, 1] = 0
    result = interop.convert(interop.convert(batches, to=source), to=target)
    none = interop.convert(interop.convert(batches[:0], to=source), to=target)
    assert (none.shape, none._nnz()) == ((0, *batches.shape[1:]), 0)
    assert torch.equal(result.to_dense(), batches)
    assert result._nnz() == (batches != 0).sum((-2, -1)).max()
    pointers, indices = (
        (result.crow_indices(), result.col_indices())
        if layout == "csr"
        else (result.ccol_indices(), result.row_indices())
    )
    torch.sparse_compressed_tensor(
        *(pointers, indices, result.values(), result.shape),
        layout=result.layout,
        check_invariants=True,
    )


# ------------------------------------------------------------------ memory that torch reads amiss


@pytest.mark.slow
@pytest.mark.parametrize("start", [1, 8])
@pytest.mark.parametrize(
    ("source", "targets"),
    [
        ("torch", "sparse_coo sparse_csr sparse_csc sparse_bsr"),
        ("torch of batches", "sparse_coo sparse_csr sparse_csc"),
        ("numpy", "sparse_coo sparse_csr sparse_csc sparse_bsr"),
        ("sparse_coo", "sparse_csr sparse_csc sparse_bsr"),
        ("sparse_coo of duplicates", "sparse_csr sparse_csc sparse_bsr"),
        ("sparse_csr", "sparse_coo sparse_csc sparse_bsr"),
        ("sparse_csc", "sparse_coo sparse_csr sparse_bsr"),
    ],
)
def test_complex_numbers_off_sixteen_bytes_end_no_process(
    source: str, targets: str, start: int, in_fork: Callable[[str], str]
) -> None:
    """NumPy aligns complex128 to eight bytes; torch's kernels that pick elements want sixteen."""
    program = f"""
    import warnings
    warnings.simplefilter("ignore")  # torch's about its compressed layouts
    import numpy as np, torch, interop
    shape = (2, 4, 4) if {source!r}.endswith("batches") else (4, 4)
    def off(array):
        memory = np.zeros(array.nbytes + 32, np.uint8)
        first = -memory.ctypes.data % 16 + {start}
        result = memory[first : first + array.nbytes].view("c16").reshape(array.shape)
        result[...] = array
        assert result.ctypes.data % 16 == {start}
        return result
    expected = np.where(np.arange(np.prod(shape)) % 3, 2 - 1j, 0).reshape(shape).astype("c16")
    name = {source!r}.split()[0]
    if name == "numpy":
        value = off(expected)
    elif name == "torch":
        value = torch.frombuffer(off(expected).data.cast("B"), dtype=torch.complex128).reshape(shape)
    else:
        dense = torch.from_numpy(expected.copy())
        sparse = dense.to_sparse(layout=getattr(torch, name))
        parts = sparse._values() if name == "sparse_coo" else sparse.values()
        values = torch.frombuffer(off(parts.numpy()).data.cast("B"), dtype=torch.complex128)
        if name == "sparse_coo":
            places = sparse._indices()
            if {source!r}.endswith("duplicates"):
                places, numbers = torch.cat([places, places], 1), values.numpy()
                numbers = off(np.concatenate([numbers, numbers * 0]))
                values = torch.frombuffer(numbers.data.cast("B"), dtype=torch.complex128)
            value = torch.sparse_coo_tensor(places, values, shape, check_invariants=False)
        else:
            rows = name == "sparse_csr"
            pointers = sparse.crow_indices() if rows else sparse.ccol_indices()
            indices = sparse.col_indices() if rows else sparse.row_indices()
            make = getattr(torch, f"{{name}}_tensor")
            value = make(pointers, indices, values, shape, check_invariants=False)
    for target in {targets.split()!r}:
        for _ in range(2):
            result = interop.convert(value, to=f"torch.{{target}}")
            assert np.array_equal(interop.convert(result, to="numpy"), expected), target
            copy = interop.convert(value, to=f"torch.{{target}}", copy=True)
            assert np.array_equal(interop.convert(copy, to="numpy"), expected), target
    print("done")
    """
    assert in_fork(program).strip() == "done"


def test_complex_numbers_off_sixteen_bytes_are_copied_for_torch(
    convert: Callable[..., Any],
) -> None:
    """A tensor over them would end the process at the first product; others are shared as ever."""
    memory = np.zeros(10 * 16 + 32, np.uint8)
    first = -memory.ctypes.data % 16
    shared, off = (memory[start : start + 160].view("c16") for start in (first, first + 8))
    assert convert(shared, to="torch").data_ptr() == shared.ctypes.data
    tensor = convert(off, to="torch")
    assert tensor.dtype == torch.complex128
    assert tensor.data_ptr() % 16 == 0
    assert torch.equal(tensor * 2, torch.from_numpy(off.copy()) * 2)
    with pytest.raises(RefusedError):
        convert(off, to="torch", copy=False)


@pytest.mark.parametrize("length", [2, 34])
def test_tensors_off_sixteen_bytes_end_no_process(
    length: int, in_fork: Callable[[str], str]
) -> None:
    """torch itself cannot double them; whatever is asked of interop has their numbers, bit for bit."""
    program = f"""
    import numpy as np, torch, interop
    def off():
        memory = np.zeros({length} * 16 + 32, np.uint8)
        first = -memory.ctypes.data % 16 + 8
        array = memory[first : first + {length} * 16].view("c16")
        array[...] = np.arange({length}) - 1j
        tensor = torch.frombuffer(array.data.cast("B"), dtype=torch.complex128)
        assert tensor.data_ptr() % 16 == 8
        return tensor.reshape(2, -1), array.reshape(2, -1).copy()
    def same(result, expected, target=""):
        expected = np.array(expected, dtype=result.dtype, order="C")
        if "." in target:  # to make a sparse array dense adds to zeros, which leaves no -0.0
            return np.array_equal(result, expected)
        return result.shape == expected.shape and result.tobytes() == expected.tobytes()
    layouts = {{
        "plain": lambda t: t,
        "transposed": lambda t: t.T,
        "sliced": lambda t: t[:, ::2],
        "repeated": lambda t: np.tile(t[:1], (3, 1)) if isinstance(t, np.ndarray) else t[:1].expand(3, -1),
        "conj": lambda t: t.conj(),
        "conj_transposed": lambda t: t.conj().T,
        "imag": lambda t: t.conj().imag,
        "neg": lambda t: -t if isinstance(t, np.ndarray) else torch._neg_view(t),
    }}
    for name, change in layouts.items():
        for grad in (False, True):
            tensor, array = off()
            value, expected = change(tensor.requires_grad_(grad)), change(array)
            narrow = "float32" if name == "imag" else "complex64"
            for _ in range(2):
                for target in ("numpy", "torch", "torch.sparse_coo", "scipy.csr", "python"):
                    result = interop.convert(value, to=target)
                    assert same(interop.convert(result, to="numpy"), expected, target), (name, target)
                    copy = interop.convert(value, to=target, copy=True)
                    assert same(interop.convert(copy, to="numpy"), expected, target), (name, target)
                    if target != "python":
                        cast = interop.convert(value, to=target, dtype=narrow)
                        assert interop.spec(cast).dtype == narrow
                        assert same(interop.convert(cast, to="numpy"), expected, target), (name, target)
                kept = interop.convert(value, to="torch", dtype=narrow, forbid="detach")
                assert kept.requires_grad == grad
                for dtype in (value.dtype, getattr(torch, narrow)):
                    out = torch.zeros(value.shape, dtype=dtype)
                    interop.convert(value, out=out)
                    assert same(out.numpy(), expected)
    for source in (torch.ones(2, {length} // 2), torch.full((2, {length} // 2), 1 - 2j).conj(), off()[0]):
        out, _ = off()
        interop.convert(source, out=out)
        assert same(out.numpy(), source.resolve_conj().numpy())
        interop.convert(source.resolve_conj().numpy() * 2, out=out.conj())
        assert same(out.numpy().conj(), source.resolve_conj().numpy() * 2)
    print("done")
    """
    assert in_fork(program).strip() == "done"


@together("target", SPARSE_LAYOUTS)
@together("source", ["", *SPARSE_LAYOUTS])
def test_complex_tensors_in_a_graph_change_their_layout(
    convert: Callable[..., Any], source: str, target: str
) -> None:
    """torch does not differentiate that, so the graph is left; no detour ends in an error of torch's."""
    numbers = torch.tensor([[1 + 2j, 0], [0, 3 - 1j]])
    value = interop.convert(numbers, to=f"torch.{source}") if source else numbers.clone()
    value.requires_grad_()
    result = convert(value, to=f"torch.{target}")
    assert result.layout == getattr(torch, target)
    assert torch.equal(result.detach().to_dense(), numbers)


def test_plans_of_plain_tensors_do_not_serve_tensors_that_require_grad() -> None:
    """Where plain tensors are cast by way of NumPy, tensors that require grad stay in their graph."""
    mine = interop.Interop()
    casts = [c.key for c in mine.conversions() if "torch → torch: cast" in c.key]
    mine = interop.Interop(costs=dict.fromkeys(casts, interop.Cost(1.0)))
    plain = torch.ones(3, dtype=torch.bfloat16)
    steps = mine.plan(plain, to="torch", dtype="float64").steps
    assert "numpy" in [step.after.format for step in steps]
    graph = plain.clone().requires_grad_()
    for value in (graph, plain, graph, plain, graph):
        result = mine.convert(value, to="torch", dtype="float64")
        assert result.requires_grad is value.requires_grad
        assert result.tolist() == [1.0] * 3
    result.sum().backward()
    assert graph.grad is not None


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16"])
@together("source", ["bfloat16", "float16", "float32", "float64"])
@together("target", ["torch", "torch.sparse_coo"])
def test_a_cast_to_a_dtype_without_gradients_leaves_the_graph(target, source, dtype) -> None:
    """Integers and bools have no gradients, so the plan shows ``detach``, and it can be forbidden."""
    value = torch.ones(2, 3, dtype=getattr(torch, source), requires_grad=True)
    for lazy in (value, torch._neg_view(value), value.t()):
        assert "detach" in interop.plan(lazy, to=target, dtype=dtype).effects
        result = interop.convert(lazy, to=target, dtype=dtype)
        assert result.dtype == getattr(torch, dtype)
        assert not result.requires_grad
        with pytest.raises(RefusedError):
            interop.convert(lazy, to=target, dtype=dtype, forbid="detach")


@together(
    "to", ["torch", "torch.sparse_coo", "torch.sparse_csr", "scipy.coo", "jax.bcoo", "sparse.coo"]
)
def test_casts_of_lists_in_a_graph_to_integers_tell_that_they_detach(to: str) -> None:
    """Integers have no gradient, so the plan for a list with a history says that it is dropped."""
    rows = [torch.ones(2, requires_grad=True), torch.zeros(2)]
    plan = interop.plan(rows, to=to, dtype="int32")
    assert "detach" in plan.effects
    with pytest.raises(RefusedError):
        interop.convert(rows, to=to, dtype="int32", forbid="detach")
    assert interop.convert(plan(rows), to="numpy").tolist() == [[1, 1], [0, 0]]
    if to.startswith("torch"):
        result = interop.convert(rows, to=to, dtype="float64", forbid="detach")
        assert (result.requires_grad, result.dtype) == (True, torch.float64)
