"""Large copies: the blocks, the threads, and `out=`, against NumPy's and torch's plain ways."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse
import torch

import interop
from interop_plugins.numpy import copies
from interop_plugins.scipy import dense as scipy_dense
from interop_plugins.torch import quantized
from tests.cases import together

BF16, F8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


def _numbers(*shape: int, dtype: Any = "f4") -> np.ndarray:
    return (np.arange(np.prod(shape)) % 251).reshape(shape).astype(dtype)


#: Arrays of more elements than are copied in one go, walked in every way.
ARRAYS: dict[str, Callable[[], np.ndarray]] = {
    "plain": lambda: _numbers(700, 513),
    "transposed": lambda: _numbers(700, 513).T,
    "reversed": lambda: _numbers(700, 513)[::-1, ::-1],
    "transposed and reversed": lambda: _numbers(700, 513)[::-1].T[:, ::-1],
    "columns": lambda: _numbers(700, 999)[:, ::3],
    "broadcast": lambda: np.broadcast_to(_numbers(700), (300, 700)),
    "broadcast columns": lambda: np.broadcast_to(_numbers(700, 1), (700, 300)),
    "permuted": lambda: _numbers(40, 50, 60).transpose(2, 0, 1),
    "backwards permuted": lambda: _numbers(40, 50, 60).transpose(2, 1, 0),
    "4-D": lambda: _numbers(12, 13, 14, 50).transpose(3, 1, 0, 2),
    "images": lambda: _numbers(4, 100, 200, 3).transpose(0, 3, 1, 2),
    "channels": lambda: _numbers(4, 3, 100, 200).transpose(0, 2, 3, 1),
    "one row": lambda: _numbers(1, 90_000),
    "one axis": lambda: _numbers(200_001)[::2],
    "big-endian": lambda: _numbers(700, 513, dtype=">f4").T,
    "unaligned": lambda: np.zeros(4 * 90_000 + 1, "u1")[1:].view("f4").reshape(300, 300),
    "bfloat16": lambda: _numbers(700, 513, dtype=BF16).T,
    "float8": lambda: _numbers(700, 513, dtype=F8)[::-1].T,
    "float16": lambda: _numbers(700, 513, dtype="f2").T,
    "complex": lambda: (_numbers(700, 513) * (1 + 2j)).T,
}


@pytest.fixture(params=["as they are", "in blocks"])
def crossed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy arrays in the way of their size, and in the way of much larger ones."""
    if request.param == "in blocks":
        monkeypatch.setattr(copies, "_MANY", 0)


@pytest.mark.usefixtures("crossed")
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", BF16, F8], ids=str)
@pytest.mark.parametrize("name", ARRAYS)
def test_a_large_copy_is_numpys(name: str, dtype: Any) -> None:
    """Whatever the strides and dtypes, the elements are those that NumPy's astype gives."""
    array = ARRAYS[name]()
    assert array.size >= copies.FEW
    result = copies.written(array, np.dtype(dtype))
    real = array.real if array.dtype.kind == "c" else array
    with np.errstate(all="ignore"):
        castable = real if np.can_cast(real.dtype, dtype, "unsafe") else real.astype("f4")
        expected = castable.astype(dtype)
    assert result.flags.c_contiguous
    assert result.flags.owndata
    assert result.dtype == expected.dtype
    assert result.tobytes() == expected.tobytes()


#: Those that have no order to keep, and those of which NumPy knows not all casts.
REORDERED = {"broadcast", "broadcast columns", "complex", "float8"}


@together("dtype", ["f8", "i2", BF16])
@pytest.mark.parametrize("name", [name for name in ARRAYS if name not in REORDERED])
def test_a_large_cast_keeps_the_order(name: str, dtype: Any) -> None:
    """A cast within and between NumPy and torch has the strides and numbers of NumPy's astype."""
    array = ARRAYS[name]()
    dtype = np.dtype(dtype)
    expected = array.astype(dtype)
    values = [array]
    if array.dtype.isnative and min(array.strides) > 0 and array.flags.aligned:
        values.append(interop.convert(array, "torch"))
    for value, to in [(value, to) for value in values for to in ("numpy", "torch")]:
        result = interop.convert(interop.convert(value, to, dtype=dtype), "numpy")
        assert result.strides == expected.strides
        assert result.tobytes() == expected.tobytes()


def test_a_large_cast_in_a_graph_keeps_the_order() -> None:
    """A transposed tensor that requires grad is cast into a transposed one of the same graph."""
    value = torch.rand(700, 513).requires_grad_()
    result = interop.convert(value.t(), "torch", dtype="float64")
    assert result.stride() == (1, 513)
    result.sum().backward()
    assert torch.equal(value.grad, torch.ones(700, 513))


@pytest.mark.parametrize(
    ("shape", "blocks"),
    [((700, 513), False), ((704, 512), True), ((1100, 1001), True), ((3, 30_000), True)],
)
def test_blocks_are_for_what_caches_do_not_hold(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int], blocks: bool
) -> None:
    """Many elements are transposed in blocks, and few whose columns push each other out."""
    cut: list[Any] = []
    boxes = copies._blocks
    monkeypatch.setattr(
        copies, "_blocks", lambda *arguments: cut.append(arguments) or boxes(*arguments)
    )
    array = _numbers(*shape)
    assert (copies.written(array.T, array.dtype) == array.T).all()
    assert bool(cut) == blocks


@pytest.mark.usefixtures("crossed")
@pytest.mark.parametrize("name", ARRAYS)
def test_a_large_write_follows_the_strides_of_out(name: str) -> None:
    """An out= that is strided itself gets every element, and nothing around it is touched."""
    array = ARRAYS[name]()
    around = np.full(
        (*array.shape[::-1], 2), 7, np.result_type(array.dtype.newbyteorder("="), "f4")
    )
    out = around[..., 0].T
    copies.write(out, array)
    assert (out == array.astype(out.dtype)).all()
    assert (around[..., 1] == 7).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8, torch.qint32], ids=str)
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("shape", [(3000, 3001), (8, 1_100_000), (2, 4_500_000)])
@pytest.mark.filterwarnings("ignore:torch.quantize_per:UserWarning")
def test_large_codes_are_dequantized_as_torch_does(
    shape: tuple[int, int], axis: int | None, dtype: torch.dtype
) -> None:
    """By rows or at once, into fresh memory or out=, the numbers are those of torch, to the bit."""
    numbers = torch.arange(shape[0] * shape[1]).remainder(251).reshape(shape) / 251 - 0.5
    if axis is None:
        value = torch.quantize_per_tensor(numbers, 0.003, 7, dtype)
    else:
        scales = torch.linspace(0.003, 0.03, shape[axis], dtype=torch.float64)
        zeros = torch.arange(shape[axis]) % 11
        value = torch.quantize_per_channel(numbers, scales, zeros, axis, dtype)
    assert value.numel() >= quantized._MANY
    expected = value.dequantize()
    assert torch.equal(interop.convert(value, "torch"), expected)
    out = np.full(shape, 7, "f4")
    assert interop.convert(value, out=out) is out
    assert (out == expected.numpy()).all()
    if axis is None:
        assert torch.equal(interop.convert(value.t(), "torch"), expected.t())


def test_a_warning_is_given_once_in_the_thread_of_the_caller() -> None:
    """Of numbers that do not fit in many threads, one warning names the line that called."""
    array = np.full((3000, 3000), np.nan)
    out = np.empty(array.shape, "int32")
    with pytest.warns(RuntimeWarning, match="^invalid value encountered in cast$") as caught:
        copies.write(out, array)
    assert [warning.filename for warning in caught] == [__file__]


def _layouts() -> dict[str, Any]:
    s = scipy.sparse.random_array((60, 48), density=0.1, format="csr", rng=0, dtype=np.float32)
    values: dict[str, Any] = {f"scipy.{name}": s.asformat(name) for name in ("csr", "csc", "coo")}
    values |= {f"scipy.{name}": s.asformat(name) for name in ("bsr", "dia", "lil", "dok")}
    names = ("coo", "csr", "csc", "bsr", "bsc")
    return values | {f"torch.{n}": interop.convert(s, f"torch.sparse_{n}") for n in names}


@pytest.mark.parametrize("name", _layouts())
@together("order", ["C", "F"])
@together("dtype", ["float32", "float64"])
@together("framework", ["numpy", "torch"])
def test_out_gets_the_dense_array(name: str, order: str, dtype: str, framework: str) -> None:
    """A sparse array of any layout is made dense in out=, whatever was there before."""
    value = _layouts()[name]
    dense = value.to_dense().numpy() if name.startswith("torch") else value.toarray()
    memory = np.full(dense.shape, 7, dtype, order=order)
    out = memory if framework == "numpy" else torch.from_numpy(memory)
    assert interop.convert(value, out=out) is out
    assert (memory == dense).all()


def test_out_is_written_by_the_step_that_makes_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No second array is made that would have to be copied into out=."""
    from interop_plugins import numpy as plugin

    assert plugin.fill is not None
    calls: list[Any] = []
    monkeypatch.setattr(copies, "_copy", lambda out, value: calls.append(out))
    instance = interop.Interop()
    value = scipy.sparse.eye_array(300, format="csr", dtype="f4")
    out = np.full((300, 300), 7, "f4")
    instance.convert(value, out=out)
    assert calls == []
    assert (out == np.eye(300)).all()


def test_out_takes_lazy_conjugates() -> None:
    """A conjugate that was never carried out is carried out on the way into out=."""
    z = torch.complex(torch.rand(30, 20), torch.rand(30, 20))
    for value in (z.conj(), z.mH, z.conj().imag):
        out = np.zeros(value.shape, "c8" if value.is_complex() else "f4")
        interop.convert(value, out=out)
        assert (out == value.resolve_conj().resolve_neg().numpy()).all()


@pytest.mark.parametrize("kind", ["sparse", "codes", "many codes"])
@pytest.mark.filterwarnings("ignore:torch.quantize_per:UserWarning")
def test_out_in_a_graph_is_refused(kind: str) -> None:
    """A tensor that requires grad is not written outside of its graph."""
    side = 1000 if kind == "many codes" else 3
    value = scipy.sparse.eye_array(side, format="csr", dtype="f4")
    if kind != "sparse":
        value = torch.quantize_per_tensor(torch.eye(side), 0.5, 0, torch.quint8)
    out = torch.zeros(side, side, requires_grad=True)
    with pytest.raises(interop.errors.BadRequestError):
        interop.convert(value, out=out)
    assert not out.detach().any()


@pytest.mark.parametrize("layout", ["sparse_bsr", "sparse_bsc"])
@pytest.mark.parametrize("shape", [(8, 12), (5, 7), (6, 1), (0, 4)])
def test_dense_to_blocks(layout: str, shape: tuple[int, int]) -> None:
    """A dense tensor becomes blocks whose sides divide its own."""
    dense = torch.arange(float(np.prod(shape))).reshape(shape) % 3
    result = interop.convert(dense, f"torch.{layout}")
    assert result.layout is getattr(torch, layout)
    assert torch.equal(result.to_dense(), dense)


@pytest.mark.parametrize(
    ("name", "dtype", "touching"),
    [
        *(("plain", "f4", True), ("plain", "f8", True), ("columns", "f4", True)),
        *(("transposed", "f4", False), ("float16", "f4", False), ("float8", "f4", False)),
        ("plain", "f2", False),
    ],
)
def test_casts_at_the_speed_of_memory_are_told_apart(
    name: str, dtype: str, touching: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cast that NumPy makes as fast as memory is read is told apart, into fresh memory alone."""
    announced: list[bool] = []

    def parallel_for(
        work: Callable[[int, int], None], count: int, nbytes: int, *, touching: bool
    ) -> None:
        announced.append(touching)
        work(0, count)

    monkeypatch.setattr(copies, "parallel_for", parallel_for)
    for bound in ("_ALONE", "_MANY"):
        monkeypatch.setattr(copies, bound, 0)
    array = ARRAYS[name]()
    result = copies.written(array, np.dtype(dtype))
    copies.write(result, array)
    assert announced == [touching, False]
    assert np.array_equal(result, array.astype(dtype))


def _sparse(layout: str) -> Any:
    numbers = _numbers(700, 513)
    return scipy.sparse.csr_array(np.where(numbers % 3, 0, numbers)).asformat(layout)


def _codes(*, torchs: bool) -> Any:
    codes, scale, zeros = (
        _numbers(700, 600, dtype="u1"),
        np.linspace(0.1, 1, 700),
        np.zeros(700, int),
    )
    array = interop.QuantizedArray(codes, scale, zeros, axis=0)
    return interop.convert(array, to="torch.quantized") if torchs else array


#: What several threads write where it is large.
DIVIDED: dict[str, Callable[[], Any]] = {
    "csr": lambda: interop.convert(_sparse("csr"), to="numpy"),
    "csc": lambda: interop.convert(_sparse("csc"), to="numpy"),
    "dense": lambda: interop.convert(_sparse("csr").toarray(), to="scipy.csr").toarray(),
    "codes": lambda: interop.convert(_codes(torchs=False), to="numpy"),
    "codes of torch's": lambda: interop.convert(_codes(torchs=True), to="numpy"),
    "transposed": lambda: copies.written(_numbers(700, 513).T, np.dtype("f4")),
}


@pytest.mark.parametrize("kind", DIVIDED)
def test_what_threads_write_has_no_gap(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread that writes all and several that write a part each make the same numbers."""
    threads: Any = sys.modules["interop.kit.threads"]
    started: list[int] = []

    class Team(threads.Team):  # type: ignore[misc]
        def start(self, count: int) -> None:
            started.append(count)
            super().start(count)

    monkeypatch.setattr(threads, "Team", Team)
    bounds = (scipy_dense, "_SMALL"), (copies, "_ALONE"), (copies, "_MANY"), (quantized, "_MANY")
    for module, bound in bounds:
        monkeypatch.setattr(module, bound, 0)
    monkeypatch.setattr(scipy_dense, "_PIECE", 2**12)
    monkeypatch.setattr(threads, "_LEAST_BYTES", 2**40)
    expected = DIVIDED[kind]()
    assert not started
    monkeypatch.setattr(threads, "_LEAST_BYTES", 2**12)
    for limit in ("threads", "idle_cores"):  # whatever else the machine does
        monkeypatch.setattr(threads, limit, lambda: 4)
    assert DIVIDED[kind]().tobytes() == expected.tobytes()
    assert started
