"""Other processes: workers of data loaders, forked and spawned, and what is sent to them."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import interop

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
    """`convert` is sent by its name, and a spawned worker loads the plugins for itself."""
    program = """
        import multiprocessing, interop, numpy as np
        from functools import partial
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            arrays = pool.map(partial(interop.convert, to="numpy"), [[1, 2], (3.0,)])
        print([(a.dtype.name, a.tolist()) for a in arrays])
    """
    assert in_subprocess(program).strip() == "[('int64', [1, 2]), ('float64', [3.0])]"


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


def test_the_page_names_tests_that_exist() -> None:
    """Every test that the page on compilers and processes names is one of the file it names."""
    root = Path(__file__).parents[2]
    page = (root / "docs/explanation/compilers-and-processes.md").read_text()
    text = "".join((root / name).read_text() for name in re.findall(r"`(tests/\S+\.py)`", page))
    names = re.findall(r"`(test_\w+)`", page)
    assert len(names) > 15
    assert [name for name in names if f"def {name}(" not in text] == []


def test_what_is_sent_to_another_process_is_the_name() -> None:
    """The functions of the package are pickled by name; a spec as the value that it is."""
    for function in (interop.convert, interop.convert_tree, interop.plan, interop.spec):
        assert pickle.loads(pickle.dumps(function)) == function
    spec = interop.spec(np.ones(2))
    assert pickle.loads(pickle.dumps(spec)) == spec
