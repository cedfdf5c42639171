"""Goals: what the result of a request must be, in each acceptable format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from interop._model.device import matches, ordinary
from interop._model.dtype import DTYPES, narrowed, promoted
from interop._model.format import Format
from interop._model.spec import (
    ATTRIBUTED,
    DIVISIONS,
    FORTRAN,
    LABELLED,
    MEMORY_TRAITS,
    NO_COLUMNS,
    NOMINAL,
    NONCONTIGUOUS,
    UNWRITABLE,
    WEAK,
    Spec,
    column_dtypes,
    with_columns,
)
from interop._request.keywords import WRITABLE
from interop._request.request import Request

from .graph import Graph
from .question import Goal


def goals(graph: Graph, spec: Spec, request: Request) -> dict[str, Goal]:
    """Return, for each acceptable format, the result that is asked for."""
    goals: dict[str, Goal] = {}
    for name in request.formats:
        target = graph.formats[name]
        device = _device(graph, spec, target, request.device)
        is_kept = keeps_elements(spec, graph.formats[spec.wrapped or spec.format], target)
        is_kept = is_kept or _holds_elements(graph, spec, target)
        default = spec.dtype if is_kept else _default_dtype(spec, target, device)
        columns = _cast(graph, spec, target, request)
        dtype = columns.dtype if columns else request.dtype or default
        unchanged = name == spec.format and dtype == spec.dtype
        fits = name == spec.format or target.ndims is None or len(spec.shape) in target.ndims
        fits |= graph.formats[spec.format].is_table and target.is_table
        unchanged |= is_kept and not (request.dtype and columns is None)
        holds = fits and (unchanged or dtype in held(graph, spec, target, device))
        if request.copy == WRITABLE and name != spec.format and graph.is_locked(name):
            continue
        carries = _carries(graph, spec, target, request)
        if columns:
            carries -= spec.traits - columns.traits
            holds &= _new_dtypes(spec, columns) <= target.holds(device)
        if request.order == "F" and not (_has_order(target) and carries >= FORTRAN):
            continue
        if holds and target.home(device) == device:
            requires = _likeness(graph, spec, target, request)
            requires |= FORTRAN if request.order == "F" else frozenset()
            requires |= _kept_labels(graph, spec, target, request)
            requires |= _kept_rows(graph, spec, target)
            goals[name] = Goal(dtype, device, carries, requires)
    ragged = graph.ragged(spec.format, request.formats) & goals.keys()
    return {name: goals[name] for name in goals if name not in ragged or ragged == goals.keys()}


def _device(graph: Graph, spec: Spec, target: Format, requested: str | None) -> str:
    """Return the device that a result must be on.

    If none was requested, it is the device of the value, or else the target's first. ``cpu:0``
    means ``cpu`` where the host is one device: in a format that does not divide it, and for values
    that do not say which part of it they are on.
    """
    if requested is None:
        return target.home(ordinary(spec.device)) or target.devices[0]
    source = graph.formats[spec.wrapped or spec.format]
    within = source.framework == target.framework and spec.traits.isdisjoint(DIVISIONS)
    whole = within and spec.device == "cpu"
    return "cpu" if requested == "cpu:0" and (whole or not target.divides_host) else requested


def held(graph: Graph, spec: Spec, target: Format, device: str) -> Set[str]:
    """Return the dtypes that a result may have.

    A value that stays in its wrapper is limited by the wrapped format, too.
    """
    dtypes = target.holds(device)
    if target.wrapper is None or not spec.wrapped:
        return dtypes
    stays = graph.formats[spec.format].framework == target.framework
    return dtypes & graph.formats[spec.wrapped].holds(device) if stays else dtypes


def _likeness(graph: Graph, spec: Spec, target: Format, request: Request) -> frozenset[str]:
    """Return the traits that a result must have as ``like=`` has, if any conversion gives them.

    What is divided already, in the same format, stays as it is divided.
    """
    likeness = request.like - DIVISIONS if spec.format == target.name else request.like
    return likeness if graph.divides(target.name, likeness) else frozenset()


def _cast(graph: Graph, spec: Spec, target: Format, request: Request) -> Spec | None:
    """Return the spec of a table with its columns cast, if the target is one; else None."""
    are_tables = graph.formats[spec.format].is_table and target.is_table
    if not (are_tables and request.by_column) or spec.wrapped:
        return None
    if request.columns is None and not column_dtypes(spec) and NO_COLUMNS.isdisjoint(spec.traits):
        return None  # nothing in it is a number, so that the dtype can be for nothing
    return with_columns(spec, request.by_column)


def _kept_rows(graph: Graph, spec: Spec, target: Format) -> frozenset[str]:
    """Return the trait of a table without columns, which stays one, if its index is no column."""
    are_tables = graph.formats[spec.format].is_table and target.is_table
    return spec.traits & NO_COLUMNS if are_tables and "indexed" not in spec.traits else frozenset()


def _new_dtypes(spec: Spec, cast: Spec) -> Set[str]:
    """Return the dtypes of columns that are cast."""
    return column_dtypes(cast) - column_dtypes(spec)


def _kept_labels(graph: Graph, spec: Spec, target: Format, request: Request) -> frozenset[str]:
    """Return the trait of labels if a framework can keep them and no caller allows their loss.

    What one format of the framework keeps, no other that was asked for by the same word leaves.
    """
    if LABELLED.isdisjoint(spec.traits) or "drop_labels" in request.policy.allowed:
        return frozenset()
    names = (n for n in request.formats if graph.formats[n].framework == target.framework)
    kept = any(graph.keeps_labels(spec.format, name) for name in names)
    return LABELLED if kept else frozenset()


def _carries(graph: Graph, spec: Spec, target: Format, request: Request) -> frozenset[str]:
    """Return the traits that a result may have; a wrapper has those of what it wraps."""
    carries = graph.carries(target)
    if target.name == spec.format and spec.traits >= ATTRIBUTED:
        carries |= ATTRIBUTED
    if target.wrapper is not None and spec.wrapped:
        carries |= spec.traits
    if request.copy == WRITABLE:
        carries -= UNWRITABLE & MEMORY_TRAITS
    if request.order == "C" and _has_order(target):
        carries -= NONCONTIGUOUS | FORTRAN
    # With dtype= all columns must have that dtype, with a numbered device= all parts be on it.
    is_table = graph.formats[spec.format].is_table and target.is_table
    if request.dtype and not is_table:
        carries -= {"mixed", "several_dtypes"}
    return carries - DIVISIONS if ":" in (request.device or "") else carries


def _has_order(target: Format) -> bool:
    """Return whether the elements of a format lie in an order; the columns of tables lie apart."""
    return target.is_dense and not target.is_table


def _default_dtype(spec: Spec, target: Format, device: str) -> str | None:
    """Return the dtype of a result if the caller named none."""
    dtypes: Set[str] = target.holds(device)
    dtype = spec.dtype
    if dtype is None or (spec.format == target.name and matches(spec.device, device)):
        return dtype
    if target.default_dtype is not None and not WEAK.isdisjoint(spec.traits):
        dtype = target.default_dtype(dtype)
    return dtype if dtype in dtypes else promoted(dtype, dtypes) or narrowed(dtype, dtypes)


def keeps_elements(spec: Spec, source: Format, target: Format) -> bool:
    """Return whether a value whose dtype is only nominal is the same in a target.

    Both have a protocol for elements of any kind: the columns of a table, say.
    """
    nominal = spec.traits & NOMINAL
    protocols = source.exports.keys() & target.exports.keys()
    return bool(nominal and protocols) and source is not target and nominal <= target.carries


def _holds_elements(graph: Graph, spec: Spec, target: Format) -> bool:
    """Return whether a target holds text or dates, as those of a value, that are no numbers."""
    nominal = spec.traits & NOMINAL
    if spec.dtype is None or spec.dtype in DTYPES or target.name == spec.format:
        return False
    return nominal <= {"not_numbers"} and (
        (bool(nominal) and nominal <= target.carries) or graph.names(target.name, spec.dtype)
    )


def labels_confine(graph: Graph, spec: Spec, names: Iterable[str]) -> bool:
    """Return whether a value would lose its labels by leaving the framework of some formats."""
    return not LABELLED.isdisjoint(spec.traits) and _shares_labels(graph, spec, names)


def _shares_labels(graph: Graph, spec: Spec, names: Iterable[str]) -> bool:
    """Return whether a value's format and some others are of one framework, and have labels."""
    if graph.formats[spec.format].labels is None:
        return False
    framework, framework_of = graph.framework_of[spec.format], graph.framework_of
    return all(graph.formats[n].labels and framework_of[n] == framework for n in names)


def frameworks(graph: Graph, spec: Spec, wanted: Mapping[str, Goal]) -> tuple[str, ...]:
    """Return the framework that each search in turn must stay in; "" if it need not stay.

    If the value's framework is the target's, too, the first search stays within it: its own steps
    keep whatever sets its values apart. If that fails, a value may leave the framework, unless it
    would lose labels.
    """
    if not wanted:
        return ()
    if not _shares_labels(graph, spec, wanted):
        return ("",)
    framework = graph.formats[spec.format].framework
    return (framework,) if labels_confine(graph, spec, wanted) else (framework, "")
