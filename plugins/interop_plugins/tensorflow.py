"""The plugin of tensorflow."""

from __future__ import annotations
