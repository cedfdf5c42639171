"""The plugin of onnxruntime."""

from __future__ import annotations
