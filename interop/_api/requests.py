"""Requests by the keywords of calls, each resolved once."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Literal, TypeAlias

from interop._model.device import device_type, ordinary
from interop._model.dtype import DTYPES, same_kind
from interop._model.spec import DIVISIONS, LIKENESS, Spec
from interop._model.typing import Value
from interop._planning.cache import PlanCache, PlanTable, Tables, TablesByDtype
from interop._registry.registry import Registry
from interop._request.keywords import Keywords
from interop._request.naming import dtypes_by_dtype
from interop._request.policy import block, current_policy
from interop._request.request import resolved
from interop.errors import BadRequestError, InteropError, UnknownValueError

#: The values for which a ``dtype=`` is: those of its kind, all numbers, or all values.
Among: TypeAlias = Literal["kind", "numbers", "all"]


class Requests:
    """The plans of the requests that calls make, by their keywords and the policy in force.

    Parameters
    ----------
    registry : Registry
    cache : PlanCache
    """

    def __init__(self, registry: Registry, cache: PlanCache) -> None:
        self.registry = registry
        self.cache = cache

    def table(self, keywords: Keywords) -> PlanTable:
        """Return the plans of the request that keywords make, whose dtype is for all values."""
        tables = self.tables(keywords)
        assert isinstance(tables, PlanTable)
        return tables

    def tables(self, keywords: Keywords, *, among: Among = "all") -> Tables:
        """Return the plans of what keywords ask for, resolved once.

        There are several if ``dtype=`` is a mapping, or if one dtype is for some values `among`
        others: those of its kind, or all numbers.
        """
        division: frozenset[str] = frozenset()
        if keywords.like is not None:
            keywords, division = self._resolved_like(keywords)
        innermost, dtype = block.get(), keywords.dtype
        named = keywords
        # An abstract class takes a while to tell what is no mapping.
        if dtype is not None and type(dtype) is not str and isinstance(dtype, Mapping):
            named, among = keywords._replace(dtype=(Mapping, *dtype.items())), "all"
        # All but the stream, which is for the steps.
        key = named[:-1], innermost and innermost.policy, division, among
        try:
            return self.cache.by_keywords[key]
        except KeyError:
            keep = True
        except TypeError:  # a list or a set of targets does not hash
            keep = False
        self.registry.adopt(keywords.to)
        version = self.registry.version
        tables: Tables | None = None
        try:
            tables = self._resolved(keywords, division, among)
        except InteropError:
            if not self.registry.loader.load_all():  # words are refused among those of all plugins
                raise
        tables = tables or self._resolved(keywords, division, among)
        return self.cache.keep(self.cache.by_keywords, key, tables, version) if keep else tables

    def _resolved(self, keywords: Keywords, division: frozenset[str], among: Among) -> Tables:
        """Return the plans of what keywords ask for the first time."""
        registry, policy, dtype = self.registry, current_policy(), keywords.dtype

        def table(dtype: object) -> PlanTable:
            request = resolved(registry, keywords._replace(dtype=dtype), policy, division)
            return self.cache.table(request)

        if isinstance(dtype, Mapping):
            uncast, named = table(None), dtypes_by_dtype(registry, dtype)
            tables = {own: table(other) for own, other in named.items()}
            return self.cache.used(TablesByDtype(tables, uncast))
        cast = table(dtype)
        named_dtype = cast.request.dtype
        if named_dtype is None or among == "all":
            return cast
        taken = (own for own in DTYPES if among == "numbers" or same_kind(own, named_dtype))
        return self.cache.used(TablesByDtype(dict.fromkeys(taken, cast), table(None)))

    def spec_for(self, name: str, value: Value) -> Spec:
        """Return the spec of the array that a keyword takes."""
        try:
            return self.registry.describe(value)
        except UnknownValueError:
            msg = (
                f"{name}= takes an array, and {type(value).__qualname__} is not one interop knows."
            )
            raise UnknownValueError(msg) from None

    def labels(self, like: object) -> bool:
        """Tell whether results take labels from the value in ``like=``."""
        if like is None:
            return False
        return self.registry.formats[self.registry.describe(like).format].labels is not None

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
            self.registry.adopt(type(like) if namespace is None else namespace())
            spec = self.registry.describe(like)
        version, format_ = self.registry.version, self.registry.formats[spec.format]
        address_of = format_.advanced.address
        if address_of is not None and self.registry.is_plain(type(like), format_):
            self.cache.keep(self.cache.addresses, type(like), address_of, version)
        likeness = spec.traits & LIKENESS
        # Each part of a divided value is on a device of its own.
        device = device_type(spec.device) if likeness & DIVISIONS else ordinary(spec.device)
        return (
            keywords._replace(to=spec.format, like=None, device=keywords.device or device),
            likeness,
        )
