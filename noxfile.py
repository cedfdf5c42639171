"""The commands of a developer: ``nox -l`` lists them, ``nox -s test`` runs one.

They run in the environment that nox is installed in. What follows ``--`` goes on to the program.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "test"]

BIN = Path(sys.executable).parent
PYTEST = (sys.executable, "-m", "pytest", "-n", "2")


@nox.session
def core(session: nox.Session) -> None:
    """Test the core: one minute."""
    session.run(*PYTEST, "-m", "core", *session.posargs)


@nox.session
def test(session: nox.Session) -> None:
    """Run all tests that are not slow: five minutes."""
    session.run(*PYTEST, *session.posargs)


@nox.session(name="test-rest")
def test_rest(session: nox.Session) -> None:
    """Run what the group `test` alone leaves out: slow tests, and those of the group `test-all`."""
    session.run(*PYTEST, "-m", "slow or extra", *session.posargs)


@nox.session(name="test-all")
def test_all(session: nox.Session) -> None:
    """Run all tests."""
    session.run(*PYTEST, "-m", "", *session.posargs)


@nox.session(default=False)
def fuzz(session: nox.Session) -> None:
    """Fuzz what is read of others: four targets, a minute each, or `-- SECONDS`."""
    (seconds,) = session.posargs or ("60",)
    for target in ("capsule", "interface", "names", "arrow"):
        session.run(sys.executable, "-m", "tests.fuzz", target, seconds)


@nox.session
def gpu(session: nox.Session) -> None:
    """Run the tables, the tests and the checker of memory that need a CUDA or a SYCL device."""
    session.run(sys.executable, "-m", "benchmarks.gpu", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format, spelling and workflows; `nox -s fix` fixes what can be fixed."""
    session.run(sys.executable, "-m", "ruff", "check", ".")
    session.run(sys.executable, "-m", "ruff", "format", "--check", ".")
    session.run(sys.executable, "-m", "codespell_lib")
    session.run(str(BIN / "zizmor"), "--offline", "--quiet", ".github", external=True)


@nox.session(default=False)
def fix(session: nox.Session) -> None:
    """Format the code, and fix what ruff can fix."""
    session.run(sys.executable, "-m", "ruff", "check", "--fix", ".")
    session.run(sys.executable, "-m", "ruff", "format", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types strictly, and what users see of them; `-- interop` checks the core alone."""
    session.run(sys.executable, "-m", "mypy", *session.posargs)
    if session.posargs:
        return
    session.run(sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "tests/typing")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation, warnings as errors, and test the pages that were built."""
    (folder,) = session.posargs or ("build/docs",)
    # All pages are read, because the search finds keywords only of those that are.
    session.run(sys.executable, "-m", "sphinx", "-E", "-W", "-q", "-b", "html", "docs", folder)
    pytest = (sys.executable, "-m", "pytest", "-q", "tests/docs/test_site.py")
    session.run(*pytest, env={"INTEROP_SITE": folder})


@nox.session
def bench(session: nox.Session) -> None:
    """Check that no ratio of the benchmarks is worse than it was stored; `-- --store` stores."""
    session.run(sys.executable, "-m", "benchmarks", *(session.posargs or ("--check",)))


@nox.session
def release(session: nox.Session) -> None:
    """Build twice what a release would upload, in dist/, compare and check it; nothing is uploaded.

    The tools that build it are those of `.ci/build-tools.txt`, by their hashes. What it is made of
    stands beside the folder, as `dist.cdx.json`.
    """
    (folder,) = session.posargs or ("dist",)
    session.run(str(BIN / "validate-pyproject"), "pyproject.toml", external=True)
    tools = ".ci/build-tools.txt"
    with tempfile.TemporaryDirectory() as work:
        python = str(Path(work) / "tools" / BIN.name / "python")
        session.run(sys.executable, "-m", "venv", str(Path(work) / "tools"))
        hashed = ("--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "-r", tools)
        session.run(python, "-m", "pip", "install", *hashed, external=True)
        # The wheel is made from the source archive, as users of the archive make it.
        build = (python, "-m", "build", "--quiet", "--no-isolation", "--outdir")
        session.run(*build, folder, ".", external=True)
        files = sorted(path for path in Path(folder).iterdir() if path.is_file())
        (source,) = (path for path in files if path.name.endswith(".tar.gz"))
        shutil.unpack_archive(source, work, filter="data")
        again = Path(work) / "again"
        session.run(
            *build, str(again), str(Path(work) / source.name.removesuffix(".tar.gz")), external=True
        )
        for path in files:
            digests = [
                sha256((where / path.name).read_bytes()).hexdigest()
                for where in (Path(folder), again)
            ]
            session.log(f"{path.name}: {digests[0]}")
            if digests[0] != digests[1]:
                session.error(f"a second build of {path.name} is another: {digests[1]}")
    session.run(sys.executable, "-m", "twine", "check", "--strict", *map(str, files))
    (wheel,) = (str(path) for path in files if path.suffix == ".whl")
    # Two packages: the core, and the bundled plugins.
    checks = (str(BIN / "check-wheel-contents"), "--toplevel", "interop,interop_plugins")
    session.run(*checks, wheel, external=True)
    with open(f"{folder}.cdx.json", "w", encoding="utf-8") as contents:
        session.run(sys.executable, ".ci/sbom", wheel, tools, stdout=contents)


@nox.session
def ci(session: nox.Session) -> None:
    """Run all that must hold before a change lands, in fresh environments: twenty minutes."""
    session.run("bash", ".ci/run")
