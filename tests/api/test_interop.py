"""The API: what each keyword does, and what is said of each misuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interop
from interop import Cost, Interop
from interop._model.spec import TRAITS, UNWRITABLE
from interop.errors import BadRequestError, Declined
from tests.kit.library import Array
from tests.kit.library_plugin import with_library
from tests.toys import Box, copy, toy, view


def test_a_value_that_meets_the_request_is_returned_as_it_is() -> None:
    """The value itself comes back on the first call, by the fast path, and from a converter."""
    x = np.arange(3.0)
    convert = interop.converter("numpy")
    for _ in range(2):
        assert interop.convert(x, to="numpy") is x
        assert interop.convert(x, np) is x
        assert interop.convert(x, np.ndarray) is x
        assert interop.convert(x, to=["numpy"]) is x
        assert convert(x) is x


def test_lengths_may_be_numpys_integers() -> None:
    """A spec made from NumPy's integers holds Python's, and anything else is no length."""
    spec = interop.make_spec("numpy", "float32", shape=(np.int64(3), np.uint8(2)))
    assert [type(n) for n in (*spec.shape, spec.nbytes)] == [int] * 3
    with pytest.raises(BadRequestError):
        interop.make_spec("numpy", "float32", shape=(2.5,))  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32"), np.dtype("<f4")])
def test_dtype_may_be_a_name_or_an_object(dtype: Any) -> None:
    """Names, NumPy's dtype objects and its scalar types mean the same."""
    y = interop.convert(np.arange(3), to="numpy", dtype=dtype)
    assert y.dtype == np.float32


def test_out_works_on_views() -> None:
    """A strided destination is written in place, and the elements between are not."""
    base = np.zeros((4, 6))
    interop.convert([[1.0, 2.0], [3.0, 4.0]], out=base[1:3, ::3])
    expected = np.zeros((4, 6))
    expected[1:3, ::3] = [[1, 2], [3, 4]]
    np.testing.assert_array_equal(base, expected)


def _readonly() -> np.ndarray:
    x = np.zeros(3)
    x.flags.writeable = False
    return x


def test_a_subclass_does_not_take_the_fast_path_of_its_base() -> None:
    """A masked array without a mask opens no fast path on which the next one's mask is lost."""
    mine = with_library()
    for _ in range(3):
        assert mine.convert(np.ma.array([1.0, 2.0]), to="library").data.tolist() == [1.0, 2.0]
    with pytest.raises(interop.errors.RefusedError):
        mine.convert(np.ma.array([1.0, 2.0], mask=[False, True]), to="library")


def test_a_converter_shows_its_request() -> None:
    """Its text has what the call gave: modules and types by name, the value in ``like=`` by type."""
    assert "converter(to='numpy', dtype='float32')" in repr(
        interop.converter("numpy", dtype="float32")
    )
    assert "converter(to=numpy, copy=True)" in repr(interop.converter(np, copy=True))
    assert "converter(like=<ndarray>)" in repr(interop.converter(like=np.arange(3)))


def test_states_tell_what_is_missing(empty: Interop) -> None:
    """A format is missing without its framework, and a conversion is dormant without both formats."""
    empty.register(interop.Format("gone", requires="no_such_framework"), interop.Format("here"))
    empty.register(
        interop.Conversion("here", "gone", print), interop.Conversion("here", "x", print)
    )
    assert [declared.state for declared in empty.formats()] == ["missing", "imported"]
    assert [declared.state for declared in empty.conversions()] == ["ready", "dormant"]


def test_nothing_is_held_after_a_conversion() -> None:
    """Plans are cached and values are not: a source is freed with its last reference."""
    import gc
    import weakref

    class Tracked(np.ndarray):
        pass

    x = np.zeros(3).view(Tracked)
    alive = weakref.ref(x)
    interop.convert(x, to="numpy", dtype="float32")
    del x
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("wrap", [np.asarray, Array])
@pytest.mark.parametrize("side", [4, 1500])
def test_out_may_overlap_the_value(side: int, wrap: Any) -> None:
    """Where a value shares memory with `out`, all of it is read before `out` is written, at any size."""
    convert = with_library().convert
    array = np.arange(float(side * side)).reshape(side, side)
    expected = array.T.copy()
    convert(wrap(array.T), out=array)
    np.testing.assert_array_equal(array, expected)
    line = np.arange(float(side * side))
    expected = line[:-1].copy()
    convert(wrap(line[:-1]), out=line[1:])
    np.testing.assert_array_equal(line[1:], expected)
    line = np.arange(float(side * side))
    expected = line[::-1].copy()
    convert(line[::-1], out=wrap(line))
    np.testing.assert_array_equal(line, expected)


@pytest.mark.parametrize("trait", sorted(UNWRITABLE))
def test_an_out_that_cannot_keep_all_numbers_is_refused_first(empty: Interop, trait: str) -> None:
    """What no numbers can be written into is refused in one sentence, before a step is made."""
    steps = []

    def converted(box: Box) -> Box:
        steps.append(box)
        return Box("b", box.numbers)

    empty.register(
        toy("a"), toy("b", fill=lambda out, box: out.numbers.__setitem__(slice(None), box.numbers))
    )
    empty.register(interop.Conversion("a", "b", converted, effects={"copy"}))
    out = Box("b", [1.0], traits={trait})
    of_dates = Box("b", [1.0], dtype="datetime64")
    for unusable in (out, of_dates, Box("b", [1.0, 2.0]), Box("a", [1.0])):
        with pytest.raises(BadRequestError) as caught:
            empty.convert(Box("a", [3.0]), out=unusable)
        assert (TRAITS[trait] in str(caught.value)) is (unusable is out)
        assert "\n" not in str(caught.value)
        assert unusable.numbers[0] == 1
    assert not steps
    fine = Box("b", [1.0], traits={"noncontiguous"})
    assert empty.convert(Box("a", [3.0]), out=fine).numbers == [3]


def on_device() -> tuple[Interop, list[str]]:
    """Return frameworks that share memory on any device, or copy it, and notes of what they do."""
    calls: list[str] = []

    def note(name: str) -> Callable[..., Any]:
        def write(out: Box, box: Box) -> None:
            calls.append(name)
            out.numbers = box.numbers

        return write

    instance = Interop()
    facts = {"devices": ("cpu", "cuda"), "memory": lambda box: ((id(box.numbers), 1),)}
    instance.register(
        toy("a", **facts),
        toy("b", **facts, fill=note("filled")),
        view("a", "b", devices=None),
        copy("a", "b", devices=None, cost=Cost(1e-5), into=note("copied into")),
    )
    return instance, calls


def test_out_on_a_device_is_written_by_who_knows_the_source() -> None:
    """On a device the step that copies writes ``out``: it knows who must not go on meanwhile."""
    for device, expected in (("cuda:0", "copied into"), ("cpu", "filled")):
        instance, calls = on_device()
        out = Box("b", [0.0], device=device)
        instance.convert(Box("a", [3.0], device=device), out=out)
        assert calls == [expected]
        assert out.numbers == [3.0]


def test_policies_and_traces_make_no_temporary_for_out() -> None:
    """Inside `policy` and `trace` the step that copies writes ``out``, and is the receipt's last."""
    instance, calls = on_device()
    out = Box("b", [0.0], device="cuda:0")
    with interop.policy(forbid="narrow"):
        instance.convert(Box("a", [3.0], device="cuda:0"), out=out)
    assert calls == ["copied into"]
    with interop.trace() as receipts:
        instance.convert(Box("a", [4.0], device="cuda:0"), out=out)
    assert calls == ["copied into"] * 2
    assert out.numbers == [4.0]
    (receipt,) = receipts
    assert receipt.steps == ("copy_a_to_b",)
    assert receipt.effects == {"copy"}
    assert (receipt.result.format, receipt.result.device) == ("b", "cuda:0")
    assert receipt.written == (receipt.nbytes,) == (4,)
    assert len(receipt.seconds) == len(receipt.declared_by) == 1


def test_a_step_that_does_not_write_into_out_leaves_one_receipt() -> None:
    """What was tried before is no part of it, nor is what the step has converted itself."""
    instance, calls = on_device()

    def declining(out: Box, box: Box) -> None:
        interop.convert([1.0], to="numpy")
        calls.append("declined")
        raise Declined("not into this")

    instance.register(copy("a", "b", devices=None, cost=Cost(1e-7), into=declining, name="quick"))
    out = Box("b", [0.0], device="cuda:0")
    with interop.trace() as receipts:
        instance.convert(Box("a", [3.0], device="cuda:0"), out=out)
    assert calls == ["declined", "filled"]
    assert [receipt.steps for receipt in receipts] == [("a_to_b", "fill")]
