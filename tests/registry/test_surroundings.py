"""Surroundings: what loading a plugin changes in the process is told and put back."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interop._registry.surroundings import unchanged
from interop.plugin.advanced import Settings
from tests.strange import HEAVY


def _wide_filters() -> list[Any]:
    return [f for f in warnings.filters if f[1] is None and f[2] is Warning and f[3] is None]


#: What changes a part, what is said of it, and what reads the part.
CHANGES: list[tuple[Callable[[], object], str, Callable[[], object]]] = [
    (gc.disable, "the garbage collector", gc.isenabled),
    (lambda: gc.set_threshold(7), "the collector's thresholds", gc.get_threshold),
    (
        lambda: warnings.simplefilter("ignore"),
        "the filters of all warnings",
        lambda: [*warnings.filters],
    ),
    (warnings.resetwarnings, "the filters of all warnings", _wide_filters),
    (
        lambda: sys.setswitchinterval(0.5),
        "the interpreter's switch interval",
        sys.getswitchinterval,
    ),
    (lambda: sys.setrecursionlimit(3000), "the recursion limit", sys.getrecursionlimit),
    (lambda: setattr(sys, "stdout", sys.stderr), "sys.stdout", lambda: sys.stdout),
    (lambda: setattr(sys, "excepthook", print), "sys.excepthook", lambda: sys.excepthook),
    (
        lambda: setattr(threading, "excepthook", print),
        "threading.excepthook",
        lambda: threading.excepthook,
    ),
    (lambda: os.chdir("/"), "the working directory", os.getcwd),
    (
        lambda: os.environ.update(ODD_OPTION="1"),
        "the environment (ODD_OPTION)",
        lambda: dict(os.environ),
    ),
    (
        lambda: signal.signal(signal.SIGTERM, lambda *_: None),
        f"the handlers of signals ({int(signal.SIGTERM)})",
        lambda: signal.getsignal(signal.SIGTERM),
    ),
]


@pytest.mark.parametrize(("change", "name", "read"), CHANGES, ids=[n for _, n, _ in CHANGES])
def test_a_change_is_told_and_put_back(
    change: Callable[[], object],
    name: str,
    read: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each part of the surroundings is what it was before, and the text names it."""
    monkeypatch.chdir("/tmp")
    warnings.simplefilter("error", append=True)
    before = read()
    with unchanged([]) as changes:
        change()
        assert read() != before
    assert changes == [f"loading it changed {name}, which was put back."]
    assert read() == before


def test_a_thread_is_told_and_goes_on() -> None:
    """What cannot be put back is told all the same."""
    end = threading.Event()
    with unchanged([]) as changes:
        thread = threading.Thread(target=end.wait, name="odd-one")
        thread.start()
    assert changes == ["loading it changed the threads (odd-one)."]
    end.set()
    thread.join()


def test_a_filter_for_some_warnings_stays() -> None:
    """Frameworks add filters about warnings of their own, which are nobody else's concern."""
    with warnings.catch_warnings():
        with unchanged([]) as changes:
            warnings.filterwarnings("ignore", message="odd")
        assert changes == []
        assert any(f[1] is not None and f[1].match("odd") for f in warnings.filters)


def test_nothing_is_told_where_nothing_changed() -> None:
    """Nor is anything put back."""
    with unchanged([Settings("no_such_module", dict, print)]) as changes:
        pass
    assert changes == []


def test_settings_that_cannot_be_read_or_put_back_do_no_harm() -> None:
    """A framework's functions may raise anything."""

    def fail(*_: object) -> Any:
        raise SystemExit(3)

    numbers = [{"a": 1}, {"a": 2}]
    failing = Settings("json", fail, fail), Settings("json", lambda: numbers.pop(0), fail)
    with unchanged(failing) as changes:
        pass
    assert changes == [
        "loading it changed the settings of json (a), which could not be put back (SystemExit: 3)."
    ]


#: A plugin that leaves traces, and a program that looks for them.
RUDE = """
import gc, sys, warnings, threading, os
gc.disable()
warnings.simplefilter("ignore")
sys.setswitchinterval(0.5)
threading.Thread(target=threading.Event().wait, name="rude", daemon=True).start()
from interop.plugin import hookimpl
@hookimpl
def interop_declarations():
    {hook}
    return []
"""
PROGRAM = """
import gc, json, sys, threading, warnings
{imports}
import interop
def state():
    wide = [f for f in warnings.filters if f[1] is None and f[2] is Warning and f[3] is None]
    return gc.isenabled(), wide, sys.getswitchinterval()
before = state()
(rude,) = [p for p in interop.plugins() if p.name == "rude"]
same = state() == before
(again,) = [p for p in interop.Interop().plugins() if p.name == "rude"]
print(json.dumps([rude.state, rude.reason, same, again.reason == rude.reason, {extra}]))
"""


def _run(folder: Path, *, imports: str = "", hook: str = "", extra: str = "None") -> Any:
    metadata = folder / "rude-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: rude\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[interop]\nrude = rude_plugin\n")
    (folder / "rude_plugin.py").write_text(RUDE.format(hook=hook))
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM.format(imports=imports, extra=extra))],
        env={
            **os.environ,
            "PYTHONPATH": str(folder),
            "INTEROP_DISABLE_PLUGINS": ",".join({*HEAVY.split(",")} - {"torch"}),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def test_a_plugin_that_changes_the_process_is_told_of(tmp_path: Path) -> None:
    """It is loaded, its state has every change, and the process is as it was but for the thread."""
    state, reason, same, again, _ = _run(tmp_path)
    assert (state, same, again) == ("loaded", True, True)
    for name in (
        "the garbage collector, which was put back",
        "the filters of all warnings, which was put back",
        "the interpreter's switch interval, which was put back",
        "the threads (rude)",
    ):
        assert f"loading it changed {name}." in reason


def test_a_plugin_that_fails_leaves_no_trace_either(tmp_path: Path) -> None:
    """The reason has why it failed, and then what it has changed."""
    state, reason, same, _, _ = _run(tmp_path, hook="raise OSError('disk')")
    assert (state, same) == ("failed", True)
    assert reason.startswith("OSError: disk; loading it changed ")


def test_the_defaults_of_frameworks_are_put_back(tmp_path: Path) -> None:
    """Torch's default dtype and NumPy's treatment of errors are what the program has set."""
    state, reason, same, _, extra = _run(
        tmp_path,
        imports="import numpy as np, torch; torch.set_num_threads(1)",
        hook="""
    import numpy as np, torch
    torch.set_default_dtype(torch.float64); torch.set_default_device("meta")
    torch.set_grad_enabled(False); np.seterr(all="ignore")
""",
        extra="[str(torch.ones(1).dtype), str(torch.ones(1).device), torch.is_grad_enabled(), "
        "np.geterr()['over'], torch.get_num_threads()]",
    )
    assert (state, same) == ("loaded", True)
    assert extra == ["torch.float32", "cpu", True, "warn", 1]
    assert "the settings of torch (default device, default dtype, grad), which was put" in reason
    assert "the settings of numpy (divide, invalid, over), which was put back." in reason
