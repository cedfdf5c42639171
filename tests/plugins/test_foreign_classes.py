"""Classes that no plugin knows: what a refusal says to do with a value of theirs leads on."""

from __future__ import annotations

import argparse
import array
import collections
import ctypes
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import hashlib
import io
import ipaddress
import logging
import pathlib
import queue
import random
import re
import struct
import threading
import types
import uuid
import warnings
import weakref
import zoneinfo
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import interop
from interop.errors import InteropError
from tests.cases import together

pd = pytest.importorskip("pandas", reason="pandas is not installed here")
pl = pytest.importorskip("polars", reason="Polars is not installed here")
pa = pytest.importorskip("pyarrow", reason="PyArrow is not installed here")
scipy = pytest.importorskip("scipy", reason="SciPy is not installed here")
torch = pytest.importorskip("torch", reason="torch is not installed here")

NUMBERS = np.arange(3.0)


class Slots:
    """A value whose one array stands in a slot."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers = NUMBERS


class Yields:
    """A value that is gone through."""

    def __iter__(self) -> Any:
        return iter([1.0, 2.0])


class Raises:
    """A value none of whose attributes can be read."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("not today")


class WithoutText:
    """A value that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("not today")


@dataclasses.dataclass
class Data:
    """A dataclass with an array."""

    numbers: Any = dataclasses.field(default_factory=lambda: NUMBERS)


class Color(enum.Enum):
    """An enumeration of no numbers."""

    RED = "red"


class Level(enum.IntEnum):
    """An enumeration of numbers."""

    LOW = 1


def scipys() -> dict[str, Callable[[], Any]]:
    """Return what SciPy has beside sparse arrays."""
    from scipy.interpolate import CubicSpline
    from scipy.sparse.linalg import aslinearoperator
    from scipy.spatial import KDTree
    from scipy.spatial.transform import Rotation
    from scipy.stats import norm

    return {
        "a linear operator": lambda: aslinearoperator(np.eye(2)),
        "a spline": lambda: CubicSpline(NUMBERS, NUMBERS),
        "a tree of points": lambda: KDTree(np.eye(2)),
        "a rotation": Rotation.identity,
        "a distribution": norm,
    }


def _optimizer() -> Any:
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.Adam([parameter])
    parameter.grad = torch.ones(1)
    optimizer.step()
    return optimizer


def torchs() -> dict[str, Callable[[], Any]]:
    """Return what torch has beside tensors."""
    data = torch.utils.data
    return {
        "a size": lambda: torch.ones(2, 3).size(),
        "a dtype of torch's": lambda: torch.float32,
        "a device": lambda: torch.device("cpu"),
        "a generator of torch's": torch.Generator,
        "a module": lambda: torch.nn.Linear(2, 2),
        "an optimizer": _optimizer,
        "a dataset of tensors": lambda: data.TensorDataset(torch.ones(2)),
        "a loader": lambda: data.DataLoader(data.TensorDataset(torch.ones(2))),
        "a storage": lambda: torch.ones(2).untyped_storage(),
        "a distribution of torch's": lambda: torch.distributions.Normal(0, 1),
        "a packed sequence": lambda: torch.nn.utils.rnn.pack_sequence([torch.ones(2)]),
    }


#: By name, what makes a value of each class.
CLASSES: dict[str, Callable[[], Any]] = {
    **scipys(),
    **torchs(),
    "UserList": lambda: collections.UserList([1.0, 2.0]),
    "UserDict": functools.partial(collections.UserDict, a=NUMBERS),
    "ChainMap": functools.partial(collections.ChainMap, {"a": NUMBERS}),
    "keys": {1: "a"}.keys,
    "values": {"a": 1}.values,
    "a generator": lambda: (n for n in (1, 2)),
    "an iterator": lambda: iter([1]),
    "zip": lambda: zip([1], strict=True),
    "map": lambda: map(int, [1]),
    "a range": lambda: range(3),
    "a set": lambda: {1, 2},
    "a queue": queue.Queue,
    "a namespace": lambda: types.SimpleNamespace(a=NUMBERS),
    "a module of Python's": lambda: types,
    "a function": lambda: scipys,
    "a builtin": lambda: len,
    "a partial": lambda: functools.partial(int),
    "a class": lambda: int,
    "a member": lambda: Color.RED,
    "a number with a name": lambda: Level.LOW,
    "a dataclass": Data,
    "slots": Slots,
    "an iterable": Yields,
    "no attributes": Raises,
    "no text": WithoutText,
    "a weak reference": lambda: weakref.ref(Yields),
    "a lock": threading.Lock,
    "a thread": threading.current_thread,
    "a logger": logging.getLogger,
    "a path": lambda: pathlib.Path("numbers"),
    "a stream of bytes": lambda: io.BytesIO(b"ab"),
    "a stream of text": lambda: io.StringIO("1"),
    "a struct": lambda: struct.Struct("d"),
    "a random generator": lambda: random.Random(1),
    "a time zone": lambda: zoneinfo.ZoneInfo("UTC"),
    "a date": lambda: dt.datetime(2020, 1, 1),
    "a duration": lambda: dt.timedelta(1),
    "a UUID": lambda: uuid.UUID(int=1),
    "a decimal": lambda: decimal.Decimal("1.5"),
    "a fraction": lambda: fractions.Fraction(1, 2),
    "an address": lambda: ipaddress.ip_address("127.0.0.1"),
    "an error": lambda: ValueError("x"),
    "a slice": lambda: slice(1),
    "an ellipsis": lambda: ...,
    "None": lambda: None,
    "text": lambda: "numbers.npy",
    "bytes": lambda: b"bytes",
    "a digest": hashlib.sha256,
    "an array of ctypes": lambda: (ctypes.c_double * 3)(1, 2, 3),
    "a number of ctypes": lambda: ctypes.c_double(2.0),
    "array.array": lambda: array.array("d", [1]),
    "a parser": argparse.ArgumentParser,
    "nditer": lambda: np.nditer(NUMBERS),
    "a polynomial": lambda: np.polynomial.Polynomial([1, 2]),
    "a generator of NumPy's": np.random.default_rng,
    "a dtype": lambda: np.dtype("f4"),
    "a flat iterator": lambda: NUMBERS.flat,
    "limits": lambda: np.finfo("f4"),
    "a group": lambda: pd.DataFrame({"a": [1]}).groupby("a"),
    "a window": lambda: pd.Series([1.0]).rolling(1),
    "a timestamp": lambda: pd.Timestamp("2020"),
    "an interval": lambda: pd.Interval(0, 1),
    "a lazy frame": lambda: pl.LazyFrame({"a": [1]}),
    "an expression": functools.partial(pl.col, "a"),
    "a dtype of Polars'": lambda: pl.Float64,
    "a dtype as an object": pl.Float64,
    "a schema": lambda: pa.schema([("a", pa.int8())]),
    "a buffer": lambda: pa.py_buffer(b"abc"),
}

#: What is said of values in which nothing converts, or of which only the author knows what does.
LEFT = (
    *("pass the arrays in it, or register a Format.", "there is nothing to convert."),
    *("load it, and pass what that returns.", "call it, and pass what it returns."),
    *("pass a value of the class, not the class itself.", "pass an array, and the module as to=."),
    "make numbers of the text first, or describe a value with interop.make_spec.",
    "or pass a plain array instead.",
)


def advised(value: Any, text: str) -> Any:
    """Return what a refusal says to convert, and whether it is a tree."""
    if "convert_tree(vars(x), ...)" in text:
        return vars(value), True
    if "convert_tree converts the arrays in its state_dict()" in text:
        return value.state_dict(), True
    if "convert_tree" in text:
        return value, True
    if "make a list of it first" in text:
        return list(value), False
    if "make a float of it first" in text:
        return float(value), False
    if "convert each item that it yields" in text:
        return next(iter(value)), False
    said = re.search(r"convert (?:what its (\w+)\(\) returns|(x\.\w+|x\[[:.]+\]))", text)
    assert said, text
    return (getattr(value, said[1])() if said[1] else eval(said[2], {"x": value})), False


def leaves(tree: Any) -> Iterator[Any]:
    """Yield what a tree holds."""
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    elif dataclasses.is_dataclass(tree):
        tree = list(vars(tree).values())
    if not isinstance(tree, (list, tuple)):
        yield tree
        return
    for child in tree:
        yield from leaves(child)


def refusal(value: Any, to: Any) -> str:
    """Return what is said of a value that is not converted, or ""."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of what NumPy does with such values
        try:
            interop.convert(value, to=to)
        except InteropError as error:
            return str(error)
    return ""


@together("name", CLASSES)
@together("to", ["numpy", "torch"])
def test_what_a_refusal_says_of_a_foreign_value_leads_on(name: str, to: str) -> None:
    """A value is converted, or refused with what converts, or has nothing that any call could take."""
    value = CLASSES[name]()
    text = refusal(value, to)
    if not text:
        return
    if text.endswith(LEFT):
        attributes = getattr(value, "__dict__", {}).values()
        assert not any(isinstance(attribute, np.ndarray) for attribute in attributes)
        return
    part, is_tree = advised(value, text)
    if is_tree:
        kind = np.ndarray if to == "numpy" else torch.Tensor
        assert any(isinstance(leaf, kind) for leaf in leaves(interop.convert_tree(part, to=to)))
        return
    assert type(part) is not type(value), text
    then = refusal(part, to)
    assert not then or "is not a dtype of numbers" in then
