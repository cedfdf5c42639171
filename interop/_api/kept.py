"""What callers keep: converters, plans, and functions under `accepts`.

All of it is pickled by its request, which is resolved again where it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from interop._execution.converter import Converter
from interop._model.spec import Spec
from interop._model.typing import Value
from interop._planning.explain import refused_routes
from interop._planning.plan import Plan
from interop._recognition.installed import not_installed
from interop._request.keywords import Keywords
from interop._request.naming import check_format
from interop._request.policy import current_policy

from .pickling import reduced

if TYPE_CHECKING:
    from .accepts import Calls


def kept_converter(instance: Any, keywords: Keywords) -> Converter:
    """Return the converter of an instance for a request."""
    converter = instance._converters.converter(keywords)
    kept: Converter = converter.kept(keywords, _pickled(kept_converter, (instance,), keywords))
    return kept


def kept_calls(
    instance: Any, function: Callable[..., Value], grad: bool, lists: bool, keywords: Keywords
) -> Calls:
    """Return the calls of a function under `accepts`."""
    from .accepts import Calls

    registry = instance._registry
    if grad and not registry.loader.is_loading():
        registry.loader.load_all()  # messages list what differentiates
    pickled = _pickled(kept_calls, (instance, function, grad, lists), keywords)
    convert = instance.convert
    return Calls(instance._converters, convert, function, keywords, grad, lists, pickled)


def kept_plan(instance: Any, spec: Spec, keywords: Keywords) -> Plan:
    """Return the plan of an instance for a spec: the one that its converter carries out."""
    registry, planner = instance._registry.loaded(), instance._planner
    converters = instance._converters
    converter = converters.converter(keywords).chosen(spec)
    check_format(registry, spec.format)
    request, plan = converter.request, converter.plan(spec, installed=False)
    last, steps = plan._replayed
    if last != spec:
        # Where they cannot be made for the spec, they are those of the plan, which differ in sizes.
        steps = planner.replayed(spec, request, plan.steps) or plan.steps
        plan._replayed = spec, steps
    specs = (spec, *(step.after for step in steps))
    formats = (registry.formats[spec.format] for spec in specs)
    kept: Plan = plan._at(
        spec,
        steps,
        convert=lambda value: converters.of(request).convert(value, keywords),
        explain=lambda: refused_routes(planner, spec, request, specs[-1]),
        pickled=_pickled(kept_plan, (instance, spec), keywords),
        problem=converters.engine.problem(steps, spec),
        missing=tuple(dict.fromkeys(filter(None, map(not_installed, formats)))),
    )
    return kept


def _pickled(
    make: Callable[..., object], arguments: tuple[Any, ...], keywords: Keywords
) -> Callable[[], tuple[Any, ...]]:
    """Return a `__reduce__` for what a function makes of some arguments and keywords."""
    registry = arguments[0]._registry
    return partial(reduced, make, arguments, registry, keywords, current_policy())
