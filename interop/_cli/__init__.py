"""The command ``interop``; nothing outside of it depends on it."""

from __future__ import annotations
