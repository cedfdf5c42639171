"""The tree of exceptions."""

from __future__ import annotations

import inspect

import pytest

from interop import errors

BUILTINS = {
    "UnknownValueError": TypeError,
    "UnknownTargetError": TypeError,
    "BadRequestError": ValueError,
    "RefusedError": ValueError,
    "RefusedLeavesError": ValueError,
    "HandOffError": BufferError,
    "DoesNotFitError": MemoryError,
    "DensifyMemoryError": MemoryError,
    "NotInstalledError": ImportError,
    "DeviceError": RuntimeError,
    "ConversionError": RuntimeError,
    "Declined": RuntimeError,
    "PluginError": RuntimeError,
    "ConflictError": RuntimeError,
}


WARNINGS = {"ComplexWarning"}


def test_every_exception_is_listed_drawn_and_documented() -> None:
    """`__all__`, the classes of the module and the drawn tree agree."""
    classes = {n for n, c in vars(errors).items() if inspect.isclass(c)}
    assert classes == set(errors.__all__) == {*BUILTINS, "InteropError", *WARNINGS}
    for name in classes:
        assert name in (errors.__doc__ or "")
        assert inspect.getdoc(getattr(errors, name))


@pytest.mark.parametrize("name", BUILTINS)
def test_every_leaf_is_the_builtin_a_user_expects(name: str) -> None:
    """Each is an InteropError and the builtin that the tree promises."""
    cls = getattr(errors, name)
    assert issubclass(cls, errors.InteropError)
    assert issubclass(cls, BUILTINS[name])
    several = [[errors.RefusedError("so")]] if issubclass(cls, ExceptionGroup) else []
    assert str(cls("said", *several)) == "said"
