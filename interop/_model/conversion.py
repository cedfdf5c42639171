"""A conversion: one step from a format to a format, declared as data."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any, NamedTuple

from interop._model.typing import Value, ValueFunction

from .effect import WRITING
from .spec import Spec

#: Bytes, read and written, that are assumed to stay in the caches.
CACHED = 2**21


class Cost(NamedTuple):
    """How long a step is expected to take: ``latency + (bytes read + bytes written) / bandwidth``.

    Bytes that fit in the caches go faster than those that need fresh memory, often by four times.
    Where `cached` is given, the first :data:`CACHED` bytes are counted with it.

    Parameters
    ----------
    latency : float, in seconds
        The time for a value without elements.
    bandwidth : float or None, in bytes per second
        Bytes read and written alike; None for a step that touches no bytes.
    cached : float or None, in bytes per second
        The speed of the first :data:`CACHED` bytes, which are 2 MiB; None: that of all others.
    """

    latency: float = 1e-6
    bandwidth: float | None = None
    cached: float | None = None

    def seconds(self, before: Spec, after: Spec) -> float:
        """Return the seconds expected for a step from `before` to `after`."""
        return self.latency + self.moving(before.nbytes + after.nbytes)

    def moving(self, nbytes: int) -> float:
        """Return the part of the seconds that is due to bytes, read and written."""
        if self.bandwidth is None:
            return 0.0
        if self.cached is None:
            return nbytes / self.bandwidth
        few = min(nbytes, CACHED)
        return few / self.cached + (nbytes - few) / self.bandwidth


#: Between the host and a device, from pageable memory or into it. On an H200 the driver alone
#: copies 2 to 9 GB/s of what is large and 8 to 10 of 1 MiB; in stages, two threads copy 6 to 13 of
#: the former, and eight 14 to 34.
BUS = Cost(1.8e-5, 1.2e10, 2e10)


#: The orders of elements, as NumPy names them: by their indices, in reverse, and as they lie.
ORDERS = frozenset("CFK")


class Result(NamedTuple):
    """The dtypes, devices, orders and bits that the result of a conversion can have.

    Parameters
    ----------
    dtypes : set of str or None
        The dtypes it can change to; None: all that the target holds.
    devices : set of str or None
        The device types it can change to; None: all where the target can live.
    orders : set of str or None
        The orders that it can lay elements out in, of ``"C"``, ``"F"`` and ``"K"``, in which they
        stay as they lie; None: all.
    index_dtype : str or None
        The index dtype of the result; None: as it was.
    bits : str or None
        ``"carry"``: the result carries the bits as an unsigned integer of the same width.
        ``"restore"``: the reverse. The function gets the element dtype it must give as ``dtype=``.
    """

    dtypes: Set[str] | None = None
    devices: Set[str] | None = None
    orders: Set[str] | None = None
    index_dtype: str | None = None
    bits: str | None = None


class Conversion(NamedTuple):
    """One declared step from a format to a format.

    It takes or refuses a value by its spec alone, so that routes are planned, and refusals
    explained, without a value. It refuses a value with a trait that is neither in `takes` nor in
    `requires`: a trait that its author never thought of is never lost.

    Most conversions need the first eight fields. A set may be given as a list, a tuple or any kind
    of set.

    Parameters
    ----------
    source : str
        Name of the format it takes, or of a protocol (``"dlpack"``): the conversion then applies
        to every format that exports by it.
    target : str
        Name of the format it makes.
    function : callable
        ``function(value)``, plus one keyword for each of `changes` (``dtype=``, ``device=``,
        ``order=``, ``columns=``), ``stream=`` where `stream` is set and ``like=`` where `like` is.
        It must not change its argument, and raises `Declined` before doing anything if it cannot
        convert the value after all.
    takes : set of str
        Traits the value may have.
    effects : set of str
        Its effects on every value. Three are added where they follow, declared or not: `densify`
        from a sparse format to a dense one, `materialize` from a lazy one to one that is not, and
        `transfer` if it changes the device, unless it `shares`. `narrow`, `alias_immutable`,
        `share_readonly`, `host_round_trip` and `drop_labels` follow from the specs and must not be
        declared.
    cost : Cost
        How long it takes.
    dtypes : set of str or None
        Element dtypes it takes; None: all that both formats hold. What is no identifier is the
        beginning of the names of dtypes that are not of numbers, after which ``$`` stands:
        ``"<U"``, ``"datetime64[ns]$"``.
    devices : set of str or None
        Device types it takes, by default the host alone; None: all. ``"cuda_host"`` in place of
        ``"cpu"`` is page-locked memory alone, for requests that name it.
    requires : set of str
        Traits the value must have.
    drops : set of str
        Traits the result no longer has. A step that writes fresh memory drops the traits of memory
        without saying so.
    adds : set of str
        Traits the result has although the value may not.
    checked : bool
        Whether it raises `Declined` if the dtype of the result does not hold a number of the value,
        which it checks while it reads them. Such a cast does not have the effect `narrow`.
    changes : set of str
        ``"dtype"`` or ``"device"``, if it can change them to those asked for; ``"order"``, if it
        can lay elements out in the order asked for, as ``numpy.array(order=)`` does, with ``"C"``
        as the default; ``"columns"``, if it can change the dtypes of a table's columns, each by its
        own. A step that writes and does not change the order writes in C order.
    across : Cost or None
        How long it takes where that puts elements in another order than they lie in; None: as
        `cost` says.
    result : Result
        The dtypes, devices and orders it can change to, and whatever of the result is fixed.
    ndims : set of int or None, in axes
        Numbers of axes it takes; None: all.
    index_dtypes : set of str or None
        Index dtypes of a sparse array that it takes; None: all.
    shares : bool or None
        Whether the result shares memory with the value. None: it does unless an effect writes. With
        a change of the device, True is for two devices that reach the same memory.
    shares_only : set of str
        If there are any: the result shares memory only where the value has one of these traits, as
        a table that has columns of some kinds.
    copies : set of str
        Traits of values of which it copies some parts, which is the effect `copy`.
    stream : bool
        Whether the function wants the consumer's stream.
    like : set of str
        Which of `replicated`, `sharded`, `distributed` and `matrix` the ``like=`` value may have.
        The result is then divided as that value is, or is a matrix. The conversion is only for
        requests with such a value, which the function gets as ``like=``.
    replaces : set of str
        The distributions in whose place it comes, if they declare a conversion of the same formats,
        with the same `changes` and `requires`, or a route that is there without it.
    fast_path : callable or None
        ``fast_path(value)`` does, for the plainest values and the default request, what the
        planned route would do, and answers `NotImplemented` for all others. It has to be right
        only about values whose exact type is one of the source's `types`. If the source carries
        ``weak``, it gets the ``dtype=`` of the request, or else the `default_dtype` of the target,
        as a keyword if there is one.
    adopt : callable or None
        Of a conversion from a protocol: ``adopt(offer, value)`` does for values of a format with
        `offers` what the function does, faster, with what their offer gives it. It gets ``dtype=``
        where `changes` says so, and ``stream=`` where `stream` is set and the caller names one. It
        answers `NotImplemented` where the offer does, and for all that its target does not hold or
        that it does not take; an error counts as that answer.
    into : callable or None
        ``into(out, value)`` writes the result into a finished value of the target's format, of the
        result's shape and of any dtype, instead of into fresh memory. It raises `Declined` before
        it has written anything if it cannot.
    batch : callable or None
        ``batch(values)`` returns a list of what the function makes of some values of one dtype and
        device, where that takes less time than one after another: of the small leaves of a tree. It
        gets the keywords that `changes` says. It answers `NotImplemented` where it takes no less
        time; an error counts as that answer. The values have an attribute `nbytes`.
    name : str
        Names the conversion in plans, in errors and in the table of costs; by default the
        function's name.
    """

    source: str
    target: str
    function: Callable[..., Value]
    takes: Set[str] = frozenset()
    effects: Set[str] = frozenset()
    cost: Cost = Cost()
    dtypes: Set[str] | None = None
    devices: Set[str] | None = frozenset({"cpu"})
    requires: Set[str] = frozenset()
    drops: Set[str] = frozenset()
    adds: Set[str] = frozenset()
    checked: bool = False
    changes: Set[str] = frozenset()
    across: Cost | None = None
    result: Result = Result()
    ndims: Set[int] | None = None
    index_dtypes: Set[str] | None = None
    shares: bool | None = None
    shares_only: Set[str] = frozenset()
    copies: Set[str] = frozenset()
    stream: bool = False
    like: Set[str] = frozenset()
    replaces: Set[str] = frozenset()
    fast_path: ValueFunction | None = None
    adopt: Callable[..., Value] | None = None
    into: Callable[[Any, Any], None] | None = None
    batch: Callable[..., list[Any]] | None = None
    name: str = ""

    def __repr__(self) -> str:
        return f"Conversion({self.source!r}, {self.target!r}, {self.label})"

    @property
    def label(self) -> str:
        """The name under which plans and errors show it."""
        return self.name or getattr(self.function, "__name__", "conversion")

    @property
    def aliases(self) -> bool:
        """Whether the result may share memory with the value."""
        return not self.effects & WRITING if self.shares is None else self.shares
