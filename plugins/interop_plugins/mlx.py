"""The plugin of mlx."""

from __future__ import annotations
