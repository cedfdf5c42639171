"""Requests: what the keywords of a call come to."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import interop
from interop import Interop
from interop._request.keywords import Keywords, checked
from interop._request.policy import Policy
from interop._request.request import Request, resolved
from interop.errors import BadRequestError, RefusedError, UnknownTargetError
from tests.cases import together
from tests.kit import library
from tests.kit.library_plugin import with_library
from tests.toys import Box, copy, toy, view

#: What only compares equal to True or False.
ODD_BOOLEANS = [1, 0, np.True_, np.False_, 1.0, "yes", [], 2]


def request(instance: Interop, to: Any, **keywords: Any) -> Request:
    """Return the request of a call under the default policy."""
    return resolved(instance._registry, checked(Keywords(to, **keywords)), Policy())


def test_a_request_is_a_value(empty: Interop) -> None:
    """Two spellings of one request are equal and hash alike, and a request holds no answer."""
    empty.register(toy("a"), toy("ring.x"), toy("ring.y"))
    first = request(empty, "ring", dtype="half", device="cpu:00", allow=["narrow"])
    again = request(
        empty, ["ring.x", "ring.y", "ring.x"], dtype="float16", device="cpu:0", allow="narrow"
    )
    assert first == again
    assert len({first, again}) == 1
    permitted = Policy(Policy().permitted | {"narrow"}, allowed=frozenset({"narrow"}))
    assert first == Request(("ring.x", "ring.y"), "float16", "cpu:0", None, permitted)
    assert str(first) == "ring.x or ring.y, dtype=float16, device=cpu:0"


def test_copy_false_takes_the_copying_effects_away() -> None:
    """A request with copy=False permits no step that writes bytes, whatever its policy is."""
    copying = {"copy", "transfer", "gather", "densify", "dequantize"}
    assert Request(("a",), copy=False).permitted == Policy().permitted - copying
    assert Request(("a",), copy=True).permitted == Request(("a",)).permitted == Policy().permitted


def test_copy_writable_takes_the_sharing_of_locked_memory_away() -> None:
    """With copy="writable" no policy shares read-only or immutable memory with what could write."""
    locking = {"alias_immutable", "share_readonly"}
    generous = Policy(Policy().permitted | locking)
    request = Request(("a",), copy="writable", policy=generous)
    assert request.permitted == generous.permitted - locking


@together("odd", ODD_BOOLEANS)
@pytest.mark.parametrize("call", ["convert", "converter", "plan", "convert_tree"])
def test_copy_is_none_true_false_or_a_word(call: str, odd: object) -> None:
    """Anything but None, True, False and one word is refused, even what compares equal to them."""
    array = np.arange(3.0)
    arguments = () if call == "converter" else (array,)
    with pytest.raises(BadRequestError) as caught:
        getattr(interop, call)(*arguments, to="numpy", copy=odd)
    assert str(caught.value) == f"copy must be None, True, False or 'writable', got {odd!r}."


@pytest.mark.parametrize("odd", ODD_BOOLEANS, ids=repr)
def test_a_refused_copy_of_0_or_1_changes_no_later_call(odd: object) -> None:
    """A refused copy=1 or copy=0 is not remembered for copy=True or copy=False, nor the reverse."""
    instance, array = Interop(), np.arange(3.0)
    for _ in range(4):  # cold and warm
        with pytest.raises(BadRequestError):
            instance.convert(array, to="numpy", copy=odd)
        assert not np.shares_memory(instance.convert(array, to="numpy", copy=True), array)
        assert instance.convert(array, to="numpy", copy=False) is array
        assert instance.convert(array, to="numpy", copy=None) is array
        with pytest.raises(RefusedError):
            instance.convert(array, to="numpy", dtype="float32", copy=False)


@pytest.mark.parametrize(
    "call", ["convert", "converter", "plan", "convert_tree", "accepts", "policy"]
)
@pytest.mark.parametrize("odd", [True, 3, "all", ["copy", "all"]], ids=str)
def test_allow_and_forbid_refuse_unknown_effects(call: str, odd: Any) -> None:
    """Whatever does not name effects is a bad request in every call and block."""
    arguments = {
        "policy": (), "converter": ("numpy",), "accepts": ("numpy",)
    }.get(call, (np.arange(3.0), "numpy"))  # fmt: skip
    for name in ("allow", "forbid"):
        with pytest.raises(BadRequestError):
            getattr(interop, call)(*arguments, **{name: odd})
    with pytest.raises(BadRequestError):
        interop.plan(np.arange(3.0), to="numpy", allow="dropmask")


@pytest.mark.parametrize("odd", ["x", 1.5, True, b"1"], ids=repr)
def test_stream_refuses_what_is_not_a_stream(odd: Any) -> None:
    """A stream is a number or a framework's object, also where no step of the route takes one."""
    for call in (
        lambda: interop.convert(np.ones(1), to="python", stream=odd),
        lambda: interop.convert(np.ones(1), out=np.ones(1), stream=odd),
        lambda: interop.converter("python", stream=odd),
        lambda: interop.plan(np.ones(1), to="python", stream=odd),
        lambda: interop.convert_tree([np.ones(1)], to="python", stream=odd),
    ):
        with pytest.raises(BadRequestError):
            call()
    assert interop.convert(np.ones(1), to="numpy", stream=0).tolist() == [1.0]


#: The keywords of each function that takes a target, in the order in which they are shown.
KEYWORDS = {
    "convert": "to like dtype device copy order out allow forbid stream",
    "converter": "to like dtype device copy order allow forbid stream",
    "plan": "to like dtype device copy order allow forbid stream",
    "convert_tree": (
        "to like dtype device copy order allow forbid stream cast_all others lists progress consume"
    ),
    "accepts": "to dtype device copy allow forbid grad lists",
}


@pytest.mark.parametrize("call", KEYWORDS)
def test_a_function_shows_its_keywords_one_by_one(call: str) -> None:
    """`inspect` and `help` show each keyword with its default, though they are written once."""
    for function in (getattr(interop, call), getattr(Interop, call), getattr(Interop(), call)):
        parameters = inspect.signature(function).parameters
        names = [name for name in parameters if name not in {"self", "x", "x_or_spec", "tree"}]
        assert names == KEYWORDS[call].split()
        assert not {p.kind for p in parameters.values()} & {inspect.Parameter.VAR_KEYWORD}
        assert {parameters[name].default for name in ("allow", "forbid")} == {()}
    assert "forbid" in pydoc.render_doc(getattr(interop, call)).splitlines()[2]


class Once:
    """An iterable that may be gone through once."""

    def __init__(self, *names: str) -> None:
        self._names: tuple[str, ...] | None = names

    def __iter__(self) -> Any:
        assert self._names is not None, "it was gone through twice"
        names, self._names = self._names, None
        return iter(names)


FORMS: dict[str, Callable[..., Any]] = {
    "iterator": lambda *names: iter(names),
    "generator": lambda *names: (name for name in names),
    "once": Once,
    "keys": lambda *names: dict.fromkeys(names).keys(),
    "set": lambda *names: set(names),
    "list": lambda *names: list(names),
    "string": lambda name: name,
}


@pytest.mark.parametrize("form", FORMS)
def test_effects_may_be_named_in_any_iterable(empty: Interop, form: str) -> None:
    """An iterator in allow= or forbid= counts in whole, call after call, and in a converter."""
    make = FORMS[form]
    empty.register(toy("a"), toy("b", dtypes={"float32"}), view("a", "b"))
    empty.register(copy("a", "a", name="cast", changes={"dtype"}))
    box = Box("a", [1.0], dtype="float64")
    for _ in range(3):
        assert empty.convert(box, to="b", allow=make("narrow")).dtype == "float32"
        assert empty.plan(box, to="b", allow=make("narrow")).result.dtype == "float32"
        with pytest.raises(RefusedError):
            empty.convert(box, to="b", allow="narrow", forbid=make("copy"))
        with pytest.raises(RefusedError):
            empty.convert(box, to="b")
    convert = empty.converter("b", allow=make("narrow"))
    assert [convert(box).dtype for _ in range(3)] == ["float32"] * 3


@pytest.mark.parametrize("form", FORMS)
def test_effects_in_any_iterable_count_with_other_keywords(form: str) -> None:
    """An iterator still counts in whole where copy=False, out= or a misspelt effect is checked."""
    make, array = FORMS[form], np.arange(3.0)
    with pytest.raises(BadRequestError):
        interop.convert(array, to="numpy", copy=False, allow=make("copy"))
    with pytest.raises(BadRequestError):
        interop.convert(array, to="numpy", copy=False, allow=make("nonsense"))
    out = np.zeros(3, "float32")
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    assert interop.convert(masked, out=out, allow=make("drop_mask")) is out
    assert out.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(RefusedError):
        interop.convert(masked, out=out, forbid=make("drop_mask"))


def test_targets_are_named_in_many_ways(empty: Interop) -> None:
    """A format, a framework, a type, a module and sequences of these name formats, each once."""
    # The first two are of one type.
    empty.register(toy("toys.x"), toy("toys"), toy("ring.x", types=()))
    from tests import toys

    for to, formats in (
        ("toys", ("toys",)),
        ("ring", ("ring.x",)),
        (Box, ("toys",)),
        (["ring", "toys.x", "ring.x"], ("ring.x", "toys.x")),
        ({"ring"}, ("ring.x",)),
        (("toys",), ("toys",)),
    ):
        assert request(empty, to).formats == formats
    with pytest.raises(interop.errors.UnknownTargetError):
        request(empty, toys)  # its name is that of the package above it


def test_a_namespace_of_the_array_standard_stands_for_its_arrays() -> None:
    """A library's namespace that another has wrapped is a target, as the library's own module is."""
    wrapped = ModuleType("compat.toys")
    vars(wrapped).update(__array_namespace_info__=None, empty=library.ones)
    assert with_library().plan([1.0], to=wrapped).result.format == "library"
    vars(wrapped).update(empty=np.empty)
    assert Interop().plan([1.0], to=wrapped).result.format == "numpy"
    vars(wrapped).update(empty=Once)
    with pytest.raises(UnknownTargetError):
        Interop().plan([1.0], to=wrapped)
