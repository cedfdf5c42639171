"""Cases that share a test: most take less time than pytest takes around a test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def together(
    names: str, values: Iterable[Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run all cases of quick tests in one test; it stands where ``parametrize`` would.

    The first case that fails ends the test, and a note says which it is. Fixtures are set up once.
    """
    keywords = [name.strip() for name in names.split(",")]
    rows = [value if len(keywords) > 1 else (value,) for value in values]
    if not rows:
        raise ValueError(f"there are no cases of {names}")

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(*args: Any, **arguments: Any) -> None:
            for row in rows:
                case = dict(zip(keywords, row, strict=True))
                try:
                    test(*args, **arguments, **case)
                except BaseException as error:
                    error.add_note(f"The case: {case}")
                    raise

        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in keywords]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate
