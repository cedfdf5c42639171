"""What a value is: its format by its type, and which frameworks there are."""

from __future__ import annotations
