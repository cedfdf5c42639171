"""Concurrency: sixteen threads register, plan and convert at once, and a process forks meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.strange import HEAVY

pytestmark = pytest.mark.slow

#: The plugins that these programs do without, so that a registration is soon worked in.
OTHERS = ",".join({*HEAVY.split(",")} - {"scipy"})

#: A program that hangs ends after a while, and shows the stack of every thread.
HEAD = """
    import faulthandler, sys, threading
    faulthandler.dump_traceback_later(90, exit=True)
    sys.setswitchinterval(1e-5)
    import numpy as np
    import interop
    import interop.plugin
    from interop import Conversion, Cost, Format
    from tests.toys import Box, describe

    def together(work, count=16):
        failures, barrier = [], threading.Barrier(count)
        def body(number):
            try:
                barrier.wait()
                work(number)
            except BaseException as error:
                failures.append(error)
        threads = [threading.Thread(target=body, args=(n,)) for n in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for failure in failures:
            raise failure
"""


def test_nothing_is_lost_and_nothing_is_wrong(in_subprocess: Callable[..., str]) -> None:
    """Every registration counts at once in its own thread, and at the end in all; results are right."""
    program = """
    instance = interop.Interop()
    f32 = frozenset({"float32", "float64", "int64"})

    def kind(name):
        return type(name, (), {"__init__": lambda self, numbers: setattr(self, "numbers", numbers)})

    def work(number):
        module = sys.modules[__name__]
        for n in range(5):
            name = f"toy{number}x{n}"
            Toy = kind(name)
            setattr(module, name, Toy)
            def describe(box, name=name):
                return interop.plugin.make_spec(name, str(box.numbers.dtype), shape=box.numbers.shape)
            instance.register(
                Format(name, types=(f"__main__:{name}",), describe=describe, dtypes=f32),
                Conversion("numpy", name, Toy, takes=frozenset({"noncontiguous"}), name=f"to_{name}"),
                Conversion(name, "numpy", lambda box: box.numbers, name=f"from_{name}"),
            )
            a = np.arange(n + 3.0)
            box = instance.convert(a, to=name)
            assert type(box) is Toy and box.numbers is a
            assert instance.convert(box, to="numpy") is a
            route = instance.plan(box, to="numpy", dtype="int64")
            assert [s.label for s in route.steps][0] == f"from_{name}", route
            assert instance.converter("numpy", dtype="int64")(box).tolist() == list(range(n + 3))
            csr = instance.convert(a.reshape(1, -1), to="scipy.csr")
            assert csr.toarray().tolist() == [a.tolist()]
            assert len(instance.plan(csr, to="scipy.csc").steps) > 0
            try:
                instance.convert(a, to=name, copy=False, dtype="int64")
                raise SystemError("was not refused")
            except interop.errors.RefusedError:
                pass
            with interop.policy(forbid="densify"):
                try:
                    instance.convert(csr, to="numpy")
                    raise SystemError("was not refused")
                except interop.errors.RefusedError:
                    pass
            with interop.trace() as receipts:
                instance.convert(box, to="numpy", copy=True)
            assert len(receipts) == 1

    together(work)
    names = {declared.name for declared in instance.formats()}
    expected = {f"toy{number}x{n}" for number in range(16) for n in range(5)}
    assert expected <= names, expected - names
    labels = [declared.conversion.label for declared in instance.conversions()]
    assert {f"to_{name}" for name in expected} | {f"from_{name}" for name in expected} <= set(labels)
    print("done")
    """
    printed = in_subprocess(HEAD + program, INTEROP_DISABLE_PLUGINS=OTHERS)
    assert printed.strip() == "done"


def test_a_better_conversion_is_taken_as_soon_as_it_is_registered(
    in_subprocess: Callable[..., str],
) -> None:
    """Once a better conversion is registered, no thread takes the old route any more."""
    program = """
    for attempt in range(40):
        instance = interop.Interop(plugins=False)
        fields = dict(types=("tests.toys:Box",), describe=describe, dtypes=frozenset({"float32"}))
        slow = Conversion("a", "b", lambda box: Box("b", ["slow"]), cost=Cost(1e-3), name="slow")
        quick = Conversion("a", "b", lambda box: Box("b", ["quick"]), cost=Cost(1e-6), name="quick")
        instance.register(Format("a", **fields), Format("b", **fields), slow)
        convert, registered = instance.converter("b"), threading.Event()

        def work(number):
            if number == 0:
                instance.register(quick)
                registered.set()
            while not registered.is_set():
                assert instance.convert(Box("a", [1]), to="b").numbers in (["slow"], ["quick"])
                assert instance.plan(Box("a", [1]), to="b", copy=None).steps[0].label in ("slow", "quick")
            assert instance.convert(Box("a", [1]), to="b").numbers == ["quick"]
            assert convert(Box("a", [1])).numbers == ["quick"]
            assert instance.plan(Box("a", [1]), to="b").steps[0].label == "quick"

        together(work)
    print("done")
    """
    assert in_subprocess(HEAD + program).strip() == "done"


def test_a_format_is_never_there_without_its_conversions(in_subprocess: Callable[..., str]) -> None:
    """While half of 32 threads register, the others find a target unknown or convert to it; warm calls go on."""
    program = """
    for attempt in range(5):
        instance = interop.Interop(plugins=False)

        def framework(name):  # a format, and a class of its own
            kind = type(f"Box_{name}", (Box,), {"__module__": "tests.toys"})
            setattr(sys.modules["tests.toys"], kind.__name__, kind)
            types = (f"tests.toys:{kind.__name__}",)
            return kind, Format(name, types=types, describe=describe, dtypes=frozenset({"float32"}))

        (first, a), (second, b) = framework("a"), framework("b")
        instance.register(a, b, Conversion("a", "b", lambda box: second("b", box.numbers)))
        box = first("a", [1.0])
        instance.convert(box, to="b")

        def declared(name):
            kind, format_ = framework(name)
            step = Conversion("a", name, lambda box: kind(name, box.numbers), name=f"to_{name}")
            return format_, step

        def work(number):
            if number % 2:
                instance.register(*declared(f"new{number}"))
            reached = set()
            while len(reached) < 16:
                assert instance.convert(box, to="b").numbers is box.numbers
                for other in range(1, 32, 2):
                    try:
                        result = instance.convert(box, to=f"new{other}")
                    except interop.errors.UnknownTargetError:
                        continue
                    assert result.numbers is box.numbers
                    reached.add(other)

        together(work, 32)
    print("done")
    """
    assert in_subprocess(HEAD + program).strip() == "done"


def test_the_first_use_may_be_by_many(in_subprocess: Callable[..., str]) -> None:
    """If sixteen threads make the first call, the plugins are loaded once, and all threads see them."""
    program = """
    counts = []

    def work(number):
        assert interop.convert([number], to="numpy").tolist() == [number]
        counts.append(len(interop.plugins()))

    together(work)
    assert len(set(counts)) == 1 and counts[0] > 5, counts
    print("done")
    """
    assert in_subprocess(HEAD + program).strip() == "done"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_may_come_while_threads_convert(in_subprocess: Callable[..., str]) -> None:
    """A child forked while other threads register, plan and convert is not stuck on their locks."""
    program = """
    import os, signal, warnings
    warnings.simplefilter("ignore")  # of threads and forks, which are what is tested
    instance, stop = interop.Interop(), threading.Event()
    fields = dict(describe=describe, dtypes=frozenset({"float32"}))

    def work_once(number, n):
        if number % 4 == 0:
            instance.register(Format(f"toy{number}x{n}", **fields))
        instance.plan(np.arange(3.0), to="scipy.coo" if n % 2 else "numpy", dtype="float32")
        with interop.policy(forbid="densify"), interop.trace():
            instance.convert(np.arange(4.0).reshape(2, 2), to="scipy.csr")

    def work(number):
        n = 0
        while not stop.is_set():
            n += 1
            work_once(number, n)

    def forks(number):
        if number:
            return work(number)
        try:
            for attempt in range(15):
                child = os.fork()
                if not child:
                    signal.alarm(30)  # which ends a child that is stuck
                    instance.register(Format("child", **fields))
                    assert instance.convert([1.5], to="numpy").tolist() == [1.5]
                    assert instance.convert(np.eye(2), to="scipy.csc").nnz == 2
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
        finally:
            stop.set()

    for n in range(2):  # Python cannot finish an import that a fork breaks off
        work_once(0, n)
    together(forks, 5)
    print("done")
    """
    printed = in_subprocess(HEAD + program, INTEROP_DISABLE_PLUGINS=OTHERS)
    assert printed.strip() == "done"
