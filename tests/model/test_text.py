"""How bytes and times are shown, names that were meant, and lists of a dozen names at most."""

from __future__ import annotations

import pytest

from interop._model.text import duration, listed, readable, suggestion

NAMES = ("numpy", "torch", "torch.sparse_csr", "scipy.csr", "cupy.csr", "jax.bcoo")
NAMES += ("float64", *(f"float8_{letter}" for letter in "abcd"), "int9_a", "jax")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("numpi", "did you mean 'numpy'?"),
        ("NumPy", "did you mean 'numpy'?"),
        ("torch.sparse_crs", "did you mean 'torch.sparse_csr'?"),
        ("nothing like it", "none"),
        ("jaxx", "did you mean 'jax'?"),
        ("gax", "none"),
        ("float8", "name one of float8_a, float8_b, float8_c, float8_d."),
        ("int9", "did you mean 'int9_a'?"),
        ("", "none"),
    ],
)
def test_a_word_is_answered_with_what_was_meant(word: str, meant: str) -> None:
    """A suggestion ignores case, completes a name and corrects a typing error."""
    assert suggestion(word, NAMES, "none") == meant


def test_spellings_lead_to_names() -> None:
    """Of a mapping the name is suggested, not the spelling; short spellings are not guessed at."""
    spellings = {"float32": "float32", "single": "float32", "f8": "float64"}
    assert suggestion("singel", spellings, "none") == "did you mean 'float32'?"
    assert suggestion("F8", spellings, "none") == "did you mean 'float64'?"
    assert suggestion("f9", spellings, "none") == "none"


def test_a_list_has_a_dozen_names_at_most() -> None:
    """A longer list says how many more there are."""
    assert listed("abc") == "a, b, c"
    assert listed("abcdefghijkl").count(",") == 11
    assert listed("abcdefghijklmno").endswith("k, l and 3 more")


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (2**50, "1024.0 TiB")],
)
def test_bytes_are_readable(nbytes: int, text: str) -> None:
    """Bytes are shown in binary units, with one decimal."""
    assert readable(nbytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 µs"),
        (1.234e-6, "1.23 µs"),
        (0.5, "500 ms"),
        (2.0, "2 s"),
        (9.996e-4, "1 ms"),
        (0.9996, "1 s"),
        (360_000, "4 days"),
    ],
)
def test_times_are_readable(seconds: float, text: str) -> None:
    """A time has three digits and the unit that suits it."""
    assert duration(seconds) == text
