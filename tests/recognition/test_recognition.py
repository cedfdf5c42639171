"""Recognition: which format a value, a type or a dtype object stands for."""

from __future__ import annotations

import array
import sys
from collections.abc import Callable, Iterable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import interop
import interop.plugin
from interop import DtypeNames, Format, Interop, Spec
from interop._api.leaves import is_array
from interop._model.provenance import Provenance
from interop._recognition import classes, recognition
from interop._recognition.classes import format_of_class
from interop.errors import NotInstalledError, PluginError, UnknownValueError
from tests.toys import Box, copy, describe, toy


def test_a_foreign_value_is_recognised_by_its_protocol(empty: Interop) -> None:
    """An attribute of the type is enough where a format declares a protocol."""

    class Foreign:
        __proto__ = True

    empty.register(
        Format(
            "proto",
            protocol="__proto__",
            describe=lambda v: interop.plugin.make_spec("proto", "int64"),
        )
    )
    assert empty.spec(Foreign()).format == "proto"
    with pytest.raises(interop.errors.UnknownValueError):
        empty.spec(object())


def test_a_protocol_that_a_value_does_not_have_now_gives_way_to_its_next(empty: Interop) -> None:
    """A property that raises AttributeError offers nothing; any other refusal is the value's."""

    class Picky:
        error: Exception = AttributeError("only on the device")
        has_second = True

        @property
        def __first__(self) -> int:
            raise self.error

        @property
        def __second__(self) -> int:
            if self.has_second:
                return 2
            raise AttributeError("not now")

    def describing(name: str) -> Callable[[Any], interop.Spec]:
        def describe(value: Any) -> interop.Spec:
            try:
                number = getattr(value, f"__{name}__")
            except (AttributeError, ValueError) as error:
                raise interop.errors.HandOffError(f"no {name}: {error}") from error
            return interop.plugin.make_spec(name, "int64", shape=(number,))

        return describe

    for name in ("first", "second"):
        empty.register(Format(name, protocol=f"__{name}__", describe=describing(name)))
    value = Picky()
    for _ in range(2):
        assert empty.spec(value) == interop.plugin.make_spec("second", "int64", shape=(2,))
    value.has_second = False
    with pytest.raises(interop.errors.HandOffError, match="no first: only on the device"):
        empty.spec(value)
    value = Picky()
    value.error = ValueError("closed")
    with pytest.raises(interop.errors.HandOffError, match="no first: closed"):
        empty.spec(value)


def test_a_protocol_that_is_none_is_none(empty: Interop) -> None:
    """What answers None for an attribute, as a class does to opt out, does not offer a protocol."""

    class OptedOut(Box):
        __proto__ = None

    class Namespace:
        def __getattr__(self, name: str) -> None:
            return None

    empty.register(Format("proto", protocol="__proto__", describe=lambda value: 1 / 0))
    empty.register(Format("target"))
    for value in (OptedOut("a", []), Namespace()):
        with pytest.raises(interop.errors.UnknownValueError):
            empty.spec(value)
        assert empty.convert_tree([value], to="target") == [value]


def test_a_buffer_of_a_type_that_does_not_show_it_is_recognised_last(empty: Interop) -> None:
    """On every version of Python what gives a buffer is one, unless it offers something else."""

    class Offering(bytearray):
        __proto__ = True

    class Plain(bytearray):
        pass

    for name, protocol in (("buffer", "__buffer__"), ("proto", "__proto__")):
        spec = interop.plugin.make_spec(name, "uint8", shape=(1,))
        empty.register(Format(name, protocol=protocol, describe=lambda value, spec=spec: spec))
    for value in (Plain(1), array.array("B", [1]), memoryview(b"1")):
        assert empty.spec(value).format == "buffer"
    if sys.version_info < (3, 12):
        assert empty.spec(Offering(1)).format == "proto"
    with pytest.raises(interop.errors.UnknownValueError):
        empty.spec("1")


def test_dtype_objects_are_named_by_their_framework(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A framework's dtype object means the name that the framework's DtypeNames gives it."""

    class Kind:
        name = "float64"

    home = ModuleType("toy_dtypes")
    home.Kind = Kind  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toy_dtypes", home)
    spec = interop.plugin.make_spec("a", "float32", shape=(2,))
    empty.register(toy("a"), copy("a", "a", changes=frozenset({"dtype"})))
    empty.register(DtypeNames("toy_dtypes:Kind", lambda dtype: dtype.name))
    assert empty.plan(spec, to="a", dtype=Kind()).result.dtype == "float64"
    with pytest.raises(interop.errors.BadRequestError):
        empty.plan(spec, to="a", dtype=object())


def test_types_that_are_remembered_are_bounded(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that adds classes to a module as it goes starts over, and every value is recognised."""
    monkeypatch.setattr(classes, "_MOST_TYPES", 3)
    empty.register(toy("a"))
    for number in range(10):
        kind = type(f"Box{number}", (Box,), {})
        monkeypatch.setattr(sys.modules[__name__], kind.__name__, kind, raising=False)
        assert empty.spec(kind("a", [1.0])).format == "a"
        assert len(empty._registry.recognition._describers) <= 3
        assert len(empty._registry.recognition._recognised) <= 3


def test_a_type_that_no_format_names_is_searched_for_once(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of an unknown type are refused at once, until a module that names it is imported."""
    searches: list[type] = []

    def search(type_: type, formats: Iterable[Format]) -> Format | None:
        searches.append(type_)
        return format_of_class(type_, formats)

    class Late(Box): ...

    monkeypatch.setattr(recognition, "format_of_class", search)
    monkeypatch.setattr(classes, "_MOST_TYPES", 3)
    empty.register(toy("late", types=("toy_late:Late",)))
    refusals = []
    for _ in range(2):
        with pytest.raises(UnknownValueError) as refusal:
            empty.spec(Late("late", [1.0]))
        refusals.append(str(refusal.value))
    assert (searches, len({*refusals})) == ([Late], 1)
    monkeypatch.setitem(sys.modules, "toy_late", SimpleNamespace(Late=Late))
    assert empty.spec(Late("late", [1.0])).format == "late"
    for number in range(5):
        kind = type(f"Other{number}", (), {})
        monkeypatch.setattr(sys.modules[__name__], kind.__name__, kind, raising=False)
        assert not is_array(empty._registry, kind())
        assert len(empty._registry.recognition._unknown) <= 3


def _failing(error: BaseException) -> Callable[[object], Spec]:
    def describe(value: object) -> Spec:
        raise error

    return describe


def _answering(**fields: object) -> Callable[[Box], Spec]:
    """Return what describes a box, but for some fields."""
    return lambda box: describe(box)._replace(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("describe", "problem"),
    [
        (_failing(KeyError("float32")), "raised KeyError: 'float32'"),
        (lambda box: None, "answered None, which is no Spec"),
        (
            _answering(dtype=np.dtype("float64")),
            "dtype=dtype('float64'), which has to be of type str or",
        ),
        (_answering(traits={"grad"}), "traits={'grad'}, which has to be of type frozenset"),
        (_answering(shape=[2]), "shape=[2], which has to be of type tuple"),
        (_answering(device=None), "device=None, which has to be of type str"),
        (_answering(index_dtype=np.int32), "index_dtype=<class 'numpy.int32'>, which has to be"),
        (
            lambda box: interop.plugin.make_spec("theirs", "int64"),
            "the format 'theirs', not its own",
        ),
        (
            lambda box: interop.plugin.make_spec("nowhere", "int64"),
            "the format 'nowhere', not its own",
        ),
    ],
)
def test_a_wrong_description_names_whose_it_is(
    empty: Interop, describe: Callable[[object], Spec], problem: str
) -> None:
    """Whatever goes wrong in `describe` is an error that names the format and the distribution."""
    format_ = toy("odd")._replace(describe=describe)
    empty._registry.register([format_], Provenance("odd", "interop-odd", "1"))
    empty.register(toy("theirs", types=()))
    for _ in range(2):
        with pytest.raises(PluginError) as caught:
            empty.convert(Box("odd", [1.0]), to="theirs")
        assert "describe of format 'odd', declared by interop-odd 1" in str(caught.value)
        assert problem in str(caught.value)
        assert "for a Box; report it to interop-odd, or leave that plugin out" in str(caught.value)


def test_lengths_and_sizes_may_be_numpys(empty: Interop) -> None:
    """What counts as a number in a spec is whatever Python takes for an index."""
    size = np.int64(8)
    numpys = _answering(shape=(np.int32(2),), nbytes=size)
    empty.register(toy("odd")._replace(describe=numpys))
    assert empty.spec(Box("odd", [1.0, 2.0]))[3:6] == ((2,), frozenset(), size)


def test_interop_errors_and_interruptions_of_describe_pass(empty: Interop) -> None:
    """An error of interop's own that `describe` raises, and an interruption, stay as they are."""
    for error in (UnknownValueError("a box of boxes"), KeyboardInterrupt()):
        instance = Interop(plugins=False)
        instance.register(toy("odd")._replace(describe=_failing(error)))
        with pytest.raises(type(error)) as caught:
            instance.spec(Box("odd", [1.0]))
        assert caught.value is error


def test_a_library_that_is_missing_is_nobodys_fault(empty: Interop) -> None:
    """A description that needs what is not installed says so, and only that, with a way to get it."""
    missing = ModuleNotFoundError("no", name="lost.parts")
    empty.register(toy("odd")._replace(describe=_failing(missing)))
    with pytest.raises(NotInstalledError) as caught:
        empty.spec(Box("odd", [1.0]))
    assert caught.value.__cause__ is missing
    other = Interop(plugins=False)
    torn = ModuleNotFoundError("no", name="interop.lost")  # the library is there
    other.register(toy("odd")._replace(describe=_failing(torn)))
    with pytest.raises(PluginError):
        other.spec(Box("odd", [1.0]))


def test_a_description_may_answer_with_any_format_of_its_plugin(empty: Interop) -> None:
    """Formats of one plugin that share a type share the function that tells them apart."""
    empty._registry.register([toy("one"), toy("two")], Provenance("odd", "interop-odd", "1"))
    assert empty.spec(Box("two", [1.0])).format == "two"
