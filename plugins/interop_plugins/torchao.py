"""The plugin of torchao."""

from __future__ import annotations
