"""The trial: every route that is available here converts real data, which are compared.

Another process makes the conversions, and reports after each. If it crashes or hangs, that pair is
a finding, and a new process goes on with the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from interop._model.blame import error_text
from interop._model.typing import Value
from interop.errors import RefusedError
from interop.testing._process import Say, Worker, WorkerEnded
from interop.testing._sample import REFUSALS, NoSample, Numbers, Recipe, preferred, sample

from .notation import common_axes

if TYPE_CHECKING:
    from interop._api.interop import Interop

Progress = Callable[[int, int, str], None]

#: The outcomes of a pair, the worst last, and whether each is a fault.
OUTCOMES = {"refused": False, "right": False, "unread": False, "failed": True, "wrong": True}

#: Shapes of the values that are tried, by the number of axes.
_SHAPES = {0: (), 1: (12,), 2: (3, 4)}
_DENSITY = 0.5
#: Seconds for one pair, in which a framework may be imported, or compile.
_PATIENCE = 120.0


class Lane(NamedTuple):
    """A format on a device."""

    format: str
    device: str

    def __str__(self) -> str:
        return self.format if self.device == "cpu" else f"{self.format} on {self.device}"


class Tried(NamedTuple):
    """The outcome of one pair.

    Parameters
    ----------
    source, target : Lane
    outcome : str
        ``"right"``: the numbers came out as they went in. ``"refused"``: there is no such route.
        ``"unread"``: it converts, but the result could not be read back. ``"failed"``: it raised
        an error, crashed or hung. ``"wrong"``: other numbers came out.
    steps : tuple of str
    reason : str
    """

    source: Lane
    target: Lane
    outcome: str
    steps: tuple[str, ...] = ()
    reason: str = ""


class Trials(NamedTuple):
    """The outcomes of all pairs.

    Parameters
    ----------
    tried : tuple of Tried
        Every pair of lanes for which values can be made here.
    left_out : dict of str to str
        The other lanes, each with the reason why no value of it can be made.
    """

    tried: tuple[Tried, ...]
    left_out: dict[str, str]

    @property
    def wrong(self) -> tuple[Tried, ...]:
        """The pairs that are at fault."""
        return tuple(pair for pair in self.tried if OUTCOMES[pair.outcome])

    @property
    def untried(self) -> dict[str, str]:
        """The formats of which no value can be made on the host, each with the reason."""
        return {lane: reason for lane, reason in self.left_out.items() if " on " not in lane}

    @property
    def problem(self) -> str:
        """Why no pair at all could be tried; "" if some could."""
        if self.tried:
            return ""
        reason = next(iter(self.untried.values()), "there is no format")
        return f"no pair of formats could be tried: {reason}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        pairs = [
            {**pair._asdict(), "source": str(pair.source), "target": str(pair.target)}
            for pair in self.tried
        ]
        return {"pairs": pairs, "left_out": self.left_out}


def try_all(
    interop: Interop,
    without: frozenset[str] = frozenset(),
    progress: Progress | None = None,
    *,
    patience: float = _PATIENCE,
) -> Trials:
    """Convert a small real value of every format to every other.

    Parameters
    ----------
    interop : Interop
        The instance whose formats are tried. The other process loads the installed plugins.
    without : frozenset of str
        Modules of frameworks to leave out.
    progress : callable, optional
        ``progress(done, total, what)``.
    patience : float
        Seconds after which a pair is given up.

    Returns
    -------
    Trials
    """
    lanes = [
        Lane(declared.name, device)
        for declared in interop.formats()
        if declared.state != "missing" and declared.format.requires not in without
        for device in declared.format.devices
    ]
    left_out: dict[str, str] = {}
    available: list[Lane] = []
    for tried in _carried_out([(lane, None) for lane in lanes], progress, patience):
        if tried.outcome == "right":
            available.append(tried.source)
        else:
            left_out[str(tried.source)] = tried.reason
    pairs: list[_Job] = [(source, target) for source in available for target in available]
    return Trials(tuple(_carried_out(pairs, progress, patience)), left_out)


#: A pair to convert, or, without a target, a lane of which to make a value.
_Job = tuple[Lane, Lane | None]


def _carried_out(jobs: list[_Job], progress: Progress | None, patience: float) -> Iterator[Tried]:
    with Worker(f"{__name__}:{answer.__name__}") as worker:
        for number, (source, target) in enumerate(jobs):
            if progress:
                progress(number, len(jobs), f"{source} → {target or source}")
            worker.send((source, target))
            try:
                outcome, steps, reason = worker.answer(patience)
            except WorkerEnded as end:
                outcome, steps, reason = "failed", (), str(end)
            yield Tried(source, target or source, outcome, tuple(steps), reason)


# ---------------------------------------------------------------------- in the other process

#: An outcome, the steps that were taken, and a reason.
_Answer = tuple[str, list[str], str]


def answer(question: tuple[list[str], list[str] | None], say: Say) -> None:
    """Carry out a job, and send its outcome."""
    source, target = question
    bench, lane = _bench(), Lane(*source)
    say(bench.converted(lane, Lane(*target)) if target else bench.made(lane))


@cache
def _bench() -> _Bench:
    from interop._api.interop import Interop

    return _Bench(Interop())


class _Bench:
    """Carries out jobs in this process.

    Parameters
    ----------
    interop : Interop
    """

    def __init__(self, interop: Interop) -> None:
        self._interop = interop
        self._formats = {declared.name: declared.format for declared in interop.formats()}
        #: The format of Python's lists, which can be compared; "" if it is not registered.
        self._list = next(
            (name for name, format_ in self._formats.items() if "builtins:list" in format_.types),
            "",
        )

    def made(self, lane: Lane) -> _Answer:
        """Make a value of a lane, and return how that went."""
        try:
            self._sample(lane, common_axes(self._formats[lane.format]))
        except NoSample as reason:
            return "refused", [], _why_not_made(reason)
        except REFUSALS as error:
            return "failed", [], error_text(error)
        return "right", [], ""

    def converted(self, source: Lane, target: Lane) -> _Answer:
        """Convert a value from one lane to another, and return how that went."""
        steps: list[str] = []
        axes = common_axes(self._formats[source.format], self._formats[target.format])
        try:
            value, numbers = self._sample(source, axes)
            route = self._interop.plan(value, to=target.format, device=target.device)
            steps = [step.label for step in route.steps]
            result = self._interop.convert(value, to=target.format, device=target.device)
        except (NoSample, RefusedError) as error:
            return "refused", steps, error_text(error)
        except REFUSALS as error:
            return "failed", steps, error_text(error)
        outcome, reason = self._judged(result, numbers)
        if outcome == "wrong" and self._is_misread(target, axes):
            outcome = "unread"
            reason = f"{target} cannot be read back, since what leads from it gives other numbers"
        return outcome, steps, reason

    def _judged(self, result: Value, expected: Sequence[complex] | None) -> tuple[str, str]:
        try:
            numbers = self._read(result)
        except REFUSALS as error:
            return "unread", error_text(error)
        if numbers is None or expected is None:
            return "unread", "no format of Python's own is registered to read it with"
        if numbers != expected:
            return "wrong", f"{expected} went in, and {numbers} came out"
        return "right", ""

    def _is_misread(self, lane: Lane, axes: int | None) -> bool:
        """Return whether even a value that nobody has converted is read back wrongly."""
        with suppress(NoSample, *REFUSALS):
            return self._judged(*self._sample(lane, axes))[0] == "wrong"
        return False

    def _sample(self, lane: Lane, axes: int | None) -> tuple[Value, list[complex] | None]:
        """Return a value of a lane, and the numbers in it; None if nothing can read them."""
        if axes is None:
            msg = "the two never have as many axes"
            raise NoSample(msg)
        format_ = self._formats[lane.format]
        dtype = next(iter(preferred(format_.holds(lane.device))), "float32")
        density = _DENSITY if format_.is_sparse else 1.0
        shape = _SHAPES.get(axes, (1,) * (axes - 2) + _SHAPES[2])
        recipe = Recipe(lane.format, dtype, shape, device=lane.device, density=density)
        # Values are made anew, because some can be read only once.
        value = sample(self._interop, recipe)
        is_coded = self._is_coded(value)
        return value, self._read(value) if is_coded else list(Numbers(recipe).values())

    def _is_coded(self, value: Value) -> bool:
        """Return whether a value holds codes, which stand for some numbers only roughly."""
        if not self._list:
            return False
        try:
            return "dequantize" in self._interop.plan(value, to=self._list).effects
        except RefusedError:
            return False

    def _read(self, value: Value) -> list[complex] | None:
        """Return the numbers of a value in a row."""
        if not self._list:
            return None
        return list(_flat(self._interop.convert(value, to=self._list)))


def _flat(nested: Value) -> Iterator[complex]:
    if isinstance(nested, list):
        for item in nested:
            yield from _flat(item)
    else:
        yield nested


def _why_not_made(reason: NoSample) -> str:
    """Return why there is no value to try, in plain words."""
    if isinstance(reason.__cause__, RefusedError):
        return "no conversion makes one from plain numbers"
    return str(reason.__cause__ or reason).partition("\n")[0]
