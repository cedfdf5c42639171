"""The tutorial on plugins, from its empty folder to its wheel, and the page that writes it by hand.

Every file is written, and every line is run.

Blocks with a caption are files. A shell runs what follows a ``$``, and Python what follows a
``>>>``, in an environment that has the distributions which the page installs first.
"""

from __future__ import annotations

import doctest
import os
import re
import stat
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.test_docs import timeless

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial" / "write-and-publish-a-plugin.md"
#: It begins with the files that the other page ends with, and writes the plugin anew.
BY_HAND = ROOT / "docs" / "tutorial" / "the-long-form.md"
PLUGIN = "src/interop_example/plugin.py"
TEMPLATE = ROOT / "examples" / "interop-example"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
#: How a caption says that its block replaces the last part of a file, and where that part begins.
REPLACES, HOOK = ", in place of the hook", "@hookimpl\n"

#: What to do with the blocks of each language that are not files.
SHOWN_ONLY, RUN_BY_SHELL, RUN_BY_PYTHON = "sh", "console", "pycon"


class Block(NamedTuple):
    """A block of the page: a file, or something to be run."""

    line: int
    language: str
    caption: str
    text: str


def blocks(path: Path) -> list[Block]:
    """Return the blocks of a page in order."""
    page = path.read_text("utf-8")
    fenced = re.finditer(
        r"^```(?:\{code-block\} )?(\w+)\n(?::caption: \"([^\n]+)\"\n\n)?(.*?)^```$",
        page,
        re.DOTALL | re.MULTILINE,
    )
    return [
        Block(page.count("\n", 0, fence.start()) + 1, fence[1], fence[2] or "", fence[3])
        for fence in fenced
    ]


def files() -> dict[str, str]:
    """Return the files of the tutorial as they are in the end."""
    texts: dict[str, str] = {}
    for block in blocks(PAGE):
        if block.caption:
            _write(texts, block)
    return texts


def _write(texts: dict[str, str], block: Block) -> str:
    """Put a block into the texts of files, and return the name of its file."""
    name = block.caption.removesuffix(REPLACES).strip("`")
    assert (name in texts) == block.caption.endswith(REPLACES), block.caption
    before, hook, _ = texts.get(name, "").partition(HOOK)
    assert (name in texts) == bool(hook), f"{block.caption}: no hook to replace"
    texts[name] = before + block.text
    return name


@pytest.mark.parametrize("path", [PAGE, BY_HAND], ids=lambda path: path.stem)
def test_every_block_is_a_file_or_is_run(path: Path) -> None:
    """The tests read every fence of the page, and use every block."""
    page = path.read_text("utf-8")
    read = blocks(path)
    assert 2 * len(read) == len(re.findall(r"^```", page, re.MULTILINE))
    run = {block.language for block in read if not block.caption}
    assert run - {SHOWN_ONLY} == {RUN_BY_SHELL, RUN_BY_PYTHON}


def test_the_template_is_what_the_tutorial_ends_with() -> None:
    """Every file of the page but the README is in the template, and the other way round."""
    shown = {name: text for name, text in files().items() if name != "README.md"}
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],
        cwd=TEMPLATE,
        capture_output=True,
        text=True,
        check=False,
    )
    names = set(tracked.stdout.split()) if tracked.returncode == 0 else set(shown)
    assert names - {"README.md", "src/interop_example/py.typed"} == set(shown)
    for name, text in shown.items():
        assert (TEMPLATE / name).read_text("utf-8") == text, name


def test_the_tutorial_installs_the_distributions_it_uses() -> None:
    """The first block installs the distributions that the rest of the page runs with."""
    first = next(block for block in blocks(PAGE) if block.language == SHOWN_ONLY)
    (line,) = re.findall(r"^pip install (.+)$", first.text, re.MULTILINE)
    names = [word.strip("'").partition("[")[0] for word in line.split()]
    assert names == ["../interop", "torch", "hatchling", "pytest"]
    assert all(version(name) for name in names[1:])


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment like that of the page's first block, without a network.

    It is fresh, and sees what is installed where the tests run.
    """
    folder = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    parent = sysconfig.get_path("purelib")
    (site / "parent.pth").write_text(f"import site; site.addsitedir({parent!r})\n")
    for command, program in {
        "pip": "from pip._internal.cli.main import main",
        "interop": "from interop._cli.cli import main",
    }.items():
        script = folder / "bin" / command
        script.write_text(f"#!{folder}/bin/python\nimport sys\n{program}\nsys.exit(main())\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    clean = {key: text for key, text in os.environ.items() if not key.startswith(("PYTHON", "PIP"))}
    return {
        **clean,
        "PATH": f"{folder}/bin{os.pathsep}{os.environ['PATH']}",
        "VIRTUAL_ENV": str(folder),
        "PYTHONIOENCODING": "utf-8",
        "PYTHONDONTWRITEBYTECODE": "1",  # a source can change twice within the same second
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "COLUMNS": "200",
    }


@pytest.mark.slow
@pytest.mark.parametrize("path", [PAGE, BY_HAND], ids=lambda path: path.stem)
def test_the_tutorial_runs(path: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    """The page shows what happens, from its first block to its last."""
    folder = tmp_path / "interop-example"
    texts = {} if path == PAGE else files()
    texts.pop(PLUGIN, None)
    for name in texts:
        _store(texts, name, folder)
    count = 0
    for block in blocks(path):
        if block.caption:
            _store(texts, _write(texts, block), folder)
        elif block.language == RUN_BY_SHELL:
            for command, expected in _commands(block):
                _judge(path, block, command, expected, _shell(command, folder, environment))
                count += 1
        elif block.language == RUN_BY_PYTHON:
            (folder / "session.txt").write_text(block.text, "utf-8")
            report = _shell(
                "python -m doctest -o ELLIPSIS -o NORMALIZE_WHITESPACE session.txt",
                folder,
                environment,
            )
            assert report == "", f"{path.name}, line {block.line}\n{report}"
            (folder / "session.txt").unlink()
            count += 1
    assert count > (15 if path == PAGE else 8)
    assert path == BY_HAND or {
        file.name
        for file in (tmp_path / ".venv").glob("lib/python*/site-packages/interop_example*/*.py")
    } == {"__init__.py", "ring.py", "plugin.py"}


def _store(texts: dict[str, str], name: str, folder: Path) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(texts[name], "utf-8")


def _commands(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a block, each with what the page says it prints."""
    head, *parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert head == "", f"line {block.line} begins with no command"
    return [(command, printed) for command, _, printed in (part.partition("\n") for part in parts)]


def _shell(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a command, and return its output, after its exit code if that is not zero."""
    process = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    if not process.returncode:
        return process.stdout
    return f"[{process.returncode}] {process.stdout or process.stderr}"


def _judge(path: Path, block: Block, command: str, expected: str, output: str) -> None:
    checker = doctest.OutputChecker()
    matches = checker.check_output(timeless(expected), timeless(output), FLAGS)
    assert matches, f"{path.name}, line {block.line}: $ {command}\n{output}\nnot\n{expected}"
