"""Other processes, and other interpreters: what they convert, and what is sent to them."""

from __future__ import annotations

import pickle
import pickletools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import interop
from interop._execution.trace import shares_memory
from interop.errors import RefusedError


def test_spawned_workers_convert(in_subprocess: Callable[..., str]) -> None:
    """`convert` is sent by its name, a converter by its request; a worker loads its own plugins."""
    program = """
        import multiprocessing, interop, numpy as np
        from functools import partial
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            for convert in (partial(interop.convert, to="numpy"), interop.converter("numpy")):
                arrays = pool.map(convert, [[1, 2], (3.0,)])
                print([(a.dtype.name, a.tolist()) for a in arrays])
    """
    assert in_subprocess(program) == "[('int64', [1, 2]), ('float64', [3.0])]\n" * 2


def test_a_spawned_worker_starts_anew(in_subprocess: Callable[..., str]) -> None:
    """Neither what the parent has registered nor the policy of its block reaches the worker."""
    program = """
        import multiprocessing, interop
        interop.register(interop.Format("toy", dtypes={"float64"}))
        with interop.policy(forbid="copy"), multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.apply(interop.convert, ([1.5], "numpy")).tolist())
            try:
                pool.apply(interop.convert, ([1.5], "toy"))
            except interop.errors.UnknownTargetError as error:
                print(str(error).partition(";")[0])
    """
    expected = ["[1.5]", "to='toy' does not name a registered format"]
    assert in_subprocess(program).splitlines() == expected


#: What a subinterpreter does beside the main one, which has registered a format and forbidden to copy.
INSIDE = """
import warnings
warnings.simplefilter("ignore", UserWarning)  # NumPy's own
import interop
try:
    interop.convert(1.5, to="toy")
except interop.errors.UnknownTargetError:
    print(interop.plan(1.5, to="python").steps)
try:
    print(interop.convert([1.5], to="numpy", copy=True))
except interop.errors.InteropError as error:
    print("cannot load module more than once per process" in str(error))
"""


@pytest.mark.parametrize(("imported", "printed"), [("interop", "[1.5]"), ("numpy", "True")])
def test_a_subinterpreter_converts_unless_numpy_is_in_another(
    in_subprocess: Callable[..., str], imported: str, printed: str
) -> None:
    """Each has its own plugins, registrations and blocks; NumPy allows one interpreter, and it says so."""
    pytest.importorskip("_xxsubinterpreters")
    program = f"""
        import _xxsubinterpreters as interpreters
        import {imported}
        import interop

        interop.register(interop.Format("toy", dtypes={{"float64"}}))
        with interop.policy(forbid="copy"):
            number = interpreters.create()
            interpreters.run_string(number, {INSIDE!r})
            interpreters.destroy(number)
        print(interop.convert(1.5, to="python"))
    """
    assert in_subprocess(program).split() == ["()", printed, "1.5"]


def test_the_page_names_tests_that_exist() -> None:
    """Every test that the page on compilers and processes names is one of the file it names."""
    root = Path(__file__).parents[2]
    page = (root / "docs/explanation/compilers-and-processes.md").read_text()
    text = "".join((root / name).read_text() for name in re.findall(r"`(tests/\S+\.py)`", page))
    names = re.findall(r"`(test_\w+)`", page)
    assert len(names) > 15
    assert [name for name in names if f"def {name}(" not in text] == []


def test_functions_are_pickled_by_name_and_specs_by_value() -> None:
    """The functions of the package are pickled by name; a spec as the value that it is."""
    for function in (interop.convert, interop.convert_tree, interop.plan, interop.spec):
        assert pickle.loads(pickle.dumps(function)) == function
    spec = interop.spec(np.ones(2))
    assert pickle.loads(pickle.dumps(spec)) == spec


# ---------------------------------------------------------------------- requests that are sent

#: Keywords of converters, and a value that each of them converts.
SENT: dict[str, tuple[dict[str, Any], Any]] = {
    "a name": ({"to": "numpy"}, [1, 2]),
    "a module": ({"to": np}, [1, 2]),
    "a type": ({"to": np.ndarray}, [1, 2]),
    "several targets": ({"to": [np, "torch"]}, [1, 2]),
    "dtypes by dtype": ({"to": "numpy", "dtype": {"float64": np.float32}}, np.ones(2)),
    "a copy": ({"to": "numpy", "copy": True}, np.ones(2)),
    "a writable one": ({"to": "numpy", "copy": "writable"}, np.ones(2)),
    "effects": ({"to": "numpy", "allow": {"drop_mask"}}, np.ma.masked_array([1.0], [True])),
    "an array": ({"like": np.zeros(1)}, [1, 2]),
}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("case", SENT)
def test_a_converter_is_pickled_by_its_request(case: str, protocol: int) -> None:
    """A converter that was pickled does what the first one does, whatever its keywords were."""
    check_sent(*SENT[case], protocol)


def check_sent(keywords: dict[str, Any], value: Any, protocol: int) -> None:
    """Compare what a converter makes with what its copy from a pickle makes, cold and warm."""
    convert = interop.converter(**keywords)
    loaded = pickle.loads(pickle.dumps(convert, protocol))
    for _ in range(2):  # cold and warm
        result, expected = loaded(value), convert(value)
        assert type(result) is type(expected)
        assert str(result) == str(expected)
        assert interop.spec(result) == interop.spec(expected)
        assert shares_memory(interop.default._registry, value, result) == shares_memory(
            interop.default._registry, value, expected
        )


def test_a_converter_takes_its_policy_along() -> None:
    """It has the policy that was in force when it was made, not where it is loaded."""
    with interop.policy(forbid="copy"):
        strict = interop.converter("numpy", dtype="float32")
    with interop.policy(allow="drop_mask"):
        loaded = pickle.loads(pickle.dumps(strict))
    with pytest.raises(RefusedError):
        loaded(np.ones(3))


def test_a_route_is_planned_again_where_it_is_loaded() -> None:
    """A pickled route has the same steps and facts, explains itself and converts."""
    array = np.ones(3)[::-1]
    with interop.policy(allow="narrow"):
        route = interop.plan(array, to=np, dtype="float16")
    loaded = pickle.loads(pickle.dumps(route))
    assert (str(loaded), loaded.as_dict()) == (str(route), route.as_dict())
    assert loaded.explain() == route.explain()
    assert (loaded(array).dtype, loaded(array).tolist()) == (np.float16, [1, 1, 1])


def test_streams_and_instances_refuse_to_be_pickled_with_advice() -> None:
    """A stream and a private instance belong to their process, and the texts name the next move."""
    on_stream = interop.converter("numpy", stream=1)
    with pytest.raises(TypeError, match="make what uses it in the other process"):
        pickle.dumps(on_stream)
    mine = interop.Interop()
    for value in (mine, mine.converter("numpy"), mine.plan([1], to="numpy")):
        with pytest.raises(TypeError, match="make another one there, or use the functions"):
            pickle.dumps(value)


@pytest.mark.parametrize(
    "keywords", [{"to": "numpy", "dtype": "float32"}, {"to": np.ndarray, "forbid": "copy"}], ids=str
)
def test_a_pickle_names_nothing_but_the_request(keywords: dict[str, Any]) -> None:
    """Whoever reads it imports the package, the type in `to=` and functions that look attributes up."""
    words, named = [], set()
    for operation, argument, _ in pickletools.genops(pickle.dumps(interop.converter(**keywords))):
        if "UNICODE" in operation.name:
            words.append(argument)
        elif (
            operation.name == "STACK_GLOBAL"
        ):  # names what was written, or was looked up, before it
            named.add(tuple(words[-2:]))
        assert operation.name != "GLOBAL"
    modules = {module for module, _ in named if module.partition(".")[0] != "interop"}
    assert modules <= {"builtins", "operator", "numpy"}
    assert {name for module, name in named if module in modules} <= {
        "getattr",
        "attrgetter",
        "ndarray",
    }
