"""DLPack: every value that has ``__dlpack__`` and no plugin of its own, and bare capsules.

This plugin only describes them. The frameworks that consume DLPack declare the conversions, which
serve all formats that export DLPack. A namespace of the array API standard consumes by its
``from_dlpack``, so its name is all that is needed to make it a framework.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import datetime_CAPI
from functools import partial
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING

from interop.errors import DeviceError, UnknownTargetError
from interop.kit import (
    COMPLEX,
    COPY,
    CPU,
    EMPTY,
    INTEGERS,
    NATIVE,
    CheckedProducer,
    Export,
    checked_export,
    stride_traits,
)
from interop.plugin import (
    DTYPES,
    Cast,
    Conversion,
    Copy,
    Cost,
    Declaration,
    DtypeNames,
    Format,
    Limits,
    Move,
    Samples,
    Spec,
    Wrapper,
    hookimpl,
)
from interop.plugin.advanced import Advanced, Namespaces

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, TypeAlias

    import numpy as np

    Producer: TypeAlias = Any

#: The type of capsules, which has no name before Python 3.13.
Capsule = type(datetime_CAPI)

#: All dtypes but clongdouble, since an element of DLPack has at most 255 bits.
_DTYPES = frozenset(DTYPES) - {"clongdouble"}

#: The dtypes of the array API standard.
_STANDARD = INTEGERS | COMPLEX | {"bool", "float32", "float64"}

#: What the standard calls the kinds of Python's numbers.
_KINDS = {"int64": "integral", "float64": "real floating", "complex128": "complex floating"}

#: The device type of those devices of a namespace that DLPack takes for the host.
_OTHER_DEVICES = frozenset({"ext_dev"})

_DEVICES = (
    "cpu",
    "cuda",
    "rocm",
    "metal",
    "oneapi",
    "opencl",
    "vulkan",
    "vpi",
    "ext_dev",
    "webgpu",
    "hexagon",
    "maia",
    "trn",
)


#: Producers may have any of these dtypes, devices and traits. `_WRITTEN` has the dtypes that a
#: namespace need not be able to make.
_PRODUCER: dict[str, Any] = {
    "dtypes": _DTYPES,
    "devices": _DEVICES,
    "carries": NATIVE,
    "exports": {"dlpack": _DTYPES},
}
_WRITTEN = Limits(unsupported=dict.fromkeys(_DEVICES, _DTYPES - _STANDARD))


def describe(value: Producer) -> Spec:
    """Return the spec of a producer, read from a capsule that is then dropped.

    Parameters
    ----------
    value : object
        Anything with ``__dlpack__``.

    Raises
    ------
    HandOffError
        The producer refuses, or what it offers cannot be usable memory.
    """
    # No stream is given: some producers take -1 ("no synchronisation") for a handle.
    exported = checked_export(value)
    traits = _traits(value, exported)
    nbytes = prod(exported.shape) * (exported.bits // 8)
    return Spec("dlpack", exported.dtype, exported.device, exported.shape, traits, nbytes)


def _describe_as(name: str, value: Producer) -> Spec:
    """Return the spec of an array of a namespace."""
    spec = describe(value)._replace(format=name)
    return spec._replace(device=_device(name, value)) if spec.device == "cpu" else spec


def _device(module: str, value: Producer) -> str:
    """Return the device of an array of which DLPack says that it lies on the host.

    A namespace can have several such devices, as array-api-strict has for the tests of its users.
    They are told apart by their place in the namespace's list; all but the default one count as
    `ext_dev`, DLPack's word for a device of which it knows nothing.
    """
    return _device_name(module, getattr(value, "device", None)) or "cpu"


def _device_name(module: str, device: object) -> str | None:
    """Return the name of a device of a namespace, or None for any other object."""
    devices = _devices(module)
    if device not in devices:
        return None
    place = devices.index(device)
    return f"ext_dev:{place}" if place else "cpu"


def _devices(module: str) -> list[Any]:
    """Return the devices of a namespace, the default first, or none if it does not tell."""
    xp: Any = sys.modules.get(module)
    try:
        info = xp.__array_namespace_info__()
        default, devices = info.default_device(), info.devices()
    except AttributeError:  # it is not imported yet, or of an older standard
        return []
    return [default, *(device for device in devices if device != default)]


def _move(module: str, value: Producer, *, device: str) -> Any:
    """Return a copy of an array of a namespace on another of its devices."""
    devices, index = _devices(module), int(device.partition(":")[2] or device == "ext_dev")
    if device == "ext_dev:0" or index >= len(devices):
        names = (f"{_device_name(module, there)!r} ({there})" for there in devices)
        msg = f"{module} has no device {device!r}: it has {', '.join(names)}."
        raise DeviceError(msg)
    return _in_order(value, lambda xp, flat: flat.to_device(devices[index]))


def _cast(value: Producer, *, dtype: str) -> Any:
    """Return a copy of an array in another dtype, where the array is."""
    return _in_order(value, lambda xp, flat: xp.astype(flat, getattr(xp, dtype)))


def _copy(value: Producer) -> Any:
    """Return a copy of an array where the array is."""
    return _in_order(value, lambda xp, flat: xp.asarray(flat, copy=True))


def _in_order(value: Producer, copied: Callable[[Any, Any], Any]) -> Any:
    """Return a copy in C order; of several axes, some functions keep the order that they find."""
    xp = value.__array_namespace__()
    return xp.reshape(copied(xp, xp.reshape(value, (-1,))), value.shape)


def _from_dlpack(module: str, value: Producer) -> Any:
    """Return an array of a namespace over the memory of a producer."""
    return import_module(module).from_dlpack(CheckedProducer(value, negative_strides=True))


def namespace(module: str, array: str, dtype: str = "", *, install: str = "") -> list[Declaration]:
    """Return the declarations that make a namespace of the array API standard a framework.

    Its arrays lie on the host, and it shares the memory of DLPack's producers. Devices of its own
    that DLPack takes for the host are `ext_dev`, with their place in the namespace's list.

    Parameters
    ----------
    module : str
        The namespace, by which `to` names it.
    array : str
        The type of its arrays, as ``"module:Class"``.
    dtype : str
        The type of its dtype objects, if it has one of its own. The last word of their `str` has
        to be the name of the dtype.
    install : str
        The command that installs it.

    Returns
    -------
    list of Format, Conversion and DtypeNames
        For `interop.register`, or for a plugin's hook.

    Examples
    --------
    >>> [declaration.target for declaration in namespace("mylib", "mylib:Array")[1:]]
    ['mylib']
    """
    dtype_names = [DtypeNames(dtype, _last_word)] if dtype else []
    devices = CPU | _OTHER_DEVICES
    there: dict[str, Any] = {"devices": _OTHER_DEVICES, "cost": Cost(1e-5, 4e9)}
    return [
        Format(
            module,
            types=(array,),
            describe=partial(_describe_as, module),
            dtypes=_STANDARD,
            devices=("cpu", *_OTHER_DEVICES),  # the first is the default
            carries=NATIVE,
            exports={"dlpack": _STANDARD},
            unary=(
                # The standard has no cast of complex numbers to real ones.
                Cast(_cast, dtypes=_STANDARD - COMPLEX, name="astype", **there),
                Copy(_copy, name="asarray", **there),
                Move(partial(_move, module), to=devices, devices=devices, name="to_device"),
            ),
            memory=memory,
            requires=module.partition(".")[0],
            install=install,
            advanced=Advanced(
                default_dtype=partial(_default_dtype, module),
                device_name=partial(_device_name, module),
            ),
        ),
        Conversion(
            "dlpack",
            module,
            partial(_from_dlpack, module),
            dtypes=_STANDARD,
            takes=NATIVE - {"immutable", "unaligned"},
            devices=CPU,
            cost=Cost(1e-5),
            name=f"{module}_from_dlpack",
        ),
        *dtype_names,
    ]


def _default_dtype(module: str, dtype: str) -> str:
    """Return the dtype that a namespace gives to Python's numbers of a kind."""
    xp: Any = sys.modules.get(module)
    try:
        return _last_word(xp.__array_namespace_info__().default_dtypes()[_KINDS[dtype]])
    except (AttributeError, KeyError):  # it is not imported yet, or of an older standard
        return dtype


def _declare(module: ModuleType) -> list[Declaration]:
    """Return the declarations that make a module a framework, if it is a suitable namespace.

    The type of its arrays is found by making one.
    """
    if sys.modules.get(module.__name__) is not module:  # it cannot be imported by its name
        return []
    if not callable(getattr(module, "from_dlpack", None)):
        return []
    if not all(hasattr(module, name) for name in ("empty", "__array_namespace_info__")):
        return _declare_consumer(module)
    array, dtype = type(module.empty(0)), type(getattr(module, "float32", 0.0))
    if not hasattr(array, "__dlpack__") or not _is_found(array):
        return []
    packages = {name.partition(".")[0] for name in (module.__name__, array.__module__)}
    is_own = _is_found(dtype) and dtype.__module__.partition(".")[0] in packages
    declarations = namespace(module.__name__, _path(array), _path(dtype) if is_own else "")
    # Its arrays may be anything that a producer may have: they were read as foreign values before.
    # The module is imported, so it requires nothing, even if no finder knows its name.
    changes = {"requires": "", "limits": _WRITTEN, **_PRODUCER}
    return [d._replace(**changes) if isinstance(d, Format) else d for d in declarations]


def _declare_consumer(module: ModuleType) -> list[Declaration]:
    """Return the declarations for a module with a `from_dlpack` of which nothing else is known.

    What it takes is found by trying: the dtypes, whether arrays may have no axes, and whether it
    shares memory. It is not given memory that must not be written to, because few libraries know
    the flag.
    """
    import numpy as np

    made = {dtype: _tried(module, np.zeros(4, dtype)) for dtype in sorted(_STANDARD | {"float16"})}
    dtypes = frozenset(dtype for dtype, exported in made.items() if exported is not None)
    sample = np.zeros(4, min(dtypes, default="float32"))
    try:
        array = type(module.from_dlpack(CheckedProducer(sample)))
    except Exception as error:
        msg = (
            f"to={module.__name__}: its from_dlpack, which would tell what its arrays are, raised "
            f"{type(error).__name__}: {error}"
        )
        raise UnknownTargetError(msg) from error
    exported = _tried(module, sample)
    if not hasattr(array, "__dlpack__") or not _is_found(array) or exported is None:
        return []
    shares = exported.data == sample.ctypes.data
    name = module.__name__
    format_ = Format(
        name,
        types=(_path(array),),
        describe=partial(_describe_as, name),
        memory=memory,
        limits=Limits(unsupported=dict.fromkeys(_DEVICES, _DTYPES - dtypes)),
        ndims=None if _tried(module, sample[0, ...]) else frozenset(range(1, 65)),
        **_PRODUCER,
    )
    conversion = Conversion(
        "dlpack",
        name,
        partial(_from_dlpack, name),
        dtypes=dtypes,
        takes=frozenset({"noncontiguous"}),
        devices=CPU | {"cuda", "rocm"},
        effects=EMPTY if shares else COPY,
        cost=Cost(1e-5),
        name=f"{name}_from_dlpack",
    )
    return [format_, conversion]


def _tried(module: Any, array: np.ndarray[Any, Any]) -> Export | None:
    """Return what a module's array over a NumPy array exports, or None if it does not take it."""
    try:
        exported = checked_export(module.from_dlpack(CheckedProducer(array)))
    except Exception:  # noqa: BLE001 - an unknown library raises what it likes
        return None
    same = (exported.dtype, tuple(exported.shape)) == (array.dtype.name, array.shape)
    return exported if same else None


def _path(class_: type) -> str:
    return f"{class_.__module__}:{class_.__qualname__}"


def _is_found(class_: type) -> bool:
    """Tell whether a class can be looked up by its name."""
    return getattr(sys.modules.get(class_.__module__), class_.__qualname__, None) is class_


def _last_word(dtype: object) -> str:
    return str(dtype).rpartition(".")[2]


def _traits(value: Producer, exported: Export) -> frozenset[str]:
    usual = exported.contiguous and exported.aligned
    if usual and exported.versioned and not exported.readonly:
        return EMPTY
    # A legacy capsule has no flags, not even if the framework never changes its arrays (JAX before
    # 0.12, TensorFlow). So its memory is writable only if the value itself says so.
    writeable = True if exported.versioned else _writeable(value)
    present = {
        "readonly": exported.readonly or writeable is False,
        "immutable": writeable is None,
        "noncontiguous": not exported.contiguous,
        "fortran": not exported.contiguous and _is_fortran(exported),
        "negative_strides": exported.backwards and _is_walked_backwards(exported),
        "broadcast": exported.broadcast,
        "unaligned": not exported.aligned,
    }
    return frozenset(trait for trait, holds in present.items() if holds)


def _is_fortran(exported: Export) -> bool:
    return "fortran" in stride_traits(exported.shape, exported.strides or (), 1)


def _is_walked_backwards(exported: Export) -> bool:
    """Tell whether elements are reached along a negative stride.

    No element is reached along the stride of an axis of at most one element, or in an empty array.
    """
    steps = zip(exported.shape, exported.strides or (), strict=False)
    return 0 not in exported.shape and any(n > 1 and step < 0 for n, step in steps)


def _writeable(value: Producer) -> bool | None:
    """Return ``value.flags.writeable`` if a value has it, as NumPy arrays do, else None."""
    flag = getattr(getattr(value, "flags", None), "writeable", None)
    return flag if isinstance(flag, bool) else None


def memory(value: Producer) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory that a producer's array lies in."""
    return checked_export(value).extents


class _CapsuleProducer:
    """A producer of a capsule that already exists.

    Whoever made the capsule has decided on stream, device and copy.
    """

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, *, stream: object = None, max_version: object = None) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        exported = checked_export(self)
        return exported.device_type, int(exported.device.partition(":")[2] or 0)


def _capsule(value: np.ndarray[Any, Any]) -> object:
    """Return a sample: the capsule of an array."""
    return value.__dlpack__(max_version=(1, 0))


class _Legacy:
    """A sample: a producer of the first kind of capsule, which has no flags."""

    def __init__(self, value: Producer) -> None:
        self._value = value

    def __dlpack__(self, *, stream: object = None) -> object:
        return self._value.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._value.__dlpack_device__()
        return device


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats of foreign values that export DLPack, and of the capsules themselves."""
    return [
        Format(
            "dlpack",
            describe=describe,
            protocol="__dlpack__",
            **_PRODUCER,
            memory=memory,
            samples=Samples(variants={"immutable": _Legacy}),
        ),
        Format(
            "dlpack.capsule",
            types=(f"{__name__}:Capsule",),
            target_types=(),
            dtypes=_DTYPES,
            devices=_DEVICES,
            carries=NATIVE,
            wrapper=Wrapper(_CapsuleProducer, seconds=1e-6),
            samples=Samples(make=_capsule, source="numpy"),
        ),
        *namespace(
            "array_api_strict",
            "array_api_strict._array_object:Array",
            "array_api_strict._dtypes:DType",
            install="pip install array-api-strict",
        ),
        Namespaces(_declare),
    ]
