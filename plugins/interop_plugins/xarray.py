"""The plugin of xarray."""

from __future__ import annotations
