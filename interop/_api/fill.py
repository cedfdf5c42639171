"""Fills: writing into an array of the caller's, the value in ``out=``."""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import partial
from time import perf_counter
from typing import Any

from interop._execution.converter import Converter, Converters
from interop._execution.fast import SMALL
from interop._execution.trace import Trace, overlap, shares_memory, under
from interop._model.blame import warn_caller
from interop._model.device import ordinary
from interop._model.dtype import imaginary_loss
from interop._model.format import Format
from interop._model.spec import TRAITS, UNWRITABLE, Spec
from interop._model.typing import Value
from interop._registry.registry import Registry
from interop._request.keywords import Keywords
from interop._request.policy import block
from interop.errors import BadRequestError

#: The advice about an ``out=`` that cannot be written into, by its trait.
_OTHER_OUT = {
    "grad": "pass it detached",
    "masked": "pass the array of its numbers",
    "traced": "convert outside of it",
}


def write(converters: Converters, x: Value, keywords: Keywords) -> Value:
    """Write `x` into `keywords.out`, which decides format, dtype and device; return that.

    How it was done on a fast path is learnt for values like both.
    """
    _check_keywords(keywords)
    registry, out = converters.registry, keywords.out
    out_spec = converters.spec_for("out", out)  # which loads the plugins
    out_spec = out_spec._replace(device=ordinary(out_spec.device))
    x = registry.recognition.opened(x)
    spec = registry.recognition.describe(x)
    target = registry.formats[out_spec.format]
    own = registry.recognition.format_of(out)
    # What is read by a protocol is described as what it gives.
    _check_writable(target if own.protocol is None else own, out, out_spec)
    if "unknown_shape" in spec.traits:  # until it is computed
        x = _converter(converters, out_spec, None, None, keywords).convert(x, keywords)
        spec = registry.recognition.describe(x)
    if out_spec.shape != spec.shape:
        msg = (
            f"out has shape {out_spec.shape}, but the value has {spec.shape}; pass an out of "
            "that shape."
        )
        raise BadRequestError(msg)
    # Everything in the memory of `out` must be read before any of it is written.
    shared = shares_memory(registry, x, out, (spec, out_spec))
    apart = shared is False
    holds = out_spec.dtype in target.dtypes  # otherwise `fill` reports why
    # On a device, a view of another library's memory might be read after it has changed.
    copy = None if out_spec.device == "cpu" else True
    dtype = out_spec.dtype if holds else None
    request = _converter(converters, out_spec, dtype, copy, keywords).request
    chosen = request.step_keywords(keywords)
    if apart and holds and converters.engine.write(x, spec, out, out_spec, request, chosen):
        if target.advanced.written is not None:
            target.advanced.written(out)
    else:
        copy = None if apart else True
        converter = _converter(converters, out_spec, dtype, copy, keywords)
        # `fill` casts as it writes, unless the cast may be refused or comes in one with a copy.
        if request.consents and spec.dtype in target.dtypes:
            uncast = _converter(converters, out_spec, None, copy, keywords)
            converter = uncast if uncast.plan(spec).zero_copy else converter
        _fill(x, converter, keywords, out_spec, shared)
    loss = imaginary_loss(spec.dtype, out_spec.dtype)
    if loss is not None:
        warn_caller(loss)
    elif keywords == Keywords(out=out) and block.get() is None and spec.nbytes < SMALL:
        _learn(converters, x, spec, out, out_spec)
    return out


def _fill(
    x: Value,
    converter: Converter,
    keywords: Keywords,
    out_spec: Spec,
    shared: bool | None,
) -> None:
    """Convert `x` and write the result into ``out=``; leave one receipt if a trace is open."""
    registry, innermost = converter.store.registry, block.get()
    fill = registry.formats[out_spec.format].fill
    assert fill is not None
    if innermost is None or not innermost.traces:
        fill(keywords.out, _shaped(registry, converter.convert(x, keywords), out_spec))
        return
    receipts = Trace()
    result = under(innermost, (receipts,), lambda: converter.convert(x, keywords))
    start = perf_counter()
    fill(keywords.out, _shaped(registry, result, out_spec))
    seconds = perf_counter() - start
    receipt = receipts[0]
    receipt = receipt._replace(
        result=out_spec,
        steps=(*receipt.steps, "fill"),
        seconds=(*receipt.seconds, seconds),
        nbytes=out_spec.nbytes,
        aliased=shared,
        written=(*receipt.written, out_spec.nbytes),
        declared_by=(*receipt.declared_by, str(registry.provenance[out_spec.format])),
    )
    for trace in innermost.traces:
        trace.take(receipt)


def _shaped(registry: Registry, result: Value, out_spec: Spec) -> Value:
    """Return a result, or refuse it if the value had stated another shape than it gave."""
    shape = registry.recognition.describe(result).shape
    if shape != out_spec.shape:
        msg = (
            f"out has shape {out_spec.shape}, and the value, which states that shape, gives "
            f"{shape}; pass an out of the shape that it gives."
        )
        raise BadRequestError(msg)
    return result


def _converter(
    converters: Converters,
    out_spec: Spec,
    dtype: str | None,
    copy: bool | None,
    keywords: Keywords,
) -> Converter:
    """Return the converter to values like `out`, with the effects that the call may have."""
    return converters.converter(
        Keywords(
            out_spec.format,
            dtype=dtype,
            device=out_spec.device,
            copy=copy,
            allow=keywords.allow,
            forbid=keywords.forbid,
        )
    )


def _learn(converters: Converters, x: Value, spec: Spec, out: Value, out_spec: Spec) -> None:
    """Keep how to write values such as `x` into those such as `out`, by a fast path."""
    if (spec.dtype, spec.device, spec.shape) != (
        out_spec.dtype,
        out_spec.device,
        out_spec.shape,
    ):
        return
    registry, kind = converters.registry, type(x)
    version = registry.version
    source, target = registry.formats[spec.format], registry.formats[out_spec.format]
    # Reading a value without a fast key may change it: it is computed, or handed over.
    if source.fast_key is None or not (
        converters.knows(kind, source) and converters.knows(type(out), target)
    ):
        return
    # Keys of values in a graph and of strided ones are keys, too.
    key = None if out_spec.traits or not target.fast_key else target.fast_key(out)
    converter = converters.converter(Keywords(target.name))
    plan = converter.plans.get(converter.key(spec))
    if (plan, kind) not in converter.asked:
        converter.convert(x)  # which learns its fast path if there is one
    path = converter.fast.get(kind, NotImplemented)
    # The fast path compares shapes as the values themselves tell them.
    tells_shape = getattr(out, "shape", None) == spec.shape
    if path is NotImplemented or key is None or not (target.memory and tells_shape):
        return
    fill = partial(_fast_fill(path, target, tells_size=hasattr(out, "nbytes")), set())
    with converters.lock:
        fill = converters.keep(converters.fills, (kind, type(out)), fill, version)
        fill.args[0].add(key)


def _fast_fill(
    path: Any, target: Format, *, tells_size: bool
) -> Callable[[Set[object], Value, Value], bool]:
    """Return a function that writes a value into an ``out=`` of a format by a fast path.

    It returns whether it has written. It writes only if both values have one of some keys, those
    of plain values, and the same shape, and share no memory: where values do not tell their size
    themselves, their format tells where they lie.
    """
    key_of, memory, write = target.fast_key, target.memory, target.fill
    assert key_of is not None and memory is not None and write is not None  # noqa: PT018
    unwritable = target.advanced.unwritable
    address_of = target.advanced.address if tells_size else None
    describe = None if target.devices == ("cpu",) else target.describe

    def fill(keys: Set[object], x: Value, out: Value) -> bool:
        value = x if path is None else path(x)
        if type(value) is not type(out):
            return False  # no fast path applies; the planner decides
        key = key_of(out)
        if key not in keys or key != key_of(value) or value.shape != out.shape:
            return False
        if describe is not None and ordinary(describe(out).device) != "cpu":
            return False
        if unwritable is not None and unwritable(out):
            return False
        if address_of is None:
            if overlap(memory(value), memory(out)):
                return False
        elif -(size := out.nbytes) < address_of(value) - address_of(out) < size:  # plain: one block
            return False
        write(out, value)
        return True

    return fill


def _check_keywords(keywords: Keywords) -> None:
    """Refuse the keywords that ``out=`` decides itself."""
    if keywords.copy is False:
        msg = "out= is written into, and copy=False writes nothing; leave out copy=False."
        raise BadRequestError(msg)
    given = keywords.to, keywords.like, keywords.dtype, keywords.device, keywords.order
    if any(value is not None for value in given):
        msg = (
            "out= fixes the format, dtype, device and order; leave out to, like, dtype, device and "
            "order."
        )
        raise BadRequestError(msg)


def _check_writable(format_: Format, out: Value, spec: Spec) -> None:
    """Refuse an ``out=`` that cannot hold all numbers of a value, before anything is converted."""
    if format_.fill is None:
        msg = (
            f"{format_.name} values cannot be written into; use the result of a call without out=."
        )
        raise BadRequestError(msg)
    if spec.traits & UNWRITABLE:
        trait = min(spec.traits & UNWRITABLE)
        move = _OTHER_OUT.get(trait, "pass an array with memory of its own, such as a copy")
        msg = f"out= of shape {spec.shape} cannot be written into: {TRAITS[trait]}; {move}."
        raise BadRequestError(msg)
    if spec.dtype not in format_.dtypes:
        msg = f"out= has the non-numeric dtype {spec.dtype}; pass an array of numbers."
        raise BadRequestError(msg)
    unwritable = format_.advanced.unwritable
    if unwritable is not None and (reason := unwritable(out)):
        msg = f"out= is {reason}"
        raise BadRequestError(msg)
