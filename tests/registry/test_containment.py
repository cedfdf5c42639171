"""Containment: whatever the functions of a plugin raise stays with that plugin."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from interop import Conversion, DtypeNames, Format, Interop
from interop._model.blame import error_text
from interop._model.provenance import Provenance
from interop.errors import BadRequestError, ConversionError, PluginError, UnknownValueError
from interop.plugin import Container, Labels, Limits, Wrapper
from interop.plugin.advanced import Advanced, Namespaces, NoTrace
from tests.cases import together
from tests.toys import Box, copy, describe, toy, view

ODD = Provenance("odd", "interop-odd", "1")
REMEDY = "report it to interop-odd, or leave that plugin out with INTEROP_DISABLE_PLUGINS=odd."

#: What a plugin's function may end with.
ERRORS = (OSError("driver went away"), RecursionError("deep"))


class OddBox:
    """An array of the odd plugin: none of the other frameworks', but as they are."""

    __init__ = Box.__init__


def _raising(error: BaseException) -> Callable[..., Any]:
    def fail(*args: object, **keywords: object) -> object:
        raise error

    return fail


def _odd(**fields: Any) -> Format:
    return toy("odd", types=(f"{__name__}:OddBox",), **fields)


#: To the odd framework, and back.
TO_ODD = Conversion(
    "a", "odd", lambda box: OddBox("odd", list(box.numbers)), effects={"copy"}, name="to_odd"
)
FROM_ODD = Conversion("odd", "a", lambda box: Box("a", box.numbers), name="from_odd")


def _instance(*declarations: Any) -> Interop:
    """Return an instance with two frameworks of the program's own, and an odd plugin's beside them."""
    instance = Interop(plugins=False)
    instance.register(toy("a"), toy("b"), view("a", "b"), copy("b", "b", changes={"dtype"}))
    instance._registry.register(declarations, ODD)
    return instance


def _of_others(instance: Interop) -> list[float]:
    """Convert what has nothing to do with the odd plugin: by name, by dtype and in a tree."""
    result = instance.convert_tree({"x": [Box("a", [1.0, 2.0])], "y": object()}, to="b")
    instance.convert(Box("a", [1.0]), to="b", dtype="float64")
    instance.plan(Box("a", [1.0]), to=["b", "a"])
    numbers: list[float] = result["x"][0].numbers
    return numbers


class _Dtype:
    """A dtype object of the odd framework."""


def _often(call: Callable[[], object]) -> None:
    """Call something until it has a fast path, and once more."""
    for _ in range(3):
        call()


#: Functions of declarations, and a call that needs each.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Interop], object]]] = {
    "labels.present of the format 'odd'": (
        lambda fail: _odd(labels=Labels(fail, fail)),
        lambda instance: instance.spec(OddBox("odd", [1.0])),
    ),
    "wrapper.first of the format 'odd'": (
        lambda fail: _odd(wrapper=Wrapper(lambda box: Box("a", box.numbers), first=fail)),
        lambda instance: instance.convert(OddBox("odd", [1.0]), to="a"),
    ),
    "labels.give of the format 'odd'": (
        lambda fail: _odd(labels=Labels(lambda box: box.numbers == [5.0], fail)),
        lambda instance: instance.convert(Box("a", [1.0]), like=OddBox("odd", [5.0])),
    ),
    "fill of the format 'odd'": (
        lambda fail: _odd(fill=fail),
        lambda instance: instance.convert(Box("a", [1.0]), out=OddBox("odd", [5.0])),
    ),
    "advanced.unwritable of the format 'odd'": (
        lambda fail: _odd(fill=print, advanced=Advanced(unwritable=fail)),
        lambda instance: instance.convert(Box("a", [1.0]), out=OddBox("odd", [5.0])),
    ),
    "advanced.device_name of the format 'odd'": (
        lambda fail: _odd(requires=__name__.partition(".")[0], advanced=Advanced(device_name=fail)),
        lambda instance: instance.convert(Box("a", [1.0]), to="b", device=_Dtype()),
    ),
    "memory of the format 'odd'": (
        lambda fail: _odd(fill=print, memory=fail),
        lambda instance: instance.convert(OddBox("odd", [1.0]), out=OddBox("odd", [5.0])),
    ),
    f"name of the DtypeNames for '{__name__}:_Dtype'": (
        lambda fail: DtypeNames(f"{__name__}:_Dtype", fail),
        lambda instance: instance.convert(Box("a", [1.0]), to="b", dtype=_Dtype()),
    ),
    "to=json: declare of the Namespaces": (
        Namespaces,
        lambda instance: instance.convert(Box("a", [1.0]), to=json),
    ),
    "limits.unsupported_now of the format 'odd'": (
        lambda fail: _odd(limits=Limits(unsupported_now=fail)),
        lambda instance: instance.plan(Box("a", [1.0]), to="odd"),
    ),
    "fast_path of the format 'odd'": (
        lambda fail: _odd(fast_path=fail),
        lambda instance: _often(lambda: instance.convert(OddBox("odd", [1.0]), to="odd")),
    ),
    "advanced.fast_key of the format 'odd'": (
        lambda fail: _odd(advanced=Advanced(fast_key=fail)),
        lambda instance: _often(lambda: instance.convert(OddBox("odd", [1.0]), to="a", copy=True)),
    ),
}

#: The same of functions that are asked in calls which have nothing to do with the plugin.
ASKED: dict[str, tuple[Callable[[Any], Any], Callable[[Interop], object]]] = {
    "open of the Container for 'tests.toys'": (
        lambda fail: Container("tests.toys", fail),
        lambda instance: instance.convert_tree({"y": object()}, to="b"),
    ),
    "mark of the NoTrace": (
        NoTrace,
        lambda instance: instance._registry.untraced(lambda value: value),
    ),
}


@together("error", ERRORS)
@together("what", [*FUNCTIONS, *ASKED])
def test_a_function_that_raises_names_its_plugin(what: str, error: BaseException) -> None:
    """The error has the function, the declaration, the distribution, what was raised, and a move."""
    make, call = {**FUNCTIONS, **ASKED}[what]
    declaration = make(_raising(error))
    instance = _instance(declaration, TO_ODD, FROM_ODD)
    with pytest.raises(PluginError) as caught:
        call(instance)
    text = f"{what}, declared by interop-odd 1, raised {error_text(error)}; {REMEDY}"
    assert str(caught.value) == text
    assert caught.value.__cause__ is error
    if what in FUNCTIONS:
        assert _of_others(instance) == [1.0, 2.0]


@together("error", ERRORS)
def test_a_fast_path_of_a_conversion_that_raises_names_its_plugin(error: BaseException) -> None:
    """The first call is planned, and the error comes with the first that takes the fast path."""
    instance = _instance(_odd(), FROM_ODD._replace(fast_path=_raising(error)))
    box = OddBox("odd", [1.0, 2.0])
    assert instance.convert(box, to="a").numbers is box.numbers
    text = "fast_path of the conversion odd → a, declared by interop-odd 1, raised "
    with pytest.raises(PluginError, match=text) as caught:
        _often(lambda: instance.convert(box, to="a"))
    assert caught.value.__cause__ is error


@together("error", [*ERRORS, KeyError("x"), Exception()])
def test_a_step_that_raises_is_an_error_with_its_name(error: Exception) -> None:
    """The error names the step and the distribution, and has what was raised as its cause."""
    instance = _instance(_odd(), Conversion("odd", "a", _raising(error), name="step"))
    for _ in range(2):
        with pytest.raises(ConversionError) as caught:
            instance.convert(OddBox("odd", [1.0]), to="a")
        text = f"step, declared by interop-odd 1, failed on a odd value with {error_text(error)};"
        assert str(caught.value) == f"{text} {REMEDY}"
        assert caught.value.__cause__ is error


def test_errors_on_purpose_pass() -> None:
    """What a plugin raises of interop's own, and a TypeError for an unknown dtype, stay as they are."""
    error = UnknownValueError("a box of boxes")
    instance = _instance(_odd(fill=_raising(error)), TO_ODD)
    with pytest.raises(UnknownValueError) as caught:
        instance.convert(Box("a", [1.0]), out=OddBox("odd", [5.0]))
    assert caught.value is error
    names = DtypeNames(f"{__name__}:_Dtype", _raising(TypeError("no dtype of mine")))
    with pytest.raises(BadRequestError):
        _instance(names).convert(Box("a", [1.0]), to="b", dtype=_Dtype())


@pytest.mark.skipif(os.name != "posix", reason="it sends a signal")
@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt])
def test_base_exceptions_of_plugins_pass(raised: type[BaseException]) -> None:
    """What is no Exception passes, as when a signal arrives in a plugin's function."""

    class Handlers:
        def handle(self, number: int, frame: object) -> None:
            raise raised

    def interrupted(*args: object) -> Any:
        os.kill(os.getpid(), signal.SIGUSR1)
        return describe(*args)  # type: ignore[arg-type]

    before = signal.signal(signal.SIGUSR1, Handlers().handle)
    try:
        instance = _instance(
            _odd(labels=Labels(interrupted, interrupted)),
            Conversion("b", "odd", interrupted),
            Container("tests.toys", interrupted),
        )
        for call in (
            lambda: instance.convert(Box("b", [1.0]), to="odd"),
            lambda: instance.spec(OddBox("odd", [1.0])),
            lambda: instance.convert_tree({"y": object()}, to="b"),
        ):
            with pytest.raises(raised):
                call()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_an_exception_whose_text_fails_has_a_name() -> None:
    """Not even the text of a plugin's exception gets out of hand."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert error_text(MuteError()) == "MuteError"
    assert error_text(ValueError("x")) == "ValueError: x"
    assert error_text(OSError()) == "OSError"


def test_bundled_plugins_have_no_guard(loaded: Interop) -> None:
    """Their functions are called as they are."""
    fast = [f.format.fast_path for f in loaded.formats() if f.format.fast_path is not None]
    assert fast
    assert all("guarded" not in path.__qualname__ for path in fast if hasattr(path, "__qualname__"))
