"""The command: what it prints, what it writes, and with which code it ends."""

from __future__ import annotations

import doctest
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import interop
from interop import Interop
from interop._model.provenance import how_to_install
from interop.testing import Finding, Report
from tests.docs.test_docs import timeless
from tests.processes import python_path
from tests.strange import HEAVY, install_plugin
from tests.toys import copy, toy, view

if TYPE_CHECKING:
    from typer.testing import Result

#: ``run(*args)`` runs the command with some arguments.
Run = Callable[..., "Result"]
Progress = Callable[[int, int, str], None]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run() -> Run:
    """Run the command in this process."""
    from typer.testing import CliRunner

    from interop._cli import cli

    return lambda *args: CliRunner().invoke(cli._app(), [*args], prog_name="interop")


def test_the_entry_point_is_declared() -> None:
    """The distribution installs the command, and the extra holds what it needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"interop": "interop._cli.cli:main"}
    needs = {line.partition(">")[0] for line in project["optional-dependencies"]["cli"]}
    assert needs == {"typer", "rich", "packaging"}


def _ended(
    *command: str, stdout: Any = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, which few plugins take part in."""
    return subprocess.run(
        command,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding=environment.get("PYTHONIOENCODING"),
        check=False,
        timeout=240,
        env={**os.environ, "INTEROP_DISABLE_PLUGINS": HEAVY, **environment},
    )


def _program(*args: str, **environment: Any) -> subprocess.CompletedProcess[str]:
    return _ended(sys.executable, "-m", "interop", *args, **environment)


#: What the installed command runs.
MAIN = "from interop._cli.cli import main; main()"


@pytest.mark.parametrize("missing", ["pluggy", "typer", "rich", "packaging"])
@pytest.mark.parametrize("words", [["doctor"], ["--json", "doctor"]], ids=" ".join)
def test_without_the_extra_one_line_says_how_to_get_it(missing: str, words: list[str]) -> None:
    """What is not installed is named with the line that installs it, and the code is 2."""
    program = f"import sys; sys.modules[{missing!r}] = None; sys.argv[1:] = {words}; {MAIN}"
    result = _ended(sys.executable, "-c", program)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert missing in result.stderr
    assert how_to_install("cli") in result.stderr
    if "--json" in words:
        assert result.stderr == f"interop: {json.loads(result.stdout)['error']}\n"
    else:
        assert not result.stdout


def test_the_version_needs_no_extra() -> None:
    """``interop --version`` prints it, whatever else is missing."""
    missing = "dict.fromkeys(['typer', 'rich', 'packaging'])"
    program = f"import sys; sys.modules.update({missing}); sys.argv[1:] = ['--version']; {MAIN}"
    result = _ended(sys.executable, "-c", program)
    assert (result.returncode, result.stdout) == (0, f"interop {interop.__version__}\n")
    assert not result.stderr


# ---------------------------------------------------------------------- what is there


def test_plan_shows_the_route_and_what_was_refused(run: Run) -> None:
    """The table is that of `plan` but for its last column; below stand the ways refused."""
    result = run("plan", "torch:cuda:float32:4096x4096", "numpy")
    assert result.exit_code == 0, result.output
    spec = interop.make_spec("torch", "float32", device="cuda", shape=(4096, 4096))
    route = interop.default.plan(spec, to="numpy")
    assert result.stdout.splitlines()[0] == str(route).splitlines()[0]
    table = [line[: line.rindex("  ")].split() for line in str(route).splitlines()[1:3]]
    assert [line.split() for line in result.stdout.splitlines()[1:3]] == table
    assert "transfer" in result.stdout


@pytest.mark.parametrize("args", [("plan", "a", "b"), ("formats",), ("conversions",)], ids=" ".join)
def test_the_distribution_is_listed_where_it_is_not_interops(
    args: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The column is left out while all that is listed comes with interop."""
    from interop._cli import listings, plan

    assert (
        "declared by" not in run(*(args if len(args) == 1 else (args[0], "python", "numpy"))).stdout
    )
    two_formats = interop.Interop(plugins=False)
    two_formats.register(toy("a"), toy("b"), view("a", "b"))
    monkeypatch.setattr(listings, "default", two_formats)
    monkeypatch.setattr(plan, "default", two_formats)
    lines = [line.rstrip() for line in run(*args).stdout.splitlines()]
    assert next(line for line in lines if "declared by" in line).endswith("declared by")
    assert lines[-1].endswith("run time")


def test_plan_takes_the_keywords_of_convert(run: Run) -> None:
    """Options and words of the target decide as the keywords do."""
    args = ("plan", "numpy:float64:8x8", "torch:float32", "--json")
    for more in ((), ("--copy",), ("--device", "cpu"), ("--forbid", "detach")):
        result = run(*args, *more)
        assert result.exit_code == 0, result.output
        document = json.loads(result.stdout)
        assert document["result"]["dtype"] == "float32"
        assert document["result"]["format"] == "torch"
        assert document["request"].startswith("torch, dtype=float32"), "in no command's words"
        assert document["steps"]
    masked = ("plan", "numpy:float32:8x8:masked", "torch", "--json")
    assert run(*masked).exit_code == 1
    result = run(*masked, "--allow", "drop_mask", "--allow", "detach")
    assert "drop_mask" in json.loads(result.stdout)["effects"]
    stored = json.loads(run("plan", "scipy.csr", "numpy", "--json", "--density", "0.5").stdout)
    assert stored["source"]["nnz"] == 2**19


def test_plans_and_conversions_name_missing_frameworks(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text and JSON say that a framework is missing, and the list does not call its steps ready."""
    from interop._cli import listings, plan

    instance = interop.Interop(plugins=False)
    lost = toy("b")._replace(requires="lost", install="pip install lost")
    instance.register(toy("a"), lost, view("a", "b"), view("b", "a"), copy("a", "a"))
    monkeypatch.setattr(listings, "default", instance)
    monkeypatch.setattr(plan, "default", instance)
    sentence = "lost is not installed: pip install lost"
    assert sentence in run("plan", "a", "b").stdout.splitlines()
    assert json.loads(run("plan", "a", "b", "--json").stdout)["missing"] == [sentence]
    states = [entry["state"] for entry in json.loads(run("conversions", "--json").stdout)]
    assert sorted(states) == ["missing", "missing", "ready"]
    assert run("conversions").stdout.count(" missing ") == 2


def test_a_plan_of_what_cannot_fit_fails(run: Run) -> None:
    """The route is shown, with the sentence that convert would refuse with, and the code is 1."""
    args = ("plan", "scipy.csr:float64:10000000x10000000", "numpy")
    shown = run(*args)
    assert shown.exit_code == 1
    assert "takes 727.6 TiB, but only" in " ".join(shown.stdout.split())
    document = json.loads(run(*args, "--json").stdout)
    assert document["problem"].startswith("the dense form of scipy.csr float64")
    assert "dtype=" in document["problem"]
    assert document["steps"]


def test_a_refused_plan_says_what_would_permit_it(run: Run) -> None:
    """The code is 1, the sentence on standard error, and with ``--json`` the effects are named."""
    result = run("plan", "torch:cuda", "numpy", "--no-copy", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["effects"] == ["transfer"]
    assert "leave out copy=False" in document["error"]
    assert "to numpy, copy=False; the nearest" in document["error"]
    assert document["error"] in result.stderr


@pytest.mark.parametrize(
    ("args", "code", "reason"),
    [
        (("plan", "torhc", "numpy"), 2, "did you mean 'torch'?"),
        (("plan", "torch", "nunpy"), 2, "did you mean 'numpy'?"),
        (("plan", "torch", "numpy:3x3"), 2, "is a target: write format"),
        (("plan", "torch", "numpy:int8", "--dtype", "int16"), 2, "name two dtypes"),
        (("plan", "torch", "numpy", "--allow", "theft"), 2, "is not an effect"),
        (("plan", "torch"), 2, "Missing argument 'DST'"),
        (("plan", "torch", "numpy", "--device", "a b"), 2, "device='a b' is not a device name"),
        (("plan", "jax:8x8:distributed", "numpy"), 1, "With allow='gather' every process"),
        (("plan", "numpy", "torch.dtensor"), 1, "pass one as like="),
        (("formats", "zzz"), 2, "there is no format 'zzz'"),
        (("formats", "jaxx"), 2, "did you mean 'jax'?"),
        (("formats", "cuda"), 2, "'cuda' is a device; write it behind a format: <format>:cuda."),
        (("conversions", "--from", "zzz"), 2, "there is no format 'zzz'"),
        (("conversions", "--from", "nump"), 2, "did you mean 'numpy'?"),
        (("conversions", "--to", "array"), 1, "no conversion is declared between these"),
        (("plan", "gpu", "numpy"), 2, "write it behind a format: <format>:cuda."),
        (("check", "numpyy"), 2, "did you mean 'numpy'?"),
        (("check", "no_such_thing_at_all"), 2, "no_such_thing_at_all"),
        (("doctor", "--timeout", "soon"), 2, "Invalid value for '--timeout'"),
        (("nonsense",), 2, "No such command 'nonsense'"),
        (("graph", "--nonsense"), 2, "No such option: --nonsense"),
        (("graph", "--file", "{tmp}/file/x.svg"), 1, "there is no folder {tmp}/file; create it"),
        (("graph", "--file", "{tmp}/graph.bmp"), 2, "does not say what to draw"),
        (("graph", "--file", "{tmp}/no/graph.dot"), 1, "there is no folder {tmp}/no; create it"),
        (("graph", "--as", "bmp"), 2, "Invalid value for '--as': 'bmp' is not one of 'svg',"),
        (("graph", "--as", "svg", "--json"), 2, "--json and --as svg exclude each other; leave"),
        (("graph", "--file", "{tmp}/y.svg", "--json"), 2, "another kind of drawing than json;"),
        (("graph", "--file", "{tmp}"), 1, "is a folder; pass --file with the name of a file."),
        (("plan", "numpy:99999999999999999999x2", "torch"), 2, "too many elements for any machine"),
        (("plan", "scipy.csr:99999999999999999999x2", "torch"), 2, "too many elements for any"),
        (("plan", "numpy:-3x4", "torch"), 2, "is not a shape; lengths must not be negative."),
        (("plan", "numpy", ""), 2, "'' does not name a registered format"),
    ],
)
def test_every_error_is_a_sentence_with_a_code(
    args: tuple[str, ...], code: int, reason: str, run: Run, tmp_path: Path
) -> None:
    """What is misspelt is code 2, what cannot be done 1; nothing is written, or a traceback.

    With ``--json`` the same sentence is a document.
    """
    (tmp_path / "file").write_text("a file")
    args = tuple(word.replace("{tmp}", str(tmp_path)) for word in args)
    reason = reason.replace("{tmp}", str(tmp_path))
    result = run(*args)
    assert result.exit_code == code, result.output
    assert reason in result.stderr
    assert not re.search("Traceback|Value error", result.output)
    assert bool(result.stdout) == ("--json" in args)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    if "--json" in args or ("--file" not in args and "no conversion" not in reason):
        document = run(*args, *({"--json"} - {*args}))
        error = json.loads(document.stdout)["error"]
        assert reason in error
        assert f"interop: {error}" in document.stderr
        assert document.exit_code == code


def _names(entries: list[dict[str, object]]) -> list[object]:
    return [entry["name"] for entry in entries]


def test_the_lists_are_complete(run: Run) -> None:
    """As JSON and as text there is an entry for each format, conversion and plugin."""
    formats = json.loads(run("formats", "--json").stdout)
    assert _names(formats) == [format_.name for format_ in interop.default.formats()]
    conversions = json.loads(run("conversions", "--json").stdout)
    keys = [declared.key for declared in interop.default.conversions()]
    assert [entry["key"] for entry in conversions] == keys
    plugins = json.loads(run("plugins", "--json").stdout)
    assert _names(plugins) == [plugin.name for plugin in interop.default.plugins()]
    for name, entries in (("formats", formats), ("conversions", conversions), ("plugins", plugins)):
        result = run(name)
        assert (result.exit_code, len(result.stdout.splitlines())) == (0, len(entries) + 1)


def test_the_lists_can_be_narrowed(run: Run) -> None:
    """A framework's name stands for all its formats."""
    names = _names(json.loads(run("formats", "scipy", "--json").stdout))
    assert names
    assert all(name.startswith("scipy.") for name in names)
    args = ("conversions", "--from", "numpy", "--to", "torch", "--json")
    entries = json.loads(run(*args).stdout)
    pairs = {(entry["source"], entry["target"]) for entry in entries}
    assert pairs == {("numpy", "torch"), ("numpy", "torch.packed")}


def test_where_no_conversion_is_declared_a_route_of_several_is_pointed_at(run: Run) -> None:
    """The list is empty with the code of failures; it says which command shows a route, if any."""
    result = run("conversions", "--from", "torch", "--to", "scipy")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "; 'interop plan torch scipy' shows the route there." in result.stderr
    assert run("plan", "torch", "scipy").exit_code == 0
    result = run("conversions", "--from", "numpy", "--to", "dlpack")
    assert (result.exit_code, "interop plan" in result.stderr) == (1, False)


def test_json_may_be_asked_for_before_the_command(run: Run) -> None:
    """It means the same there as behind it, in success and in failure."""
    for args in (["plan", "numpy", "python"], ["plan", "nothing", "numpy"], ["formats", "numpy"]):
        before, after = run("--json", *args), run(*args, "--json")
        assert (before.exit_code, before.stdout) == (after.exit_code, after.stdout)
        assert json.loads(before.stdout)


def test_a_plugin_that_failed_is_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is shown all the same, with the reason, and with what plugins replace, if any do."""
    from interop._cli import listings
    from interop._registry.plugins import Plugin

    class Broken:
        def plugins(self) -> tuple[Plugin, ...]:
            return (
                Plugin("odd", "interop-odd", "2.0", "failed", "ValueError: spoilt"),
                Plugin("loud", "interop-loud", "1.0", "loaded", replaces=("the format 'b'", "c")),
            )

    assert "replaces" not in run("plugins").stdout
    monkeypatch.setattr(listings, "default", Broken())
    result = run("plugins")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].endswith("replaces")
    assert result.stdout.splitlines()[2].endswith("the format 'b', c")
    assert "ValueError: spoilt" in result.stdout
    assert json.loads(run("plugins", "--json").stdout)[0]["state"] == "failed"


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("graph.dot", "digraph interop {"),
        ("graph.gv", "digraph interop {"),
        ("graph.json", "{"),
    ],
)
def test_the_graph_is_drawn_as_its_file_is_called(
    name: str, start: str, run: Run, tmp_path: Path
) -> None:
    """The ending decides, and standard output says where it went; without a file it is printed."""
    path = tmp_path / name
    result = run("graph", "--file", str(path))
    assert (result.exit_code, result.stdout) == (0, f"wrote {path}\n")
    text = path.read_text("utf-8")
    assert text.startswith(start)
    assert "scipy" in text
    assert ("scipy.csr" in text) == name.endswith("json")  # which has all formats
    kind = {"gv": "dot"}.get(name.partition(".")[2], name.partition(".")[2])
    assert run("graph", "--as", kind).stdout == text


def test_the_graph_of_some_frameworks_has_their_formats(run: Run) -> None:
    """What is named is drawn format by format, and nothing else; an unknown name is refused."""
    text = run("graph", "scipy", "numpy", "--as", "dot").stdout
    assert '"scipy.csr"' in text
    assert "torch" not in text
    names = [f["name"] for f in json.loads(run("graph", "scipy.csr", "--json").stdout)["formats"]]
    assert names == ["scipy.csr"]
    result = run("graph", "scipi", "--as", "dot")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "did you mean 'scipy'?" in result.stderr


def test_a_drawing_that_cannot_be_written_leaves_the_one_that_was_there(tmp_path: Path) -> None:
    """The file is replaced as a whole, keeps its mode, and nothing else stays in its folder."""
    path = tmp_path / "graph.dot"
    path.write_text("a former drawing")
    path.chmod(0o640)
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); "
    words = f"import sys; sys.argv[1:] = ['graph', '--file', {str(path)!r}]; "
    result = _ended(sys.executable, "-c", limited + words + MAIN)
    assert result.returncode == 1, result.stderr
    assert result.stderr == (
        f"interop: {path} cannot be written (File too large); pass another --file.\n"
    )
    assert path.read_text() == "a former drawing"
    assert _ended(sys.executable, "-c", words + MAIN).returncode == 0
    assert path.read_text().startswith("digraph interop {")
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_drawing_follows_no_link(run: Run, tmp_path: Path) -> None:
    """A link to a file is refused; what is no file, such as a pipe or a device, is written to."""
    path, link = tmp_path / "precious.dot", tmp_path / "graph.dot"
    path.write_text("precious")
    for target in (path, tmp_path / "nowhere"):
        link.symlink_to(target)
        result = run("graph", "--file", str(link))
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"{link} is a link" in result.stderr
        link.unlink()
    assert path.read_text() == "precious"
    link.symlink_to(os.devnull)
    assert run("graph", "--file", str(link)).exit_code == 0
    assert link.is_symlink()


#: A program named ``dot`` that draws nothing: it prints its arguments and what it is given.
DOT = """#!/bin/sh
echo "drawn with $*"
cat
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all that is searched for programs, but for those of the system."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("sh", "cat"):
        (folder / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(folder))
    return folder


def _install(folder: Path, script: str) -> None:
    program = folder / "dot"
    program.write_text(script)
    program.chmod(0o755)


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_pictures_are_drawn_by_graphviz(
    kind: str, run: Run, tmp_path: Path, programs: Path
) -> None:
    """It is given what ``--as dot`` prints, and what it answers is what is written, as bytes."""
    _install(programs, DOT)
    path = tmp_path / f"graph.{kind}"
    assert run("graph", "--file", str(path)).stdout == f"wrote {path}\n"
    text = run("graph", "--as", "dot").stdout
    assert path.read_text("utf-8") == f"drawn with -T{kind}\n{text}".removesuffix("\n")
    assert run("graph", "--as", kind).stdout_bytes == path.read_bytes()


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
@pytest.mark.parametrize(
    ("kind", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_graphviz_draws_what_it_is_given(kind: str, start: bytes, run: Run, tmp_path: Path) -> None:
    """Of all that is registered it makes a picture of the kind that the name asks for."""
    path = tmp_path / f"graph.{kind}"
    result = run("graph", "--file", str(path))
    assert result.exit_code == 0, result.output
    picture = path.read_bytes()
    assert picture.startswith(start)
    assert kind != "svg" or b">scipy<" in picture


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("args", [(), ("--as", "png"), ("--file", "graph.pdf")])
def test_without_graphviz_one_line_says_how_to_get_it(args: tuple[str, ...], run: Run) -> None:
    """As for the extra, the code is 2, and what needs no Graphviz is named."""
    result = run("graph", *args)
    assert result.exit_code == 2
    assert not result.stdout
    assert result.stderr.count("\n") == 1
    assert "Graphviz is not installed" in result.stderr
    assert "apt install graphviz" in result.stderr
    assert "--as dot or json" in result.stderr
    assert run("graph", "--as", "dot").exit_code == 0


def test_graphvizs_errors_are_passed_on(run: Run, programs: Path) -> None:
    """What it complains of is in the sentence, and the code is 1."""
    _install(programs, "#!/bin/sh\necho 'no memory' >&2; exit 3\n")
    result = run("graph")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "interop: Graphviz's dot ended with 3: no memory\n"


def test_a_graphviz_that_hangs_is_given_up(
    run: Run, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a limit, whatever the processes of its own that it waits for."""
    (programs / "sleep").symlink_to(str(shutil.which("sleep", path=os.defpath)))
    _install(programs, "#!/bin/sh\nsleep 600\n")
    monkeypatch.setattr("interop._cli.graph._PATIENCE", 2)
    result = run("graph")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "interop: Graphviz's dot: timed out after 2 s\n"


# ---------------------------------------------------------------------- what is wrong


@pytest.fixture
def ill(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which a framework is broken, and two conversions are."""
    from interop._cli import doctor
    from interop._cli.doctor import Diagnosis, Driver, Fault, Framework
    from interop._registry.plugins import Plugin
    from interop.testing import _check

    broken = Framework("odd", "odd", "odd", "1.5", "broken", None, "pip install odd", ("odd",))
    finding = Fault("odd", "odd cannot be imported", "pip install odd", ("d: odd → a: x",) * 20)
    diagnosis = Diagnosis(
        dict.fromkeys(("interop", "python", "system", "executable"), "0"),
        (broken, broken._replace(module="lost", state="missing", version="", distribution="")),
        (Plugin("odd", "interop-odd", "2", "blocked", "named in a variable"),),
        Driver("nvidia-smi", "ready", ("X1, 580.1, 8192 MiB",)),
        (finding,),
        ("odd: built for another numpy",),
    )
    trial = Report(
        "all",
        (
            Finding("a", "a → a: copy", "values", "passed"),
            Finding("a", "a → a: copy", "source", "not exercised", "it cannot be read"),
            Finding("b", "a → b: a_to_b", "values", "failed", "1 went in, and 2 came out"),
            Finding("b", "a → b: a_to_b", "source", "failed", "0 is left"),
            Finding("b", "a → b.csr: up", "values", "failed", "the process died of SIGSEGV"),
            Finding("b", "a → b.csr: up", "source", "not exercised", "the process died"),
            Finding("c", "c → a: down", "values", "not exercised", "there is no c today"),
        ),
    )

    def no_diagnosis(interop: Interop, progress: Progress, *, timeout: float) -> Diagnosis:
        progress(1, 1, "odd")
        return diagnosis

    def no_trial(*, without: frozenset[str], progress: Progress, patience: float) -> Report:
        assert (without, patience) == ({"odd"}, 120)
        progress(1, 1, "a → b")
        return trial

    monkeypatch.setattr(doctor, "diagnose", no_diagnosis)
    monkeypatch.setattr(_check, "try_conversions", no_trial)


@pytest.mark.usefixtures("ill")
def test_the_doctor_names_what_is_wrong_and_what_fixes_it(run: Run) -> None:
    """The verdict, findings, device, frameworks, notes, and the conversions that are wrong."""
    result = run("doctor", "--convert")
    assert result.exit_code == 1
    out = result.stdout
    assert "device: X1, 580.1, 8192 MiB" in out
    assert re.search(r"^odd +broken +odd 1\.5", out, re.MULTILINE)
    assert "lost" not in out
    assert "not installed: 1 more; -v names them" in out
    assert "odd of interop-odd is blocked: named in a variable" in out
    assert "note: odd: built for another numpy" in out
    assert "✗ odd cannot be imported\n  to fix it: pip install odd\n" in out
    assert "  it disables 20 conversions\n" in out
    assert "✗ a → b: a_to_b (b): 1 went in, and 2 came out\n" in out
    assert "✗ a → b.csr: up (b): the process died of SIGSEGV\n" in out
    assert "0 is left" not in out
    assert "conversions of real data: 1 right, 2 wrong, 1 not tried, " in out
    assert out.startswith("3 things are wrong.\n✗ odd cannot be")
    assert out.count("things are wrong") == 1


@pytest.mark.usefixtures("ill")
def test_a_verbose_doctor_names_what_is_missing_and_what_is_disabled(run: Run) -> None:
    """Nobody asked for most of either, so it takes an option to see them."""
    out = run("doctor", "--convert", "-v").stdout
    assert "  not tried: c → a: down (c): there is no c today\n" in out
    assert re.search(r"^lost +missing .* pip install odd$", out, re.MULTILINE)
    assert "it disables 20 conversions: odd → a: x; odd → a: x" in out
    assert "-v names" not in out


@pytest.fixture
def diagnosed(ill: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the doctor find something else than on the ill machine: ``diagnosed(findings=())``."""
    from interop._cli import doctor

    def change(**fields: Any) -> None:
        changed = change.found._replace(**fields)
        monkeypatch.setattr(doctor, "diagnose", lambda *call, **keywords: changed)

    change.found = doctor.diagnose(None, lambda *call: None, timeout=1)
    return change


def test_a_doctor_who_could_try_nothing_says_so(
    run: Run, diagnosed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no conversion at all could be tried, that is what is wrong."""
    from interop.testing import _check

    diagnosed(findings=())
    untried = Finding("a", "a → a: copy", "values", "not exercised", "np.asarray is broken")
    trial = Report("all", (untried,))
    monkeypatch.setattr(_check, "try_conversions", lambda **keywords: trial)
    result = run("doctor", "--convert")
    assert result.exit_code == 1
    first = "1 thing is wrong.\n✗ no conversion could be tried: np.asarray is broken\n"
    assert result.stdout.startswith(first)


def test_the_doctor_converts_only_if_asked_to(run: Run, diagnosed: Any) -> None:
    """By default it looks, which takes a fraction of the time, and says how to have all tried."""
    diagnosed(findings=())
    result = run("doctor")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "Nothing is wrong.")
    last = "no conversion was tried: 'interop doctor --convert' tries them all"
    assert result.stdout.splitlines()[-1] == last


@pytest.mark.usefixtures("ill")
def test_what_is_wrong_is_red_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal its line is red; in a pipe there is no color at all."""
    assert "\x1b" not in run("doctor", "--convert").stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[31m✗ a → b: a_to_b" in run("doctor", "--convert").stdout


@pytest.mark.usefixtures("ill")
def test_the_doctors_findings_are_json(run: Run) -> None:
    """All of it is in one document, what is right as well."""
    result = run("doctor", "--convert", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["ok"] is False
    assert len(document["findings"][0]["disables"]) == 20
    outcomes = [finding["outcome"] for finding in document["trial"]["findings"]]
    assert (len(outcomes), outcomes[:3]) == (7, ["passed", "not exercised", "failed"])
    assert json.loads(run("doctor", "--json").stdout)["trial"] is None


def test_the_doctor_finds_nothing_where_nothing_is_wrong() -> None:
    """With NumPy and Python's own alone, what can be tried is right, and the code is 0."""
    result = _program("doctor", "--convert")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.startswith("Nothing is wrong.\n")
    right = re.search(r"conversions of real data: (\d+) right, 0 wrong, ", result.stdout)
    assert right
    assert int(right[1]) > 25
    assert re.search(r"^numpy +ready", result.stdout, re.MULTILINE)
    assert result.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("plan", "mlx:float32", "numpy"), 0),
        (("plan", "torch:cuda", "numpy", "--no-copy"), 1),
        (("formats",), 0),
    ],
)
def test_where_an_encoding_lacks_characters_ascii_stands_for_them(
    args: tuple[str, ...], code: int
) -> None:
    """Success, refusal and list are told whole, in columns that line up, without a traceback."""
    whole, *poor = (
        _program(*args, PYTHONIOENCODING=name, INTEROP_DISABLE_PLUGINS="")
        for name in ("utf-8", "ascii", "latin-1", "cp1252")
    )
    for encoding, result in zip(("ascii", "latin-1", "cp1252"), poor, strict=True):
        assert (whole.returncode, result.returncode) == (code, code), result.stderr
        text = result.stdout + result.stderr
        assert "Traceback" not in text
        assert "\\" not in text  # nothing is escaped
        signs = {"→": "->", "—": "-", "µ": "u", "×": "x", "…": "...", "·": ".", "✗": "x"}
        expected = whole.stdout + whole.stderr
        for sign, plain in signs.items():
            lacks = sign.encode(encoding, "replace") == b"?"
            expected = expected.replace(sign, plain if lacks else sign)
        assert timeless(text).split() == timeless(expected).split()
        if args == ("formats",):
            head, *rows = result.stdout.splitlines()
            assert {row[head.index("exports") - 1] for row in rows} == {" "}


@pytest.mark.skipif(sys.platform == "win32", reason="it counts on POSIX pipes")
@pytest.mark.parametrize(
    "args",
    ["conversions", "conversions --json", "plan -h", "plan numpy python", "doctor --no-convert"],
)
def test_a_closed_pipe_ends_the_command_without_an_error(args: str) -> None:
    """Once its pipe is closed, as by ``head``, the command ends with 0 and says nothing."""
    reading, writing = os.pipe()
    os.close(reading)
    result = _program(*args.split(), stdout=writing)
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize(
    "args", ["formats", "formats --json", "plan numpy python", "-h", "--version"]
)
def test_a_full_disk_is_an_error_of_one_line(args: str) -> None:
    """Where the disk is full, the command ends with 1 and says so."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        result = _program(*args.split(), stdout=full)
    error = "interop: cannot write: No space left on device\n"
    assert (result.returncode, result.stderr) == (1, error)


@pytest.mark.skipif(sys.platform == "win32", reason="it closes streams as POSIX shells do")
@pytest.mark.parametrize(
    ("closed", "code", "stderr"),
    [
        (">&-", 1, "interop: cannot write: standard output is closed\n"),
        ("2>&-", 0, ""),
        ("<&-", 0, ""),
        (">&- 2>&-", 1, ""),
    ],
)
def test_standard_streams_may_be_closed(closed: str, code: int, stderr: str) -> None:
    """Without standard error the table is printed all the same; without standard output is a reason."""
    command = f'"$0" -m interop formats python {closed}'
    result = _ended("sh", "-c", command, sys.executable)
    assert (result.returncode, result.stderr) == (code, stderr)
    assert ("exports" in result.stdout) == (code == 0)


def test_without_a_command_the_commands_are_listed(run: Run) -> None:
    """The help and what is missing go to standard error, with the code of a wrong command line."""
    result = run()
    assert (result.exit_code, result.stdout) == (2, "")
    assert "\n  doctor " in result.stderr
    assert result.stderr.endswith("interop: Missing command.\n")
    assert json.loads(run("--json").stdout) == {"error": "Missing command."}


def test_the_version_may_be_a_document(run: Run) -> None:
    """With ``--json``, before or behind, it is JSON, as all else."""
    for words in (("--json", "--version"), ("--version", "--json")):
        assert json.loads(run(*words).stdout) == {"version": interop.__version__}


def test_in_a_pipe_lines_are_plain_and_whole() -> None:
    """However narrow the window claims to be, nothing is colored or cut."""
    result = _program("conversions", COLUMNS="20", TERM="xterm-256color")
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout
    assert "…" not in result.stdout
    assert any(len(line) > 80 for line in result.stdout.splitlines())


@pytest.mark.slow
def test_check_runs_the_conformance_suite(run: Run) -> None:
    """A plugin that keeps its promises is code 0; ``-v`` lists what is not exercised, as JSON does."""
    result, verbose = run("check", "python"), run("check", "python", "-v").stdout
    assert result.exit_code == 0, result.output
    first, *_, last = brief = result.stdout.splitlines()
    assert re.match(r"python: .*[1-9]\d* not exercised", first)
    assert re.match(r"\d+ checks were not tried: 'interop check python -v' names them", last)
    assert "\nnot exercised: " in verbose
    assert len(verbose.splitlines()) > len(brief)
    document = json.loads(run("check", "python", "--json").stdout)
    assert document["ok"] is True
    assert {finding["outcome"] for finding in document["findings"]} >= {"passed"}


def test_a_broken_promise_is_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the suite has caught is shown with its reason."""
    import interop.testing
    from interop.testing import Finding, Report
    from interop.testing._report import UNTRIED

    lie = Finding("odd", "a → b: a_to_b", "memory", "failed", "it says view and copies")
    gap = Finding("odd", "a → b: a_to_b", "extent", "not exercised", f"{UNTRIED}bool, int8")
    monkeypatch.setattr(
        interop.testing, "check", lambda name, *, progress=None: Report(name, (lie, gap), 0.1)
    )
    result = run("check", "numpy")
    assert result.exit_code == 1
    verdict = "numpy: 0 passed, 1 failed, 1 not exercised; nothing that it declares could be tried"
    assert result.stdout.splitlines()[0] == verdict
    last = result.stdout.splitlines()[-1]
    assert last.startswith("1 checks were not tried: 'interop check numpy -v' names them with ")
    assert "Samples(make=" in last
    untried = "declared and never tried: bool (in 1 of 1), int8 (in 1 of 1)"
    verbose = run("check", "numpy", "-v").stdout.splitlines()
    assert untried in verbose
    assert "  a → b: a_to_b (extent)" in verbose
    row = "| a → b: a_to_b | memory | failed | it says view and copies |  |"
    assert row in run("check", "numpy", "--markdown").stdout.splitlines()
    assert "it says view and copies" in result.stdout
    assert run("check", "numpy", "--json").exit_code == 1


def test_an_interruption_has_a_code_of_its_own(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with 130."""
    from interop._cli import doctor

    def interrupted(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "diagnose", interrupted)
    result = run("doctor")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "interop: interrupted\n")


def test_an_interruption_before_the_command_is_loaded_is_no_traceback() -> None:
    """However early Ctrl-C comes, it is told in a line."""
    program = """
import sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
"""
    result = _ended(sys.executable, "-c", program + MAIN)
    assert (result.returncode, result.stderr) == (130, "interop: interrupted\n")


@pytest.mark.parametrize("home", ["/dev/null/home", "/proc"])
def test_a_home_that_cannot_be_written_is_no_traceback(home: str) -> None:
    """Only the completion of a shell writes there, and it says in a line that it cannot."""
    result = _program("--install-completion", "bash", HOME=home)
    assert (result.returncode, result.stdout) == (1, "")
    assert re.fullmatch(rf"interop: {home}\S* cannot be written \(.*\)\.\n", result.stderr)
    for words in (("plan", "numpy", "python"), ("doctor",), ("plugins",)):
        assert not _program(*words, HOME=home).stderr


# ---------------------------------------------------------------------- on a terminal

_ROUTE = ("plan", "torch:cuda:float32:4096x4096", "numpy")
_LONG_ROUTE = ("plan", "torch.sparse_csr", "scipy.coo", "--copy")
_REFUSAL = ("plan", "torch:cuda", "numpy", "--no-copy")


@pytest.mark.usefixtures("ill")
@pytest.mark.parametrize(
    "args",
    [_ROUTE, _LONG_ROUTE, _REFUSAL, ("doctor",), ("conversions", "--from", "pandas"), ("formats",)],
    ids=" ".join,
)
def test_a_terminal_of_80_columns_shows_whole_words(
    args: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is longer, and each word of the plain output, and each cost, is in one piece.

    Of a plan too wide for the terminal, the column "from" is left out.
    """
    plain = run(*args).output
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    terminal = re.sub(r"\x1b\[[0-9;]*m", "", run(*args).output)
    terminal = re.sub(r"\x1b\[[0-9;?]*\w|\r", "\n", terminal)  # how a bar overwrites itself
    assert max(map(len, terminal.splitlines())) <= 80
    # Where a row is too wide for a table, the heads stand before its cells.
    shown = {word.rstrip(":") for word in terminal.split()}
    assert {word.rstrip(":") for word in plain.split()} - shown <= {"—", "from"}
    if args[0] == "conversions":
        assert {
            cost for cost in re.findall(r"[\d.]+ [µm]s", plain) if cost not in terminal
        } == set()


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    for name, setting in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "80")):
        monkeypatch.setenv(name, setting)


def _plain(text: str) -> list[str]:
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    ("args", "heads"),
    [
        (("pandas:100x3", "numpy"), ["step", "to", "effects", "estimate"]),
        (_ROUTE[1:], ["step", "from", "to", "effects", "written", "estimate"]),
    ],
)
def test_a_plan_fits_a_terminal_of_80_columns_without_broken_lines(
    args: tuple[str, ...], heads: list[str], run: Run
) -> None:
    """Columns that say nothing, or what stands elsewhere, make room for the others."""
    title, head, *steps = _plain(run("plan", *args).stdout)
    assert "→" in title
    assert head.split() == heads
    assert [step.split()[0] for step in steps] == ["1"]


@pytest.mark.usefixtures("narrow")
def test_a_terminal_without_a_width_has_80_columns(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the width is said to be 0, nothing is lost."""
    expected = run(*_ROUTE).stdout
    monkeypatch.setenv("COLUMNS", "0")
    assert run(*_ROUTE).stdout == expected


@pytest.mark.usefixtures("narrow")
def test_the_doctors_frameworks_fit_a_terminal_of_80_columns(run: Run, diagnosed: Any) -> None:
    """They are a table also where one has a long name and another a long line to install it."""
    broken, missing = diagnosed.found.frameworks
    long = broken._replace(module="array_api_strict", distribution="array_api_strict")
    missing = missing._replace(install="pip install dpnp")
    diagnosed(frameworks=(long, missing._replace(version="1.5", seconds=0.5)))
    lines = _plain(run("doctor", "-v").stdout)
    assert any(line.split()[:3] == ["framework", "state", "installed"] for line in lines)


@pytest.mark.usefixtures("narrow")
def test_long_lines_are_wrapped_below_their_beginning(run: Run) -> None:
    """Long values of a record are indented as the record is, and a refusal below its bullet."""
    lines = _plain(run("formats").stdout)
    assert any(line.startswith("    devices: ") and line.endswith(",") for line in lines)
    assert all(line.startswith(("format: ", "    ")) for line in lines)
    refusal = _plain(run("plan", "torch:cuda", "numpy", "--no-copy").stderr)
    bullet = next(n for n, line in enumerate(refusal) if line.startswith("  - download"))
    assert re.match(r"    \S", refusal[bullet + 1])


@pytest.mark.usefixtures("narrow")
def test_a_wrong_command_line_is_reported_within_80_columns(run: Run) -> None:
    """What typer finds wrong is broken between words as all else is."""
    lines = run("graph", "--as", "bmp").stderr.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.rstrip() for line in lines[-2:]] == [
        "interop: Invalid value for '--as': 'bmp' is not one of 'svg', 'png', 'pdf',",
        "'dot', 'json'.",
    ]


@pytest.mark.usefixtures("narrow")
def test_a_bar_shows_no_count_before_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    """While nothing is counted there is no number; later there are both."""
    from interop._cli.output import bar

    with bar("importing", hidden=False) as progress:
        pass
    assert "None" not in capsys.readouterr().err
    with bar("importing", hidden=False) as progress:
        progress(2, 3, "numpy")
    assert "2/3 numpy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("state", "reason"),
    [("absent", "nvidia-smi is not on PATH"), ("failed", "nvidia-smi ended with 9: gone")],
)
def test_the_doctor_says_why_it_found_no_gpu(
    state: str, reason: str, run: Run, diagnosed: Any
) -> None:
    """The reason stands in the line, and names the tool once."""
    from interop._cli.doctor import Driver

    diagnosed(driver=Driver("nvidia-smi", state, reason=reason))
    assert f"\nno GPU found ({reason})\n" in run("doctor").stdout


def _on_a_terminal(*args: str) -> tuple[int, str]:
    """Run the command with a terminal as standard output; return the code and what is printed."""
    terminal, end = os.openpty()
    process = _program(*args, stdout=end)
    os.close(end)
    try:
        return process.returncode, os.read(terminal, 10_000).decode() + process.stderr
    except OSError:  # nothing was written
        return process.returncode, process.stderr
    finally:
        os.close(terminal)


@pytest.mark.parametrize("args", [("graph",), ("graph", "--as", "png")])
def test_no_picture_is_thrown_at_a_terminal(args: tuple[str, ...]) -> None:
    """It is refused with what to pass instead."""
    code, text = _on_a_terminal(*args)
    assert (code, "--file graph.svg" in text, "<svg" in text, "PNG\r" in text) == (
        2,
        True,
        False,
        False,
    )


@pytest.mark.parametrize("args", [("--version",), ("-h",), ("plan", "-h"), ("plugins",)])
def test_the_package_can_be_run(args: tuple[str, ...]) -> None:
    """``python -m interop`` is the command."""
    output = _program(*args).stdout
    expected = {"--version": f"interop {interop.__version__}\n"}.get(args[0])
    assert output == expected or (
        expected is None and ("Usage: interop " in output) == ("-h" in args)
    )


def test_the_help_of_plan_names_effects_and_traits(run: Run) -> None:
    """Each effect stands there with its default, and each trait."""
    text = run("plan", "--help").stdout
    assert re.search(r"^  narrow +refused;", text, re.MULTILINE)
    assert re.search(r"^  copy +permitted;", text, re.MULTILINE)
    for name in (*interop.EFFECTS, *interop.TRAITS):
        assert re.search(rf"^  {name}  ", text, re.MULTILINE), name


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("interop pl", {"plan", "plugins"}),
        ("interop plan torch.sparse_cs", {"torch.sparse_csr", "torch.sparse_csc"}),
        ("interop plan torch numpy --forbid de", {"detach", "densify", "dequantize"}),
        ("interop plan torch numpy --dtype bfl", {"bfloat16"}),
        ("interop check panda", {"pandas"}),
    ],
)
def test_the_shell_completes_commands_and_names(line: str, completions: set[str]) -> None:
    """Subcommands, formats, effects, dtypes and plugins."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    result = _program(_INTEROP_COMPLETE="complete_bash", INTEROP_DISABLE_PLUGINS="", **words)
    assert set(result.stdout.split()) == completions


NOISY = """
import atexit, ctypes, os, sys
atexit.register(print, "printed at the end")
print("printed")
os.write(1, b"written\\n")
ctypes.CDLL(None).puts(b"kept until the end")

from interop.plugin import hookimpl

@hookimpl
def interop_declarations():
    print("printed again")
    return []
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it prints by the C library of POSIX systems")
@pytest.mark.parametrize(
    "command", ["plugins", "formats", "conversions", "plan numpy python", "check noisy"]
)
def test_with_json_nothing_else_reaches_standard_output(command: str, tmp_path: Path) -> None:
    """Whatever a plugin prints, from Python or from compiled code, goes to standard error."""
    install_plugin(tmp_path, "noisy", NOISY)
    result = _program(*command.split(), "--json", PYTHONPATH=python_path(tmp_path))
    document = json.loads(result.stdout)
    if command == "plugins":
        assert "noisy" in {plugin["name"] for plugin in document}
    if (
        command != "check noisy"
    ):  # which asks it in other processes, whose reports say what it prints
        assert result.returncode == 0, result.stderr
        lines = {"printed", "written", "kept until the end", "printed again", "printed at the end"}
        assert lines <= set(result.stderr.splitlines())


def test_quiet_drops_what_frameworks_log(capfd: pytest.CaptureFixture[str]) -> None:
    """Inside of ``quiet`` neither Python nor compiled code reaches the terminal; outside both do."""
    from interop._cli.output import quiet

    with quiet():
        print("printed", file=sys.stderr)
        os.write(2, b"logged\n")
        print("printed")
    print("ours", file=sys.stderr)
    os.write(2, b"ours as well\n")
    assert capfd.readouterr() == ("", "ours\nours as well\n")


@pytest.mark.parametrize("source", ["python", "pandas"])
def test_a_plan_without_refused_routes_ends_with_its_table(source: str, run: Run) -> None:
    """Nothing is said about routes that there are not, or that come back to where they were."""
    lines = run("plan", source, "numpy").stdout.splitlines()
    assert re.search(r"[\d.]+ [µm]s$", lines[-1])


# ---------------------------------------------------------------------- what the pages say


def _shown(page: Path) -> list[tuple[str, str]]:
    """Return the commands that a page shows, each with what it says they print."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    pairs = [
        part.partition("\n")
        for text in blocks
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)
    ]
    return [(command, printed) for command, _, printed in pairs if command]


@pytest.mark.parametrize(
    ("command", "printed"), _shown(ROOT / "docs/reference/command.md"), ids=lambda text: text[:40]
)
def test_the_pages_commands_print_what_they_show(command: str, printed: str, run: Run) -> None:
    """Output is compared but for times and versions; ``[1]`` is the code of what is an error.

    What is imported depends on the tests that ran before in the same process.
    """
    result = run(*command.split()[1:])
    code = result.exit_code
    output = f"[{code}] {result.stderr}" if code else result.stdout
    output = output.replace(" imported ", " installed ")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    matches = doctest.OutputChecker().check_output(timeless(printed), timeless(output), flags)
    assert matches, output


def test_the_page_names_every_command(run: Run) -> None:
    """The reference has a line for each command that there is."""
    page = (ROOT / "docs/reference/command.md").read_text("utf-8")
    named = re.findall(r"^  (\w+)  +", run("--help").stdout.partition("Commands:")[2], re.MULTILINE)
    assert named == "plan doctor formats conversions plugins graph check".split()
    assert [
        name for name in named if f"`interop {name}" not in page and f"`{name}`" not in page
    ] == []
