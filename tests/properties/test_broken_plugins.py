"""Plugins that are broken in every way, installed into a folder: each disables only itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.strange import HEAVY

#: What every plugin here begins with.
HEAD = """
from interop.plugin import hookimpl, Format, Conversion, Cost, DtypeNames
F32 = frozenset({"float32"})
def formats(*declared):
    globals()["interop_formats"] = named("interop_formats", declared)
def conversions(*declared):
    globals()["interop_conversions"] = named("interop_conversions", declared)
def named(name, declared):
    space = {"declared": declared, "hookimpl": hookimpl}
    exec(f"@hookimpl\\ndef {name}():\\n    return declared", space)
    return space[name]
def view(**facts):
    return Conversion("numpy", "bad", print, **facts)
"""

#: What is wrong, and what is said of it.
BROKEN = {
    "raises": ("raise ValueError('no luck')", "ValueError: no luck"),
    "exits": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "is_no_python": ("def (", "SyntaxError"),
    "needs_what_is_missing": ("import no_such_module", "no_such_module"),
    "recurses": ("def f(): f()\nf()", "RecursionError"),
    "hook_raises": ("@hookimpl\ndef interop_formats(): raise KeyError('x')", "KeyError"),
    "hook_exits": ("@hookimpl\ndef interop_formats(): raise SystemExit", "SystemExit"),
    "hook_returns_none": ("@hookimpl\ndef interop_formats(): return None", "NoneType"),
    "hook_returns_a_number": ("@hookimpl\ndef interop_conversions(): return 7", "int"),
    "hook_wants_more": ("@hookimpl\ndef interop_formats(other): return []", "other"),
    "hook_ends_midway": (
        "@hookimpl\ndef interop_formats():\n    yield Format('bad')\n    raise OSError('gone')",
        "OSError: gone",
    ),
    "attribute_raises": (
        """
        class Odd:
            @property
            def interop_impl(self): raise ZeroDivisionError
            def __call__(self): pass
        formats(Format('bad', describe=Odd(), devices=None))
        """,
        "devices=None",
    ),
    "version_cannot_be_compared": (
        "class Odd:\n    def __ne__(self, other): raise ArithmeticError('odd')\nINTEROP_API = Odd()",
        "ArithmeticError",
    ),
    "no_format": ("formats('bad')", "not a named Format"),
    "dtypes_are_a_list": ("formats(Format('bad', dtypes=['float32']))", "dtypes=['float32']"),
    "dtypes_are_none": ("formats(Format('bad', dtypes=None))", "dtypes=None"),
    "dtypes_are_numbers": ("formats(Format('bad', dtypes=frozenset({4})))", "dtypes="),
    "no_devices": ("formats(Format('bad', dtypes=F32, devices=()))", "no devices"),
    "devices_are_text": ("formats(Format('bad', dtypes=F32, devices='cpu'))", "devices='cpu'"),
    "types_are_types": ("formats(Format('bad', types=(int,)))", "types="),
    "every_type": ("formats(Format('bad', types=('builtins:object',)))", "everything is"),
    "speaks_a_list": ("formats(Format('bad', speaks=['dlpack']))", "speaks="),
    "lacks_a_list": ("formats(Format('bad', lacks={'cpu': ['float32']}))", "lacks="),
    "lacks_now_raises": (
        "formats(Format('bad', unsupported_now=lambda: 1 / 0))",
        "ZeroDivisionError",
    ),
    "lacks_now_none": ("formats(Format('bad', unsupported_now=lambda: None))", "unsupported_now"),
    "handling_is_nan": ("formats(Format('bad', handling=float('nan')))", "handling=nan"),
    "variants_are_text": ("formats(Format('bad', variants={'grad': 'x'}))", "variants="),
    "another_numpy": ("formats(Format('numpy', dtypes=F32))", "declared by"),
    "no_conversion": ("conversions(Format('bad'))", "not a Conversion"),
    "unknown_effect": ("conversions(view(effects=frozenset({'explode'})))", "effect 'explode'"),
    "effects_are_none": ("conversions(view(effects=None))", "effects=None"),
    "takes_are_none": ("conversions(view(takes=None))", "takes=None"),
    "takes_are_a_list": ("conversions(view(takes=['grad']))", "takes=['grad']"),
    "cost_is_a_number": ("conversions(view(cost=5))", "cost=5"),
    "cost_is_nan": ("conversions(view(cost=Cost(float('nan'))))", "cost="),
    "cost_is_negative": ("conversions(view(cost=Cost(-1.0)))", "cost="),
    "no_speed": ("conversions(view(cost=Cost(1e-6, 0)))", "cost="),
    "priority_is_text": ("conversions(view(priority='high'))", "priority='high'"),
    "source_is_none": ("conversions(Conversion(None, 'bad', print))", "source=None"),
    "casts_without_bytes": ("conversions(view(changes=frozenset({'dtype'})))", "changes=['dtype']"),
    "fresh_without_bytes": ("conversions(view(shares=False))", "shares=False"),
    "shortcut_is_text": ("conversions(view(shortcut='x'))", "shortcut='x'"),
    "numpys_own_copy": (
        """
        import interop_plugins.numpy as own
        conversions(next(iter(own.interop_conversions()))._replace(function=print))
        """,
        "declared by",
    ),
    "shield_raises": ("@hookimpl\ndef interop_shields(): return [lambda f: 1 / 0]", "ZeroDivision"),
    "family_is_text": ("@hookimpl\ndef interop_dtypes(): return ['bad']", "no declaration"),
}

#: Declared without a flaw that could be seen: what they make of it stays with themselves.
ODD = {
    "components_of_nowhere": """
        formats(Format('bad', layout='csr', components='nowhere', dtypes=F32, roles={'values': 'dtype'},
                       unpack=print, pack=print, index_dtypes=frozenset({'int32'})))
    """,
    "components_of_itself": """
        formats(Format('bad', layout='csr', components='bad', dtypes=F32, roles={'values': 'dtype'},
                       unpack=print, pack=print, index_dtypes=frozenset({'int32'})))
    """,
    "components_in_a_circle": """
        formats(*(Format(name, layout='csr', components=other, dtypes=F32, roles={'values': 'dtype'},
                         unpack=print, pack=print, index_dtypes=frozenset({'int32'}))
                  for name, other in (('bad', 'worse'), ('worse', 'bad'))))
    """,
    "target_of_nowhere": "conversions(Conversion('numpy', 'nowhere', print), view())",
    "traits_of_nowhere": """
        formats(Format('bad', dtypes=F32, carries=frozenset({'entangled'})))
        conversions(view(takes=frozenset({'entangled'}), adds=frozenset({'readonly', 'entangled'})))
    """,
    "a_way_that_raises": """
        def fail(value): raise OSError('disk')
        formats(Format('bad', dtypes=F32, types=('collections:deque',), describe=fail))
        conversions(Conversion('numpy', 'bad', fail), Conversion('bad', 'scipy.csr', fail))
    """,
    "numpys_type": "formats(Format('bad', types=('numpy:ndarray',), describe=lambda value: None))",
}

#: What must go on as ever beside them.
PROGRAM = """
    import json
    import numpy as np
    import scipy.sparse
    import interop
    a = np.arange(6.0).reshape(2, 3)
    states = {p.name: (p.state, p.reason) for p in interop.plugins()}
    assert interop.convert(a, to="numpy", dtype="float32").dtype == np.float32
    csr = interop.convert(a, to="scipy.csr")
    assert (interop.convert(csr, to="scipy.csc").toarray() == a).all()
    assert interop.convert(csr, to="numpy").tolist() == a.tolist()
    assert interop.convert([1, 2], to="numpy").tolist() == [1, 2]
    assert (interop.convert(memoryview(b"ab"), to="numpy") == [97, 98]).all()
    assert interop.plan(interop.make_spec("numpy", "float64", shape=(3,)), to="scipy.csr").steps
    print(json.dumps(states))
"""


def install(folder: Path, name: str, text: str) -> None:
    """Install a plugin as a distribution of its own."""
    metadata = folder / f"interop_{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: interop-{name}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[interop]\n{name} = interop_{name}\n")
    (folder / f"interop_{name}.py").write_text(HEAD + textwrap.dedent(text))


def environment(folder: Path, blocked: str = "") -> dict[str, str]:
    """Return an environment in which the plugins of a folder are installed."""
    heavy = ",".join({*HEAVY.split(",")} - {"scipy"})
    return {
        **os.environ,
        "PYTHONPATH": str(folder),
        "INTEROP_DISABLE_PLUGINS": f"{heavy},{blocked}",
    }


def run(folder: Path, program: str, blocked: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program where the plugins of a folder are installed."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(folder, blocked),
        check=False,
    )


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """What becomes of all of the broken plugins, installed at once, and of the others."""
    folder = tmp_path_factory.mktemp("broken")
    for name, (text, _) in BROKEN.items():
        install(folder, name, text)
    install(folder, "zzz_good", "formats(Format('good', dtypes=F32))")
    done = run(folder, PROGRAM)
    assert done.returncode == 0, done.stderr[-3000:]
    states: dict[str, tuple[str, str]] = json.loads(done.stdout)
    return states


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_named_with_its_reason(
    states: dict[str, tuple[str, str]], name: str
) -> None:
    """It has failed, and its state says why."""
    state, reason = states[name]
    assert state == "failed"
    assert BROKEN[name][1] in reason


def test_the_others_go_on(states: dict[str, tuple[str, str]]) -> None:
    """Beside dozens of broken plugins the bundled ones and a good one work as ever."""
    others = {name: state for name, (state, _) in states.items() if name not in BROKEN}
    assert set(others.values()) == {"loaded", "blocked"}
    assert {others[name] for name in ("numpy", "scipy", "protocols", "zzz_good")} == {"loaded"}


@pytest.mark.parametrize("name", ODD)
def test_odd_declarations_stay_with_themselves(tmp_path: Path, name: str) -> None:
    """What cannot be told from sound declarations is loaded, and harms no route of others."""
    install(tmp_path, "odd", ODD[name])
    done = run(tmp_path, PROGRAM)
    assert done.returncode == 0, done.stderr[-3000:]
    assert '"odd": ["loaded", ""]' in done.stdout


HANGING = "import time\ntime.sleep(600)"


def test_a_plugin_that_hangs_at_import_can_be_left_out(tmp_path: Path) -> None:
    """Blocked by name, a plugin that would hang is not even imported."""
    install(tmp_path, "hanging", HANGING)
    done = run(tmp_path, PROGRAM, blocked="hanging")
    assert done.returncode == 0, done.stderr[-3000:]
    assert '"hanging": ["blocked"' in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="it sends the signal that a terminal sends")
def test_a_plugin_that_hangs_at_import_is_named(tmp_path: Path) -> None:
    """After a while a record says which plugin is being waited for, and how to leave it out."""
    install(tmp_path, "hanging", HANGING)
    program = """
        import logging, signal, threading
        from interop import _plugins
        import interop
        _plugins._PATIENCE = 0.2
        class Told(logging.Handler):
            def emit(self, record):
                print(record.getMessage(), flush=True)
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        logging.getLogger("interop").addHandler(Told())
        try:
            interop.plugins()
        except KeyboardInterrupt as interruption:
            print(interruption.__notes__)
        import sys, types
        sys.modules["interop_hanging"] = types.ModuleType("interop_hanging")
        print({p.state for p in interop.plugins()})
        print(interop.convert([1], to="numpy"))
    """
    done = run(tmp_path, program)
    assert done.returncode == 0, done.stderr[-3000:]
    record, notes, states, result = done.stdout.splitlines()
    for text in (record, notes):
        assert "'hanging'" in text
        assert "INTEROP_DISABLE_PLUGINS=hanging" in text
    assert "failed" not in states
    assert result == "[1]"


@pytest.mark.skipif(os.name != "posix", reason="it sends the signal that a terminal sends")
def test_control_c_gets_out_of_a_plugin_that_hangs(tmp_path: Path) -> None:
    """The signal of a terminal ends the waiting, and the traceback names the plugin."""
    install(tmp_path, "hanging", "print('here', flush=True)\n" + HANGING)
    with subprocess.Popen(
        [sys.executable, "-c", "import interop; interop.convert([1], to='numpy')"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "here\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert "KeyboardInterrupt" in said
    assert "plugin 'hanging' of interop-hanging 1 was still being loaded" in said
