"""The check of a plugin: all its promises, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from types import ModuleType

from ._report import Finding, Report
from ._session import Session
from ._subject import Bench, subjects_of


def check(
    plugin: str | ModuleType, *, progress: Callable[[int, int, str], None] | None = None
) -> Report:
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
    start = perf_counter()
    work = [
        (subject, number, promise)
        for subject in subjects_of(plugin)
        for number, promise in enumerate(Bench(subject).promises())
    ]
    findings: list[Finding] = []
    with Session() as session:
        for position, (subject, number, promise) in enumerate(work):
            if progress:
                progress(position, len(work), promise.name)
            findings += session.findings(subject, number, promise)
    if progress:
        progress(len(work), len(work), "")
    name = plugin if isinstance(plugin, str) else plugin.__name__
    return Report(name, tuple(findings), perf_counter() - start)
