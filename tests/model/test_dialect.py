"""Dialects: advice for a program and for the command line."""

from __future__ import annotations

import numpy as np
import pytest

import interop
import interop.plugin
from interop._model.dialect import keyword, keywords, on_command_line, reworded


@pytest.mark.parametrize(
    ("name", "value", "program", "command"),
    [
        ("allow", {"narrow", "copy"}, "allow={'copy', 'narrow'}", "--allow copy --allow narrow"),
        ("copy", False, "copy=False", "--no-copy"),
        ("copy", True, "copy=True", "--copy"),
        ("dtype", "int8", "dtype='int8'", "--dtype int8"),
        ("dtype", None, "dtype=", "--dtype"),
        ("to", "torch", "to='torch'", "torch"),
        ("like", None, "like=", "like= in a program"),
    ],
)
def test_a_keyword_is_written_in_either_dialect(
    name: str, value: object, program: str, command: str
) -> None:
    """A keyword is Python's in a program, and an option on a command line."""
    assert keyword(name, value) == program
    token = on_command_line.set(True)
    try:
        assert keyword(name, value) == command
    finally:
        on_command_line.reset(token)


def test_a_plugins_text_is_written_in_either_dialect() -> None:
    """Its placeholders become keywords or options, with their values; other braces are text."""
    text = "a {set} of {dtype:complex64}, {device:cuda:0}, {dtype}, {copy:False} or {allow:gather}."
    assert reworded(text) == (
        "a {set} of dtype='complex64', device='cuda:0', dtype=, copy=False or allow='gather'."
    )
    token = on_command_line.set(True)
    try:
        assert reworded(text) == (
            "a {set} of --dtype complex64, --device cuda:0, --dtype, --no-copy or --allow gather."
        )
    finally:
        on_command_line.reset(token)


def test_a_refusal_advises_in_the_dialect_of_its_caller() -> None:
    """One cached refusal advises a program in keywords and a command in options."""
    masked = np.ma.array([1.0], mask=[True])
    texts = []
    for command in (False, True, False):
        token = on_command_line.set(command)
        try:
            with pytest.raises(interop.errors.RefusedError) as caught:
                interop.plan(masked, to="torch")
            texts.append(str(caught.value))
            words = keywords(to="torch", device="cuda")
        finally:
            on_command_line.reset(token)
    assert texts[0] == texts[2]
    assert "pass allow={'drop_mask'}" in texts[0]
    assert words == "to='torch', device='cuda'"
    assert texts[1] == texts[0].replace("allow={'drop_mask'}", "--allow drop_mask")
