# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Type-checked, never run: what a static type checker refuses. Every line below is an error."""

from __future__ import annotations

import interop


def wrong(x: object) -> None:
    """Each ignored error is one that must be found: an unused ignore fails the check."""
    interop.convert(x, to="bogus")  # type: ignore[arg-type]
    interop.convert(x, to=3)  # type: ignore[call-overload]
    interop.convert(x, to="numpy", dype="float32")  # type: ignore[call-overload]
    interop.convert(x, to="numpy", order="K")  # type: ignore[call-overload]
    interop.convert(x, to="numpy", allow="bogus")  # type: ignore[arg-type]
    interop.converter("bogus")  # type: ignore[arg-type]
    interop.converter("numpy", forbid=["bogus"])  # type: ignore[list-item]
    interop.plan(x, to="numpy", allow="bogus")  # type: ignore[arg-type]
    interop.plan(x, to="bogus")  # type: ignore[arg-type]
    interop.plan(x, "torch", dype="float32")  # type: ignore[call-overload]
    interop.convert_tree(x, to="bogus")  # type: ignore[arg-type]
    interop.convert_tree(x, to="torch", others="drop")  # type: ignore[call-overload]
    interop.accepts("bogus")  # type: ignore[arg-type]
    interop.accepts(to="bogus")  # type: ignore[arg-type]
    interop.convert(x, to="numpy", forbid={"coppy"})  # type: ignore[arg-type]
    interop.convert(x, to="numpy", allow=["detach", "narow"])  # type: ignore[list-item]
    interop.convert(x, to="numpy", dtype="float33")  # type: ignore[arg-type]
    interop.convert(x, to="numpy", dtype={"integral": "int46"})  # type: ignore[dict-item]
    interop.convert(x, to="torch", device="gpu")  # type: ignore[arg-type]
    interop.converter("torch", device="cdua:1")  # type: ignore[arg-type]
    interop.plan(x, to="numpy", dtype="flaot32")  # type: ignore[arg-type]
    interop.convert_tree([x], to="torch", dtype="bfloat61")  # type: ignore[arg-type]
    interop.accepts("numpy", dtype="float3")  # type: ignore[arg-type]
    interop.converter("numpy", dtype={"real floting": "float32"})  # type: ignore[dict-item]
    interop.convert_tree(x, "numpy", dtype={"real floting": "f4"})  # type: ignore[dict-item]
    interop.make_spec("trch", "float32")  # type: ignore[arg-type]
    interop.make_spec("torch", "float33")  # type: ignore[arg-type]
    interop.make_spec("torch", "float32", device="gpu")  # type: ignore[arg-type]
    interop.make_spec("torch", "float32", traits={"maksed"})  # type: ignore[arg-type]
    _ = interop.plan(x, to="numpy")(x).bogus  # type: ignore[attr-defined]
    _ = interop.convert(x, to="python").bogus  # type: ignore[union-attr]
    with interop.policy(forbid="bogus"):  # type: ignore[arg-type]
        pass
    _ = scaled(1).bogus  # type: ignore[attr-defined]


@interop.accepts("numpy")
def scaled(x: object, factor: float = 1) -> float:
    """Return a number."""
    return factor
