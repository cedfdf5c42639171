"""Calibration: what is measured, how it is kept, and that it changes nothing but speed."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import interop
from interop import Conversion, Cost, Interop, make_spec
from interop._calibration.measure import calibrate
from interop._calibration.measure import measure as _calibration
from interop._calibration.sample import NoSample, Wanted, _varied, sample
from interop._execution.trace import shares_memory
from interop._model.cost import CACHED
from interop._registry.registry import costs as kept

from .toys import Box, toy

KEY = "array-interop: numpy → numpy: copy"

# ------------------------------------------------------------------ costs and the table


def test_the_first_bytes_are_counted_at_the_speed_of_the_caches() -> None:
    """With a second speed the estimate is continuous, and the one of fresh memory counts for the rest."""
    cost = Cost(1e-6, bandwidth=1e9, cached=1e10)
    nothing, some, many = (
        make_spec("numpy", "uint8", shape=(n,)) for n in (0, CACHED // 2, 8 * CACHED)
    )
    assert cost.seconds(nothing, nothing) == 1e-6
    assert cost.seconds(some, some) == pytest.approx(1e-6 + CACHED / 1e10)
    assert cost.seconds(many, nothing) == pytest.approx(1e-6 + CACHED / 1e10 + 7 * CACHED / 1e9)
    assert (cost.fastest, Cost(1e-6).fastest, Cost(0, 5.0).fastest) == (1e10, float("inf"), 5.0)


def test_every_conversion_has_a_key_of_its_own() -> None:
    """No two conversions in force would share a row of the table."""
    keys = [declared.key for declared in interop.conversions()]
    assert len(set(keys)) == len(keys)
    assert KEY in keys


def test_a_table_takes_the_place_of_declared_costs() -> None:
    """`costs=` prices conversions and handling; what it leaves out keeps what is declared."""
    mine = Interop(costs={KEY: Cost(3.0, 7.0), "scipy.csr": Cost(5.0)})
    costs = {declared.key: declared.conversion.cost for declared in mine.conversions()}
    declared = {d.key: d.conversion.cost for d in Interop(costs={}).conversions()}
    assert costs[KEY] == Cost(3.0, 7.0)
    assert {k: c for k, c in costs.items() if k != KEY} == {
        k: c for k, c in declared.items() if k != KEY
    }
    assert {f.name for f in mine.formats() if f.format.handling == 5.0} == {"scipy.csr"}


def test_the_planner_goes_by_the_table(empty: Interop) -> None:
    """The same declarations give another route under other costs, also for what comes later."""
    both = [
        Conversion("a", "b", Box, effects=frozenset({"copy"}), cost=Cost(1e-6), name=name)
        for name in ("one", "other")
    ]
    empty.register(toy("a"), toy("b"), *both)
    spec = make_spec("a", "float32", shape=(4,))
    assert [s.label for s in empty.plan(spec, to="b").steps] == ["one"]
    mine = Interop(plugins=False, costs={"run time: a → b: one": Cost(2e-6)})
    mine.register(toy("a"), toy("b"), *both)
    assert [s.label for s in mine.plan(spec, to="b").steps] == ["other"]


def test_declaring_again_under_a_table_is_harmless(loaded: Interop) -> None:
    """A declaration is compared with what was declared, not with what was measured."""
    table = {d.key: Cost(1.0) for d in loaded.conversions()} | {"numpy": Cost(1.0)}
    mine = Interop(costs=table)
    copy = next(d.conversion for d in loaded.conversions() if d.key == KEY)
    numpy = next(f.format for f in loaded.formats() if f.name == "numpy")
    mine.register(numpy, copy)
    assert {d.conversion.cost for d in mine.conversions()} == {Cost(1.0)}


# ------------------------------------------------------------------ the file


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is named by the environment, with the costs of this machine in it."""
    path = tmp_path / "costs.json"
    monkeypatch.setenv("INTEROP_CALIBRATION", str(path))
    kept.write(path, kept.encoded({KEY: Cost(3.0, 7e9, 8e9), "scipy.csr": Cost(5.0)}))
    return path


def _cost_of_copy(face: Interop) -> Cost:
    return next(d.conversion.cost for d in face.conversions() if d.key == KEY)


DECLARED = _cost_of_copy(Interop(costs={}))


def test_what_is_stored_is_read_with_the_plugins(file: Path) -> None:
    """Every instance with plugins has the stored costs, unless it was given some."""
    assert _cost_of_copy(Interop()) == Cost(3.0, 7e9, 8e9)
    assert _cost_of_copy(Interop(costs={})) == DECLARED


@pytest.mark.parametrize("word", ["", "off"])
def test_the_file_can_be_switched_off(word: str, file: Path, monkeypatch: Any) -> None:
    """An empty variable, or ``off``, means the declared costs."""
    monkeypatch.setenv("INTEROP_CALIBRATION", word)
    assert _cost_of_copy(Interop()) == DECLARED


def test_each_machine_has_a_file_of_its_own(monkeypatch: Any, tmp_path: Path) -> None:
    """Machines that share a home do not read each other's files."""
    monkeypatch.delenv("INTEROP_CALIBRATION")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here = kept.default_file()
    monkeypatch.setattr(kept, "_processor", lambda: "another")
    assert here != kept.default_file()
    assert here is not None
    assert here.parent.name == "interop"


def _changed(**facts: Any) -> Callable[[str], bytes]:
    return lambda text: json.dumps({**json.loads(text), **facts}).encode()


def _machine(**facts: Any) -> dict[str, object]:
    return {**kept.machine(), **facts}


BAD: dict[str, tuple[Callable[[str], bytes], str]] = {
    "empty": (lambda text: b"", "it is not JSON"),
    "cut off": (lambda text: text[: len(text) // 2].encode(), "it is not JSON"),
    "deep": (lambda text: b"[" * 100_000, "it is not JSON"),
    "binary": (lambda text: b"\xff\xfe\x00\x80", "it is not text"),
    "a list": (lambda text: b"[1, 2]", "it is not a table of costs"),
    "another layout": (_changed(layout=99), "its layout is version 99, and 1 is the one"),
    "no machine": (_changed(machine=3), "does not say on which machine"),
    "another machine": (_changed(machine=_machine(cores=4096)), r"another machine \(cores 4096, here"),
    "one fact more": (_changed(machine=_machine(moon="full")), r"another machine \(moon 'full'"),
    "no costs": (_changed(costs=None), "it holds no costs"),
    "costs that are numbers": (_changed(costs={KEY: 3}), "copy' has 3 for a cost"),
    "unknown fields": (_changed(costs={KEY: {"latency": 1, "speed": 2}}), "for a cost"),
    "no latency": (_changed(costs={KEY: {"bandwidth": 1e9}}), "for a cost"),
    "negative": (_changed(costs={KEY: {"latency": -1.0}}), "has -1.0 for a number of seconds"),
    "NaN": (_changed(costs={KEY: {"latency": float("nan")}}), "has nan for a number"),
    "infinite": (_changed(costs={KEY: {"latency": float("inf")}}), "has inf for a number"),
    "a string": (_changed(costs={KEY: {"latency": "1e-6"}}), "has '1e-6' for a number"),
    "a bool": (_changed(costs={KEY: {"latency": True}}), "has True for a number"),
    "hours": (_changed(costs={KEY: {"latency": 1e4}}), "has 10000.0 for a number"),
    "no speed": (_changed(costs={KEY: {"latency": 0, "bandwidth": 0}}), "has 0 for a number"),
    "a digit too many": (_changed(costs={KEY: {"latency": 0, "cached": 10**400}}), "has 1000"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_ignored_with_one_warning(
    case: str, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is wrong with it, the file as a whole does not count, and one record says why."""
    spoil, reason = BAD[case]
    file.write_bytes(spoil(file.read_text("utf-8")))
    with caplog.at_level(logging.WARNING, "interop"):
        assert _cost_of_copy(Interop()) == DECLARED
        assert _cost_of_copy(Interop()) == DECLARED
    assert [record.name for record in caplog.records] == ["interop"]
    message = caplog.text
    assert str(file) in message
    assert "run 'interop calibrate' to measure anew" in message
    with pytest.raises(kept.UnusableTable, match=reason):
        kept.decoded(kept._read(file))


def test_what_is_not_a_file_is_ignored(
    tmp_path: Path, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder, a missing file that was named, and a huge one are said to be so."""
    huge = tmp_path / "huge"
    with open(huge, "wb") as out:
        out.truncate(2**25)
    for path in (tmp_path, tmp_path / "missing", huge):
        monkeypatch.setenv("INTEROP_CALIBRATION", str(path))
        assert _cost_of_copy(Interop()) == DECLARED
    said = [record.getMessage() for record in caplog.records]
    assert ["not a file" in said[0], "no such file" in said[1], "too many" in said[2]] == [True] * 3


def test_a_missing_file_that_nobody_named_is_no_matter(
    tmp_path: Path, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Where nobody has calibrated there is nothing to say."""
    monkeypatch.delenv("INTEROP_CALIBRATION")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _cost_of_copy(Interop()) == DECLARED
    assert not caplog.records


def test_without_platformdirs_there_is_no_file(in_subprocess: Callable[..., str]) -> None:
    """The optional distribution is not missed by anything but the command."""
    program = """
        import os, sys
        del os.environ["INTEROP_CALIBRATION"]
        sys.modules["platformdirs"] = None
        import interop
        from interop._registry.costs import default_file
        print(default_file(), interop.convert([1, 2], to="numpy"))
    """
    assert in_subprocess(program).strip() == "None [1 2]"


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: Any) -> None:
    """A write that fails leaves the old file, and nothing beside it."""
    path = tmp_path / "new" / "costs.json"
    kept.write(path, "old")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept.os, "replace", fails)
    with pytest.raises(OSError, match="No space left"):
        kept.write(path, "new")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_what_is_written_is_read_back() -> None:
    """Costs survive the file exactly."""
    costs = {KEY: Cost(1 / 3, 2e9 / 7), "scipy.csr": Cost(1e-7), "x": Cost(0.0, 3e9, 1e10)}
    assert kept.decoded(kept.encoded(costs, seconds=3)) == costs


# ------------------------------------------------------------------ measuring


def test_what_is_measured_is_the_call(loaded: Interop) -> None:
    """A conversion that sleeps costs what it sleeps; one that refuses is left out, with the reason."""

    def refuses(value: Any) -> Any:
        raise interop.errors.Declined("never on a Saturday")

    def naps(value: Any) -> Any:
        import time

        time.sleep(2e-3)
        return value

    common: dict[str, Any] = {"dtypes": frozenset({"float32"}), "drops": frozenset({"nap"})}
    mine = Interop(plugins=False)
    numpy = next(f.format for f in loaded.formats() if f.name == "numpy")
    others = [f.format for f in loaded.formats() if f.name == "array_interface"]
    wanted = {("array_interface", "numpy"), ("numpy", "numpy")}
    known = [
        d.conversion
        for d in loaded.conversions()
        if (d.conversion.source, d.conversion.target) in wanted
    ]
    mine.register(numpy, *others, *known)
    mine.register(
        Conversion("numpy", "numpy", naps, name="nap", **common),
        Conversion("numpy", "numpy", refuses, name="refuses", **common),
        Conversion("numpy", "elsewhere", refuses),
    )
    done: list[tuple[int, int, str]] = []
    found = calibrate(mine, lambda *said: done.append(said), budget=30)
    assert 2e-3 <= found.costs["run time: numpy → numpy: nap"].latency < 2e-2
    assert "never on a Saturday" in found.skipped["run time: numpy → numpy: refuses"]
    assert "elsewhere" in found.skipped["run time: numpy → elsewhere: refuses"]
    assert done[0][0] == 0
    assert done[-1][0] == done[-1][1]
    copy = found.costs["run time: numpy → numpy: copy"]
    assert copy.bandwidth is not None
    assert 1e8 < copy.bandwidth < 2e11
    assert copy.latency < 1e-3
    assert kept.decoded(kept.encoded(found.costs)) == found.costs


def test_large_results_are_measured_in_fresh_memory(
    loaded: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each timed call on a large sample, and no other, free memory goes back to the system."""
    events: list[int | str] = []

    def copies(value: Any) -> Any:
        events.append(value.nbytes)
        return value.copy()

    monkeypatch.setattr(_calibration, "give_back", lambda: events.append("back"))
    mine = Interop(plugins=False)
    wanted = {("array_interface", "numpy"), ("numpy", "numpy")}
    known = (d.conversion for d in loaded.conversions())
    mine.register(
        *(f.format for f in loaded.formats() if f.name in ("numpy", "array_interface")),
        *(c for c in known if (c.source, c.target) in wanted and not c.changes),
        Conversion("numpy", "numpy", copies, effects=frozenset({"copy"}), cost=Cost(1e-6, 1e9)),
    )
    calibrate(mine, budget=30)
    sizes = [event for event in events if isinstance(event, int)]
    largest = max(sizes)
    assert largest >= 2**25
    after = [b for a, b in pairwise(events) if a == "back" and b != "back"]
    assert set(after) == {largest}
    assert len(after) >= 2
    assert events.count(largest) - len(after) == 1  # the call by which it is judged


def test_no_time_is_no_measurement() -> None:
    """When the time is up, what is left keeps its declared cost."""
    found = calibrate(Interop(costs={}), budget=0)
    assert not any("→" in key for key in found.costs)
    assert "there was no time left" in found.skipped[KEY]


# ------------------------------------------------------------------ results


def _table(seed: int) -> Mapping[str, Cost]:
    """Return costs that have nothing to do with anything."""
    rng = random.Random(seed)
    keys = [declared.key for declared in interop.conversions()]
    costs = {
        key: Cost(10 ** rng.uniform(-8, -2), 10 ** rng.uniform(7, 12), 10 ** rng.uniform(7, 12))
        for key in keys
    }
    costs.update((f.name, Cost(10 ** rng.uniform(-8, -2))) for f in interop.formats())
    return costs


@pytest.fixture(scope="module")
def faces() -> list[Interop]:
    """The declared costs, and three sets of random ones."""
    return [Interop(costs={}), *(Interop(costs=_table(seed)) for seed in range(3))]


def _hard(name: str) -> np.ndarray:
    """Return numbers on which kernels differ: halfway, out of range, subnormal, infinite, NaN."""
    rng = np.random.default_rng(0)
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        ends = [info.min, info.max, info.max - 1, info.max // 2, info.max // 3, 0, 1, 2]
        drawn = rng.integers(info.min, info.max, 88, dtype, endpoint=True)
        return np.concatenate([np.array(ends, dtype), drawn]).reshape(8, 12)
    if name == "bool":
        return rng.integers(0, 2, (8, 12)).astype(bool)
    halves = [s * (1 + n * 2.0**-d + e) for s in (1, -1) for d in (4, 8, 11, 24) for n in (1, 3)
              for e in (-(2.0**-30), 0, 2.0**-30, 2.0**-50)]  # fmt: skip
    ends = [0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1e-45, 3e-8, 6e-8, 65519.9, 65520, 448, 480]
    ends += [
        3.4e38,
        3.5e38,
        1e300,
        2.0**31,
        -(2.0**31),
        2.0**53,
        2.0**63,
        2.0**64,
        -129,
        256.5,
        -0.9,
    ]
    with np.errstate(all="ignore"):
        drawn = (rng.standard_normal(96) * 10.0 ** rng.integers(-12, 12, 96)).astype("float64")
        numbers = np.array([*ends, *halves, *drawn])[:96]
        if dtype.kind == "c":
            numbers = numbers + 0j
            numbers.imag = numbers.real[::-1]
        return numbers.astype(dtype).reshape(8, 12)


def _bits(value: Any) -> tuple[np.ndarray, ...]:
    """Return the bits of an array, NaNs of any payload as one, and of a sparse one those it stores."""
    if not isinstance(value, np.ndarray):
        value = interop.convert(value, to="numpy")
    array = np.array(value, value.dtype.newbyteorder("="), order="C")
    parts = array.reshape(-1).view(array.real.dtype) if array.dtype.kind == "c" else array
    with np.errstate(all="ignore"):
        missing = parts != parts  # noqa: PLR0124 - NaN is what is not itself
    bits = np.where(missing, 0, parts.view(f"u{parts.itemsize}"))
    return bits, missing


def _outcome(face: Interop, value: Any, words: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return all that may not depend on costs, in a form that can be compared.

    How a sparse result stores its numbers (in which order, with what width of index) is the way's.
    """
    try:
        result = face.convert(value, **words)
    except interop.InteropError as error:
        return (type(error),)
    spec = face.spec(result)
    shares = shares_memory(face._registry, value, result)
    facts: tuple[Any, ...] = (type(result), spec.format, spec.dtype, spec.device, spec.shape)
    if spec.nnz is None:
        facts += (spec.traits, shares)
    elif words.get("copy") is True:
        facts += (spec.traits & {"readonly", "immutable"}, shares)
    return *facts, *(part.tobytes() for part in _bits(result))


def _same_for_all(faces: list[Interop], value: Any, words: Mapping[str, Any]) -> None:
    expected = _outcome(faces[0], value, words)
    for face in faces[1:]:
        assert _outcome(face, value, words) == expected, (face.plan(value, **words), words)


TARGETS = ("bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float8_e4m3fn",
           "float32", "float64", "complex64", "complex128")  # fmt: skip
SOURCES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "bfloat16",
           "float8_e4m3fn", "float32", "float64", "complex64", "complex128")  # fmt: skip
ODD = [
    *(("numpy", t) for t in ("", "noncontiguous", "negative_strides", "readonly", "byteswapped")),
    *(("torch", t) for t in ("", "noncontiguous", "conj", "neg", "grad")),
]


@pytest.mark.parametrize(("name", "trait"), ODD)
def test_dense_results_are_the_same_with_any_costs(
    name: str, trait: str, faces: list[Interop]
) -> None:
    """Bits, dtype, shape, device, traits and sharing do not depend on what steps cost."""
    rng = random.Random(f"{name} {trait}")
    one = faces[0]._loaded().formats[name]
    for source in SOURCES:
        plain = faces[0].convert(_hard(source), to=name, copy=True)
        try:
            value = _varied(one, plain, frozenset({trait} - {""}))
        except (interop.errors.Declined, RuntimeError):
            continue  # there is no such value of this dtype
        requests: list[dict[str, Any]] = [
            {"to": to, **dtype, **copy}
            for to in ("numpy", "torch")
            for dtype in ({}, *({"dtype": target} for target in TARGETS))
            for copy in ({}, {"copy": True})
        ]
        for words in rng.sample(requests, 14):
            _same_for_all(faces, value, words)


COMPOSITES = [
    one.name
    for one in interop.default._loaded().formats.values()
    if (one.layout or one.index_dtypes) and "cpu" in one.devices
]


@pytest.mark.parametrize("name", COMPOSITES)
def test_composite_results_are_the_same_with_any_costs(name: str, faces: list[Interop]) -> None:
    """The same holds of sparse and quantized arrays, whichever library makes them dense."""
    rng = random.Random(name)
    one = faces[0]._loaded().formats[name]
    targets = ["numpy", "torch", "scipy.csr", "scipy.coo", "torch.sparse_coo", "torch.sparse_csr"]
    traits = ["", "", "uncoalesced", "noncontiguous", "readonly", "grad"]
    words_ = [{}, {"copy": True}, {"dtype": "float64"}, {"dtype": "float16"}, {"dtype": "int32"}]
    for _ in range(12):
        dtype = rng.choice(
            sorted(one.dtypes & {"float32", "float64", "complex64", "int32", "bool"})
        )
        trait = rng.choice(traits)
        wanted = Wanted(name, dtype, (10, 12), frozenset({trait} - {""}), density=0.3)
        try:
            value = sample(faces[0], wanted)
        except NoSample:
            continue
        words: dict[str, Any] = {"to": rng.choice(targets), **rng.choice(words_)}
        _same_for_all(faces, value, words)


def _preferring(*labels: str) -> Interop:
    """Return an instance for which all but some conversions are slow."""
    keys = {d.key: d.conversion.label for d in interop.conversions()}
    return Interop(costs={k: Cost(1e-9 if label in labels else 1e-2) for k, label in keys.items()})


def test_no_route_leads_through_what_forgets() -> None:
    """Lists of Python's have no dtype to keep, so that they are no way station, however quick."""
    mine = _preferring("from_numpy", "to_numpy")
    for words in ({"to": "numpy", "copy": True}, {"to": "torch", "dtype": "int8"}):
        route = mine.plan(np.ones(3, "float32"), **words)
        assert "python" not in {step.after.format for step in route.steps}


def test_a_shortcut_for_strangers_serves_no_format_that_speaks_the_protocol() -> None:
    """The negation that DLPack does not know of is carried out, on the second conversion too."""
    mine = _preferring("resolve_neg", "from_dlpack")
    numbers = interop.convert(np.arange(6.0), to="torch")
    for _ in range(2):
        value = interop.default._registry.formats["torch"].variants["neg"](numbers)
        np.testing.assert_array_equal(mine.convert(value, to="numpy"), np.arange(6.0))


def test_an_array_put_in_order_is_written_as_it_is() -> None:
    """A native dtype that is not NumPy's own object of it is not taken for bits."""
    mine = _preferring("copy_to_native", "copy_into_torch")
    value = np.arange(6.0).astype(">c16")
    np.testing.assert_array_equal(mine.convert(value, to="torch", copy=True).numpy(), value)


def test_fresh_memory_is_writable_whoever_made_it(empty: Interop) -> None:
    """A library whose arrays never change does not make what somebody was promised for their own."""
    steps = [
        Conversion("a", "b", Box, effects=frozenset({"copy"}), adds=frozenset({"immutable"}), name="b"),
        Conversion("b", "a", Box, takes=frozenset({"immutable"}), name="back"),
        Conversion("a", "a", Box, effects=frozenset({"copy"}), cost=Cost(1.0), name="copy"),
    ]  # fmt: skip
    locked = frozenset({"readonly", "immutable"})
    empty.register(toy("a", carries=frozenset({"readonly"})), toy("b", carries=locked), *steps)
    route = empty.plan(make_spec("a", "float32", shape=(4,)), to="a", copy=True)
    assert [step.label for step in route.steps] == ["copy"]
