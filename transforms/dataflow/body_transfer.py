"""Dataflow analysis through the bodies of branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, final

from primgraph.ir.graph import Equation, Graph
from primgraph.primitives.control import parted

T = TypeVar("T")
# The fact about each result; None if nothing is known.
Known: TypeAlias = "list[T | None]"


class Fault(Exception):
    """Failure of an analysis; `cause` is the reason in the terms of the analysis."""

    def __init__(self, cause: Any) -> None:
        super().__init__(str(cause))
        self.cause = cause


@final
@dataclass(frozen=True, slots=True)
class Analysis(Generic[T]):
    """Transfer functions of a dataflow analysis for equations with bodies.

    `follow` maps facts on inputs of a body to facts on its outputs, and raises `Fault`. `row` maps
    the fact on a stack to the fact on its rows, `stack` maps it back. `differs` is the cause of the
    fault where iterations or branches disagree.
    """

    follow: Callable[[Graph, Known[T]], Known[T]]
    row: Callable[[T], T]
    stack: Callable[[T], T]
    differs: Any

    def one(self, found: Sequence[T | None]) -> T | None:
        """Return the fact that all known facts agree on; raise `Fault` if they differ."""
        known = [x for x in found if x is not None]
        if any(x != known[0] for x in known):
            raise Fault(self.differs)
        return known[0] if known else None


def through_cond(eqn: Equation, known: Known[T], analysis: Analysis[T]) -> Known[T]:
    found = [analysis.follow(branch, known[1:]) for branch in eqn.bodies]
    return [analysis.one(results) for results in zip(*found, strict=True)]


def through_checkpoint(eqn: Equation, known: Known[T], analysis: Analysis[T]) -> Known[T]:
    return analysis.follow(eqn.bodies[0], known)


def through_scan(eqn: Equation, known: Known[T], analysis: Analysis[T]) -> Known[T]:
    params = eqn.kwargs
    fixed, state, xs = parted(known[params["counted"] :], params["consts"], params["carries"])
    rows = [None if x is None else analysis.row(x) for x in xs]
    return _settled(params["body"], fixed, state, rows, analysis)


def through_while(eqn: Equation, known: Known[T], analysis: Analysis[T]) -> Known[T]:
    params = eqn.kwargs
    fixed, state = known[: params["consts"]], known[params["consts"] :]
    found = _settled(params["body"], fixed, state, [], analysis)
    return [*found[: len(state)], None, *found[len(state) :]]


def _settled(
    body: Graph, fixed: Known[T], state: Known[T], rows: Known[T], analysis: Analysis[T]
) -> Known[T]:
    """Return the facts on carries and stacks at the fixed point of the loop."""
    while True:
        found = analysis.follow(body, [*fixed, *state, *rows])
        after = [analysis.one(pair) for pair in zip(state, found, strict=False)]
        if after == state:
            break
        state = after
    stacked = [None if y is None else analysis.stack(y) for y in found[len(state) :]]
    return [*state, *stacked]
