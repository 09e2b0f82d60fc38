"""Folds of arrays by associative functions, along axes and in segments, and by others in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from primgraph.control.loops import while_loop
from primgraph.interop.jax.rules import (
    concatenated,
    constant,
    convert,
    emit,
    full_like,
    reshape,
    sliced,
    spread,
)
from primgraph.interop.jax.shapes import counted
from primgraph.ir.types import INT64
from primgraph.operators.numpy_arguments import call_named
from primgraph.operators.variable import Variable
from primgraph.primitives import elementwise as e
from primgraph.primitives import indexing, logic

Combine: TypeAlias = "Callable[[Any, Any], Variable]"


def fold_axis(
    combine: Callable[[Sequence[Variable], Sequence[Variable]], Sequence[Variable]],
    xs: Sequence[Variable],
    axis: int,
) -> list[Variable]:
    """Fold arrays along an axis by a function of lists of arrays, in pairs of neighbours.

    An odd element is combined at the end.
    """
    parts = list(xs)
    rest: Sequence[Variable] | None = None
    while (size := parts[0].shape[axis]) > 1:
        if size % 2:
            last = [sliced(x, axis, size - 1, 1) for x in parts]
            rest = last if rest is None else combine(last, rest)
        half = size // 2
        first = [sliced(x, axis, 0, half, 2) for x in parts]
        parts = list(combine(first, [sliced(x, axis, 1, half, 2) for x in parts]))
    if rest is not None:
        parts = list(combine(parts, rest))
    return [reshape(x, (*x.shape[:axis], *x.shape[axis + 1 :])) for x in parts]


def fold_segments(combine: Combine, x: Variable, keys: Variable) -> Variable:
    """Return the fold of all rows from the first one of equal `keys` to each row.

    Keys are sorted. The number of steps is the logarithm of the number of rows.
    """
    number, found, step = x.shape[0], x, 1
    while step < number:
        rest = number - step
        same = emit(logic.equal, sliced(keys, 0, step, rest), sliced(keys, 0, 0, rest))
        later, earlier = sliced(found, 0, step, rest), sliced(found, 0, 0, rest)
        joined = emit(logic.select, spread(same, later.shape, (0,)), combine(earlier, later), later)
        found = concatenated([sliced(found, 0, 0, step), joined], 0)
        step *= 2
    return found


def apply_in_order(combine: Combine, x: Variable, y: Variable, at_row: Variable) -> Variable:
    """Combine rows of `x` with the rows of `y` for them, one after the other.

    `at_row` are the numbers of these rows of `x`; those beyond the last one are dropped.
    """
    order = call_named("argsort", at_row, kind="stable")
    ordered = emit(indexing.gather, at_row, order, axis=0)
    rows = counted(x.shape[:1], 0)
    first, last = (
        convert(call_named("searchsorted", ordered, rows, side=side), INT64)
        for side in ("left", "right")
    )
    many = call_named("max", emit(e.sub, last, first))

    def has_more(state: Any) -> Variable:
        return emit(logic.less, state[0], many)

    def step(state: Any) -> Any:
        k, found = state
        place = emit(e.add, first, spread(k, first.shape, ()))
        is_there = emit(logic.less, place, last)
        place = emit(e.minimum, place, full_like(place, y.shape[0] - 1))
        chosen = emit(indexing.gather, order, place, axis=0)
        new = combine(found, emit(indexing.gather, y, chosen, axis=0))
        mask = spread(is_there, found.shape, (0,))
        return emit(e.add, k, full_like(k, 1)), emit(logic.select, mask, new, found)

    found: Variable = while_loop(has_more, step, (constant(0, INT64), x))[1]
    return found
