"""The methods behind the functions of the package."""

from __future__ import annotations
