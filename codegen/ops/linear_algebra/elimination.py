"""Factors, solutions and inverses of small matrices, element by element.

Matrices, pivots and solutions must be finite: for singular and indefinite matrices, and for special
values, Python raises or the check fails, and NumPy computes what it does or raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.spelling.numbers import Number, Numbers
from primgraph.codegen.ops.spelling.scalar import Elements, Scalar, total
from primgraph.ir.types import FLOAT64

# Largest number of rows.
_MOST = 4


def of_matrices(function: Callable[..., Elements]) -> Scalar:
    """Apply `function(new, *matrices, **params)` to the matrices in the last two axes."""

    def elements(
        step: Step, operands: Sequence[Elements], in_order: bool, new: Numbers
    ) -> list[Number] | None:
        a = operands[0]
        if step.operands[0].dtype != FLOAT64 or a.shape[-1] > _MOST:
            return None
        stacks = [x.reshape(-1, *x.shape[-2:]) for x in operands]
        found = [function(new, *each, **step.params) for each in zip(*stacks, strict=True)]
        return [x for each in found for x in each.ravel().tolist()]

    return Scalar(elements)


def solve(new: Numbers, a: Elements, b: Elements) -> Elements:
    """Solve by Gaussian elimination with partial pivoting."""
    n, rows = len(a), np.concatenate([a, b], 1)
    new.required.append(total(new, a.ravel().tolist()))
    for k in range(n):
        for i in range(k + 1, n):
            swaps = new(">", new("fabs", rows[i, k]), new("fabs", rows[k, k]))
            for j in range(k, rows.shape[1]):
                x, y = rows[k, j], rows[i, j]
                rows[k, j], rows[i, j] = new("if", swaps, y, x), new("if", swaps, x, y)
        for i in range(k + 1, n):
            factor = new("/", rows[i, k], rows[k, k])
            for j in range(k + 1, rows.shape[1]):
                rows[i, j] = _less(new, rows[i, j], factor, rows[k, j])
    return _substitute(new, rows[:, :n], rows[:, n:], False, range(n - 1, -1, -1))


def inverse(new: Numbers, a: Elements) -> Elements:
    """Solve for the unit vectors."""
    units = np.empty(a.shape, object)
    units[...] = new.constant(0.0)
    np.fill_diagonal(units, new.constant(1.0))
    return solve(new, a, units)


def triangular_solve(
    new: Numbers, a: Elements, b: Elements, *, lower: bool, transposed: bool, unit: bool
) -> Elements:
    """Solve by substitution; elements outside of the triangle are not read."""
    n, t = len(a), a.T if transposed else a
    down = lower != transposed
    return _substitute(new, t, b, unit, range(n) if down else range(n - 1, -1, -1))


def cholesky(new: Numbers, a: Elements) -> Elements:
    """Return the lower factor, row by row; a pivot that is not positive raises."""
    n, factor = len(a), np.empty(a.shape, object)
    factor[...] = new.constant(0.0)
    for i in range(n):
        for j in range(i + 1):
            rest = a[i, j]
            for k in range(j):
                rest = _less(new, rest, factor[i, k], factor[j, k])
            if j < i:
                factor[i, j] = new("/", rest, factor[j, j])
        positive = new(">", rest, new.constant(0.0))
        factor[i, i] = new("sqrt", new("if", positive, rest, new.constant(-1.0)))
        new.required.append(factor[i, i])
    return factor


def _substitute(
    new: Numbers, t: Elements, b: Elements, unit: bool, order: Sequence[int]
) -> Elements:
    """Solve with a triangle, whose rows are solved in that order."""
    x: Elements = b.copy()
    for place, i in enumerate(order):
        for column in x.T:
            for j in order[:place]:
                column[i] = _less(new, column[i], t[i, j], column[j])
            if not unit:
                column[i] = new("/", column[i], t[i, i])
        new.required += [t[i, i], *x[i]]
    return x


def _less(new: Numbers, x: Number, y: Number, z: Number) -> Number:
    """Return `x - y * z`."""
    return new("-", x, new("*", y, z))
