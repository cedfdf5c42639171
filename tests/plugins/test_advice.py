"""The advice of refusals: what they name exists, works, and keeps the numbers right."""

from __future__ import annotations

import dataclasses
import re
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from functools import partial
from importlib import import_module
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.optimize
import scipy.sparse.linalg
import scipy.spatial
import torch
import xarray as xr

import interop
from interop.errors import InteropError, RefusedError, UnknownValueError
from tests.cases import together
from tests.plugins.values import objects


def locked(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def test_the_last_line_is_the_safe_way() -> None:
    """Where the nearest route needs a permission and another only a copy, the copy stands last."""
    for value in (pd.Series([1.0, 2.0]), locked(np.ones(2))):
        with pytest.raises(RefusedError) as caught:
            interop.convert(value, to="torch", copy=False)
        last = str(caught.value).splitlines()[-1]
        assert last == "The safe way is another: leave out copy=False."
        assert "a write reaches the owner's numbers, or ends the process" in str(caught.value)
        assert caught.value.effects == {"share_readonly"}
    with pytest.raises(RefusedError):
        interop.convert(np.ones(2, "f4"), to="jax", copy=False)


def test_hints_write_keywords_as_a_call_does() -> None:
    """The hints of all bundled formats are shown as they are declared."""
    hints = [
        (format_.name, hint)
        for format_ in interop.default._registry.loaded().formats.values()
        for hint in format_.limits.refusal_hints.values()
    ]
    assert len(hints) > 100
    assert [pair for pair in hints if re.search(r"\{\w+(:[\w.]+)?\}", pair[1])] == []


@pytest.mark.parametrize(
    ("value", "fill"),
    [
        (pd.Series([1, None], dtype="Int64"), "x.fillna"),
        (pd.Series([True, None], dtype="boolean"), "x.fillna"),
        (pl.Series([1, None]), "x.fill_null"),
        (pl.DataFrame({"a": [1, None]}), "x.fill_null"),
        (pa.array([1, None]), "x.fill_null"),
        (pa.chunked_array([[1, None]]), "x.fill_null"),
        (pa.table({"a": [1, None]}), "x['a'].fill_null"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_refusal_of_nulls_says_how_to_fill_them_first(value: Any, fill: str) -> None:
    """A refusal fills nulls before it drops them, says what dropped ones become, and both work."""
    with pytest.raises(RefusedError) as caught:
        interop.convert(value, to="torch")
    *_, advice, last = str(caught.value).splitlines()
    assert f"{fill}(...) says what nulls become" in advice
    assert "With drop_mask nulls become NaN in floats, but 0 in integers and False in" in advice
    assert last == "To permit the nearest, pass allow={'drop_mask'}, dtype='float64'."
    result = interop.convert(value, to="torch", dtype="float64", allow="drop_mask")
    assert result.isnan().reshape(-1).tolist() == [False, True]


@pytest.mark.parametrize(
    ("series", "name", "move"),
    [
        (pd.Series(["a", "b"], dtype="category"), r"cat\.codes", lambda x: x.cat.codes),
        (
            pd.Series(pd.to_datetime(["2026-01-01"])),
            r"astype\('int64'\)",
            lambda x: x.astype("int64"),
        ),
        (pd.Series(["1", "2"], dtype=object), r"to_numeric", pd.to_numeric),
    ],
)
def test_the_moves_of_pandas_work(series: Any, name: str, move: Any) -> None:
    """A Series of no numbers is refused with calls, each of which makes numbers of its kind."""
    with pytest.raises(RefusedError, match=name):
        interop.convert(series, to="torch")
    assert interop.convert(move(series), to="torch").shape == series.shape


@pytest.mark.parametrize(
    ("array", "cast", "move"),
    [
        (pa.array(["1.5"]), r"x\.cast\('float64'\)", lambda x: x.cast("float64")),
        (pa.array([1], pa.timestamp("s")), r"x\.cast\('int64'\)", lambda x: x.cast("int64")),
        (pa.array([1], pa.duration("s")), r"x\.cast\('int64'\)", lambda x: x.cast("int64")),
        (pa.array([1], pa.date64()), r"x\.cast\('int64'\)", lambda x: x.cast("int64")),
        (pa.array([1], pa.date32()), r"x\.cast\('int32'\)", lambda x: x.cast("int32")),
        (pa.array([1], pa.time32("s")), r"x\.cast\('int32'\)", lambda x: x.cast("int32")),
        (pa.array([1], pa.time64("us")), r"x\.cast\('int64'\)", lambda x: x.cast("int64")),
        (pa.array(["a"]).dictionary_encode(), r"x\.indices", lambda x: x.indices),
        (pa.array([2]).dictionary_encode(), r"x\.dictionary", lambda x: x.dictionary_decode()),
    ],
)
def test_the_moves_of_arrow_work(array: Any, cast: str, move: Any) -> None:
    """An array and a chunked array of no numbers are refused with a cast that works."""
    for value in (array, pa.chunked_array([array])):
        with pytest.raises(RefusedError, match=cast):
            interop.convert(value, to="torch")
    assert interop.convert(move(array), to="torch").shape == (1,)


def test_the_moves_of_arrows_tables_work() -> None:
    """A table with text is refused with calls of which one leaves the text out, and one casts it."""
    x = pa.table({"a": [1.0], "t": ["1.5"]})
    with pytest.raises(RefusedError, match=r"x\.select\(\['a'\]\).*x\['a'\]\.cast\('float64'\)"):
        interop.convert(x, to="torch")
    assert interop.convert(x.select(["a"]), to="torch").tolist() == [[1]]
    assert interop.convert(x["t"].cast("float64"), to="torch").tolist() == [1.5]


@pytest.mark.extra("datasets")
def test_the_moves_of_a_column_of_datasets_work() -> None:
    """A refusal that names a cast of Arrow's says what makes the column one of Arrow's."""
    datasets = import_module("datasets")
    column = datasets.Dataset.from_dict({"n": ["1", "2"]})["n"]
    with pytest.raises(RefusedError, match=r"x\.cast\('float64'\)") as caught:
        interop.convert(column, to="torch")
    (made,) = re.findall(r"In this advice x is what (.*) returns\.$", str(caught.value))
    array = eval(made, {"interop": interop, "x": column})
    assert interop.convert(array.cast("float64"), to="torch").tolist() == [1, 2]


@pytest.mark.extra("awkward")
def test_the_move_of_text_of_awkward_works() -> None:
    """Text, alone and in lists, is refused with the function that reads the numbers in it."""
    ak = import_module("awkward")
    for strings in (["1", "2"], [["1"], ["2"]]):
        x = ak.Array(strings)
        with pytest.raises(RefusedError):
            interop.convert(x, to="numpy")
        numbers = interop.convert(ak.strings_astype(x, "float64"), to="numpy")
        assert numbers.reshape(-1).tolist() == [1, 2]


def test_the_moves_of_lists_of_several_shapes_work() -> None:
    """A list of matrices of several shapes is refused with what pads or converts each."""
    for module in (np, torch):
        x = [module.ones((2, 3)), module.ones((3, 2))]
        moves = r"numpy\.pad, torch\.nn\.functional\.pad, .* convert each \(interop\.convert_tree\)"
        with pytest.raises(InteropError, match=moves):
            interop.convert(x, to="torch")
        assert [tuple(a.shape) for a in interop.convert_tree(x, to="torch")] == [(2, 3), (3, 2)]
    padded = [np.pad(a, [(0, 3 - n) for n in a.shape]) for a in map(np.asarray, x)]
    assert interop.convert(padded, to="torch").sum(dim=(1, 2)).tolist() == [6, 6]


def test_the_move_of_records_with_gaps_works() -> None:
    """Records whose fields do not adjoin are refused with what makes an array of each field."""
    x = np.zeros(2, {"names": ["a"], "formats": ["f4"], "offsets": [4], "itemsize": 16})
    with pytest.raises(RefusedError):
        interop.convert(x, to="torch")
    assert interop.convert(x["a"], to="torch").tolist() == [0, 0]


#: Values that are refused, by what they are.
REFUSED: dict[str, Callable[[], Any]] = {
    "arrays as objects": lambda: objects(np.ones(2), np.zeros(2)),
    "ragged objects": lambda: objects(np.ones(2), np.zeros(3)),
    "text as objects": lambda: np.array(["1"], object),
    "decimals": lambda: np.array([Decimal(1)], object),
    "text": lambda: np.array(["1"]),
    "dates": lambda: np.array(["2026-01-01"], "datetime64[D]"),
    "records": lambda: np.zeros(2, [("name", "f4")]),
    "raw bfloat16": lambda: np.ones(2, ml_dtypes.bfloat16).view("V2"),
    "masked": lambda: np.ma.array([1, 2], mask=[True, False]),
    "keys": lambda: jax.random.key(0),
    "MaskedTensor": lambda: torch.masked.masked_tensor(torch.ones(1), torch.tensor([True])),
    "meta": lambda: torch.ones(1, device="meta"),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "module": lambda: torch.nn.Linear(1, 1),
    "optimizer": lambda: torch.optim.SGD([torch.nn.Parameter(torch.ones(1))]),
    "lazy frame": lambda: pl.LazyFrame({"a": [1]}),
    **{
        f"{kind.__name__} {name}": lambda kind=kind, make=make: kind(make())
        for kind in (pd.Series, pd.Index, pd.array)
        for name, make in {
            "of categories": lambda: pd.Categorical(["a"]),
            "of numbers as categories": lambda: pd.Categorical([20, 10]),
            "of text": lambda: pd.array(["1"], dtype="string"),
            "of objects": lambda: np.array(["1"], object),
            "of dates": lambda: pd.to_datetime(["2026-01-01"]),
            "of spans": lambda: pd.to_timedelta([1], "s"),
            "of periods": lambda: pd.period_range("2026", periods=1),
            "of intervals": lambda: pd.interval_range(0, 1),
            "with nulls": lambda: pd.array([1, None], dtype="Int64"),
        }.items()
    },
    "pandas frame": lambda: pd.DataFrame({"a": ["x"], "b": [1]}),
    "polars text": lambda: pl.Series(["1"]),
    "polars dates": lambda: pl.Series([date(2026, 1, 1)]),
    "polars nulls": lambda: pl.Series([1, None]),
    "polars frame": lambda: pl.DataFrame({"a": ["x"], "b": [1]}),
    "Arrow's text": lambda: pa.array(["1"]),
    "Arrow's nulls": lambda: pa.array([1, None]),
    "Arrow's dictionary": lambda: pa.array(["a"]).dictionary_encode(),
    "Arrow's table": lambda: pa.table({"a": [1], "b": [0.5]}),
}


enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

#: What advice names, beside the value `x`.
LIBRARIES = {
    name: import_module(name)
    for name in ("numpy", "pandas", "polars", "jax", "ml_dtypes", "torch", "interop")
}
TARGETS = ("torch", "numpy", "numpy.ma", "jax", "pyarrow", "pandas", "polars", "python")
REQUESTS: tuple[dict[str, Any], ...] = (
    *({}, {"dtype": "float64"}, {"dtype": "int32"}),
    *({"copy": False}, {"copy": "writable"}),
)
#: Values to which advice leaves something to fill in.
OPEN = {"meta": "data", "Arrow's table": "the columns to choose, or a schema"}

_KEYWORD = r"\w+=(?:\{[^}]*\}|'[^']*'|True|False)"
_PARENTHESES = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_CALL = rf"(?<![\w.'])(?:x|{'|'.join(LIBRARIES)})(?:\.[a-z_]\w*|{_PARENTHESES}|\['\w+'\])+"


def offered(text: str, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the requests that a message offers in the place of one."""
    for given in re.findall(rf"(?:pass|ask for|or|convert's) ({_KEYWORD}(?:, {_KEYWORD})*)", text):
        words: dict[str, Any] = eval(f"dict({given})")
        both = words.get("allow", set()) | request.get("allow", set())
        yield {**request, **words, **({"allow": both} if both else {})}
    for name in re.findall(r"leave out (\w+)=", text):
        yield {key: word for key, word in request.items() if key != name}
    for names in re.findall(r"ask for ([a-z_.]+(?: or [a-z_.]+)*)[.;](?:\s|$)", text):
        yield from ({**request, "to": name} for name in names.split(" or "))
    for names in re.findall(r"ask for one of these with dtype=: ([\w, ]+)", text):
        yield from ({**request, "dtype": name} for name in re.findall(r"\w+", names))


def written(text: str) -> Iterator[str]:
    """Yield the calls that a message writes out, without those in which something is left open."""
    calls = [call for call in re.findall(_CALL, text) if "jax.config" not in call]
    yield from (call for call in calls if "..." not in call and re.search(r"[(\[]", call))
    yield from re.findall(r"\bx(?:\.[a-z_]\w*)+(?![\w.(])", text)
    yield from (f"x.{name}()" for name in re.findall(r"\bits ([a-z_]\w*)\(\)", text))


def leads_on(value: Any, request: dict[str, Any], moves: int = 4) -> bool:
    """Tell whether a value is converted by a request, or by following what refusals advise.

    Whatever a message names exists, and each request that it offers is another one.
    """
    try:
        (interop.convert_tree if isinstance(value, dict) else interop.convert)(value, **request)
    except InteropError as error:
        text = str(error)
    else:
        return True
    is_route = "; the nearest" in text or "is not an array type" in text
    advice = text.partition("; " if is_route else ": ")[2] or text
    for path in re.findall(r"\bx((?:\.[a-z_]\w*)+)", advice):
        attrgetter(path[1:])(value)
    for module, path in re.findall(rf"(?<![\w.'])({'|'.join(LIBRARIES)})((?:\.\w+)+)", advice):
        attrgetter(path[1:])(LIBRARIES[module])
    if "jax.config.update('jax_enable_x64', True)" in advice and moves:
        with enable_x64(True):
            return leads_on(value, request, moves - 1)
    requests = list(offered(advice, request))
    assert request not in requests, text
    if moves and any(leads_on(value, other, moves - 1) for other in requests):
        return True
    for call in written(advice) if moves else ():
        try:
            made = eval(call, {**LIBRARIES, "x": value})
        except (ValueError, TypeError):  # it is for values with other contents
            continue
        if leads_on(made, request, moves - 1):
            return True
    return False


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The PyTorch API of .* tensors is in prototype")
@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors is in prototype")
@together("name", sorted(REFUSED.keys() - OPEN))
def test_the_advice_of_every_refusal_leads_on(name: str) -> None:
    """Whoever does what messages say gets a result, whatever the target and the request are."""
    for to in TARGETS:
        for request in REQUESTS:
            assert leads_on(REFUSED[name](), {"to": to, **request}), (to, request)


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors is in prototype")
@together(
    "name, move, expected",
    [
        ("text as objects", "x.astype(float)", [1]),
        ("raw bfloat16", "x.view(ml_dtypes.bfloat16)", [1, 1]),
        ("Series of numbers as categories", "x.astype(x.cat.categories.dtype)", [20, 10]),
        ("Index of numbers as categories", "x.astype(x.categories.dtype)", [20, 10]),
        ("keys", "jax.random.key_data(x)", [0, 0]),
        ("MaskedTensor", "x.get_data()", [1]),
    ],
)
def test_the_calls_of_a_refusal_make_its_numbers(name: str, move: str, expected: Any) -> None:
    """A call that a refusal writes out gives what converts to the value's numbers.

    A library that holds the value, but casts none of it, is no reason to leave the call out.
    """
    value = REFUSED[name]()
    requests: list[dict[str, Any]] = [{"to": "numpy"}]
    if not isinstance(value, torch.Tensor):
        requests = [{"to": "torch"}, {"to": interop.spec(value).format, "dtype": "float32"}]
    for request in requests:
        with pytest.raises(RefusedError, match=re.escape(move)):
            interop.convert(value, **request)
    result = eval(move, {"x": value, "numpy": np, "ml_dtypes": ml_dtypes, "jax": jax})
    assert interop.convert(result, to="numpy").tolist() == expected


@pytest.mark.parametrize(
    "value",
    [pd.Series([1, None], dtype="Int64"), pl.Series([1, None]), pa.array([1, None])],
    ids=lambda value: type(value).__module__,
)
def test_a_zero_for_a_null_is_what_a_refusal_offers_last(value: Any) -> None:
    """Where nulls would become 0, the keyword for it stands after the ways to fill or keep them."""
    with pytest.raises(RefusedError) as caught:
        interop.convert(value, to="torch", dtype="int32")
    *lines, last = str(caught.value).splitlines()
    assert last == "To permit the nearest, pass allow={'drop_mask'}."
    assert not any("allow=" in line for line in lines)
    assert "says what nulls become, and to='numpy.ma' keeps them" in lines[-1]
    result = interop.convert(value, to="torch", dtype="int32", allow="drop_mask")
    assert result.tolist() == [1, 0]


def test_nulls_become_nan_where_a_refusal_is_followed() -> None:
    """For integers with nulls both keywords are offered; without a dtype with NaN, a null is 0."""
    for value in (pd.array([1, None], dtype="Int64"), pl.Series([1, None]), pa.array([1, None])):
        with pytest.raises(RefusedError) as caught:
            interop.convert(value, to="torch")
        keywords = {"allow": {"drop_mask"}, "dtype": "float64"}
        assert "permit the nearest, pass allow={'drop_mask'}, dtype='float64'." in str(caught.value)
        assert interop.convert(value, to="torch", **keywords).isnan().tolist() == [False, True]
    masked = np.ma.array([1, 2], mask=[True, False])  # has numbers under its mask
    with pytest.raises(RefusedError):
        interop.convert(masked, to="torch")


class Foreign:
    """A value of a library that nobody has registered, with the attributes of some such library."""


def foreign(**attributes: Any) -> Any:
    return type("Foreign", (Foreign,), attributes)()


def _same(self: Any, key: Any) -> Any:
    return self


def _raising(self: Any, *args: Any) -> Any:
    raise OSError("the file is closed")


NUMBERS = np.arange(3.0)

#: Foreign values, and the call that gives what converts; None where nothing in the value does.
FOREIGN: dict[str, tuple[Callable[[], Any], str | None]] = {
    "times": (lambda: foreign(shape=(3,), __getitem__=_same), None),
    "a slice of a file": (lambda: foreign(__getitem__=lambda self, key: NUMBERS[key]), "x[:]"),
    "a lazy array": (
        lambda: foreign(shape=(3,), __getitem__=lambda self, key: NUMBERS[key]),
        "x[...]",
    ),
    "a tensor of a runtime": (lambda: foreign(shape=[3], data=NUMBERS), "x.data"),
    "data with a unit": (lambda: foreign(data=torch.from_numpy(NUMBERS), unit="K"), "x.data"),
    "its own data": (lambda: foreign(data=property(lambda self: self)), None),
    "data that cannot be read": (lambda: foreign(data=property(_raising)), None),
    "items that cannot be read": (lambda: foreign(__getitem__=_raising), None),
    "text": (lambda: foreign(data="text", __getitem__=lambda self, key: "text"[key]), None),
    "a description": (lambda: foreign(shape=(3,), dtype=np.dtype("f8")), None),
}


# github.com/nanograv/PINT/issues/651; github.com/safetensors/safetensors/issues/141
@together("name", FOREIGN)
@together("to", ["numpy", "torch", "jax"])
def test_advice_for_foreign_values_leads_on(name: str, to: str) -> None:
    """What a refusal says to convert is looked for in the value: it converts, and is no circle."""
    make, way = FOREIGN[name]
    x = make()
    with pytest.raises(UnknownValueError) as refusal:
        interop.convert(x, to=to, dtype="float32")
    said = re.search(r"convert (x[^,;]*?)(?:, which reads it)?\.$", str(refusal.value))
    assert (said and said[1]) == way
    if way is None:
        assert str(refusal.value).endswith("pass the arrays in it, or register a Format.")
    else:
        result = interop.convert(eval(way, {"x": x}), to=to, dtype="float32")
        assert np.asarray(result).tolist() == [0, 1, 2]
    # A leaf of a tree is not looked into.
    assert interop.convert_tree({"x": NUMBERS, "y": x}, to="numpy")["y"] is x


class Annotated:
    """A value with arrays in private attributes, and properties that give them."""

    def __init__(self) -> None:
        self._X, self.obs, self.n, self.name = NUMBERS, pd.Series(NUMBERS), 3, "a"

    @property
    def X(self) -> Any:  # noqa: N802 - as AnnData calls it
        return self._X


def test_attributes_that_are_arrays_are_named_with_the_call_that_converts_them() -> None:
    """An object with arrays among its attributes says which, and that `vars` is a tree of them."""
    x = Annotated()
    for convert in (interop.convert, interop.convert_tree):
        with pytest.raises(UnknownValueError) as refusal:
            convert(x, to="torch")
        said = str(refusal.value).partition("; ")[2]
        call = "interop.convert_tree(vars(x), ...)"
        assert said == f"{call} converts the arrays in its attributes (x.X, x.obs)."
    tree = interop.convert_tree(vars(x), to="torch")
    assert tree["_X"].tolist() == tree["obs"].tolist() == [0, 1, 2]
    assert (tree["n"], tree["name"]) == (3, "a")


class Sized:
    """A value that is gone through by its length and its items."""

    def __init__(self, *items: Any) -> None:
        self._held = items

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, place: int) -> Any:
        return self._held[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._held)


class Stream:
    """A value that can only be gone through, and forbids that where nobody asks for it."""

    def __init__(self, item: Any) -> None:
        self._item, self.may_start = item, False

    def __iter__(self) -> Iterator[Any]:
        assert self.may_start
        yield self._item


def from_library(name: str, make: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: make(pytest.importorskip(name))


def foreign_file(make: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return a function that makes a value over a file of tensors in memory."""

    def made() -> Any:
        torch_files, files = (pytest.importorskip(f"safetensors{end}") for end in (".torch", ""))
        with tempfile.TemporaryDirectory() as folder:
            torch_files.save_file({"a": torch.ones(3)}, f"{folder}/a")
            return make(files.safe_open(f"{folder}/a", "pt"))

    return made


_SERIES = pd.Series([1.0, 2.0])
_RECORDS = np.zeros(2, [("name", "f4")])

#: Values of others, real and made up, in all of which there is something that converts.
HOLDING: dict[str, Callable[[], Any]] = {
    **{name: make for name, (make, way) in FOREIGN.items() if way},
    "annotated": Annotated,
    "opened file": foreign_file(lambda file: file),
    "part of a file": foreign_file(lambda file: file.get_slice("a")),
    "reader of tensors": lambda: foreign(
        get_tensor=lambda self, name: NUMBERS, keys=lambda self: ["a"]
    ),
    "delayed": from_library("dask", lambda dask: dask.delayed(np.ones)(3)),
    "bag": from_library("dask.bag", lambda bag: bag.from_sequence([1.0, 2.0])),
    "future": lambda: foreign(result=lambda self, timeout=None: NUMBERS),
    "untyped storage": lambda: torch.ones(3).untyped_storage(),
    "typed storage": lambda: torch.ones(3).storage(),
    "shape of TensorFlow": from_library("tensorflow", lambda tf: tf.TensorShape((3,))),
    "dataset of TensorFlow": from_library(
        "tensorflow", lambda tf: tf.data.Dataset.from_tensor_slices(NUMBERS)
    ),
    "list of scalars": lambda: Sized(1.0, 2.0),
    "list of arrays": lambda: Sized(NUMBERS, NUMBERS),
    "list of pairs": lambda: Sized((NUMBERS, 1), (NUMBERS, 2)),
    "stream": lambda: Stream(NUMBERS),
    "loader": lambda: torch.utils.data.DataLoader([torch.ones(1)], batch_size=None),
    "tensor dataset": lambda: torch.utils.data.TensorDataset(torch.ones(3)),
    "distribution": lambda: torch.distributions.Normal(torch.zeros(3), torch.ones(3)),
    "module": lambda: torch.nn.Linear(1, 1),
    "parameters": lambda: torch.nn.ParameterDict({"a": torch.ones(3)}),
    "polynomial": lambda: np.polynomial.Polynomial(NUMBERS),
    "limits": lambda: np.finfo("f4"),
    "tree of points": lambda: scipy.spatial.cKDTree(np.ones((3, 2))),
    "hull": lambda: scipy.spatial.ConvexHull(np.eye(3)[:, :2]),
    "operator": lambda: scipy.sparse.linalg.aslinearoperator(np.eye(3)),
    "optimum": lambda: scipy.optimize.OptimizeResult(x=NUMBERS),
    "groups of pandas": lambda: pd.DataFrame({"a": NUMBERS}).groupby("a"),
    "window of pandas": lambda: _SERIES.rolling(2),
    "groups of Polars": lambda: pl.DataFrame({"a": NUMBERS}).group_by("a"),
    "lazy frame": lambda: pl.LazyFrame({"a": NUMBERS}),
    "dataset of xarray": lambda: xr.Dataset({"name": ("i", NUMBERS)}),
    "window of xarray": lambda: xr.DataArray(NUMBERS, dims="i").rolling(i=2),
    "file of NumPy": lambda: foreign(
        keys=lambda self: ["a"], __getitem__=lambda self, key: NUMBERS
    ),
    "dataclass": lambda: dataclasses.make_dataclass("Batch", ["x"])(NUMBERS),
    "namespace": lambda: SimpleNamespace(x=NUMBERS),
    "set": lambda: {1.0, 2.0},
    "iterator": lambda: iter([1.0, 2.0]),
    "values of a dict": {"a": 1.0}.values,
    "generator": lambda: (n for n in (1.0, 2.0)),
    "function": lambda: lambda: NUMBERS,
    "records by __array__": lambda: foreign(__array__=lambda self, *_, **__: _RECORDS),
    "gradient of integers": lambda: np.zeros(3, jax.dtypes.float0),
    "description of JAX": lambda: jax.ShapeDtypeStruct((3,), "float32"),
    "description of TensorFlow": from_library(
        "tensorflow", lambda tf: tf.TensorSpec((3,), tf.float32)
    ),
    "method of its own": lambda: foreign(to_numpy=lambda self: NUMBERS),
    "spec": lambda: interop.spec(NUMBERS),
}

#: Values of others in which nothing converts, or nothing that shows without running their code.
BARE: dict[str, Callable[[], Any]] = {
    **{name: make for name, (make, way) in FOREIGN.items() if not way},
    "object": object,
    "dtype": lambda: np.dtype("f4"),
    "random numbers": np.random.default_rng,
    "generator of torch": torch.Generator,
    "schema": lambda: pa.schema([("a", "f8")]),
    "expression": lambda: pl.col("a"),
    "graph": from_library("networkx", lambda networkx: networkx.path_graph(3)),
    "array of symbols": from_library("sympy", lambda sympy: sympy.Array([1, 2])),
    "list of objects": lambda: Sized(object()),
    "list of text": lambda: Sized("a", "b"),
    "list that cannot be read": lambda: foreign(
        __len__=lambda self: 2, __getitem__=_raising, __iter__=_raising
    ),
    "items by two places": lambda: foreign(  # as an image has, which yields its pixels
        __len__=lambda self: 4,
        __getitem__=lambda self, place: float(place[0]),
        __iter__=lambda self: iter([1.0]),
    ),
}


def follow(x: Any, text: str) -> Any:  # noqa: PLR0912 - one for each kind of advice
    """Return what the advice about an unknown value makes of it; None if that names no call."""
    convert = partial(interop.convert, to="torch")
    tree = partial(interop.convert_tree, to="torch")
    if way := re.search(r"convert (x[^,;]*?)(?:, which reads it)?\.$", text):
        return convert(eval(way[1], {"x": x}))
    if way := re.search(r"convert what its (\w+)\(\) returns", text):
        return convert(getattr(x, way[1])())
    if "convert what its get_tensor(...) returns for a name" in text:
        return convert(x.get_tensor(next(iter(x.keys()))))
    if "convert each item that it yields" in text:
        if isinstance(x, Stream):
            x.may_start = True
        return [convert(item) if not isinstance(item, tuple) else tree(item) for item in x]
    if "make a list of it first" in text:
        return convert([*x])
    if "convert_tree(vars(x), ...)" in text:
        return tree(vars(x))
    if way := re.search(r"the arrays in its (\w+)\(\)", text):
        return tree(getattr(x, way[1])())
    if "convert_tree converts the arrays in it" in text:
        try:
            return tree(x)
        except interop.errors.BadRequestError as error:
            assert "; pass dict(x), " in str(error)  # noqa: PT017 - it is advice to follow
            return tree({name: x[name] for name in [*x.keys()]})
    if "choose one of them (x['name'])" in text:
        return convert(x["name"])
    if "call it, and pass what it returns" in text:
        return convert(x())
    if way := re.search(r"interop\.make_spec\(.*\)", text):
        return interop.plan(eval(way[0], {"interop": interop, "x": x}), to="torch").result
    return interop.plan(x, to="torch").result if "interop.plan takes it" in text else None


# gitlab.com/simpleitk and github.com: SimpleITK/SimpleITK/issues/231; safetensors/issues/141
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@together("name", HOLDING)
def test_the_advice_about_every_foreign_value_leads_on(name: str) -> None:
    """It is given for the value in hand, whatever that is, and does what it says."""
    x = HOLDING[name]()
    with pytest.raises(InteropError) as refusal:
        interop.convert(x, to="torch")
    if isinstance(refusal.value, UnknownValueError):
        result = follow(x, str(refusal.value))
        assert re.search(r"tensor\(|Spec\(", repr(result))
    else:
        assert leads_on(x, {"to": "torch"})


@together("name", BARE)
def test_no_advice_names_what_a_foreign_value_has_not(name: str) -> None:
    """Where nothing leads on, a refusal asks for the arrays, and for no items, parts or methods."""
    for convert in (interop.convert, interop.convert_tree):
        if convert is interop.convert_tree and name not in {"list that cannot be read", "graph"}:
            continue
        with pytest.raises(UnknownValueError) as refusal:
            convert(BARE[name](), to="torch")
        text = str(refusal.value)
        assert text.endswith(
            ", and it offers no array protocol; pass the arrays in it, or register a Format."
        )


def test_there_are_foreign_values_of_sixty_kinds() -> None:
    """The two tables are as many as the libraries that reports have named."""
    assert len(HOLDING.keys() | BARE.keys()) >= 60


@pytest.mark.extra("sklearn")
def test_an_estimator_says_how_its_arrays_are_converted() -> None:
    """A fitted estimator names what it has learnt, and a pipeline does not pass as it is."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    x = np.arange(6.0).reshape(3, 2)
    model, pipeline = Ridge().fit(x, x[:, 0]), make_pipeline(Ridge()).fit(x, x[:, 0])
    with pytest.raises(UnknownValueError):
        interop.convert_tree(model, to="torch")
    learnt = interop.convert_tree(vars(model), to="torch")
    assert learnt["coef_"].tolist() == model.coef_.tolist()
    with pytest.raises(UnknownValueError):
        interop.convert_tree(pipeline, to="torch")


def test_descriptions_and_records_say_what_they_are() -> None:
    """What has no data is described for a plan, and records of NumPy's own class are records."""
    x = jax.ShapeDtypeStruct((2, 3), "float32")
    with pytest.raises(UnknownValueError) as refusal:
        interop.convert(x, to="torch")
    (call,) = re.findall(r"interop\.make_spec\(.*\)", str(refusal.value))
    spec = eval(call, {"interop": interop, "x": x})
    assert interop.plan(spec, to="torch").result.shape == (2, 3)
    records = np.zeros(2, [("a", "f4")]).view(np.recarray)
    with pytest.raises(RefusedError):
        interop.convert(records, to="torch")
    assert interop.convert(records["a"], to="torch").tolist() == [0, 0]
