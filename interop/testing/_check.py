"""The check of a plugin: all its promises, one after the other.

The doctor tries all plugins, with one value a conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from time import perf_counter
from types import ModuleType

from interop._recognition.installed import not_installed
from interop._registry.plugins import found

from ._calls import OF_A_CALL
from ._promises import promises, work_of
from ._report import Finding, Report
from ._session import Session
from ._subject import Bench, Promise, Subject, of_entry

#: ``progress(done, total, what)``.
Progress = Callable[[int, int, str], None]


def check(plugin: str | ModuleType, *, progress: Progress | None = None) -> Report:
    """Try everything that a plugin promises.

    It runs in processes of its own, so that a conversion that crashes is a finding.

    Parameters
    ----------
    plugin : str or module
        The name of a plugin's entry point (``"grid"``), of a distribution, all of whose plugins are
        then tried (``"interop-grid"``), of a module, installed as a plugin or not
        (``"interop_grid"``), or the module itself.
    progress : callable, optional
        ``progress(done, total, what)``, called before each promise and at the end.

    Returns
    -------
    Report
        It prints as text; its `ok` tells whether nothing failed.

    Raises
    ------
    PluginError
        There is no such plugin.

    Examples
    --------
    >>> report = check("python")
    >>> report.ok
    True
    >>> [finding.check for finding in report.findings if finding.conversion == "plugin python"]
    ['loading', 'imports', 'absence']
    """
    name = plugin if isinstance(plugin, str) else plugin.__name__
    return _report(name, work_of(plugin), Session(), progress)


def try_conversions(
    *, without: Collection[str] = (), patience: float = 120, progress: Progress | None = None
) -> Report:
    """Convert one real value by each conversion of the installed plugins.

    What is compared is all that a single call can show, `OF_A_CALL`. Conversions that need a
    framework which is not installed are left out.

    Parameters
    ----------
    without : collection of str
        Modules of frameworks to leave out, too.
    patience : float
        Seconds after which a conversion is given up.
    progress : callable, optional
        ``progress(done, total, what)``.
    """
    work = [
        (subject, number, promise._replace(checks=OF_A_CALL))
        for subject in [of_entry(entry) for entry, _ in found()]
        for number, promise in _conversions(subject, without)
    ]
    return _report("the conversions of the installed plugins", work, Session(patience), progress)


def _conversions(subject: Subject, without: Collection[str]) -> Iterator[tuple[int, Promise]]:
    for number, promise in enumerate(promises(Bench(subject))):
        if promise.conversion is not None:
            ends = (promise.conversion.source, promise.conversion.target)
            if not any(not_installed(end) or end.requires in without for end in ends):
                yield number, promise


def _report(
    name: str,
    work: list[tuple[Subject, int, Promise]],
    session: Session,
    progress: Progress | None,
) -> Report:
    start = perf_counter()
    findings: list[Finding] = []
    with session:
        for position, (subject, number, promise) in enumerate(work):
            if progress:
                progress(position, len(work), promise.name)
            findings += session.findings(subject, number, promise)
    if progress:
        progress(len(work), len(work), "")
    return Report(name, tuple(findings), perf_counter() - start)
