"""Traces: receipts of what each conversion really did."""

from __future__ import annotations

import json
import re
import threading

import numpy as np
import pytest

import interop
from interop import Conversion
from interop.errors import ConversionError, Declined
from tests.kit.library import Array
from tests.kit.library_plugin import with_library
from tests.toys import Box, copy, toy, view


def test_receipts_say_what_was_done() -> None:
    """One receipt for each conversion: steps, effects, times, bytes and sharing by address."""
    x = np.arange(6.0)
    with interop.trace() as receipts:
        interop.convert(x, to="numpy")
        interop.convert(x, to="numpy", copy=True)
        interop.convert(x[::-1], to="numpy", dtype="float32")
    unchanged, copied, cast = receipts
    assert (unchanged.steps, unchanged.aliased) == ((), True)
    assert (copied.aliased, copied.effects, copied.nbytes) == (False, {"copy"}, 48)
    assert cast.result.dtype == "float32"
    assert len(cast.seconds) == len(cast.steps)
    assert all(s > 0 for s in cast.seconds)


def test_conversions_inside_a_conversion_leave_no_receipts() -> None:
    """A list of arrays leaves one receipt in every trace, in which the bytes of its elements count once."""
    rows = [np.arange(3.0) + n for n in range(2)]
    sums: list[int] = []
    with interop.trace() as outer, interop.trace(lambda receipt: sums.append(receipt.nbytes)):
        result = interop.convert(rows, to="numpy")
        interop.convert(rows[0], to="numpy")  # the trace goes on
    assert result.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert [receipt.source.format for receipt in outer] == ["python.arrays", "numpy"]
    assert (outer[0].result.shape, sums) == ((2, 3), [48, 24])


def test_a_conversion_that_fails_leaves_no_receipt(empty: interop.Interop) -> None:
    """Neither it nor those inside it do, and the trace goes on."""

    def failing(box: Box) -> Box:
        interop.convert([1.0], to="numpy")
        raise ValueError("not today")

    empty.register(toy("a"), toy("b"), Conversion("a", "b", failing))
    with interop.trace() as receipts:
        with pytest.raises(ConversionError):
            empty.convert(Box("a", [1.0]), to="b")
        interop.convert(np.zeros(1), to="numpy")
    assert [receipt.source.format for receipt in receipts] == ["numpy"]


def test_a_receipt_of_out_says_what_was_written_into_it() -> None:
    """Its result is ``out=``, its last step the write; it overlaps only where the arrays do."""
    mine, other = with_library(), Array(np.zeros(4, "f4"))
    floats, numbers = np.zeros(4, "f4"), np.arange(5.0)
    with interop.trace() as receipts:
        mine.convert(np.arange(4.0), out=other)
        mine.convert(np.arange(4, dtype="f4"), out=floats)
        mine.convert(numbers[1:], out=numbers[:-1])
        mine.convert([np.zeros(2, "f4"), np.ones(2, "f4")], out=np.zeros((2, 2), "f4"))
    assert (other.data.tolist(), floats.tolist()) == ([0, 1, 2, 3], [0, 1, 2, 3])
    formats = ["library", "numpy", "numpy", "numpy"]
    assert [receipt.result.format for receipt in receipts] == formats
    assert [receipt.result.dtype for receipt in receipts] == [
        "float32",
        "float32",
        "float64",
        "float32",
    ]
    assert [receipt.steps[-1] for receipt in receipts] == ["fill"] * 4
    assert [receipt.written[-1] for receipt in receipts] == [16, 16, 32, 16]
    assert [receipt.nbytes for receipt in receipts] == [16, 16, 32, 16]
    assert [receipt.aliased for receipt in receipts[:3]] == [False, False, True]
    for receipt in receipts:
        own = receipt.result.format == "library"
        assert receipt.declared_by[-1] == ("run time" if own else "array-interop 0.1.0")
        assert len(receipt.as_dict()["steps"]) == len(receipt.seconds)


def test_a_trace_belongs_to_its_thread() -> None:
    """Conversions of other threads leave no receipt here."""
    with interop.trace() as receipts:
        thread = threading.Thread(target=interop.convert, args=(np.zeros(2), "numpy"))
        thread.start()
        thread.join()
    assert receipts == []


def test_a_receipt_holds_what_each_step_did() -> None:
    """A receipt has the bytes and declarer of each step, and JSON can hold it."""
    with interop.trace() as receipts:
        interop.convert(np.zeros((3, 1000))[:, ::2], to="numpy", dtype="float32", copy=True)
    (receipt,) = receipts
    assert len(receipt.written) == len(receipt.declared_by) == len(receipt.steps) >= 1
    assert receipt.written[-1] == receipt.nbytes == 6000
    assert receipt.declared_by[0].startswith("array-interop ")
    (document,) = json.loads(receipts.as_json())
    assert document == json.loads(json.dumps(receipt.as_dict()))
    assert (document["aliased"], document["nbytes"]) == (False, 6000)
    assert document["result"]["shape"] == [3, 500]
    assert [step["step"] for step in document["steps"]] == list(receipt.steps)


def test_after_a_step_declined_the_receipt_has_the_steps_that_were_taken(
    empty: interop.Interop,
) -> None:
    """A step that declined is not in the receipt."""

    def declining(box: Box) -> Box:
        raise Declined("not today")

    empty.register(toy("a"), toy("b"), toy("c"), view("a", "b"))
    empty.register(Conversion("b", "c", declining, name="quick"))
    empty.register(copy("b", "c", name="slow"))
    with interop.trace() as receipts:
        result = empty.convert(Box("a", [1.0, 2.0]), to="c")
    assert result.kind == "c"
    (receipt,) = receipts
    assert receipt.steps == ("a_to_b", "slow")
    assert receipt.effects == {"copy"}
    assert receipt.written == (0, 8)
    assert len(receipt.seconds) == 2


def test_receipts_can_be_handed_on_instead_of_kept() -> None:
    """With ``on_receipt`` each receipt goes to a function, and the trace stays empty."""
    handed_on: list[interop.Receipt] = []
    with interop.trace(on_receipt=handed_on.append) as receipts:
        interop.convert(np.zeros(3), to="numpy", copy=True)
    assert receipts == []
    assert [receipt.effects for receipt in handed_on] == [{"copy"}]


def test_every_trace_around_a_conversion_has_its_receipt() -> None:
    """Of nested blocks, each has the receipts of the conversions inside it."""
    with interop.trace() as outer:
        interop.convert(np.zeros(3), to="numpy")
        with interop.trace() as inner:
            interop.convert(np.zeros(3), to="numpy", copy=True)
    assert len(outer) == 2
    assert inner == outer[1:]


def test_receipts_print_as_a_table() -> None:
    """A trace prints, and a console shows it, as a head and a line a conversion, with its effects.

    A conversion without effects is called a view.
    """
    mine = with_library()
    with interop.trace() as receipts:
        mine.convert(np.arange(3, dtype="float32"), to="library", dtype="float64")
        mine.convert(np.arange(3.0), to="library")
    head, cast, share = str(receipts).splitlines()
    assert head.split()[0] == "value"
    assert re.search(r"on cpu  cast → library_from_dlpack  copy  .*no$", cast)
    assert re.search(r"on cpu  library_from_dlpack +view  ", share)
    assert repr(receipts) == str(receipts)
