"""Linear systems: solutions, inverses and determinants of stacks of matrices.

Derivatives are found by differentiating the defining equation, such as `a @ x = b`, and are
written in terms of the factor or solution already computed: M. B. Giles, Collected matrix
derivative results for forward and reverse mode algorithmic differentiation, 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.approximations import borrowed
from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.facts.choices import RAISES
from primgraph.ir.facts.matrices import DEFINITE, DIAGONAL, STRUCTURE, Structure
from primgraph.ir.facts.passes import SOLVES, STRUCTURED
from primgraph.ir.graph import Equation, Value
from primgraph.ir.index_maps import IndexMap, tied_map
from primgraph.ir.primitive import Linear, Rule, Types, primitive
from primgraph.ir.types import FLOAT16, INT64, TensorType
from primgraph.primitives.constants import filled_constant, iota, zeros_like
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.linear_algebra.products import declare_matrixwise, matmul, swap_last
from primgraph.primitives.linear_algebra.triangles import (
    lower_triangle,
    real_type,
    require_square,
    upper_triangle,
)
from primgraph.primitives.parts import complex_, imag, real
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import broadcast, permute, reshape, with_batch_axis

# Solutions.


def _solution_type(name: str, a: TensorType, b: TensorType) -> TensorType:
    require_square(name, a)
    if a.ndim != b.ndim or a.shape[:-1] != b.shape[:-1]:
        raise ShapeError(f"{name} takes right-hand sides with as many rows, not {a} and {b}")
    if a.dtype != b.dtype:
        raise DTypeError(f"{name} takes equal dtypes, not {a} and {b}")
    return b


def _solve_columns(function: Callable[[Value], Value], b: Value, lead: int) -> Value:
    """Apply `function` to right-hand sides with the batch axis folded into the columns."""
    last = lead + 2
    turned = permute(b, axes=(*range(1, last), 0, last))
    size, columns = b.shape[0], b.shape[-1]
    found = function(reshape(turned, shape=(*turned.shape[:-2], size * columns)))
    return permute(reshape(found, shape=turned.shape), axes=(lead + 1, *range(lead + 1), last))


def _batched_solution(
    op: Any, batched: tuple[bool, ...], a: Value, b: Value, **params: Any
) -> Value:
    """Solve a batch: a matrix without batch axis is factored once, for all right-hand sides."""
    if batched == (False, True):
        return _solve_columns(lambda x: op(a, x, **params), b, len(a.shape) - 2)
    a, b = with_batch_axis(batched, (a, b))
    result: Value = op(a, b, **params)
    return result


def _solve_flops(a: TensorType, b: TensorType) -> int:
    """Return the operation count: 2/3 n**3 for the elimination, 2 n**2 per right-hand side."""
    n = a.shape[-1]
    return 2 * a.size * n // 3 + 2 * b.size * n


@primitive(impl=lambda a, b: np.linalg.solve(a, b), linear=(1,), singular=True, flops=_solve_flops)
def solve(a: TensorType, b: TensorType) -> TensorType:
    """Return `x` with `a @ x = b`, for the matrices in the last two axes."""
    return _solution_type("solve", a, b)


@solve.jvp(0)
def _solve_jvp(x: Value, a: Value, b: Value, d: Value) -> Value:
    """Return `dx` from `d @ x + a @ dx = 0`; its transpose is the solve that `b` needs, too."""
    return solve(a, -matmul(d, x))


@solve.taylor
def _solve_taylor(jets: Any, k: int, x: Any, a: Any, b: Any) -> Value | None:
    """Return `x_k` from `a_0 @ x_k = b_k - sum(a_i @ x_{k-i})`."""
    rest = jets.difference(b[k], jets.convolution(matmul, a, x, k, k, 1))
    return None if rest is None else solve(a.first(), rest)


@solve.transpose
def _solve_transpose(ct: Value, a: Value, b: Linear) -> tuple[None, Value]:
    return None, solve(swap_last(a), ct)


@solve.batch
def _solve_batch(batched: tuple[bool, ...], a: Value, b: Value) -> Value:
    return _batched_solution(solve, batched, a, b)


def _triangle(a: Any, lower: bool, unit: bool) -> Any:
    """Return the triangle of an array that a triangular solve reads."""
    part = np.tril(a) if lower else np.triu(a)
    return np.where(np.eye(a.shape[-1], dtype=bool), 1, part) if unit else part


def _triangular_solve(a: Any, b: Any, *, lower: bool, transposed: bool, unit: bool) -> Any:
    part = _triangle(a, lower, unit).astype(a.dtype)
    return np.linalg.solve(np.swapaxes(part, -1, -2) if transposed else part, b)


def _triangular_flops(
    a: TensorType, b: TensorType, *, lower: bool, transposed: bool, unit: bool
) -> int:
    """Return the operations: a product and a difference per element and right-hand side."""
    return b.size * a.shape[-1]


@primitive(impl=_triangular_solve, linear=(1,), singular=True, flops=_triangular_flops)
def triangular_solve(
    a: TensorType, b: TensorType, *, lower: bool, transposed: bool, unit: bool
) -> TensorType:
    """Return `x` with `t @ x = b`, where `t` is the lower or upper triangle of `a`.

    `t` is transposed if `transposed`, and has a unit diagonal if `unit`. Elements of `a` outside
    the triangle are not read.
    """
    return _solution_type("triangular_solve", a, b)


def _change(d: Value, *, lower: bool, transposed: bool, unit: bool) -> Value:
    """Return the tangent of the triangle: the part of `d` that the solve reads."""
    part = lower_triangle(d, -int(unit)) if lower else upper_triangle(d, int(unit))
    return swap_last(part) if transposed else part


@triangular_solve.jvp(0)
def _triangular_solve_jvp(x: Value, a: Value, b: Value, d: Value, **params: bool) -> Value:
    """Return `dx` from `dt @ x + t @ dx = 0`."""
    return triangular_solve(a, -matmul(_change(d, **params), x), **params)


@triangular_solve.taylor
def _triangular_solve_taylor(
    jets: Any, k: int, x: Any, a: Any, b: Any, **params: bool
) -> Value | None:
    """Return `x_k` from `t_0 @ x_k = b_k - sum(t_i @ x_{k-i})`."""
    change = jets.expand_function(_change, a, **params)
    rest = jets.difference(b[k], jets.convolution(matmul, change, x, k, k, 1))
    return None if rest is None else triangular_solve(a.first(), rest, **params)


@triangular_solve.transpose
def _triangular_solve_transpose(
    ct: Value, a: Value, b: Linear, *, lower: bool, transposed: bool, unit: bool
) -> tuple[None, Value]:
    turned = not transposed
    return None, triangular_solve(a, ct, lower=lower, transposed=turned, unit=unit)


@triangular_solve.batch
def _triangular_solve_batch(batched: tuple[bool, ...], a: Value, b: Value, **params: bool) -> Value:
    return _batched_solution(triangular_solve, batched, a, b, **params)


# Sparse triangular systems.


def _sparse_triangular_flops(
    data: TensorType, b: TensorType, rows: TensorType, columns: TensorType, *, reverse: bool
) -> int:
    """Return the operations: a product and a difference per element and right-hand side."""
    return 2 * data.size * b.shape[-1]


@primitive(
    impl=borrowed.sparse_triangular_solve,
    linear=(1,),
    singular=True,
    flops=_sparse_triangular_flops,
)
def sparse_triangular_solve(
    data: TensorType, b: TensorType, rows: TensorType, columns: TensorType, *, reverse: bool
) -> TensorType:
    """Return `x` with `t @ x = b`, where the triangular `t` has `data` at `rows`, `columns`.

    Elements are met in order, or in reverse order: an element on the diagonal divides its row of
    `x`, another one subtracts a multiple of row `columns[p]` from row `rows[p]`. So the diagonal
    comes after its row and before its column; without an element there, it is 1. Stacks of matrices
    have equal rows and columns.
    """
    name = "sparse_triangular_solve"
    _require_entries(name, data, rows, columns)
    if b.ndim != data.ndim + 1 or b.shape[:-2] != data.shape[:-1]:
        raise ShapeError(f"{name} takes a matrix of right-hand sides for each, not {data} and {b}")
    if data.dtype != b.dtype or not data.is_inexact or data.dtype == FLOAT16:
        raise DTypeError(f"{name} takes equal dtypes of LAPACK, not {data} and {b}")
    return b


def _require_entries(name: str, data: TensorType, *places: TensorType) -> None:
    if data.ndim == 0 or any(i.shape != data.shape[-1:] for i in places):
        raise ShapeError(f"{name} takes a row and a column for each element, not {list(places)}")
    if any(i.dtype != INT64 for i in places):
        raise DTypeError(f"{name} takes rows and columns of int64, not {list(places)}")


def _times_entries(data: Value, x: Value, rows: Value, columns: Value) -> Value:
    """Return the product of the sparse matrix with `x`."""
    lead = len(data.shape) - 1
    read = gather(x, columns, axis=lead)
    terms = broadcast(data, shape=read.shape, new_axes=(lead + 1,)) * read
    return scatter_add(zeros_like(x), terms, rows, axis=lead)


@sparse_triangular_solve.jvp(0)
def _sparse_triangular_jvp(
    x: Value, data: Value, b: Value, rows: Value, columns: Value, d: Value, *, reverse: bool
) -> Value:
    """Return `dx` from `dt @ x + t @ dx = 0`."""
    change = -_times_entries(d, x, rows, columns)
    return sparse_triangular_solve(data, change, rows, columns, reverse=reverse)


@sparse_triangular_solve.taylor
def _sparse_triangular_taylor(
    jets: Any, k: int, x: Any, data: Any, b: Any, rows: Any, columns: Any, *, reverse: bool
) -> Value | None:
    """Return `x_k` from `t_0 @ x_k = b_k - sum(t_i @ x_{k-i})`."""
    places = rows.first(), columns.first()
    pairs = [(data[i], x[k - i]) for i in range(1, k + 1)]
    known = [(a, y) for a, y in pairs if a is not None and y is not None]
    rest = jets.difference(b[k], jets.total(_times_entries(a, y, *places) for a, y in known))
    if rest is None:
        return None
    return sparse_triangular_solve(data.first(), rest, *places, reverse=reverse)


@sparse_triangular_solve.transpose
def _sparse_triangular_transpose(
    ct: Value, data: Value, b: Linear, rows: Value, columns: Value, *, reverse: bool
) -> tuple[None, Value, None, None]:
    """Solve with the transposed matrix, by the elements in the opposite order."""
    found = sparse_triangular_solve(data, ct, columns, rows, reverse=not reverse)
    return None, found, None, None


@sparse_triangular_solve.batch
def _sparse_triangular_batch(
    batched: tuple[bool, ...], data: Value, b: Value, rows: Value, columns: Value, *, reverse: bool
) -> Value:
    """Solve a batch; matrices with structures of their own are blocks on the diagonal of one."""
    if batched == (False, True, False, False):
        return _solve_columns(
            lambda x: sparse_triangular_solve(data, x, rows, columns, reverse=reverse),
            b,
            len(data.shape) - 1,
        )
    if not any(batched[2:]):
        data, b = with_batch_axis(batched[:2], (data, b))
        return sparse_triangular_solve(data, b, rows, columns, reverse=reverse)
    data, b, rows, columns = with_batch_axis(batched, (data, b, rows, columns))
    count, n, lead = b.shape[0], b.shape[-2], tuple(range(1, len(data.shape) - 1))
    first = iota(shape=rows.shape, axis=0, dtype=INT64)
    first = first * filled_constant(n, first.type)
    places = [reshape(i + first, shape=(rows.type.size,)) for i in (rows, columns)]
    data = permute(data, axes=(*lead, 0, len(lead) + 1))
    turned = permute(b, axes=(*lead, 0, len(lead) + 1, len(lead) + 2))
    whole = [
        reshape(data, shape=(*data.shape[:-2], rows.type.size)),
        reshape(turned, shape=(*turned.shape[:-3], count * n, b.shape[-1])),
    ]
    found = reshape(sparse_triangular_solve(*whole, *places, reverse=reverse), shape=turned.shape)
    return permute(found, axes=(len(lead), *range(len(lead)), len(lead) + 1, len(lead) + 2))


# Inverses.


@primitive(impl=lambda a: np.linalg.inv(a), singular=True, flops=lambda a: 2 * a.size * a.shape[-1])
def inv(a: TensorType) -> TensorType:
    """Return the inverse of each matrix in the last two axes."""
    require_square("inv", a)
    return a


@inv.declares(STRUCTURE)
def _inv_structure(eqn: Equation, definition: Rule, a: Structure) -> Structure:
    return a & (DIAGONAL | DEFINITE)


for _op in (solve, inv):
    _op.declare(SOLVES, True)
for _op in (solve, triangular_solve, inv):
    _op.declare(RAISES, True)
    _op.declare(STRUCTURED, True)
sparse_triangular_solve.declare(RAISES, True)


@inv.jvp()
def _inv_jvp(z: Value, a: Value, d: Value) -> Value:
    """Return `dz` from `d @ z + a @ dz = 0`."""
    return -matmul(z, matmul(d, z))


@inv.taylor
def _inv_taylor(jets: Any, k: int, z: Any, a: Any) -> Value | None:
    """Return `z_k` from `a_0 @ z_k = -sum(a_i @ z_{k-i})`."""
    rest = jets.convolution(matmul, a, z, k, k, 1)
    return None if rest is None else -matmul(z.first(), rest)


@inv.batch
def _inv_batch(batched: tuple[bool, ...], a: Value) -> Value:
    return inv(a)


# Determinants.


def _elimination_flops(a: TensorType) -> int:
    return 2 * a.size * a.shape[-1] // 3


def _broadcast_per_matrix(x: Value, like: Value) -> Value:
    """Return one number per matrix, broadcast over its elements."""
    last = len(like.shape) - 2
    return broadcast(x, shape=like.shape, new_axes=(last, last + 1))


def _trace_of_product(x: Value, y: Value) -> Value:
    """Return the sum of elementwise products for each matrix."""
    last = len(x.shape) - 2
    return reduce_sum(x * y, axes=(last, last + 1))


@primitive(impl=lambda a: np.linalg.slogdet(a), multiple=True, singular=True,
           flops=_elimination_flops)  # fmt: skip
def slogdet(a: TensorType) -> tuple[TensorType, TensorType]:
    """Return the sign and the logarithm of the absolute value of the determinant of each matrix.

    The sign of a complex determinant is a number of modulus 1.
    """
    require_square("slogdet", a)
    result = a.with_shape(a.shape[:-2])
    return result, real_type(result)


slogdet.declare(STRUCTURED, True)


@slogdet.jvp()
def _slogdet_jvp(z: tuple[Value, Value], a: Value, d: Value) -> tuple[Value | None, Value]:
    """Return the tangents by Jacobi's formula, the trace of `inv(a) @ d`."""
    change = _trace_of_product(swap_last(inv(a)), d)
    if not a.type.is_complex:
        return None, change
    turn = imag(change)
    return z[0] * complex_(zeros_like(turn), turn), real(change)


@slogdet.batch
def _slogdet_batch(batched: tuple[bool, ...], a: Value) -> tuple[Value, ...]:
    return slogdet(a)


@primitive(impl=lambda a: np.linalg.det(a), flops=_elimination_flops)
def det(a: TensorType) -> TensorType:
    """Return the determinant of each matrix."""
    require_square("det", a)
    return a.with_shape(a.shape[:-2])


det.declare(STRUCTURED, True)


@det.jvp()
def _det_jvp(z: Value, a: Value, d: Value) -> Value:
    """Return the tangent by Jacobi's formula with cofactors, also for singular matrices."""
    return _trace_of_product(cofactors(a), d)


@det.batch
def _det_batch(batched: tuple[bool, ...], a: Value) -> Value:
    return det(a)


def _cofactors(a: Any) -> Any:
    """Return `det(a) inv(a).T` from singular values, by the products of all values but one."""
    u, s, vt = np.linalg.svd(a)
    n = s.shape[-1]
    others = [np.prod(np.delete(s, i, -1), -1) for i in range(n)]
    turn = np.linalg.det(u) * np.linalg.det(vt)
    sign = turn / np.abs(turn)
    rest = np.stack(others, -1) if n else s
    return (np.conj((u * rest[..., None, :]) @ vt) * sign[..., None, None]).astype(a.dtype)


@primitive(impl=_cofactors, singular=True, flops=lambda a: 2 * a.size * a.shape[-1])
def cofactors(a: TensorType) -> TensorType:
    """Return the derivative of the determinant, `det(a) * inv(a).T` for regular matrices."""
    require_square("cofactors", a)
    return a


@cofactors.jvp()
def _cofactors_jvp(z: Value, a: Value, d: Value) -> Value:
    """Return the tangent of `det(a) inv(a).T`; it uses the inverse, so matrices must be regular."""
    turned = swap_last(inv(a))
    trace = _trace_of_product(turned, d)
    return z * _broadcast_per_matrix(trace, z) - matmul(turned, matmul(swap_last(d), z))


@cofactors.batch
def _cofactors_batch(batched: tuple[bool, ...], a: Value) -> Value:
    return cofactors(a)


# Sparsity: which elements of results depend on which elements of operands.

declare_matrixwise(inv, slogdet, det, cofactors)


def _columns_apart(k: int, i: int, operands: Types, results: Types, **params: bool) -> IndexMap:
    """Return the result axes: each column of the solution belongs to one right-hand side."""
    shape, result = operands[i].shape, results[k].shape
    last = len(shape) - 1
    return tied_map(shape, result, [*range(last - 1), None, last if i else None], exact=False)


for _op in (solve, triangular_solve):
    _op.index_map(_columns_apart)


@sparse_triangular_solve.index_map
def _sparse_map(k: int, i: int, operands: Types, results: Types, *, reverse: bool) -> IndexMap:
    shape, result = operands[i].shape, results[k].shape
    lead = len(result) - 2
    axes = [None] if i > 1 else [*range(lead), None, *[lead + 1] * i]
    return tied_map(shape, result, axes, exact=False)
