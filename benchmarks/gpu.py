"""On a CUDA device: hand-offs that copy nothing, and transfers of arrays and of trees.

``python -m benchmarks.gpu`` runs the whole check of a device.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator
from functools import cache, partial
from importlib.util import find_spec
from statistics import median
from timeit import Timer
from typing import Any, NamedTuple

import numpy as np
import torch

import interop

from .aims import RATIOS
from .device_check import Outcome
from .machine import cupy_finds, torch_finds
from .table import Cell, Line, Listing, Result, Table, from_rows
from .timing import Row, against, compare, interleaved

__all__ = ["missing", "outcomes", "tables"]

_SIZE = 1 << 30
_NOTE = (
    "1 GiB of float32, fresh memory on the other side. `pageable` is `x.cpu().numpy()` and "
    "`torch.from_numpy(x).cuda()`; `staged` goes through two page-locked buffers of 32 MiB that "
    "are used again; `link` is the bare copy from or into page-locked memory of that size, which "
    "nothing can beat: {down:.1f} GB/s to the host, {up:.1f} GB/s to the device."
)


@cache
def missing() -> str:
    """Return why there is no CUDA device to measure on, "" if there is one."""
    with warnings.catch_warnings():
        # Frameworks warn when they find no device; the reason is returned instead.
        warnings.simplefilter("ignore")
        return torch_finds() or cupy_finds()


# ---------------------------------------------------------------------- hand-offs


class _Call(NamedTuple):
    """A call, and the best statement by hand that does the same."""

    name: str
    value: Any
    ours: str
    by_hand: str


def _calls() -> list[_Call]:
    """Return the hand-offs, with what is asked for beside the target, and small transfers."""
    t = torch.arange(12.0, device="cuda").reshape(3, 4)
    in_graph = t.clone().requires_grad_()
    to_cupy, by_hand = "convert(x, to='cupy')", "cupy.from_dlpack(x)"
    tree = {f"layer {n}": torch.ones(8, 8, device="cuda") for n in range(200)}
    host = np.arange(12, dtype="float32").reshape(3, 4)
    return [
        _Call("torch → cupy", t, to_cupy, by_hand),
        _Call("torch → cupy, grad", in_graph, to_cupy, "cupy.from_dlpack(x.detach())"),
        _Call("torch → cupy, bfloat16", t.bfloat16(), to_cupy, by_hand),
        _Call("torch → cupy, transposed", t.t(), to_cupy, by_hand),
        _Call("torch → cupy, converter", t, "to_cupy(x)", by_hand),
        _Call("torch → cupy → torch, accepts", t, "in_cupy(x)", f"torch.from_dlpack({by_hand})"),
        _Call(
            "torch → cupy, copy=True",
            t,
            "convert(x, to='cupy', copy=True)",
            "cupy.from_dlpack(x.clone())",
        ),
        _Call(
            "torch → cupy, dtype=",
            t,
            "convert(x, to='cupy', dtype='float64')",
            "cupy.from_dlpack(x.double())",
        ),
        _Call("torch → cupy, stream=", t, "convert(x, to='cupy', stream=side)", "on_side(x)"),
        _Call("cupy → torch", _cupy_array(), "convert(x, to='torch')", "torch.from_dlpack(x)"),
        _Call(
            "tree of 200, torch → cupy",
            tree,
            "convert_tree(x, to='cupy')",
            "{name: cupy.from_dlpack(tensor) for name, tensor in x.items()}",
        ),
        _Call(
            "tree of 200, cuda → numpy",
            tree,
            "convert_tree(x, to='numpy')",
            "{name: tensor.cpu().numpy() for name, tensor in x.items()}",
        ),
        _Call("cuda → numpy", t, "convert(x, to='numpy')", "x.cpu().numpy()"),
        _Call("cuda → numpy, grad", in_graph, "convert(x, to='numpy')", "x.detach().cpu().numpy()"),
        _Call("cupy → numpy", _cupy_array(), "convert(x, to='numpy')", "x.get()"),
        _Call("cuda → python, one number", t[1, 2].clone(), "convert(x, to='python')", "x.item()"),
        _Call(
            "numpy → torch on cuda",
            host,
            "convert(x, to='torch', device='cuda')",
            "torch.from_numpy(x).cuda()",
        ),
        *_calls_of_jax(t),
        *_calls_of_numba(),
    ]


def _cupy_array() -> Any:
    import cupy

    return cupy.arange(12, dtype="float32").reshape(3, 4)


def _calls_of_jax(t: torch.Tensor) -> Iterator[_Call]:
    """Yield the hand-offs of JAX, if it is installed and sees the device."""
    if find_spec("jax") is None:
        return
    import jax

    if jax.default_backend() != "gpu":
        return
    j = jax.numpy.arange(12.0).reshape(3, 4)
    yield _Call("jax → torch", j, "convert(x, to='torch')", "torch.from_dlpack(x)")
    yield _Call("jax → cupy", j, "convert(x, to='cupy')", "cupy.from_dlpack(x)")
    yield _Call("torch → jax", t, "convert(x, to='jax')", "from_dlpack(x)")
    yield _Call("cupy → jax", _cupy_array(), "convert(x, to='jax')", "from_dlpack(x)")
    # By hand one has to wait as well, before the array may be overwritten.
    yield _Call(
        "numpy → jax on cuda",
        np.arange(12, dtype="float32").reshape(3, 4),
        "convert(x, to='jax', device='cuda')",
        "device_put(x, device).block_until_ready()",
    )


def _calls_of_numba() -> Iterator[_Call]:
    """Yield the hand-offs of an array that has ``__cuda_array_interface__`` alone."""
    if find_spec("numba") is None or find_spec("numba.cuda") is None:
        return
    from numba import cuda

    if not cuda.is_available():
        return
    array = cuda.to_device(np.arange(12, dtype="float32").reshape(3, 4))
    yield _Call(
        "numba → torch", array, "convert(x, to='torch')", "torch.as_tensor(x, device='cuda')"
    )
    yield _Call("numba → cupy", array, "convert(x, to='cupy')", "cupy.asarray(x)")


def _names() -> dict[str, Any]:
    """Return what the statements refer to."""
    import cupy

    make: Callable[[], Any] = torch.cuda.Stream
    side = make()

    def on_side(x: Any) -> Any:
        with cupy.cuda.Stream.from_external(side):
            return cupy.from_dlpack(x)

    names: dict[str, Any] = {
        "side": side,
        "on_side": on_side,
        "convert": interop.convert,
        "convert_tree": interop.convert_tree,
        "cupy": cupy,
        "in_cupy": interop.accepts("cupy")(lambda array: array),
        "to_cupy": interop.converter("cupy"),
        "torch": torch,
    }
    if find_spec("jax") is not None:
        import jax

        names |= {"from_dlpack": jax.dlpack.from_dlpack, "device_put": jax.device_put}
        names["device"] = jax.devices()[0]
    return names


def _compared(names: dict[str, Any], call: _Call, rounds: int) -> Row:
    timers = [Timer(text, globals={**names, "x": call.value}) for text in (call.ours, call.by_hand)]
    return compare(call.name, *timers, rounds=rounds)


def _hand_offs(only: Collection[str] | None, rounds: int) -> Table:
    names = _names()
    rows = [
        _compared(names, call, rounds) for call in _calls() if only is None or call.name in only
    ]
    note = "Small arrays. In hand-offs nothing is copied, and neither side makes the host wait."
    return Table("gpu.hand_offs", "hand-offs on a device", note, from_rows(rows, "by hand"))


# ---------------------------------------------------------------------- transfers


def _synchronous(call: Callable[[], Any]) -> Callable[[], Any]:
    def synchronous() -> Any:
        result = call()
        torch.cuda.synchronize()
        return result

    return synchronous


def _down(t: Any, staging: Any, pinned: Any) -> dict[str, Callable[[], Any]]:
    """Return the ways to move a tensor to the host."""
    return {
        "interop": lambda: interop.convert(t, to="numpy"),
        "pageable": lambda: t.cpu().numpy(),
        "staged": lambda: staging.to_host(t),
        "link": lambda: pinned.copy_(t, non_blocking=True),
    }


def _up(a: np.ndarray[Any, Any], staging: Any, pinned: Any) -> dict[str, Callable[[], Any]]:
    """Return the ways to move an array to the device."""
    out = torch.empty_like(pinned, device="cuda")
    return {
        "interop": lambda: interop.convert(a, to="torch", device="cuda"),
        "pageable": lambda: torch.from_numpy(a).cuda(),
        "staged": lambda: staging.to_device(a),
        "link": lambda: out.copy_(pinned, non_blocking=True),
    }


def _right(result: Any, numbers: np.ndarray[Any, Any]) -> bool:
    array = result.cpu().numpy() if isinstance(result, torch.Tensor) else result
    return np.array_equal(array.reshape(-1).view(np.uint8), numbers.reshape(-1).view(np.uint8))


def _line(
    name: str, ways: dict[str, Callable[[], Any]], numbers: np.ndarray[Any, Any], rounds: int
) -> Line:
    calls = {way: _synchronous(call) for way, call in ways.items()}
    wrong = [way for way, call in calls.items() if not _right(call(), numbers)]
    if wrong:
        msg = f"{name}: {wrong[0]} gave wrong numbers"
        raise RuntimeError(msg)
    timers = {way: Timer(call) for way, call in calls.items()}
    times = interleaved(timers, rounds=rounds, budget=0)
    rows = [against(way, times["interop"], times[way]) for way in ways if way != "interop"]
    cells = tuple(Cell(row.name, "", row.theirs, row.ratio, row.spread) for row in rows)
    return Line(name, "", rows[0].ours, cells)


def _transfers(rounds: int) -> Table:
    from .staging import Staging

    numbers = np.random.default_rng(0).random(_SIZE // 4, dtype="float32")
    t = torch.from_numpy(numbers).cuda()
    pinned = torch.from_numpy(numbers).pin_memory()
    staging = Staging()
    lines = (
        _line("device → host", _down(t, staging, pinned), numbers, rounds),
        _line("host → device", _up(numbers, staging, pinned), numbers, rounds),
    )
    rates = [_SIZE / 1e9 / (line.cells[-1].seconds or 1) for line in lines]
    note = _NOTE.format(down=rates[0], up=rates[1])
    return Table("gpu.transfers", "transfers of 1 GiB over the link", note, lines)


# ---------------------------------------------------------------------- trees

#: How many leaves a state dict has, and the bytes of each.
_TREES = {"64 × 4 MiB": (64, 1 << 22), "1,000 × 64 KiB": (1000, 1 << 16)}


def _trees(rounds: int) -> Table:
    rows = []
    for name, (count, nbytes) in _TREES.items():
        there = {f"layer {n}": torch.rand(nbytes // 4, device="cuda") for n in range(count)}
        here = interop.convert_tree(there, to="numpy")
        for way, ours, by_hand in (
            (
                "down",
                partial(interop.convert_tree, there, to="numpy"),
                lambda there=there: {name: t.cpu().numpy() for name, t in there.items()},
            ),
            (
                "up",
                partial(interop.convert_tree, here, to="torch", device="cuda"),
                lambda here=here: {name: torch.from_numpy(a).cuda() for name, a in here.items()},
            ),
        ):
            timers = [Timer(_synchronous(call)) for call in (ours, by_hand)]
            rows.append(compare(f"{name}, {way}", *timers, rounds=rounds))
    note = "State dicts of float32, between the device and NumPy's fresh memory."
    return Table("gpu.trees", "trees over the link", note, from_rows(rows, "by hand"))


# ---------------------------------------------------------------------- rows with aims


def outcomes(rounds: int = 9) -> Iterator[Outcome]:
    """Yield what every row with an aim shows; a row that fails says how."""
    names = _names()
    calls = [*_calls(), *_large_calls()]
    for name in RATIOS:
        call = next((call for call in calls if call.name == name), None)
        if call is None:
            yield Outcome(name, None, error="its library is not installed")
        else:
            yield _contained(name, partial(_ratio, names, call, rounds))
    del calls
    for name, prepare in _rates():
        yield _contained(name, partial(_rate, name, prepare))


def _contained(name: str, measure: Callable[[], Outcome]) -> Outcome:
    try:
        return measure()
    except Exception as error:  # noqa: BLE001 - the other rows are worth their time all the same
        return Outcome(name, None, error=f"{type(error).__name__}: {error}"[:200])
    finally:
        torch.cuda.synchronize()


def _ratio(names: dict[str, Any], call: _Call, rounds: int) -> Outcome:
    row = _compared(names, call, rounds)
    return Outcome(call.name, round(row.ratio, 3), row.theirs)


def _large_calls() -> list[_Call]:
    big = torch.ones(1 << 26, device="cuda")
    half = "convert(x, to='cupy', dtype='float16', allow='narrow'); torch.cuda.synchronize()"
    return [
        _Call("torch → cupy, 64 M elements", big, "convert(x, to='cupy')", "cupy.from_dlpack(x)"),
        _Call(
            "torch → cupy, cast of 64 M elements",
            big,
            half,
            "cupy.from_dlpack(x.half()); torch.cuda.synchronize()",
        ),
    ]


#: Returns a transfer, the bytes of it, and what is done by hand in its place, if anything.
_Prepare = Callable[[], tuple[Callable[[], Any], int, Callable[[], Any] | None]]


def _rate(name: str, prepare: _Prepare) -> Outcome:
    """Return the GB/s of a transfer, the median of three calls after a first one."""
    call, nbytes, by_hand = prepare()
    rates = []
    for function in (call, by_hand):
        if function is None:
            continue
        timer = Timer(_synchronous(function))
        timer.timeit(1)
        rates.append(round(nbytes / median(timer.repeat(3, 1)) / 1e9, 2))
    return Outcome(name, rates[0], rates[1] if by_hand else None)


def _rates() -> Iterator[tuple[str, _Prepare]]:
    """Yield the large transfers, by the names of their rows."""
    for size, nbytes in (("64 MiB", 1 << 26), ("1 GiB", 1 << 30)):
        for pair in ("torch → numpy", "cupy → numpy", "numpy → torch", "numpy → cupy"):
            yield f"{pair}, {size}", partial(_between, pair, nbytes)
    nbytes = 1 << 30
    yield "frozen Parameter → numpy, 1 GiB", partial(_of_parameter, nbytes)
    for name in ("warm array", "page-locked tensor", "page-locked array"):
        yield f"out= {name}, 1 GiB", partial(_into, name, nbytes)
    yield "device='cuda_host', 1 GiB", partial(_locked, nbytes)
    for name, (count, size_) in _TREES.items():
        shapes: list[tuple[int, ...]] = [(size_ // 4,)] * count
        yield f"{name}, down", partial(_tree, shapes, down=True)
        yield f"{name}, up", partial(_tree, shapes, down=False)
    yield "the shapes of a ResNet-50, down", partial(_tree, [*_resnet()], down=True)


def _between(pair: str, nbytes: int) -> tuple[Callable[[], Any], int, Callable[[], Any] | None]:
    target: Any = pair.partition(" → ")[2]
    host = np.ones(nbytes // 4, "float32")
    there = torch.ones(nbytes // 4, device="cuda")
    if pair == "torch → numpy":
        return lambda: interop.convert(there, to="numpy"), nbytes, lambda: there.cpu().numpy()
    if pair == "cupy → numpy":
        import cupy

        array = cupy.from_dlpack(there)
        return lambda: interop.convert(array, to="numpy"), nbytes, array.get
    by_hand = (lambda: torch.from_numpy(host).cuda()) if target == "torch" else None
    return lambda: interop.convert(host, to=target, device="cuda"), nbytes, by_hand


def _of_parameter(nbytes: int) -> tuple[Callable[[], Any], int, Callable[[], Any]]:
    weights = torch.ones(nbytes // 4, device="cuda")
    parameter = torch.nn.Parameter(weights, requires_grad=False)
    return (
        lambda: interop.convert(parameter, to="numpy"),
        nbytes,
        lambda: parameter.cpu().numpy(),
    )


def _into(name: str, nbytes: int) -> tuple[Callable[[], Any], int, Callable[[], Any]]:
    there = torch.ones(nbytes // 4, device="cuda")
    out: Any = np.zeros(nbytes // 4, "float32")
    tensor = torch.from_numpy(out)
    if name != "warm array":
        tensor = torch.empty(nbytes // 4, pin_memory=True)
        out = tensor.numpy() if name == "page-locked array" else tensor
    return lambda: interop.convert(there, out=out), nbytes, lambda: tensor.copy_(there)


def _locked(nbytes: int) -> tuple[Callable[[], Any], int, Callable[[], Any]]:
    there = torch.ones(nbytes // 4, device="cuda")
    return (
        lambda: interop.convert(there, to="torch", device="cuda_host"),
        nbytes,
        lambda: there.to("cpu", non_blocking=True),
    )


def _tree(
    shapes: list[tuple[int, ...]], *, down: bool
) -> tuple[Callable[[], Any], int, Callable[[], Any]]:
    there = {f"layer {n}": torch.ones(shape, device="cuda") for n, shape in enumerate(shapes)}
    nbytes = sum(tensor.nbytes for tensor in there.values())
    if down:
        return (
            partial(interop.convert_tree, there, to="numpy"),
            nbytes,
            lambda: {name: tensor.cpu().numpy() for name, tensor in there.items()},
        )
    here = {name: tensor.cpu().numpy() for name, tensor in there.items()}
    return (
        partial(interop.convert_tree, here, to="torch", device="cuda"),
        nbytes,
        lambda: {name: torch.from_numpy(array).cuda() for name, array in here.items()},
    )


def _resnet() -> Iterator[tuple[int, ...]]:
    """Yield the shapes of what a ResNet-50 has learnt: 247 leaves of float32, 98 MiB."""
    yield from ((64, 3, 7, 7), (1000, 2048), (1000,))
    stages = ((3, 64, 256, 64), (4, 128, 512, 256), (6, 256, 1024, 512), (3, 512, 2048, 1024))
    for blocks, middle, wide, before in stages:
        for block in range(blocks):
            inputs = wide if block else before
            yield from ((middle, inputs, 1, 1), (middle, middle, 3, 3), (wide, middle, 1, 1))
            yield from ((channels,) for channels in (middle, middle, wide) for _ in range(4))
            if not block:
                yield wide, inputs, 1, 1


def tables(only: Collection[str] | None = None, rounds: int = 21) -> list[Result]:
    """Return the tables of the device, or a listing that says why there are none."""
    reason = missing()
    if reason:
        note = f"Not run here, since there is no CUDA device: {reason}."
        return [Listing("gpu", "on a CUDA device", note)]
    return [_hand_offs(only, rounds), _transfers(min(7, rounds)), _trees(min(7, rounds))]


if __name__ == "__main__":
    import sys

    from .device_check import main

    sys.exit(main())
