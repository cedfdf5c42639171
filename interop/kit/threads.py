"""Threads: a large piece of work, divided among the cores that this process may use.

The threads live no longer than the work. Starting one takes a tenth of a millisecond, which is
nothing next to the work; and a thread that does not exist cannot be lost by a fork or linger when
Python exits.
"""

from __future__ import annotations

import os
import re
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from itertools import pairwise
from threading import Event, Lock
from typing import Any

#: Bytes that make a thread worth starting, and how many threads use up the memory's bandwidth.
_LEAST_BYTES = 2**22
_MOST_THREADS = 8
#: Parts for each thread: enough that little is left to wait for when another program has taken the
#: core from one of them.
_PARTS = 8
#: Threads from which on several of them touch fresh memory. Two are little faster than one where
#: the system has to find and clear the pages, and far slower where a core has to wait for them.
_LEAST_TOUCHING = 4
#: Seconds after which a waiting caller looks whether it was interrupted: not every system wakes it.
_GLANCE = 0.05

#: Where Linux says how many threads are running, on all cores. Reading it takes 10 µs.
_LOAD = "/proc/loadavg"

#: The further limits that users have set.
_limits: list[Callable[[], int | None]] = []


def limit_threads(limit: Callable[[], int | None]) -> None:
    """Let `parallel_for` use no more threads than `limit` returns; None stands for no limit.

    The limit is asked for at every call, in the whole process. It adds to those set before, of
    which the smallest counts, and cannot be taken back.

    Parameters
    ----------
    limit : callable
        Of a framework that has a setting for its number of threads. It must not import it.
    """
    _limits.append(limit)


#: A number of threads in `OMP_NUM_THREADS`.
_COUNT = re.compile(r"[0-9]{1,9}")


def threads() -> int:
    """Return how many threads a piece of work may take.

    No more than there are cores for this process, than ``OMP_NUM_THREADS`` says, and than the user
    has told any framework.
    """
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    limits = [int(first)] if _COUNT.fullmatch(first) else []
    limits += [most for limit in _limits if (most := limit()) is not None]
    return max(1, min(cores(), _MOST_THREADS, *limits))


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def idle_cores() -> int:
    """Return how many cores only the caller uses, where the system tells.

    Returns
    -------
    int
        The cores of the machine less the other threads that are running at this moment, on all
        cores; at most 0 where one of them has to wait for a core. 8 where the system does not tell.
    """
    try:
        with open(_LOAD, "rb", buffering=0) as line:
            running = int(line.read(64).split()[3].partition(b"/")[0])
    except (OSError, ValueError, IndexError):
        return _MOST_THREADS
    return (os.cpu_count() or 1) - running + 1  # the caller is running, too


def parallel_for(
    work: Callable[[int, int], None], count: int, nbytes: int, *, touching: bool = False
) -> None:
    """Call ``work(start, stop)`` so that all of ``range(count)`` is covered once.

    Small work is done in one call. Large work is divided among threads, of which there are as many
    as cores are idle just then. A thread that has to share a core with another program gains
    nothing, and the others wait for it whenever it loses the core. A thread that has finished a
    part takes the next. It pays only if the work releases the GIL.

    Parameters
    ----------
    work : callable
        It must not depend on the order of its calls.
    count : int
        Units into which the work can be divided.
    nbytes : int
        Bytes that the work writes.
    touching : bool, default False
        Whether the work is little more than the first write to fresh memory, most of which the
        system does.

    Raises
    ------
    BaseException
        The first that `work` raised, once all threads have ended. No part is begun after it.
    """
    workers = min(count, nbytes // _LEAST_BYTES)
    if workers > 1:
        workers = min(workers, threads(), idle_cores())
    if workers < (_LEAST_TOUCHING if touching else 2):
        work(0, count)
        return
    parts = min(count, _PARTS * workers)
    edges = [count * part // parts for part in range(parts + 1)]
    team = Team(work, pairwise(edges))
    team.start(workers - 1)
    team.take_parts()
    team.join()


class Team:
    """The threads that share a piece of work: its members, and the caller if it takes parts, too.

    Nobody waits for a member to start. Where all cores are busy that takes as long as the work
    itself, and a member that comes when the work is done has nothing to do. A member at work is
    waited for, however often the caller is interrupted.

    Parameters
    ----------
    work : callable
        Called with each part. It must not depend on the order of its calls.
    parts : iterator of tuple
        The arguments of each call.
    """

    def __init__(self, work: Callable[..., None], parts: Iterator[tuple[Any, ...]]) -> None:
        self._work = work
        self._parts = parts
        self._taking = Lock()
        #: Set when no part is left to take.
        self._over = Event()
        self._errors: list[BaseException] = []
        #: Locked by each member while it is at work.
        self._members: list[Lock] = []

    def start(self, count: int) -> int:
        """Start members, and tell how many; the system may have no more threads, or Python exit."""
        started = 0
        for _ in range(count):
            busy = Lock()
            # Before it starts: an interruption in between must not leave a member unseen.
            self._members.append(busy)
            try:
                start_new_thread(self._help, (busy,))
            except RuntimeError:
                break
            started += 1
        return started

    def _help(self, busy: Lock) -> None:
        with busy:  # from before a part is taken, so that no member is at work unseen
            self.take_parts()

    def take_parts(self) -> None:
        """Do part after part, until none is left or one has failed."""
        try:
            while not self._errors and (part := self._next_part()) is not None:
                self._work(*part)
        except BaseException as error:  # noqa: BLE001 - raised by `join`, once all have ended
            self._errors.append(error)
        finally:
            self._over.set()

    def _next_part(self) -> tuple[Any, ...] | None:
        with self._taking:  # without the GIL an iterator could give one part to two threads
            return next(self._parts, None)

    def run(self, count: int) -> bool:
        """Let members do all of the work, and tell whether the system had any.

        The caller only waits, so that an interruption, which Python raises in the main thread,
        stops no part halfway.
        """
        started = 0
        try:
            started = self.start(count)
            while started and not self._over.wait(_GLANCE):
                pass
        except BaseException as error:  # noqa: BLE001 - raised by `join`, once all have ended
            self._errors.insert(0, error)
        self.join()
        return started > 0

    def join(self) -> None:
        """Wait until no member is at work, and raise the first error."""
        for busy in self._members:
            self._wait_for(busy)
        del self._work  # a member that starts late would keep its arrays alive
        if self._errors:
            raise self._errors[0]

    def _wait_for(self, busy: Lock) -> None:
        while True:
            try:
                with busy:
                    return
            except KeyboardInterrupt as error:
                self._errors.insert(0, error)  # no further part is begun
