"""Naming: what callers write for formats, dtypes and devices, and what is said of other words."""

from __future__ import annotations

import math
import types
from collections import deque
from dataclasses import make_dataclass
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pluggy
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import DataLoader

import interop
from interop._model.dtype import SPELLINGS
from interop.errors import BadRequestError, InteropError, UnknownTargetError, UnknownValueError
from tests.cases import together

ARRAY = np.arange(4.0).reshape(2, 2)


def instance(**attributes: Any) -> object:
    """Return an instance of a class with some attributes."""
    return type("Own", (), attributes)()


#: For what stands in to=, what the message says to write.
TARGETS: list[tuple[object, str]] = [
    ("gpu", "did you mean device='cuda'?"),
    ("host", "did you mean device='cpu'?"),
    ("cuda", "did you mean device='cuda'?"),
    ("cuda:1", "did you mean device='cuda:1'?"),
    (torch.device("cuda:0"), "did you mean device='cuda:0'?"),
    (np.float32, "did you mean dtype='float32'?"),
    (np.dtype("int8"), "did you mean dtype='int8'?"),
    (torch.float32, "did you mean dtype='float32'?"),
    ("float32", "did you mean dtype='float32'?"),
    ("np.float32", "did you mean to='numpy', dtype='float32'?"),
    ("torch:bf16", "did you mean to='torch', dtype='bfloat16'?"),
    ("torch:cuda", "did you mean to='torch', device='cuda'?"),
    ("torch.cuda", "did you mean to='torch', device='cuda'?"),
    ("torch gpu:1", "did you mean to='torch', device='cuda:1'?"),
    ("zzz:cuda", "the frameworks are "),
    ("metal", "did you mean device='metal'?"),
    ("oneapi", "did you mean device='oneapi'?"),
    ("bf16", "did you mean dtype='bfloat16'?"),
    (float, "did you mean dtype='float64'?"),
    (np.ones(2), "pass like=x for the format and the device of an array x."),
    (torch.ones(300), "pass like=x for the format and the device of an array x."),
    (torch.nn.Parameter, "did you mean 'torch'?"),
    (list, "did you mean 'python'?"),
    (torch.FloatTensor, "did you mean 'torch'?"),
    (torch.tensor, "to=tensor does not name a registered format; did you mean 'torch'?"),
    (np.asarray, "to=asarray does not name a registered format; did you mean 'numpy'?"),
    (
        pluggy.PluginManager,
        "to=PluginManager does not name a registered format; the frameworks are ",
    ),
    (math.sqrt, "to=sqrt does not name a registered format; the frameworks are "),
    ("Numpy", "did you mean 'numpy'?"),
    ("nump", "did you mean 'numpy'?"),
    ("numpy.ndarray", "did you mean 'numpy'?"),
    ("np.ndarray", "did you mean 'numpy'?"),
    ("torch.Tensor", "did you mean 'torch'?"),
    ("torch.sparse_cs", "did you mean 'torch.sparse_cs"),
    ("dataframe", ".dataframe'?"),  # the framework in use stands first
    ("torch.csr", "did you mean 'torch.sparse_csr'?"),
    ("torch.sparse", "name one of torch.sparse_"),
    ("csr", "did you mean 'scipy.csr'?"),
    ("numpy.csr", "did you mean 'numpy'?"),
    ("PIL", "only read; PIL.Image.fromarray(interop.convert(x, to='numpy')) makes one."),
    ("PIL.Image.Image", "only read; PIL.Image.fromarray("),
    ("pil", "only read; PIL.Image.fromarray("),
    ("Pillow", "only read; PIL.Image.fromarray("),
    ("tensor", "did you mean 'torch'?"),
    ("torch.tensor", "did you mean 'torch'?"),
    ("ndarray", "did you mean 'numpy'?"),
    ("np.array", "did you mean 'numpy'?"),
    ("ma", "did you mean 'numpy.ma'?"),
    ("table", "did you mean 'pyarrow.table'?"),
    ("cudf", "the frameworks are "),
    ("paddle", "the frameworks are "),
    ("dict", "the frameworks are "),
    (dict, "the frameworks are "),
    (types, "the frameworks are "),
    ([], "the frameworks are "),
    (3, "the frameworks are "),
    ("", "the frameworks are "),
    (None, "pass to= or like=."),
]


@together("to, move", TARGETS)
def test_bad_targets_are_answered_with_what_to_write(to: Any, move: str) -> None:
    """Whatever else stands in to=, the error says what to write; it names a dozen things at most."""
    for call in (lambda: interop.convert(ARRAY, to=to), lambda: interop.converter(to)):
        with pytest.raises(UnknownTargetError) as caught:
            call()
        message = str(caught.value)
        assert move in message
        assert message.count(",") <= 13
        assert len(message) < 260


@pytest.mark.parametrize(
    ("to", "format_"),
    [
        ("np", "numpy"),
        ("tf", "tensorflow"),
        ("pytorch", "torch"),
        ("list", "python"),
        ("np.", None),
        ("tf.sparse", "tensorflow.sparse"),
        (torch.sparse_csr, "torch.sparse_csr"),
        (torch.sparse_coo, "torch.sparse_coo"),
        (torch.strided, "torch"),
        (np.linalg, "numpy"),
    ],
    ids=str,
)
def test_nicknames_and_layouts_name_formats(to: Any, format_: str | None) -> None:
    """Nicknames of frameworks, their modules and their layout objects are taken for formats."""
    if format_ is None:
        with pytest.raises(UnknownTargetError):
            interop.plan(ARRAY, to=to)
    else:
        assert interop.plan(ARRAY, to=to).result.format == format_
        assert interop.plan(ARRAY, to=[to]).result.format == format_


@together("spelling", [*SPELLINGS, "torch.float16", "np.int8", "=f4", "|b1"])
def test_common_spellings_of_dtypes_are_taken(spelling: str) -> None:
    """What NumPy takes for a dtype means what it means there; others mean what their name says."""
    word = spelling.rpartition(".")[2]
    if spelling == "|b1":
        with pytest.raises(BadRequestError):
            interop.plan(ARRAY, to="numpy", dtype=spelling)
        return
    dtype = interop.plan(ARRAY, to="numpy", dtype=spelling).result.dtype
    try:
        assert dtype == np.dtype(word).name
    except TypeError:
        bits = int("".join(filter(str.isdecimal, word)) or 0)
        assert {"f": "float", "b": "bfloat", "i": "int", "u": "uint"}[word[0]] in str(dtype)
        assert str(dtype).endswith(str(bits))


@pytest.mark.parametrize(
    ("dtype", "move"),
    [
        ("flaot32", "did you mean 'float32'?"),
        ("Float32", "did you mean 'float32'?"),
        ("BF16", "did you mean 'bfloat16'?"),
        ("float33", "did you mean 'float32'?"),
        ("bfloat", "did you mean 'bfloat16'?"),
        ("bf15", "did you mean 'bfloat16'?"),
        ("doubel", "did you mean 'float64'?"),
        ("string", "the dtypes are bool, uint8,"),
        ("fp8", "did you mean 'float8_e4m3fn'?"),
        ("float8", "did you mean 'float8_e4m3fn'?"),
        ("float8_e4", "name one of float8_e4m3, "),
        ("cuda:1", "did you mean device='cuda:1'?"),
        ("tf", "did you mean to='tensorflow'?"),
        (np, "dtype=numpy is not a dtype that interop recognises; did you mean to='numpy'?"),
        (ARRAY, "dtype=<ndarray> is not a dtype that interop recognises; name it as a string"),
        ("zzz.float32", "did you mean 'float32'?"),
        ("str", "the dtypes are bool, uint8,"),
        (3, "name it as a string, such as 'float32'."),
    ],
)
def test_a_misspelt_dtype_is_refused_at_once(dtype: object, move: str) -> None:
    """A dtype that does not exist is refused before there is a value, with a guess if there is one."""
    for call in (interop.converter, interop.accepts):
        with pytest.raises(BadRequestError) as caught:
            call("numpy", dtype=dtype)
        assert move in str(caught.value)
        assert str(caught.value).count(",") <= 13


def test_a_misspelt_device_is_refused_at_once() -> None:
    """A device on which no format lives is refused before there is a value, with a guess."""
    for device, move in (
        ("gpu", "did you mean 'cuda'"),
        ("cdua", "did you mean 'cuda'"),
        ("toaster:1", "the devices are cpu, cuda, "),
        ("meta", "holds no data; the devices are cpu, cuda, "),
        ("masked", "not a device that interop recognises"),  # the name of a trait, as meta is
        (torch.device("meta"), "holds no data; the devices are cpu, cuda, "),
        ("float32", "did you mean dtype='float32'"),
        ("torch", "did you mean to='torch'"),
    ):
        with pytest.raises(BadRequestError, match=move):
            interop.converter("torch", device=device)


@pytest.mark.parametrize(
    ("value", "move"),
    [
        (None, "nothing to convert"),
        ("abc", "text"),
        ({"a": ARRAY}, "interop.convert_tree"),
        ({1, 2}, "make a list"),
        (iter([1]), "make a list"),
        (math, "pass an array"),
        (np.ndarray, "not the class itself"),
        (object(), "pass the arrays in it, or register a Format"),
        (torch.nn.Linear(1, 1), r"convert_tree converts the arrays in its state_dict\(\)"),
        (Path("a.npy"), "load it, and pass what that returns"),
        (deque([1]), "make a list of it first"),
        ({"a": ARRAY}.values(), "make a list of it first"),
        (len, "call it, and pass what it returns"),
        (ARRAY.sum, "call it, and pass what it returns"),
        (lambda: ARRAY, "call it, and pass what it returns"),
        (interop.Spec("torch"), "interop.plan takes it"),
        (Fraction(1, 2), "make a float of it first"),
        (BytesIO(b"1"), "interop reads no files"),
        (instance(to_numpy=lambda _: 1), r"convert what its to_numpy\(\) returns"),
        (instance(to_numpy=lambda _, key: key), "pass the arrays in it, or register a Format"),
        (instance(collect=len), "pass the arrays in it, or register a Format"),
        (instance(keys=len, __getitem__=len), "interop.convert_tree converts the arrays in it"),
        (
            instance(shape=(1,), __getitem__=lambda *_: ARRAY),
            r"convert x\[\.\.\.\], which reads it",
        ),
        (instance(shape=(2,), __getitem__=len), "pass the arrays in it, or register a Format"),
        (make_dataclass("Batch", ["image"])(ARRAY), "convert_tree converts the arrays in it"),
        (DataLoader([ARRAY]), "convert each item that it yields"),  # type: ignore[arg-type]
        (pack_sequence([torch.ones(2)]), "PackedSequence of torch.Tensor and NoneType is not one"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_no_arrays_are_answered_by_their_kind(value: object, move: str) -> None:
    """A value that is no array is refused with what to do about a value of its kind."""
    for call in (lambda: interop.convert(value, to="torch"), lambda: interop.spec(value)):
        with pytest.raises(UnknownValueError, match=move):
            call()


def test_the_frameworks_in_use_are_named_first(empty: interop.Interop) -> None:
    """Where nothing resembles a word, the message names frameworks: imported ones before others."""
    empty.register(
        *(interop.Format(f"f{n}", requires="no_such_module") for n in range(20)),
        interop.Format("used", requires="math"),
    )
    with pytest.raises(InteropError, match=r"the frameworks are used, f0, .*, f10 and 9 more\."):
        empty.plan(ARRAY, to="zzz")


@pytest.mark.parametrize(
    ("words", "move"),
    [
        (("trch", "float33"), "the format 'trch'; did you mean 'torch'?"),
        (("torch", "float33"), "did you mean 'float32'?"),
        (("scipy", "float32"), "name one of scipy."),
        (("np", "float32"), "the format 'np'; write 'numpy'."),
        ((np, "float32"), "the format numpy; write 'numpy'."),
        (("torch", "float32", {"device": "gpu"}), "did you mean 'cuda'?"),
        (("torch", "float32", {"traits": "grda"}), "'grda' is not a trait; did you mean 'grad'?"),
        (("torch", "float32", {"traits": {"zzz"}}), "'zzz' is not a trait; interop.TRAITS has"),
        (("torch", "float32", {"shape": 3}), "shape=3 is not a tuple of lengths; write (3,)"),
        (("torch", "float32", {"shape": (2, -1)}), "shape=(2, -1) has a negative length"),
    ],
)
def test_a_spec_of_nothing_that_exists_is_refused_at_once(words: Any, move: str) -> None:
    """make_spec refuses a misspelt format, dtype, device, trait or shape, and says what was meant."""
    format_, dtype, *keywords = words
    with pytest.raises(InteropError) as caught:
        interop.make_spec(format_, dtype, **dict(*keywords))
    assert move in str(caught.value)
    assert interop.make_spec("torch", "float32", traits="grad").traits == {"grad"}
    spec = interop.make_spec("torch", "bf16", device="cuda:0", shape=(4, 8), traits={"readonly"})
    assert spec == interop.Spec("torch", "bfloat16", "cuda:0", (4, 8), frozenset({"readonly"}), 64)


DEEP = 100_000


def _nested(kind: str) -> object:
    value: Any = {"list": [], "tuple": (), "dict": {}}[kind]
    for _ in range(DEEP):
        value = {"list": lambda v: [v], "tuple": lambda v: (v,), "dict": lambda v: {"bool": v}}[
            kind
        ](value)
    return value


#: Calls that take a word, and are given something that Python cannot even print.
NESTING: dict[str, Any] = {
    "to": lambda deep: interop.convert(ARRAY, to=deep),
    "converter": interop.converter,
    "dtype": lambda deep: interop.convert(ARRAY, to="numpy", dtype=deep),
    "device": lambda deep: interop.convert(ARRAY, to="numpy", device=deep),
    "copy": lambda deep: interop.convert(ARRAY, to="numpy", copy=deep),
    "order": lambda deep: interop.convert(ARRAY, to="numpy", order=deep),
    "stream": lambda deep: interop.convert(ARRAY, to="numpy", stream=deep),
    "allow": lambda deep: interop.convert(ARRAY, to="numpy", allow=deep),
    "forbid": lambda deep: interop.convert(ARRAY, to="numpy", forbid=deep),
    "a dtype of a spec": lambda deep: interop.make_spec("numpy", deep),
    "a shape of a spec": lambda deep: interop.make_spec("numpy", "float32", shape=deep),
    "a device of a spec": lambda deep: interop.make_spec("numpy", "float32", device=deep),
    "set_default_policy": lambda deep: interop.set_default_policy(allow=deep),
}


@together("kind", ["list", "tuple", "dict"])
@together("name", NESTING)
def test_what_is_nested_without_end_is_a_bad_request(name: str, kind: str) -> None:
    """A word that cannot be printed is refused like any other."""
    with pytest.raises((BadRequestError, UnknownTargetError)):
        NESTING[name](_nested(kind))


@together("argument", [[["numpy"]], (("numpy", "torch"), "jax")])
def test_targets_are_listed_side_by_side(argument: Any) -> None:
    """A list of lists is refused, however deep."""
    with pytest.raises(BadRequestError, match="list them side by side"):
        interop.convert(ARRAY, to=argument)


def test_a_message_does_without_a_repr_that_fails() -> None:
    """An object whose own code raises is named by its type."""

    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("not to be shown")

    with pytest.raises(BadRequestError, match=r"copy must be None, True, .* got <.*Shy>"):
        interop.convert(ARRAY, to="numpy", copy=Shy())  # type: ignore[call-overload]


@together("digits", ["9" * 5000, "9" * 30, "٣", "²", "-1", "+1", "1_0", ""])
def test_the_index_of_a_device_is_a_few_ascii_digits(digits: str) -> None:
    """Any other number is refused, wherever devices are named."""
    for call in (
        lambda: interop.convert(ARRAY, to="numpy", device=f"cuda:{digits}"),
        lambda: interop.make_spec("torch", "float32", device=f"cuda:{digits}"),
        lambda: interop.converter("torch", device=f"cuda:{digits}"),
    ):
        with pytest.raises(BadRequestError, match="is not a device name"):
            call()
