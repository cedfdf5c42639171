"""What is declared: installed plugins, and the declarations that are registered."""

from __future__ import annotations
