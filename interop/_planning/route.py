"""A route: the steps for one value and one request, to be read or to be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from interop._model.spec import Spec
from interop._model.text import duration, html_table, readable, text_table
from interop._model.typing import Value, ValueFunction
from interop._text import lines

if TYPE_CHECKING:
    from interop._request.request import Request

    from .step import Step

HEADS = ("", "step", "from", "to", "effects", "written", "estimate", "declared by")


class Route:
    """The steps for one value and one request, with their effects and estimated cost.

    Calling it with a value of the spec it was planned for converts the value. Printing it shows a
    table; notebooks show the same as HTML. It is pickled by its spec and its request, and planned
    again where it is loaded.

    Attributes
    ----------
    spec : Spec
        The spec of the value.
    request : Request
        The request, resolved to names: `formats`, `dtype`, `device`, `copy`, `policy` …
    steps : tuple of Step
    result : Spec
        The spec of the result.
    effects : frozenset of str
    zero_copy : bool
        Whether no bytes are copied or moved.
    aliases : bool
        Whether the result shares memory with the value.
    cost : float
        Estimated seconds.
    problem : str
        Why the conversion would be refused all the same: its result does not fit in the memory of
        this machine. "" if it fits.
    missing : tuple of str
        The modules that it needs and that are not installed, with the commands that install them.
    """

    __slots__ = ("_explain", "_pickled", "_run", "missing", "problem", "request", "spec", "steps")

    def __init__(
        self,
        spec: Spec,
        request: Request,
        steps: tuple[Step, ...],
        run: ValueFunction,
        explain: Callable[[], str],
        *,
        pickled: Callable[[], tuple[Any, ...]],
        problem: str = "",
        missing: tuple[str, ...] = (),
    ) -> None:
        self.spec: Spec = spec
        self.request: Request = request
        self.steps: tuple[Step, ...] = steps
        self._run = run
        self._explain = explain
        self._pickled = pickled
        self.problem: str = problem
        self.missing: tuple[str, ...] = missing

    @property
    def result(self) -> Spec:
        """The spec of the result."""
        return self.steps[-1].after if self.steps else self.spec

    @property
    def effects(self) -> frozenset[str]:
        """Every effect of every step."""
        return frozenset(effect for step in self.steps for effect in step.effects)

    @property
    def zero_copy(self) -> bool:
        """Whether no bytes are copied or moved."""
        return not any(step.writes for step in self.steps)

    @property
    def aliases(self) -> bool:
        """Whether the result shares memory with the value."""
        shared: frozenset[str] | None = None
        for step in self.steps:
            shared = step.still_shared(shared)
        return shared is None or bool(shared)

    @property
    def cost(self) -> float:
        """Estimated seconds."""
        return sum(step.seconds for step in self.steps)

    def __call__(self, value: Value) -> Value:
        """Convert a value of the spec this route was planned for.

        Parameters
        ----------
        value : object
            A value of another spec is not refused: it takes its own route under the same request.

        Returns
        -------
        array

        Raises
        ------
        InteropError
            As for `convert`.
        """
        return self._run(value)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._pickled()

    def explain(self) -> str:
        """Return the table, and below it the nearest routes that are refused and why.

        Finding those takes longer than the plan did.
        """
        return f"{self}\n\n{refused(self)}".rstrip()

    def as_dict(self) -> dict[str, Value]:
        """Return the route as values that JSON can hold.

        Returns
        -------
        dict
            With ``source``, ``request``, ``result``, ``zero_copy``, ``aliases``, ``effects``,
            ``seconds``, ``problem``, ``missing`` and ``steps``. Each step has ``step``, ``source``,
            ``result``, ``effects``, ``written`` (in bytes), ``seconds`` and ``declared_by``.
        """
        return {
            "source": self.spec.as_dict(),
            "request": str(self.request),
            "result": self.result.as_dict(),
            "zero_copy": self.zero_copy,
            "aliases": self.aliases,
            "effects": sorted(self.effects),
            "seconds": self.cost,
            "problem": self.problem,
            "missing": list(self.missing),
            "steps": [
                {
                    "step": step.label,
                    "source": step.before.as_dict(),
                    "result": step.after.as_dict(),
                    "effects": sorted(step.effects),
                    "written": step.after.nbytes if step.writes else 0,
                    "seconds": step.seconds,
                    "declared_by": str(step.provenance),
                }
                for step in self.steps
            ],
        }

    def __str__(self) -> str:
        table = text_table(HEADS, rows(self)) if self.steps else ()
        return lines([title(self), *table, *self.missing])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table("; ".join([title(self), *self.missing]), HEADS, rows(self))


def title(route: Route) -> str:
    """Return the line above the table: the spec, the request and a summary."""
    return f"{route.spec} → {route.request}: {_summary(route)}"


def _summary(route: Route) -> str:
    if not route.steps:
        return "already what was asked for; returned as it is"
    memory = "zero-copy" if route.zero_copy else "fresh memory"
    if route.aliases and not route.zero_copy:
        memory = "shares some memory, copies the rest"
    verdict = f"; refused, because {route.problem}" if route.problem else ""
    return f"{memory}, {duration(route.cost)} estimated{verdict}"


def rows(route: Route) -> list[tuple[str, ...]]:
    """Return the cells of the table of a route, below `HEADS`."""
    return [
        (
            str(number),
            step.label,
            _brief(step.before),
            _brief(step.after),
            ", ".join(sorted(step.effects)) or "view",
            readable(step.after.nbytes) if step.writes else "—",
            duration(step.seconds),
            str(step.provenance),
        )
        for number, step in enumerate(route.steps, 1)
    ]


def refused(route: Route) -> str:
    """Return the nearest routes that are refused and why, for which it plans again."""
    return route._explain()


def _brief(spec: Spec) -> str:
    dtype = f"{spec.dtype} as {spec.carrier}" if spec.carrier else spec.dtype
    return f"{spec.format} {dtype} {spec.device}"
