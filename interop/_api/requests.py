"""Requests by the keywords of calls, each resolved once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from interop._model.device import device_type, ordinary
from interop._model.spec import DIVISIONS, Spec
from interop._model.typing import Value
from interop._planning.cache import PlanCache, PlanTable, TablesByDtype
from interop._planning.keywords import Keywords
from interop._planning.naming import dtypes_by_dtype
from interop._planning.policy import block, current_policy
from interop._planning.request import resolved
from interop._registry.registry import Registry
from interop.errors import BadRequestError, UnknownValueError


class Requests:
    """The plans of the requests that calls make, by their keywords and the policy in force.

    Parameters
    ----------
    registry : Registry
    cache : PlanCache
    spec : callable
        Describes a value, once the plugins are loaded.
    adopt : callable
        Loads the plugins, and lets modules that name no format yet be targets.
    """

    def __init__(
        self,
        registry: Registry,
        cache: PlanCache,
        spec: Callable[[Value], Spec],
        adopt: Callable[[object], None],
    ) -> None:
        self.registry = registry
        self.cache = cache
        self.spec = spec
        self._adopt = adopt

    def table(self, keywords: Keywords) -> PlanTable:
        """Return the plans of the request that keywords make."""
        division: frozenset[str] = frozenset()
        if keywords.like is not None:
            keywords, division = self._resolved_like(keywords)
        innermost = block.get()
        # All but the stream, which is for the steps.
        key = keywords[:-1], innermost and innermost.policy, division
        try:
            return self.cache.by_keywords[key]
        except KeyError:
            keep = True
        except TypeError:  # a list or a set of targets does not hash
            keep = False
        self._adopt(keywords.to)
        version = self.registry.version
        request = resolved(self.registry, keywords, current_policy(), division)
        table = self.cache.table(request)
        return self.cache.keep(self.cache.by_keywords, key, table, version) if keep else table

    def any_table(self, keywords: Keywords) -> PlanTable | TablesByDtype:
        """Return the plans of a request, of all of them if the dtype of the value decides."""
        dtype = keywords.dtype
        if dtype is not None and isinstance(dtype, Mapping):  # the latter takes a while
            return self._tables_by_dtype(keywords, dtype)
        return self.table(keywords)

    def table_of(
        self,
        keywords: Keywords,
        takes: Callable[[str | None, str], bool] | None = None,
    ) -> Callable[[Spec], PlanTable]:
        """Return a function that gives the plans for a spec.

        A dtype may be for some values only: a mapping has dtypes by the dtypes of values or their
        kinds, and ``takes(own, dtype)`` tells whether a dtype is for values of a dtype.
        """
        dtype = keywords.dtype
        if isinstance(dtype, Mapping):
            return self._tables_by_dtype(keywords, dtype)
        cast = self.table(keywords)
        if takes is None or cast.request.dtype is None:
            return lambda spec: cast
        uncast, named = self.table(keywords._replace(dtype=None)), cast.request.dtype
        return lambda spec: cast if takes(spec.dtype, named) else uncast

    def _tables_by_dtype(self, keywords: Keywords, dtypes: Mapping[Any, object]) -> TablesByDtype:
        """Return the plans by the dtypes of values, resolved once."""
        innermost, kept = block.get(), self.cache.by_dtypes
        key = (
            tuple(dtypes.items()),
            *keywords._replace(dtype=None)[:-1],
            innermost and innermost.policy,
        )
        keep = keywords.like is None  # the value in like= may be on another device the next time
        try:
            if keep and key in kept:
                return kept[key]
        except TypeError:  # a list or a set of targets does not hash
            keep = False
        version = self.registry.version
        uncast = self.table(keywords._replace(dtype=None))
        named = dtypes_by_dtype(self.registry, dtypes)
        tables = {name: self.table(keywords._replace(dtype=dtype)) for name, dtype in named.items()}
        plans = self.cache.used(TablesByDtype(tables, uncast))
        return self.cache.keep(kept, key, plans, version) if keep else plans

    def spec_for(self, name: str, value: Value) -> Spec:
        """Return the spec of the array that a keyword takes."""
        try:
            return self.spec(value)
        except UnknownValueError:
            msg = (
                f"{name}= takes an array, and {type(value).__qualname__} is not one interop knows."
            )
            raise UnknownValueError(msg) from None

    def labels(self, like: object) -> bool:
        """Tell whether results take labels from the value in ``like=``."""
        if like is None:
            return False
        return self.registry.formats[self.spec(like).format].labels is not None

    def _resolved_like(self, keywords: Keywords) -> tuple[Keywords, frozenset[str]]:
        """Return keywords with the format and the device of ``like=``, and how it is divided."""
        like = keywords.like
        if keywords.to is not None:
            msg = "both to= and like= were given; pass one of them."
            raise BadRequestError(msg)
        if isinstance(like, (str, type, ModuleType)):
            msg = "like= takes an array; what names a format is for to=."
            raise BadRequestError(msg)
        spec = self.spec_for("like", like)
        if self.registry.formats[spec.format].protocol:
            namespace = getattr(like, "__array_namespace__", None)
            self._adopt(type(like) if namespace is None else namespace())
            spec = self.spec(like)
        version, format_ = self.registry.version, self.registry.formats[spec.format]
        address_of = format_.advanced.address
        if address_of is not None and self.registry.is_plain(type(like), format_):
            self.cache.keep(self.cache.addresses, type(like), address_of, version)
        division = spec.traits & DIVISIONS
        # Each part of a divided value is on a device of its own.
        device = device_type(spec.device) if division else ordinary(spec.device)
        return (
            keywords._replace(to=spec.format, like=None, device=keywords.device or device),
            division,
        )
