"""Other processes: workers of data loaders, forked and spawned, and what is sent to them."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import pickletools
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import array_api_strict
import numpy as np
import pandas as pd
import pytest
import torch

import interop
from interop._execution.trace import shares_memory
from interop.errors import RefusedError
from tests.processes import python_path

#: A data set whose items are converted in the workers.
LOADER = """
    import interop, numpy as np, torch
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, n):
            return interop.convert(np.arange(3.0)[::-1] + n, to="torch")

    interop.convert(np.ones(1), to="torch")  # as warm as a parent is
    loader = DataLoader(Rows(), batch_size=2, num_workers=2, multiprocessing_context="fork")
    print([batch.tolist() for batch in loader])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_workers_of_a_data_loader_convert(in_subprocess: Callable[..., str]) -> None:
    """Items that are converted in forked workers arrive as those converted here would."""
    expected = [[[2.0 + n, 1.0 + n, 0.0 + n] for n in pair] for pair in ((0, 1), (2, 3))]
    assert in_subprocess(LOADER).strip() == str(expected)


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
    "objects of a framework": (
        {"to": torch, "dtype": torch.float16, "device": torch.device("cpu")},
        np.ones(2),
    ),
    "dtypes by dtype": ({"to": "numpy", "dtype": {torch.float64: np.float32}}, np.ones(2)),
    "a copy": ({"to": "numpy", "copy": True}, np.ones(2)),
    "a writable one": ({"to": "numpy", "copy": "writable"}, np.ones(2)),
    "effects": ({"to": "numpy", "allow": {"drop_mask"}}, np.ma.masked_array([1.0], [True])),
    "an array": ({"like": torch.zeros(1)}, np.ones(2)),
    "an array with labels": ({"like": pd.Series([1.0], ["a"])}, np.ones(1)),
    "the array API": ({"to": array_api_strict}, np.ones(2)),
}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("case", SENT)
def test_a_converter_is_pickled_by_its_request(case: str, protocol: int) -> None:
    """A converter that was pickled does what the first one does, whatever its keywords were."""
    keywords, value = SENT[case]
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
        strict = interop.converter("torch")
    with interop.policy(allow="drop_mask"):
        loaded = pickle.loads(pickle.dumps(strict))
    with pytest.raises(RefusedError):
        loaded(np.ones(3)[::-1])


def test_a_route_is_planned_again_where_it_is_loaded() -> None:
    """A pickled route has the same steps and facts, explains itself and converts."""
    array = np.ones(3)[::-1]
    with interop.policy(allow="narrow"):
        route = interop.plan(array, to=torch, dtype="float16")
    loaded = pickle.loads(pickle.dumps(route))
    assert (str(loaded), loaded.as_dict()) == (str(route), route.as_dict())
    assert loaded.explain() == route.explain()
    assert torch.equal(loaded(array), torch.ones(3, dtype=torch.float16))


def test_streams_and_instances_refuse_to_be_pickled_with_advice() -> None:
    """A stream and a private instance belong to their process, and the texts name the next move."""
    on_stream = interop.converter("torch", stream=1)
    with pytest.raises(TypeError, match="make what uses it in the other process"):
        pickle.dumps(on_stream)
    mine = interop.Interop()
    for value in (mine, mine.converter("numpy"), mine.plan([1], to="numpy")):
        with pytest.raises(TypeError, match="make another one there, or use the functions"):
            pickle.dumps(value)


#: A module of which workers import what they are sent.
MODULE = """
    import interop, numpy as np

    class Rows:
        def __init__(self, convert):
            self.convert = convert

        def __len__(self):
            return 4

        def __getitem__(self, n):
            return centred(self.convert(np.arange(3) + n))

    @interop.accepts("numpy")
    def centred(x):
        assert type(x) is np.ndarray
        return x - x.mean()

    def collated(samples):
        return interop.convert(samples, to="torch")
"""

#: Sends a converter inside a data set, and functions, to the workers of a data loader.
SENDING = """
    import interop, torch
    from torch.utils.data import DataLoader
    from sent import Rows, collated

    if __name__ == "__main__":
        rows = Rows(interop.converter("torch", dtype="float32"))
        loader = DataLoader(
            rows, 4, num_workers=1, collate_fn=collated, multiprocessing_context={method!r}
        )
        print([(str(batch.dtype), batch.tolist()) for batch in loader])
"""


@pytest.fixture
def sent(tmp_path: Path) -> str:
    """Return a path of modules with the module whose functions are sent."""
    (tmp_path / "sent.py").write_text(textwrap.dedent(MODULE))
    return python_path(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_begin_anew_get_converters(
    in_subprocess: Callable[..., str], sent: str, method: str
) -> None:
    """Spawned and forkserver workers get data sets with converters and decorated functions."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    printed = in_subprocess(SENDING.format(method=method), PYTHONPATH=sent)
    assert printed.strip() == str([("torch.float32", [[-1.0, 0.0, 1.0]] * 4)])


@pytest.mark.slow
@pytest.mark.extra("joblib")
def test_workers_of_loky_get_what_a_script_defines(in_subprocess: Callable[..., str]) -> None:
    """joblib's workers get functions of the script itself by value, with converters inside them."""
    program = """
        import interop, numpy as np, torch
        from joblib import Parallel, delayed

        to_torch = interop.converter("torch", dtype="float32")

        @interop.accepts("torch", dtype="float64")
        def halved(x):
            assert x.dtype is torch.float64
            return x / 2

        def work(n):
            return halved(to_torch(np.arange(2) + n).numpy()), local(np.ones(1))

        def made():
            @interop.accepts("torch")
            def doubled(x):
                return x * 2
            return doubled

        local = made()
        halved(np.ones(1)), local(np.ones(1))  # what they have learnt stays here
        results = Parallel(n_jobs=2, backend="loky")(delayed(work)(n) for n in range(2))
        print([(half.tolist(), double.tolist()) for half, double in results])
    """
    expected = [([0.0, 0.5], [2.0]), ([0.5, 1.0], [2.0])]
    assert in_subprocess(program).strip() == str(expected)


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
