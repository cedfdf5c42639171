"""The plugin of pyarrow."""

from __future__ import annotations
