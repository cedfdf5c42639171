"""First-party plugins, one file per framework or protocol, reached only through entry points."""

from __future__ import annotations

#: The plugins that can wait until a module of one of these names is imported, or a call names one
#: of them. They declare no hub and no protocol, nothing that asks of any module or function, and no
#: conversion between formats of others.
ON_DEMAND = {
    "awkward": {"awkward", "ak"},
    "dask": {"dask", "da"},
    "datasets": {"datasets"},
    "dpnp": {"dpnp"},
    "jax": {"jax", "jaxlib", "jnp"},
    "mlx": {"mlx", "mx"},
    "onnxruntime": {"onnxruntime", "ort"},
    "pandas": {"pandas", "pd"},
    "polars": {"polars", "pl"},
    "sparse": {"sparse"},
    "torchao": {"torchao"},
    "xarray": {"xarray", "xr"},
}
