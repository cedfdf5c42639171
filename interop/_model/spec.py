"""Specs: the facts of a value that are known without touching its data."""

from __future__ import annotations

from collections.abc import Mapping, Set
from math import prod
from typing import Any, NamedTuple

from interop._text import legible

from .dtype import DTYPES, itemsize
from .text import html_table

#: Traits of the memory in which a value lies. A step that writes fresh memory leaves them behind.
MEMORY_TRAITS = frozenset(
    {
        "readonly",
        "immutable",
        "noncontiguous",
        "fortran",
        "negative_strides",
        "broadcast",
        "byteswapped",
        "unaligned",
    }
)

#: The trait of elements in any order but C, and the one of those among them in Fortran order.
NONCONTIGUOUS, FORTRAN = frozenset({"noncontiguous"}), frozenset({"fortran"})
#: The traits that tell the order in which elements lie.
ORDERED = NONCONTIGUOUS | FORTRAN

#: Traits of the columns of a table, which tell how they are kept: a library that keeps them in
#: another way copies them. To arrays they do not matter.
COLUMN_TRAITS = frozenset(
    {
        "bit_columns",
        "block_columns",
        "byte_columns",
        "category_columns",
        "chunked_columns",
        "large_text_columns",
        "list_columns",
        "object_columns",
        "odd_columns",
        "second_columns",
        "strided_columns",
        "text_columns",
        "view_columns",
        "zoned_columns",
    }
)

#: How the traits end that name the dtypes of a table's columns, where these are several.
_OF_COLUMNS = " columns"

#: The trait of values with labels.
LABELLED = frozenset({"labelled"})
#: The trait of values with labels for which few libraries have a place.
ATTRIBUTES = frozenset({"attributes"})

#: The traits of values of a subclass with attributes of its own, which its framework's steps keep.
ATTRIBUTED = LABELLED | {"subclass"}

#: The traits of values whose dtype is only nominal: there are several, or it is not one of numbers.
#: A conversion that names the trait of such a value takes it, whatever the dtype is called.
NOMINAL = frozenset({"not_numbers", "untyped", "several_dtypes", "unknown_dtype"})

#: The traits of tables that no message about one has to name: how its columns are kept, that they
#: differ, and that they have names.
_OF_TABLES = COLUMN_TRAITS.union(LABELLED, ATTRIBUTES, ("indexed", "several_dtypes", "mixed"))

#: The trait of tables without columns.
NO_COLUMNS = frozenset({"unknown_dtype"})

#: The trait of Python's numbers, which take the default dtype of the target.
WEAK = frozenset({"weak"})

#: The traits of values that lie on several devices. Their specs name only the type of the devices.
DIVISIONS = frozenset({"replicated", "sharded", "distributed"})

#: The traits that a result takes from the value in ``like=``: how it is divided, and whether it is
#: one of SciPy's older matrices.
LIKENESS = DIVISIONS | {"matrix"}

#: The standard traits and what each says of a value. Plugins may use others. A conversion takes
#: only the traits that it names, so that an unknown trait is refused and not lost.
TRAITS: dict[str, str] = {
    "readonly": "its memory is flagged read-only",
    "immutable": "its framework never changes it in place",
    "noncontiguous": "its elements are not one C-ordered block",
    "fortran": "its elements are one block in Fortran order",
    "negative_strides": "it is walked backwards along some axis",
    "broadcast": "several elements share one place in memory",
    "byteswapped": "its bytes are not in the machine's order",
    "unaligned": "its elements are not aligned to their size",
    "grad": "it is part of an autograd graph",
    "conj": "it is a lazy complex conjugate",
    "neg": "it is a lazy negation",
    "labelled": "it has an index, names of axes or columns, coordinates or attributes",
    "attributes": "it has attributes, or is a series with an index",
    "indexed": "its rows have labels, which are columns in libraries without such labels",
    "masked": "some of its elements are masked or null",
    "not_numbers": "some of its elements are no numbers: text, dates, objects",
    "untyped": "its elements are objects or decimals: numbers, perhaps, but of no dtype",
    "several_dtypes": "its columns have several dtypes",
    "mixed": "its parts have several dtypes, and its combined dtype cannot hold all their values",
    "bit_columns": "some of its columns have truth values or nulls as bits",
    "block_columns": "some of its columns are blocks of memory that another library may share",
    "byte_columns": "some of its columns have truth values or masks as bytes",
    "category_columns": "some of its columns have categories",
    "chunked_columns": "some of its columns lie in several chunks",
    "large_text_columns": "some of its columns have texts whose places are counted in 64 bits",
    "list_columns": "some of its columns have lists whose places are counted in 32 bits",
    "object_columns": "some of its columns have Python's objects, or leave elements out",
    "odd_columns": "some of its columns are decimals of 256 bits, unions or intervals",
    "second_columns": "some of its columns have units of time, or decimals, that not all have",
    "strided_columns": "some of its columns are no blocks of memory",
    "text_columns": "some of its columns have texts whose places are counted in 32 bits",
    "view_columns": "some of its columns have texts wherever their views say",
    "zoned_columns": "some of its columns have times of a time zone",
    "weak": "its numbers have no dtype of their own",
    "uncoalesced": "it may hold one coordinate twice, or out of order",
    "replicated": "each of several devices has the whole of it",
    "sharded": "it lies in parts on several devices of this process",
    "distributed": "parts of it are in other processes",
    "subclass": "its type is a subclass of the format's array type",
    "scalar": "it is a scalar object rather than an array",
    "matrix": "it is a sparse matrix rather than a sparse array",
    "hybrid": "its stored elements are arrays themselves",
    "batched": "it is a batch of sparse arrays",
    "zero_tensor": "it stands for zeros that are not stored",
    "meta": "it has a shape but no data",
    "traced": "it stands for a value inside a trace or a transform",
    "nested": "its rows may differ in length",
    "unknown_shape": "some of its lengths, given as zero, are not known before it is computed",
    "unknown_dtype": "it has no columns, so its dtype is only nominal",
    "no_storage": "its memory is not where its type says, or shorter than its shape says",
    "packed": "several of its codes share a byte",
    "biased": "a bias is added to what its codes stand for",
    "per_block": "its scales are those of blocks, not of whole rows or of the whole array",
}

#: Traits of values into which numbers cannot be written, or which would not keep all of them.
UNWRITABLE = frozenset(
    {
        "readonly",
        "immutable",
        "broadcast",
        "grad",
        "masked",
        "scalar",
        "zero_tensor",
        "meta",
        "traced",
        "nested",
        "no_storage",
    }
)


class Spec(NamedTuple):
    """The facts of a value that are known without touching its data. Frozen and hashable.

    Parameters
    ----------
    format : str
        The concrete container, such as ``"torch"`` or ``"scipy.csr"``.
    dtype : str or None
        Name of the dtype of the numbers that the value stands for. A quantized array stands for
        the numbers after dequantizing.
    device : str
        Where the data is: ``"cpu"``, ``"cuda:0"`` …
    shape : tuple of int, in elements
        Lengths of the axes.
    traits : frozenset of str
        Properties that decide which conversions apply.
    nbytes : int, in bytes
        Size of the value, with all components of a sparse or quantized array.
    nnz : int or None, in elements
        Number of elements that a sparse array stores.
    index_dtype : str or None
        dtype of the index arrays of a sparse array.
    code_dtype : str or None
        dtype of the codes of a quantized array.
    carrier : str or None
        The unsigned integer dtype in which the bits of `dtype` are at present being carried.
    wrapped : str or None
        If the value is a wrapper, such as an array with labels: the format of the wrapped value,
        which all fields but `format` describe.
    """

    format: str
    dtype: str | None = None
    device: str = "cpu"
    shape: tuple[int, ...] = ()
    traits: frozenset[str] = frozenset()
    nbytes: int = 0
    nnz: int | None = None
    index_dtype: str | None = None
    code_dtype: str | None = None
    carrier: str | None = None
    wrapped: str | None = None

    @property
    def element(self) -> str | None:
        """The dtype of the elements as they lie in memory."""
        return self.carrier or self.dtype

    @property
    def size(self) -> int:
        """Number of elements of the array, stored or not."""
        return prod(map(int, self.shape))  # a length may be one of NumPy's integers

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name as JSON can hold them, without those that are None.

        Returns
        -------
        dict
            ``shape`` and ``traits`` are lists.
        """
        fields = {**self._asdict(), "shape": list(self.shape), "traits": sorted(self.traits)}
        return {name: field for name, field in fields.items() if field is not None}

    def __repr__(self) -> str:
        fields = {k: v for k, v in self._asdict().items() if v != self._field_defaults.get(k)}
        return legible(f"Spec({', '.join(f'{name}={field!r}' for name, field in fields.items())})")

    def _repr_html_(self) -> str:
        return html_table("Spec", (), ((k, str(v)) for k, v in self.as_dict().items()))

    def __str__(self) -> str:
        text = f"{self.format} {self.dtype} {shape_text(self.shape)} on {self.device}"
        notes = [f"of {self.wrapped}"] if self.wrapped else []
        notes += sorted(self.traits)
        if self.carrier:
            notes.append(f"as {self.carrier} bits")
        if self.nnz is not None:
            notes.append(f"{self.nnz} stored")
        return legible(f"{text} ({', '.join(notes)})" if notes else text)


def summary(spec: Spec) -> str:
    """Return a spec as messages name it: of how a table keeps its columns, the dtypes alone.

    Columns that lie apart (`scattered`) and numbers of Python (`weak`) need no word, either.
    """
    rest = spec.traits - _OF_TABLES - {"scattered", "weak"}
    if rest == spec.traits:
        return str(spec)
    dtypes = sorted(name for name in rest if name.endswith(_OF_COLUMNS))
    names = " / ".join(name.removesuffix(_OF_COLUMNS) for name in dtypes)
    dtype = names if spec.dtype in DTYPES and names else spec.dtype
    return str(spec._replace(traits=rest.difference(dtypes), dtype=dtype))


def column_dtypes(spec: Spec) -> frozenset[str]:
    """Return the dtypes of the columns of a table that are numbers, as far as its spec names them.

    Objects and decimals, which may be numbers, count as ``untyped``.
    """
    names = {t.removesuffix(_OF_COLUMNS) for t in spec.traits if t.endswith(_OF_COLUMNS)}
    if not names and spec.dtype in DTYPES and "unknown_dtype" not in spec.traits:
        names = {spec.dtype}
    return frozenset(names | spec.traits & {"untyped"})


def cast_dtypes(names: Set[str], dtypes: Mapping[str, str]) -> dict[str, str]:
    """Return the dtypes that columns of some dtypes are cast to.

    Parameters
    ----------
    names : set of str
        The dtypes of the columns of a table, as `column_dtypes` names them.
    dtypes : mapping of str to str
        The dtypes that are asked for. A dtype for all columns, ``untyped`` ones among them, is for
        bools only where there are no other numbers.

    Returns
    -------
    dict of str to str
        Without those that stay as they are.
    """
    are_kept = "untyped" in dtypes and names > {"bool"}
    cast = {own: dtypes[own] for own in names if own in dtypes and dtypes[own] != own}
    return {own: new for own, new in cast.items() if not (own == "bool" and are_kept)}


def with_columns(spec: Spec, dtypes: Mapping[str, str]) -> Spec:
    """Return the spec of a table whose columns of some dtypes are cast to others.

    The dtype of a table of several is only nominal.
    """
    before = column_dtypes(spec)
    dtypes = cast_dtypes(before, dtypes)
    after = {dtypes.get(name, name) for name in before}
    untyped = {"untyped", "not_numbers"} if "untyped" in dtypes else set()
    traits = spec.traits - untyped - {f"{name}{_OF_COLUMNS}" for name in before}
    if "not_numbers" in traits or len(after) > 1:
        several = {f"{name}{_OF_COLUMNS}" for name in after - {"untyped"}}
        return spec._replace(traits=traits | several)
    if not after:
        return spec
    (dtype,) = after
    traits -= {"mixed", "several_dtypes"}
    return spec._replace(dtype=dtype, traits=traits, nbytes=spec.size * itemsize(dtype))


def in_any_order(traits: Set[str]) -> frozenset[str]:
    """Return traits that a value may have, with ``fortran`` if it may be noncontiguous.

    Who takes or carries any order need not name that one.
    """
    names = frozenset(traits)
    return names | FORTRAN if names >= NONCONTIGUOUS else names


def has_one_order(spec: Spec) -> bool:
    """Return whether C and Fortran order are the same for the shape of a value."""
    if "unknown_shape" in spec.traits:
        return len(spec.shape) < 2
    return is_of_one_order(spec.shape)


def is_of_one_order(shape: tuple[int, ...]) -> bool:
    """Return whether C and Fortran order are the same for a shape."""
    return 0 in shape or sum([length > 1 for length in shape]) < 2


def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape as messages write it: ``2x3``, ``(3,)`` or ``scalar``."""
    if len(shape) == 1:
        return str(shape)  # a number alone looks like a count
    return "x".join(map(str, shape)) if shape else "scalar"


def trait_text(trait: str) -> str:
    """Return a trait as a message names it, with its meaning if it is a standard one."""
    return f"{trait!r} ({TRAITS[trait]})" if trait in TRAITS else repr(trait)


def make_spec(
    format: str,  # noqa: A002 - the field's name
    dtype: str | None,
    *,
    device: str = "cpu",
    shape: tuple[int, ...] = (),
    traits: frozenset[str] | set[str] = frozenset(),
) -> Spec:
    """Return the spec of a dense array, with `nbytes` worked out from dtype and shape.

    It checks nothing, since it runs on every conversion. `interop.make_spec` checks everything.

    Parameters
    ----------
    format : str
        Its name.
    dtype : str or None
        A name of `DTYPES`. Elements of any other count as 8 bytes.
    device : str
        Where the data is: ``"cpu"``, ``"cuda:0"`` …
    shape : tuple of int, in elements
        Lengths of the axes.
    traits : set of str
        Properties that decide which conversions apply.

    Returns
    -------
    Spec
        It describes a value that need not exist.

    Examples
    --------
    >>> make_spec("torch", "float32", device="cuda:0", shape=(4096, 4096)).nbytes
    67108864
    """
    return Spec(format, dtype, device, shape, frozenset(traits), prod(shape) * itemsize(dtype))


def spec_kind(spec: Spec) -> Spec:
    """Return a spec without its sizes."""
    return spec._replace(shape=(), nbytes=0, nnz=None)


def spec_class(spec: Spec) -> tuple[object, ...]:
    """Return the key by which routes are cached: the spec with its sizes coarsened to powers of 4.

    Nothing in it grows with the number of distinct shapes.
    """
    return (
        spec.format,
        spec.dtype,
        spec.device,
        spec.traits,
        len(spec.shape),
        size_class(int(spec.nbytes)),
        spec.index_dtype,
        spec.code_dtype,
        spec.carrier,
        spec.wrapped,
        None if spec.nnz is None else (size_class(int(spec.nnz)), size_class(spec.size)),
    )


def representative(spec: Spec) -> Spec:
    """Return the spec that stands for all of its class when a route is chosen.

    Choosing by it, and not by the first value met, keeps the choice independent of history.
    """
    if spec.nnz is not None:
        nnz, size = _middle(size_class(int(spec.nnz))), _middle(size_class(spec.size))
        width = itemsize(spec.dtype) + len(spec.shape) * itemsize(spec.index_dtype)
        return spec._replace(shape=_shape(spec, size), nnz=nnz, nbytes=nnz * width)
    nbytes = _middle(size_class(int(spec.nbytes)))
    size = nbytes // itemsize(spec.code_dtype or spec.element)
    return spec._replace(shape=_shape(spec, size), nbytes=nbytes)


def size_class(size: int) -> int:
    """Return the class of a size: 0 below 2, 1 below 8, 2 below 32, and so on by powers of 4.

    Routes are planned for classes of sizes, not for every size.

    Parameters
    ----------
    size : int, in bytes or elements
        Not negative, and a Python integer: those of NumPy count no bits.

    Returns
    -------
    int
        The number of the class.

    Examples
    --------
    >>> [size_class(nbytes) for nbytes in (0, 1, 2, 7, 8, 31)]
    [0, 0, 1, 1, 2, 2]
    """
    return size.bit_length() >> 1


def _middle(bucket: int) -> int:
    return 1 << (2 * bucket)


def _shape(spec: Spec, size: int) -> tuple[int, ...]:
    return (size, *(1,) * (len(spec.shape) - 1)) if spec.shape else ()
