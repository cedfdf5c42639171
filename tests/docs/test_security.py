"""The page on security: behind each promise stands a test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_the_tests_that_hold_promises_exist() -> None:
    """Every test that the page names is in the file that it names."""
    names = NAMED.findall((ROOT / "SECURITY.md").read_text())
    assert len(names) > 20
    missing = [
        f"{file}::{name}" for file, name in names if f"def {name}(" not in (ROOT / file).read_text()
    ]
    assert missing == []


def test_every_promise_names_a_test() -> None:
    """Of what is promised, about memory and about the process, nothing goes untested."""
    text = (ROOT / "SECURITY.md").read_text()
    promises = text[text.index("## What interop promises") : text.index("## What it does not")]
    bare = [item[:60] for item in promises.split("\n- ")[1:] if not NAMED.search(item)]
    assert bare == []
