"""The plugin of dask."""

from __future__ import annotations
