"""Threads: a large piece of work, cut up among the cores that this process may use.

The threads live as long as the call. To start one takes a tenth of a millisecond, which is nothing
next to the work; and what does not exist cannot be lost by a fork or linger when Python exits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from threading import Thread

__all__ = ["heed", "spread", "threads"]

#: Bytes that make a thread worth starting, and how many threads use up the memory's bandwidth.
_LEAST = 2**22
_MOST = 8
#: Parts for each thread: enough that the last ones end at about the same time.
_TURNS = 4

#: What further limits the user has set, and where they are asked for.
_limits: list[Callable[[], int | None]] = []


def heed(limit: Callable[[], int | None]) -> None:
    """Let no work be cut into more parts than `limit` returns; None stands for no limit.

    Parameters
    ----------
    limit : callable
        Of a framework that has a setting for its number of threads. It must not import it.
    """
    _limits.append(limit)


def threads() -> int:
    """Return how many threads a piece of work may take.

    No more than there are cores for this process, than ``OMP_NUM_THREADS`` says, and than the user
    has told any framework.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cores = os.cpu_count() or 1
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    told = [int(first)] if first.isdecimal() else []
    told += [most for limit in _limits if (most := limit()) is not None]
    return max(1, min(cores, _MOST, *told))


def spread(work: Callable[[int, int], None], count: int, nbytes: int) -> None:
    """Call ``work(start, stop)`` so that all of ``range(count)`` is covered once.

    Small work is done in one call. Large work is done in several at a time, if it releases the GIL;
    whoever has finished a part takes the next, so that a core that is busy elsewhere holds up none.

    Parameters
    ----------
    work : callable
        It must not depend on the order of its calls.
    count : int
        Units into which the work can be cut.
    nbytes : int
        Bytes that the work writes.
    """
    hands = min(count, nbytes // _LEAST)
    if hands > 1:
        hands = min(hands, threads())
    if hands < 2:
        work(0, count)
        return
    parts = min(count, _TURNS * hands)
    edges = [count * part // parts for part in range(parts + 1)]
    rest = iter(list(pairwise(edges)))
    failed: list[BaseException] = []
    helpers = [Thread(target=_take_turns, args=(work, rest, failed)) for _ in range(hands - 1)]
    started = [helper for helper in helpers if _start(helper)]
    _take_turns(work, rest, failed)
    for helper in started:
        helper.join()
    if failed:
        raise failed[0]


def _take_turns(
    work: Callable[[int, int], None],
    rest: Iterator[tuple[int, int]],
    failed: list[BaseException],
) -> None:
    """Do part after part, until none is left or one has failed."""
    try:
        for start, stop in rest:
            if failed:
                return
            work(start, stop)
    except BaseException as error:  # noqa: BLE001 - raised by `spread`, once all have ended
        failed.append(error)


def _start(helper: Thread) -> bool:
    helper.daemon = True
    try:
        helper.start()
    except RuntimeError:  # the system has no more of them, or Python is about to exit
        return False
    return True
