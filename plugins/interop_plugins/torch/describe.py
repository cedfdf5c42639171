"""The specs of torch tensors, read from their metadata."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING

from interop.kit import COMPLEX, EMPTY, INTEGERS, REALS, overlaps, refuse_codes, stride_traits
from interop.plugin import DTYPES, Spec, itemsize

from .no_trace import mark_waiting

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Reals of 8 and 16 bits that reach NumPy as ml_dtypes, by way of unsigned integers.
BIT_DTYPES = frozenset(
    {
        "bfloat16",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    }
)
#: Every dtype of whole bytes; torch's int4, bits8, float4_e2m1fn_x2 … are not among them.
DTYPE_NAMES = BIT_DTYPES | INTEGERS | REALS | COMPLEX | {"bool", "complex32"}

_GRAD = frozenset({"grad"})
#: By layout, the methods that return the components of a sparse tensor.
_COMPONENTS = {
    "torch.sparse_coo": ("_values", "_indices"),
    "torch.sparse_csr": ("values", "col_indices", "crow_indices"),
    "torch.sparse_bsr": ("values", "col_indices", "crow_indices"),
    "torch.sparse_csc": ("values", "row_indices", "ccol_indices"),
    "torch.sparse_bsc": ("values", "row_indices", "ccol_indices"),
}
#: The dtype of which two numbers along the axis of stride 1 share a byte.
_PAIRS = "torch.float4_e2m1fn_x2"
#: The dtypes of what may be codes: integers, and numbers of a byte or less.
_PERHAPS_CODES = INTEGERS | {name for name in DTYPES if itemsize(name) == 1} - {"bool"} | {_PAIRS}
_UNINITIALIZED = ("torch.nn.parameter", "UninitializedTensorMixin")
#: The methods with which wrappers give a plain tensor, and the traits that name them.
_WAYS_OUT = {"wait": "waiting", "as_tensor": "as_tensor"}
_CODES = {"quint8": "uint8", "qint8": "int8", "qint32": "int32"}

# Filled on first use, so that describing a plain tensor is a few look-ups: torch's two plain types,
# its layout of plain memory, the names of its sparse ones, and by dtype its name, the mask of its
# alignment, and whether complex.
_plain_types: set[type] = set()
_plain_layouts: set[torch.layout] = set()
_sparse_layouts: dict[torch.layout, str] = {}
_dtypes: dict[torch.dtype, tuple[str, int, bool]] = {}
_devices: dict[torch.device, str] = {}


@cache
def _forward_ad() -> ModuleType:
    """Return torch's module of forward-mode differentiation."""
    from torch.autograd import forward_ad

    return forward_ad


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a `torch.dtype`.

    A dtype that only torch has keeps its prefix (``"torch.int4"``), because torch packs or fakes
    what ml_dtypes stores under some of these names.
    """
    if dtype in _dtypes:
        return _dtypes[dtype][0]
    name = str(dtype)
    plain = name.removeprefix("torch.")
    return plain if plain in DTYPE_NAMES else name


def describe(value: Tensor) -> Spec:
    """Return the spec of a tensor of any layout.

    Parameters
    ----------
    value : torch.Tensor

    Returns
    -------
    Spec
        If the elements cannot be read where the type promises them, a trait says why.
    """
    if type(value) not in _plain_types:
        return _describe_rare(value)
    if value.layout not in _plain_layouts:
        is_plain = value.layout in _sparse_layouts and _is_plain_sparse(value)
        return _describe_sparse(value, EMPTY) if is_plain else _describe_rare(value)
    try:
        name, mask, is_complex = _dtypes[value.dtype]
        # A tensor inside a functorch transform has the plain type too, but refuses its address.
        address, shape = value.data_ptr(), tuple(value.shape)
        device = _devices[value.device]
        reach = value.storage_offset() * (mask + 1) + value.nbytes
        if device == "cpu" and is_page_locked(value):
            device = "cuda_host"
    except (KeyError, RuntimeError):
        return _describe_rare(value)
    in_graph = value.requires_grad or (_forward_ad()._current_level >= 0 and has_tangent(value))
    traits = _GRAD if in_graph else EMPTY
    if (
        not address
        or address & mask
        or len(value.untyped_storage()) < reach
        or not value.is_contiguous()
        or value.is_neg()
        or (is_complex and value.is_conj())
    ):
        traits |= _memory_traits(value, address, mask)
    return Spec("torch", name, device, shape, traits, value.nbytes)


def fast_key(value: Tensor) -> tuple[Hashable, ...] | None:
    """Return what tells one tensor from another, or None for one whose elements are not all there.

    Whatever is no C-ordered block, or requires a gradient, has a longer key.
    """
    dtype = value.dtype
    try:
        _, mask, is_complex = _dtypes[dtype]
        address, nbytes = value.data_ptr(), value.nbytes
        is_block = value.is_contiguous()
        if (
            not address
            or address & mask
            or (len(value.untyped_storage()) < value.storage_offset() * (mask + 1) + nbytes)
            or value.is_neg()
            or (is_complex and value.is_conj())
            or _forward_ad()._current_level >= 0
        ):
            return None
    except (KeyError, RuntimeError):  # it is sparse, of codes, or inside a transform of functorch
        return _key_of_codes(value)
    # A device takes longer to hash than True.
    key = dtype, value.is_cpu or value.device, value.ndim, nbytes.bit_length() >> 1  # `size_class`
    if is_block:
        return (*key, True) if value.requires_grad else key
    gaps = _gaps(value.shape, value.stride())
    return None if "broadcast" in gaps or is_short(value) else (*key, value.requires_grad, gaps)


def _key_of_codes(value: Tensor) -> tuple[Hashable, ...] | None:
    """Return what tells one quantized tensor from another; None unless its codes are all there."""
    try:
        if (
            not value.is_quantized
            or not value.is_contiguous()
            or not value.data_ptr()
            or is_short(value)
        ):
            return None
    except RuntimeError:
        return None
    return value.dtype, value.is_cpu or value.device, value.ndim, value.nbytes.bit_length() >> 1


def are_plain(values: Sequence[Tensor]) -> bool:
    """Tell whether values of one size are tensors of one dtype that are read as they lie in memory.

    Each fact is asked of all of them at once, which takes a tenth of the time to describe each.
    """
    import torch

    if not {*map(type, values)} <= _plain_types:
        return False
    first, kind = values[0], torch.Tensor
    try:
        return (
            first.dtype in _dtypes
            and not first.is_meta
            and {*map(attrgetter("dtype"), values)} == {first.dtype}
            and all(map(kind.is_contiguous, values))
            and max(map(kind.storage_offset, values)) * first.itemsize + first.nbytes
            <= min(map(len, map(kind.untyped_storage, values)))
        )
    except RuntimeError:  # one is sparse, or inside a transform of functorch
        return False


def default_dtype(dtype: str) -> str:
    """Return the dtype that torch gives to Python's numbers of a kind."""
    setting = getattr(sys.modules.get("torch"), "get_default_dtype", None)
    if dtype == "int64":
        return dtype
    real = "float32" if setting is None else dtype_name(setting())
    if dtype == "float64":
        return real
    return "complex128" if real == "float64" else "complex64"


def _memory_traits(value: Tensor, address: int, mask: int) -> set[str]:
    """Return the traits of a tensor of plain memory, whose address is 0 if it has none."""
    traits: set[str] = set()
    if not value.is_contiguous():
        traits |= _gaps(value.shape, value.stride())
    if value.is_neg():
        traits.add("neg")
    if value.is_conj():
        traits.add("conj")
    if address & mask:
        traits.add("unaligned")
    return traits | (_missing_memory(value) if not address else short_memory(value))


@lru_cache(maxsize=1024)
def _gaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> frozenset[str]:
    """Return the traits of what is no C-ordered block."""
    traits = stride_traits(shape, strides, 1) | {"noncontiguous"}
    return traits | {"broadcast"} if overlaps(shape, strides) else traits


def short_memory(value: Tensor) -> set[str]:
    """Return the trait of a tensor that is longer than its storage."""
    return {"no_storage"} if is_short(value) else set()


def is_short(value: Tensor) -> bool:
    """Tell whether a tensor is longer than its storage, which may have been resized."""
    start, nbytes = _extent(value)
    storage = value.untyped_storage()
    return bool(value.numel()) and start + nbytes > storage.data_ptr() + len(storage)


def _missing_memory(value: Tensor) -> set[str]:
    """Return why a tensor has no address; an empty one needs none."""
    import torch

    if value.is_meta:
        return {"meta"}
    if torch._is_zerotensor(value):
        return {"zero_tensor"}
    if torch._is_functional_tensor(value):
        return {"traced"}
    return {"no_storage"} if value.numel() else set()


def _describe_rare(value: Tensor) -> Spec:
    """Describe what is not a plain tensor, or the first tensor of its dtype or device."""
    import torch

    mark_waiting()
    _learn(torch, value)
    # A subclass may have put code of its own before every attribute.
    with torch._C.DisableTorchFunctionSubclass():
        unreadable = _unreadable(torch, value)
        if unreadable:
            return _describe_unreadable(value, unreadable)
        subclass = EMPTY if type(value) in _plain_types else frozenset({"subclass"})
        if value.is_mkldnn:
            return _describe_mkldnn(value, subclass)
        if value.layout is not torch.strided:
            return _describe_sparse(value, subclass)
        if value.is_quantized:
            return _describe_quantized(value, subclass)
        name, mask, _ = _dtypes.get(value.dtype, (str(value.dtype), 0, False))
        if subclass and name in _PERHAPS_CODES:
            refuse_codes(value, torch.Tensor, "x.as_subclass(torch.Tensor)")
        traits = subclass | _memory_traits(value, value.data_ptr(), mask) | _grad(value)
        if name == _PAIRS and value.ndim and _is_last_dense(value):
            shape = (*value.shape[:-1], 2 * value.shape[-1])
            dtype, device = "float4_e2m1fn", _place(value)
            return Spec("torch.packed", dtype, device, shape, traits, value.nbytes)
        return Spec("torch", name, _place(value), tuple(value.shape), traits, value.nbytes)


def _learn(torch: ModuleType, value: Tensor) -> None:
    """Fill the tables that serve plain tensors."""
    if not _plain_types:
        for name in DTYPE_NAMES:
            dtype = getattr(torch, name, None)  # older versions lack some
            if dtype is not None:
                _dtypes[dtype] = (name, dtype.itemsize - 1, dtype.is_complex)
        _plain_layouts.add(torch.strided)
        _sparse_layouts.update(
            {getattr(torch, name.removeprefix("torch.")): name for name in _COMPONENTS}
        )
        _plain_types.update((torch.Tensor, torch.nn.Parameter))
    if type(value) in _plain_types:
        _device(value)


def _device(value: Tensor) -> str:
    device = value.device
    if device not in _devices:
        _devices[device] = str(device)
    return _devices[device]


def _place(value: Tensor) -> str:
    """Return the device of a tensor of plain memory, or which kind of host memory that is."""
    device = _device(value)
    return "cuda_host" if device == "cpu" and is_page_locked(value) else device


def is_page_locked(value: Tensor) -> bool:
    """Tell whether a tensor of the host lies in page-locked memory.

    The driver is asked only where CUDA is in use: the question alone would start it.
    """
    is_initialized: bool = sys.modules["torch"].cuda.is_initialized()
    return is_initialized and value.is_pinned()


def _unreadable(torch: ModuleType, value: Tensor) -> frozenset[str]:
    """Return why the elements of a tensor cannot be read from its memory, or nothing if they can.

    A class that answers for every operation itself may keep its elements anywhere, and often does.
    """
    if _is_a(value, "torch._subclasses.fake_tensor", "FakeTensor"):
        return frozenset({"traced" if _is_tracing() else "meta"})
    if value.device.type == "meta" and not _is_a(value, *_UNINITIALIZED):
        return frozenset({"meta"})
    if value.is_nested:
        return frozenset({"nested"})
    if is_transformed(value):
        return frozenset({"traced"})
    if type(value) in _plain_types:  # the rest is for subclasses
        return EMPTY if _has_address(torch, value) else frozenset({"traced"})
    if _is_a(value, "torch.masked.maskedtensor.core", "MaskedTensor"):
        return frozenset({"masked", "no_storage"})
    if _is_a(value, *_UNINITIALIZED):
        return frozenset({"uninitialized"})
    dispatches = type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    if dispatches or _answers_for_another(torch, value):
        kind = type(value)
        ways = [trait for name, trait in _WAYS_OUT.items() if callable(getattr(kind, name, None))]
        return frozenset(ways[:1] or {"no_storage"})
    return EMPTY if _has_address(torch, value) else frozenset({"traced"})


def _is_last_dense(value: Tensor) -> bool:
    """Tell whether elements along the last axis of a tensor adjoin."""
    return value.stride(-1) == 1 or value.shape[-1] < 2 or not value.numel()


def _is_tracing() -> bool:
    """Tell whether torch is recording operations, as `torch.export` and ``make_fx`` do."""
    proxies = sys.modules.get("torch.fx.experimental.proxy_tensor")
    return proxies is not None and proxies.get_proxy_mode() is not None


def _answers_for_another(torch: ModuleType, value: Tensor) -> bool:
    """Tell whether a tensor whose class answers for torch's functions holds another tensor.

    The answers are then the other one's, and its own memory is a dummy. The class is not asked: its
    code may do anything.
    """
    answer = getattr(type(value).__torch_function__, "__func__", None)
    if answer is None or answer is torch.Tensor.__torch_function__.__func__:
        return False
    places = [name for kind in type(value).__mro__ for name in _slots(kind)]
    held = [*vars(value).values(), *(getattr(value, name, None) for name in places)]
    for part in held:
        items = part if isinstance(part, (list, tuple)) else (part,)
        if any(isinstance(item, torch.Tensor) and not _share(value, item) for item in items):
            return True
    return False


def _slots(kind: type) -> Iterable[str]:
    names = vars(kind).get("__slots__", ())
    return (names,) if isinstance(names, str) else names


def _share(value: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors are views of one memory."""
    try:
        return value.untyped_storage().data_ptr() == other.untyped_storage().data_ptr() != 0
    except (RuntimeError, NotImplementedError):  # sparse tensors have several, wrappers none
        return False


def _is_a(value: Tensor, module: str, name: str) -> bool:
    """Tell whether a tensor is of a class, which is not imported for the question."""
    class_ = getattr(sys.modules.get(module), name, None)
    return class_ is not None and isinstance(value, class_)


def _has_address(torch: ModuleType, value: Tensor) -> bool:
    """Tell whether a tensor of plain memory knows where that is."""
    if value.layout is not torch.strided:
        return True
    try:
        value.data_ptr()
    except RuntimeError:
        return False
    return True


def _describe_unreadable(value: Tensor, traits: frozenset[str]) -> Spec:
    try:
        # A length may be a symbol, which stands for no number yet.
        shape = tuple(n for n in value.shape if type(n) is int)
    except RuntimeError:  # of what is strided and nested, or has no shape yet
        shape = _longest_rows(value) if value.is_nested else ()
    traits |= _GRAD if value.requires_grad else EMPTY
    return Spec("torch", dtype_name(value.dtype), _device(value), shape, traits)


def _longest_rows(value: Tensor) -> tuple[int, ...]:
    """Return the shape of a nested tensor whose rows are padded to the longest along each axis."""
    rows = [row.shape for row in value.unbind()]
    return len(rows), *map(max, zip(*rows, strict=True))


def _grad(value: Tensor) -> frozenset[str]:
    """Return the trait of a tensor that is differentiated, in reverse or in forward mode."""
    return _GRAD if value.requires_grad or has_tangent(value) else EMPTY


def has_tangent(value: Tensor) -> bool:
    """Tell whether a tensor carries a tangent, which `Tensor.detach` drops."""
    import torch

    if value.layout is not torch.strided or not (value.is_floating_point() or value.is_complex()):
        return False
    from torch.autograd.forward_ad import unpack_dual

    return unpack_dual(value).tangent is not None  # type: ignore[no-untyped-call]


def _describe_mkldnn(value: Tensor, traits: frozenset[str]) -> Spec:
    """Describe a tensor in the opaque layout of oneDNN."""
    name, shape = dtype_name(value.dtype), tuple(value.shape)
    return Spec("torch.mkldnn", name, _device(value), shape, traits | _grad(value), value.nbytes)


def _is_plain_sparse(value: Tensor) -> bool:
    """Tell whether a sparse tensor of a plain type has components that can be read."""
    return value.device in _devices and not value.is_meta and not is_transformed(value)


def is_transformed(value: Tensor) -> bool:
    """Tell whether a tensor stands for others, inside a transform of functorch or a trace."""
    torch = sys.modules["torch"]
    is_wrapper: bool = torch._C._functorch.is_functorch_wrapped_tensor(value)
    return is_wrapper or torch._is_functional_tensor(value)


def _describe_sparse(value: Tensor, traits: frozenset[str]) -> Spec:
    """Describe a sparse tensor."""
    layout, shape = _sparse_layouts[value.layout], tuple(value.shape)
    is_compressed, dense_axes = layout != "torch.sparse_coo", value.dense_dim()
    sparse_traits = set(traits)
    if value.requires_grad:
        sparse_traits.add("grad")
        # Detaching a compressed tensor takes ten times as long as looking at it.
        value = value.detach()
    values, *indices = components(value)
    if dense_axes:
        sparse_traits.add("hybrid")
    if is_compressed and len(shape) - dense_axes > 2:
        sparse_traits.add("batched")
    if not (is_compressed or value.is_coalesced()):
        sparse_traits.add("uncoalesced")
    if not all(part.is_contiguous() for part in (values, *indices)):
        sparse_traits.add("noncontiguous")
    if values.data_ptr() & (value.itemsize - 1):
        sparse_traits.add("unaligned")
    sparse_traits.update(*map(short_memory, (values, *indices)))
    return Spec(
        layout,
        dtype_name(value.dtype),
        _device(value),
        shape,
        frozenset(sparse_traits),
        values.nbytes + sum([part.nbytes for part in indices]),
        values.numel(),
        dtype_name(indices[0].dtype),
    )


def _describe_quantized(value: Tensor, traits: frozenset[str]) -> Spec:
    code = dtype_name(value.dtype)
    code = _CODES.get(code.removeprefix("torch."), code)
    if not value.is_contiguous():
        traits |= {"noncontiguous"}
    if code in _CODES.values():  # others are packed
        traits |= short_memory(value)
    shape, device = tuple(value.shape), _device(value)
    return Spec("torch.quantized", "float32", device, shape, traits, value.nbytes, code_dtype=code)


def components(value: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors that a tensor is made of, which share its memory.

    Parameters
    ----------
    value : torch.Tensor

    Returns
    -------
    tuple of torch.Tensor
        Of a sparse tensor: its values, its plain indices and, if it is compressed, its pointers.
        Any other tensor is its own only component.
    """
    names = _COMPONENTS.get(str(value.layout))
    return (value,) if names is None else tuple([getattr(value, name)() for name in names])


def memory(value: Tensor) -> tuple[tuple[int, int], ...]:
    """Return the address and the length in bytes of every stretch of memory a tensor lies in."""
    if type(value) in _plain_types and value.dtype in _dtypes and value.layout in _plain_layouts:
        try:
            address = value.data_ptr()
        except RuntimeError:  # inside a transform of functorch
            address = 0
        if address and value.is_contiguous():
            return ((address, value.nbytes),)
    import torch

    if value.is_mkldnn or is_transformed(value):
        return ()
    with torch._C.DisableTorchFunctionSubclass():
        if type(value) not in _plain_types and _unreadable(torch, value):
            return ()
        parts = components(value.detach())
    # Zeros that are not stored have elements and no address.
    return tuple(_extent(part) for part in parts if part.numel() and part.data_ptr())


def _extent(part: Tensor) -> tuple[int, int]:
    if part.is_contiguous():
        return part.data_ptr(), part.nbytes
    reach = sum((n - 1) * step for n, step in zip(part.shape, part.stride(), strict=True))
    return part.data_ptr(), (reach + 1) * part.itemsize
