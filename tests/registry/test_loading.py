"""Which plugins a call loads, and that its outcome is as if all were loaded."""

from __future__ import annotations

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
    assert found > 5


def _text(route: object) -> str:
    return repr(route and (route[0], [(s.label, s.after, s.effects) for s in route[1]]))


#: Shows which of the plugins that can wait are imported, and which of them are registered.
SHOW = """
import sys
import interop
from interop_plugins import ON_DEMAND

def show():
    imported = {name for name in ON_DEMAND if f"interop_plugins.{name}" in sys.modules}
    registered = {plugin.name for plugin in interop.default._registry.loader.plugins}
    assert registered & ON_DEMAND.keys() == imported
    print(*sorted(imported))
"""


def test_a_call_loads_what_imported_modules_and_its_words_show_the_need_for(
    in_subprocess: Callable[..., str],
) -> None:
    """Imported frameworks count, and whoever asks for what nobody knows is told of all plugins."""
    program = """
        from types import ModuleType
        interop.convert([1.0], to="numpy"), show()
        sys.modules |= {name: ModuleType(name) for name in ("pandas", "sparse")}
        class Unknown: pass
        for call in (lambda: interop.spec(Unknown()), lambda: interop.convert([1.0], to="polers")):
            try:
                interop.convert([1.0], to="numpy", dtype="float32"), show(), call()
            except TypeError as error:
                print("did you mean 'polars'?" in str(error))
        show()
    """
    everything = " ".join(sorted(ON_DEMAND))
    assert in_subprocess(SHOW + dedent(program)).splitlines() == [
        *("", "pandas sparse", "False", everything, "True", everything)
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
    assert in_fork(SHOW + program).splitlines() == ["", " ".join(sorted(ON_DEMAND))]


def test_what_is_blocked_is_decided_once(in_fork: Callable[..., str]) -> None:
    """A plugin that waits is not blocked by a variable that is set after the first call."""
    program = """
        import os
        interop.convert([1.0], to="numpy")
        os.environ["INTEROP_DISABLE_PLUGINS"] = "pandas"
        print({plugin.state for plugin in interop.plugins()})
        print([plugin.name for plugin in interop.Interop().plugins() if plugin.state == "blocked"])
    """
    assert in_fork(SHOW + dedent(program)).splitlines() == ["{'loaded'}", "['pandas']"]


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
    shown = in_subprocess(SHOW + dedent(program), PYTHONPATH=python_path(tmp_path)).splitlines()
    assert shown == [needed, *["UnknownValueError"] * (name == "ours")]
