"""What ``interop check NAME --dlpack`` does: a library's DLPack, looked at without a plugin."""

from __future__ import annotations

from importlib.util import find_spec

from .output import bar, line, misused, show_bytes, show_json

_STYLES = {"wrong": "red", "ends the process": "bold red", "not as recommended": "yellow"}


def check_library(
    name: str, *, make: str, from_dlpack: str, as_json: bool, as_markdown: bool
) -> bool:
    """Look at a library, print what is found, and return whether nothing is wrong."""
    from interop.testing import check_dlpack

    for reference in filter(None, (name, make, from_dlpack)):
        _expect_module(reference.partition(":")[0])
    with bar("checking", hidden=as_json or as_markdown) as progress:
        report = check_dlpack(name, make=make, from_dlpack=from_dlpack, progress=progress)
    if as_json:
        show_json(report.as_dict())
    elif as_markdown:
        show_bytes(report.as_markdown().encode())
    else:
        for text in str(report).splitlines():
            line(text, _STYLES.get(text.partition(":")[0], ""))
    return report.ok


def _expect_module(name: str) -> None:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):  # its package is not there, or cannot be imported
        spec = None
    if spec is None:
        misused(f"there is no module {name!r} to import here")
