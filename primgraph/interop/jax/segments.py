"""Folds of arrays by any associative function: whole axes, prefixes, and segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from primgraph.interop.jax.rules import (
    concatenated,
    emit,
    reshape,
    sliced,
    spread,
)
from primgraph.operators.variable import Variable
from primgraph.primitives import logic

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
