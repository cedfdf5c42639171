"""Dense formats in one call: all that a library declares, derived from DLPack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import lru_cache, partial
from typing import Any

from interop._model.conversion import Conversion, Cost
from interop._model.dtype import DTYPES, itemsize
from interop._model.extension import Declaration, DtypeNames
from interop._model.format import Format, Samples, package
from interop._model.spec import MEMORY_TRAITS, Spec, make_spec
from interop._model.typing import Value, ValueFunction
from interop.errors import HandOffError, PluginError

from .arrays import COPY, DTYPE, EMPTY, STRIDED, is_contiguous, overlaps, recast, stride_traits
from .dlpack import CheckedProducer, Export, checked_export, device_named
from .reference import Reference, referred

#: Traits of memory that no attribute tells.
_FLAGS = frozenset({"readonly", "unaligned"})
_GRAD = frozenset({"grad"})
_COST = Cost(1e-5, 8e9)
_KINDS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}


def dense_format(
    types: str | tuple[str, ...],
    *,
    dtypes: Set[str],
    from_dlpack: Reference = "",
    from_formats: Mapping[str, Reference] | None = None,
    name: str = "",
    devices: tuple[str, ...] = ("cpu",),
    carries: Iterable[str] = ("noncontiguous", "broadcast"),
    traits: Mapping[str, Reference] | None = None,
    grad: Reference = "",
    detach: Reference = "",
    namespace: str = "",
    copy: Reference = "",
    cast: Reference = "",
    dtype_type: str = "",
    array_interface: bool = False,
    shares: bool = True,
    cost: Cost = _COST,
    variants: Mapping[str, ValueFunction] | None = None,
    **fields: Any,
) -> list[Declaration]:
    """Return what makes a framework of a library of dense arrays that has DLPack.

    Values are described by their attributes `shape`, `strides`, `dtype` and `__dlpack_device__`,
    and by a DLPack capsule where one is missing. They leave by DLPack. A copy or a cast takes its
    way through another framework, unless `namespace`, `copy` or `cast` is given.

    Functions are given as such, as ``"module:function"``, which is imported at the first call, or
    as the name of an attribute of the value or of a method without arguments.

    Parameters
    ----------
    types : str or tuple of str
        The public names of the array types, as ``"module:Class"``; they may be defined elsewhere.
    dtypes : set of str
        The dtypes that it holds, and that DLPack exports.
    from_dlpack : function
        ``from_dlpack(producer) -> array``; shares the producer's memory.
    from_formats : mapping of str to function
        For other formats, or protocols, ``function(value) -> array``; shares the value's memory.
    name : str
        Name of the format; "" for the package of the first type.
    devices : tuple of str
        The device types where arrays can live.
    carries : iterable of str
        The traits of memory that arrays can have, and that may be handed to them.
    traits : mapping of str to function
        Further traits of the library's arrays, each with what tells whether a value has it.
    grad : function
        Tells whether a value is part of an autograd graph: ``"requires_grad"``, for one.
    detach : function
        Returns the array outside of the graph, sharing memory; "" for `from_dlpack`, where arrays
        export from within a graph.
    namespace : str
        A module of the array API standard by whose `astype` arrays are copied and cast.
    copy : function
        Returns a copy in C order.
    cast : function
        ``cast(value, dtype=name)`` returns a copy in C order, in another dtype or in the same.
    dtype_type : str
        The type of the library's dtype objects, as ``"module:Class"``; they have a `name`, or their
        text ends with it.
    array_interface : bool
        Whether arrays on the host show ``__array_interface__``, by which they then leave as well.
    shares : bool
        Whether `from_dlpack` and `from_formats` share memory, rather than copying it.
    cost : Cost
        How long it takes to make an array; the bandwidth counts for what copies.
    variants : mapping of str to function
        Further variants for `Samples`; one with a gradient is made by setting the attribute `grad`.
    **fields
        Fields of `Format` (``ndims=``, ``install=``, ``describe=``), in place of what is derived.

    Returns
    -------
    list of declarations
        A Format, Conversions and perhaps DtypeNames: for a plugin's hook, or `interop.register`.

    Examples
    --------
    >>> dense_format("mylib:Array", from_dlpack="mylib:from_dlpack", dtypes={"float32"})
    [Format('mylib', 1 dtypes on cpu), Conversion('dlpack', 'mylib', mylib_from_dlpack)]
    """
    check_names(dtypes=dtypes, devices=devices, carries=carries)
    types = (types,) if isinstance(types, str) else types
    name = name or package(types[0])
    marks = {"grad": grad, **(traits or {})} if grad else traits or {}
    carried = frozenset(carries) | marks.keys()
    memory = carried & MEMORY_TRAITS
    plain = partial(_outside, referred(grad), referred(detach)) if grad and detach else None
    arrays = _Arrays(name, frozenset(dtypes), carried, marks, plain)
    samples = {"grad": partial(_with_grad, grad)} if isinstance(grad, str) and grad else {}
    protocols = ["dlpack"] if from_dlpack or not array_interface else []
    protocols += ["array_interface"] if array_interface else []
    makers: dict[str, Reference] = dict(from_formats or {})
    if from_dlpack:
        makers["dlpack"] = partial(_from_dlpack, referred(from_dlpack), memory)
    made = EMPTY if shares else COPY
    leaving = EMPTY if detach else made
    detach = detach or (makers.get("dlpack", "") if grad else "")
    format_ = Format(
        name,
        types=types,
        describe=arrays.describe,
        dtypes=dtypes,
        devices=devices,
        carries=carried,
        exports=dict.fromkeys(protocols, dtypes),
        memory=arrays.memory,
        requires=package(types[0]),
        samples=Samples(variants={**samples, **(variants or {})}),
    )
    make = partial(
        Conversion,
        target=name,
        takes=memory,
        effects=made,
        cost=cost._replace(bandwidth=None) if shares else cost,
        devices=frozenset(devices),
    )
    return [
        format_._replace(**fields),
        *(
            make(source, function=referred(function), name=f"{name}_from_{source}")
            for source, function in makers.items()
        ),
        *_unary(name, memory, cost, leaving, detach, copy, cast or _cast_by(namespace)),
        *([DtypeNames(dtype_type, _dtype_name)] if dtype_type else []),
    ]


def check_names(**fields: Any) -> None:
    """Refuse a field that takes names and has text in their place, or none where some are needed.

    A field that is None is as good as left out.
    """
    for field, names in fields.items():
        if isinstance(names, str):
            msg = f"{field}={names!r} is text; write {field}={{{names!r}}}."
            raise PluginError(msg)
        if field in ("dtypes", "wraps", "devices") and names is not None and not names:
            msg = f"{field} is empty, so that no value could be converted."
            raise PluginError(msg)


def _cast_by(namespace: str) -> Reference:
    return partial(recast, namespace=namespace) if namespace else ""


def _unary(  # noqa: PLR0917 - called in one place
    name: str,
    memory: Set[str],
    cost: Cost,
    leaving: frozenset[str],
    detach: Reference,
    copy: Reference,
    cast: Reference,
) -> Iterator[Conversion]:
    """Yield the steps from the format to itself; `leaving` a graph has effects of its own."""
    step = partial(Conversion, name, name, takes=memory, devices=None)
    if detach:
        leave = partial(step, requires=_GRAD, drops=_GRAD, effects=leaving | {"detach"})
        seconds = cost if leaving else cost._replace(bandwidth=None)
        yield leave(referred(detach), cost=seconds, name="detach")
    if copy:
        # Half as long as a cast, which copies where nothing else does.
        faster = cost._replace(latency=cost.latency / 2)
        yield step(referred(copy), effects=COPY, cost=faster, name="copy")
    if cast:
        yield step(referred(cast), changes=DTYPE, effects=COPY, cost=cost, name="cast")


def _from_dlpack(make: Callable[[Value], Value], memory: Set[str], value: Value) -> Value:
    """Return an array over a producer's memory, if that is as the format can have it."""
    negative_strides, readonly = "negative_strides" in memory, "readonly" in memory
    return make(CheckedProducer(value, negative_strides=negative_strides, readonly=readonly))


def _outside(
    in_graph: Callable[[Value], Value], detach: Callable[[Value], Value], value: Value
) -> Value:
    """Return a value outside of the graph that it may be in, since many export only there."""
    return detach(value) if in_graph(value) else value


def _with_grad(attribute: str, value: Value) -> Value:
    """Return a sample: a value that takes part in an autograd graph."""
    setattr(value, attribute, True)
    return value


def _dtype_name(dtype: object) -> str:
    """Return the name of a dtype: its own if it has one, or else the end of its text."""
    last = str(dtype).rpartition(".")[2]
    words = (getattr(dtype, "name", ""), getattr(dtype, "__name__", ""), last)
    return next((name for word in words if (name := str(word).lower()) in DTYPES), last)


class _Arrays:
    """Reads what is known of a library's arrays without touching their elements."""

    def __init__(
        self,
        name: str,
        dtypes: Set[str],
        carries: Set[str],
        marks: Mapping[str, Reference],
        plain: Callable[[Value], Value] | None,
    ) -> None:
        self._name = name
        self._dtypes = dtypes
        self._marks = [(trait, referred(mark)) for trait, mark in marks.items()]
        self._plain = plain
        self._flags = (_FLAGS & carries) - marks.keys()
        self._has_strides = bool(STRIDED & carries)
        #: By dtype object, its name; None if it has none, as a dtype of vectors.
        self._names: dict[object, str | None] = {}
        #: By type, whether strides count bytes, and not elements: which, a contiguous array tells.
        self._in_bytes: dict[type, bool] = {}

    def describe(self, value: Value) -> Spec:
        """Return the spec of an array, from its attributes if they tell everything."""
        spec = self._by_attributes(value) or self._by_offer(value)
        marks = {trait for trait, mark in self._marks if mark(value)}
        return spec._replace(traits=spec.traits | marks) if marks else spec

    def _by_attributes(self, value: Value) -> Spec | None:
        in_bytes = self._in_bytes.get(type(value))
        name = self._dtype_name(getattr(value, "dtype", None))
        if (
            name is None
            or not hasattr(value, "shape")
            or self._flags
            or (in_bytes is None and self._has_strides)
        ):
            return None
        shape, traits = tuple(value.shape), EMPTY
        if self._has_strides:
            traits = _layout_traits(shape, tuple(value.strides), itemsize(name) if in_bytes else 1)
        # The same in all libraries, as the text of their devices is not.
        device = device_named(*value.__dlpack_device__()) if _has_dlpack(value) else "cpu"
        return make_spec(self._name, name, device=device, shape=shape, traits=traits)

    def _by_offer(self, value: Value) -> Spec:
        """Return the spec by what the value exports, and learn what its strides count."""
        offer = self._offer(value)
        strides, shape = getattr(value, "strides", None), offer.shape
        long = [axis for axis, length in enumerate(shape) if length > 1]
        tells = offer.contiguous and offer.bits > 8 and bool(long) and 0 not in shape
        if tells and isinstance(strides, (tuple, list)) and len(strides) == len(shape):
            self._in_bytes[type(value)] = strides[long[-1]] != 1
        flags = {"readonly": offer.readonly, "unaligned": not offer.aligned}
        traits = _layout_traits(shape, offer.strides, 1) | {t for t in self._flags if flags[t]}
        return make_spec(self._name, offer.dtype, device=offer.device, shape=shape, traits=traits)

    def _offer(self, value: Value) -> Export:
        return _offer(self._plain(value) if self._plain else value)

    def _dtype_name(self, dtype: Value) -> str | None:
        if dtype not in self._names:
            name = _dtype_name(dtype)
            self._names[dtype] = name if name in self._dtypes else None
        return self._names[dtype]

    def memory(self, value: Value) -> tuple[tuple[int, int], ...]:
        """Return the address and the length of the memory an array lies in."""
        try:
            return self._offer(value).extents
        except HandOffError:  # it cannot leave as it is now, so that nothing tells
            return ()


@lru_cache(maxsize=1024)
def _layout_traits(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, size: int
) -> frozenset[str]:
    """Return the traits of strides in which one element counts as `size`; None: C order."""
    if strides is None or 0 in shape or is_contiguous(shape, strides, size):
        return EMPTY
    traits = stride_traits(shape, strides, size)
    return traits | {"broadcast"} if overlaps(shape, strides, size) else traits


def _has_dlpack(value: Value) -> bool:
    return hasattr(value, "__dlpack_device__")


def _offer(value: Value) -> Export:
    """Return what a value exports: by DLPack, or else by its array interface."""
    if _has_dlpack(value):
        return checked_export(value)
    entries = value.__array_interface__
    shape, kind, size = tuple(entries["shape"]), entries["typestr"][1], int(entries["typestr"][2:])
    strides = entries.get("strides")
    in_order = strides is None or is_contiguous(shape, strides, size)
    address, readonly = entries["data"]
    return Export(
        "bool" if kind == "b" else f"{_KINDS[kind]}{8 * size}",
        shape,
        None if in_order else tuple(step // size for step in strides),
        "cpu",
        readonly,
        copied=False,
        versioned=True,
        data=address,
        bits=8 * size,
        device_type=1,
        backwards=not in_order and min(strides) < 0,
        contiguous=in_order,
    )
