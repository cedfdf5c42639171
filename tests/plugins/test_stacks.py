"""Lists and tuples of arrays of one shape become one array, by a planned copy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pandas as pd
import pytest
import torch

import interop
from interop.errors import BadRequestError, RefusedError
from interop.plugin import Spec
from interop_plugins.torch import dense as torch_dense
from tests.cases import together
from tests.inside import forget, outcome

ROWS = np.arange(6, dtype="float32").reshape(2, 3)

#: The same rows, as several frameworks have them.
BATCHES: dict[str, Any] = {
    "numpy": list(ROWS),
    "tuple": tuple(ROWS),
    "torch": [torch.tensor(row) for row in ROWS],
    "jax": [jnp.asarray(row) for row in ROWS],
    "mixed": [torch.tensor(ROWS[0]), jnp.asarray(ROWS[1])],
    "memoryview": [memoryview(row) for row in ROWS],
    "nested": [[torch.tensor(x) for x in row] for row in ROWS],
    "strided": [torch.tensor(ROWS.T.copy()).T[0], ROWS[::-1][0]],
}


class Tagged(torch.Tensor):
    """A tensor of a type of its own."""


@pytest.mark.parametrize("target", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_arrays_of_one_shape_become_one_array(batch: Any, target: str) -> None:
    """The rows come out in order, exactly, in memory of their own, and the plan says so."""
    spec = interop.spec(batch)
    assert spec == Spec("python.arrays", "float32", "cpu", (2, 3), frozenset(), 24)
    route = interop.plan(batch, to=target)
    assert "copy" in route.effects
    result = interop.convert(batch, to=target)
    assert str(result.dtype).removeprefix("torch.") == "float32"
    assert np.asarray(result).tolist() == ROWS.tolist()
    if target != "jax":
        result[:] = 7
        assert np.array_equal(interop.convert(batch, to="numpy"), ROWS)


@pytest.mark.parametrize(
    ("batch", "dtype"),
    [
        ([np.ones(1, "int8"), np.ones(1, "uint8")], "int16"),
        ([torch.ones(1, dtype=torch.bfloat16), np.ones(1, "float32")], "float32"),
        ([torch.ones(1, dtype=torch.bfloat16)] * 2, "bfloat16"),
        ([torch.tensor(1.5), 2], "float32"),
        ([torch.tensor(1.5), 0.1], "float64"),  # as NumPy promotes it: no number is rounded
        ([0.1, torch.tensor(1.5)], "float64"),
        ([np.ones(1), [2.0]], "float64"),
        ([torch.tensor(3), True, -1], "int64"),
    ],
)
def test_the_dtype_holds_every_number(batch: list[Any], dtype: str) -> None:
    """Where dtypes differ, the result has the one that NumPy finds, if it loses nothing."""
    result = interop.convert(batch, to="numpy")
    assert result.dtype == np.dtype(getattr(ml_dtypes, dtype, dtype))
    rows = [np.asarray(interop.convert(row, to="numpy"), result.dtype) for row in batch]
    assert np.array_equal(result, np.stack(rows))
    assert interop.convert(batch, to="torch").dtype == getattr(torch, dtype)


def test_a_dtype_that_is_asked_for_is_cast_to_row_by_row() -> None:
    """A cast is part of the one copy."""
    route = interop.plan([np.ones(2), np.zeros(2)], to="numpy", dtype="float16")
    assert [step.label for step in route.steps] == ["stack"]
    result = interop.convert(
        [np.array([1 / 3]), torch.tensor([2])[::1].double()], "numpy", dtype="f2"
    )
    assert (result.dtype, result.tolist()) == (np.float16, [[float(np.float16(1 / 3))], [2.0]])


def test_a_graph_goes_through() -> None:
    """Tensors with a history stay part of it in torch, and lose it elsewhere as one of them does."""
    leaf = torch.ones(2, requires_grad=True)
    result = interop.convert([leaf * 2, torch.zeros(2)], to="torch")
    result.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2.0, 2.0]
    assert "detach" in interop.plan([leaf], to="numpy").effects
    assert interop.convert([leaf], to="numpy").tolist() == [[1.0, 1.0]]
    with pytest.raises(RefusedError):
        interop.convert([leaf], to="numpy", forbid="detach")


def test_lazy_bits_are_resolved() -> None:
    """A conjugate view among the rows is read as the numbers that it stands for."""
    z = torch.tensor([1 + 2j])
    assert interop.convert([z.conj(), z], to="numpy").tolist() == [[1 - 2j], [1 + 2j]]


def test_subclasses_are_stacked_as_their_numbers() -> None:
    """Rows of a subclass come out as those of a plain array, as one of them does."""
    rows = [torch.ones(2).as_subclass(Tagged), np.zeros(2, "float32")]
    result = interop.convert(rows, to="torch")
    assert type(result) is torch.Tensor
    assert result.tolist() == [[1, 1], [0, 0]]


def test_labels_are_dropped_as_those_of_one_are() -> None:
    """What rows lose beside their numbers is an effect that can be forbidden."""
    rows = [pd.Series([1.0, 2.0], index=["a", "b"])] * 2
    assert "drop_labels" in interop.plan(rows, to="numpy").effects
    assert interop.convert(rows, to="numpy").tolist() == [[1.0, 2.0]] * 2
    with pytest.raises(RefusedError):
        interop.convert(rows, to="numpy", forbid="drop_labels")


def test_rows_on_a_device_are_stacked_there() -> None:
    """The route of rows on a device stacks them before anything else, and moves the stack once."""
    spec = interop.make_spec("python.arrays", "float32", device="cuda:0", shape=(2, 3))
    for target in ("torch", "cupy", "jax"):
        route = interop.plan(spec, to=target)
        assert [(step.label, step.after.device) for step in route.steps] == [("stack", "cuda:0")]
    route = interop.plan(spec, to="numpy")
    assert [step.after.device for step in route.steps] == ["cuda:0", "cpu"]
    assert route.effects == {"copy", "transfer"}


def test_jax_stacks_what_lies_on_its_devices() -> None:
    """JAX's own step gives the rows in order, in the dtype that was planned."""
    from interop_plugins.jax import dense

    result = dense.stack([jnp.ones(2), np.zeros(2, "float32"), [2, 3]], dtype="float32")
    assert (str(result.dtype), result.tolist()) == ("float32", [[1, 1], [0, 0], [2, 3]])


def test_a_list_that_holds_itself_is_refused() -> None:
    """A cycle behind an array is an error, and no endless recursion."""
    batch: list[Any] = [np.ones(1)]
    batch.append(batch)
    with pytest.raises(BadRequestError):
        interop.spec(batch)


def test_a_tree_takes_lists_for_containers() -> None:
    """Inside a tree a list of arrays stays a list."""
    tree = interop.convert_tree({"a": [np.ones(1), np.ones(2)]}, to="torch")
    assert [type(leaf) for leaf in tree["a"]] == [torch.Tensor] * 2


def _shorter(tensor: torch.Tensor, nbytes: int) -> torch.Tensor:
    """Return a tensor after its storage was cut to some bytes."""
    tensor.untyped_storage().resize_(nbytes)
    return tensor


#: What a glance at the first row does not tell.
ODD_ROWS: dict[str, Any] = {
    "dtypes": lambda: [torch.ones(2), torch.ones(2, dtype=torch.int64)],
    "dtypes of numpy": lambda: [np.ones(2, "f4"), np.ones(2)],
    "shapes": lambda: [torch.ones(2, 1), torch.ones(1, 2)],
    "sizes": lambda: [np.ones(2), np.ones(3)],
    "frameworks": lambda: [torch.ones(2), np.ones(2, "f4")],
    "foreign bytes": lambda: [np.ones(2, ">f4"), np.ones(2, ">f4")],
    "masked": lambda: [np.ones(2), np.ma.masked_array([1.0, 2.0], [True, False])],
    "text": lambda: [np.array(["a"]), np.array(["b"])],
    "strided": lambda: [torch.arange(8.0)[::2], torch.arange(8.0)[1::2]],
    "one after another": lambda: list(torch.arange(6.0).reshape(3, 2)),
    "conjugated": lambda: [torch.tensor([1j, 2]).conj(), torch.tensor([1j, 2])],
    "in a graph": lambda: [torch.ones(2, requires_grad=True), torch.ones(2)],
    "sparse": lambda: [torch.ones(2, 2).to_sparse()] * 2,
    "freed": lambda: [torch.ones(2), _shorter(torch.ones(2), 0)],
    "cut": lambda: [torch.ones(4), _shorter(torch.ones(4), 8)],
    "no memory": lambda: [torch.ones(2, device="meta")] * 2,
    "empty": lambda: [torch.ones(0), torch.ones(0)],
    "numbers": lambda: [torch.ones(()), torch.zeros(())],
}


@together("target", ["numpy", "torch"])
@together("dtype", [None, "complex64"])
@together("rows", ODD_ROWS.values())
def test_odd_rows_after_plain_ones_are_stacked_or_refused_as_in_a_first_call(
    loaded: interop.Interop, rows: Any, dtype: str | None, target: str
) -> None:
    """Rows that share type, dtype and shape are asked at once, and what they hide is seen."""

    def stacked(warm: bool) -> Any:
        forget(loaded)
        for plain in ([torch.ones(2)] * 2, [np.ones(2)] * 2) if warm else ():
            loaded.convert(plain, to=target, dtype=dtype)
        return outcome(loaded, rows(), partial(loaded.convert, to=target, dtype=dtype))[1]

    assert stacked(warm=True) == stacked(warm=False)


def test_small_plain_rows_are_stacked_without_a_look_at_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second list of plain tensors of one dtype and shape is converted without any spec."""
    instance = interop.Interop()
    rows = [torch.tensor(row) for row in ROWS]
    instance.convert(rows, to="torch")
    monkeypatch.setattr(instance._registry.recognition, "describe", None)
    assert torch.equal(instance.convert(rows, to="torch"), torch.stack(rows))
    assert torch.equal(instance.convert(list(ROWS), to="torch"), torch.stack(rows))


@pytest.mark.parametrize("library", ["numpy", "jax", "mlx"])
def test_arrays_of_others_are_stacked_for_torch_without_a_look_at_each(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So are those of a dtype that torch meets in a list first."""
    mlx = pytest.importorskip("mlx.core") if library == "mlx" else None
    make = {"numpy": np.asarray, "jax": jnp.asarray, "mlx": mlx and mlx.array}[library]
    monkeypatch.setattr(torch_dense, "_sharers", {})
    instance, rows = interop.Interop(), [make(row) for row in ROWS]
    instance.convert(rows, to="torch")
    monkeypatch.setattr(instance._registry.recognition, "describe", None)
    result = instance.convert(rows, to="torch")
    assert result.dtype == torch.float32
    assert result.tolist() == ROWS.tolist()


@pytest.mark.parametrize("target", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["int64", "float16", {"float32": "float64"}])
@pytest.mark.parametrize("batch", ["numpy", "tuple", "torch"])
def test_plain_rows_with_a_dtype_are_cast_without_a_look_at_each(
    batch: str, dtype: Any, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second sequence of one type, dtype and shape is stacked and cast without any spec."""
    instance, rows = interop.Interop(), BATCHES[batch]
    planned = instance.convert(rows, to=target, dtype=dtype)
    monkeypatch.setattr(instance._registry.recognition, "describe", None)
    again = instance.convert(rows, to=target, dtype=dtype)
    assert again.dtype == planned.dtype
    assert again.tolist() == planned.tolist() == ROWS.tolist()
    again[:] = 7
    assert np.array_equal(instance.convert(rows, to=target, dtype=dtype), planned)


def test_rows_like_the_first_are_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many plain rows the first is described; one of another dtype is described on its own."""
    rows = [torch.ones(2**11) for _ in range(2**11)]  # too many for a fast path
    described: list[Any] = []
    describe = interop.spec

    def noted(value: Any) -> Spec:
        described.append(value)
        return describe(value)

    monkeypatch.setattr(interop, "spec", noted)
    spec = describe(rows)
    assert (spec.shape, spec.dtype, spec.nbytes) == ((2**11, 2**11), "float32", 2**24)
    assert len(described) == 1
    described.clear()
    assert describe([*rows[:9], torch.ones(2**11, dtype=torch.float64)]).dtype == "float64"
    assert [value.dtype for value in described] == [torch.float32, torch.float64]


BIG = 2**53 + 1  # which no float64 is

SEVERAL: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "losses and counts": (lambda: [torch.tensor(0.5), torch.tensor(3)], [0.5, 3]),
    "a tensor and a number": (lambda: [torch.tensor(0.5), BIG], [0.5, BIG]),
    "rows": (lambda: [np.ones(2, "f4"), np.array([1, BIG])], [[1, 1], [1, BIG]]),
    "ragged rows": (lambda: [np.ones(2, "f4"), np.array([1, BIG, 3])], [[1, 1], [1, BIG, 3]]),
    "wide integers and reals": (lambda: [BIG, 0.5], [BIG, 0.5]),
    "lists of them": (lambda: [[BIG, 0.5], (1, 2)], [[BIG], [0.5], [1, 2]]),
    "ragged lists of them": (lambda: [[BIG, 0.5], [1]], [[BIG], [0.5], [1]]),
}


@together("name", SEVERAL)
@together("dtype", ["float64", "float32", "int64"])
@together("to", ["numpy", "torch", "jax", "awkward"])
def test_a_dtype_is_consent_for_a_list_of_several(name: str, dtype: str, to: str) -> None:
    """Each array is cast to the dtype that is asked for, once; without it the list is refused."""
    make, expected = SEVERAL[name]
    is_ragged = name.startswith("ragged")
    if is_ragged:
        to = {"torch": "torch.jagged", "awkward": "awkward"}.get(to, "")
    if not to or (to == "awkward" and not is_ragged) or (to == "jax" and "64" in dtype):
        return
    if to == "awkward":
        pytest.importorskip("awkward")
    with pytest.raises(RefusedError):
        interop.convert(make(), to=to)
    with pytest.raises(RefusedError):
        interop.convert(make(), to=to, dtype=dtype, forbid="narrow")
    assert "narrow" in interop.plan(make(), to=to, allow="narrow").effects
    result = interop.convert(make(), to=to, dtype=dtype)
    assert interop.spec(result).dtype == dtype
    rows = [row.tolist() for row in result] if is_ragged else result.tolist()
    flat = np.concatenate([np.ravel(row) for row in rows]) if is_ragged else np.ravel(rows)
    parts = [np.ravel(row) for row in expected]
    assert flat.tolist() == np.concatenate([part.astype(dtype) for part in parts]).tolist()


def test_two_narrow_dtypes_have_one_that_holds_both() -> None:
    """bfloat16 and float16 together are float32, which NumPy does not say; nothing is lost."""
    rows = [
        torch.full((2,), 3e38, dtype=torch.bfloat16),
        torch.full((2,), 0.1, dtype=torch.float16),
    ]
    result = interop.convert(rows, to="torch", forbid="narrow")
    assert result.dtype == torch.float32
    assert torch.equal(result, torch.stack([row.float() for row in rows]))


def test_a_list_in_a_graph_stays_in_it() -> None:
    """A loss among counts keeps its history where the list becomes a tensor."""
    loss = torch.tensor(0.5, requires_grad=True)
    interop.convert([loss, torch.tensor(3)], to="torch", dtype="float32").sum().backward()
    assert loss.grad == 1


def images(mode: str, count: int, size: tuple[int, int] = (4, 3)) -> list[Any]:
    """Return images of Pillow's of one mode, which differ."""
    from PIL import Image

    made = [Image.new(mode, size) for _ in range(count)]
    for n, image in enumerate(made):
        image.putpixel((n, 0), (n, 1, 2) if mode == "RGB" else n)
    return made


#: By library, what makes some arrays that differ.
OTHERS: dict[str, Any] = {
    "images": lambda count: images("RGB", count),
    "grey images": lambda count: images("L", count),
    "images of truth values": lambda count: images("1", count),
    "images of 16 bits": lambda count: images("I;16", count),
    "jax": lambda count: [jnp.arange(3.0) + n for n in range(count)],
    "jax in bfloat16": lambda count: [jnp.arange(3, dtype="bfloat16") + n for n in range(count)],
    "torch": lambda count: [torch.arange(3.0) + n for n in range(count)],
    "torch in a graph": lambda count: [torch.ones(3, requires_grad=True) * n for n in range(count)],
}


@pytest.mark.parametrize(
    "library",
    [
        pytest.param(name, marks=pytest.mark.extra("PIL") if "images" in name else ())
        for name in OTHERS
    ],
)
@together("target", ["numpy", "torch"])
@together("count", [1, 3])
def test_lists_of_other_libraries_arrays_are_stacked_warm_as_cold(
    library: str, target: str, count: int
) -> None:
    """The first call and those after it give the stack of what each array is."""
    batch = OTHERS[library](count)
    expected = np.stack([interop.convert(array, to="numpy") for array in batch])
    for _ in range(4):
        result = interop.convert(batch, to=target)
        numbers = interop.convert(result, to="numpy")
        assert numbers.dtype == expected.dtype
        assert numbers.tolist() == expected.tolist()
        in_graph = library == "torch in a graph" and target == "torch"
        assert getattr(result, "requires_grad", False) is in_graph


#: Lists that are no stack of plain arrays.
ODD_LISTS: dict[str, Any] = {
    "images of two sizes": lambda: [*images("L", 1), *images("L", 1, (2, 2))],
    "images of two modes": lambda: [*images("L", 1), *images("I;16", 1)],
    "an image and an array": lambda: [*images("L", 1), np.zeros((3, 4), "uint8")],
    "two dtypes": lambda: [jnp.ones(2), jnp.ones(2, dtype="int8")],
    "two shapes": lambda: [jnp.ones(2), jnp.ones(3)],
    "bytes": lambda: [b"ab", b"cd"],
    "texts": lambda: ["ab", "cd"],
    "scalars": lambda: [np.float32(1), np.float32(2)],
    "sparse tensors": lambda: [torch.eye(2).to_sparse()] * 2,
    "Series": lambda: [pd.Series([1.0, 2.0])] * 2,
    "two types": lambda: [jnp.ones(2), torch.ones(2)],
    "nothing": list,
    "rows of numbers": lambda: [[1.5], [2.5]],
    "numbers": lambda: [1.5, 2.5],
}


@pytest.mark.extra("PIL")
@pytest.mark.parametrize("kind", ODD_LISTS)
def test_odd_lists_come_out_as_in_a_first_call(kind: str) -> None:
    """What plain lists have taught serves no list of anything else."""
    for target in ("numpy", "torch"):
        warm, cold = interop.Interop(), interop.Interop()
        for make in OTHERS.values():
            for _ in range(3):
                warm.convert(make(2), to=target)
        told, expected = (
            outcome(mine, ODD_LISTS[kind](), partial(mine.convert, to=target))[1]
            for mine in (warm, cold)
        )
        assert told == expected
