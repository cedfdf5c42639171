"""Tracebacks of refusals: the caller's line and the message, and nothing of what lies between."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import interop
from interop.errors import BadRequestError, ConversionError, Declined, InteropError, RefusedError

MASKED = np.ma.array([1.0, 2.0], mask=[False, True])


@interop.accepts("python")
def _function(x: list[float]) -> list[float]:
    return x


def _frames(error: BaseException) -> list[FrameType]:
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)][1:]  # not this test's


def _is_ours(frame: FrameType) -> bool:
    return frame.f_globals["__name__"].partition(".")[0] in {"interop", "interop_plugins"}


@pytest.mark.parametrize(
    "call",
    [
        lambda: interop.convert(MASKED, to="python"),
        lambda: interop.convert(MASKED, to="python", dtype="float32"),
        lambda: interop.convert(MASKED, to="bogus"),
        lambda: interop.convert(object(), to="numpy"),
        lambda: interop.convert([1.0], like=object()),
        lambda: interop.convert([[1, 2], [3]], to="numpy"),
        lambda: interop.convert(MASKED, out=np.ones(3)),
        lambda: interop.convert_tree([MASKED], to="python"),
        lambda: interop.converter("bogus"),
        lambda: interop.converter("python")(MASKED),
        lambda: interop.plan(MASKED, to="python"),
        lambda: interop.spec(object()),
        lambda: interop.make_spec("bogus", "float32"),
        lambda: interop.set_default_policy(allow="bogus"),
        lambda: interop.policy(allow="bogus"),
        lambda: _function(MASKED),
    ],
)
def test_a_refusal_shows_one_frame_of_interop_which_notebooks_and_pytest_hide(
    call: Callable[[], object],
) -> None:
    """Between the caller's line and the message stands the function that was called, and no cause."""
    with pytest.raises(InteropError) as caught:
        call()
    caller, face = _frames(caught.value)
    assert (_is_ours(caller), _is_ours(face)) == (False, True)
    assert face.f_locals["__tracebackhide__"] is True
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_frames_of_others_stay_in_a_traceback() -> None:
    """A function under `accepts` may itself convert; the traceback then leads to that line."""

    @interop.accepts("numpy")
    def function(x: Any) -> Any:
        return interop.convert(MASKED, to="python")

    with pytest.raises(RefusedError) as caught:
        function(np.ones(2))
    names = [frame.f_code.co_name for frame in _frames(caught.value) if not _is_ours(frame)]
    assert names == ["function"]


def test_the_cause_of_a_failed_step_keeps_its_traceback() -> None:
    """What a plugin's function raised leads to the line in that function."""
    mine = interop.Interop()

    @mine.conversion("numpy", "python", replaces={"array-interop"})
    def broken(array: Any) -> Any:
        return array.no_such_attribute

    with pytest.raises(ConversionError) as caught:
        mine.convert(np.ones(2), to="python")
    cause = caught.value.__cause__
    assert isinstance(cause, AttributeError)
    assert traceback.extract_tb(cause.__traceback__)[-1].name == "broken"


@pytest.mark.parametrize("cause", [AttributeError("no such attribute"), None])
def test_a_step_that_declined_shows_what_made_it_and_nothing_else(cause: Exception | None) -> None:
    """What its function had caught says more than the message; where it declined says nothing."""
    mine = interop.Interop()

    @mine.conversion("numpy", "python", replaces={"array-interop"})
    def declines(array: Any) -> Any:
        raise Declined("it has no such attribute") from cause

    with pytest.raises(RefusedError, match="it has no such attribute") as caught:
        mine.convert(np.ones(2), to="python")
    assert caught.value.__cause__ is cause
    assert caught.value.__suppress_context__


def test_a_list_that_is_no_array_does_not_repeat_the_error_of_numpy() -> None:
    """The message has its words already."""
    with pytest.raises(BadRequestError) as caught:
        interop.convert([[1, 2], 3], to="numpy")
    assert "ValueError" not in "".join(traceback.format_exception(caught.value))
