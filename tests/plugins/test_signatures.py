"""The types of the functions, for static type checkers: they name what is registered."""

from __future__ import annotations

import difflib
from importlib import import_module
from types import ModuleType
from typing import Any, get_args

import numpy as np
import pytest

import docs.signatures
import interop
from interop._model.effect import EFFECTS
from interop._model.typing import EffectName
from interop._request.naming import named

TEXT = docs.signatures.FILE.read_text("utf-8")


def test_the_signatures_are_what_the_declarations_say() -> None:
    """Made again from the declarations, the overloads are those in the repository."""
    text = docs.signatures.rendered(TEXT)
    if text != TEXT:
        lines = difflib.unified_diff(TEXT.splitlines(), text.splitlines(), lineterm="", n=0)
        pytest.fail("python -m docs.signatures --store\n" + "\n".join(lines))


@pytest.mark.parametrize(
    "part",
    ["imports", "names", "convert", "converter", "plan", "convert_tree", "accepts", "make_spec"],
)
def test_signatures_without_a_part_are_refused(part: str) -> None:
    """A file that has lost a marker is an error, so that no part goes out of date unseen."""
    with pytest.raises(ValueError, match="the text and what is made differ"):
        docs.signatures.rendered(TEXT.replace(f"# begin {part}\n", ""))


def test_no_word_stands_twice() -> None:
    """A word that a type checker takes for a target names formats, and gives results of one type."""
    found = [word for result in docs.signatures.results() for word in result.words]
    assert sorted(found) == sorted(set(found))
    registry = interop.default._registry.loaded()
    assert all(named(registry, word) for word in found)


@pytest.mark.parametrize(
    "word", ["np", "torch", "torch.sparse_csr", "scipy.csr", "polars.dataframe"]
)
def test_results_have_the_types_that_the_overloads_say(word: Any) -> None:
    """A value is of the type by which its overload was made."""
    ((type_,),) = (result.types for result in docs.signatures.results() if word in result.words)
    module, _, name = type_.partition(":")
    assert type(interop.convert(np.eye(2), to=word)) is getattr(import_module(module), name)


def test_the_names_of_effects_are_those_that_there_are() -> None:
    """A type checker knows every effect."""
    assert get_args(EffectName) == tuple(EFFECTS)


def test_the_protocols_of_modules_tell_them_apart() -> None:
    """Of each framework's module the protocols find the type of its dense array, or none."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import torch

    def result(module: ModuleType) -> Any:
        if hasattr(module, "ndarray"):
            return module.ndarray
        if hasattr(module, "Tensor") and hasattr(module, "matmul"):
            return module.Tensor
        return module.Array if hasattr(module, "Array") and hasattr(module, "jit") else None

    for module, type_ in (
        (np, np.ndarray),
        (torch, torch.Tensor),
        (jnp, jax.Array),
        (jax, jax.Array),
    ):
        assert result(module) is type_
        assert isinstance(interop.convert([1.0], to=module, dtype="float32"), type_)
    assert [result(module) for module in (pd, pl, pa)] == [None] * 3
