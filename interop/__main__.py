"""The command, run as ``python -m interop``."""

from __future__ import annotations

from runpy import run_module

if __name__ == "__main__":
    run_module("interop._cli.cli", run_name="__main__")
