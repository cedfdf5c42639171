"""What other tests import from here lives in `tests.docs.test_docs`."""

from __future__ import annotations

from tests.docs.test_docs import timeless

__all__ = ["timeless"]
