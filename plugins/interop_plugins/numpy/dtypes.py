"""The dtypes of NumPy and ml_dtypes: their names, and the objects that the names stand for."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

from interop.errors import BadRequestError
from interop.kit import COMPLEX, INTEGERS, REALS, dtype_name
from interop.plugin import DTYPES

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
    Scalar: TypeAlias = np.generic[Any]
    DType: TypeAlias = np.dtype[Any]

#: complex32 is left out: torch's would otherwise be expected as an ml_dtypes array, which NumPy
#: can do next to nothing with.
HELD = frozenset(DTYPES) - {"complex32"}
#: The dtypes that NumPy itself can name in DLPack and in its own protocols.
PLAIN = REALS | COMPLEX | INTEGERS | {"bool"}
#: The dtypes that only ml_dtypes can hold.
ONLY_ML_DTYPES = HELD - PLAIN - {"longdouble", "clongdouble"}
#: The floats of 8 or 16 bits whose bits other frameworks can carry as unsigned integers.
NARROW_REALS = frozenset(d for d in ONLY_ML_DTYPES if DTYPES[d].kind == "f")

_PYTHON_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    complex: "complex128",
}


def requested_name(dtype: DType) -> str:
    """Return the name of a dtype that a caller asks for.

    Raises
    ------
    BadRequestError
        It is in the other byte order, which no result is in.
    """
    name = dtype_name(dtype)
    if not dtype.isnative and not dtype.names:
        msg = (
            f"dtype={dtype.str!r} is in the other byte order, and results are in the machine's; "
            f"ask for {name!r}, and swap the result with NumPy."
        )
        raise BadRequestError(msg)
    return name


@cache
def dtype_named(name: str) -> DType:
    """Return the dtype object of a name.

    Raises
    ------
    BadRequestError
        The installed ml_dtypes is too old to have it.
    """
    import numpy as np

    if name not in ONLY_ML_DTYPES:
        return np.dtype(name)
    import ml_dtypes

    scalar_type = getattr(ml_dtypes, name, None)
    if scalar_type is None:
        msg = f"ml_dtypes {ml_dtypes.__version__} has no {name}; install a newer ml_dtypes."
        raise BadRequestError(msg)
    dtype: DType = np.dtype(scalar_type)
    return dtype


def class_name(kind: type) -> str:
    """Return the dtype that a Python number's type or a scalar type stands for.

    Raises
    ------
    TypeError
        The type is none of these.
    """
    if kind in _PYTHON_TYPES:
        return _PYTHON_TYPES[kind]
    if not _is_scalar_type(kind):
        msg = f"{kind.__module__}.{kind.__qualname__} is not a dtype; name one, such as 'float32'."
        raise TypeError(msg)
    return dtype_name(sys.modules["numpy"].dtype(kind))


def _is_scalar_type(kind: type) -> bool:
    """Tell whether a type is that of NumPy's or ml_dtypes' scalars of one dtype."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not issubclass(kind, numpy.generic):
        return False
    # An abstract one, such as numpy.floating, stands for several dtypes.
    return kind.__module__ != "numpy" or kind in numpy.ScalarType
