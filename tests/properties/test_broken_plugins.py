"""Broken plugins of every kind, installed into a folder: each disables only itself."""

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

from tests.strange import HEAVY, install_plugin

#: What every plugin here begins with.
HEAD = """
from interop.plugin import *
from interop.plugin.advanced import *
F32 = frozenset({"float32"})
def declare(*declarations):
    @hookimpl
    def interop_declarations(): return declarations
    globals()["interop_declarations"] = interop_declarations
def view(**fields):
    return Conversion("numpy", "bad", print, **fields)
def csr(name="bad", components="numpy", **fields):
    parts = Components("csr", components, {"values": "dtype"}, print, print, **fields)
    return Format(name, dtypes=F32, components=parts, index_dtypes={"int32"})
"""

#: What is wrong, and what is said of it.
BROKEN = {
    "raises": ("raise ValueError('no luck')", "ValueError: no luck"),
    "is_no_python": ("def (", "SyntaxError"),
    "needs_what_is_missing": ("import no_such_module", "no_such_module"),
    "recurses": ("def f(): f()\nf()", "RecursionError"),
    "converts_at_import": (
        "import interop\ninterop.convert([1], to='numpy')",
        "'converts_at_import' of interop-converts_at_import 1.0 calls interop while it is being loaded",
    ),
    "lists_plugins_in_its_hook": (
        """
        @hookimpl
        def interop_declarations():
            import interop
            return interop.Interop().plugins()
        """,
        "calls interop while it is being loaded; call it in the functions that convert",
    ),
    "hook_raises": ("@hookimpl\ndef interop_declarations(): raise KeyError('x')", "KeyError"),
    "hook_returns_none": (
        "@hookimpl\ndef interop_declarations(): return None",
        "TypeError: 'NoneType' object is not iterable",
    ),
    "hook_returns_a_number": (
        "@hookimpl\ndef interop_declarations(): return 7",
        "'int' object is not iterable",
    ),
    "hook_returns_a_declaration": (
        "@hookimpl\ndef interop_declarations(): return Format('bad')",
        "declared 'bad', which is not a declaration",
    ),
    "hook_is_not_marked": (
        "def interop_declarations(): return [Format('bad')]",
        "its interop_declarations is not marked with @hookimpl",
    ),
    "hook_wants_more": ("@hookimpl\ndef interop_declarations(other): return []", "other"),
    "hook_is_another": ("@hookimpl\ndef interop_formats(): return []", "interop_formats"),
    "hook_ends_midway": (
        """
        @hookimpl
        def interop_declarations():
            yield Format('bad')
            raise OSError('gone')
        """,
        "OSError: gone",
    ),
    "attribute_raises": (
        """
        class Odd:
            @property
            def interop_impl(self): raise ZeroDivisionError
            def __call__(self): pass
        declare(Format('bad', describe=Odd(), devices=None))
        """,
        "devices=None",
    ),
    "version_cannot_be_compared": (
        "class Odd:\n    def __ne__(self, other): raise ArithmeticError('odd')\nINTEROP_API = Odd()",
        "ArithmeticError: odd",
    ),
    "version_is_newer": ("INTEROP_API = 99", "version 99"),
    "version_is_text": ("INTEROP_API = '1'", "it was written for version '1' of interop.plugin"),
    "no_declaration": ("declare('bad')", "'bad', which is not a declaration"),
    "dtypes_are_none": ("declare(Format('bad', dtypes=None))", "dtypes=None"),
    "dtypes_cannot_be_hashed": ("declare(Format('bad', dtypes=[['float32']]))", "dtypes="),
    "devices_are_text": ("declare(Format('bad', dtypes=F32, devices='cpu'))", "devices='cpu'"),
    "types_are_types": ("declare(Format('bad', types=(int,)))", "types="),
    "exports_a_list": ("declare(Format('bad', exports=['dlpack']))", "exports="),
    "supports_text": (
        "declare(Format('bad', limits=Limits(unsupported={'cpu': 'float32'})))",
        "limits.unsupported['cpu']='float32'",
    ),
    "pack_seconds_are_nan": ("declare(csr(pack_seconds=float('nan')))", "pack_seconds=nan"),
    "wrapper_seconds_are_nan": (
        "declare(Format('bad', wrapper=Wrapper(print, float('nan'))))",
        "wrapper.seconds=nan",
    ),
    "roles_are_a_list": (
        "declare(Format('bad', components=Components('csr', 'numpy', ['values'], id, id)))",
        "components.roles=",
    ),
    "variants_are_text": (
        "declare(Format('bad', samples=Samples(variants={'grad': 'x'})))",
        "samples.variants['grad']='x'",
    ),
    "effects_are_none": ("declare(view(effects=None))", "effects=None"),
    "takes_are_none": ("declare(view(takes=None))", "takes=None"),
    "takes_are_text": ("declare(view(takes='grad'))", "takes='grad'"),
    "cost_is_nan": ("declare(view(cost=Cost(float('nan'))))", "cost."),
    "cost_is_negative": ("declare(view(cost=Cost(-1.0)))", "cost."),
    "source_is_none": ("declare(Conversion(None, 'bad', print))", "source=None"),
    "fast_path_is_text": ("declare(view(fast_path='x'))", "fast_path='x'"),
    "no_trace_raises": ("declare(NoTrace(lambda f: 1 / 0))", "ZeroDivision"),
    "dtype_names_are_text": ("declare(DtypeNames('builtins:int', 'x'))", "name='x'"),
}

#: Declared without a flaw that could be seen: what they make of it stays with themselves.
ODD = {
    "components_of_nowhere": "declare(csr(components='nowhere'))",
    "components_of_itself": "declare(csr(components='bad'))",
    "components_in_a_circle": "declare(csr('bad', 'worse'), csr('worse', 'bad'))",
    "target_of_nowhere": "declare(Conversion('numpy', 'nowhere', print), view())",
    "traits_of_nowhere": """
        declare(
            Format('bad', dtypes=F32, carries={'entangled'}),
            view(takes=['entangled'], adds={'readonly', 'entangled'}),
        )
    """,
    "a_way_that_raises": """
        def fail(value): raise OSError('disk')
        declare(
            Format('bad', dtypes=F32, types=('collections:deque',), describe=fail),
            Conversion('numpy', 'bad', fail),
            Conversion('bad', 'scipy.csr', fail),
        )
    """,
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
    install_plugin(folder, name, HEAD + textwrap.dedent(text), f"interop-{name}")


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
    """The states of all broken plugins, installed at once, and of the others."""
    folder = tmp_path_factory.mktemp("broken")
    for name, (text, _) in BROKEN.items():
        install(folder, name, text)
    install(folder, "zzz_good", "declare(Format('good', dtypes=F32))")
    result = run(folder, PROGRAM)
    assert result.returncode == 0, result.stderr[-3000:]
    states: dict[str, tuple[str, str]] = json.loads(result.stdout)
    return states


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_named_with_its_reason(
    states: dict[str, tuple[str, str]], name: str
) -> None:
    """A broken plugin has failed, and its state says why."""
    state, reason = states[name]
    assert state == "failed"
    assert BROKEN[name][1] in reason


def test_the_others_go_on(states: dict[str, tuple[str, str]]) -> None:
    """Beside dozens of broken plugins, the bundled ones and a good one work as ever."""
    others = {name: state for name, (state, _) in states.items() if name not in BROKEN}
    assert set(others.values()) == {"loaded", "blocked"}
    assert {others[name] for name in ("numpy", "scipy", "protocols", "zzz_good")} == {"loaded"}


@pytest.mark.parametrize("name", ODD)
def test_odd_declarations_stay_with_themselves(tmp_path: Path, name: str) -> None:
    """Odd declarations that look sound are loaded, and harm no route of others."""
    install(tmp_path, "odd", ODD[name])
    result = run(tmp_path, PROGRAM)
    assert result.returncode == 0, result.stderr[-3000:]
    assert '"odd": ["loaded", ""]' in result.stdout


HANGING = "import time\ntime.sleep(600)"


def test_a_plugin_that_hangs_at_import_can_be_left_out(tmp_path: Path) -> None:
    """Blocked by name, a plugin that would hang is not even imported."""
    install(tmp_path, "hanging", HANGING)
    result = run(tmp_path, PROGRAM, blocked="hanging")
    assert result.returncode == 0, result.stderr[-3000:]
    assert '"hanging": ["blocked"' in result.stdout


@pytest.mark.skipif(os.name != "posix", reason="it sends the signal that a terminal sends")
def test_control_c_gets_out_of_a_plugin_that_hangs(tmp_path: Path) -> None:
    """Control-C ends the waiting, and the traceback names the plugin and how to leave it out."""
    install(tmp_path, "hanging", "print('here', flush=True)\n" + HANGING)
    # What starts this in the background may have it ignore the signal.
    program = """
        import signal
        import interop
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interop.convert([1], to="numpy")
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
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
        error = process.stderr.read()
    assert "KeyboardInterrupt" in error
    assert "plugin 'hanging' of interop-hanging 1.0 was still being loaded" in error
    assert "INTEROP_DISABLE_PLUGINS=hanging" in error
