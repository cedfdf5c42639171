"""From a spec and a request to a route."""

from __future__ import annotations
