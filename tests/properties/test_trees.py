"""Random trees of containers of many kinds: no array comes back unconverted, and nothing is lost."""

from __future__ import annotations

import gc
import operator
from collections import ChainMap, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass, make_dataclass
from functools import partial
from importlib.util import find_spec
from random import Random
from types import FunctionType, MappingProxyType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import interop
from interop.errors import HandOffError, InteropError, UnknownValueError
from tests.properties.effort import SEED, count

_pair = namedtuple("_pair", "x y")
_record = make_dataclass("_record", ["x", "y"])
_frozen = make_dataclass("_frozen", ["x", "y"], frozen=True)


class _Keyed:
    """What is asked by keys, and is no mapping; a copy of it takes items."""

    def __init__(self, contents: dict[str, Any]) -> None:
        self._contents = contents

    def keys(self) -> list[str]:
        return list(self._contents)

    def __getitem__(self, name: str) -> Any:
        return self._contents[name]

    def __copy__(self) -> _Keyed:
        return _Keyed(dict(self._contents))

    def __setitem__(self, name: str, value: Any) -> None:
        self._contents[name] = value


class _Table(dict):
    """A dict of a type of its own."""


@dataclass(init=False, eq=False)
class _Columns(dict):
    """A dict with a field."""

    y: Any

    def __init__(self, a: Any, b: Any) -> None:
        super().__init__(x=a)
        self.y = b


@dataclass(init=False, eq=False)
class _Rows(list):
    """A list with a field."""

    y: Any

    def __init__(self, a: Any, b: Any) -> None:
        super().__init__([a])
        self.y = b


def _default(a: Any, b: Any) -> Any:
    made = defaultdict(list)
    made.update(x=a, y=b)
    return made


#: How a container of each kind is made around two values.
KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "dict": lambda a, b: {"x": a, "y": b},
    "OrderedDict": lambda a, b: OrderedDict(x=a, y=b),
    "defaultdict": _default,
    "a dict of its own": lambda a, b: _Table(x=a, y=b),
    "UserDict": lambda a, b: UserDict(x=a, y=b),
    "ChainMap": lambda a, b: ChainMap({"x": a}, {"y": b}),
    "proxy": lambda a, b: MappingProxyType({"x": a, "y": b}),
    "keyed": lambda a, b: _Keyed({"x": a, "y": b}),
    "list": lambda a, b: [a, b],
    "UserList": lambda a, b: UserList([a, b]),
    "deque": lambda a, b: deque([a, b], maxlen=2),
    "tuple": lambda a, b: (a, b),
    "named tuple": _pair,
    "dataclass": _record,
    "frozen": _frozen,
    "a dict with fields": _Columns,
    "a list with fields": _Rows,
    "namespace": lambda a, b: SimpleNamespace(x=a, y=b),
}
if find_spec("attrs"):
    import attrs

    KINDS["attrs"] = attrs.make_class("_Attrs", ["x", "y"], frozen=True)
if find_spec("pydantic"):
    import pydantic

    class _Model(pydantic.BaseModel):
        x: Any
        y: Any

    KINDS["pydantic"] = lambda a, b: _Model.model_construct(x=a, y=b)

#: What hides arrays from a tree, which is then refused.
HIDING: dict[str, Callable[[Any], Any]] = {
    "generator": lambda a: (item for item in [a]),
    "map": lambda a: map(id, [a]),
    "values": lambda a: {"x": a}.values(),
    "items": lambda a: {"x": a}.items(),
    "values of lists": lambda a: {"x": [{"y": a}]}.values(),
    "keys": lambda a: {(1, (a,)): 0}.keys(),
    "set": lambda a: {a},
    "set of tuples": lambda a: {("x", (a,))},
    "set of views": lambda a: frozenset({frozenset({(a,)})}),
    "model": lambda a: torch.nn.ParameterList([a]),
}

_OTHERS = (1, 2.5, "text", None, np.array(["a"]), np.str_("b"), {"n": 1}, ())


def _tree(random: Random, depth: int, tensors: list[torch.Tensor]) -> Any:
    """Return a random tree, and put the tensors in it into a list."""
    if depth == 0 or random.random() < 0.15:
        if random.random() < 0.3:
            return random.choice(_OTHERS)
        tensors.append(torch.full((2,), float(len(tensors))))
        return tensors[-1]
    make = KINDS[random.choice(sorted(KINDS))]
    return make(_tree(random, depth - 1, tensors), _tree(random, depth - 1, tensors))


def _reached(root: Any, kind: type) -> list[Any]:
    """Return the values of a type that can be reached from a value, in no order."""
    seen, values, reached = set(), [root], []
    while values:
        value = values.pop()
        if id(value) in seen or isinstance(value, (type, ModuleType, FunctionType)):
            continue
        seen.add(id(value))
        if isinstance(value, kind):
            reached.append(value)
        else:
            values += gc.get_referents(value)
    return reached


@pytest.mark.parametrize("seed", range(count(60)))
def test_no_array_comes_back_unconverted(seed: int) -> None:
    """Every tensor of a tree is an array over its memory in the result, which holds no tensor."""
    tensors: list[torch.Tensor] = []
    tree = _tree(Random(SEED + seed), 4, tensors)
    result = interop.convert_tree(tree, to="numpy")
    assert _reached(result, torch.Tensor) == []
    numbers = [a for a in _reached(result, np.ndarray) if a.dtype.kind == "f"]
    assert {a.ctypes.data for a in numbers} == {t.data_ptr() for t in tensors}
    assert {id(t) for t in _reached(tree, torch.Tensor)} == {id(t) for t in tensors}


@pytest.mark.parametrize("seed", range(count(30)))
def test_what_hides_arrays_is_refused_wherever_it_stands(seed: int) -> None:
    """One container that cannot be opened makes the whole tree refused, by the path to it."""
    random, tensors = Random(SEED + seed), []
    hiding = HIDING[random.choice(sorted(HIDING))](torch.ones(2))
    tree: Any = hiding
    levels = random.randrange(4)
    for _ in range(levels):
        make = KINDS[random.choice(sorted(KINDS.keys() - {"ChainMap", "proxy", "keyed"}))]
        tree = make(_tree(random, 1, tensors), tree)
    with pytest.raises(UnknownValueError) as caught:
        interop.convert_tree(tree, to="numpy")
    assert len(caught.value.where.split("/")) == max(levels, 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda a: slice(a, None),
        lambda a: slice(0, [a]),
        lambda a: ValueError("x", a),
        lambda a: partial(print, a),
        lambda a: partial(print, x={"y": a}),
        lambda a: a.add,
        lambda a: (lambda: a).__closure__[0],
        operator.itemgetter,
        lambda a: _Parts([a]),
    ],
)
def test_a_tree_that_is_one_leaf_with_an_array_is_refused(make: Callable[[Any], Any]) -> None:
    """However the root holds an array, in a slot of C or a list, nothing comes back unconverted."""
    value = make(torch.ones(2))
    with pytest.raises(UnknownValueError):
        interop.convert_tree(value, to="numpy")
    assert interop.convert_tree([value, 1], to="numpy")[0] is value


class _Parts:
    """Arrays in a list among the attributes."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts


class _Broken:
    """An array that cannot be read."""

    dtype, shape = np.dtype("f8"), (2,)

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        raise OSError("closed")


@pytest.mark.parametrize("seed", range(count(40)))
def test_nothing_is_lost_if_a_leaf_fails(seed: int) -> None:
    """With consume=True, every number of the tree is still in it after an error, converted or not."""
    random, tensors = Random(SEED + seed), []
    tree = {"a": _tree(random, 3, tensors), "b": _Broken(), "c": _tree(random, 3, tensors)}
    expected = sorted(float(t[0]) for t in tensors)
    del tensors
    with pytest.raises(HandOffError, match=r"^b: "):
        interop.convert_tree(tree, to="numpy", dtype="float16", consume=True)
    assert list(tree) == ["a", "b", "c"]
    left = _reached(tree, (torch.Tensor, np.ndarray))
    assert sorted(float(x[0]) for x in left if "f" in str(x.dtype)) == expected


def test_mappings_that_count_their_reads_are_read_once() -> None:
    """A lazy mapping is asked once for each of its values."""
    asked: list[str] = []

    class Lazy(Mapping):
        def __init__(self) -> None:
            self.given: dict[str, Any] = {}

        def __copy__(self) -> Lazy:
            return Lazy()

        def __setitem__(self, name: str, value: Any) -> None:
            self.given[name] = value

        def __getitem__(self, name: str) -> Any:
            asked.append(name)
            return np.ones(2)

        def __iter__(self) -> Any:
            return iter("ab")

        def __len__(self) -> int:
            return 2

    result = interop.convert_tree({"m": Lazy()}, to="torch")["m"]
    assert asked == ["a", "b"]
    assert [type(x) for x in result.given.values()] == [torch.Tensor] * 2
    with pytest.raises(InteropError):
        interop.convert_tree(Lazy(), to="torch", copy=False, dtype="float16")
