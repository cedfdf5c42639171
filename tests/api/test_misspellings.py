"""Misspelt calls: a sentence in the caller's words, whichever function was called and however."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interop
from tests.cases import together

X = np.arange(3.0)

#: The public functions, each with arguments that it takes.
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "convert": (interop.convert, (X, "numpy")),
    "convert_tree": (interop.convert_tree, ([X], "numpy")),
    "plan": (interop.plan, (X, "numpy")),
    "converter": (interop.converter, ("numpy",)),
    "accepts": (interop.accepts, ("numpy",)),
    "spec": (interop.spec, (X,)),
    "make_spec": (interop.make_spec, ("numpy", "float32")),
    "policy": (interop.policy, ("narrow", "copy")),
    "set_default_policy": (interop.set_default_policy, ((), ())),
    "trace": (interop.trace, (None,)),
    "formats": (interop.formats, ()),
    "conversions": (interop.conversions, ()),
    "plugins": (interop.plugins, ()),
    "Interop": (interop.Interop, ()),
}


#: Calls that want an argument, by the words that their messages end with.
ABSENT: dict[str, Callable[[], Any]] = {
    "convert was not given x; write convert(x, …).": lambda: interop.convert(to="numpy"),
    "convert_tree was not given tree; write convert_tree(tree, …).": interop.convert_tree,
    "plan was not given x_or_spec; write plan(x_or_spec, …).": lambda: interop.plan(to="numpy"),
    "accepts was not given to; write accepts(to, …).": interop.accepts,
    "spec was not given x; write spec(x, …).": interop.spec,
    "make_spec was not given dtype; write make_spec(format, dtype, …).": lambda: interop.make_spec(
        "numpy"
    ),
    "conversion was not given target; write conversion(source, target, …).": lambda: (
        interop.conversion("numpy")
    ),
    "set_default_policy was given allow twice; leave out allow=.": lambda: (
        interop.set_default_policy((), allow=())
    ),
    "Conversion has no keyword effect=; did you mean effects=?": lambda: interop.conversion(
        "numpy", "mylib", effect={"copy"}
    ),
}


def _message(call: Callable[..., Any], *args: Any, **keywords: Any) -> str:
    """Return the message about a mistake, which names nothing that the caller did not write."""
    with pytest.raises(TypeError) as caught:
        call(*args, **keywords)
    error, text = caught.value, str(caught.value)
    for internal in ("Interop.", "locals", "first", "__", "positional", "self"):
        assert internal not in text
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [frame for frame in frames if frame.f_globals["__name__"].startswith("interop.")]
    assert len(own) <= 2
    assert own[0].f_locals["__tracebackhide__"]
    assert error.__suppress_context__ or error.__context__ is None
    return text


def _keywords(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind in {p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD}]


@together("name", FUNCTIONS)
def test_a_misspelt_keyword_is_told_which_was_meant(name: str) -> None:
    """Every keyword of every function with a letter too many, in any version of Python."""
    function, args = FUNCTIONS[name]
    for word in {*_keywords(function)} - {"to"}:  # two letters resemble nothing
        wrong = f"{word}{word[-1]}"
        text = _message(function, *args, **{wrong: None})
        assert text == f"{name} has no keyword {wrong}=; did you mean {word}=?"


@together("name", FUNCTIONS)
def test_a_keyword_that_resembles_none_is_told_which_there_are(name: str) -> None:
    """Each is named, or it is said to leave the keyword out."""
    function, args = FUNCTIONS[name]
    text, words = _message(function, *args, zzz=1), _keywords(function)
    move = f"it has {', '.join(f'{word}=' for word in words)}." if words else "leave it out."
    assert text == f"{name} has no keyword zzz=; {move}"


@together("name", FUNCTIONS)
def test_a_value_too_many_is_told_which_keywords_there_are(name: str) -> None:
    """However many stand behind what the function takes without a keyword."""
    function, args = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters.values()
    for count in (1, 2, 9):
        text = _message(function, *args, *["float32"] * count)
        assert text.startswith(f"{name} takes ")
        assert " without a keyword; " in text
        told = text.partition("name the others: ")[2] or text.rpartition("; ")[2]
        rest = [f"{p.name}=" for p in parameters if p.kind == p.KEYWORD_ONLY]
        assert told.rstrip(".") == (", ".join(rest) or "leave out the rest")


@together("name", ["convert", "convert_tree", "plan", "spec"])
def test_a_value_that_is_named_is_told_to_stand_without_its_name(name: str) -> None:
    """The value is the one thing that has no keyword."""
    function, _ = FUNCTIONS[name]
    value = next(iter(inspect.signature(function).parameters))
    text = _message(function, **{value: X})
    assert text == f"{name} takes {value} without a keyword; write {name}({value}, …)."


@together("text", ABSENT)
def test_what_a_call_lacks_is_named(text: str) -> None:
    """So is what it gives twice."""
    assert _message(ABSENT[text]) == text


@together("function", [interop.convert, interop.convert_tree])
def test_a_target_given_twice_is_named_by_python(function: Callable[..., Any]) -> None:
    """Python refuses the call before it begins, in words that name the function called."""
    with pytest.raises(TypeError) as caught:
        function(X, "numpy", to="numpy")
    assert str(caught.value) == f"{function.__name__}() got multiple values for argument 'to'"


def test_errors_of_called_code_are_left_alone() -> None:
    """A TypeError that comes from within a call is no mistake of the call."""

    class Odd:
        def __array__(self, *_: object, **__: object) -> Any:
            raise TypeError("mine")

    with pytest.raises(interop.InteropError, match="mine"):
        interop.plan(Odd(), to="numpy")
    with pytest.raises(TypeError, match="mine"), interop.trace(_raising):
        interop.convert([1.0], to="numpy")


def _raising(_: object) -> None:
    raise TypeError("mine")


@pytest.mark.parametrize("error", [AttributeError, TypeError])
def test_an_error_over_a_list_says_that_it_was_left_as_it_is(error: type[Exception]) -> None:
    """A function under `accepts` that wants an array where it is given a list of numbers."""

    @interop.accepts("numpy")
    def mean(x: Any, *others: Any, **_: Any) -> Any:
        return x.mean() if error is AttributeError else x / 2

    remark = "is a list, which {} is given as it is; @interop.accepts(…, lists=True) makes an array"
    for call, name in ((lambda: mean([1.0, 2.0]), "x"), (lambda: mean(x=[1.0], y=X), "x")):
        with pytest.raises(error) as caught:
            call()
        (note,) = caught.value.__notes__
        assert note.startswith(f"{name} {remark.format(mean.__qualname__)}")
    for args in (("text",), ([object()],), (None, X)):
        with pytest.raises(error) as caught:
            mean(*args)
        assert not hasattr(caught.value, "__notes__")
