"""``python -m benchmarks``: every table, in one run."""

from __future__ import annotations

import sys

from .rivals import set_up

if __name__ == "__main__":
    set_up()  # before the libraries that read the environment are imported
    from .command import main

    sys.exit(main())
