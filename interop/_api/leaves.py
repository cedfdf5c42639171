"""The leaves of a tree: all of them planned, then each converted once, however often it occurs."""

from __future__ import annotations

import builtins
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence, Set
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, partial
from types import FunctionType, ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias

from interop._execution.converter import Converter, Converters
from interop._execution.fast import Fast
from interop._execution.fast_leaves import batches, fast_leaves
from interop._model.dtype import DTYPES
from interop._model.format import Format
from interop._model.provenance import how_to_install
from interop._model.spec import TRAITS, Spec
from interop._model.text import listed
from interop._model.typing import SCALARS, Value
from interop._planning.plan import Plan
from interop._registry.registry import Registry
from interop._request.keywords import Keywords
from interop._request.policy import is_traced
from interop._text import lines
from interop.errors import (
    BadRequestError,
    InteropError,
    NotInstalledError,
    RefusedError,
    RefusedLeavesError,
    UnknownValueError,
)

from .tree import Tree, joined

_Path = tuple[Any, ...]

#: The fate of leaves that are not arrays: leave them, make arrays of numbers, or refuse.
Others: TypeAlias = Literal["keep", "convert", "refuse"]

#: The fate of lists: they are opened, or those of numbers or of arrays are one array each.
Lists: TypeAlias = Literal["open", "arrays"]

_BUILTINS = frozenset(kind for kind in vars(builtins).values() if isinstance(kind, type))

#: The types that pass through trees, by the fate of leaves that are not arrays.
_PASSED: Mapping[str, Set[type]] = {
    "keep": SCALARS,
    "convert": frozenset({str, bytes, type(None)}),
    "refuse": frozenset({type(None)}),
}

#: The types of Python's numbers.
NUMBERS = (bool, int, float, complex)

#: How many refused leaves an error names.
_MOST_REFUSED = 10

#: Traits that do not keep two values over one memory from having the same result.
_IGNORED = frozenset({"grad"})


class _Group(NamedTuple):
    """One array of a tree: its plan, and all its indices."""

    spec: Spec
    chosen: Converter
    plan: Plan
    indices: list[int]


class _Stacks:
    """What a fast path makes of the lists of a tree, which nothing cheaper tells from others."""

    def __init__(self, path: Any) -> None:
        self._path = path
        self.results: dict[int, Value] = {}

    def add(self, value: list[Value]) -> bool:
        """Return whether the path takes a list, and keep the result; the tree keeps the list."""
        with suppress(InteropError):  # raised again by code that can say where in the tree it is
            result = self._path(value) if callable(self._path) else NotImplemented
            if result is not NotImplemented:
                self.results[id(value)] = result
        return id(value) in self.results

    def result(self, value: list[Value]) -> Value:
        """Return what has been made of a list."""
        return self.results.get(id(value), NotImplemented)


class Trees:
    """Converts the arrays in trees: by the fast paths of their types, and what has none by plans.

    Parameters
    ----------
    converters : Converters
    """

    def __init__(self, converters: Converters) -> None:
        self._registry = registry = converters.registry
        self._engine = converters.engine
        self._is_leaf = partial(is_array, registry)

    def converted(
        self,
        root: Value,
        converter: Converter,
        keywords: Keywords,
        others: Others,
        lists: Lists,
        *,
        progress: bool,
        consume: bool,
    ) -> Value:
        """Return a tree with its arrays converted."""
        _check_fates(others, lists)
        asks_more = progress or consume or keywords.stream is not None or is_traced()
        learnt: Mapping[type, Fast] = {} if asks_more else converter.learnt
        fast: Mapping[type, Fast] = {} if asks_more else converter.leaves
        if others == "convert":
            fast = {**fast, **{kind: learnt[kind] for kind in NUMBERS if kind in learnt}}
        stacks = None
        if lists == "arrays":
            stacks = _Stacks(learnt[list].staying if list in learnt else NotImplemented)
        tree = Tree(
            root,
            self._leaf_test(others, stacks),
            self._registry.containers,
            lists=stacks is not None,
            passed=_PASSED[others],
            arrays=fast,
        )
        del root
        indices: Sequence[int] = tree.leaves
        if stacks is not None and stacks.results:
            of_lists = Fast()
            of_lists.parts = ((stacks.result, None),)
            fast = {**fast, list: of_lists}
        if fast:
            indices = self._left(tree, fast)
            if not indices:
                return tree.rebuilt()
        return self._by_plans(
            tree,
            indices,
            converter,
            keywords,
            others=others,
            progress=progress,
            consume=consume,
        )

    def _leaf_test(self, others: Others, stacks: _Stacks | None) -> Callable[[Value], bool]:
        """Return the function that tells which leaves of a tree are converted.

        Without `stacks` all lists are opened.
        """
        numbers = NUMBERS if others == "convert" else ()
        if stacks is None and not numbers:
            return self._is_leaf

        def is_converted(value: Value) -> bool:
            if stacks is not None and type(value) is list:
                return stacks.add(value) or is_list_of_numbers(self._registry, value)
            return type(value) in numbers or self._is_leaf(value)

        return is_converted

    @staticmethod
    def _left(tree: Tree, fast: Mapping[type, Fast]) -> Sequence[int]:
        """Convert leaves of a tree by fast paths; return the indices of those that are left."""
        values, indices, left = tree.values, tree.leaves, []
        results = fast_leaves([values[index] for index in indices], fast)
        for index, result in zip(indices, results, strict=True):
            if result is NotImplemented:
                left.append(index)
            else:
                values[index] = result
        return left

    def _by_plans(
        self,
        tree: Tree,
        indices: Sequence[int],
        converter: Converter,
        keywords: Keywords,
        *,
        others: Others,
        progress: bool,
        consume: bool,
    ) -> Value:
        """Return a tree with the leaves at some indices converted by plans.

        Every leaf is planned before the first is converted, so that a refusal costs nothing.
        """
        version = self._registry.version
        groups = self._planned(tree, indices, converter, others)
        total, values = sum(group.spec.nbytes for group in groups), tree.values
        with (
            tree.emptied() if consume else nullcontext(),
            _bar(total) if progress else nullcontext(_nothing) as advance,
        ):
            for batch in _batches(groups, keywords):
                if len(batch) > 1 and self._convert_at_once(tree, batch, converter, version):
                    advance(sum(group.spec.nbytes for group in batch))
                    continue
                for spec, chosen, plan, same in batch:
                    with Located(partial(tree.path, same[0])):
                        value = values[same[0]]
                        words = chosen.request.step_keywords(keywords)
                        result = self._engine.run(plan, value, spec, chosen.request, words)
                    converter.learn(value, result, spec, plan, chosen, version=version)
                    del value
                    for index in same:
                        values[index] = result
                    del result
                    advance(spec.nbytes)
            return tree.rebuilt()

    def _convert_at_once(
        self, tree: Tree, batch: list[_Group], converter: Converter, version: int
    ) -> bool:
        """Put the results for some arrays at their indices, or answer that nothing was done."""
        values, convert = tree.values, batch[0].plan._batch
        assert convert is not None
        arrays = [values[group.indices[0]] for group in batch]
        with Located(partial(tree.path, batch[0].indices[0])):
            results = convert(arrays)
        if results is NotImplemented:
            return False
        for array, result, (spec, chosen, plan, same) in zip(arrays, results, batch, strict=True):
            if not plan._batch_verified:
                with Located(partial(tree.path, same[0])):
                    self._engine.compare(plan, spec, result)
            converter.learn(array, result, spec, plan, chosen, version=version)
            for index in same:
                values[index] = result
        for group in batch:
            group.plan._batch_verified = True
        return True

    def _planned(
        self, tree: Tree, indices: Sequence[int], converter: Converter, others: Others
    ) -> list[_Group]:
        registry = self._registry
        groups: dict[Any, _Group] = {}
        tables: list[RefusedError] = []
        refused: list[RefusedError] = []
        read, are_all = reader(registry), len(indices) == len(tree.leaves)
        indices = [*indices]  # to which what arrays hold is added
        for index in indices:
            with Located(partial(tree.path, index)):
                value, spec = read(tree.values[index])
                if spec is None:
                    spec = _spec_of_other(registry, value, others, is_root=not index)
                if spec is None:
                    continue
                # One object may be a number at many indices; each gets an array of its own.
                identity: Value = (index,) if type(value) in NUMBERS else id(value)
                group = groups.get(identity)
                if group is None:
                    chosen = converter.chosen(spec)
                    passes = others != "refuse" and not is_of_numbers(registry, spec)
                    is_table = len(spec.shape) > 1 and "not_numbers" in spec.traits
                    is_odd = spec.dtype not in DTYPES  # it may be of records
                    if passes and not is_table and chosen.refuses(spec):
                        indices += tree.opened_leaf(index) if is_odd else ()
                        continue
                    try:
                        plan = chosen.plan(spec)
                    except RefusedError as error:
                        held = tree.opened_leaf(index) if is_odd else []
                        indices += held
                        if not held and (is_table or not passes):
                            error.locate(joined(tree.path(index)))
                            (tables if passes else refused).append(error.with_traceback(None))
                        continue
                    key = _tie(registry, value, spec, plan) or identity
                    group = groups.setdefault(key, _Group(spec, chosen, plan, []))
                    groups[identity] = group
                group.indices.append(index)
                tree.values[index] = value
        # Tables may have columns of numbers; they pass if something else in the tree is an array.
        if tables and not groups and are_all:
            refused += tables
        if len(refused) > 1:
            raise _refused(refused)
        if refused:
            raise refused[0]
        return list({id(group): group for group in groups.values()}.values())


def _refused(errors: list[RefusedError]) -> RefusedLeavesError:
    """Return the error to raise for several leaves that are refused, with the first of theirs."""
    paths = listed([error.where for error in errors[1:]], _MOST_REFUSED - 1)
    text = [*str(errors[0]).split("\n"), f"Refused as well: {paths}."]
    return RefusedLeavesError(lines(text), errors[:_MOST_REFUSED])


def _batches(groups: Iterable[_Group], keywords: Keywords) -> Iterator[list[_Group]]:
    """Yield the arrays of a tree, those together that are converted at once.

    The first array of a plan is alone: its result is compared with the plan. So is every array of a
    traced call, each of which leaves a receipt with its time, and of one that names a stream.
    """
    at_once: dict[object, list[_Group]] = {}
    is_in_trace = is_traced()
    for group in groups:
        plan, chosen = group.plan, group.chosen.request.step_keywords(keywords)
        if is_in_trace or chosen or plan._batch is None or not plan._is_known:
            yield [group]
        else:
            at_once.setdefault(plan._key, []).append(group)
    for same in at_once.values():
        for indices in batches([group.spec.nbytes for group in same]):
            yield [same[index] for index in indices]


def _check_fates(others: object, lists: object) -> None:
    """Refuse an unknown answer to what happens to leaves that are not arrays, or to lists."""
    if not isinstance(others, str) or others not in _PASSED:
        msg = f"others must be 'keep', 'convert' or 'refuse', got {others!r}."
        raise BadRequestError(msg)
    if not isinstance(lists, str) or lists not in {"open", "arrays"}:
        msg = f"lists must be 'open' or 'arrays', got {lists!r}."
        raise BadRequestError(msg)


def is_array(registry: Registry, value: Value) -> bool:
    """Return whether a value counts as an array inside a tree.

    Python's own numbers, strings, bytes and lists are values or containers there, although one of
    them alone can be converted. The same goes for types derived from these. A mapping is several
    arrays, unless it is a dict of elements by their indices, as SciPy has.
    """
    is_mapping = isinstance(value, Mapping)
    if type(value).__module__ == "builtins" or (is_mapping and not isinstance(value, dict)):
        return False
    try:
        format_ = registry.recognition.format_of(value)
    except UnknownValueError:
        return False
    return _are_of_arrays(format_.types) and not (is_mapping and format_.protocol)


def is_list_of_numbers(registry: Registry, value: Value) -> bool:
    """Return whether a value is a list of numbers or of arrays, which one array can stand for."""
    if type(value) is not list:
        return False
    try:
        registry.recognition.describe(value)
    except UnknownValueError:
        return False
    except BadRequestError:  # raised again by code that can say where in the tree it came up
        return True
    return True


@cache
def _are_of_arrays(types: tuple[str, ...]) -> bool:
    return not types or any(not name.startswith("builtins:") for name in types)


def reader(registry: Registry) -> Callable[[Value], tuple[Value, Spec | None]]:
    """Return a function that gives each leaf with its spec, which is None if it is no array.

    A leaf is described once, and opened once if it is unwrapped before all else.
    """
    seen: dict[int, tuple[Value, Value, Spec]] = {}

    def read(leaf: Value) -> tuple[Value, Spec | None]:
        if id(leaf) in seen:
            return seen[id(leaf)][1:]
        if type(leaf) is not list and not is_array(registry, leaf):  # other lists are opened
            return leaf, None
        value = registry.recognition.opened(leaf)
        spec = registry.recognition.describe(value)
        seen[id(leaf)] = leaf, value, spec  # the leaf lives on, so that no other gets its `id`
        return value, spec

    return read


def _spec_of_other(
    registry: Registry, value: Value, others: Others, *, is_root: bool
) -> Spec | None:
    """Return the spec of a leaf that is no array if it is converted all the same, else None."""
    if others == "refuse" and value is not None:
        _refuse(value)
    if _hides_arrays(registry, value, is_root=is_root):
        registry.recognition.describe(value)  # says what to pass instead
    is_number = others == "convert" and type(value) in NUMBERS
    return registry.recognition.describe(value) if is_number else None


def _refuse(value: Value) -> None:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    msg = (
        f"{name} is not an array type interop recognises; leave out others='refuse' to let it pass "
        "through."
    )
    raise UnknownValueError(msg)


def _hides_arrays(registry: Registry, value: Value, *, is_root: bool) -> bool:
    """Return whether a leaf holds arrays where no tree looks for them.

    Iterators would be used up. A tree that is one object must hold none at all, because nothing
    would be converted.
    """
    kind = type(value)
    if isinstance(value, (type, ModuleType)):
        return False
    is_builtin = kind.__module__ in {"builtins", "itertools"}
    if not is_builtin and registry.recognition.hint(kind):
        return True
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
    is_leaf = partial(is_array, registry)
    trees = (Tree(item, is_leaf, registry.containers) for item in contents)
    leaves = ((tree.arrays, [tree.values[n] for n in tree.leaves]) for tree in trees)
    return any(
        arrays
        or any(_hides_arrays(registry, part, is_root=False) for part in parts)
        # The parts of an object may have attributes, too, as the steps of a pipeline do.
        or (is_root and any(is_leaf(held) for part in parts for held in _attributes(part)))
        for arrays, parts in leaves
    )


def _attributes(value: Value) -> Iterable[Value]:
    """Return the values of the attributes of an object that is no class, module or function."""
    is_shared = isinstance(value, (type, ModuleType, FunctionType))
    return () if is_shared else [*getattr(value, "__dict__", {}).values()]


def is_of_numbers(registry: Registry, spec: Spec) -> bool:
    """Return whether a value that no route takes is refused for anything but its elements."""
    if "not_numbers" in spec.traits:
        return False
    hints = registry.formats[spec.format].limits.refusal_hints.keys()
    own = hints - TRAITS.keys() | {"several_dtypes", "unknown_dtype"}
    return spec.dtype in DTYPES or bool(spec.traits & own)


def _tie(registry: Registry, value: Value, spec: Spec, plan: Plan) -> Value | None:
    """Return a key that is equal for values of a type that are the same elements in one memory.

    One copy is made for all of them. Address, dtype and shape identify only a dense array that lies
    in one block. A sparse array also has a fill value, a quantized one an axis, a labelled one an
    index; and a value that offers a protocol may export memory that is gone.
    """
    format_ = registry.formats[spec.format]
    memory = format_.memory if not plan.zero_copy and _is_plain_array(format_) else None
    if memory is None or "noncontiguous" in spec.traits:
        return None
    extents = memory(value)
    if not extents or not all(nbytes for _, nbytes in extents):
        return None
    if spec.traits & _IGNORED:
        spec = spec._replace(traits=spec.traits - _IGNORED)
    return (type(value), extents, spec, plan.steps[-1].after.traits)


def _is_plain_array(format_: Format) -> bool:
    """Return whether the memory of a format's values is all there is to them."""
    own = format_.wrapper is None and not format_.protocol
    return own and format_.is_dense and format_.labels is None and not format_.lazy


class Located:
    """Lets an error say where in the tree it came up; entered for every leaf, so it is a class.

    Parameters
    ----------
    path_of : callable
        Returns the path.
    named : callable, default tuple
        Returns the path as messages write it.
    """

    __slots__ = ("_named", "_path_of")

    def __init__(
        self, path_of: Callable[[], _Path], named: Callable[[_Path], _Path] = tuple
    ) -> None:
        self._path_of = path_of
        self._named = named

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, InteropError):
            error.locate(joined(self._named(self._path_of())))
        elif isinstance(error, BaseException):
            error.add_note(f"raised at {joined(self._named(self._path_of()))} in the tree")


def _nothing(_: int) -> None: ...


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    """Show on standard error how many of the bytes have been read."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn
    except ImportError:
        msg = f"progress=True needs rich, which is not installed: {how_to_install('tree')}"
        raise NotInstalledError(msg, name="rich") from None
    columns = BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("converting", total=total)
        yield lambda nbytes: progress.advance(task, nbytes)
