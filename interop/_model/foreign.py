"""Foreign code: the functions of plugins and of values, which may raise anything."""

from __future__ import annotations

from interop.errors import DoesNotFitError, HandOffError, InteropError


def is_interruption(error: BaseException) -> bool:
    """Tell whether an exception came from outside of the code that it ended.

    These are Ctrl-C, and whatever a handler of signals raises: ``sys.exit()`` for SIGTERM, or an
    error for an alarm. All others, SystemExit included, are the faults of the code.
    """
    import signal

    if isinstance(error, KeyboardInterrupt):
        return True
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    traceback = error.__traceback__ if codes else None
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


def error_text(error: BaseException) -> str:
    """Return an exception as a message names it: its class, and its text if that can be had."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the exception is foreign, too
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def unreadable(value: object, error: BaseException) -> InteropError:
    """Return the error to raise for one that a value's own code has raised."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    msg = f"{name} raised {error_text(error)} when it was asked for its array"
    if isinstance(error, MemoryError):
        return DoesNotFitError(f"{msg}; convert it in parts.")
    return HandOffError(f"{msg}; open what it reads from, or pass a plain array instead.")
