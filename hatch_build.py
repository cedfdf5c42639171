"""Compiles `interop._front` while a wheel is built, if a C compiler is at hand.

Without one the wheel is made of Python alone, and only slower. ``INTEROP_PURE=1`` asks for that.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCE = "interop/_front.py"


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc]
    """Adds the compiled module to a wheel, or to the checkout that an editable one points to."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, before hatchling collects the files."""
        if self.target_name != "wheel" or os.environ.get("INTEROP_PURE"):
            return
        self._made = tempfile.TemporaryDirectory()
        compiled = _compiled(Path(self.root), Path(self._made.name))
        if compiled is None:
            self.app.display_warning(
                f"{_SOURCE} could not be compiled: interop is installed as Python alone"
            )
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        place = f"interop/{compiled.name}"
        if version == "editable":
            shutil.move(compiled, Path(self.root, place))
        else:
            build_data["force_include"][str(compiled)] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Throw away what was made on the way."""
        if hasattr(self, "_made"):
            self._made.cleanup()


def _compiled(root: Path, into: Path) -> Path | None:
    """Return the compiled module, or None if there is nothing to compile with."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    extension = Extension("interop._front", [str(root / _SOURCE)])
    # It holds no state, so that it asks nothing of Python's lock.
    directives = {"language_level": 3, "freethreading_compatible": True}
    (made,) = cythonize(
        [extension], build_dir=str(into / "c"), compiler_directives=directives, quiet=True
    )
    made.optional = True  # a failure is reported, and leaves no file
    command = build_ext(Distribution({"name": "interop", "ext_modules": [made]}))
    command.build_lib, command.build_temp = str(into / "lib"), str(into / "temp")
    command.ensure_finalized()
    command.run()
    return next((into / "lib").rglob("_front*"), None)
