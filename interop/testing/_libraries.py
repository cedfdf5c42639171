"""Libraries: whether one keeps what the DLPack standard asks of its producer and its consumer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter
from types import ModuleType
from typing import Any

from ._conformance import consumer, interfaces, producer  # they register their checks
from ._conformance.library import Library
from ._conformance.rules import UntrueError, shown
from ._process import Say, Worker, WorkerEnded
from ._report import ADVICE, FAILED, NOT_EXERCISED, PASSED, REFUSED, Finding, Report
from ._sample import NoSample
from ._table import CONSUMER, INTERFACE, PRODUCER, TABLE, Check, Refused

#: Seconds that one check may take, the library's import included.
_PATIENCE = 120.0
#: What the checks of a library are about, and what makes a case of each.
_MAKE: dict[str | type, Callable[[Library, str], Any]] = {
    PRODUCER: producer.Produced,
    CONSUMER: consumer.Consumed,
    INTERFACE: interfaces.Offered,
}
#: The checks of a library, each with the cases that it is made with.
_WORK = [
    (check, case)
    for role in _MAKE
    for check in TABLE
    if check.about == role
    for case in check.cases or ("one block",)
]


def check_dlpack(
    library: str | ModuleType = "",
    *,
    make: str | Callable[..., Any] = "",
    from_dlpack: str | Callable[..., Any] = "",
    progress: Callable[[int, int, str], None] | None = None,
) -> Report:
    """Try whether a library keeps what the DLPack standard asks of it.

    No plugin is needed, and nothing else of `interop`. Each check runs in another process, so that
    what ends it is a finding. Memory on devices is not tried.

    Parameters
    ----------
    library : str or module
        The module whose arrays are looked at (``"torch"``, ``"jax.numpy"``); by default that of
        `make`.
    make : str or callable, optional
        What makes an array of a `numpy.ndarray`; by default the library's ``asarray`` or
        ``array``. As ``"module:function"``, or a function that its module holds.
    from_dlpack : str or callable, optional
        The library's consumer; by default its ``from_dlpack``.
    progress : callable, optional
        ``progress(done, total, what)``, called before each check and at the end.

    Returns
    -------
    Report
        Of rules of the standard, each with the layout or dtype that it was tried with. It prints as
        text; ``as_markdown()`` and ``as_dict()`` are the same for pages and programs.

    Raises
    ------
    ValueError
        No library is named; or a function is not held by a module, so that no other process finds
        it.

    Examples
    --------
    >>> report = check_dlpack("numpy")
    >>> report.failed
    ()
    """
    functions = _reference(make), _reference(from_dlpack)
    name = _module(library) or functions[0].partition(":")[0]
    if not name:
        raise ValueError("name the module of a library, or what makes its arrays as make=")
    subject = Library(name, *functions)
    start, findings = perf_counter(), []
    with Worker(f"{__name__}:answer") as worker:
        for number, (check, case) in enumerate(_WORK):
            role, words = str(check.about), check.name.replace("_", " ")
            if progress:
                progress(number, len(_WORK), f"{role}: {words}")
            outcome, rule = _outcome(worker, subject, number), f"{check.sentence} ({check.source})"
            findings.append(Finding(name, role, f"{words} ({case})", *outcome, rule))
    if progress:
        progress(len(_WORK), len(_WORK), "")
    title = f"{name} {_version(name)}".strip()
    return Report(title, tuple(findings), perf_counter() - start)


def _outcome(worker: Worker, library: Library, number: int) -> tuple[str, str]:
    worker.send([library, number])
    try:
        outcome, reason = worker.answer(_PATIENCE)
    except WorkerEnded as end:
        return FAILED, str(end)
    return (ADVICE if outcome == FAILED and not _WORK[number][0].must else outcome), reason


def answer(question: list[Any], say: Say) -> None:
    """Make one check in this process; called for each question that `check_dlpack` sends."""
    fields, number = question
    say(_made(Library(*fields), *_WORK[number]))


def _made(library: Library, check: Check, case: str) -> tuple[str, str]:
    try:
        subject = _MAKE[check.about](library, case)
    # Of a library that is looked at: whatever keeps it from making the case.
    except Exception as error:  # noqa: BLE001
        return NOT_EXERCISED, f"no such array could be made: {shown(error)}"
    try:
        check.function(subject)
    except UntrueError as error:
        return FAILED, str(error)
    except Refused as error:
        return REFUSED, str(error)
    except NoSample as error:
        return NOT_EXERCISED, str(error)
    # Whatever else a library raises where the standard has no error is a finding about it.
    except Exception as error:  # noqa: BLE001
        return FAILED, shown(error)
    return PASSED, ""


def _module(library: object) -> str:
    """Return the name of a module."""
    if isinstance(library, str):
        return library
    if isinstance(library, ModuleType):
        return library.__name__
    kind = type(library)
    raise ValueError(
        f"{kind.__qualname__} is no library; name its module ({kind.__module__!r}), and what "
        "makes such arrays as make="
    )


def _reference(function: str | Callable[..., Any]) -> str:
    """Return ``"module:function"``."""
    if isinstance(function, str):
        return function
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module in (None, "__main__") or "<" in name or not name:
        raise ValueError(
            f"{name or function!r} is not held by a module, and checks run in another process; "
            'name it as "module:function"'
        )
    return f"{module}:{name}"


@cache
def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, packages_distributions, version

    module = name.partition(".")[0]
    for distribution in packages_distributions().get(module, (module,)):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return ""
