"""Ranking: the order of preference between routes.

The first of these criteria that tells two routes apart decides:

1. feasible under the policy;
2. fewest steps of third parties;
3. fewest lost properties;
4. fewest steps that leave the layout of the value;
5. of several formats that are asked for by one name, the value's own, then the one of its layout,
   then the one that is declared first;
6. no bytes copied, before any copied;
7. some memory shared, before none;
8. fewest imports that nobody requested;
9. fewest steps that put elements in another order than they lie in;
10. the shorter estimated time;
11. fewer steps;
12. the names.
"""

from __future__ import annotations

from typing import NamedTuple

from interop._model.effect import LOSSES

from .step import Step

#: Seconds that each step takes on top of its own: for the call, and because a single step is more
#: likely to have a fast path.
EACH = 2e-6

#: Memory is shared, but only by visiting a framework that nobody requested: worse than no sharing.
_BY_DETOUR = 2


class Rank(NamedTuple):
    """What decides between two routes: the smaller is preferred."""

    refused: int = 0  # effects that the policy refuses
    # Steps declared by distributions that nobody requested. They come before all that follows, so
    # that installing a distribution changes no route.
    third_parties: int = 0
    losses: int = 0  # properties of the value
    # The next two come before all that depends on sizes and on memory, as the kind of a result
    # must not: steps that leave the layout of the value, and how many formats of the framework
    # are preferred to that of the result.
    layout_changes: int = 0
    preference: int = 0
    copied: bool = False
    sharing: int = 0  # 0: some memory is shared with the value, 1: none, 2: by a detour
    imports: int = 0  # of frameworks that nobody requested
    # Steps that put elements in another order. A table whose columns are shared is a step towards
    # rows, too. They come before the time, since where the elements of a result lie must not depend
    # on costs.
    reorders: int = 0
    seconds: float = 0.0
    steps: int = 0
    names: tuple[str, ...] = ()  # of the steps: they decide between routes that are equal so far

    def extended(
        self,
        step: Step,
        refused: int,
        imports: bool,
        *,
        third_party: bool = False,
        leaves_layout: bool = False,
        reorders: bool = False,
        shares: bool = True,
    ) -> Rank:
        """Return the rank of the route with one more step.

        `leaves_layout` tells whether the step leaves the layout of the value that is converted,
        `reorders` whether it puts elements in another order. `shares` tells whether some memory is
        still the value's after all steps together.
        """
        return Rank(
            self.refused + refused,
            self.third_parties + third_party,
            self.losses + len(step.effects & LOSSES),
            self.layout_changes + leaves_layout,
            self.preference,
            self.copied or step.writes,
            max(self.sharing, not (shares and step.aliases)),
            self.imports + imports,
            self.reorders + reorders,
            self.seconds + step.seconds + EACH,
            self.steps + 1,
            (*self.names, step.label),
        )

    def by_detour(self) -> Rank:
        """Return the rank of a route whose result is shared only by way of a detour."""
        return self._replace(sharing=_BY_DETOUR)
