"""dtypes by name, and which of them hold every value of another.

The names are NumPy's and ml_dtypes'. Planning needs the width of a dtype and the set of numbers
that it can represent. Both are constants, so nothing is imported. The parameters of the
floating-point kinds are those that ``numpy.finfo`` and ``ml_dtypes.finfo`` report; a test compares
this table with both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from interop.errors import ComplexWarning

from .text import listed, suggestion


class DtypeFacts(NamedTuple):
    """The facts of a dtype that planning needs.

    Parameters
    ----------
    kind : str
        ``"b"`` bool, ``"u"`` unsigned, ``"i"`` signed, ``"f"`` real, ``"c"`` complex.
    bits : int
        Bits of one stored element.
    digits : int
        Bits of magnitude (integers) or significand bits with the hidden one (floats).
    low, high : int
        Exponents of two of the smallest subnormal and of the largest value (floats only).
    infinite, signed_zero : bool
        Whether infinities and a negative zero exist (floats only).
    """

    kind: str
    bits: int
    digits: int
    low: int = 0
    high: int = 0
    infinite: bool = True
    signed_zero: bool = True


DTYPES: dict[str, DtypeFacts] = {
    "bool": DtypeFacts("b", 8, 1),
    **{f"uint{n}": DtypeFacts("u", n, n) for n in (8, 16, 32, 64)},
    **{f"int{n}": DtypeFacts("i", n, n - 1) for n in (8, 16, 32, 64)},
    # ml_dtypes stores the narrow integers one to a byte.
    **{f"uint{n}": DtypeFacts("u", 8, n) for n in (1, 2, 4)},
    **{f"int{n}": DtypeFacts("i", 8, n - 1) for n in (1, 2, 4)},
    "float16": DtypeFacts("f", 16, 11, -24, 15),
    "bfloat16": DtypeFacts("f", 16, 8, -133, 127),
    "float32": DtypeFacts("f", 32, 24, -149, 127),
    "float64": DtypeFacts("f", 64, 53, -1074, 1023),
    "longdouble": DtypeFacts("f", 128, 64, -16445, 16383),
    "float8_e3m4": DtypeFacts("f", 8, 5, -6, 3),
    "float8_e4m3": DtypeFacts("f", 8, 4, -9, 7),
    "float8_e4m3b11fnuz": DtypeFacts("f", 8, 4, -13, 4, infinite=False, signed_zero=False),
    "float8_e4m3fn": DtypeFacts("f", 8, 4, -9, 8, infinite=False),
    "float8_e4m3fnuz": DtypeFacts("f", 8, 4, -10, 7, infinite=False, signed_zero=False),
    "float8_e5m2": DtypeFacts("f", 8, 3, -16, 15),
    "float8_e5m2fnuz": DtypeFacts("f", 8, 3, -17, 15, infinite=False, signed_zero=False),
    "float8_e8m0fnu": DtypeFacts("f", 8, 1, -127, 127, infinite=False, signed_zero=False),
    "float6_e2m3fn": DtypeFacts("f", 8, 4, -3, 2, infinite=False),
    "float6_e3m2fn": DtypeFacts("f", 8, 3, -4, 4, infinite=False),
    "float4_e2m1fn": DtypeFacts("f", 8, 2, -1, 2, infinite=False),
    "complex32": DtypeFacts("c", 32, 11, -24, 15),
    "complex64": DtypeFacts("c", 64, 24, -149, 127),
    "complex128": DtypeFacts("c", 128, 53, -1074, 1023),
    "clongdouble": DtypeFacts("c", 256, 64, -16445, 16383),
}

#: The dtypes of everyday use.
COMMON = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16"),
    *("float32", "float64", "complex64", "complex128"),
)

#: Common spellings of dtypes that are not their names. Where libraries disagree, as on "f8", it is
#: NumPy's meaning that counts.
SPELLINGS = {
    "bool_": "bool",
    "int": "int64",
    "float": "float64",
    "complex": "complex128",
    "short": "int16",
    "long": "int64",
    "uint": "uint64",
    "half": "float16",
    "single": "float32",
    "double": "float64",
    "bf16": "bfloat16",
    **{f"fp{n}": f"float{n}" for n in (16, 32, 64)},
    **{f"f{n}": f"float{n}" for n in (32, 64)},
    **{f"{name[0]}{n}": f"{name}{n}" for name in ("int", "uint") for n in (16, 32, 64)},
    **{f"{name[0]}{n}": f"{name}{8 * n}" for name in ("int", "uint") for n in (1, 2, 4, 8)},
    **{f"f{n}": f"float{8 * n}" for n in (2, 4, 8)},
    **{f"c{n}": f"complex{8 * n}" for n in (8, 16)},
}

#: The dtype that each word stands for, in advice: a common one where others could be meant.
DTYPE_WORDS = {
    **dict.fromkeys(("fp8", "float8"), "float8_e4m3fn"),
    **dict.fromkeys(("fp4", "float4"), "float4_e2m1fn"),
    **SPELLINGS,
    **{name: name for name in DTYPES},
}

#: The dtypes that describe Python's numbers without a dtype of their own.
NUMBERS = ("int64", "float64", "complex128")

#: The kinds of dtypes by the names of the array API standard, with the kinds of `DtypeFacts` in
#: each.
KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}

#: The kind that each word stands for, in advice.
_KIND_WORDS = {
    **{word: f"{word} integer" for word in ("signed", "unsigned")},
    **dict.fromkeys(("floating-point", "floats", "reals", "inexact"), "real floating"),
    "numbers": "numeric",
    **{kind: kind for kind in KINDS},
}

_CARRIERS = {8: "uint8", 16: "uint16"}

_WIDENING = {"b": 0, "u": 1, "i": 2, "f": 3, "c": 4}


def spelled(word: str) -> str:
    """Return the name of a dtype that may be spelled otherwise; any other word as it is."""
    # NumPy writes the machine's byte order before its codes.
    code = word.lstrip("=|<" if sys.byteorder == "little" else "=|>")
    return SPELLINGS.get(code, word)


def unknown_dtype(dtype: object) -> str:
    """Return the advice about a dtype that does not exist."""
    return suggestion(dtype, DTYPE_WORDS, f"the dtypes are {listed(common_first(DTYPES))}.")


def unknown_kind(word: str) -> str:
    """Return the advice about a key of a mapping that is neither a dtype nor a kind of dtypes."""
    kinds = ", ".join(map(repr, KINDS))
    words = {**DTYPE_WORDS, **_KIND_WORDS}
    return suggestion(word.replace("_", " "), words, f"the kinds of dtypes are {kinds}.")


def dtypes_of_kind(kind: str) -> tuple[str, ...]:
    """Return the dtypes of one of `KINDS`."""
    return tuple(name for name, dtype in DTYPES.items() if dtype.kind in KINDS[kind])


def common_first(dtypes: Iterable[str]) -> list[str]:
    """Return dtypes in the order of messages: those of everyday use before the others."""
    order = list(dict.fromkeys([*COMMON, *DTYPES]))
    return sorted(dtypes, key=lambda d: (order.index(d) if d in order else len(order), d))


@lru_cache(maxsize=256)
def itemsize(dtype: str | None) -> int:
    """Return the bytes of one element of `dtype`.

    Parameters
    ----------
    dtype : str or None
        A name of `DTYPES`.

    Returns
    -------
    int
        8 for any other.
    """
    facts = DTYPES.get(dtype or "")
    return facts.bits // 8 if facts else 8


def bit_carrier(dtype: str | None) -> str | None:
    """Name the unsigned integer of the same width that can carry the bits of `dtype`.

    Only the floats that most frameworks do not know have one: 8- and 16-bit ml_dtypes.
    """
    facts = DTYPES.get(dtype or "")
    if facts is None or facts.kind != "f" or dtype == "float16":
        return None
    return _CARRIERS.get(facts.bits)


@lru_cache(maxsize=1024)
def preserves(source: str | None, target: str | None) -> bool:
    """Return whether every value of `source` is a value of `target`.

    Parameters
    ----------
    source, target : str or None
        Names of `DTYPES`.

    Returns
    -------
    bool
        Any other name preserves only itself.
    """
    if source == target:
        return True
    a, b = DTYPES.get(source or ""), DTYPES.get(target or "")
    if a is None or b is None or _WIDENING[a.kind] > _WIDENING[b.kind]:
        return False
    if b.kind in "bui":
        # A signed target needs one more bit than the magnitude, which `digits` leaves out.
        return a.digits <= b.digits
    if a.kind in "bui":
        # The lowest integer, -2**digits, is a power of two but one binade higher.
        reach = b.high if a.kind == "i" else b.high + 1
        # Reals of one digit are powers of two, among which there is no zero.
        return a.digits <= min(b.digits, reach) and b.digits > 1
    return (
        a.digits <= b.digits
        and a.low >= b.low
        and a.high <= b.high
        and (b.infinite or not a.infinite)
        and (b.signed_zero or not a.signed_zero)
    )


def _kin(dtype: str) -> str:
    """Return the kind of a dtype, signed or not."""
    kind = DTYPES[dtype].kind
    return "i" if kind == "u" else kind


def same_kind(dtype: str | None, other: str | None) -> bool:
    """Return whether both dtypes are of bools, of integers, of floats or of complex numbers."""
    return {dtype, other} <= DTYPES.keys() and _kin(str(dtype)) == _kin(str(other))


def imaginary_loss(dtype: str | None, target: str | None) -> Warning | None:
    """Return the warning about a cast that keeps only the real parts of complex numbers."""
    if dtype not in DTYPES or target not in DTYPES:
        return None
    if DTYPES[dtype].kind != "c" or DTYPES[target].kind in "cb":
        return None
    return ComplexWarning("Casting complex values to real discards the imaginary part")


def promoted(source: str, available: Iterable[str]) -> str | None:
    """Return the narrowest dtype of `available` that holds every value of `source`."""
    fits = [d for d in available if d in DTYPES and preserves(source, d)]
    return min(fits, key=lambda d: (_kin(d) != _kin(source), DTYPES[d].bits, d), default=None)


def narrowed(source: str, available: Iterable[str]) -> str | None:
    """Return the widest dtype of `available` of the kind of `source`; it may not hold all values.

    An integer keeps its sign, or the lack of one, if `available` has such a dtype.
    """
    if source not in DTYPES:
        return None
    candidates = [d for d in available if d in DTYPES and _kin(d) == _kin(source)]
    kind = DTYPES[source].kind
    return max(
        candidates, key=lambda d: (DTYPES[d].kind == kind, DTYPES[d].digits, d), default=None
    )
