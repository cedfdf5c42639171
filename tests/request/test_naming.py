"""Naming: what callers write for formats, dtypes and devices, and what is said of other words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import interop
from interop._model.dtype import SPELLINGS
from interop.errors import BadRequestError, UnknownTargetError
from tests.cases import together

ARRAY = np.arange(4.0).reshape(2, 2)


@pytest.mark.parametrize(
    ("to", "format_"),
    [
        ("np", "numpy"),
        ("tf", "tensorflow"),
        ("pytorch", "torch"),
        ("list", "python"),
        ("np.", None),
        ("tf.sparse", "tensorflow.sparse"),
        (np.linalg, "numpy"),
    ],
    ids=str,
)
def test_nicknames_and_modules_name_formats(to: Any, format_: str | None) -> None:
    """Nicknames of frameworks and their modules are taken for formats."""
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


@together("digits", ["9" * 5000, "9" * 30, "٣", "²", "-1", "+1", "1_0", ""])
def test_the_index_of_a_device_is_a_few_ascii_digits(digits: str) -> None:
    """Any other number is refused, wherever devices are named."""
    for call in (
        lambda: interop.convert(ARRAY, to="numpy", device=f"cuda:{digits}"),
        lambda: interop.make_spec("torch", "float32", device=f"cuda:{digits}"),
        lambda: interop.converter("torch", device=f"cuda:{digits}"),
    ):
        with pytest.raises(BadRequestError):
            call()
