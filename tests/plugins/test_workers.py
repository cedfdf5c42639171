"""Workers of data loaders and of loky: what they convert, and what is sent to them."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import array_api_strict
import numpy as np
import pandas as pd
import pytest
import torch

from tests.execution.test_processes import check_sent
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


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize(
    ("keywords", "value"),
    [
        ({"to": torch, "dtype": torch.float16, "device": torch.device("cpu")}, np.ones(2)),
        ({"to": "numpy", "dtype": {torch.float64: np.float32}}, np.ones(2)),
        ({"to": [np, "torch"]}, [1, 2]),
        ({"like": torch.zeros(1)}, np.ones(2)),
        ({"like": pd.Series([1.0], ["a"])}, np.ones(1)),
        ({"to": array_api_strict}, np.ones(2)),
    ],
    ids=str,
)
def test_a_converter_takes_objects_of_frameworks_along(
    keywords: dict[str, Any], value: Any, protocol: int
) -> None:
    """Modules, dtypes, devices and values are pickled as their framework pickles them, or by name."""
    check_sent(keywords, value, protocol)
