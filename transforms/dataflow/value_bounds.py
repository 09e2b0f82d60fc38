"""Interval analysis at finite inputs: which derivatives stay finite, and which may not.

`x - max(x)` is at most 0 and attains 0, so that the sum of its exponentials is at least 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.ir.facts.ranges import (
    ANYTHING,
    DOMAIN,
    FINITE_SLOPE,
    POLYNOMIAL,
    RANGE,
    RANGE_AT,
    REAL,
    ZERO,
    Range,
    hull,
    join_with_zeros,
)
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.primitives.control import REGIONS, Regions
from primgraph.transforms.dataflow.engine import Analysis, Facts, Flow

# Maximum number of equations visited backwards from a value whose range is unknown.
_NEAR = 64

Arrays: TypeAlias = Callable[[Value], np.ndarray[Any, Any] | None]
Definition: TypeAlias = Callable[[Value], Equation | None]


def _no_array(value: Value) -> None:
    return None


@final
class _Around:
    """Values around an equation, for the rules of its primitive; see `ranges.Around`."""

    __slots__ = ("array", "definition", "known")

    def __init__(self, known: dict[Value, Range], definition: Definition, array: Arrays) -> None:
        self.known = known
        self.definition = definition
        self.array = array


@final
class _Ranges(Analysis[Range]):
    """Ranges of all values; for carries of loops only whether they are finite.

    `array` returns the elements of constant values of the outermost graph.
    """

    __slots__ = ("array",)

    dense = True

    def __init__(self, array: Arrays = _no_array) -> None:
        self.array = array

    def key(self) -> str:
        return "ranges"

    def transfer(self, eqn: Equation, given: Facts[Range], flow: Flow[Range]) -> list[Range]:
        return [_range(eqn, given, flow.scope)] * len(eqn.outputs)

    def join(self, value: Value, facts: Sequence[Range | None]) -> Range:
        return hull([x for x in facts if x is not None])

    def update(self, value: Value, old: Range, new: Range) -> Range:
        return new

    def stack(self, fact: Range, row: Value, stack: Value) -> Range:
        """Rows of steps that are not run are zero."""
        return hull([fact, ZERO])

    def count(self) -> Range:
        return REAL

    def widen(self, values: Sequence[Value], state: Facts[Range], step: int) -> Facts[Range]:
        return [REAL if x is not None and x.finite else ANYTHING for x in state]

    def entry_facts(self, eqn: Equation, regions: Regions, given: Facts[Range]) -> Facts[Range]:
        facts = super().entry_facts(eqn, regions, given)
        return [None if x is None else replace(x, peak=None) for x in facts]

    def scope(self, flow: Flow[Range], eqn: Equation | None, outer: Flow[Range] | None) -> _Around:
        array = self.array if eqn is None else _no_array
        return _Around(flow.facts, flow.definition, array)


_RANGES = _Ranges()


def ranges_of(
    graph: Graph, given: Mapping[Value, Range] | None = None, array: Arrays = _no_array
) -> dict[Value, Range]:
    """Return the range of each value of `graph`, for inputs that are finite, or within `given`.

    `array` returns the elements of constant values.
    """
    starts = {**dict.fromkeys(graph.inputs, REAL), **(given or {})}
    return _Ranges(array).run(graph, starts).facts


def ranges_near(values: Iterable[Value], definition: Definition) -> dict[Value, Range]:
    """Return ranges of `values` from nearby equations; decompositions are assumed to be stable."""
    known: dict[Value, Range] = {}
    made: dict[Value, Equation] = {}
    around = _Around(known, made.get, _no_array)
    for value in values:
        budget, waiting = _NEAR, [value]
        while waiting:
            last = waiting[-1]
            eqn = definition(last)
            missing = [v for v in eqn.inputs if v not in known] if eqn is not None else []
            if last in known:
                waiting.pop()
            elif eqn is None or (missing and budget <= 0):
                known[last] = REAL
            elif missing:
                waiting += missing
                budget -= 1
            else:
                made.update(dict.fromkeys(eqn.outputs, eqn))
                given = [known[v] for v in eqn.inputs]
                if eqn.op.fact(REGIONS) is not None:
                    found = _some(_RANGES.analyze_bodies(eqn, [*given], None))
                else:
                    found = [_range(eqn, given, around)] * len(eqn.outputs)
                known.update(zip(eqn.outputs, found, strict=True))
    return known


def ranges_within(eqn: Equation, given: Sequence[Range]) -> list[Range]:
    """Return ranges of body inputs that hold in every iteration, for operands `given`.

    For loop carries only finiteness is tracked, not bounds.
    """
    regions = Regions.from_equation(eqn)
    return _some(_RANGES.settle(regions, _RANGES.entry_facts(eqn, regions, [*given]), eqn)[0])


def _some(facts: Facts[Range]) -> list[Range]:
    return [x for x in facts if x is not None]


def _range(eqn: Equation, given: Sequence[Any], around: _Around) -> Range:
    """Return the range of all results of an equation without bodies, by those of operands."""
    op = eqn.op
    if not eqn.outputs[0].type.is_inexact:
        return REAL
    if _has_complex(eqn):
        return _range_of_complex(eqn, given)
    rule = op.fact(RANGE_AT)
    if rule is not None:
        return rule(eqn, around, *given)
    rule = op.fact(RANGE)
    if rule is not None:
        return rule(*given, **eqn.kwargs) if eqn.params else rule(*given)
    if isinstance(op, Primitive) and op.moves:
        moved = [x for v, x in zip(eqn.inputs, given, strict=True) if v.type.is_inexact]
        return hull(moved) if op.is_view else join_with_zeros(*moved)
    harmless = not (isinstance(op, Primitive) and op.singular)
    return REAL if harmless and all(x.finite for x in given) else ANYTHING


def _has_complex(eqn: Equation) -> bool:
    return True in [v.type.is_complex for v in (*eqn.outputs[:1], *eqn.inputs)]


def _range_of_complex(eqn: Equation, given: Sequence[Range]) -> Range:
    """Return finiteness only, as complex numbers have no bounds."""
    rule = eqn.op.fact(RANGE)
    if rule is not None and (not given or not eqn.outputs[0].type.is_complex):
        return rule(*given, **eqn.kwargs)
    finite = all(x.finite for x in given)
    return REAL if finite and _is_polynomial(eqn.op) else ANYTHING


def _is_polynomial(op: Op) -> bool:
    """Return whether results for finite complex operands, and derivatives, are finite."""
    if op.fact(POLYNOMIAL) or not isinstance(op, Primitive):
        return op.fact(POLYNOMIAL)
    return op.moves or (op.linear is not None and not op.singular)


# Conditions under which a partial derivative is finite.


def factors_of_slope(op: Primitive[Any], position: int, count: int) -> list[int]:
    """Return the operands, of `count`, whose values occur in the derivative at `position`."""
    if op.own_slope:
        return [0]
    if op.linear is None:
        return [*range(count)]
    if op.linear == "each":
        return [i for i in range(count) if i != position]
    together = op.linear_operands(count)
    return [i for i in range(count) if position not in together or i not in together]


def slope_stays_finite(eqn: Equation, position: int, ranges: dict[Value, Range]) -> bool:
    """Return whether the derivative of `eqn` at `position` is finite for finite inputs."""
    op = eqn.op
    if not isinstance(op, Primitive):
        return False
    if op.constant or op.linear is True:
        return True
    given = [ranges[v] for v in eqn.inputs]
    rule = op.fact(FINITE_SLOPE)
    is_complex = _has_complex(eqn)
    if rule is not None and not is_complex:
        return rule(eqn, position, *given)
    if not all(given[i].finite for i in factors_of_slope(op, position, len(given))):
        return False
    if is_complex:
        return _is_polynomial(op)
    domain = op.fact(DOMAIN)
    return not op.singular if domain is None else domain(*given, **eqn.kwargs)
