"""Which plugins a call loads, and that its outcome is as if all were loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from textwrap import dedent

import pytest

import interop
from interop._model.format import Format, package
from interop._model.spec import WEAK, Spec
from interop._planning.planner import Planner
from interop._recognition.installed import importable
from interop._registry.registry import Registry
from interop._request.request import Request
from interop.plugin import Container, DtypeNames
from interop.plugin.advanced import Namespaces, NoTrace
from interop_plugins import ON_DEMAND
from tests.processes import python_path
from tests.strange import install_plugin

FORMATS = {declared.name: declared for declared in interop.formats()}
ALL = interop.default._registry.loaded()
ALWAYS = {plugin.name for plugin in interop.plugins()} - ON_DEMAND.keys()


def _formats(plugin: str) -> list[Format]:
    return [d.format for d in FORMATS.values() if d.provenance.plugin == plugin]


def _extensions(plugin: str) -> list[object]:
    return [declared for declared, origin in ALL.extensions() if origin.plugin == plugin]


@pytest.mark.parametrize("plugin", ON_DEMAND)
def test_no_route_between_others_needs_a_plugin_that_waits(plugin: str) -> None:
    """It has no hub and no protocol, and each of its conversions has an end of its own."""
    own = {format_.name for format_ in _formats(plugin)}
    assert own
    assert {name.partition(".")[0] for name in own} == {plugin}
    assert not [f.name for f in _formats(plugin) if f.hub or f.protocol]
    assert not [e for e in _extensions(plugin) if isinstance(e, (Namespaces, NoTrace))]
    conversions = [d.conversion for d in ALL.conversions if d.provenance.plugin == plugin]
    assert not [c for c in conversions if own.isdisjoint({c.source, c.target})]
    components = {f.component_format for f in _formats(plugin)} - {"", None}
    assert {FORMATS[name].provenance.plugin for name in components} <= {plugin, *ALWAYS}


def _modules(plugin: str) -> Iterator[str]:
    """Yield the modules without which nothing can be a value or an object of a plugin's."""
    for format_ in _formats(plugin):
        nicknames = (name for name in format_.aliases if ":" not in name)
        yield from (name.partition(".")[0] for name in nicknames)
        objects = (name for name in format_.aliases if ":" in name)
        for name in (*format_.types, *format_.naming_types, *objects):
            yield package(name.partition(":")[0])
    for extension in _extensions(plugin):
        if isinstance(extension, DtypeNames):
            yield package(extension.type.partition(":")[0])
        if isinstance(extension, Container):
            yield package(extension.requires.partition(":")[0])


@pytest.mark.parametrize("plugin", ON_DEMAND)
def test_a_plugin_that_waits_names_all_that_shows_the_need_for_it(plugin: str) -> None:
    """Its words are its name, the nicknames of its formats, and the packages of their types."""
    assert {*_modules(plugin), plugin} == ON_DEMAND[plugin]


@cache
def _planner(*plugins: str) -> tuple[Registry, Planner]:
    """Return a planner over the plugins that are always loaded, and some that wait."""
    registry = Registry()
    loaded = {*ALWAYS, *plugins}
    registry.replace([entry for entry in ALL._declared if entry.provenance.plugin in loaded])
    return registry, Planner(registry, importable)


def _specs(random: Random, format_: Format) -> Iterator[Spec]:
    """Yield specs of a format: plain ones, and those with a trait."""
    for shape, device in product(((3, 4), (400, 300)), format_.devices[:2]):
        if format_.ndims is not None and len(shape) not in format_.ndims:
            continue
        dtype = random.choice(sorted(format_.dtypes) or ["float32"])
        carried = sorted(format_.carries - WEAK)  # numbers without a dtype have few dtypes
        traits = frozenset(random.sample(carried, min(len(carried), 1)))
        place = device if device == "cpu" else f"{device}:0"
        size = 8 * shape[0] * shape[1]
        spec = Spec(format_.name, dtype, place, shape, traits, size)
        if format_.wrapper is not None:
            spec = spec._replace(wrapped="numpy")
        elif format_.layout == "affine":
            spec = spec._replace(code_dtype="uint8")
        elif format_.index_dtypes:
            index = random.choice(sorted(format_.index_dtypes))
            spec = spec._replace(nnz=shape[0], index_dtype=index, nbytes=24 * shape[0])
        yield spec


#: Plugins that never wait, and have formats to convert from and to.
HUBS = ("numpy", "torch", "scipy", "cupy", "quantized", "python", "pyarrow", "tensorflow")


def _pairs(first: str) -> list[tuple[str, str]]:
    """Return pairs of plugins, the ends of routes, of which one is the first, or neither waits."""
    ends = [*ON_DEMAND, *HUBS] if first in ON_DEMAND else HUBS
    return [pair for pair in product(ends, ends) if first in {*pair, "none"}]


def _request(random: Random, name: str) -> Request:
    copy = random.choice((None, None, True, False, "writable"))
    return Request((name,), dtype=random.choice((None, None, "float64")), copy=copy)


@pytest.mark.core
@pytest.mark.parametrize(
    "first", ["none", *(pytest.param(plugin, marks=pytest.mark.slow) for plugin in ON_DEMAND)]
)
def test_routes_are_the_same_among_the_plugins_of_their_ends(first: str) -> None:
    """A route leads through hubs and the frameworks of its ends: no other plugin changes it."""
    random = Random(first)
    everything = _planner(*ON_DEMAND)[1]
    found = 0
    for source, target in _pairs(first) * (1 if first == "none" else 2):
        registry, planner = _planner(*sorted({source, target} & ON_DEMAND.keys()))
        start, goal = (random.choice(_formats(end)) for end in (source, target))
        for spec in _specs(random, start):
            request = _request(random, goal.name)
            route, expected = (p.route(spec, request) for p in (planner, everything))
            assert _text(route) == _text(expected), (spec, request)
            found += route is not None
        names = registry.formats.keys()
        assert registry.attainable & names == ALL.attainable & names
    assert found > 10


def _text(route: object) -> str:
    return repr(route and (route[0], [(s.label, s.after, s.effects) for s in route[1]]))


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


#: Shows which of the plugins that can wait are imported, and which of them are registered.
_SHOW = """
import sys
import interop
from interop_plugins import ON_DEMAND

def show():
    imported = {name for name in ON_DEMAND if f"interop_plugins.{name}" in sys.modules}
    registered = {plugin.name for plugin in interop.default._registry.loader.plugins}
    assert registered & ON_DEMAND.keys() == imported
    print(*sorted(imported))
"""


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
    assert in_subprocess(_SHOW + dedent(program)).splitlines() == [
        "",
        "polars",
        "pandas polars sparse",
        "True",
        " ".join(sorted(ON_DEMAND)),
    ]


@pytest.mark.parametrize(
    "listing",
    [
        "plugins()",
        *(
            pytest.param(listing, marks=pytest.mark.slow)
            for listing in (
                "formats()",
                "conversions()",
                "make_spec('jax', 'float32')",
                "plan([1.0], to='numpy')",
                "register()",
                "accepts('numpy', grad=True)(print)",
            )
        ),
    ],
)
def test_what_is_listed_registered_or_planned_is_among_all_plugins(
    listing: str, in_fork: Callable[..., str]
) -> None:
    """After a conversion that few plugins serve, each of these loads all others."""
    program = f"interop.convert([1.0], to='numpy'), show()\ninterop.{listing}, show()"
    assert in_fork(_SHOW + program).splitlines() == ["", " ".join(sorted(ON_DEMAND))]


def test_what_is_blocked_is_decided_once(in_fork: Callable[..., str]) -> None:
    """A plugin that waits is not blocked by a variable that is set after the first call."""
    program = """
        import os
        interop.convert([1.0], to="numpy")
        os.environ["INTEROP_DISABLE_PLUGINS"] = "pandas"
        print({plugin.state for plugin in interop.plugins()})
        print([plugin.name for plugin in interop.Interop().plugins() if plugin.state == "blocked"])
    """
    assert in_fork(_SHOW + dedent(program)).splitlines() == ["{'loaded'}", "['pandas']"]


def test_a_blocked_plugin_is_named_where_its_format_is_asked_for(
    in_subprocess: Callable[..., str],
) -> None:
    """The refusal says that it is blocked, although it could have waited."""
    program = """
        import interop
        try:
            interop.convert([1.0], to="pandas")
        except TypeError as error:
            print(error)
    """
    (reason,) = in_subprocess(program, INTEROP_DISABLE_PLUGINS="pandas").splitlines()
    assert "its plugin is not loaded (disabled by INTEROP_DISABLE_PLUGINS)" in reason


#: Declarations of another distribution, of which the first takes a word of a bundled plugin's.
_FOREIGN = {
    "ours": (
        "Format('pandas.ours', types=('ours_plugin:Ours',), describe=lambda x: 1/0)",
        "pandas",
    ),
    "near": ("Conversion('numpy', 'xarray.near', print)", "xarray"),
    "apart": ("Format('apart', types=('apart:Apart',))", ""),
}


@pytest.mark.parametrize("name", _FOREIGN)
def test_a_plugin_beside_which_another_distribution_declares_does_not_wait(
    name: str, tmp_path: Path, in_subprocess: Callable[..., str]
) -> None:
    """What one says of the other's framework is settled before the first call, and nothing else."""
    declaration, needed = _FOREIGN[name]
    text = f"@hookimpl\ndef interop_declarations(): return [{declaration}]\n"
    install_plugin(tmp_path, name, f"from interop.plugin import *\nclass Ours: pass\n{text}")
    program = """
        interop.convert([1.0], to="numpy"), show()
        if "ours_plugin" in sys.modules:
            try:
                interop.convert(sys.modules["ours_plugin"].Ours(), to="numpy")
            except TypeError as error:
                print(type(error).__name__)
    """
    shown = in_subprocess(_SHOW + dedent(program), PYTHONPATH=python_path(tmp_path)).splitlines()
    assert shown == [needed, *["UnknownValueError"] * (name == "ours")]


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
    pytest.importorskip("xarray")
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
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
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
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
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
