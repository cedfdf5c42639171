"""A format: one concrete container of a framework, declared as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .spec import Spec

__all__ = ["PLAIN_DTYPES", "Format", "Parts", "common_axes", "itself"]

#: The dtypes of which a composite value may be taken apart at a glance.
PLAIN_DTYPES = frozenset(
    {"bool", "uint8", "int8", "int16", "int32", "int64"}
    | {"float32", "float64", "complex64", "complex128"}
)

_NOTHING: Mapping[str, Any] = {}


def itself(value: Any) -> Any:
    """Return a value as it is."""
    return value


class Parts(NamedTuple):
    """A composite value taken apart: the dense arrays it is made of, and how they belong together.

    Parameters
    ----------
    shape : tuple of int, in elements
        Shape of the whole.
    arrays : dict of str to array
        The component arrays by role. Compressed sparse layouts have ``values``, ``indices`` and
        ``pointers``; coordinate lists ``values`` and ``indices_0``, ``indices_1`` … (one per
        axis); affine quantization ``codes``, ``scale`` and ``zero_point``, and perhaps ``bias``.
    facts : dict of str to object
        Whatever else the layout needs: ``axis`` and ``block_size`` of a quantized array,
        ``canonical`` of a sparse one.
    """

    shape: tuple[int, ...]
    arrays: dict[str, Any]
    facts: Mapping[str, Any] = _NOTHING


class Format(NamedTuple):
    """One concrete container of a framework.

    Parameters
    ----------
    name : str
        ``framework`` for its dense array, or ``framework.layout``.
    types : tuple of str
        The Python types that hold it, as ``"module:Class"``. Several formats may share one.
    describe : callable
        ``describe(value) -> Spec``: reads metadata, never elements. Formats that share a type
        share the function; it may answer with any of them. None if the format is only a target.
    dtypes : frozenset of str
        The dtypes it can hold.
    devices : tuple of str
        The device types where it can live; the first is the default.
    lacks : mapping of str to frozenset of str
        For a device type, those of `dtypes` that it cannot hold there.
    lacks_now : callable or None
        ``lacks_now() -> frozenset`` of those of `dtypes` that it cannot hold anywhere as the
        process is set up at this moment, by an option of the framework's. Routes are kept apart
        by the answer.
    obstacles : mapping of str to str
        For a trait of its own that keeps a value from leaving, or a dtype that it lacks, the text
        of the refusal: why that is, and what to do about it.
    carries : frozenset of str
        Traits that a finished value of this format may have. A result never has another.
    speaks : mapping of str to frozenset of str
        Protocols its values offer (``"dlpack"`` …) and the dtypes each can export. Every
        conversion whose source is that protocol then applies to this format as well.
    protocol : str or None
        For a protocol's own format: the attribute by which a stranger is recognised.
    requires : str
        The module that must be importable for the format to be built; "" if none.
    install : str
        The line that installs it, for error messages.
    layout : str or None
        What a composite format is made of: two formats of one layout hand over by components.
    components : str or None
        The format of a composite's component arrays.
    roles : mapping of str to str
        For each role of :class:`Parts` (``indices`` stands for every ``indices_N``), the field of
        `Spec` that names its dtype, or a dtype. A role that other formats of the layout lack is one
        that few values have; those have a trait that says so, which the others do not carry.
    apart : frozenset of str
        Traits that survive being taken apart, beyond those of memory.
    take_apart : callable or None
        ``take_apart(value) -> Parts``; the arrays share the value's memory.
    assemble : callable or None
        ``assemble(parts) -> value``; shares the arrays, except the roles in `restacks`.
    glance : callable or None
        As `take_apart`, for the plainest values only: of the very type, on the host, of a dtype
        of :data:`PLAIN_DTYPES`, without any trait. It answers `NotImplemented` for all others. A
        shortcut only.
    restacks : frozenset of str
        Roles that assembling has to copy.
    unstacks : frozenset of str
        Roles that taking apart has to copy.
    index_dtypes : frozenset of str
        The index dtypes a sparse format can hold, the narrowest being preferred.
    memory : callable or None
        ``memory(value) -> ((address, nbytes), ...)`` of the memory it lies in, in bytes.
    fill : callable or None
        ``fill(out, value)`` writes a value of this format into another of the same shape.
    named_by : tuple of str or None
        The types that name this format in ``to=``: those its results really have. None: `types`.
    identity : callable or None
        ``identity(value)`` returns a value of the first of `types` (of that very type) as it is
        if it is a finished value of this format, else `NotImplemented`. A shortcut only. Where all
        of them are finished it is :func:`itself`, which is then not even called.
    handling : float, in seconds
        What taking one value apart, or assembling one, takes.
    forgets : frozenset of str
        What of the spec (``"dtype"``, ``"shape"``, ``"nnz"``) cannot be read back from a value: a
        list of Python's numbers does not remember that they were float32. Routes start or end at
        such a format, and do not lead through it.
    passable : bool
        Whether a route between two other frameworks may lead through it although there are routes
        that do not. False for a framework that always copies what it is given, or compiles for
        every new shape: it is no help to others, and costs the planner time.
    sample : callable or None
        ``sample(dense) -> value`` makes a value of one of the framework's dense format, for a
        format to which no conversion leads. Used to try conversions out, never to convert.
    variants : mapping of str to callable
        For a trait, ``variant(value) -> value``: what makes of a plain value of the format one
        with that trait, of the same numbers where that can be. It raises `Declined` if it cannot.
        They are applied in this order. Traits of memory that a composite format leaves out are
        given to its components. Used to try conversions out, never to convert.
    ndims : frozenset of int or None, in axes
        Numbers of axes that its values can have; None: any.
    inside : callable or None
        ``inside(value) -> value`` of a holder: a format whose values do nothing but hold a value
        of another format, whatever it is, under labels perhaps. A holder is described as what is
        inside, and opened on the way to other frameworks. It answers None for a value that has
        nothing inside yet; that is what `describe` is then for.
    labelled : bool
        Whether values hold more than an array (names, coordinates, an index), which no other
        framework takes over: from one to another of its own a route does not leave the framework.
    lazy : bool
        Whether its values are computed in parts, when they are needed. They may be larger than
        memory. No step from one such format to another counts as a copy of what lies in memory.
    """

    name: str
    types: tuple[str, ...] = ()
    describe: Callable[[Any], Spec] | None = None
    dtypes: frozenset[str] = frozenset()
    devices: tuple[str, ...] = ("cpu",)
    lacks: Mapping[str, frozenset[str]] = _NOTHING
    lacks_now: Callable[[], frozenset[str]] | None = None
    obstacles: Mapping[str, str] = _NOTHING
    carries: frozenset[str] = frozenset()
    speaks: Mapping[str, frozenset[str]] = _NOTHING
    protocol: str | None = None
    requires: str = ""
    install: str = ""
    layout: str | None = None
    components: str | None = None
    roles: Mapping[str, str] = _NOTHING
    apart: frozenset[str] = frozenset()
    take_apart: Callable[[Any], Parts] | None = None
    assemble: Callable[[Parts], Any] | None = None
    glance: Callable[[Any], Parts] | None = None
    restacks: frozenset[str] = frozenset()
    unstacks: frozenset[str] = frozenset()
    index_dtypes: frozenset[str] = frozenset()
    memory: Callable[[Any], tuple[tuple[int, int], ...]] | None = None
    fill: Callable[[Any, Any], None] | None = None
    named_by: tuple[str, ...] | None = None
    identity: Callable[[Any], Any] | None = None
    handling: float = 2e-6
    forgets: frozenset[str] = frozenset()
    passable: bool = True
    sample: Callable[[Any], Any] | None = None
    variants: Mapping[str, Callable[[Any], Any]] = _NOTHING
    ndims: frozenset[int] | None = None
    lazy: bool = False
    inside: Callable[[Any], Any] | None = None
    labelled: bool = False

    @property
    def framework(self) -> str:
        """What users call the library: the part of the name before the dot."""
        return self.name.partition(".")[0]

    def holds(self, device: str) -> frozenset[str]:
        """Return the dtypes it can hold on a device."""
        lacking = self.lacking(device)
        return self.dtypes - lacking if lacking else self.dtypes

    def lacking(self, device: str) -> frozenset[str]:
        """Return those of its dtypes that it cannot hold on a device at this moment."""
        there = self.lacks.get(device.partition(":")[0], frozenset())
        return there if self.lacks_now is None else there | self.lacks_now()

    @property
    def is_dense(self) -> bool:
        """Whether it stores every element as it is, with no indices and no codes."""
        return self.layout is None and not self.index_dtypes


def common_axes(*formats: Format) -> int | None:
    """Return a number of axes that values of all of some formats can have, two if that can be."""
    limits = [one.ndims for one in formats if one.ndims is not None]
    common = frozenset.intersection(*limits) if limits else frozenset({2})
    return 2 if 2 in common else min(common, default=None)
