# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Type-checked, never run: what a static type checker refuses. Every line below is an error."""

from __future__ import annotations

import interop


def wrong(x: object) -> None:
    """Each ignored error is one that must be found: an unused ignore fails the check."""
    interop.convert(x, to="bogus")  # type: ignore[arg-type]
    interop.convert(x, to=3)  # type: ignore[call-overload]
    interop.convert(x, to="numpy", dype="float32")  # type: ignore[call-overload]
    interop.convert(x, to="numpy", allow="bogus")  # type: ignore[arg-type]
    interop.converter("bogus")  # type: ignore[arg-type]
    interop.converter("numpy", forbid=["bogus"])  # type: ignore[arg-type, list-item]
    interop.plan(x, to="numpy", allow="bogus")  # type: ignore[arg-type]
    interop.plan(x, to="bogus")  # type: ignore[arg-type]
    interop.plan(x, "torch", dype="float32")  # type: ignore[call-arg]
    interop.convert_tree(x, to="bogus")  # type: ignore[arg-type]
    interop.convert_tree(x, to="torch", others="drop")  # type: ignore[arg-type]
    interop.accepts("bogus")  # type: ignore[arg-type]
    interop.accepts(to="bogus")  # type: ignore[arg-type]
    with interop.policy(forbid="bogus"):  # type: ignore[arg-type]
        pass
    scaled(1, 2, 3)  # type: ignore[call-arg]


@interop.accepts("numpy")
def scaled(x: object, factor: float = 1) -> float:
    """Return a number."""
    return factor
