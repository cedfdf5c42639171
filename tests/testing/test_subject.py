"""The subject: what names a plugin, and what it promises."""

from __future__ import annotations

from math import prod

import pytest

from interop.errors import PluginError
from interop.testing import CHECKS, check
from interop.testing._promises import promises
from interop.testing._sample import axes_of
from interop.testing._subject import Bench, Promise, subjects_of
from interop.testing._trial import main_trial
from tests.testing.bundled import BUNDLED


def _promises(name: str) -> list[Promise]:
    return promises(Bench(subjects_of(name)[0]))


def test_main_trials_have_elements() -> None:
    """The main trial of every bundled conversion is of many elements, unless there is but one.

    Chunks of lists have more axes than conversions give to chunks, and so than samples have.
    """
    for name in BUNDLED:
        for promise in _promises(name):
            trial = promise.conversion and main_trial(promise.conversion)
            axes = promise.conversion and axes_of(promise.conversion)
            if trial and (axes is None or axes - {0}):
                assert prod(trial.recipe.shape) > 1, promise.name


def test_a_plugin_is_named_in_four_ways() -> None:
    """The name of the entry point, of the distribution, of the module, or the module itself."""
    from interop_plugins import python

    by_entry, by_module = subjects_of("python"), subjects_of("interop_plugins.python")
    assert by_entry == by_module == subjects_of(python)
    assert by_entry[0].distribution == "array-interop"
    assert by_entry[0] in subjects_of("array-interop")
    assert subjects_of("Array_Interop") == subjects_of("array-interop")
    assert len(subjects_of("array-interop")) == len(BUNDLED)


def test_a_program_that_runs_is_no_plugin() -> None:
    """What runs as __main__ cannot be loaded again; what it is called depends on how it was started."""
    with pytest.raises(PluginError):
        check("__main__")


def test_checks_are_those_that_are_made() -> None:
    """The table of checks names all that the promises of all plugins are tried for."""
    lying = (f"tests.lying_plugins.{name}" for name in ("honest", "wrappers.forgets_the_scale"))
    names = (*lying, "numpy", "scipy", "jax", "dlpack", "pandas", "torch")
    promised = [promise for name in names for promise in _promises(name)]
    assert {name for promise in promised for name in promise.checks} == set(CHECKS)
