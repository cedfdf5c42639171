"""Batches: the leaves of a tree that a conversion takes all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import interop
from interop import Conversion, Cost, Format, Interop, Spec
from interop.errors import ConversionError
from interop.plugin import Cast, Copy, Declined
from interop.plugin.advanced import Advanced
from tests.cases import together
from tests.inside import forget

MIB = 2**20


class Leaf:
    """A value of a toy framework, of as many bytes as it says."""

    def __init__(
        self, kind: str, nbytes: int, number: int = 0, dtype: str = "uint8", device: str = "cuda:0"
    ) -> None:
        self.kind, self.nbytes, self.number = kind, nbytes, number
        self.dtype, self.device = dtype, device


class Weight(Leaf):
    """Another type of the same framework."""


def describe(leaf: Leaf) -> Spec:
    size = leaf.nbytes // {"uint8": 1, "float32": 4}[leaf.dtype]
    return Spec(leaf.kind, leaf.dtype, leaf.device, (size,), nbytes=leaf.nbytes)


class Calls(list[Any]):
    """The numbers of the leaves that each call has converted: a list for those at once."""

    answer: Any = None

    def convert(self, leaf: Leaf, *, device: str, stream: object = None) -> Leaf:
        self.append(leaf.number)
        if leaf.number == 666:
            raise OSError("the link is down")
        return Leaf("here", leaf.nbytes, leaf.number, leaf.dtype, device)

    def batch(self, leaves: list[Leaf], *, device: str) -> Any:
        self.append([leaf.number for leaf in leaves])
        if isinstance(self.answer, BaseException):
            raise self.answer
        if self.answer is not None:
            return self.answer
        return [Leaf("here", x.nbytes, x.number, x.dtype, device) for x in leaves]


@pytest.fixture
def calls() -> Calls:
    return Calls()


def download(calls: Calls) -> Conversion:
    """Return the conversion of leaves on a device, of several at once, too."""
    return Conversion(
        "there",
        "here",
        calls.convert,
        devices={"cuda"},
        changes={"device"},
        stream=True,
        batch=calls.batch,
    )


@pytest.fixture
def mine(calls: Calls) -> Interop:
    """Return an instance with a framework on a device, and one on the host."""

    def cast(leaf: Leaf, *, dtype: str) -> Leaf:
        calls.append(f"cast {leaf.number}")
        return Leaf("there", 4 * leaf.nbytes, leaf.number, dtype, leaf.device)

    mine = Interop(plugins=False)
    shared: dict[str, Any] = {
        "types": (f"{__name__}:Leaf",),
        "describe": describe,
        "dtypes": {"uint8", "float32"},
        "memory": lambda leaf: ((4096 * (leaf.number + 1), leaf.nbytes),),
    }
    key = lambda x: (x.kind, x.dtype, x.device, x.nbytes.bit_length() >> 1)  # noqa: E731
    mine.register(
        Format(
            "there",
            **shared,
            devices=("cuda",),
            unary=(Cast(cast, {"float32"}),),
            advanced=Advanced(fast_key=key, address=lambda leaf: 4096 * (leaf.number + 1)),
        ),
        Format("here", **shared),
        download(calls),
    )
    return mine


def leaves(count: int, nbytes: int = MIB, **fields: Any) -> list[Leaf]:
    return [Leaf("there", nbytes, number, **fields) for number in range(count)]


def check(results: Any, sources: list[Leaf]) -> None:
    assert [(x.kind, x.nbytes, x.number, x.device) for x in results] == [
        ("here", x.nbytes, x.number, "cpu") for x in sources
    ]


def test_leaves_are_converted_at_once(mine: Interop, calls: Calls) -> None:
    """The first leaf of a plan is compared with it; the others, and later trees, go at once."""
    tree = leaves(6)
    check(mine.convert_tree(tree, to="here"), tree)
    assert calls == [0, [1, 2, 3, 4, 5]]
    calls.clear()
    check(mine.convert_tree(tree, to="here"), tree)
    assert calls == [[0, 1, 2, 3, 4, 5]]


def test_leaves_of_several_sizes_go_at_once(mine: Interop, calls: Calls) -> None:
    """Plans of other sizes make the same calls."""
    tree = [Leaf("there", 100 << 3 * n, n) for n in (0, 1, 2, 3, 0, 1, 2, 3)]
    for n, leaf in enumerate(tree):
        leaf.number = n
    check(mine.convert_tree(tree, to="here"), tree)
    assert calls == [0, 1, 2, 3, [4, 5, 6, 7]]
    calls.clear()
    mine.convert_tree([*tree], to="here", consume=True)
    assert calls == [[*range(8)]]
    calls.clear()
    check(mine.convert_tree(tree, to="here"), tree)
    assert sorted(calls[0]) == [*range(8)]
    assert len(calls) == 1


@pytest.mark.parametrize("others", [{}, {"consume": True}], ids=["warm", "by plans"])
def test_devices_and_dtypes_are_apart(mine: Interop, calls: Calls, others: dict[str, Any]) -> None:
    """A batch has one dtype and one device."""
    tree = [
        *leaves(2),
        *leaves(2, device="cuda:1"),
        *leaves(2, dtype="float32"),
    ]
    for number, leaf in enumerate(tree):
        leaf.number = number
    for _ in range(2):
        calls.clear()
        check(mine.convert_tree([*tree], to="here", **others), tree)
    assert calls == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("warm", [False, True])
def test_batches_are_bounded(mine: Interop, calls: Calls, warm: bool) -> None:
    """A batch has 256 MiB at most, and a leaf of 16 MiB and more is alone."""
    for nbytes in (15 * MIB, 16 * MIB, 40 * MIB):
        mine.convert_tree(leaves(1, nbytes), to="here")
    tree = [*leaves(20, 15 * MIB), Leaf("there", 16 * MIB, 20), Leaf("there", 40 * MIB, 21)]
    calls.clear()
    check(mine.convert_tree([*tree], to="here", consume=not warm), tree)
    assert sorted(calls, key=str) == [20, 21, [*range(17)], [17, 18, 19]]


@pytest.mark.parametrize("others", [{}, {"consume": True}], ids=["warm", "by plans"])
def test_one_array_is_one_result(mine: Interop, calls: Calls, others: dict[str, Any]) -> None:
    """A leaf that occurs twice, or whose memory does, is converted once among the others."""
    mine.convert_tree(leaves(1), to="here")
    a, b, c = leaves(3)
    tied = Leaf("there", MIB, 1)
    calls.clear()
    first, second, *rest = mine.convert_tree([a, b, a, tied, c], to="here", **others)
    check([first, second, *rest], [a, b, a, b, c])
    assert first is rest[0]
    assert second is rest[1]
    flat = [n for call in calls for n in (call if type(call) is list else [call])]
    assert sorted(flat) == [0, 1, 2]


@pytest.mark.parametrize(
    "answer", [NotImplemented, Declined("no"), OSError("the link is down")], ids=repr
)
@pytest.mark.parametrize("others", [{}, {"consume": True}], ids=["warm", "by plans"])
def test_what_does_not_go_at_once_goes_one_by_one(
    mine: Interop, calls: Calls, answer: Any, others: dict[str, Any]
) -> None:
    """A batch that gains nothing, or fails, is no error of the tree."""
    mine.convert_tree(leaves(1), to="here")
    calls.clear()
    calls.answer, tree = answer, leaves(3)
    check(mine.convert_tree([*tree], to="here", **others), tree)
    assert calls == [[0, 1, 2], 0, 1, 2]


@pytest.mark.parametrize("others", [{}, {"consume": True}], ids=["warm", "by plans"])
def test_an_error_names_the_leaf(mine: Interop, calls: Calls, others: dict[str, Any]) -> None:
    """The leaf that cannot be converted is found, with its path and its step."""
    mine.convert_tree(leaves(1), to="here")
    calls.answer = OSError("the link is down")
    tree = {"good": Leaf("there", MIB, 1), "bad": [Leaf("there", MIB, 666)]}
    with pytest.raises(ConversionError, match=r"bad/0.*convert, declared by.*the link is down"):
        mine.convert_tree(tree, to="here", **others)
    assert tree["bad"][0].number == 666  # type: ignore[index]


#: What a batch gives in the place of its results, and what the error says: of the first leaf where they
#: cannot be told apart.
BROKEN: dict[str, tuple[Callable[[list[Leaf]], Any], str]] = {
    "one too few": (lambda made: made[1:], "^0: convert gave 1 results for 2 values"),
    "one too many": (lambda made: [*made, made[0]], "^0: convert gave 3 results for 2 values"),
    "nothing": (lambda made: {}, "^0: convert gave 0 results for 2 values"),
    "no results": (lambda made: 5, "^0: convert gave 0 results for 2 values"),
    "another dtype": (
        lambda made: [made[0], Leaf("here", made[1].nbytes, 1, "float32", "cpu")],
        r"^1: convert promised here uint8 \(1048576,\) on cpu and gave here float32",
    ),
    "another format": (
        lambda made: [made[0], Leaf("there", made[1].nbytes, 1, "uint8", "cpu")],
        "^1: convert promised here uint8 .* and gave there uint8",
    ),
    "no array": (lambda made: [made[0], None], "^1: convert promised here and gave None"),
}


@pytest.mark.parametrize("others", [{}, {"consume": True}], ids=["warm", "by plans"])
@together("name", BROKEN)
def test_the_results_of_a_first_batch_are_compared_with_the_plan(
    name: str, mine: Interop, calls: Calls, others: dict[str, Any]
) -> None:
    """A batch that breaks its declaration is named at once, and a tree keeps its leaves."""
    forget(mine)
    mine.convert_tree(leaves(1), to="here")
    made = [Leaf("here", MIB, number, "uint8", "cpu") for number in range(2)]
    change, message = BROKEN[name]
    calls.answer, tree = change(made), leaves(2)
    for _ in range(2):
        with pytest.raises(ConversionError, match=message):
            mine.convert_tree([*tree], to="here", **others)
    calls.answer = (leaf for leaf in made)  # an iterator of as many is a sequence of results
    check(mine.convert_tree([*tree], to="here", **others), tree)
    calls.answer = None
    check(mine.convert_tree([*tree], to="here", **others), tree)


def test_an_interruption_passes(mine: Interop, calls: Calls) -> None:
    """Ctrl-C in a batch ends the call, and a tree that was emptied is filled again."""
    mine.convert_tree(leaves(1), to="here")
    calls.answer, tree = KeyboardInterrupt(), leaves(3)
    sources = [*tree]
    for others in ({}, {"consume": True}):
        with pytest.raises(KeyboardInterrupt):
            mine.convert_tree(tree, to="here", **others)
        assert tree == sources


def test_a_trace_has_every_leaf(mine: Interop, calls: Calls) -> None:
    """In a traced block each leaf is converted by itself, and leaves a receipt with its time."""
    tree = leaves(3)
    mine.convert_tree(tree, to="here")
    calls.clear()
    with interop.trace() as receipts:
        check(mine.convert_tree(tree, to="here"), tree)
    assert calls == [0, 1, 2]
    assert [receipt.steps for receipt in receipts] == [("convert",)] * 3


def test_a_stream_is_for_every_leaf(mine: Interop, calls: Calls) -> None:
    """What names a stream is converted by steps that take it."""
    tree = leaves(3)
    for _ in range(2):
        mine.convert_tree(tree, to="here", stream=5)
    assert calls == [0, 1, 2] * 2


def test_steps_before_the_batch_are_made(mine: Interop, calls: Calls) -> None:
    """Each leaf is cast on its device before all of them cross."""
    tree = leaves(3)
    for _ in range(2):
        calls.clear()
        results = mine.convert_tree(tree, to="here", dtype={"uint8": "float32"})
    assert calls == ["cast 0", "cast 1", "cast 2", [0, 1, 2]]
    assert [(x.number, x.dtype, x.nbytes) for x in results] == [
        (n, "float32", 4 * MIB) for n in range(3)
    ]


def test_leaves_cross_at_once_and_are_turned_one_by_one(calls: Calls) -> None:
    """With ``order="F"`` the step before the one that turns elements takes all leaves at once."""

    def turn(leaf: Leaf) -> Leaf:
        calls.append(f"turn {leaf.number}")
        return leaf

    mine, turned = Interop(plugins=False), frozenset({"noncontiguous", "fortran"})
    shared: dict[str, Any] = {
        "types": (f"{__name__}:Leaf",),
        "describe": lambda leaf: describe(leaf)._replace(shape=(2, leaf.nbytes // 2)),
        "dtypes": {"uint8"},
    }
    mine.register(
        Format("there", devices=("cuda",), **shared),
        Format("here", carries=turned, unary=(Copy(turn, adds=turned),), **shared),
        download(calls),
    )
    tree = leaves(3)
    check(mine.convert_tree(tree, to="here", order="F"), tree)
    assert calls == [0, "turn 0", [1, 2], "turn 1", "turn 2"]


def test_progress_counts_the_bytes_of_batches(
    mine: Interop, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch counts for all of its leaves."""
    rich = pytest.importorskip("rich.progress", reason="rich is not installed here")
    counts: list[int] = []
    monkeypatch.setattr(rich.Progress, "advance", lambda bar, task, n: counts.append(n))
    mine.convert_tree(leaves(1), to="here")
    mine.convert_tree(leaves(3), to="here", progress=True)
    assert counts == [3 * MIB]
    assert calls[-1] == [0, 1, 2]


@pytest.fixture
def both(calls: Calls) -> Interop:
    """Return an instance with a framework on both sides, whose values on the host are shared."""

    def shared(leaf: Leaf) -> Any:
        return Leaf("here", leaf.nbytes, leaf.number) if leaf.device == "cpu" else NotImplemented

    def share(leaf: Leaf) -> Leaf:
        calls.append(f"shared {leaf.number}")
        return Leaf("here", leaf.nbytes, leaf.number, leaf.dtype, "cpu")

    mine = Interop(plugins=False)
    facts: dict[str, Any] = {
        "types": (f"{__name__}:Leaf", f"{__name__}:Weight"),
        "describe": describe,
        "dtypes": {"uint8"},
        "memory": lambda leaf: ((4096 * (leaf.number + 1), leaf.nbytes),),
    }

    def key(leaf: Leaf) -> Any:
        if leaf.number == 100:
            raise ValueError("it is gone")
        return leaf.device, leaf.nbytes.bit_length() >> 1

    advanced = Advanced(fast_key=key, address=lambda leaf: 4096 * (leaf.number + 1))
    mine.register(
        Format("there", **facts, devices=("cpu", "cuda"), advanced=advanced),
        Format("here", **facts),
        Conversion("there", "here", share, fast_path=shared, cost=Cost(1e-7)),
        download(calls),
    )
    return mine


@pytest.mark.parametrize("first", ["cpu", "cuda:0"])
def test_a_second_way_of_a_type_serves_trees(both: Interop, calls: Calls, first: str) -> None:
    """Whichever way a type was first converted, later trees take both, and describe no leaf."""
    second = {"cpu": "cuda:0", "cuda:0": "cpu"}[first]
    for device in (first, second):
        both.convert_tree(leaves(3, device=device), to="here")
    calls.clear()
    tree = [Leaf("there", MIB, n, device="cpu" if n % 2 else "cuda:0") for n in range(6)]
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(both._registry.recognition, "describe", lambda value: 1 / 0)
        result = both.convert_tree([*tree, tree[0], tree[1]], to="here")
    assert calls == [[0, 2, 4]]
    assert [leaf.number for leaf in result] == [0, 1, 2, 3, 4, 5, 0, 1]
    assert result[0] is result[6]


def test_tied_leaves_stay_tied_on_a_second_way(both: Interop, calls: Calls) -> None:
    """Leaves over one memory get one result, and what no way takes is converted by its plan."""
    for device in ("cpu", "cuda:0"):
        both.convert_tree(leaves(3, device=device), to="here")
    calls.clear()
    host, a, b = Leaf("there", MIB, 7, device="cpu"), *leaves(2)
    tied, odd = Leaf("there", MIB, 0), Leaf("there", MIB, 100)
    result = both.convert_tree([host, a, tied, b], to="here")
    assert calls == [1, 0]
    assert result[1] is result[2]
    assert [leaf.number for leaf in result] == [7, 0, 0, 1]
    calls.clear()
    result = both.convert_tree([host, a, b, odd], to="here")
    assert [leaf.number for leaf in result] == [7, 0, 1, 100]
    assert calls == [0, 1, 100]


def test_a_leaf_without_a_key_is_planned(both: Interop, calls: Calls) -> None:
    """An error of what tells plain values apart is none of the tree."""
    both.convert_tree(leaves(2), to="here")
    calls.clear()
    result = both.convert_tree([*leaves(2), Leaf("there", MIB, 100)], to="here")
    assert [leaf.number for leaf in result] == [0, 1, 100]
    assert calls == [0, 1, 100]


def test_leaves_of_two_types_are_two_arrays(both: Interop, calls: Calls) -> None:
    """Leaves of two types over one memory are not tied, in the first call and in later ones."""
    for device in ("cpu", "cuda:0"):
        both.convert_tree(leaves(3, device=device), to="here")
    both.convert_tree([Weight("there", MIB, device="cpu")] * 2, to="here")
    leaf, weight = Leaf("there", MIB, 3), Weight("there", MIB, 3)
    for _ in range(3):
        calls.clear()
        result = both.convert_tree([Leaf("there", MIB, 4, device="cpu"), leaf, weight], to="here")
        assert calls == [3, 3]
        assert result[1] is not result[2]
