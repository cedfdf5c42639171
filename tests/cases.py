"""Cases that share a test: most take less time than pytest takes around a test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def marked(names: Iterable[str]) -> list[Any]:
    """Return the cases of ``parametrize``; those that name TensorFlow or Awkward run where it is."""
    marks = {module: pytest.mark.extra(module) for module in ("awkward", "tensorflow")}
    return [
        pytest.param(name, marks=[mark for module, mark in marks.items() if module in name])
        for name in names
    ]


def together(
    names: str, values: Iterable[Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run all cases of quick tests in one test; it stands where ``parametrize`` would.

    Each case that fails or is skipped is reported as one of pytest's ``subtests``, and the others run all the same. Those
    that pass are not, because that would take longer than they do. Fixtures are set up once.
    """
    keywords = [name.strip() for name in names.split(",")]
    rows = [value if len(keywords) > 1 else (value,) for value in values]
    if not rows:
        raise ValueError(f"there are no cases of {names}")

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        function, below = getattr(test, "together", (test, [{}]))
        cases = [dict(zip(keywords, row, strict=True)) | case for row in rows for case in below]

        @functools.wraps(test)
        def run(*args: Any, subtests: pytest.Subtests, **arguments: Any) -> None:
            for case in cases:
                try:
                    function(*args, **arguments, **case)
                except BaseException:
                    with subtests.test(**case):
                        raise

        run.together = (function, cases)  # type: ignore[attr-defined]
        signature = inspect.signature(function)
        left = [p for name, p in signature.parameters.items() if name not in cases[0]]
        fixture = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        run.__signature__ = signature.replace(parameters=[*left, fixture])  # type: ignore[attr-defined]
        return run

    return decorate
