"""Programs of numbers: the arithmetic of a graph of small arrays, if it is faster than arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from primgraph.codegen.ir.schedule import Schedule
from primgraph.codegen.lower.scalars.expand import Expansion, is_small
from primgraph.codegen.lower.scalars.simplify import in_order, simplify
from primgraph.codegen.ops.spelling.numbers import WORDS, Number, Numbers
from primgraph.ir.types import TensorType

# Limits of a program: equations and operators, and inputs.
LONGEST = 4000
WIDEST = 20
# Number of operators that take as long as a call of a NumPy function. Calling code on arrays takes
# as long as another function.
_CALL = 25
# The same for an element of an argument, and of a result.
_GIVEN, _RESULT = 2, 3


class NumberProgram(NamedTuple):
    """Elements of the results of graphs with the same inputs, whose elements are variables.

    `finite` must be computed, and be finite, for the results of each graph to be right, so far as
    those for the graphs before it are. `operators` is the cost.
    """

    inputs: list[list[str]]
    results: list[list[Number]]
    finite: list[list[Number]]
    operators: int

    @property
    def checked(self) -> list[Number]:
        """Return the values that must be finite for any results to be right."""
        return list(dict.fromkeys(x for row in self.finite for x in row))

    @property
    def needed(self) -> list[Number]:
        """Return all results and values that are checked."""
        return [*(x for row in self.results for x in row), *self.checked]


def number_program(schedule: Schedule, cards: Mapping[Any, Any]) -> NumberProgram | None:
    """Return the program of a graph; None if it is not one of few numbers, or faster on arrays."""
    if not 0 < len(schedule.steps) <= LONGEST or schedule.inputs > WIDEST:
        return None
    used = [schedule.types[v] for s in schedule.steps for v in (*s.inputs, *s.outputs)]
    if not is_small([*used, *schedule.types[: schedule.inputs]]):
        return None
    given = sum(t.size for t in schedule.types[: schedule.inputs])
    made = sum(schedule.types[v].size for v in schedule.outputs)
    return _program([schedule], cards, _GIVEN * given + _RESULT * made)


def number_trip(graphs: Sequence[Schedule], cards: Mapping[Any, Any]) -> NumberProgram | None:
    """Return the program of one iteration of a loop: of its test, if any, and its body."""
    if not is_small(t for graph in graphs for t in graph.types):
        return None
    return _program(graphs, cards, 0)


def _program(
    graphs: Sequence[Schedule], cards: Mapping[Any, Any], around: int
) -> NumberProgram | None:
    """Return the program if its operators, and so many `around`, take less time than calls."""
    numbers, found, finite, calls, last = Numbers(), [], [], 0, graphs[-1]
    names = [_names(i, last.types[i]) for i in range(last.inputs)]
    for graph in graphs:
        expansion = Expansion(graph, cards, numbers)
        for i in range(graph.inputs):
            expansion.set_variables(i, names[i])
        if not expansion.add_steps():
            return None
        rows = expansion.results()
        # Apart for each graph: a test may end a loop before the results of its body exist.
        simpler, checks = simplify([x for row in rows for x in row], numbers)
        at = iter(simpler)
        found += [[next(at) for _ in row] for row in rows]
        finite.append(checks)
        calls += expansion.calls
    made = NumberProgram(names, found, finite, 0)
    operators = sum(WORDS[x.word].cost for x in in_order(made.needed) if x.args)
    if operators > LONGEST or operators + around > _CALL * (calls + 1):
        return None
    return made._replace(operators=operators)


def _names(i: int, type: TensorType) -> list[str]:
    """Return names of variables for the elements of input `i`."""
    return [f"x{i}"] if type.size == 1 else [f"x{i}_{k}" for k in range(type.size)]
