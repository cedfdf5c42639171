"""What a caller asks for: keywords, names, policy and the request that they make."""

from __future__ import annotations
