"""Notation: values and targets as they are written on a command line.

``format[:device[:index]][:dtype][:shape][:trait…]``, as in ``torch:cuda:float32:4096x4096`` or
``numpy:float64:1000:readonly``. Whatever is left out gets a plain default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from interop._api.inspection import Inspection
from interop._model.device import NICKNAMES, device_name
from interop._model.dtype import DTYPES, common_first, itemsize
from interop._model.format import Format
from interop._model.spec import Spec
from interop._model.text import counted_axes, listed, suggestion
from interop._request.naming import traits
from interop.errors import BadRequestError, UnknownValueError
from interop.testing._sample import preferred

if TYPE_CHECKING:
    from interop._api.interop import Interop

_INDEX = re.compile(r"[0-9]+")
_SHAPE = re.compile(r"[0-9]+(x[0-9]+)*|scalar")
#: A shape as people write it elsewhere: (3, 4), 3*4 …
_TUPLE = re.compile(r"[(\[]?[0-9]+(\s*[,*X×]\s*[0-9]+)*,?[)\]]?")
_NEGATIVE = re.compile(r"-?[0-9]+(x-?[0-9]+)*")
#: No system counts as many bytes or elements.
_TOO_MANY = 2**63
#: The number of elements of a value without a shape.
_ELEMENTS = 1024 * 1024
#: The dtype of quantized codes, for which the notation has no word.
_CODES = "uint8"


class Description(NamedTuple):
    """The words of a text that describes a value or a target, by their meaning."""

    format: str
    device: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    traits: frozenset[str] = frozenset()


def read(interop: Interop, text: str) -> Description:
    """Return the description of a value or of a target that a text holds.

    Raises
    ------
    BadRequestError
        A word in it means nothing.
    """
    name, *parts = text.split(":")
    vocabulary = _Vocabulary(interop)
    description = Description(vocabulary.frameworks.get(name, name))
    for word in parts:
        description = _with(description, word, text, vocabulary)
    return description


class _Vocabulary:
    """The devices, dtypes and traits of everything that is registered."""

    def __init__(self, interop: Interop) -> None:
        formats = [declared.format for declared in interop.formats()]
        self.frameworks = {alias: f.framework for f in formats for alias in f.aliases}
        self.devices = {"cpu", *(device for format_ in formats for device in format_.devices)}
        self.devices_of = {format_.name: format_.devices for format_ in formats}
        self.dtypes = {*DTYPES, *(dtype for format_ in formats for dtype in format_.dtypes)}
        self.traits = traits(Inspection(interop).registry)


def _with(description: Description, word: str, text: str, vocabulary: _Vocabulary) -> Description:
    device = description.device
    indexed = device is not None and ":" not in device
    if _INDEX.fullmatch(word) and indexed and description[2:] == (None, None, frozenset()):
        return description._replace(device=device_name(f"{device}:{word}"))
    if _SHAPE.fullmatch(word):
        axes = () if word == "scalar" else tuple(map(_length, word.split("x")))
        return _set_once(description, "shape", axes, text)
    if word in vocabulary.dtypes:
        return _set_once(description, "dtype", word, text)
    if word in vocabulary.devices:
        return _set_once(description, "device", word, text)
    if word in vocabulary.traits:
        return description._replace(traits=description.traits | {word})
    if _TUPLE.fullmatch(word):
        lengths = "x".join(re.findall(r"[0-9]+", word))
        msg = f"{word!r} in {text!r} is not a shape; write a shape as {lengths}."
        raise BadRequestError(msg)
    if _NEGATIVE.fullmatch(word):
        msg = f"{word!r} in {text!r} is not a shape; lengths must not be negative."
        raise BadRequestError(msg)
    options = vocabulary.dtypes | vocabulary.devices | vocabulary.traits
    close = get_close_matches(word, options, 1, cutoff=0.7)
    devices = ", ".join(vocabulary.devices_of.get(description.format, vocabulary.devices))
    others = f"the devices are {devices}; 'interop plan -h' lists the traits."
    hint = f"did you mean {close[0]!r}?" if close else others
    msg = f"{word!r} in {text!r} is not a device, dtype, shape or trait; {hint}"
    raise BadRequestError(msg)


def _length(word: str) -> int:
    """Return a length; Python reads no more than a few thousand digits."""
    return int(word) if len(word) < len(str(_TOO_MANY)) else _TOO_MANY


def _set_once(description: Description, field: str, value: Any, text: str) -> Description:
    if getattr(description, field) is not None:
        msg = f"{text!r} names two {field}s; name one."
        raise BadRequestError(msg)
    return description._replace(**{field: value})


def read_spec(interop: Interop, text: str, density: float = 0.01) -> Spec:
    """Return the spec of a value that a text describes.

    Parameters
    ----------
    interop : Interop
    text : str
    density : float
        The share of the elements that a sparse array stores.

    Raises
    ------
    UnknownValueError
        There is no such format.
    BadRequestError
        A word means nothing, or the format has no such values.
    """
    formats = {declared.name: declared.format for declared in interop.formats()}
    description = read(interop, text)
    format_ = formats.get(description.format) or _first_dense(description, formats.values())
    if format_ is None:
        raise UnknownValueError(_no_dense_format(interop, description))
    device = _device(description, format_)
    dtype = _dtype(description, format_, device)
    wrapped = None if format_.wrapper is None else _wrapped(interop, format_)
    shape = _shape(description, format_, formats.get(wrapped or "", format_))
    nbytes = prod(shape) * itemsize(dtype)
    spec = Spec(format_.name, dtype, device, shape, description.traits, nbytes, wrapped=wrapped)
    if format_.index_dtypes:
        spec = _sparse(spec, format_, density if format_.is_sparse else 1.0)
    elif format_.layout == "affine":
        spec = _quantized(spec, format_)
    if max(spec.nbytes, *spec.shape, 0) >= _TOO_MANY:
        msg = f"{text!r} has too many elements for any machine; give a smaller shape."
        raise BadRequestError(msg)
    return spec


def _wrapped(interop: Interop, wrapper: Format) -> str | None:
    """Return the format that a wrapper usually wraps, going by its samples or its conversions."""
    wrappers = {d.name for d in interop.formats() if d.format.wrapper is not None}
    sources = (
        declared.conversion.source
        for declared in interop.conversions()
        if declared.conversion.target == wrapper.name and declared.conversion.source not in wrappers
    )
    return wrapper.samples.source or next(sources, None)


def unknown_format(interop: Interop, name: str) -> str:
    """Return the message about a word that names no format."""
    for plugin in interop.plugins():
        if plugin.name == name and plugin.state != "loaded":
            return f"there is no format {name!r}: its plugin is not loaded ({plugin.reason})."
    formats = [declared.format for declared in interop.formats()]
    device = NICKNAMES.get(name, name)
    if any(device in format_.devices for format_ in formats):
        return f"{name!r} is a device; write it behind a format: <format>:{device}."
    names = {name for f in formats for name in (f.framework, f.name)}
    move = suggestion(name, names, "'interop formats' lists them all.")
    return f"there is no format {name!r}; {move}"


def _first_dense(description: Description, formats: Iterable[Format]) -> Format | None:
    """Return the first dense format of a framework that has the described number of axes.

    Frameworks whose arrays have one axis or two have no format of their own name.
    """
    shape = description.shape
    for format_ in formats:
        fits = shape is None or format_.ndims is None or len(shape) in format_.ndims
        if format_.framework == description.format and format_.is_dense and fits:
            return format_
    return None


def _no_dense_format(interop: Interop, description: Description) -> str:
    """Return the message about a framework without a dense format of the described shape."""
    framework = description.format
    formats = [d.format for d in interop.formats() if d.name.startswith(f"{framework}.")]
    if not formats:
        return unknown_format(interop, framework)
    names = listed(format_.name for format_ in formats)
    if any(format_.is_dense for format_ in formats):
        axes = counted_axes(len(description.shape or ()))
        return f"{framework} has no dense format with {axes}; its formats are {names}."
    kind = "sparse" if all(format_.index_dtypes for format_ in formats) else "quantized"
    return f"{framework} has only {kind} formats; name one of {names}."


def _device(description: Description, format_: Format) -> str:
    device = description.device or format_.devices[0]
    if device.partition(":")[0] not in format_.devices:
        devices = " and ".join(format_.devices)
        msg = f"{format_.name} cannot be on {device}; it lives on {devices}."
        raise BadRequestError(msg)
    return device


def _dtype(description: Description, format_: Format, device: str) -> str:
    dtypes = format_.holds(device)
    dtype = description.dtype or next(iter(preferred(dtypes)), "float32")
    if dtype not in dtypes and dtype in DTYPES:
        names = listed(common_first(dtypes & DTYPES.keys()))
        msg = f"{format_.name} does not hold {dtype} on {device}; it holds {names}."
        raise BadRequestError(msg)
    return dtype


def _shape(description: Description, format_: Format, holder: Format) -> tuple[int, ...]:
    """Return the described shape, or a plain one that the format of the numbers can have."""
    if description.shape is None:
        return plain_shape(common_axes(format_, holder))
    axes = len(description.shape)
    if format_.ndims is not None and axes not in format_.ndims:
        counts = " or ".join(map(str, sorted(format_.ndims)))
        msg = f"{format_.name} does not have {axes} axes; give a shape of {counts}."
        raise BadRequestError(msg)
    return description.shape


def plain_shape(axes: int | None) -> tuple[int, ...]:
    """Return a shape with so many axes and about a million elements, so that size matters."""
    if not axes:
        return ()
    side = round(_ELEMENTS ** (1 / axes))
    return (side,) * axes


def _sparse(spec: Spec, format_: Format, density: float) -> Spec:
    """Return the spec of a sparse array that stores a share of its elements."""
    nnz = round(spec.size * density)
    index = min(format_.index_dtypes, key=lambda dtype: (itemsize(dtype), dtype))
    roles = () if format_.components is None else format_.components.roles
    integers = _integers(spec.shape, nnz, roles)
    nbytes = nnz * itemsize(spec.dtype) + integers * itemsize(index)
    return spec._replace(nnz=nnz, index_dtype=index, nbytes=nbytes)


def _integers(shape: tuple[int, ...], nnz: int, roles: Iterable[str]) -> int:
    """Return the number of indices and pointers of a sparse array, or of offsets of rows."""
    if "offsets" in roles:
        return shape[0] + 1
    if "pointers" in roles and shape:
        return nnz + shape[0] + 1
    return nnz * len(shape)


def _quantized(spec: Spec, format_: Format) -> Spec:
    """Return the spec of a quantized array with one scale."""
    assert format_.components is not None
    possible = format_.components.code_dtypes or {_CODES}
    codes = _CODES if _CODES in possible else min(possible)
    return spec._replace(code_dtype=codes, nbytes=spec.size * itemsize(codes))


def common_axes(*formats: Format) -> int | None:
    """Return a number of axes that values of all of some formats can have, two if that can be."""
    limits = [frozenset(format_.ndims) for format_ in formats if format_.ndims is not None]
    common = frozenset.intersection(*limits) if limits else frozenset({2})
    return 2 if 2 in common else min(common, default=None)
