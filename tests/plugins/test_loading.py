"""Which plugins calls load among real frameworks: what is imported later, and threads that load at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from textwrap import dedent

import pytest

from interop_plugins import ON_DEMAND
from tests.registry.test_loading import SHOW

#: Tries requests on instances that load what is needed, and on one that has loaded all. Those that
#: import a framework stand last: the plugins of imported frameworks do not wait.
_OUTCOMES = """
    import array, random, re, sys, warnings
    import numpy as np
    import torch
    import interop

    class Table:
        def to_polars(self): ...

    random = random.Random(6)
    warnings.simplefilter("ignore")
    values = {
        "list": [1.0, 2.0],
        "halves": np.ones((3, 4), "f2"),
        "text": np.array(["a"]),
        "masked": np.ma.masked_array([1, 2], [False, True]),
        "tensor": torch.ones(3, 4),
        "bfloat16": torch.ones(3, dtype=torch.bfloat16),
        "sparse": torch.ones(3, 4).to_sparse(),
        "quantized": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
        "array": array.array("d", [1.0]),
        "memoryview": memoryview(b"abc"),
        "table": Table(),
        "dict": {"a": np.ones(2)},
        "string": "text",
        "none": None,
        "module": torch.nn.Linear(2, 2),
        "class": np.ndarray,
    }
    words = [
        dict(to=to) for to in (
            "numpy", "torch", "python", "scipy.csr", "cupy", "quantized.numpy", np, torch.Tensor,
            None, 3, object, sys, "pandsa", "polars.frame", "jax.csr", "pd.Frame", "float32", "",
            "tpu", "torch:cuda", "dlpack", "array", "tf.ragged", "keras", "list", ("numpy", "tro"),
            "dpnp", "dpnp.tensor", "datasets", "xr.dataset", "torchao.int3",
        )
    ]
    words += [dict(to="numpy", dtype=dtype) for dtype in ("int4", "flaot32", "jax.int8", torch.int8)]
    words += [dict(to="numpy", device=device) for device in ("tpu", "tpuu", "cuda:0", "gpu0", "mps")]
    words += [dict(to="numpy", dtype={dtype: "f4"}) for dtype in ("real floating", "raal", "int4")]
    words += [dict(to="torch", copy=False, forbid="copy"), dict(like=np.ones(2)), dict(like="jax")]
    words += [dict(to="numpy", allow="copy"), dict(to="torch", copy=True)]
    imports = [
        dict(to=to) for to in (
            "polars", "pl", "pandas.series", "ort", "awkward", "da", "xarray",
            "sparse", "mlx", "torchao.int8", "jnp", ("jax", "numpy"), "jax.bcoo",
        )
    ]

    def outcome(instance, value, keywords):
        with interop.trace() as receipts:
            try:
                result = instance.convert(value, **keywords)
            except Exception as error:
                return type(error).__name__, re.sub("0x[0-9a-f]+", "0x", str(error))
        text = re.sub("0x[0-9a-f]+", "0x", str(result))
        return type(result).__name__, text, [receipt.steps for receipt in receipts]

    full, waited, compared = interop.Interop(), 0, 0
    full.formats()
    for keywords in [*words, *imports]:
        for name in random.sample(sorted(values), 3):
            mine, value = interop.Interop(), values[name]
            lazily = outcome(mine, value, keywords)
            waited += len(mine._registry.loader.plugins) < len(full.plugins())
            fully = outcome(full, value, keywords)
            compared += 1
            if lazily != fully:
                print(name, keywords, lazily, fully, sep="\\n")
    print(waited > compared / 4)
"""


@pytest.mark.slow
def test_calls_come_out_as_if_all_plugins_were_loaded(in_subprocess: Callable[..., str]) -> None:
    """Results, steps and texts of refusals do not depend on which plugins wait."""
    assert in_subprocess(_OUTCOMES).splitlines() == ["True"]


def test_a_call_loads_what_its_value_and_its_target_show_the_need_for(
    in_subprocess: Callable[..., str],
) -> None:
    """Imported frameworks and written names count, nicknames too; a refusal loads the rest."""
    program = """
        interop.convert([1.0], to="numpy"), show()
        interop.convert([1.0], to="pl"), show()
        import pandas, sparse
        interop.convert(pandas.Series([1.0]), to="numpy"), show()
        try:
            interop.convert([1.0], to="polers")
        except TypeError as error:
            print(str(error).endswith("did you mean 'polars'?"))
        show()
    """
    assert in_subprocess(SHOW + dedent(program)).splitlines() == [
        "",
        "polars",
        "pandas polars sparse",
        "True",
        " ".join(sorted(ON_DEMAND)),
    ]


def test_a_framework_that_is_imported_later_is_known(in_subprocess: Callable[..., str]) -> None:
    """Its values, containers, dtype objects and module are, after calls that did without it."""
    program = """
        import numpy as np, torch
        import interop

        def converted(tree):
            return interop.convert_tree(tree, to="numpy")

        converted([torch.ones(2)])
        to_torch = interop.converter("torch")
        import pandas
        print(type(to_torch(pandas.Series([1.0]))).__name__, interop.spec(pandas.Series([1.0])).format)
        import jax

        @jax.tree_util.register_pytree_node_class
        class Pair:
            def __init__(self, *arrays): self.arrays = arrays
            def tree_flatten(self): return self.arrays, None
            @classmethod
            def tree_unflatten(cls, _, arrays): return cls(*arrays)

        print([type(a).__name__ for a in converted([Pair(torch.ones(2), torch.zeros(2))])[0].arrays])
        print(interop.convert(np.ones(2), to="torch", dtype=jax.numpy.bfloat16).dtype)
        print(type(interop.convert(np.ones(2, "f4"), to=jax)) is type(jax.numpy.ones(2)))
        print(interop.convert(jax.numpy.ones(2), to="torch"))
    """
    assert in_subprocess(program).splitlines() == [
        "Tensor pandas.series",
        "['ndarray', 'ndarray']",
        "torch.bfloat16",
        "True",
        "tensor([1., 1.])",
    ]


def test_a_converter_heeds_the_settings_of_a_framework_that_is_imported_later(
    in_subprocess: Callable[..., str],
) -> None:
    """It keeps plans apart by whether JAX holds double precision, although it was made before."""
    program = """
        import interop
        to_xarray = interop.converter("xarray", dtype="float64")
        import jax, xarray
        x = xarray.Variable("n", jax.numpy.ones(3, "float32"))
        for precise in (False, True):
            jax.config.update("jax_enable_x64", precise)
            try:
                print(to_xarray(x).dtype)
            except ValueError as error:
                print(str(error).endswith("ask for a narrower dtype=."))
    """
    assert in_subprocess(program).splitlines() == ["True", "float64"]


def test_many_threads_may_need_plugins_at_once(in_subprocess: Callable[..., str]) -> None:
    """Each gets what it asked for, while others load what they need."""
    program = """
        import threading
        import interop

        targets = ["polars", "pandas.series", "sparse", "dask", "numpy", "nonsense"] * 5
        barrier, answers = threading.Barrier(len(targets)), {}

        def ask(n, to):
            barrier.wait()
            try:
                answers[n] = type(interop.convert([[1.0], [2.0]], to=to))
            except Exception as error:
                answers[n] = type(error)

        threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(targets)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        for to in dict.fromkeys(targets):
            print({answers[n].__name__ for n, name in enumerate(targets) if name == to})
    """
    assert in_subprocess(program).splitlines() == [
        "{'DataFrame'}", "{'RefusedError'}", "{'COO'}", "{'Array'}", "{'ndarray'}",
        "{'UnknownTargetError'}",
    ]  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks")
def test_a_child_loads_what_it_needs_while_a_thread_of_its_parent_loaded(
    in_subprocess: Callable[..., str],
) -> None:
    """The lock that the thread held is a new one in the child."""
    program = """
        import os, threading
        import interop
        interop.convert([1.0], to="numpy")
        held, forked = threading.Event(), threading.Event()

        def load():
            with interop.default._registry.loader.lock:
                held.set()
                forked.wait(60)

        thread = threading.Thread(target=load)
        thread.start()
        held.wait(60)
        child = os.fork()
        if not child:
            print(type(interop.convert([1.0, 2.0], to="polars")).__name__, flush=True)
            os._exit(0)
        forked.set(), thread.join()
        print(os.waitpid(child, 0)[1])
    """
    assert in_subprocess(program).splitlines() == ["Series", "0"]
