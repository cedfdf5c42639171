"""Liars by classes: each is caught by the right check, or contained, or listed as unseen."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from interop import Interop
from interop.errors import InteropError
from interop.testing._report import FAILED, NOT_EXERCISED, Finding
from interop.testing._session import Session
from interop.testing._subject import Bench, Subject
from tests.lying_plugins import classes
from tests.lying_plugins.classes import Caught, Contained, Liar, Told, Unseen

_TABLES = [name for _, name, _ in pkgutil.iter_modules(classes.__path__)]
LIARS: dict[str, Liar] = {
    module: liar
    for table in _TABLES
    for module, liar in import_module(f"{classes.__name__}.{table}").LIARS.items()
}
_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "testing.md"


#: Each of these ends a process, which takes a second to start.
_SLOW = {"aborts", "fill_exits", "of_the_object", "reads_nowhere"}


def _with(fate: type) -> list[Any]:
    return [
        pytest.param(module, marks=[pytest.mark.slow] if liar.name in _SLOW else [])
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
    bench = Bench(subject)
    assert not bench.problem
    return [
        finding
        for number, promise in enumerate(bench.promises())
        if promise_name == promise.name
        or (not promise_name and not promise.name.startswith("plugin "))
        for finding in session.findings(subject, number, promise)
    ]


@pytest.mark.parametrize("module", _with(Caught))
def test_a_liar_is_caught(module: str, session: Session) -> None:
    """The check that the lie belongs to finds it, and blames the declaration that lies."""
    fate = LIARS[module].fate
    assert isinstance(fate, Caught)
    findings = _findings(session, module, fate.promise)
    failed = {finding.check: finding.reason for finding in findings if finding.outcome == FAILED}
    assert fate.check in failed, findings
    assert fate.text in failed[fate.check]


@pytest.mark.slow
@pytest.mark.parametrize("module", _with(Caught))
def test_nobody_else_is_blamed(module: str, session: Session) -> None:
    """Everything but the declaration that lies is found to be true, or names the one that lies."""
    fate = LIARS[module].fate
    assert isinstance(fate, Caught)
    label = fate.promise.partition(": ")[2].partition(" if ")[0] or fate.promise
    failed = [finding for finding in _findings(session, module) if finding.outcome == FAILED]
    others = [finding for finding in failed if finding.conversion != fate.promise]
    named = (label, fate.text or label)
    blamed = [f for f in others if not any(words in f.reason for words in named)]
    assert [str(finding) for finding in blamed] == []


@pytest.mark.parametrize("module", _with(Told))
def test_a_liar_is_told_of(module: str, session: Session) -> None:
    """What was not tried of it counts as not exercised, with the reason."""
    fate = LIARS[module].fate
    assert isinstance(fate, Told)
    findings = _findings(session, module, fate.promise)
    untried = {f.check: f.reason for f in findings if f.outcome == NOT_EXERCISED}
    assert fate.text in untried.get(fate.check, ""), findings


@pytest.mark.parametrize("module", _with(Contained))
def test_a_liar_is_contained(module: str) -> None:
    """Whoever uses it gets an error of interop's that names it, and others get what they got."""
    fate = LIARS[module].fate
    assert isinstance(fate, Contained)
    mine = Interop()
    mine.register(*LIARS[module].declarations())
    with pytest.raises(InteropError) as caught:
        fate.use(mine)
    assert fate.text in str(caught.value)
    assert mine.convert([1.0], "numpy").tolist() == [1.0]


@pytest.mark.parametrize("module", _with(Unseen))
def test_a_liar_is_listed(module: str, session: Session) -> None:
    """What passes is said to pass: the page names the limit, and the suite does not see the lie."""
    fate = LIARS[module].fate
    assert isinstance(fate, Unseen)
    assert f"- **{fate.limit}.**" in _PAGE.read_text().partition("cannot see")[2]
    assert [
        str(finding) for finding in _findings(session, module) if finding.outcome == FAILED
    ] == []


def test_every_lie_is_another() -> None:
    """No two liars have one name or one lie."""
    assert len({liar.name for liar in LIARS.values()}) == len(LIARS)
