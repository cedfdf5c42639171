"""The front: what a call meets first."""

from __future__ import annotations

import inspect
import pickle
from functools import partial
from types import ModuleType
from typing import Any

import pytest

import interop
from interop._execution import fast_path


@pytest.fixture
def made() -> ModuleType:
    """Give the module."""
    return fast_path


def _full(x: Any, /, to: Any = None, *, copy: bool | None = None) -> Any:
    """Convert in full."""
    return "full", x, to, copy


def test_a_plain_value_is_served_by_its_shortcut(made: ModuleType) -> None:
    """The shortcut of the value's very type is called, and None gives the value itself."""
    tables = {"there": {int: lambda x: x + 1, list: None}}
    convert = made.front(_full, {}, tables)
    value = [1]
    assert convert(1, to="there") == convert(1, "there") == 2
    assert convert(value, to="there") is value
    assert convert(True, to="there") == ("full", True, "there", None)


def test_what_a_shortcut_does_not_serve_goes_to_its_target(made: ModuleType) -> None:
    """After `NotImplemented`, and for a type without a shortcut, the target's function is called."""
    tables: dict[Any, Any] = {"there": {int: lambda x: NotImplemented}}
    convert = made.front(_full, {"there": lambda x: ("planned", x)}, tables)
    assert convert(1, to="there") == ("planned", 1)
    assert convert("a", to="there") == ("planned", "a")


def test_a_table_that_is_filled_or_emptied_later_counts_at_once(made: ModuleType) -> None:
    """The front keeps the tables themselves, and nothing that was found in them."""
    tables: dict[Any, Any] = {}
    convert = made.front(_full, {}, tables)
    assert convert(1, "there")[0] == "full"
    tables["there"] = {int: None}
    assert convert(1, "there") == 1
    tables["there"].clear()
    assert convert(1, "there")[0] == "full"


def test_any_word_goes_past_the_shortcuts(made: ModuleType) -> None:
    """A keyword, even with its default, is given to the function behind the front."""
    convert = made.front(_full, {"there": lambda x: "planned"}, {"there": {int: None}})
    assert convert(1, to="there", copy=True) == ("full", 1, "there", True)
    assert convert(1, "there", copy=None) == ("full", 1, "there", None)


def test_targets_that_cannot_be_looked_up_go_past_the_shortcuts(made: ModuleType) -> None:
    """A list of targets, which has no hash, and no target at all are served in full."""
    convert = made.front(_full, {}, {"there": {int: None}})
    assert convert(1, to=["there"]) == ("full", 1, ["there"], None)
    assert convert(1) == ("full", 1, None, None)


@pytest.mark.parametrize("arguments", [((), {"x": 1}), ((), {}), ((1, "there", 2), {})])
def test_it_is_called_as_it_is_declared(made: ModuleType, arguments: Any) -> None:
    """The value is positional only, and nothing but it and the target is positional."""
    words, keywords = arguments
    convert = made.front(_full, {}, {})
    with pytest.raises(TypeError):
        convert(*words, **keywords)


@pytest.mark.parametrize("kind", [KeyError, TypeError, ValueError])
def test_an_error_of_the_target_comes_alone(made: ModuleType, kind: type[Exception]) -> None:
    """What was looked up in vain before does not stand in the traceback of an error."""

    def fails(x: Any) -> Any:
        raise kind(x)

    convert = made.front(_full, {"there": fails}, {})
    with pytest.raises(kind) as caught:
        convert(1, "there")
    assert caught.value.__context__ is None


def test_it_looks_like_the_function_behind_it(made: ModuleType) -> None:
    """Its name, its documentation and its signature are those of the full function."""
    convert = made.front(_full, {}, {})
    assert (convert.__name__, convert.__doc__) == ("_full", "Convert in full.")
    assert inspect.signature(convert) == inspect.signature(_full)
    assert convert.__wrapped__ is _full


def test_a_fixed_front_serves_the_types_of_its_table(made: ModuleType) -> None:
    """A converter calls the shortcut of a type, and what was planned for all that it leaves."""
    table: dict[type, Any] = {int: lambda x: x + 1, list: None, str: lambda x: NotImplemented}
    converted = made.fixed_front(lambda x: ("planned", x), table)
    value = [1]
    assert converted(1) == 2
    assert converted(value) is value
    assert converted("a") == ("planned", "a")
    assert converted(1.5) == ("planned", 1.5)
    table.clear()
    assert converted(1) == ("planned", 1)


def test_an_error_of_a_converter_comes_alone(made: ModuleType) -> None:
    """A type without a shortcut leaves no trace in the errors of what was planned."""

    def fails(x: Any) -> Any:
        raise KeyError(x)

    with pytest.raises(KeyError) as caught:
        made.fixed_front(fails, {})(1)
    assert caught.value.__context__ is None


def test_the_functions_go_to_other_processes() -> None:
    """They are pickled by name, also as part of a partial function."""
    assert pickle.loads(pickle.dumps(interop.convert)) is interop.convert
    for name in ("plan", "spec", "convert_tree", "converter"):
        function = getattr(interop, name)
        assert pickle.loads(pickle.dumps(function)) == function
    sent = pickle.loads(pickle.dumps(partial(interop.convert, to="numpy")))
    assert sent([1.0, 2.0]).tolist() == [1.0, 2.0]
