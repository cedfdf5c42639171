"""What is installed and registered."""

from __future__ import annotations
