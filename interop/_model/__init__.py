"""What is declared and described."""

from __future__ import annotations
