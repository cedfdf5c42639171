"""A route carried out on a value."""

from __future__ import annotations
