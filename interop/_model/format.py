"""A format: one concrete container of a framework, declared as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, NamedTuple

from interop._model.typing import Value, ValueFunction

from .conversion import Conversion
from .device import PAGE_LOCKED, device_type, is_host_part
from .spec import COLUMN_TRAITS, Spec

#: The dtypes of composite values that `Components.fast_unpack` may unpack.
PLAIN_DTYPES = frozenset(
    {"bool", "uint8", "int8", "int16", "int32", "int64"}
    | {"float32", "float64", "complex64", "complex128"}
)

_NOTHING: Mapping[str, Any] = {}


def itself(value: Value) -> Value:
    """Return a value as it is.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    object
        The same object.
    """
    return value


def package(name: str) -> str:
    """Return the package of a module, or of ``"module:Class"``."""
    return name.partition(":")[0].partition(".")[0]


class Parts(NamedTuple):
    """A composite value unpacked: the dense arrays it is made of, and how they belong together.

    Parameters
    ----------
    shape : tuple of int, in elements
        Shape of the whole; of ragged rows, their number and the length of the longest.
    arrays : dict of str to array
        The component arrays by role. Compressed sparse layouts have ``values``, ``indices`` and
        ``pointers``; coordinate lists ``values`` and ``indices_0``, ``indices_1`` … (one per
        axis); ragged rows ``values`` and ``offsets``, the numbers of values before each row and
        before the end; affine quantization ``codes``, ``scale`` and ``zero_point``, and
        perhaps ``bias``.
    facts : dict of str to object
        Whatever else the layout needs: of a quantized array ``axis`` and ``block_size``, which
        may be None, and ``dtype``, the name of that of its numbers; ``canonical`` of a sparse one.
    """

    shape: tuple[int, ...]
    arrays: dict[str, Value]
    facts: Mapping[str, Any] = _NOTHING


#: The layouts of compressed lines, and the axis along which the lines run.
LINES = {"csr": -1, "csc": -2}


class Components(NamedTuple):
    """How a composite format is made of dense arrays.

    Two formats of one layout convert into each other by their components, with no conversion
    declared.

    Parameters
    ----------
    layout : str
        The meaning of the arrays together: ``"csr"``, ``"coo"``, ``"affine"`` …
    format : str
        The format of the component arrays.
    roles : mapping of str to str
        For each role of :class:`Parts` (``indices`` stands for every ``indices_N``), the field of
        `Spec` that names its dtype, or a dtype. A role that other formats of the layout lack is
        one that few values have; those have a trait that says so, which the others do not carry.
    unpack : callable
        ``unpack(value) -> Parts``; the arrays share the value's memory, except the roles in
        `unpack_copies`.
    pack : callable
        ``pack(parts) -> value``; shares the arrays, except the roles in `pack_copies`.
    fast_unpack : callable or None
        As `unpack`, for the plainest values only: of the very type, on the host, of a dtype of
        :data:`PLAIN_DTYPES`, without any trait. It answers `NotImplemented` for all others.
    unpack_keeps : set of str
        Traits that survive unpacking, beyond those of memory.
    unpack_copies : set of str
        Roles that unpacking has to copy.
    pack_copies : set of str
        Roles that packing has to copy.
    packed_dtypes : set of str
        Dtypes of which packing and unpacking copy the values, as bools that are bits in Arrow.
    pack_adds : set of str
        Traits that every packed value has, as ``immutable``.
    pack_refuses : set of str
        Traits that no value of another format may have when it is packed.
    pack_requires : set of str
        Traits that a value of another format must have when it is packed.
    code_dtypes : set of str
        The dtypes that codes may have when they are packed; empty if they may have any.
    pack_seconds : float, in seconds
        How long it takes to unpack one value, or to pack one.
    """

    layout: str
    format: str
    roles: Mapping[str, str]
    unpack: Callable[[Value], Parts]
    pack: Callable[[Parts], Value]
    fast_unpack: Callable[[Value], Parts] | None = None
    unpack_keeps: Set[str] = frozenset()
    unpack_copies: Set[str] = frozenset()
    pack_copies: Set[str] = frozenset()
    packed_dtypes: Set[str] = frozenset()
    pack_adds: Set[str] = frozenset()
    pack_refuses: Set[str] = frozenset()
    pack_requires: Set[str] = frozenset()
    code_dtypes: Set[str] = frozenset()
    pack_seconds: float = 2e-6


class Wrapper(NamedTuple):
    """A format whose values only wrap a value of another format, perhaps under labels.

    Such a value is described as the wrapped one, and unwrapped on the way to other frameworks.

    Parameters
    ----------
    unwrap : callable
        ``unwrap(value) -> value`` returns the wrapped value, of any format. It returns None for a
        value that wraps nothing yet; the format's `describe` is then asked.
    seconds : float, in seconds
        How long that takes.
    once : bool
        Whether a value may allow it only once, or compute what is wrapped anew each time. A
        conversion then unwraps the value before all else, and only once. If the value has a length,
        it is described as what it wraps, and unwrapped for that. One without a length, such as a
        reader, is used up by reading, and is not described.
    first : callable or None
        ``first(value) -> bool`` tells whether a conversion unwraps a value before all else, because
        nothing else tells what it is. That may take as long as computing it, and describing such a
        value unwraps it, too. If the answer is True for every value
        (``first=lambda value: True``), no conversion to the format is planned, since no result
        would be described as of it. The same holds with `once`.
    """

    unwrap: ValueFunction
    seconds: float = 2e-6
    once: bool = False
    first: ValueFunction | None = None


class Labels(NamedTuple):
    """The labels of a format's values: an index, names, coordinates, attributes.

    Parameters
    ----------
    present : callable
        ``present(value) -> bool`` tells whether a value has labels other than those that the
        framework gives to every array. Such a value then has the trait ``labelled``, which neither
        `describe` nor a conversion names.
    give : callable
        ``give(value, like) -> value`` returns a value of any format of the framework under those
        labels of `like` that fit its shape, sharing its memory; or the value as it is.
    """

    present: Callable[[Value], bool]
    give: Callable[[Value, Value], Value]


class Limits(NamedTuple):
    """The dtypes that a format cannot hold, and the texts for values that cannot leave it.

    Parameters
    ----------
    unsupported : mapping of str to set of str
        By device type, the format's dtypes that it cannot hold there.
    unsupported_now : callable or None
        ``unsupported_now(device) -> frozenset``: the format's dtypes that it cannot hold on a
        device (``"cuda:1"`` or ``"cuda"``) at this moment, because of an option of the framework's,
        or of what the device can do. Routes are kept apart by the answer.
    refusal_hints : mapping of str to str
        Texts of refusals: each says why something is refused, and what to do about it. The key is a
        trait of its own that keeps a value from leaving, a dtype that it does not hold, the
        beginning of the names of dtypes that are not of numbers, an effect that is refused, or a
        type, as ``"module:Class"``, of values that are not arrays but hold or make some, or that
        callers ask for, and another library makes of an array.
    """

    unsupported: Mapping[str, Set[str]] = _NOTHING
    unsupported_now: Callable[[str], Set[str]] | None = None
    refusal_hints: Mapping[str, str] = _NOTHING


class Samples(NamedTuple):
    """How values of a format are made to try conversions out; never used to convert.

    Parameters
    ----------
    make : callable or None
        ``make(dense) -> value`` makes a value from one of a dense format, with its dtype and shape.
        It is needed for a format to which no conversion leads, and for one with the components of
        a sparse array, which it makes as the library itself does, without the plugin's `pack`.
    source : str
        That dense format. "" stands for the framework's own dense format; if this one is that, for
        the first to which it converts.
    variants : mapping of str to callable
        By trait, ``variant(value) -> value``: makes a value with that trait from a plain value of
        the format, with the same dtype and shape, and the same numbers where that can be. It
        raises `Declined` if it cannot.
        They are applied in this order. Traits of memory that a composite format leaves out are
        given to its components.
    """

    make: ValueFunction | None = None
    source: str = ""
    variants: Mapping[str, ValueFunction] = _NOTHING


class Advanced(NamedTuple):
    """Fields that few formats need, because their framework is odd or for the sake of speed.

    Parameters
    ----------
    fast_key : callable or None
        ``fast_key(value)`` tells plain values of one type apart without describing them: values
        with equal keys have equal specs, but for their lengths and for `nbytes`, whose
        `size_class` is the same. None for a value that has any trait that plain ones have not,
        other than ``grad``, ``noncontiguous``, ``fortran``, ``negative_strides`` and ``weak``,
        which have keys of their own, as all traits of tables have. Values that have an `address`
        have a `dtype`, too.
    address : callable or None
        ``address(value) -> int`` of the first element, in bytes, where that takes less time than
        `Format.memory`. If formats share a type, it answers 0 or raises RuntimeError for the values
        of the others, unless these have other dtypes.
    hub : bool
        Whether a route between two other frameworks may lead through the format. True for a
        framework that many others share memory with, or that has steps which others lack, such as
        a move, a cast or a change of layout. Each hub costs the planner time, and a lazy hub would
        compute what lies in memory.
    not_recoverable : set of str
        The fields of the spec (``"dtype"``, ``"shape"``, ``"nnz"``) that cannot be read back from a
        value: a list of Python's numbers does not remember that they were float32. Routes start or
        end at such a format, and do not lead through it.
    default_dtype : callable or None
        ``default_dtype(dtype) -> str``: the dtype that the framework gives to Python's numbers at
        this moment. The argument is the dtype of 64 bits that holds them: ``"int64"``,
        ``"float64"`` or ``"complex128"``. None: that dtype itself, or the widest of its kind.
    divides_host : bool
        Whether the framework can split the host into several devices, ``"cpu:0"``, ``"cpu:1"`` ….
        In all other formats, memory of each of them is ``"cpu"``.
    page_locked : bool
        Whether values may be asked for in page-locked memory, ``"cuda_host"``. In all other
        formats such memory is ``"cpu"``. The conversions that can make it name it in their result.
    unwritable : callable or None
        ``unwritable(out) -> str | None``, for values given as ``out=`` that the framework does not
        let be written into at this moment, though no trait says so: what such a value is, and what
        to give instead. None for all others.
    written : callable or None
        ``written(out)`` is told of numbers that others than `fill` have written into the memory of
        an ``out=``, for libraries that count writes.
    device_name : callable or None
        ``device_name(device) -> str | None``: the name of a device object of the framework's, where
        its `str` is not the name. The object's type is of the package that the format `requires`.
    offers : mapping of str to callable
        By protocol, what a conversion from it can `adopt` in the place of the protocol's own call.
        For ``"dlpack"`` it is ``offer(value, stream_of, waits, block=0) -> (capsule, index,
        together)``, for memory on a device: a capsule that nobody has ordered, the index of the
        device, and whether the framework works on the very stream of the consumer, whose handle is
        ``stream_of(index)``. If it works on another one, that stream is told to wait if `waits` is
        set, or else the answer is `NotImplemented`. So it is for memory of the host; for what is
        no C-ordered block at a multiple of `block` bytes, if that is given; and for values
        with a trait other than ``noncontiguous``, ``broadcast``, ``immutable`` and ``grad`` (which
        is detached). For ``"cuda_array_interface"`` it is ``offer(value) -> dict``: the interface,
        asked for once and checked, and `NotImplemented` if it has traits. For ``"arrow_c_stream"``
        it is ``offer(table) -> object``, which streams the same columns: several, all of which are
        of numbers that every library shares, and `NotImplemented` for all other tables.
    export : mapping of str to callable
        By protocol, ``export(value) -> object`` which exports in the place of a value whose own
        export would change its elements, as that of pandas makes nulls of NaN.
    """

    fast_key: ValueFunction | None = None
    address: Callable[[Value], int] | None = None
    hub: bool = False
    not_recoverable: Set[str] = frozenset()
    default_dtype: Callable[[str], str] | None = None
    divides_host: bool = False
    page_locked: bool = False
    unwritable: Callable[[Value], str | None] | None = None
    written: Callable[[Value], None] | None = None
    device_name: Callable[[object], str | None] | None = None
    offers: Mapping[str, Callable[..., Any]] = _NOTHING
    export: Mapping[str, ValueFunction] = _NOTHING


class Format(NamedTuple):
    """One concrete container of a framework.

    A dense format needs the fields up to `unary` and few of the others. A set may be given as a
    list, a tuple or any kind of set.

    Parameters
    ----------
    name : str
        ``framework`` for its dense array, or ``framework.layout``.
    types : tuple of str
        The Python types that hold it, as ``"module:Class"``. Formats of one distribution may share
        one. Values of subclasses count, unless a format names a nearer class of theirs.
    describe : callable
        ``describe(value) -> Spec``: reads metadata, never elements. Formats that share a type
        share the function; it may answer with any of them. None if the format is only a target.
    dtypes : set of str
        The dtypes it can hold. Like all dtypes in declarations they have NumPy's and ml_dtypes'
        names, and registration refuses any other.
    devices : tuple of str
        The device types where it can live; the first is the default.
    carries : set of str
        Traits that a finished value of this format may have. A result never has another.
    exports : mapping of str to set of str
        The protocols its values export by (``"dlpack"`` …), and the dtypes each can export. Every
        conversion whose source is that protocol then applies to this format as well.
    memory : callable or None
        ``memory(value) -> ((address, nbytes), ...)`` of the memory it lies in, in bytes; ()
        where that cannot be told.
    requires : str
        The module that must be importable for the format to be built; "" if none.
    install : str
        The command that installs it, for error messages.
    unary : tuple of Conversion
        The steps from this format to itself, as `Drop`, `Copy`, `Cast` and `Move` return them.
    ndims : set of int or None, in axes
        Numbers of axes that values have where conversions make them; None: any.
    fill : callable or None
        ``fill(out, value)`` writes a value of this format into another of the same shape.
    fast_path : callable or None
        ``fast_path(value)`` returns a value of the first of `types` (of that very type) as it is
        if it is a finished value of this format, else `NotImplemented`. Where all of them are
        finished it is :func:`itself`, which is then not even called.
    target_types : tuple of str or None
        The types that name this format in ``to=``: those its results really have. None: `types`.
    aliases : tuple of str
        Other words for it in ``to=``: nicknames of the framework (``"np"``), and objects of
        it that stand for this format, as ``"module:attribute"`` (those that name a layout).
    index_dtypes : set of str
        The index dtypes a sparse format can hold, the narrowest being preferred.
    components : Components or None
        How a composite format is made of dense arrays.
    wrapper : Wrapper or None
        How a value that only wraps another is unwrapped.
    limits : Limits
        The dtypes that it cannot hold, and the texts of refusals.
    samples : Samples
        How values are made to try conversions out.
    protocol : str or None
        For a protocol's own format: the attribute by which a foreign value is recognised.
    labels : Labels or None
        The labels that values hold and other frameworks drop. No route from a value with
        labels to a format of its own framework leaves that framework, so declare the steps within
        it that copy and that cast.
    lazy : bool
        Whether its values are computed in parts, when they are needed. They may be larger than
        memory. No step from one such format to another counts as a copy of what lies in memory.
    replaces : set of str
        The distributions in whose place it comes, if they declare a name, a nickname, a type, an
        object or a protocol of this format.
    advanced : Advanced
        Fields that few formats need.
    """

    name: str
    types: tuple[str, ...] = ()
    describe: Callable[[Value], Spec] | None = None
    dtypes: Set[str] = frozenset()
    devices: tuple[str, ...] = ("cpu",)
    carries: Set[str] = frozenset()
    exports: Mapping[str, Set[str]] = _NOTHING
    memory: Callable[[Value], tuple[tuple[int, int], ...]] | None = None
    requires: str = ""
    install: str = ""
    unary: tuple[Conversion, ...] = ()
    ndims: Set[int] | None = None
    fill: Callable[[Value, Value], None] | None = None
    fast_path: ValueFunction | None = None
    target_types: tuple[str, ...] | None = None
    aliases: tuple[str, ...] = ()
    index_dtypes: Set[str] = frozenset()
    components: Components | None = None
    wrapper: Wrapper | None = None
    limits: Limits = Limits()
    samples: Samples = Samples()
    protocol: str | None = None
    labels: Labels | None = None
    lazy: bool = False
    replaces: Set[str] = frozenset()
    advanced: Advanced = Advanced()

    def __repr__(self) -> str:
        return f"Format({self.name!r}, {len(self.dtypes)} dtypes on {', '.join(self.devices)})"

    @property
    def framework(self) -> str:
        """The library as users call it: the part of the name before the dot."""
        return self.name.partition(".")[0]

    @property
    def layout(self) -> str | None:
        """The layout of a composite format; None of any other."""
        return None if self.components is None else self.components.layout

    @property
    def component_format(self) -> str:
        """The format of a composite's component arrays; "" of any other."""
        return "" if self.components is None else self.components.format

    @property
    def naming_types(self) -> tuple[str, ...]:
        """The types that name it in ``to=``."""
        return self.types if self.target_types is None else self.target_types

    @property
    def is_read_once(self) -> bool:
        """Whether conversions read its values before all else, so that none can be a result."""
        return self.wrapper is not None and self.wrapper.once

    @property
    def is_dense(self) -> bool:
        """Whether it stores every element as it is, with no indices and no codes."""
        return self.components is None and not self.index_dtypes

    @property
    def is_sparse(self) -> bool:
        """Whether it leaves out elements; ragged rows have offsets, but are stored whole."""
        return bool(self.index_dtypes) and self.layout != "ragged"

    @property
    def is_table(self) -> bool:
        """Whether its values are tables, whose columns have a dtype each and lie apart."""
        return self.ndims == {2} and not COLUMN_TRAITS.isdisjoint(self.carries)

    @property
    def fast_key(self) -> ValueFunction | None:
        """The function that tells plain values apart; see `Advanced`."""
        return self.advanced.fast_key

    @property
    def hub(self) -> bool:
        """Whether routes between other frameworks may lead through it; see `Advanced`."""
        return self.advanced.hub

    @property
    def not_recoverable(self) -> Set[str]:
        """The fields of the spec that a value does not tell; see `Advanced`."""
        return self.advanced.not_recoverable

    @property
    def default_dtype(self) -> Callable[[str], str] | None:
        """The function that says which dtype Python's numbers get; see `Advanced`."""
        return self.advanced.default_dtype

    @property
    def divides_host(self) -> bool:
        """Whether its framework can split the host; see `Advanced`."""
        return self.advanced.divides_host

    def home(self, device: str) -> str | None:
        """Return where it is when its data lie on a device, or None if it cannot be there."""
        kind = device_type(device)
        if kind not in self.devices:
            return None
        tells = self.advanced.page_locked if device == PAGE_LOCKED else self.divides_host
        return kind if is_host_part(device) and not tells else device

    def holds(self, device: str) -> Set[str]:
        """Return the dtypes it can hold on a device."""
        return self.dtypes - self.unsupported(device)

    def unsupported(self, device: str) -> Set[str]:
        """Return those of its dtypes that it cannot hold on a device at this moment."""
        unsupported = self.limits.unsupported.get(device_type(device), frozenset())
        now = self.limits.unsupported_now
        return unsupported if now is None else unsupported | now(device)
