"""Liars that cannot be loaded, or take what belongs to others."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Protocol

from interop.plugin import Container, Conversion, Cost
from tests.lying_plugins import Caught, Liar, table
from tests.lying_plugins.grid import Grid, changed, conversions, grid_format


class ArrayLike(Protocol):
    """What many classes look like, as far as Python can tell."""

    numbers: Any


def _of_plugin(
    name: str, lie: str, text: str, declarations: Callable[[], Any], check: str = "loading"
) -> Liar:
    return Liar(name, lie, Caught(f"plugin {__name__}.{name}", check, text), declarations)


def _format(name: str, lie: str, text: str, **changes: Any) -> Liar:
    return _of_plugin(name, lie, text, lambda: [grid_format(**changes), *conversions()])


def _beside(name: str, lie: str, text: str, *others: Any) -> Liar:
    return _of_plugin(name, lie, text, lambda: [grid_format(), *conversions(), *others])


def _types(other: str) -> tuple[str, str]:
    return ("tests.lying_plugins.grid:Grid", other)


def _with_scipy() -> list[Any]:
    if find_spec("scipy") is None:
        msg = "SciPy is not here"
        raise RuntimeError(msg)
    return [grid_format(requires="scipy", install="pip install scipy"), *conversions()]


LIARS = table(
    globals(),
    _beside(
        "cannot_be_loaded", "Declares what is no declaration.", "does not load", "numpy → grid"
    ),
    _beside(
        "declares_a_conversion_twice",
        "Declares a conversion again, at another cost.",
        "grid → numpy: grid_to_numpy is declared twice",
        conversions()[0]._replace(cost=Cost(4e-7)),
    ),
    _beside(
        "comes_from_nowhere",
        "Starts from a format that nobody declares.",
        "starts from 'gird'",
        Conversion("gird", "grid", Grid),
    ),
    _beside(
        "leads_nowhere",
        "Leads to a format that nobody declares.",
        "leads to 'gird'",
        Conversion("grid", "gird", Grid),
    ),
    _of_plugin(
        "misspells_a_dtype",
        "Names a dtype that does not exist.",
        "'flaot32' in dtypes; did you mean 'float32'?",
        lambda: [grid_format(), *changed("copy", dtypes={"float64", "flaot32"})],
    ),
    _of_plugin(
        "fails_where_its_framework_is_missing",
        "Cannot be loaded where its framework is not installed.",
        "without scipy the plugin does not load",
        _with_scipy,
        "absence",
    ),
    _format(
        "squats_an_alias",
        "Calls itself numpy, too.",
        "the name 'numpy' is declared by array-interop",
        aliases=("numpy", "torch"),
    ),
    _format(
        "squats_an_object",
        "Lets a class of another framework name its format.",
        "the object torch:Tensor is declared by",
        aliases=("torch:Tensor",),
    ),
    _format(
        "types_too_wide",
        "Takes every class that has a length.",
        "the type collections.abc:Sized",
        types=_types("collections.abc:Sized"),
    ),
    _of_plugin(
        "declares_what_follows",
        "Declares an effect that follows from the specs.",
        "the effect 'narrow', which follows from the specs of the values on the way",
        lambda: [grid_format(), *changed("copy", effects={"copy", "narrow"})],
    ),
    _beside(
        "opens_anything",
        "Opens the containers of a module that every program may have imported.",
        "requires='sys', which every program may have imported",
        Container("sys", lambda value: None),
    ),
)

#: These lie where they are imported, and so are modules of their own.
LIARS |= {
    "tests.lying_plugins.declares_nothing": Liar(
        "declares_nothing",
        "Forgets to mark its hook.",
        Caught("plugin tests.lying_plugins.declares_nothing", "loading", "marked with @hookimpl"),
        list,
    ),
    "tests.lying_plugins.imports_its_framework": Liar(
        "imports_its_framework",
        "Imports a framework when it is imported.",
        Caught("plugin tests.lying_plugins.imports_its_framework", "imports", "scipy"),
        list,
    ),
}
