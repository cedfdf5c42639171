"""Liars: each is caught by the right check, or contained, or listed as unseen."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from interop import Interop
from interop.errors import InteropError
from interop.testing._promises import promises
from interop.testing._report import FAILED, NOT_EXERCISED, Finding
from interop.testing._session import Session
from interop.testing._subject import Bench, Subject
from tests import lying_plugins
from tests.lying_plugins import Caught, Contained, Liar, Told, Unseen

#: Plugins that are honest, and those that lie where they are imported: tables name the latter.
_MODULES = {
    *("declares_nothing", "gauges", "grid", "honest", "honest_triples", "imports_its_framework"),
    *("only_exports", "only_imports", "runs", "triples", "volumes", "wraps_in_secret"),
}
_TABLES = [name for _, name, _ in pkgutil.iter_modules(lying_plugins.__path__)]
LIARS: dict[str, Liar] = {
    module: liar
    for table in _TABLES
    if table not in _MODULES
    for module, liar in import_module(f"{lying_plugins.__name__}.{table}").LIARS.items()
}
_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "testing.md"


def _with(fate: type) -> list[Any]:
    return [
        pytest.param(module, liar.fate, id=module)
        for module, liar in LIARS.items()
        if isinstance(liar.fate, fate)
    ]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """One process for all liars; one that ends it gets another."""
    with Session() as session:
        yield session


def _findings(session: Session, module: str, promise_name: str = "") -> list[Finding]:
    """Try the formats and conversions of a liar, or one of them."""
    subject = Subject(module, module)
    return [
        finding
        for number, promise in enumerate(promises(Bench(subject)))
        if promise_name == promise.name
        or (not promise_name and not promise.name.startswith("plugin "))
        for finding in session.findings(subject, number, promise)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "fate"), _with(Caught))
def test_liars_are_caught_by_the_check_of_their_lie(
    module: str, fate: Caught, session: Session
) -> None:
    """The check that the lie belongs to finds it, and blames the declaration that lies."""
    findings = _findings(session, module, fate.promise)
    reasons = [
        finding.reason
        for finding in findings
        if (finding.outcome, finding.check) == (FAILED, fate.check)
    ]
    assert len(reasons) == 1, findings
    assert fate.text in reasons[0]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "fate"), _with(Caught))
def test_findings_on_others_name_the_liar(module: str, fate: Caught, session: Session) -> None:
    """Everything but the declaration that lies is found to be true, or names the one that lies."""
    if fate.check == "lifetime":
        pytest.skip("whoever is given memory that went away may be found to share it")
    label = fate.promise.partition(": ")[2].partition(" if ")[0] or fate.promise
    words = fate.blamed or label
    blamed = [
        str(finding)
        for finding in _findings(session, module)
        if finding.outcome == FAILED
        and finding.conversion != fate.promise
        and words not in finding.reason
    ]
    assert blamed == []


@pytest.mark.slow
@pytest.mark.parametrize(("module", "fate"), _with(Told))
def test_liars_that_were_not_tried_are_reported_so(
    module: str, fate: Told, session: Session
) -> None:
    """What was not tried of it counts as not exercised, with the reason."""
    findings = _findings(session, module, fate.promise)
    untried = {f.check: f.reason for f in findings if f.outcome == NOT_EXERCISED}
    assert fate.text in untried.get(fate.check, ""), findings


@pytest.mark.parametrize(("module", "fate"), _with(Contained))
def test_liars_in_use_raise_errors_that_name_them(module: str, fate: Contained) -> None:
    """Whoever uses it gets an error of interop's that names it, and others get what they got."""
    mine = Interop()
    mine.register(*LIARS[module].declarations())
    with pytest.raises(InteropError) as caught:
        fate.use(mine)
    assert fate.text in str(caught.value)
    assert mine.convert([1.0], "numpy").tolist() == [1.0]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "fate"), _with(Unseen))
def test_unseen_lies_are_listed_as_limits(module: str, fate: Unseen, session: Session) -> None:
    """What passes is said to pass: the page names the limit, and the suite does not see the lie."""
    assert f"- **{fate.limit}.**" in _PAGE.read_text().partition("cannot see")[2]
    assert [
        str(finding) for finding in _findings(session, module) if finding.outcome == FAILED
    ] == []


def test_liars_have_different_names() -> None:
    """No two liars have one name."""
    assert len({liar.name for liar in LIARS.values()}) == len(LIARS)
