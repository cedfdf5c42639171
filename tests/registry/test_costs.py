"""Costs: the table that takes the place of declared costs, and the file that keeps it."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import interop
from interop import Conversion, Cost, Interop
from interop._model.cost import CACHED
from interop._registry import costs as stored_costs
from interop.plugin import make_spec
from tests.toys import Box, toy

KEY = "array-interop: numpy → numpy: copy"

# ------------------------------------------------------------------ the table


def test_the_first_bytes_are_counted_at_the_speed_of_the_caches() -> None:
    """With a second speed the estimate is continuous, and the one of fresh memory counts for the rest."""
    cost = Cost(1e-6, bandwidth=1e9, cached=1e10)
    empty, small, large = (
        make_spec("numpy", "uint8", shape=(n,)) for n in (0, CACHED // 2, 8 * CACHED)
    )
    assert cost.seconds(empty, empty) == 1e-6
    assert cost.seconds(small, small) == pytest.approx(1e-6 + CACHED / 1e10)
    assert cost.seconds(large, empty) == pytest.approx(1e-6 + CACHED / 1e10 + 7 * CACHED / 1e9)
    assert (cost.fastest, Cost(1e-6).fastest, Cost(0, 5.0).fastest) == (1e10, float("inf"), 5.0)


def test_every_conversion_has_a_key_of_its_own() -> None:
    """No two conversions in force would share a row of the table."""
    keys = [declared.key for declared in interop.conversions()]
    assert len(set(keys)) == len(keys)
    assert KEY in keys


def test_a_table_takes_the_place_of_declared_costs() -> None:
    """`costs=` prices conversions and handling; what it leaves out keeps what is declared."""
    mine = Interop(costs={KEY: Cost(3.0, 7.0), "scipy.csr": Cost(5.0)})
    costs = {declared.key: declared.conversion.cost for declared in mine.conversions()}
    declared = {d.key: d.conversion.cost for d in Interop(costs={}).conversions()}
    assert costs[KEY] == Cost(3.0, 7.0)
    assert {k: c for k, c in costs.items() if k != KEY} == {
        k: c for k, c in declared.items() if k != KEY
    }
    composites = [f.format for f in mine.formats() if f.format.components is not None]
    slow = [format_.name for format_ in composites if format_.components.pack_seconds == 5.0]
    assert slow == ["scipy.csr"]


def test_the_planner_goes_by_the_table(empty: Interop) -> None:
    """The same declarations give another route under other costs, also for what comes later."""
    rivals = [
        Conversion("a", "b", Box, effects={"copy"}, cost=Cost(1e-6), name=name)
        for name in ("one", "other")
    ]
    empty.register(toy("a"), toy("b"), *rivals)
    spec = make_spec("a", "float32", shape=(4,))
    assert [s.label for s in empty.plan(spec, to="b").steps] == ["one"]
    mine = Interop(plugins=False, costs={"run time: a → b: one": Cost(2e-6)})
    mine.register(toy("a"), toy("b"), *rivals)
    assert [s.label for s in mine.plan(spec, to="b").steps] == ["other"]


def test_declaring_again_under_a_table_is_harmless(loaded: Interop) -> None:
    """A declaration is compared with what was declared, not with what was measured."""
    table = {d.key: Cost(1.0) for d in loaded.conversions()} | {"numpy": Cost(1.0)}
    mine = Interop(costs=table)
    copy = next(d.conversion for d in loaded.conversions() if d.key == KEY)
    numpy = next(f.format for f in loaded.formats() if f.name == "numpy")
    mine.register(numpy, copy)
    assert {d.conversion.cost for d in mine.conversions()} == {Cost(1.0)}


# ------------------------------------------------------------------ the file


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is named by the environment, with the costs of this machine in it."""
    path = tmp_path / "costs.json"
    monkeypatch.setenv("INTEROP_CALIBRATION", str(path))
    stored_costs.write(
        path, stored_costs.encoded({KEY: Cost(3.0, 7e9, 8e9), "scipy.csr": Cost(5.0)})
    )
    return path


def _cost_of_copy(instance: Interop) -> Cost:
    return next(d.conversion.cost for d in instance.conversions() if d.key == KEY)


DECLARED = _cost_of_copy(Interop(costs={}))


def test_what_is_stored_is_read_with_the_plugins(file: Path) -> None:
    """Every instance with plugins has the stored costs, unless it was given some."""
    assert _cost_of_copy(Interop()) == Cost(3.0, 7e9, 8e9)
    assert _cost_of_copy(Interop(costs={})) == DECLARED


@pytest.mark.parametrize("word", ["", "off", "OFF"])
def test_the_file_can_be_switched_off(
    word: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty variable, or ``off``, means the declared costs."""
    monkeypatch.setenv("INTEROP_CALIBRATION", word)
    assert _cost_of_copy(Interop()) == DECLARED


def test_each_machine_has_a_file_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Machines that share a home do not read each other's files."""
    pytest.importorskip("platformdirs", reason="costs are stored with the extra `cli` alone")
    monkeypatch.delenv("INTEROP_CALIBRATION")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = stored_costs.default_file()
    monkeypatch.setattr(stored_costs, "_processor", lambda: "another")
    assert file != stored_costs.default_file()
    assert file is not None
    assert file.parent.name == "interop"


def _changed(**facts: object) -> Callable[[str], bytes]:
    return lambda text: json.dumps({**json.loads(text), **facts}).encode()


def _machine(**facts: object) -> dict[str, object]:
    return {**stored_costs.machine(), **facts}


BAD: dict[str, tuple[Callable[[str], bytes], str]] = {
    "empty": (lambda text: b"", "it is not JSON"),
    "cut off": (lambda text: text[: len(text) // 2].encode(), "it is not JSON"),
    "deep": (lambda text: b"[" * 100_000, "it is not JSON"),
    "binary": (lambda text: b"\xff\xfe\x00\x80", "it is not text"),
    "a list": (lambda text: b"[1, 2]", "it is not a table of costs"),
    "another layout": (_changed(layout=99), "its layout is version 99, and 1 is the one"),
    "no machine": (_changed(machine=3), "does not say on which machine"),
    "another machine": (_changed(machine=_machine(cores=4096)), r"another machine \(cores 4096, here"),
    "one fact more": (_changed(machine=_machine(moon="full")), r"another machine \(moon 'full'"),
    "a fact that is null": (_changed(machine=_machine(moon=None)), r"another machine \(moon None"),
    "no costs": (_changed(costs=None), "it holds no costs"),
    "costs that are numbers": (_changed(costs={KEY: 3}), "copy' has 3 for a cost"),
    "unknown fields": (_changed(costs={KEY: {"latency": 1, "speed": 2}}), "for a cost"),
    "no latency": (_changed(costs={KEY: {"bandwidth": 1e9}}), "for a cost"),
    "negative": (_changed(costs={KEY: {"latency": -1.0}}), "has -1.0 for a number of seconds"),
    "NaN": (_changed(costs={KEY: {"latency": float("nan")}}), "has nan for a number"),
    "infinite": (_changed(costs={KEY: {"latency": float("inf")}}), "has inf for a number"),
    "a string": (_changed(costs={KEY: {"latency": "1e-6"}}), "has '1e-6' for a number"),
    "a bool": (_changed(costs={KEY: {"latency": True}}), "has True for a number"),
    "hours": (_changed(costs={KEY: {"latency": 1e4}}), "has 10000.0 for a number"),
    "no speed": (_changed(costs={KEY: {"latency": 0, "bandwidth": 0}}), "has 0 for a number"),
    "a digit too many": (_changed(costs={KEY: {"latency": 0, "cached": 10**400}}), "has 1000"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_ignored_with_one_warning(
    case: str, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is wrong with it, the file as a whole does not count, and one record says why."""
    spoil, reason = BAD[case]
    file.write_bytes(spoil(file.read_text("utf-8")))
    with caplog.at_level(logging.WARNING, "interop"):
        assert _cost_of_copy(Interop()) == DECLARED
        assert _cost_of_copy(Interop()) == DECLARED
    assert [record.name for record in caplog.records] == ["interop"]
    start, end = caplog.records[0].getMessage().split(": ", 1)
    assert start == f"the calibration in {file} is ignored"
    assert end.endswith(
        "; run 'interop calibrate' to measure anew, or set INTEROP_CALIBRATION=off to go without"
    )
    with pytest.raises(stored_costs.UnusableTable, match=reason):
        stored_costs.decoded(stored_costs._read(file))


def test_what_is_not_a_file_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder, a missing file that was named, and a huge one are said to be so."""
    huge = tmp_path / "huge"
    with open(huge, "wb") as out:
        out.truncate(2**25)
    for path in (tmp_path, tmp_path / "missing", huge):
        monkeypatch.setenv("INTEROP_CALIBRATION", str(path))
        assert _cost_of_copy(Interop()) == DECLARED
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 3
    for message, reason in zip(messages, ("not a file", "no such file", "too many"), strict=True):
        assert reason in message


def test_a_missing_file_that_nobody_named_is_no_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where nobody has calibrated there is nothing to say."""
    monkeypatch.delenv("INTEROP_CALIBRATION")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _cost_of_copy(Interop()) == DECLARED
    assert not caplog.records


def test_without_platformdirs_there_is_no_file(in_subprocess: Callable[..., str]) -> None:
    """The optional distribution is not missed by anything but the command."""
    program = """
        import os, sys
        del os.environ["INTEROP_CALIBRATION"]
        sys.modules["platformdirs"] = None
        import interop
        from interop._registry.costs import default_file
        print(default_file(), interop.convert([1, 2], to="numpy"))
    """
    assert in_subprocess(program).strip() == "None [1 2]"


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that fails leaves the old file, and nothing beside it."""
    path = tmp_path / "new" / "costs.json"
    stored_costs.write(path, "old")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stored_costs.os, "replace", fails)
    with pytest.raises(OSError, match="No space left"):
        stored_costs.write(path, "new")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such permissions")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_whoever_may_read_new_files_may_read_it(umask: int, mode: int, tmp_path: Path) -> None:
    """A file of costs gets the permissions that the user gives to new files."""
    old = os.umask(umask)
    try:
        stored_costs.write(tmp_path / "costs.json", "{}")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "costs.json").stat().st_mode) == mode


def test_what_is_written_is_read_back() -> None:
    """Costs survive the file exactly."""
    costs = {KEY: Cost(1 / 3, 2e9 / 7), "scipy.csr": Cost(1e-7), "x": Cost(0.0, 3e9, 1e10)}
    assert stored_costs.decoded(stored_costs.encoded(costs, seconds=3)) == costs
