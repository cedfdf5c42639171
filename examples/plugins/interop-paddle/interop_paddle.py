"""Paddle's tensors, dense ones and those that are sparse by coordinates or by rows."""

from __future__ import annotations

from typing import Any

from interop.errors import UnknownValueError
from interop.kit import COMPLEX, INTEGERS, REALS, dense_format
from interop.plugin import (
    Components,
    Declaration,
    Declined,
    Drop,
    Format,
    Parts,
    Samples,
    Spec,
    hookimpl,
)

INTEROP_API = 1  # the version of interop.plugin that this was written for

INSTALL = "pip install paddlepaddle"
#: Those for which Paddle has the functions that make sparse tensors.
SPARSE_DTYPES = REALS | COMPLEX | {"uint8", "int16", "int32", "int64"}


def in_graph(value: Any) -> bool:
    """Return whether a tensor takes part in differentiation."""
    return not value.stop_gradient


def detach(value: Any) -> Any:
    """Return a tensor over the same memory that takes no part in differentiation."""
    return value.detach()


def with_gradient(value: Any) -> Any:
    """Return a sample that takes part in differentiation."""
    value.stop_gradient = False
    return value


def uncoalesced(value: Any) -> Any:
    """Return a sample of which nobody knows whether it stores an element twice."""
    import paddle

    return paddle.sparse.sparse_coo_tensor(value.indices(), value.values(), value.shape)


_DENSE, *_STEPS = dense_format(
    "paddle:Tensor",
    from_dlpack="paddle:from_dlpack",
    dtypes=INTEGERS | REALS | COMPLEX | {"bool", "bfloat16", "float8_e4m3fn", "float8_e5m2"},
    devices=("cpu", "cuda"),
    grad=in_graph,
    detach=detach,
    dtype_type="paddle:dtype",
    variants={"grad": with_gradient},
    install=INSTALL,
)


def describe(value: Any) -> Spec:
    """Return the spec of a tensor; all layouts have one type."""
    if not value.is_sparse():
        return _DENSE.describe(value)
    by_rows, values = value.is_sparse_csr(), value.values()
    if len(value.shape) != (2 if by_rows else len(value.indices())):
        msg = "its values are arrays, or it is a batch of matrices; convert its parts one by one."
        raise UnknownValueError(msg)
    spec = _DENSE.describe(values)
    indices = [value.crows(), value.cols()] if by_rows else [value.indices()]
    numbers = [_DENSE.describe(array) for array in indices]
    loose = not (by_rows or value.is_coalesced())
    return spec._replace(
        format="paddle.sparse_csr" if by_rows else "paddle.sparse_coo",
        shape=tuple(value.shape),
        traits=(spec.traits & {"grad"}) | ({"uncoalesced"} if loose else set()),
        nbytes=spec.nbytes + sum(index.nbytes for index in numbers),
        nnz=values.shape[0],
        index_dtype=numbers[0].dtype,
    )


def unpack_coo(value: Any) -> Parts:
    """Return the components of a COO tensor; the index of each axis is a row of its own block."""
    rows = {f"indices_{axis}": row for axis, row in enumerate(value.indices())}
    arrays = {"values": value.values(), **rows}
    return Parts(tuple(value.shape), arrays, {"canonical": value.is_coalesced()})


def pack_coo(parts: Parts) -> Any:
    """Return a COO tensor over given values; Paddle wants the indices in one block."""
    import paddle

    rows = [parts.arrays[f"indices_{axis}"] for axis in range(len(parts.shape))]
    if len(rows[0]) == 0:
        raise Declined("Paddle makes no COO tensor that stores no element")
    values = parts.arrays["values"]
    return paddle.sparse.sparse_coo_tensor(paddle.stack(rows), values, parts.shape)


def unpack_csr(value: Any) -> Parts:
    """Return the components of a CSR tensor."""
    arrays = {"values": value.values(), "indices": value.cols(), "pointers": value.crows()}
    return Parts(tuple(value.shape), arrays)


def pack_csr(parts: Parts) -> Any:
    """Return a CSR tensor over given components."""
    import paddle

    pointers, columns, values = (parts.arrays[role] for role in ("pointers", "indices", "values"))
    return paddle.sparse.sparse_csr_tensor(pointers, columns, values, parts.shape)


def _sparse(layout: str, variants: dict[str, Any], *, make: Any, **components: Any) -> Format:
    """Return a format by the layout of its components, with the traits of its variants."""
    roles = {"values": "dtype", "indices": "index_dtype"}
    if layout == "csr":
        roles["pointers"] = "index_dtype"
    return Format(
        f"paddle.sparse_{layout}",
        types=("paddle:Tensor",),
        target_types=(),
        describe=describe,
        dtypes=SPARSE_DTYPES,
        index_dtypes={"int32", "int64"},
        devices=("cpu", "cuda"),
        carries={"grad", *variants},
        components=Components(layout, "paddle", roles, unpack_keeps=variants.keys(), **components),
        unary=(Drop("grad", detach, effect="detach"),),
        samples=Samples(make=make, variants={**variants, "grad": with_gradient}),
        requires="paddle",
        install=INSTALL,
    )


@hookimpl
def interop_declarations() -> list[Declaration]:
    """Return the formats; all ways from and to others follow from DLPack and the components."""
    return [
        _DENSE._replace(describe=describe),
        *_STEPS,
        _sparse(
            "coo",
            {"uncoalesced": uncoalesced},
            make=lambda dense: dense.to_sparse_coo(len(dense.shape)),
            unpack=unpack_coo,
            pack=pack_coo,
            pack_copies={"indices"},
        ),
        _sparse(
            "csr",
            {},
            make=lambda dense: dense.to_sparse_csr(),
            unpack=unpack_csr,
            pack=pack_csr,
        ),
    ]
