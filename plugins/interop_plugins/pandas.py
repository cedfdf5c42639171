"""The plugin of pandas."""

from __future__ import annotations
