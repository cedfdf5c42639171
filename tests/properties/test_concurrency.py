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
def test_a_fork_may_come_at_any_moment(in_subprocess: Callable[..., str]) -> None:
    """A child forked while other threads register, plan and convert is not stuck on their locks."""
    program = """
    import os, signal, warnings
    import scipy.sparse  # Python itself cannot finish an import that a fork breaks off
    warnings.simplefilter("ignore")  # of threads and forks, which are what is tested
    instance, stop = interop.Interop(), threading.Event()
    fields = dict(describe=describe, dtypes=frozenset({"float32"}))

    def work(number):
        n = 0
        while not stop.is_set():
            n += 1
            if number % 4 == 0:
                instance.register(Format(f"toy{number}x{n}", **fields))
            instance.plan(np.arange(3.0), to="scipy.coo" if n % 2 else "numpy", dtype="float32")
            with interop.policy(forbid="densify"), interop.trace():
                instance.convert(np.arange(4.0).reshape(2, 2), to="scipy.csr")

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

    together(forks, 5)
    print("done")
    """
    printed = in_subprocess(HEAD + program, INTEROP_DISABLE_PLUGINS=OTHERS)
    assert printed.strip() == "done"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_waits_for_plugins_that_are_being_loaded(in_subprocess: Callable[..., str]) -> None:
    """A child that is forked while another thread loads the plugins has all of them."""
    program = """
    import os, signal, time, warnings
    warnings.simplefilter("ignore")
    from interop._registry import discovery
    declared, begun = discovery._declared, threading.Event()

    def slow(*arguments):
        begun.set()
        time.sleep(0.01)
        return declared(*arguments)

    discovery._declared = slow
    thread = threading.Thread(target=interop.plugins)
    thread.start()
    begun.wait()
    child = os.fork()
    if not child:
        signal.alarm(30)
        assert {p.state for p in interop.plugins()} <= {"loaded", "blocked"}
        assert interop.convert([1.5], to="numpy").tolist() == [1.5]
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    print("done")
    """
    printed = in_subprocess(HEAD + program, INTEROP_DISABLE_PLUGINS=OTHERS)
    assert printed.strip() == "done"


#: The end of programs in which another thread is at work when the process forks.
FORK = """
    child = os.fork()
    if not child:
        signal.alarm(30)  # which ends a child that is stuck
        assert interop.convert([1.5], to="numpy").tolist() == [1.5]
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    print("done")
    """


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_waits_for_a_module_that_is_being_looked_for(
    in_subprocess: Callable[..., str],
) -> None:
    """Python's lock on a module is taken before anything else tells that it is being imported."""
    program = """
    import os, signal, sys, threading, time, warnings
    import ml_dtypes, numpy, pluggy
    warnings.simplefilter("ignore")
    import interop
    begun = threading.Event()

    class Slow:
        def find_spec(self, name, path=None, target=None):
            if name == "interop._api.default" and not begun.is_set():
                begun.set()
                time.sleep(0.3)

    sys.meta_path.insert(0, Slow())
    thread = threading.Thread(target=lambda: interop.convert)
    thread.start()
    begun.wait()
    """
    assert in_subprocess(program + FORK, INTEROP_DISABLE_PLUGINS=OTHERS).strip() == "done"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("when", ["before", "between", "meanwhile"])
def test_a_fork_does_not_keep_what_it_waits_for_from_logging(
    when: str, in_subprocess: Callable[..., str]
) -> None:
    """`logging` may come before this package, after it or while a fork waits: no lock is confused."""
    program = f"""
    import os, signal, sys, threading, time
    if {when!r} == "before":
        import logging
    import interop
    if {when!r} == "between":
        import logging
    begun, complaints = threading.Event(), []
    sys.unraisablehook = complaints.append  # what is raised in hooks of forks

    class Slow:
        def find_spec(self, name, path=None, target=None):
            if name == "interop._api.default" and not begun.is_set():
                assert ("logging" in sys.modules) == ({when!r} != "meanwhile")
                begun.set()
                time.sleep(0.3)
                import logging
                logging.getLogger("a new one, which takes logging's lock")

    sys.meta_path.insert(0, Slow())
    thread = threading.Thread(target=lambda: interop.convert)
    thread.start()
    begun.wait()
    start = time.monotonic()
    child = os.fork()
    import logging
    if not child:
        signal.alarm(30)  # which ends a child that is stuck
        logging.getLogger("of the child")
        os._exit(len(complaints))
    took = time.monotonic() - start
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert took < 8, took  # less than the patience
    assert not complaints, complaints
    other = threading.Thread(target=logging.getLogger, args=["of another thread"], daemon=True)
    other.start()
    other.join(30)
    assert not other.is_alive()
    print("done")
    """
    assert in_subprocess(program, INTEROP_DISABLE_PLUGINS=OTHERS).strip() == "done"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("milliseconds", [0, 0.1, 0.3, 1, 3, 5, 20, 50, 100, 200])
def test_a_fork_may_come_while_another_thread_makes_the_first_call(
    milliseconds: int, in_subprocess: Callable[..., str]
) -> None:
    """The child does not wait for ever on an import that the fork would have broken off."""
    program = f"""
    import os, signal, sys, threading, time, warnings
    import ml_dtypes, numpy, pluggy  # Python itself cannot finish an import that a fork breaks off
    warnings.simplefilter("ignore")  # of threads and forks, which are what is tested
    import interop
    sys.setswitchinterval(1e-5)
    begun = threading.Event()

    def work():
        begun.set()
        assert interop.convert([1.5], to="numpy").tolist() == [1.5]

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    time.sleep({milliseconds} / 1000)
    """
    assert in_subprocess(program + FORK, INTEROP_DISABLE_PLUGINS=OTHERS).strip() == "done"
