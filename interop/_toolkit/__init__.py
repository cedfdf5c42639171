"""Helpers that plugins call."""

from __future__ import annotations
