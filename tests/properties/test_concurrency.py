"""Sixteen threads at once: registering, planning and converting, in a process that is watched."""

from __future__ import annotations

from collections.abc import Callable

#: It is over by then, or every thread's stack is shown and the process ends.
HEAD = """
    import faulthandler, sys, threading
    faulthandler.dump_traceback_later(90, exit=True)
    sys.setswitchinterval(1e-5)
    import numpy as np
    import interop
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
    """Every registration counts at once for its thread and for all at the end; results are right."""
    program = """
    face = interop.Interop()
    f32 = frozenset({"float32", "float64", "int64"})

    def kind(name):
        return type(name, (), {"__init__": lambda self, numbers: setattr(self, "numbers", numbers)})

    def work(number):
        module = sys.modules[__name__]
        for n in range(5):
            name = f"toy{number}x{n}"
            made = kind(name)
            setattr(module, name, made)
            def describe(box, name=name):
                return interop.make_spec(name, str(box.numbers.dtype), shape=box.numbers.shape)
            face.register(
                Format(name, types=(f"__main__:{name}",), describe=describe, dtypes=f32),
                Conversion("numpy", name, made, takes=frozenset({"noncontiguous"}), name=f"to_{name}"),
                Conversion(name, "numpy", lambda box: box.numbers, name=f"from_{name}"),
            )
            a = np.arange(n + 3.0)
            box = face.convert(a, to=name)
            assert type(box) is made and box.numbers is a
            assert face.convert(box, to="numpy") is a
            route = face.plan(box, to="numpy", dtype="int64")
            assert [s.label for s in route.steps][0] == f"from_{name}", route
            assert face.converter("numpy", dtype="int64")(box).tolist() == list(range(n + 3))
            csr = face.convert(a.reshape(1, -1), to="scipy.csr")
            assert csr.toarray().tolist() == [a.tolist()]
            assert len(face.plan(csr, to="scipy.csc").steps) > 0
            try:
                face.convert(a, to=name, copy=False, dtype="int64")
                raise SystemError("was not refused")
            except interop.errors.RefusedError:
                pass
            with interop.policy(forbid="densify"):
                try:
                    face.convert(csr, to="numpy")
                    raise SystemError("was not refused")
                except interop.errors.RefusedError:
                    pass
            with interop.trace() as receipts:
                face.convert(box, to="numpy", copy=True)
            assert len(receipts) == 1

    together(work)
    names = {one.name for one in face.formats()}
    wanted = {f"toy{number}x{n}" for number in range(16) for n in range(5)}
    assert wanted <= names, wanted - names
    labels = [one.conversion.label for one in face.conversions()]
    assert {f"to_{name}" for name in wanted} | {f"from_{name}" for name in wanted} <= set(labels)
    print("done")
    """
    assert in_subprocess(HEAD + program).strip() == "done"


def test_a_better_conversion_is_taken_by_all_as_soon_as_it_is_there(
    in_subprocess: Callable[..., str],
) -> None:
    """However many convert at that moment, no thread goes on with a route of before for good."""
    program = """
    for attempt in range(40):
        face = interop.Interop(plugins=False)
        one = dict(types=("tests.toys:Box",), describe=describe, dtypes=frozenset({"float32"}))
        slow = Conversion("a", "b", lambda box: Box("b", ["slow"]), cost=Cost(1e-3), name="slow")
        quick = Conversion("a", "b", lambda box: Box("b", ["quick"]), cost=Cost(1e-6), name="quick")
        face.register(Format("a", **one), Format("b", **one), slow)
        convert, there = face.converter("b"), threading.Event()

        def work(number):
            if number == 0:
                face.register(quick)
                there.set()
            while not there.is_set():
                assert face.convert(Box("a", [1]), to="b").numbers in (["slow"], ["quick"])
                assert face.plan(Box("a", [1]), to="b", copy=None).steps[0].label in ("slow", "quick")
            assert face.convert(Box("a", [1]), to="b").numbers == ["quick"]
            assert convert(Box("a", [1])).numbers == ["quick"]
            assert face.plan(Box("a", [1]), to="b").steps[0].label == "quick"

        together(work)
    print("done")
    """
    assert in_subprocess(HEAD + program).strip() == "done"


def test_the_first_use_may_be_by_many(in_subprocess: Callable[..., str]) -> None:
    """Sixteen threads whose first call loads the plugins get them all, once."""
    program = """
    seen = []

    def work(number):
        assert interop.convert([number], to="numpy").tolist() == [number]
        seen.append(len(interop.plugins()))

    together(work)
    assert len(set(seen)) == 1 and seen[0] > 5, seen
    print("done")
    """
    assert in_subprocess(HEAD + program).strip() == "done"
