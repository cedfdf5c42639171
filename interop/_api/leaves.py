"""The leaves of a tree: all of them planned, then each converted once, however often it occurs."""

from __future__ import annotations

import builtins
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence, Set
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from types import FunctionType, ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from interop._execution.engine import Engine
from interop._model.dtype import DTYPES
from interop._model.format import Format
from interop._model.spec import TRAITS, Spec
from interop._model.typing import Value
from interop._planning.cache import PlanTable
from interop._planning.keywords import Keywords
from interop._planning.plan import Plan
from interop._registry.registry import Registry
from interop.errors import (
    BadRequestError,
    InteropError,
    NotInstalledError,
    RefusedError,
    UnknownValueError,
)

from .tree import Tree, joined

_Path = tuple[Any, ...]

#: The fate of leaves that are not arrays: leave them, make arrays of numbers, or refuse.
Others: TypeAlias = Literal["keep", "convert", "refuse"]

_BUILTINS = frozenset(kind for kind in vars(builtins).values() if isinstance(kind, type))

#: The types of Python's numbers.
_NUMBERS = (bool, int, float, complex)

#: Traits that do not keep two values over one memory from having the same result.
_IGNORED = frozenset({"grad"})


class _Group(NamedTuple):
    """One array of a tree: where it stands first, its plan, and all its positions."""

    path: tuple[Any, ...]
    spec: Spec
    table: PlanTable
    plan: Plan
    positions: list[int]


def check_others(others: object) -> None:
    """Refuse an unknown answer to what happens to leaves that are not arrays."""
    if others not in get_args(Others):
        msg = f"others must be 'keep', 'convert' or 'refuse', got {others!r}."
        raise BadRequestError(msg)


def is_array(registry: Registry, value: Value) -> bool:
    """Tell whether a value counts as an array inside a tree.

    Python's own numbers, strings, bytes and lists are values or containers there, although one of
    them alone can be converted. The same goes for types derived from these. A mapping is several
    arrays.
    """
    if type(value).__module__ == "builtins" or isinstance(value, Mapping):
        return False
    try:
        return _are_of_arrays(registry.format_of(value).types)
    except UnknownValueError:
        return False


@cache
def _are_of_arrays(types: tuple[str, ...]) -> bool:
    return not types or any(not name.startswith("builtins:") for name in types)


def reader(registry: Registry) -> Callable[[Value], tuple[Value, Spec | None]]:
    """Return a function that gives each leaf with its spec, which is None if it is no array.

    A leaf that is unwrapped before all else is opened, once.
    """
    opened: dict[int, tuple[Value, Value]] = {}

    def read(leaf: Value) -> tuple[Value, Spec | None]:
        if not is_array(registry, leaf):
            return leaf, None
        pair = opened.get(id(leaf))
        value = registry.opened(leaf) if pair is None else pair[1]
        if value is not leaf:
            opened[id(leaf)] = leaf, value  # the leaf lives on, so that no other gets its `id`
        return value, registry.describe(value)

    return read


def leaf_test(registry: Registry, others: Others) -> Callable[[Value], bool]:
    """Return the function that tells which leaves of a tree are converted."""
    if others == "convert":
        return lambda value: type(value) in _NUMBERS or is_array(registry, value)
    return partial(is_array, registry)


def converted(
    tree: Tree,
    registry: Registry,
    engine: Engine,
    table_of: Callable[[Spec], PlanTable],
    keep: Callable[[Value, Spec, Plan, PlanTable], None],
    *,
    keywords: Keywords,
    others: Others = "keep",
    progress: bool = False,
    consume: bool = False,
) -> Value:
    """Return a tree with its arrays converted.

    `table_of` gives the plans for an array, and `keep` is told the plan of each that was converted.
    Every leaf is planned before the first is converted, so that a refusal costs nothing.
    """
    groups = _planned(tree, registry, engine, table_of, others)
    bar = _bar if progress else _no_bar
    leaves = tree.leaves
    with (
        tree.emptied() if consume else nullcontext(),
        bar(sum(group.spec.nbytes for group in groups)) as advance,
    ):
        for path, spec, table, plan, positions in groups:
            with Located(path):
                value = leaves[positions[0]]
                chosen = table.request.step_keywords(keywords)
                result = engine.run(plan, value, spec, table.request, chosen)
            keep(value, spec, plan, table)
            del value
            for position in positions:
                leaves[position] = result
            del result
            advance(spec.nbytes)
        return tree.rebuilt(leaves)


def _planned(
    tree: Tree,
    registry: Registry,
    engine: Engine,
    table_of: Callable[[Spec], PlanTable],
    others: Others,
) -> list[_Group]:
    groups: dict[Any, _Group] = {}
    tables: list[tuple[_Path, RefusedError]] = []
    read = reader(registry)
    for position, (path, leaf) in enumerate(zip(tree.paths, tree.leaves, strict=True)):
        with Located(path):
            value, spec = read(leaf)
            if spec is None:
                spec = _spec_of_other(registry, value, others, is_root=not path)
            if spec is None:
                continue
            # One object may be a number at many positions; each gets an array of its own.
            identity: Value = (position,) if type(value) in _NUMBERS else id(value)
            group = groups.get(identity)
            if group is None:
                table = table_of(spec)
                passes = others != "refuse" and not is_of_numbers(registry, spec)
                is_table = len(spec.shape) > 1 and "not_numbers" in spec.traits
                if passes and not is_table and table.key(spec) in table.refusals:
                    continue
                try:
                    plan = engine.plan(spec, table)
                except RefusedError as error:
                    if not passes:
                        raise
                    if is_table:
                        tables.append((path, error))
                    continue
                key = _tie(registry, value, spec, plan) or identity
                group = groups.setdefault(key, _Group(path, spec, table, plan, []))
                groups[identity] = group
            group.positions.append(position)
            tree.leaves[position] = value
    if tables and not groups:  # they may have columns of numbers, and nothing else is there
        path, refusal = tables[0]
        with Located(path):
            raise refusal
    return list({id(group): group for group in groups.values()}.values())


def _spec_of_other(
    registry: Registry, value: Value, others: Others, *, is_root: bool
) -> Spec | None:
    """Return the spec of a leaf that is no array if it is converted all the same, else None."""
    if others == "refuse" and value is not None:
        _refuse(value)
    if _hides_arrays(registry, value, is_root=is_root):
        registry.recognise(type(value))  # says what to pass instead
    is_number = others == "convert" and type(value) in _NUMBERS
    return registry.describe(value) if is_number else None


def _refuse(value: Value) -> None:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    msg = (
        f"{name} is not an array type interop recognises; leave out others='refuse' to let it pass "
        "through."
    )
    raise UnknownValueError(msg)


def _hides_arrays(registry: Registry, value: Value, *, is_root: bool) -> bool:
    """Tell whether a leaf holds arrays where no tree looks for them.

    Iterators would be used up. A tree that is one object must hold none at all, because nothing
    would be converted.
    """
    kind = type(value)
    if isinstance(value, (type, ModuleType)):
        return False
    if callable(getattr(kind, "state_dict", None)):
        return True
    is_builtin = kind.__module__ in {"builtins", "itertools"}
    if isinstance(value, Iterator) and (is_builtin or is_root):
        return True
    is_sequence = isinstance(value, Sequence) and not is_builtin
    if is_sequence or isinstance(value, (Set, MappingView)):
        contents: Value = value
    elif is_root and not isinstance(value, FunctionType):  # whose globals are not its own
        if kind not in _BUILTINS and (isinstance(value, Iterable) or hasattr(kind, "keys")):
            return True
        contents = gc.get_referents(value)
    else:
        return False
    return any(
        is_array(registry, leaf) or _hides_arrays(registry, leaf, is_root=False)
        for item in contents
        for leaf in Tree(item, partial(is_array, registry), registry.containers).leaves
    )


def is_of_numbers(registry: Registry, spec: Spec) -> bool:
    """Tell whether a value that no route takes is refused for another reason than its elements."""
    if "not_numbers" in spec.traits:
        return False
    hints = registry.formats[spec.format].limits.refusal_hints.keys()
    return spec.dtype in DTYPES or bool(spec.traits & (hints - TRAITS.keys()))


def _tie(registry: Registry, value: Value, spec: Spec, plan: Plan) -> Value | None:
    """Return a key that is equal for values that are the same elements in the same memory.

    One copy is made for all of them. Address, dtype and shape identify only a dense array that lies
    in one block. A sparse array also has a fill value, a quantized one an axis, a labelled one an
    index; and a value that offers a protocol may export memory that is gone.
    """
    format_ = registry.formats[spec.format]
    memory = format_.memory if plan.writes and _is_plain_array(format_) else None
    if memory is None or "noncontiguous" in spec.traits:
        return None
    extents = memory(value)
    if not extents or not all(nbytes for _, nbytes in extents):
        return None
    if spec.traits & _IGNORED:
        spec = spec._replace(traits=spec.traits - _IGNORED)
    return (extents, spec, plan.steps[-1].after.traits)


def _is_plain_array(format_: Format) -> bool:
    """Tell whether the memory of a format's values is all there is to them."""
    own = format_.wrapper is None and not format_.protocol
    return own and format_.is_dense and format_.labels is None and not format_.lazy


class Located:
    """Lets an error say where in the tree it came up; entered for every leaf, so it is a class.

    Parameters
    ----------
    path : tuple
    named : callable, default tuple
        Returns the path as messages write it.
    """

    __slots__ = ("_named", "_path")

    def __init__(self, path: _Path, named: Callable[[_Path], _Path] = tuple) -> None:
        self._path = path
        self._named = named

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, InteropError):
            error.locate(joined(self._named(self._path)))
        elif isinstance(error, BaseException):
            error.add_note(f"raised at {joined(self._named(self._path))} in the tree")


@contextmanager
def _no_bar(total: int) -> Iterator[Callable[[int], None]]:
    yield lambda _: None


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    """Show on standard error how many of the bytes have been read."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn
    except ImportError:
        msg = "progress=True needs rich, which is not installed: pip install 'array-interop[tree]'"
        raise NotInstalledError(msg, name="rich") from None
    columns = BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("converting", total=total)
        yield lambda nbytes: progress.advance(task, nbytes)
