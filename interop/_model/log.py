"""The log: one logger, whose records are lines that can be read."""

from __future__ import annotations

import logging

from interop._text import legible

log = logging.getLogger("interop")


def _as_line(record: logging.LogRecord) -> bool:
    record.msg, record.args = legible(record.getMessage()), ()
    return True


log.addFilter(_as_line)
