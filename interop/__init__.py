"""Hand arrays from one framework to another by the cheapest correct way.

>>> import interop
>>> interop.convert([1.0, 2.0], to="numpy")
array([1., 2.])

======================== =============================================================
``convert(x, to)``       an array of another framework; shared memory where possible
``plan(x, to)``          the route that `convert` would take, and what it does
``convert_tree(x, to)``  the same for all arrays in a dict, list, dataclass, pytree …
``accepts(to)``          makes a function take arrays of every framework
``converter(to)``        a function for calls that are alike
``policy``, ``trace``    for a block: what is permitted; what has happened
``formats()``            what can be converted; ``plugins()`` and ``conversions()``, too
======================== =============================================================

``help(interop.convert)`` has the keywords. The functions are the methods of one `Interop`, which
holds all state. Names are imported when they are first used (as SPEC 1 of Scientific Python
recommends), so that ``import interop`` costs next to nothing. The stub beside this file lists them.
"""

# ruff: noqa: I002 - under a private name, so that editors do not complete it
from __future__ import annotations as _annotations

#: What `_modules` returns, once it was called.
_module_by_name: dict[str, str] = {}


def _modules() -> dict[str, str]:
    """Return the module of each public name in the stub; "." stands for the shared instance."""
    if _module_by_name:
        return _module_by_name
    modules: dict[str, str] = {}
    for line in __loader__.get_data(f"{__file__}i").decode().splitlines():
        match line.split():
            case ["from", ".", "import", name, "as", _]:  # a submodule
                modules[name] = f".{name}"
            case ["from", module, "import", name, "as", _]:
                modules[name] = module
            case [name, "=", _] | ["from", _, "import", name, "as", _, "#", "of", "default"]:
                modules[name] = "."
    _module_by_name.update(modules)  # in one go, because other threads may read it
    return _module_by_name


def __getattr__(name: str) -> object:
    """Import a public name from its module, and keep it."""
    if name == "__all__":
        from sys import _getframe

        # `help(interop)` would print all of them.
        if _getframe(1).f_globals.get("__name__") == "pydoc":
            raise AttributeError(name)
        return sorted(_modules())
    from importlib import import_module  # not above: it would be a quarter of `import interop`

    source = _modules().get(name)
    if source is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    if source == ".":
        value = getattr(import_module("._api.default", __name__).default, name)
    else:
        module = import_module(source, __name__)
        value = module if source == f".{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_modules())
