"""Matrices and arrays: explicit ones, symbols, and the operations of matrix expressions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextvars import ContextVar
from functools import reduce
from typing import Any

from primgraph import linalg
from primgraph import operators as pg
from primgraph.interop.sympy.rules import Expr, Operand, Rule, is_number
from primgraph.ir.types import FLOAT64, DType

# The dtype of arrays of constants.
constants: ContextVar[DType] = ContextVar("constants", default=FLOAT64)


def is_explicit(expr: object) -> bool:
    """Return whether an expression is a matrix or array with entries."""
    names = {parent.__name__ for parent in type(expr).__mro__}
    return not names.isdisjoint({"MatrixBase", "NDimArray"})


def entries(expr: Expr) -> Sequence[Expr]:
    """Return the entries of an explicit matrix or array, row by row."""
    return tuple(expr.flat()) if hasattr(expr, "flat") else tuple(_flat(expr.tolist()))


def _flat(nested: Any) -> Sequence[Expr]:
    if not isinstance(nested, list):
        return [nested]
    return [entry for row in nested for entry in _flat(row)]


def as_array(value: Operand) -> Operand:
    """Return an operand as an array; numbers have the dtype of constants."""
    if not is_number(value):
        return value
    dtype = None if isinstance(value, bool | complex) else constants.get()
    return pg.asarray(value, dtype=dtype)


def _explicit(expr: Expr, values: Sequence[Operand]) -> Operand:
    """Return the array of the values of the entries."""
    shape = tuple(map(int, expr.shape))
    if not values:
        return pg.zeros(shape, constants.get())
    if all(is_number(value) for value in values):
        dtype = None if any(isinstance(v, complex) for v in values) else constants.get()
        return pg.reshape(pg.asarray(list(values), dtype=dtype), shape)
    return pg.reshape(pg.stack([as_array(value) for value in values]), shape)


def _is_scalar(value: Operand) -> bool:
    return is_number(value) or not value.shape


def _times(x: Operand, y: Operand) -> Operand:
    return x * y if _is_scalar(x) or _is_scalar(y) else pg.matmul(x, y)


def _inverses_removed(expr: Expr) -> Sequence[Expr]:
    """Return the factors of a product of matrices: of an inverse, its matrix."""
    return [_inverted(factor) or factor for factor in expr.args]


def _inverted(factor: Expr) -> Expr | None:
    return factor.args[0] if type(factor).__name__ == "Inverse" else None


def _matrix_product(expr: Expr, values: Sequence[Operand]) -> Operand:
    """Return a product of matrices from right to left; an inverse solves for what follows it."""
    total = None
    for factor, value in reversed(list(zip(expr.args, values, strict=True))):
        if _inverted(factor) is None:
            total = value if total is None else _times(value, total)
        elif total is None or _is_scalar(total):
            inverse = linalg.inv(value)
            total = inverse if total is None else inverse * total
        else:
            total = linalg.solve(value, total)
    return total


def _slice(expr: Expr, values: Sequence[Operand]) -> Operand:
    rows, columns = (slice(*map(int, part)) for part in (expr.rowslice, expr.colslice))
    return values[0][rows, columns]


def element(array: Operand, indices: Sequence[Operand]) -> Operand:
    """Return an element of an array, at numbers or computed indices."""
    return array[tuple([int(i) if is_number(i) else as_index(i) for i in indices])]


def as_index(value: Operand) -> Operand:
    """Return a size or an array as an index."""
    return pg.astype(value, "int64") if hasattr(value, "dtype") else value


def _matrix_power(expr: Expr, values: Sequence[Operand]) -> Operand:
    return linalg.matrix_power(values[0], int(expr.args[1]))


def _blocks(expr: Expr, values: Sequence[Operand]) -> Operand:
    rows, columns = expr.blockshape
    return pg.block([list(values[i * columns : (i + 1) * columns]) for i in range(rows)])


def matrix_rule(compute: Any) -> Rule:
    """Return the rule of a function of matrices."""
    return Rule(lambda expr, values: compute(*values), folds=False)


MATRICES: dict[str, Rule] = {
    "MatrixBase": Rule(_explicit, operands=entries, folds=False),
    "NDimArray": Rule(_explicit, operands=entries, folds=False),
    "MatAdd": Rule(lambda expr, values: reduce(operator.add, values), folds=False),
    "MatMul": Rule(_matrix_product, operands=_inverses_removed, folds=False),
    "HadamardProduct": Rule(lambda expr, values: reduce(operator.mul, values), folds=False),
    "HadamardPower": matrix_rule(lambda x, n: x**n),
    "MatPow": Rule(
        _matrix_power,
        operands=lambda expr: expr.args[:1],
        supports=lambda expr: bool(expr.args[1].is_Integer),
        folds=False,
    ),
    "Inverse": matrix_rule(lambda x, exponent: linalg.inv(x)),
    "Transpose": matrix_rule(pg.matrix_transpose),
    "Adjoint": matrix_rule(lambda x: pg.conj(pg.matrix_transpose(x))),
    "Determinant": matrix_rule(linalg.det),
    "Trace": matrix_rule(linalg.trace),
    "DotProduct": matrix_rule(lambda x, y: pg.sum(pg.ravel(x) * pg.ravel(y))),
    "KroneckerProduct": Rule(lambda expr, values: reduce(pg.kron, values), folds=False),
    "DiagMatrix": matrix_rule(lambda x: pg.diag(pg.ravel(x))),
    "DiagonalMatrix": matrix_rule(lambda x: x * pg.eye(x.shape[0], dtype=x.dtype)),
    "Identity": matrix_rule(lambda n: pg.eye(n, dtype=constants.get())),
    "ZeroMatrix": matrix_rule(lambda n, m: pg.zeros((n, m), constants.get())),
    "OneMatrix": matrix_rule(lambda n, m: pg.ones((n, m), constants.get())),
    "BlockMatrix": Rule(_blocks, operands=lambda expr: entries(expr.blocks), folds=False),
    "MatrixElement": Rule(lambda expr, values: element(values[0], values[1:]), folds=False),
    "MatrixSlice": Rule(_slice, operands=lambda expr: expr.args[:1], folds=False),
    "Indexed": Rule(lambda expr, values: element(values[0], values[1:]), folds=False),
    "ArrayElement": Rule(
        lambda expr, values: element(values[0], values[1:]),
        operands=lambda expr: [expr.name, *expr.indices],
        folds=False,
    ),
}
