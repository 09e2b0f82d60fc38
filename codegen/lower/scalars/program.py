"""Programs of numbers: the arithmetic of a graph of small arrays, if it is faster than arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, final

import numpy as np

from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.codegen.lower.scalars.simplify import in_order, simplify
from primgraph.codegen.ops.spelling.numbers import CONSTANT, WORDS, Number, Numbers
from primgraph.ir.types import BOOL, FLOAT64, INT64, DType, TensorType
from primgraph.ir.views import Slice
from primgraph.primitives.linear_algebra.products import CONTRACTS
from primgraph.primitives.reductions import REDUCES

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
    those for the graphs before it are, and the integers `ranged` must be in the range of int64.
    `operators` is the cost.
    """

    inputs: list[list[str]]
    results: list[list[Number]]
    finite: list[list[Number]]
    ranged: list[list[Number]]
    operators: int

    @property
    def checked(self) -> list[Number]:
        """Return the values that must be finite for any results to be right."""
        return list(dict.fromkeys(x for row in self.finite for x in row))

    @property
    def needed(self) -> list[Number]:
        """Return all results and values that are checked."""
        ranged = (x for row in self.ranged for x in row)
        return [*(x for row in self.results for x in row), *self.checked, *ranged]


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
    """Return the program of one iteration of a loop: of its test, if any, and its body.

    Other than whole graphs, loops may have integers.
    """
    if not is_small((t for graph in graphs for t in graph.types), (FLOAT64, BOOL, INT64)):
        return None
    return _program(graphs, cards, 0)


def _program(
    graphs: Sequence[Schedule], cards: Mapping[Any, Any], around: int
) -> NumberProgram | None:
    """Return the program if its operators, and so many `around`, take less time than calls."""
    numbers, found, finite, ranged, calls = Numbers(), [], [], list[list[Number]](), 0
    last = graphs[-1]
    names = [_names(i, last.types[i]) for i in range(last.inputs)]
    for graph in graphs:
        expansion = Expansion(graph, cards, numbers)
        for i in range(graph.inputs):
            expansion.set_variables(i, names[i])
        if not expansion.add_steps():
            return None
        rows = expansion.results()
        # Apart for each graph: a test may end a loop before the results of its body exist.
        simpler, checks = simplify([*(x for row in rows for x in row), *expansion.ranged], numbers)
        at = iter(simpler)
        found += [[next(at) for _ in row] for row in rows]
        finite.append(checks)
        ranged.append([x for x in dict.fromkeys(at) if _may_leave_range(x)])
        calls += expansion.calls
    made = NumberProgram(names, found, finite, ranged, 0)
    operators = sum(WORDS[x.word].cost for x in in_order(made.needed) if x.args)
    if operators > LONGEST or operators + around > _CALL * (calls + 1):
        return None
    return made._replace(operators=operators)


def _may_leave_range(x: Number) -> bool:
    """Return whether an integer may be out of the range of int64: variables are not."""
    return not -(2**63) <= x.value < 2**63 if x.word == CONSTANT else bool(x.args)


def _names(i: int, type: TensorType) -> list[str]:
    """Return names of variables for the elements of input `i`."""
    return [f"x{i}"] if type.size == 1 else [f"x{i}_{k}" for k in range(type.size)]


# Expressions of the elements of a value, in an array of its shape.
Elements: TypeAlias = "np.ndarray[Any, Any]"

# Largest size of a value.
MOST_ELEMENTS = 100
# The time of a reduction, a matrix product, a function of LAPACK, and a function of several calls,
# in calls of elementwise functions.
_REDUCTION, _PRODUCT, _LAPACK, _HELPER = 3, 2, 14, 6


class Form(Protocol):
    """How a card computes elements: see `Scalar` of `codegen/ops/spelling/scalar.py`."""

    @property
    def elements(self) -> Any: ...

    @property
    def integers(self) -> bool: ...


def is_small(types: Iterable[TensorType], dtypes: Sequence[DType] = (FLOAT64, BOOL)) -> bool:
    """Return whether all types are of few elements of these dtypes, at least one."""
    return all(
        t.dtype in dtypes and not t.is_larger(MOST_ELEMENTS) and bool(t.size) for t in set(types)
    )


@final
class Expansion:
    """The elements of the values of a schedule, as expressions that `numbers` creates.

    `calls` counts the array operations that they replace. Integers in `ranged` must be in the range
    of int64 for the results to be NumPy's: results, and operands of steps with other results.
    Wrapped sums and products are those of wrapped operands.
    """

    __slots__ = ("_reversed", "calls", "cards", "elements", "numbers", "ranged", "schedule")

    def __init__(self, schedule: Schedule, cards: Mapping[Any, Any], numbers: Numbers) -> None:
        self.schedule, self.cards, self.numbers = schedule, cards, numbers
        self.elements: dict[int, Elements] = {}
        self.calls = 0
        self.ranged: list[Number] = []
        # Values whose elements may be in reverse memory order.
        self._reversed: set[int] = set()

    def set_variables(self, value: int, names: Sequence[str]) -> None:
        """Let variables of these names be the elements of a value."""
        self.numbers.step, self.numbers.unsigned = -1, False
        variables = [self.numbers.variable(name) for name in names]
        self.elements[value] = as_elements(variables, self.schedule.types[value])

    def add_steps(self) -> bool:
        """Compute the elements of all steps; return whether that is possible."""
        return all(self._add(i, step) for i, step in enumerate(self.schedule.steps))

    def results(self) -> list[list[Number]]:
        """Return the elements of each output, in order."""
        rows = [self.elements[v].ravel().tolist() for v in self.schedule.outputs]
        for v, row in zip(self.schedule.outputs, rows, strict=True):
            self.ranged += row if self.schedule.types[v].dtype == INT64 else ()
        return rows

    def _add(self, i: int, step: Step) -> bool:
        card = self.cards.get(step.op)
        form = None if card is None else card.scalar
        if form is None:
            return False
        operands = [self.elements[v] for v in step.inputs]
        if any(t.dtype == INT64 for t in (*step.operands, *step.results)):
            if not form.integers:
                return False
            if step.results[0].dtype != INT64:
                pairs = zip(operands, step.operands, strict=True)
                self.ranged += [x for e, t in pairs if t.dtype == INT64 for x in e.ravel().tolist()]
        self.calls += _calls(step, card)
        if form.elements is None:
            self.elements.update(zip(step.outputs, _move_elements(step, operands), strict=True))
            if _turns(step) or not self._reversed.isdisjoint(step.inputs):
                self._reversed.update(step.outputs)
            return True
        in_order = not step.inputs or step.inputs[0] not in self._reversed
        self.numbers.step, self.numbers.unsigned = i, step.is_derived
        found = form.elements(step, operands, in_order, self.numbers)
        if found is None:
            return False
        self.elements[step.outputs[0]] = as_elements(found, step.results[0])
        return True


def _calls(step: Step, card: Any) -> int:
    """Return the number of calls of elementwise functions that take as long as the step."""
    if step.op.literal or step.op.is_view:
        return 0
    if step.op.fact(REDUCES):
        return _REDUCTION
    if step.op.fact(CONTRACTS):
        return _PRODUCT
    return _LAPACK if card.fallible else _HELPER if card.helper else 1


def _move_elements(step: Step, operands: Sequence[Elements]) -> list[Elements]:
    """Return the elements of a step that moves elements, by evaluating it on indices."""
    numbers = np.concatenate([x.ravel() for x in operands])
    ends = np.cumsum([x.size for x in operands])
    places = [
        np.arange(end - x.size, end).reshape(x.shape) for x, end in zip(operands, ends, strict=True)
    ]
    taken = step.op.impl(*places, **step.params)
    taken = taken if step.op.multiple else [taken]
    pairs = zip(taken, step.results, strict=True)
    return [as_elements(numbers[np.ravel(found)].tolist(), type) for found, type in pairs]


def as_elements(numbers: Sequence[Number], type: TensorType) -> Elements:
    """Return expressions in an array of the shape of `type`."""
    made = np.empty(type.size, object)
    made[:] = numbers
    return made.reshape(type.shape)


def _turns(step: Step) -> bool:
    """Return whether a result has its elements in the reverse order of the operand's."""
    ranges = [r for how in step.form.seen if isinstance(how, Slice) for r in how.ranges]
    return any(r[2] < 0 for r in ranges) or any(n < 0 for n in step.params.get("steps", ()))
