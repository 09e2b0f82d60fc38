"""How what is known of operands goes through branches and loops, into their bodies and out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, final

from primgraph.ir.graph import Equation, Graph
from primgraph.primitives.control import parted

T = TypeVar("T")
# What is known of each result; None where there is nothing to know.
Known: TypeAlias = "list[T | None]"


class Fault(Exception):
    """Why nothing is known any more; `cause` says it in the words of the analysis."""

    def __init__(self, cause: Any) -> None:
        super().__init__(str(cause))
        self.cause = cause


@final
@dataclass(frozen=True, slots=True)
class Analysis(Generic[T]):
    """What an analysis does with bodies.

    `follow` goes through one of them, and raises `Fault`; `row` and `stack` turn what is known of
    a stack into what is known of its rows, and back. `differs` is the cause where trips or
    branches do not agree.
    """

    follow: Callable[[Graph, Known[T]], Known[T]]
    row: Callable[[T], T]
    stack: Callable[[T], T]
    differs: Any

    def one(self, found: Sequence[T | None]) -> T | None:
        """What all of them are that are known."""
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
    """What is known of carries and stacks after any number of trips."""
    while True:
        found = analysis.follow(body, [*fixed, *state, *rows])
        after = [analysis.one(pair) for pair in zip(state, found, strict=False)]
        if after == state:
            break
        state = after
    stacked = [None if y is None else analysis.stack(y) for y in found[len(state) :]]
    return [*state, *stacked]
