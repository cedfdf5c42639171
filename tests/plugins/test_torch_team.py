"""torch's team of threads: when it is left alone, and that nothing else changes then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import interop

torch = pytest.importorskip("torch")

from interop_plugins.torch import team  # noqa: E402

CASTS = [
    ("float32", "float64"),
    ("float64", "float32"),
    ("int64", "float32"),
    ("bfloat16", "float32"),
    ("float16", "float32"),
    ("bool", "int32"),
    ("complex64", "complex128"),
]
#: Shapes of more elements than one thread takes: whole rows in a piece, rows of several pieces.
SHAPES = [(2**15 + 1,), (300, 301), (2, 3, 2**14), (2, 2**16), (1, 1, 2**16)]


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Let the team have been late; yield the elements of each copy that torch then makes."""
    sizes: list[int] = []
    copy = torch.Tensor.copy_

    def copy_(out: Any, value: Any, *args: Any) -> Any:
        sizes.append(out.numel())
        return copy(out, value, *args)

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    monkeypatch.setattr(team, "_in_time", False)
    monkeypatch.setattr(team, "_crowded_until", float("inf"))
    monkeypatch.setattr(torch.Tensor, "copy_", copy_)
    yield sizes
    torch.set_num_threads(threads)


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    """Return small whole numbers, the same in every dtype."""
    values = torch.arange(int(np.prod(shape))).reshape(shape) % 7
    return values.to(getattr(torch, dtype))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("source", "target"), CASTS)
def test_a_crowded_cast_gives_the_same_numbers(
    crowded: list[int], shape: tuple[int, ...], source: str, target: str
) -> None:
    """Casts by one thread give what torch's team gives: NumPy casts, or torch in small pieces."""
    value = numbers(shape, source)
    crowded.clear()
    result = interop.convert(value, to="torch", dtype=target)
    by_torch = source in {"bfloat16", "float16"}
    assert max(crowded, default=0) <= 2**15
    assert sum(crowded) == (value.numel() if by_torch else 0)
    expected = value.to(getattr(torch, target))
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert torch.equal(result, expected)


@pytest.mark.parametrize(
    "view",
    [
        lambda value: value.T,
        lambda value: value[::2],
        lambda value: value[:, ::3],
        lambda value: value[:1].expand(400, 600),
    ],
    ids=["transposed", "rows", "columns", "broadcast"],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_crowded_copy_of_a_view(crowded: list[int], view: Any, dtype: str) -> None:
    """A copy by one thread has the numbers of any view, and memory of its own."""
    value = view(numbers((400, 600), dtype))
    result = interop.convert(value, to="torch", copy=True)
    assert torch.equal(result, value)
    assert result.untyped_storage().data_ptr() != value.untyped_storage().data_ptr()
    assert all(size <= 2**15 for size in crowded)


def test_a_crowded_write_into_out(crowded: list[int]) -> None:
    """What is written into `out=` comes in pieces as well."""
    value, out = numbers((400, 600), "float32"), np.empty((400, 600))
    interop.convert(value, out=out)
    assert all(size <= 2**15 for size in crowded)
    np.testing.assert_array_equal(out, value.numpy())


def test_a_crowded_copy_stays_in_its_graph(crowded: list[int]) -> None:
    """A tensor in a graph is copied at once, and its gradient comes through."""
    value = numbers((2**17,), "float32").requires_grad_()
    result = interop.convert(value, to="torch", dtype="float64")
    result.sum().backward()
    assert crowded == []
    assert torch.equal(value.grad, torch.ones(2**17))


@pytest.mark.parametrize(("took", "pause"), [(0.0009, 0), (0.006, 0.24), (0.075, 3)])
def test_a_late_team_is_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch, took: float, pause: float
) -> None:
    """After a copy that took too long the team is not used for forty times as long."""
    run = _stubbed(monkeypatch, took, idle=lambda: 1)
    assert run(0) == "team"
    if pause:
        assert run(pause / 2) == "alone"
        assert run(pause / 2 - 1e-4) == "alone"
        assert run(2e-4) == "team"
    else:
        assert run(0) == "team"


def test_the_team_is_tried_once_a_core_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first try, and after a late one, it is asked whether anything waits for a core."""
    idle = [0]
    run = _stubbed(monkeypatch, 0.006, idle=lambda: idle[0])
    assert [run(0), run(1), run(1)] == ["alone"] * 3
    idle[0] = 1
    assert run(team._GLANCE / 2) == "alone"  # it was asked a moment ago
    assert run(team._GLANCE) == "team"
    idle[0] = -1
    assert [run(1), run(1)] == ["alone"] * 2


def test_a_team_in_time_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system says of its cores is not read again while copies by the team are in time."""
    looks: list[None] = []
    run = _stubbed(monkeypatch, 0.0001, idle=lambda: looks.append(None) or 1)
    assert [run(0) for _ in range(5)] == ["team"] * 5
    assert len(looks) == 1


def _stubbed(
    monkeypatch: pytest.MonkeyPatch, took: float, *, idle: Callable[[], int]
) -> Callable[[float], str]:
    """Return what waits for some seconds and tells who makes a copy, by a clock of its own."""
    clock, calls = [100.0], []
    monkeypatch.setattr(team, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(team, "idle_cores", idle)
    monkeypatch.setattr(team, "_in_time", False)
    monkeypatch.setattr(team, "_crowded_until", 0.0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    value = torch.zeros(2**16)

    def by_team() -> Any:
        clock[0] += took
        calls.append("team")

    def run(seconds: float) -> str:
        clock[0] += seconds
        team.run(value, 2**20, by_team, lambda: calls.append("alone"))
        return calls[-1]

    return run


@pytest.mark.parametrize("lazy", [torch.conj, lambda value: value.conj().imag])
def test_crowded_lazy_numbers_are_resolved(crowded: list[int], lazy: Any) -> None:
    """Conjugates and negatives are carried out by one thread as by the team."""
    value = lazy(numbers((2**16,), "complex64") * (1 + 2j))
    assert torch.equal(interop.convert(value, to="torch", copy=True), value.resolve_conj())
    result = interop.convert(value, to="numpy", dtype=np.result_type(0.0, value.numpy(force=True)))
    np.testing.assert_array_equal(result, value.resolve_conj().resolve_neg().numpy())


def test_crowded_numbers_that_do_not_fit_warn_of_nothing(crowded: list[int]) -> None:
    """NumPy's warnings of floating-point errors are no part of a cast that is allowed to lose."""
    value = torch.full((2**16,), 1e300, dtype=torch.float64)
    result = interop.convert(value, to="torch", dtype="float32")
    assert torch.isinf(result).all()


def test_only_copies_by_a_team_may_be_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that one thread of torch makes are made as ever: few elements, or one thread at all."""
    monkeypatch.setattr(team, "_in_time", False)
    monkeypatch.setattr(team, "_crowded_until", float("inf"))

    def by_whom(count: int, threads: int) -> str:
        calls: list[str] = []
        monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
        value = torch.zeros(count)
        team.run(value, 4 * count, lambda: calls.append("torch"), lambda: calls.append("alone"))
        return calls[0]

    assert by_whom(2**15, 2) == "torch"
    assert by_whom(2**15 + 1, 2) == "alone"
    assert by_whom(2**16, 1) == "torch"
    assert by_whom(2**23, 2) == "torch"  # 32 MiB: the team gains more than it waits


SHAPE = 256, 256
#: Sources, and the dtype of the tensor into which they are written.
WRITES: dict[str, tuple[Callable[[], Any], str]] = {
    "torch": (lambda: torch.ones(SHAPE), "float32"),
    "torch, by NumPy's cast": (lambda: torch.ones(SHAPE, dtype=torch.float64), "float16"),
    "bfloat16": (lambda: torch.ones(SHAPE, dtype=torch.bfloat16), "float32"),
    "quantized": (
        lambda: torch.quantize_per_tensor(torch.ones(SHAPE), 1, 0, torch.qint8),
        "float32",
    ),
    "COO": (lambda: torch.ones(SHAPE).to_sparse(), "float32"),
    "NumPy": (lambda: np.ones(SHAPE, "float32"), "float32"),
    "SciPy": (lambda: pytest.importorskip("scipy.sparse").csr_array(np.ones(SHAPE)), "float64"),
    "list": (lambda: np.ones(SHAPE).tolist(), "float32"),
}


@pytest.mark.filterwarnings("ignore:.*quantized")
@pytest.mark.parametrize("until", [0.0, float("inf")], ids=["idle", "crowded"])
@pytest.mark.parametrize("source", WRITES)
def test_autograd_hears_of_a_write_into_out(
    crowded: list[int], monkeypatch: pytest.MonkeyPatch, source: str, until: float
) -> None:
    """Numbers that a gradient needs may not be overwritten unseen, whoever writes them."""
    monkeypatch.setattr(team, "_crowded_until", until)
    make, dtype = WRITES[source]
    for _ in range(3):  # in full, and by fast paths
        out = torch.zeros(SHAPE, dtype=getattr(torch, dtype))
        product = torch.ones(SHAPE, requires_grad=True) * out
        interop.convert(make(), out=out, allow="narrow")
        np.testing.assert_array_equal(out.numpy(), np.ones(SHAPE))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.sum().backward()


@pytest.mark.parametrize("shape", [(2**15 + 1,), (3, 2**15)])
@pytest.mark.parametrize(("codes", "zero_point"), [("int8", -7), ("uint8", 200), ("int32", -3)])
@pytest.mark.filterwarnings("ignore:.*quantized")
def test_a_crowded_dequantization_gives_the_same_bits(
    crowded: list[int], shape: tuple[int, ...], codes: str, zero_point: int
) -> None:
    """NumPy makes of a tensor's codes what torch makes of them, to the last bit."""
    limits, dtype = np.iinfo(codes), getattr(torch, codes)
    numbers = torch.randint(int(limits.min), int(limits.max), shape, dtype=dtype)
    value = torch._make_per_tensor_quantized_tensor(numbers, 0.3337, zero_point)
    for view in (value, value[..., ::3], value[..., 5:]):
        result, expected = interop.convert(view, to="numpy"), view.dequantize().numpy()
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(result.view("uint32"), expected.view("uint32"))


#: Codes, scales and zero points of which torch has schemes per channel.
SCHEMES = [
    *product(["int8", "uint8", "int32"], ["float32", "float64"], ["none", "whole"]),
    *product(["int8", "uint8"], ["float32"], ["real"]),
]


@pytest.mark.parametrize(("codes", "scales", "zero_points"), SCHEMES)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.filterwarnings("ignore:.*quantized")
def test_a_crowded_dequantization_per_channel_gives_the_same_bits(
    crowded: list[int], axis: int, codes: str, scales: str, zero_points: str
) -> None:
    """With a scale for each channel, too, the numbers are torch's, in out= of any strides."""
    shape, limits = (3, 20_001, 5), torch.iinfo(getattr(torch, codes))
    numbers = torch.randint(limits.min, limits.max, shape, dtype=getattr(torch, codes))
    zeros = torch.zeros(shape[axis], dtype=torch.int64)
    if zero_points == "whole":
        zeros = zeros.random_(max(limits.min, -(2**31)), limits.max)
    elif zero_points == "real":
        zeros = torch.rand(shape[axis]) * 9
    factors = torch.rand(shape[axis], dtype=getattr(torch, scales))
    factors = factors if zero_points == "real" else factors.double()
    value = torch._make_per_channel_quantized_tensor(numbers, factors, zeros, axis)
    expected = value.dequantize().numpy().view("uint32")
    out = np.full(shape[::-1], 7, "f4").T
    for result in (interop.convert(value, to="numpy"), interop.convert(value, out=out)):
        np.testing.assert_array_equal(result.view("uint32"), expected)
