"""What the tests share."""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import interop
from tests.processes import python_path

if TYPE_CHECKING:
    from tests.cuda_driver import CudaDriver

# Processes that tests start import what is tested here.
os.environ["PYTHONPATH"] = python_path(*os.environ.get("PYTHONPATH", "").split(os.pathsep))
# Many tests start processes, and each would compile frameworks anew that were installed without bytecode.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# CuPy cannot be imported where it cannot make its folder in the home directory.
if not os.access(Path.home(), os.W_OK):
    _cache = tempfile.TemporaryDirectory()
    os.environ.setdefault("CUPY_CACHE_DIR", _cache.name)

#: The folders whose tests are marked `core`.
CORE = [
    Path(__file__).parent / name
    for name in ("model", "recognition", "registry", "request", "planning", "execution", "api")
]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that the module is in
        return False


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Spare `-m core` the files outside of the core, which import frameworks."""
    if config.option.markexpr != "core" or collection_path.suffix != ".py":
        return None
    # Of the refusals, each section says which modules it needs.
    core = collection_path.parent in CORE or collection_path.name == "test_refusals.py"
    return None if core else True


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of the core that are not slow."""
    if item.path.parent in CORE and item.get_closest_marker("slow") is None:
        item.add_marker("core")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test of the group `test-all` where what it needs is missing."""
    for mark in item.iter_markers("extra"):
        for module in mark.args:
            if not _is_installed(module):
                pytest.skip(f"{module} is not installed")


@pytest.fixture(scope="module", autouse=True)
def little_to_collect() -> None:
    """Spare the garbage collector the tests, and the frameworks that earlier ones have imported."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let SIGINT interrupt, also where it is ignored, as by what a shell starts with ``&``."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the plugins' template, built as for an index."""
    pytest.importorskip("hatchling", reason="the group core builds no wheel")
    folder = tmp_path_factory.mktemp("wheels")
    template = Path(__file__).parents[1] / "examples" / "interop-example"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"),
            *("--no-build-isolation", "--disable-pip-version-check", "--wheel-dir", str(folder)),
            str(template),
        ],
        check=True,
        capture_output=True,
    )
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture
def empty() -> interop.Interop:
    """An instance with nothing registered."""
    return interop.Interop(plugins=False)


@pytest.fixture
def loaded() -> interop.Interop:
    """An instance of its own with the installed plugins."""
    return interop.Interop()


@pytest.fixture
def convert() -> Callable[..., Any]:
    """`interop.convert` by every path, each of which comes to the same: the first result, or error.

    It is called with nothing planned, twice more by what has been learnt, in a trace, and by a
    converter. Type, spec, numbers and the sharing of memory are compared, and texts of errors.
    """
    from tests.inside import forget, outcome

    mine = interop.Interop()

    def run(value: Any, to: Any = None, **words: Any) -> Any:
        def traced(value: Any) -> Any:
            with interop.trace():
                return mine.convert(value, to, **words)

        def by_a_converter(value: Any) -> Any:
            return mine.converter(to, **words)(value)

        forget(mine)
        calls = [lambda value: mine.convert(value, to, **words)] * 3 + [traced]
        if "out" not in words:
            calls.append(by_a_converter)
        first, *others = [outcome(mine, value, call) for call in calls]
        for path, other in zip(("warm", "warm", "traced", "by a converter"), others, strict=False):
            assert other[1] == first[1], path
        if isinstance(first[0], interop.InteropError):
            raise first[0]
        return first[0]

    return run


@pytest.fixture
def cuda_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[CudaDriver]:
    """A CUDA driver where there is none: a device is memory of the host, and a stream a thread."""
    from tests.cuda_driver import installed

    driver = installed(monkeypatch)
    yield driver
    driver.close()


#: Warnings are errors, but for a docstring of torchao's, which is compiled when it is first imported.
STRICT = ("-W", "error", "-W", "ignore:invalid escape sequence:DeprecationWarning")


def _checked(code: int, output: str, errors: str) -> str:
    assert code == 0, f"exit {code}\n{output}\n{errors}"
    return output


@pytest.fixture
def in_subprocess() -> Callable[..., str]:
    """Run a program in a process of its own and return what it printed, failing if it died."""

    def run(program: str, **environment: str) -> str:
        process = subprocess.run(
            [sys.executable, *STRICT, "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            timeout=120,
            check=False,
        )
        return _checked(process.returncode, process.stdout, process.stderr)

    return run


#: Forks for every line of its input, a program; the child runs it and ends as a process of its own does.
FORKING = """
import json, os, sys
import numpy
try:
    import torch
except ModuleNotFoundError:
    pass
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        for number, path in enumerate(job["outputs"], 1):
            with open(path, "wb") as output:
                os.dup2(output.fileno(), number)
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
exec(job["program"], {"__name__": "__main__"})
"""


@pytest.fixture(scope="session")
def forking() -> Iterator[subprocess.Popen[str]]:
    """A process that has imported torch if there is one, which takes most of the time of programs."""
    with subprocess.Popen(
        [sys.executable, *STRICT, "-c", FORKING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a process of one thread can be forked
        start_new_session=True,
    ) as process:
        yield process


@pytest.fixture
def in_fork(forking: subprocess.Popen[str], tmp_path: Path) -> Callable[[str], str]:
    """Do as `in_subprocess` does, in a process in which torch is imported, and nothing of interop."""

    def run(program: str) -> str:
        assert forking.stdin is not None
        assert forking.stdout is not None
        outputs = [tmp_path / "output", tmp_path / "errors"]
        job = {"program": textwrap.dedent(program), "outputs": list(map(str, outputs))}
        print(json.dumps(job), file=forking.stdin, flush=True)
        if not select.select([forking.stdout], [], [], 120)[0]:
            os.killpg(forking.pid, signal.SIGKILL)
            pytest.fail("timed out after 120 s")
        return _checked(int(forking.stdout.readline()), *(path.read_text() for path in outputs))

    return run
