"""Ranking: the order of preference between routes.

Feasible under the policy, then fewest steps of bystanders, then fewest lost properties, then no
bytes copied before any copied, then some memory shared before none, then fewest imports that nobody
requested, then fewest steps that write elements in another order than they lie in, then the shorter
estimated time, then fewer steps, then the names. Only `bound.Least` repeats a part of this order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from interop._model.effect import LOSING

from .step import Step

#: Seconds that a step takes beside its own: to be called, and to do without the fast path of a
#: single step.
EACH = 2e-6

#: Memory is shared, but only by visiting a framework that nobody requested: worse than no sharing.
_SHARED_BY_DETOUR = 2


class Sacrifice(NamedTuple):
    """What a route gives up, the first field first."""

    # Steps declared by distributions that nobody requested: that one is installed changes no route.
    bystanders: float = 0
    properties: float = 0  # of the value, that are lost
    copied: bool = False
    breaks_sharing: int = 0  # 0: some memory is shared with the value, 1: none, 2: by a detour
    imports: int = 0  # of frameworks that nobody requested

    def plus(
        self,
        properties: int = 0,
        *,
        copied: bool = False,
        breaks: bool = False,
        imports: int = 0,
        bystanders: int = 0,
    ) -> Sacrifice:
        """Return what is given up when a step, or the rest of a route, gives up some more."""
        return Sacrifice(
            self.bystanders + bystanders,
            self.properties + properties,
            self.copied or copied,
            max(self.breaks_sharing, breaks),
            self.imports + imports,
        )


#: More than any route gives up.
WORST = Sacrifice(math.inf)


class Effort(NamedTuple):
    """What a route takes, the first field first."""

    # Steps that write elements by their indices, and not as they lie in memory. They come before
    # the time, since where the elements of a result lie must not depend on costs.
    reorders: int = 0
    seconds: float = 0.0
    steps: int = 0
    names: tuple[str, ...] = ()  # of the steps, so that no two routes are alike


class Rank(NamedTuple):
    """The place of a route in the order of preference: the smaller is preferred."""

    refused: int = 0  # effects that the policy refuses
    sacrifice: Sacrifice = Sacrifice()
    effort: Effort = Effort()

    def extended(self, step: Step, refused: int, imports: bool, *, bystander: bool = False) -> Rank:
        """Return the rank of the route with one more step."""
        reorders, seconds, steps, names = self.effort
        reordered = "noncontiguous" in step.before.traits - step.after.traits
        return Rank(
            self.refused + refused,
            self.sacrifice.plus(
                len(step.effects & LOSING),
                copied=step.writes,
                breaks=not step.aliases,
                imports=imports,
                bystanders=bystander,
            ),
            Effort(
                reorders + (step.writes and reordered),
                seconds + step.seconds + EACH,
                steps + 1,
                (*names, step.label),
            ),
        )

    def bounding(self, sacrifice: Sacrifice, seconds: float) -> Rank:
        """Return the least rank of a whole route, of which the rest takes some seconds more."""
        effort = self.effort._replace(seconds=self.effort.seconds + seconds)
        return Rank(self.refused, sacrifice, effort)

    def by_detour(self) -> Rank:
        """Return the rank of a route whose result is shared only by way of a detour."""
        sacrifice = self.sacrifice._replace(breaks_sharing=_SHARED_BY_DETOUR)
        return self._replace(sacrifice=sacrifice)

    def dominates(self, other: Rank) -> bool:
        """Tell whether every route that goes on from here is at least as good as from `other`.

        Whether bytes are copied and memory is shared is for the states to say.
        """
        return (
            self.refused <= other.refused
            and self.sacrifice.bystanders <= other.sacrifice.bystanders
            and self.sacrifice.properties <= other.sacrifice.properties
            and self.sacrifice.imports <= other.sacrifice.imports
            and self.effort <= other.effort
        )
