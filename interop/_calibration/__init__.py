"""What steps cost on this machine."""

from __future__ import annotations
