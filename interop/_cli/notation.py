"""Notation: values and targets as they are written on a command line.

``format[:device[:index]][:dtype][:shape][:trait…]``, as in ``torch:cuda:float32:4096x4096`` or
``numpy:float64:1000:readonly``. What is left out is as plain as can be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from interop._calibration.measure import preferred
from interop._model.dtype import DTYPES, itemsize
from interop._model.format import Format, common_axes
from interop._model.spec import TRAITS, Spec
from interop.errors import BadRequestError, UnknownValueError

if TYPE_CHECKING:
    from interop._api.interop import Interop

__all__ = ["Words", "plain_shape", "read", "read_spec"]

_SHAPE = re.compile(r"\d+(x\d+)*|scalar")
#: Elements of a value of which no shape is given.
_ELEMENTS = 1024 * 1024
#: The dtype of the codes of a quantized array, of which nothing is said.
_CODES = "uint8"


class Words(NamedTuple):
    """What a text says, each word in its place."""

    format: str
    device: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    traits: frozenset[str] = frozenset()


def read(face: Interop, text: str) -> Words:
    """Return what a text says of a value or of a target.

    Raises
    ------
    BadRequestError
        A word in it is none.
    """
    name, *rest = text.split(":")
    known = _Known(face)
    words = Words(name)
    for word in rest:
        words = _with(words, word, text, known)
    return words


class _Known:
    """The words that there are."""

    def __init__(self, face: Interop) -> None:
        formats = [one.format for one in face.formats()]
        self.devices = {"cpu", *(device for one in formats for device in one.devices)}
        conversions = [one.conversion for one in face.conversions()]
        self.traits = {
            *TRAITS,
            *(trait for one in formats for trait in one.carries),
            *(trait for one in conversions for trait in one.takes | one.requires),
        }
        self.dtypes = {*DTYPES, *(dtype for one in formats for dtype in one.dtypes)}


def _with(words: Words, word: str, text: str, known: _Known) -> Words:
    indexed = words.device is not None and ":" not in words.device
    if word.isdecimal() and indexed and words[2:] == (None, None, frozenset()):
        return words._replace(device=f"{words.device}:{word}")
    if _SHAPE.fullmatch(word):
        axes = () if word == "scalar" else tuple(map(int, word.split("x")))
        return _once(words, "shape", axes, text)
    if word in known.dtypes:
        return _once(words, "dtype", word, text)
    if word in known.devices:
        return _once(words, "device", word, text)
    if word in known.traits:
        return words._replace(traits=words.traits | {word})
    close = get_close_matches(word, known.dtypes | known.devices | known.traits, 1)
    hint = f"did you mean {close[0]!r}?" if close else "write format:device:dtype:4096x4096:trait."
    msg = f"{word!r} in {text!r} is no device, dtype, shape or trait; {hint}"
    raise BadRequestError(msg)


def _once(words: Words, field: str, given: Any, text: str) -> Words:
    if getattr(words, field) is not None:
        msg = f"{text!r} names two {field}s; name one."
        raise BadRequestError(msg)
    return words._replace(**{field: given})


def read_spec(face: Interop, text: str, density: float = 0.01) -> Spec:
    """Return the spec of a value that a text describes.

    Parameters
    ----------
    face : Interop
    text : str
    density : float
        Of a sparse array, the share of the elements that are stored.

    Raises
    ------
    UnknownValueError
        There is no such format.
    BadRequestError
        A word is none, or the format cannot be such.
    """
    formats = {one.name: one.format for one in face.formats()}
    words = read(face, text)
    one = formats.get(words.format)
    if one is None:
        raise UnknownValueError(_unknown(words.format, formats))
    device = words.device or one.devices[0]
    if device.partition(":")[0] not in one.devices:
        msg = f"{one.name} does not live on {device}; it lives on {' and '.join(one.devices)}."
        raise BadRequestError(msg)
    dtype = words.dtype or next(iter(preferred(one.holds(device))), "float32")
    if dtype not in one.holds(device) and dtype in DTYPES:
        holds = ", ".join(sorted(one.holds(device), key=list(DTYPES).index))
        msg = f"{one.name} does not hold {dtype} on {device}; it holds {holds}."
        raise BadRequestError(msg)
    shape = plain_shape(common_axes(one)) if words.shape is None else words.shape
    if one.ndims is not None and len(shape) not in one.ndims:
        msg = f"{one.name} does not have {len(shape)} axes; give a shape that it can have."
        raise BadRequestError(msg)
    spec = Spec(one.name, dtype, device, shape, words.traits, prod(shape) * itemsize(dtype))
    if one.index_dtypes:
        return _sparse(spec, one, density)
    return _quantized(spec) if one.layout == "affine" else spec


def plain_shape(axes: int | None) -> tuple[int, ...]:
    """Return a shape of as many axes, and of a size that matters."""
    if not axes:
        return ()
    side = round(_ELEMENTS ** (1 / axes))
    return (side,) * axes


def _unknown(name: str, formats: Mapping[str, Format]) -> str:
    within = [one for one in formats if one.startswith(f"{name}.")]
    if within:
        return f"{name!r} has no dense format; name one of {', '.join(within)}."
    close = get_close_matches(name, formats, 1)
    move = f"did you mean {close[0]!r}?" if close else "'interop formats' lists those there are."
    return f"there is no format {name!r}; {move}"


def _sparse(spec: Spec, one: Format, density: float) -> Spec:
    """Return the spec of a sparse array that stores a share of its elements."""
    nnz = round(spec.size * density)
    index = min(one.index_dtypes, key=lambda dtype: (itemsize(dtype), dtype))
    integers = _integers(spec.shape, nnz, one.roles)
    nbytes = nnz * itemsize(spec.dtype) + integers * itemsize(index)
    return spec._replace(nnz=nnz, index_dtype=index, nbytes=nbytes)


def _integers(shape: tuple[int, ...], nnz: int, roles: Iterable[str]) -> int:
    """Return how many indices and pointers there are."""
    if "pointers" in roles and shape:
        return nnz + shape[0] + 1
    return nnz * len(shape)


def _quantized(spec: Spec) -> Spec:
    """Return the spec of a quantized array with one scale."""
    return spec._replace(code_dtype=_CODES, nbytes=spec.size * itemsize(_CODES))
