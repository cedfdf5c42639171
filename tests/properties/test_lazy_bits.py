"""torch's lazy bits: no cast, size, layout or `out=` loses a conjugation or a negation."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import interop
from interop.errors import InteropError

from .effort import SEED, count

torch = pytest.importorskip("torch")

#: What torch negates, and what has no sign to negate.
_SIGNED = (
    "uint8 int8 int16 int32 int64 bfloat16 float16 float32 float64 complex32 complex64 complex128"
).split()
_TARGETS = [
    *_SIGNED,
    *"bool uint16 uint32 uint64 float8_e4m3fn float8_e5m2 float8_e8m0fnu".split(),
]
_BITS = ("plain", "conj", "neg", "both")
_LAYOUTS = ("C", "C", "F", "strided", "offset", "expanded")
#: Sizes around those from which torch has a team (32,768 elements), asks its vectorized loops for
#: more than one round, and interop allocates by NumPy (4 MiB) or leaves the team alone (32 MiB).
_SMALL = (0, 1, 2, 6, 65, 1000)
_LARGE = (2**15, 2**15 + 1, 70_000, 2**18, 2**19 + 1, 2**20, 2**20 + 1, 2**21 + 2)
_WHOLE = (0.0, 1.0, 2.0, 3.0, 100.0)
_SPECIAL = (0.0, -0.0, 1.0, 2.5, -3.0, 100.0, float("inf"), float("-inf"), 1e-9)


def _plain(dtype: str, size: int, numbers: tuple[float, ...]) -> Any:
    """Return numbers of a dtype, over and over."""
    target = getattr(torch, dtype)
    length = 2 * size if target.is_complex else size
    flat = torch.tensor(numbers, dtype=torch.float64).repeat(length // len(numbers) + 1)[:length]
    return (torch.view_as_complex(flat.view(size, 2)) if target.is_complex else flat).to(target)


def _numbers(source: str, target: str, bits: str) -> tuple[float, ...]:
    """Return numbers of one dtype for which C, and so torch, has an answer in the other."""
    if not ("float" in source or "complex" in source):
        return _WHOLE
    if "float" in target or "complex" in target:
        return _SPECIAL
    return tuple(-x for x in _WHOLE) if bits in ("neg", "both") else _WHOLE


def _laid_out(value: Any, layout: str) -> Any:
    """Return numbers in C order, in Fortran's, with steps, from the second on, or one row's twice."""
    rows = 2 if len(value) % 2 == 0 else 1
    plane = value.reshape(rows, -1)
    if layout == "F":
        return plane.t().contiguous().t()
    if layout == "strided":
        return torch.stack([plane, plane], -1)[..., 0]
    if layout == "offset":
        return plane[:, 1:]
    return plane[:1].expand(plane.shape) if layout == "expanded" else plane


def _lazy(value: Any, bits: str) -> Any:
    """Return a view of a tensor with lazy bits."""
    if bits in ("conj", "both"):
        value = value.conj()
    return torch._neg_view(value) if bits in ("neg", "both") else value


def _at_once(value: Any, bits: str) -> Any:
    """Return what the bits stand for, one part and one sign at a time, and without any bit."""
    result = value.clone()
    parts = [result.real, result.imag] if value.is_complex() else [result]
    signs = [bits in ("neg", "both"), bits in ("neg", "conj")]
    for part, is_negated in zip(parts, signs, strict=False):
        if is_negated:
            part.neg_()
    return result


def _bytes(value: Any) -> tuple[Any, ...]:
    """Return the dtype, shape and bytes of a result, whose bits are carried out."""
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, np.ascontiguousarray(value).tobytes()
    if value.is_complex():
        parts = torch.stack([torch.real(value).resolve_neg(), torch.imag(value).resolve_neg()], -1)
    else:
        parts = value.resolve_neg()
    flat = parts.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)
    return str(value.dtype), tuple(value.shape), flat.numpy().tobytes()


def _outcome(call: Callable[[], Any]) -> object:
    """Return the bytes of what a call returns, or the class of the error that it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        try:
            return _bytes(call())
        except InteropError as error:
            return type(error).__name__


def _results(value: Any, dtype: str) -> Iterator[Callable[[], Any]]:
    for target, copy in itertools.product(("torch", "numpy"), (None, True)):
        yield partial(interop.convert, value, to=target, dtype=dtype, copy=copy)
    yield lambda: interop.convert_tree([value], to="torch", dtype=dtype)[0]


def _torch_outs(value: Any, dtype: str) -> Iterator[Callable[[], Any]]:
    for bits, layout in itertools.product(_BITS, ("C", "strided")):
        empty = _laid_out(torch.zeros(value.numel(), dtype=getattr(torch, dtype)), layout)
        if empty.is_complex() or bits == "plain" or (bits == "neg" and dtype in _SIGNED):
            yield partial(interop.convert, value, out=_lazy(empty, bits).view(value.shape))


def _numpy_outs(value: Any, dtype: str) -> Iterator[Callable[[], Any]]:
    if dtype == "complex32":
        return
    name = interop.convert(torch.zeros(1, dtype=getattr(torch, dtype)), to="numpy").dtype
    for order in ("C", "F"):
        yield partial(interop.convert, value, out=np.zeros(value.shape, name, order))


_WRITERS = {"result": _results, "out= torch": _torch_outs, "out= NumPy": _numpy_outs}


def _cases(sizes: tuple[int, ...], number: int) -> list[tuple[Any, ...]]:
    """Return cases of every pair of dtypes, with bits, layouts and sizes drawn for each."""
    drawn = random.Random(SEED)
    pairs = list(itertools.product(_SIGNED, _TARGETS))
    drawn.shuffle(pairs)
    # torch itself has a path of its own for these, and only in C order.
    pairs = [("float16", "float32"), ("float32", "float16"), *pairs]
    return [
        (*pairs[index % len(pairs)], drawn.choice(_LAYOUTS), drawn.choice(sizes))
        for index in range(number)
    ]


def _check(source: str, target: str, layout: str, size: int) -> int:
    """Compare a case's outcomes; return how many results there were."""
    converted = 0
    for bits in _BITS if source.startswith("complex") else ("plain", "neg"):
        plain = _laid_out(_plain(source, size, _numbers(source, target, bits)), layout)
        values = _lazy(plain, bits), _at_once(plain, bits)
        for kind, writers in _WRITERS.items():
            pairs = zip(*(writers(value, target) for value in values), strict=True)
            for index, calls in enumerate(pairs):
                outcome, expected = map(_outcome, calls)
                case = f"{kind} {index} of {bits} {source} to {target}, {layout}, {size} elements"
                assert outcome == expected, case
                converted += isinstance(expected, tuple)
    return converted


@pytest.fixture
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give torch one thread, or a team."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "ComplexHalf support", UserWarning)
        yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize(
    ("sizes", "number", "threads"),
    [
        pytest.param(_SMALL, 50, 1, id="small"),
        pytest.param(_LARGE, 3, 1, id="large, by one thread"),
        pytest.param(_LARGE, 3, 2, id="large, by a team"),
    ],
    indirect=["threads"],
)
def test_lazy_bits_are_carried_out_before_a_cast(sizes: tuple[int, ...], number: int) -> None:
    """The bytes are those of the tensor that the bits stand for, whoever writes them, and where."""
    converted = [_check(*case) for case in _cases(sizes, count(number))]
    assert sum(map(bool, converted)) > 0.9 * len(converted)
