"""The trial: real data along every route that is available here, and whether they come out right.

The conversions are made in a process of their own, which tells after each what has become of it. If
it ends or hangs, the pair at which it did is a finding, and another process goes on behind it.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import prod
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, NamedTuple

from interop._calibration.measure import REFUSALS, preferred
from interop._calibration.sample import NoSample, Numbers, Wanted, sample
from interop._model.format import common_axes
from interop.errors import RefusedError

from .probe import MARK, how_it_ended

if TYPE_CHECKING:
    from interop._api.interop import Interop

__all__ = ["OUTCOMES", "Lane", "Trial", "Tried", "try_all"]

Progress = Callable[[int, int, str], None]

#: What can become of a pair, the worst last, and whether something is wrong then.
OUTCOMES = {"refused": False, "right": False, "unread": False, "failed": True, "wrong": True}

#: Lengths of the axes of what is tried, by how many there are.
_SHAPES = {0: (), 1: (12,), 2: (3, 4)}
_DENSITY = 0.5
#: How Python reads memory, by the kind of number in it.
_CTYPES: dict[str, Any] = {
    "b": ctypes.c_bool,
    "i": ctypes.c_int64,
    "u": ctypes.c_uint64,
    "f": ctypes.c_double,
    "c": ctypes.c_double,
}
#: Seconds for one pair: a framework may be imported for it, or compile.
_PATIENCE = 120.0


class Lane(NamedTuple):
    """A format on a device."""

    format: str
    device: str

    def __str__(self) -> str:
        return self.format if self.device == "cpu" else f"{self.format} on {self.device}"


class Tried(NamedTuple):
    """What has become of one pair.

    Parameters
    ----------
    source, target : Lane
    outcome : str
        ``"right"``: the numbers came out as they went in. ``"refused"``: there is no such route.
        ``"unread"``: it converts, and the result could not be read back. ``"failed"``: it raised
        an error, or ended the process. ``"wrong"``: other numbers came out.
    steps : tuple of str
    reason : str
    """

    source: Lane
    target: Lane
    outcome: str
    steps: tuple[str, ...] = ()
    reason: str = ""


class Trial(NamedTuple):
    """What was tried.

    Parameters
    ----------
    tried : tuple of Tried
        Every pair of lanes of which a value can be made here.
    left_out : dict of str to str
        Why there is none of the others.
    """

    tried: tuple[Tried, ...]
    left_out: dict[str, str]

    @property
    def wrong(self) -> tuple[Tried, ...]:
        """The pairs with which something is wrong."""
        return tuple(one for one in self.tried if OUTCOMES[one.outcome])

    def as_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        pairs = [
            {**one._asdict(), "source": str(one.source), "target": str(one.target)}
            for one in self.tried
        ]
        return {"pairs": pairs, "left_out": self.left_out}


def try_all(
    face: Interop,
    without: frozenset[str] = frozenset(),
    progress: Progress | None = None,
    *,
    patience: float = _PATIENCE,
) -> Trial:
    """Convert a small real value of every format to every other.

    Parameters
    ----------
    face : Interop
        Whose formats are tried, in another process, in which the installed plugins are loaded.
    without : frozenset of str
        Modules of frameworks to leave out.
    progress : callable, optional
        ``progress(done, total, what)``.
    patience : float
        Seconds after which a pair is given up.

    Returns
    -------
    Trial
    """
    known = [
        Lane(one.name, device)
        for one in face.formats()
        if one.state != "missing" and one.format.requires not in without
        for device in one.format.devices
    ]
    left_out: dict[str, str] = {}
    made: list[Lane] = []
    for one in _carried_out([(lane, None) for lane in known], progress, patience):
        if one.outcome == "right":
            made.append(one.source)
        else:
            left_out[str(one.source)] = one.reason
    pairs: list[_Job] = [(one, other) for one in made for other in made]
    return Trial(tuple(_carried_out(pairs, progress, patience)), left_out)


# ---------------------------------------------------------------------- the one who asks

#: A pair to be converted; or, without a target, a value to be made.
_Job = tuple[Lane, Lane | None]


def _carried_out(jobs: list[_Job], progress: Progress | None, patience: float) -> Iterator[Tried]:
    """Yield what has become of each job, with a new process after each that has ended."""
    done = 0
    while done < len(jobs):
        with _Worker(jobs[done:]) as worker:
            while done < len(jobs):
                source, target = jobs[done]
                if progress:
                    progress(done, len(jobs), f"{source} → {target or source}")
                answer = worker.answer(patience)
                done += 1
                if isinstance(answer, str):
                    yield Tried(source, target or source, "failed", (), answer)
                    break
                yield Tried(source, target or source, *answer)


class _Worker:
    """A process that carries out jobs, one after the other.

    Parameters
    ----------
    jobs : list of tuple
    """

    def __init__(self, jobs: list[_Job]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        self._lines: Queue[str | None] = Queue()
        self._last = ""
        assert self._process.stdin
        self._readers = [
            threading.Thread(target=reader, daemon=True) for reader in (self._listen, self._heed)
        ]
        for reader in self._readers:
            reader.start()
        with suppress(BrokenPipeError), self._process.stdin as asked:
            json.dump(jobs, asked)

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith(MARK):
                self._lines.put(line.removeprefix(MARK))
        self._lines.put(None)

    def _heed(self) -> None:
        """Read what it complains of, so that it never waits for a reader."""
        assert self._process.stderr
        for line in self._process.stderr:
            self._last = line.strip() or self._last

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            if stream:
                stream.close()

    def answer(self, patience: float) -> list[Any] | str:
        """Return the next answer, or how the process has ended instead."""
        try:
            line = self._lines.get(timeout=patience)
        except Empty:
            return f"it did not come to an end in {patience:.0f} s"
        if line is None:
            return how_it_ended(self._process.wait(), self._last)
        outcome, steps, reason = json.loads(line)
        return [outcome, tuple(steps), reason]


# ---------------------------------------------------------------------- the one who does it


class _Bench:
    """Carries out jobs in this process.

    Parameters
    ----------
    face : Interop
    """

    def __init__(self, face: Interop) -> None:
        self._face = face
        self._formats = {one.name: one.format for one in face.formats()}
        #: The format whose values Python itself can compare.
        self._list = next(
            (name for name, one in self._formats.items() if "builtins:list" in one.types), None
        )
        self._samples: dict[tuple[Lane, int | None], tuple[Any, list[Any] | None]] = {}

    def made(self, lane: Lane) -> tuple[str, list[str], str]:
        """Make a value of a lane, and tell whether that went well."""
        try:
            self._sample(lane, common_axes(self._formats[lane.format]))
        except NoSample as reason:
            return "refused", [], str(reason)
        except REFUSALS as error:
            return "failed", [], _said(error)
        return "right", [], ""

    def converted(self, source: Lane, target: Lane) -> tuple[str, list[str], str]:
        """Convert a value from one lane to another, and tell what has become of it."""
        steps: list[str] = []
        axes = common_axes(self._formats[source.format], self._formats[target.format])
        try:
            value, expected = self._sample(source, axes)
            request: dict[str, Any] = {"to": target.format, "device": target.device}
            steps = [step.label for step in self._face.plan(value, **request).steps]
            result = self._face.convert(value, **request)
        except (NoSample, RefusedError) as reason:
            return "refused", steps, _said(reason)
        except REFUSALS as error:
            return "failed", steps, _said(error)
        outcome, said = self._judged(result, expected)
        if outcome == "wrong" and self._is_misread(target, axes):
            outcome = "unread"
            said = f"{target} cannot be read back, since what leads from it gives other numbers"
        return outcome, steps, said

    def _judged(self, result: Any, expected: list[Any] | None) -> tuple[str, str]:
        try:
            found = self._read(result)
        except REFUSALS as error:
            return "unread", _said(error)
        if found is None or expected is None:
            return "unread", "no format of Python's own is registered to read it with"
        if found != expected:
            return "wrong", f"{expected} went in, and {found} came out"
        return "right", ""

    def _is_misread(self, lane: Lane, axes: int | None) -> bool:
        """Tell whether a value that nobody has converted is read back wrong as well."""
        try:
            value, expected = self._sample(lane, axes)
        except (NoSample, *REFUSALS):
            return False
        return self._judged(value, expected)[0] == "wrong"

    def _sample(self, lane: Lane, axes: int | None) -> tuple[Any, list[Any] | None]:
        """Return a value of a lane, and the numbers in it."""
        known = self._samples.get((lane, axes))
        if known is None:
            one = self._formats[lane.format]
            if axes is None:
                msg = "the two never have as many axes"
                raise NoSample(msg)
            dtype = next(iter(preferred(one.holds(lane.device))), "float32")
            density = _DENSITY if one.index_dtypes else 1.0
            shape = _SHAPES.get(axes, (1,) * (axes - 2) + _SHAPES[2])
            wanted = Wanted(lane.format, dtype, shape, device=lane.device, density=density)
            value = sample(self._face, wanted)
            numbers = self._read(value) if self._is_coded(value) else _numbers(wanted)
            known = self._samples[lane, axes] = value, numbers
        return known

    def _is_coded(self, value: Any) -> bool:
        """Tell whether a value holds codes, from which not every number can be had back."""
        if self._list is None:
            return False
        try:
            return "dequantize" in self._face.plan(value, to=self._list).effects
        except RefusedError:
            return False

    def _read(self, value: Any) -> list[Any] | None:
        """Return the numbers of a value in a row."""
        if self._list is None:
            return None
        return list(_flat(self._face.convert(value, to=self._list)))


def _numbers(wanted: Wanted) -> list[Any]:
    """Return the numbers of which a sample is made, read from memory of Python's own."""
    made = Numbers(wanted.dtype, wanted.shape, wanted.density)
    interface = made.__array_interface__
    kind, count = interface["typestr"][1], prod(wanted.shape)
    width = 2 if kind == "c" else 1
    memory = (_CTYPES[kind] * (count * width)).from_address(interface["data"][0])
    numbers = list(memory)
    if kind == "c":
        return [complex(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
    return numbers


def _flat(nested: Any) -> Iterator[Any]:
    if isinstance(nested, list):
        for one in nested:
            yield from _flat(one)
    else:
        yield nested


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _main() -> None:
    from interop._api.interop import Interop

    jobs = json.loads(sys.stdin.read())
    bench = _Bench(Interop())
    warnings.simplefilter("ignore")
    for source, target in jobs:
        one = Lane(*source)
        answer = bench.converted(one, Lane(*target)) if target else bench.made(one)
        print(f"\n{MARK}{json.dumps(answer)}", flush=True)


if __name__ == "__main__":
    _main()
