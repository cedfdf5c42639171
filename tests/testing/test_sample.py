"""Samples: values made of declarations alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import interop
from interop import Conversion, Format, Interop
from interop._api.inspection import Inspection
from interop._planning.conversion import ResolvedConversion
from interop.plugin import Samples, make_spec
from interop.testing._sample import NoSample, Numbers, Recipe, first_line, fitted, sample
from tests.cases import marked, together
from tests.inside import format_named
from tests.lying_plugins import distant


def test_the_first_line_of_a_list_names_its_first_item() -> None:
    """What a message announces is said with it, and everything else is left out."""
    cases = {
        "refused:\n  - copy: it copies\n  - cast: it casts\nDo this.": "refused: copy: it copies",
        "refused; do this.\nOr that.": "refused; do this.",
        "refused:": "refused:",
        "": "",
    }
    assert {text: first_line(text) for text in cases} == cases


HOST = [
    declared.name
    for declared in interop.formats()
    if "cpu" in declared.format.devices
    and declared.state != "missing"
    and declared.format.framework != "cupy"
    # The one is tried below; of the other, processes have to be started.
    and declared.name not in ("torch.codes", "torch.mkldnn", "torch.dtensor")
    # What can be read only once has no description, and so none that a sample could agree with.
    and not (declared.format.wrapper and declared.format.wrapper.once)
]
#: The traits of samples for which nobody asks.
PLAIN = {"uncoalesced", "immutable", "readonly", "biased", "scattered", "weak"}
#: Those of the formats of which every value has more.
PLAIN_OF = {
    "polars.dataframe": PLAIN | {"noncontiguous", "fortran", "block_columns"},
    "pandas.dataframe": PLAIN | {"strided_columns"},
    "pyarrow.table": PLAIN | {"block_columns"},
    "pyarrow.record_batch": PLAIN | {"block_columns"},
    "python.ragged": PLAIN | {"nested"},
}


def _numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.array(interop.convert(Numbers(Recipe("", dtype, shape)), to="numpy", dtype=dtype))


@pytest.mark.parametrize("name", marked(n for n in HOST if not n.startswith("quantized.cupy")))
def test_every_format_of_the_host_has_samples(name: str) -> None:
    """Of every format of the host that is installed and can be described, a value can be made."""
    format_ = format_named(name)
    dtype = next(
        d for d in ("float32", "float64", "uint8", "bool", "float4_e2m1fn") if d in format_.dtypes
    )
    source = format_.samples.source
    ndims = format_.ndims or (format_named(source).ndims if source else None)
    plane = (3, 4) if ndims is None or 2 in ndims else (3,) * min(ndims)
    shape = (2, 3, 4) if name.endswith(".nd") else plane
    value = sample(interop.default, Recipe(name, dtype, shape, density=0.5))
    spec = interop.spec(value)
    assert spec.format == name
    assert spec.traits <= PLAIN_OF.get(name, PLAIN)
    if not format_.not_recoverable:
        assert (spec.dtype, spec.shape, spec.device) == (dtype, shape, "cpu")


def test_samples_that_their_maker_refuses_to_export_are_none() -> None:
    """NumPy's refusal to make a capsule of bfloat16 is a reason, and ends nothing."""
    with pytest.raises(NoSample, match=r"dlpack.capsule bfloat16 .* could not be made"):
        sample(interop.default, Recipe("dlpack.capsule", "bfloat16", (3, 4)))


@pytest.mark.parametrize("sources", [("a",), ("b", "a"), ("b", "c", "b")], ids="-".join)
def test_a_circle_of_sources_is_told(sources: tuple[str, ...]) -> None:
    """Formats whose samples are made of each other have none, and the message names the circle."""
    instance = Interop(plugins=False)
    names = "abc"[: len(sources)]
    for name, source in zip(names, sources, strict=True):
        make = Samples(make=lambda value: value, source=source)
        instance.register(Format(name, dtypes={"float32"}, devices={"cpu"}, samples=make))
    circle = " → ".join(["a", *sources])
    with pytest.raises(
        NoSample, match=rf"^a float32 \(3,\) could not be made: .* a circle: {circle}$"
    ):
        sample(instance, Recipe("a", "float32", (3,)))


@pytest.mark.parametrize("shape", [(6,), (1, 6), (1,), (1, 1)])
def test_arrays_of_one_row_have_gaps_for_strides(shape: tuple[int, ...]) -> None:
    """An array that no order of axes makes noncontiguous has gaps, and one element has none."""
    recipe = Recipe("numpy", "float32", shape, frozenset({"noncontiguous"}))
    if shape[-1] > 1:
        assert interop.spec(sample(interop.default, recipe)).traits == {"noncontiguous"}
        return
    with pytest.raises(NoSample, match="has no such strides"):
        sample(interop.default, recipe)


@pytest.mark.extra
@pytest.mark.parametrize(
    ("name", "trait"),
    # Components that are apart take two devices.
    [(n, t) for n in HOST for t in format_named(n).samples.variants if t != "apart"],
)
def test_every_variant_that_is_declared_can_be_made(name: str, trait: str) -> None:
    """For each declared variant there is a dtype and a shape of which it can be made."""
    dtypes = format_named(name).dtypes
    reasons = []
    for shape in ((6, 6), (6,)):
        for dtype in sorted(dtypes & {"float32", "complex64", "int32", "uint8"}):
            recipe = Recipe(name, dtype, shape, frozenset({trait}), density=0.5)
            try:
                assert trait in interop.spec(sample(interop.default, recipe)).traits
            except NoSample as reason:
                reasons.append(str(reason))
            else:
                return
    # All of SciPy's layouts share one table, and some of them have no such values at all.
    assert name in {
        "scipy.bsr", "scipy.dia", "scipy.lil", "scipy.dok", "sparse.coo", "sparse.gcxs.csr",
        "sparse.gcxs.csc", "sparse.gcxs.nd", "sparse.dok",
    }, reasons  # fmt: skip


LAYOUTS = ["noncontiguous", "unaligned", "subclass"]


@pytest.mark.parametrize(
    ("name", "trait"),
    [
        *(("numpy", trait) for trait in [*LAYOUTS, "negative_strides", "byteswapped", "readonly"]),
        *(("torch", trait) for trait in [*LAYOUTS, "conj", "neg", "grad"]),
    ],
)
@together("dtype", ["float32", "complex64", "int16"])
def test_variants_hold_the_same_numbers(name: str, dtype: str, trait: str) -> None:
    """A dense value with a trait has the numbers of the plain one, in memory of its own."""
    dtype = "complex64" if trait in ("conj", "grad") else dtype
    value = sample(interop.default, Recipe(name, dtype, (3, 4), frozenset({trait})))
    assert trait in interop.spec(value).traits
    numbers = interop.convert(value, to="numpy")
    np.testing.assert_array_equal(numbers, _numbers(dtype, (3, 4)))
    assert numbers.dtype.newbyteorder("=") == dtype


@pytest.mark.parametrize("name", ["scipy.csr", "scipy.coo", "torch.sparse_coo"])
def test_a_sparse_variant_holds_the_same_numbers(name: str) -> None:
    """A coordinate that is held twice adds up to what the plain value holds there."""
    plain = Recipe(name, "float32", (6, 5), density=0.4)
    odd = sample(interop.default, plain._replace(traits=frozenset({"uncoalesced"})))
    assert "uncoalesced" in interop.spec(odd).traits
    np.testing.assert_array_equal(
        interop.convert(odd, to="numpy"),
        interop.convert(sample(interop.default, plain), to="numpy"),
    )


def test_traits_of_memory_are_given_to_components() -> None:
    """A composite format need not declare what its component arrays can be."""
    recipe = Recipe("scipy.csr", "float64", (6, 5), frozenset({"readonly"}), density=0.4)
    value = sample(interop.default, recipe)
    assert not value.data.flags.writeable
    recipe = Recipe("quantized.torch", "float32", (6, 5), frozenset({"noncontiguous"}))
    assert not sample(interop.default, recipe).codes.is_contiguous()


@pytest.mark.parametrize("protocol", ["dlpack", "array_interface", "array"])
def test_a_foreign_value_shows_one_protocol_only(protocol: str) -> None:
    """A sample of a protocol's format is recognised by that protocol, and has no other."""
    value = sample(interop.default, Recipe(protocol, "float32", (3, 4)))
    shown = [name for name in dir(type(value)) if name.startswith(("__array", "__dlpack"))]
    assert shown[0] == f"__{protocol}__"
    assert {name.removesuffix("_device__") for name in shown} <= {
        f"__{protocol}__",
        f"__{protocol}",
    }
    np.testing.assert_array_equal(interop.convert(value, to="numpy"), _numbers("float32", (3, 4)))


@together("shape", [(), (0,), (1,), (5, 0, 2), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["bool", "int64", "bfloat16", "float8_e8m0fnu", "complex128"])
def test_any_shape_and_dtype(dtype: str, shape: tuple[int, ...]) -> None:
    """Scalars, empty arrays and narrow dtypes have samples, and their numbers are exact."""
    value = sample(interop.default, Recipe("numpy", dtype, shape))
    spec = interop.spec(value)
    assert (spec.dtype, spec.shape) == (dtype, shape)
    if value.size and dtype != "bool":
        assert np.isfinite(value.astype("complex128")).all()
        assert (value != 0).all()


def test_the_density_is_that_of_the_elements() -> None:
    """About so many elements are not zero, and some are."""
    value = sample(interop.default, Recipe("scipy.csr", "float32", (200, 200), density=0.05))
    assert 0.03 < value.nnz / 40_000 < 0.07


@pytest.mark.parametrize(
    ("axes", "shape"),
    [(None, (3, 4)), ({1, 2}, (3, 4)), ({1}, (12,)), ({0, 1, 3, 4}, (3, 4, 1)), ({0}, ())],
)
def test_a_shape_is_fitted_to_what_a_conversion_takes(
    axes: set[int] | None, shape: tuple[int, ...]
) -> None:
    """Of the numbers of axes that a conversion and both its formats allow, the nearest is taken."""
    ndims = None if axes is None else frozenset(axes)
    mine = Interop(plugins=False)
    mine.register(
        *(Format(name, ndims=ndims if name == "b" else None) for name in "abc"),
        Conversion("a", "c", list, ndims=ndims),
        *(Conversion(*pair, list) for pair in ("bc", "cb")),
    )
    registry = Inspection(mine).registry
    for declared in registry.conversions:
        formats = (registry.formats[name] for name in declared.conversion[:2])
        assert fitted((3, 4), ResolvedConversion(declared, *formats)) == shape


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        (Recipe("nonsense", "float32"), "nonsense is not registered"),
        (Recipe("numpy", "complex32"), "does not hold complex32"),
        (Recipe("cupy", "float32"), "cannot be on cpu"),
        (Recipe("torch", "float32", traits=frozenset({"conj"})), "torch does not conjugate"),
        (
            Recipe("torch", "float32", traits=frozenset({"byteswapped"})),
            "no variant that is 'byteswapped'",
        ),
        (Recipe("torch", "float32", (), frozenset({"noncontiguous"})), "no strides of its own"),
        (Recipe("buffer", "bfloat16"), "does not hold bfloat16"),
    ],
)
def test_samples_that_cannot_be_made_say_why(recipe: Recipe, reason: str) -> None:
    """No sample is a reason in words."""
    with pytest.raises(NoSample, match=reason):
        sample(interop.default, recipe)


def test_a_format_that_is_not_installed(empty: Interop) -> None:
    """The reason names the module and the command that installs it."""
    empty.register(
        Format(
            "other",
            dtypes={"float32"},
            requires="nonsense_module",
            install="pip install nonsense",
        )
    )
    reason = "nonsense_module is not installed: pip install nonsense"
    with pytest.raises(NoSample, match=reason):
        sample(empty, Recipe("other", "float32"))


def test_a_format_of_its_own_making(loaded: Interop) -> None:
    """A format to which no conversion leads makes its samples of its framework's dense ones."""
    value = sample(loaded, Recipe("torch.mkldnn", "float32", (3, 4)))
    assert value.is_mkldnn
    assert torch.equal(value.to_dense(), torch.from_numpy(_numbers("float32", (3, 4))))


class _Sealed:
    """An array that can be read, and made by its own framework alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


def test_a_dense_format_that_can_only_be_read(loaded: Interop) -> None:
    """Its `make` is given the dense format that it converts to, or must say which one it takes."""
    format_ = Format(
        "sealed",
        types=(f"{__name__}:_Sealed",),
        describe=lambda value: make_spec("sealed", "float32", shape=value.array.shape),
        dtypes={"float32"},
        samples=Samples(make=_Sealed),
    )
    loaded.register(format_)
    with pytest.raises(NoSample, match=r"samples\.source of sealed does not say"):
        sample(loaded, Recipe("sealed", "float32"))
    loaded.register(Conversion("sealed", "numpy", lambda value: value.array))
    value = sample(loaded, Recipe("sealed", "float32"))
    assert type(value.array) is np.ndarray
    assert value.array.shape == (3, 4)


def test_a_sample_is_on_its_device(loaded: Interop) -> None:
    """What `make` makes on another device is moved to that of the recipe."""
    make = Samples(make=lambda array: distant.Far(array, "oneapi:0"), source="numpy")
    loaded.register(*distant.declarations(samples=make))
    for device in ("oneapi:0", "oneapi:1"):
        assert sample(loaded, Recipe("far", "float32", device=device)).device == device


def test_samples_are_the_same_every_time() -> None:
    """Numbers are drawn from a seed, so that a failure can be repeated."""
    recipe = Recipe("scipy.csr", "float64", (9, 9), density=0.3)
    arrays = [sample(interop.default, recipe).toarray() for _ in range(2)]
    np.testing.assert_array_equal(*arrays)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "complex64"])
def test_the_numbers_of_a_sample_are_known_to_python(dtype: str) -> None:
    """They are those that NumPy reads from the same memory."""
    numbers = Numbers(Recipe("", dtype, (3, 4)))
    assert numbers.values() == np.asarray(numbers).ravel().tolist()
