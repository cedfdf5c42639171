"""What an editor shows: pyright's language server is asked for hovers and completions."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import interop
from docs.signatures import words

pytestmark = [pytest.mark.slow, pytest.mark.extra("pyright")]

TEXT = """\
import interop
array = interop.convert([1.0], to="numpy", dtype="float32")
route = interop.plan([1.0], to="numpy")
tree = interop.convert_tree([[1.0]], to="numpy")
function = interop.accepts("numpy")
convert = interop.converter("numpy")
interop.convert([1.0], to="torch.sp")
interop.convert([1.0], to="numpy", allow="")
interop.convert([1.0], to="numpy", dtype="bfl")
interop.convert([1.0], to="numpy", de)
function = interop.convert
"""


class Server:
    """A language server that has opened one file."""

    def __init__(self, file: Path, python: str = sys.executable) -> None:
        self._python = python
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pyright.langserver", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._number = 0
        self._uri = file.as_uri()
        capabilities = {"workspace": {"configuration": True}}
        folder = file.parent.as_uri()
        self._ask("initialize", processId=None, rootUri=folder, capabilities=capabilities)
        self._send(method="initialized", params={})
        document = {"uri": self._uri, "languageId": "python", "version": 1, "text": TEXT}
        self._send(method="textDocument/didOpen", params={"textDocument": document})

    def close(self) -> None:
        """End the server."""
        with suppress(subprocess.TimeoutExpired):
            self._ask("shutdown")
            self._send(method="exit")
            self._process.wait(20)
        self._process.kill()
        self._process.communicate()

    def hover(self, line: int, word: str, end: str = "") -> str:
        """Return what is shown over a word, the first that `end` stands behind."""
        column = f"{TEXT.splitlines()[line]}(".index(f"{word}{end}") + 1
        text: str = self._at("textDocument/hover", line, column)["contents"]["value"]
        return text

    def completions(self, line: int, behind: str) -> list[str]:
        """Return what is offered behind some text."""
        column = TEXT.splitlines()[line].index(behind) + len(behind)
        answer = self._at("textDocument/completion", line, column) or {"items": []}
        return [item["label"].strip("\"'") for item in answer["items"]]

    def _at(self, method: str, line: int, column: int) -> Any:
        position = {"line": line, "character": column}
        return self._ask(method, textDocument={"uri": self._uri}, position=position)

    def _ask(self, method: str, **params: object) -> Any:
        self._number += 1
        self._send(id=self._number, method=method, params=params)
        while True:
            message = self._read()
            if "method" not in message and message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            if "id" in message:  # the server asks how it is configured
                items = message.get("params", {}).get("items", [])
                answer = [{"pythonPath": self._python} for _ in items]
                self._send(id=message["id"], result=answer or None)

    def _send(self, **message: object) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        stream, length = self._process.stdout, 0
        assert stream
        while line := stream.readline().strip():
            name, _, number = line.partition(b":")
            length = int(number) if name.lower() == b"content-length" else length
        message: dict[str, Any] = json.loads(stream.read(length))
        return message


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A language server for a file with some calls."""
    file = tmp_path_factory.mktemp("editor") / "calls.py"
    file.write_text(TEXT)
    server = Server(file)
    yield server
    server.close()


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (1, "convert"),
        (2, "plan"),
        (3, "convert_tree"),
        (4, "accepts"),
        (5, "converter"),
        (10, "convert"),
    ],
)
def test_a_hover_shows_all_keywords_and_the_docstring(server: Server, line: int, name: str) -> None:
    """The sixty signatures are left out, with and without a call."""
    text = server.hover(line, name, "(")
    assert f"(variable) {name}: " in text
    method = getattr(interop.Interop, name)
    shown = next(part for part in text.replace("`", "").split("\n") if f"{name}(" in part)
    assert all(keyword in shown for keyword in [*inspect.signature(method).parameters][1:])
    docstring = method.__doc__
    assert docstring.splitlines()[0].replace("`", "") in text.replace("`", "")
    assert "Returns\n-------" in text


@pytest.mark.parametrize(("line", "type_"), [(1, "NDArray[Any]"), (3, "list[Any]")])
def test_a_hover_over_a_result_shows_its_type(server: Server, line: int, type_: str) -> None:
    """What a call returns is known by its words."""
    assert type_ in server.hover(line, "array" if line == 1 else "tree", " =")


def test_a_hover_over_the_package_shows_its_docstring(server: Server) -> None:
    """It says what the package is for."""
    assert str(interop.__doc__).splitlines()[0] in server.hover(0, "interop")


def test_completions_name_formats_effects_dtypes_and_keywords(server: Server) -> None:
    """Behind an opening quote stand the words that the keyword takes, behind a comma the keywords."""
    assert "torch.sparse_csr" in server.completions(6, 'to="torch.sp')
    assert {"drop_mask", "narrow"} <= set(server.completions(7, 'allow="'))
    assert "bfloat16" in server.completions(8, 'dtype="bfl')
    assert "device=" in server.completions(9, ", de")


def test_all_targets_are_offered_without_other_frameworks(
    tmp_path: Path, numpy_alone: Path
) -> None:
    """Behind the quote of ``to=`` stand the words for all bundled formats, installed or not."""
    (tmp_path / "calls.py").write_text(TEXT)
    server = Server(tmp_path / "calls.py", str(numpy_alone))
    try:
        assert set(words()) <= set(server.completions(6, 'to="'))
    finally:
        server.close()
