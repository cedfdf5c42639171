"""Growth: after hundreds of thousands of conversions, and much of all else, no memory is kept."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import interop
from interop._execution import converter as cache
from interop._planning import graph
from tests.properties.effort import count

pytestmark = pytest.mark.slow

HEAD = """
    import gc, tracemalloc
    import numpy as np
    import interop
    import interop.plugin

    def resident():
        gc.collect()
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    def check(work, times, most=2 * 2**20):
        work(times // 20 + 1)
        objects, before = len(gc.get_objects()), resident()
        work(times)
        grown, more = resident() - before, len(gc.get_objects()) - objects
        assert more < 500, f"{more} objects more"
        assert grown < most, f"{grown} bytes more"
        tracemalloc.start()
        work(times // 50 + 1)
        gc.collect()
        first = tracemalloc.get_traced_memory()[0]
        work(times // 50 + 1)
        gc.collect()
        traced = tracemalloc.get_traced_memory()[0] - first
        tracemalloc.stop()
        assert traced < 20_000, f"{traced} bytes traced"

    a = np.arange(8.0)
"""

WORK = {
    "conversions_by_the_fast_path": """
        import torch
        t, convert = torch.ones(8), interop.converter("numpy")
        def work(times):
            for _ in range(times):
                convert(t)
        check(work, {times} * 10)  # of one object a call 3 MiB would be left
    """,
    "conversions_by_routes": """
        def work(times):
            for _ in range(times):
                interop.convert(a, to="numpy", dtype="float32")
                interop.convert(memoryview(a), to="numpy", copy=True)
        check(work, {times})
    """,
    "sparse_conversions": """
        csr = interop.convert(np.eye(4), to="scipy.csr")
        def work(times):
            for _ in range(times):
                interop.convert(csr, to="scipy.csc", copy=True)
                interop.convert(csr, to="numpy")
        check(work, {times} // 10)
    """,
    "many_shapes_and_requests": """
        from itertools import count
        memory, lengths = np.zeros(2**16), count(1)  # a list of them would grow itself
        def work(times):
            for n in range(times):
                x = memory[: next(lengths) % 60000 or 1]
                interop.convert(x.reshape(1, -1) if n % 2 else x, to="numpy", dtype="float32")
                interop.convert(a, to="numpy", allow={{"narrow"}} if n % 2 else ("narrow",))
            next(lengths)
        check(work, {times} // 4)
    """,
    "refusals_and_errors": """
        locked = np.arange(8.0)
        locked.flags.writeable = False
        class Liar:
            __array_interface__ = {{"shape": (3,), "typestr": "<f8", "data": (0, False)}}
        def work(times):
            for _ in range(times):
                for x, keywords in ((a, {{"dtype": "int8", "copy": False}}), (Liar(), {{}}), (object(), {{}})):
                    try:
                        interop.convert(x, to="numpy", **keywords)
                    except interop.errors.InteropError:
                        pass
        check(work, {times} // 20)
    """,
    "plans_traces_and_policies": """
        def work(times):
            for _ in range(times):
                str(interop.plan(a, to="scipy.csr"))
                with interop.policy(forbid="densify"), interop.trace():
                    interop.convert(a, to="numpy", copy=True)
        check(work, {times} // 40)
    """,
    "capsules": """
        class Foreign:
            def __dlpack__(self, **keywords):
                return a.__dlpack__(**keywords)
            def __dlpack_device__(self):
                return (1, 0)
        def work(times):
            for _ in range(times):
                interop.convert(Foreign(), to="numpy")
        check(work, {times} // 2)
    """,
    "classes_made_on_the_way": """
        from interop._execution import converter as cache
        cache._MOST = 4096  # the bound is made lower, to be reached soon
        def work(times):
            for n in range(times):
                Own = type("Own", (np.ndarray,), {{}})
                interop.convert(a.view(Own), to="numpy")
        work(5000)
        before = sum(isinstance(value, type) for value in gc.get_objects())
        work(6000)
        gc.collect()
        classes = sum(isinstance(value, type) for value in gc.get_objects())
        assert classes < before + 4500, classes - before
    """,
    "instances_and_registrations": """
        def work(times):
            for n in range(times):
                own = interop.Interop(plugins=False)
                own.register(interop.Format("a", dtypes=frozenset({{"float32"}})))
                own.plan(interop.plugin.make_spec("a", "float32", shape=(3,)), to="a")
        check(work, {times} // 100)
    """,
}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("name", WORK)
def test_no_memory_is_kept(in_subprocess: Callable[..., str], name: str) -> None:
    """After a run-in, neither the memory of the process nor the number of objects grows."""
    in_subprocess(HEAD + WORK[name].format(times=count(20_000)).replace("\n    ", "\n"))


def tables() -> dict[str, int]:
    """Return the sizes of all tables of interop's and its plugins', of modules and of instances.

    Caches with a bound of their own count for nothing.
    """
    sizes = {}
    gc.unfreeze()  # what is frozen is not listed
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("interop", "interop_plugins"):
            for attribute, value in vars(module).items():
                if hasattr(value, "cache_info"):
                    info = value.cache_info()
                    sizes[f"{value.__module__}.{attribute}"] = 0 if info.maxsize else info.currsize
                elif isinstance(value, (dict, set, list)):
                    sizes[f"{name}.{attribute}"] = len(value)
    for owner in gc.get_objects():
        if str(type(owner).__module__).startswith("interop.") and hasattr(owner, "__dict__"):
            for attribute, value in vars(owner).items():
                if isinstance(value, (dict, set, list)):
                    place = f"{type(owner).__name__}.{attribute} of {id(owner)}"
                    sizes[place] = len(value)
    gc.freeze()
    return sizes


def odd_values(n: int) -> list[Any]:
    """Return values of a dtype and a shape that no other number gives."""
    return [
        np.zeros(1, [(f"field{n}", "f4")]),
        np.zeros(1, f"S{n + 1}"),
        np.zeros((2, n + 1))[:, ::-1].T,
        scipy.sparse.coo_array((n + 1, 3)),
        torch.zeros(2, n + 1).t(),
    ]


def odd_requests(n: int) -> list[tuple[interop.Spec, dict[str, str]]]:
    """Return specs and keywords of a dtype and a device that no other number gives."""
    plain = interop.make_spec("torch", "float32", shape=(2,))
    return [
        (plain, {"dtype": f"int{n}"}),
        (plain, {"device": f"cuda:{n}"}),
        (plain._replace(dtype=f"float{n}"), {}),
        (plain._replace(format="dlpack", device=f"device{n}:0"), {}),
        (plain._replace(device=f"device{n}:0"), {"device": "cuda"}),
    ]


def test_no_table_grows_with_what_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many dtypes, devices and shapes are met, what is remembered of them is bounded."""
    for module in (cache, graph):
        monkeypatch.setattr(module, "_MOST", 100)
    mine = interop.Interop()
    mine.convert(np.zeros(1), to="torch")
    odd_requests(0)  # which loads the plugins of the instance that they ask
    before = tables()
    for n in range(250):
        for value in odd_values(n):
            mine.spec(value)
        for spec, words in odd_requests(n):
            with contextlib.suppress(interop.InteropError):
                mine.plan(spec, to="torch", **words)
    grown = {name: size - before.get(name, 0) for name, size in tables().items()}
    assert not {name: more for name, more in grown.items() if more > 200}
