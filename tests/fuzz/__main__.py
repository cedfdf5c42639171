"""Fuzz one target: ``python -m tests.fuzz TARGET [SECONDS]``, or replay its corpus: ``python -m tests.fuzz TARGET replay``.

Atheris guides what is tried by the lines that it reaches, and writes what fails into a folder of the system's for temporary
files, which it names. Put that into the corpus with the correction, so that it is tried for ever.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def replay(target: str) -> None:
    """Try everything in the corpus of a target; the last line on standard error names what ended the process."""
    from tests.fuzz.targets import TARGETS

    for path in sorted((CORPUS / target).iterdir()):
        print(path.name, file=sys.stderr, flush=True)
        TARGETS[target](path.read_bytes())


def fuzz(target: str, seconds: str) -> None:
    """Try what is like the corpus, for some time."""
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["interop", "interop_plugins"]):
        import interop
        from tests.fuzz.targets import TARGETS

        interop.formats()  # loads all plugins
    # Atheris writes what is new into the first folder: it is moved into the corpus by hand, if it is worth it.
    new = Path(tempfile.gettempdir()) / f"interop-fuzz-{target}"
    new.mkdir(exist_ok=True)
    arguments = [
        f"-max_total_time={seconds}",
        "-max_len=4096",
        "-timeout=20",
        f"-artifact_prefix={new}/",
    ]
    atheris.Setup([sys.argv[0], *arguments, str(new), str(CORPUS / target)], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    name, time = (*sys.argv[1:], "60")[:2]
    if time == "replay":
        replay(name)
    else:
        fuzz(name, time)
