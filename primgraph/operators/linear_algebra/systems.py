"""Linear systems as in numpy.linalg: solutions, inverses, Cholesky factors, determinants.

All support stacks of matrices, of float64, float32, complex128 and complex64; integers count as
float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from primgraph.errors import ArgumentError, DTypeError, NotSquareError, ShapeError
from primgraph.ir.types import COMPLEX128, FLOAT16, FLOAT64, DType, Shape, broadcast_shapes
from primgraph.operators.call import namespace_operator
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import broadcast_to_shape, lift, result_dtype, type_of
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.shape.shaping import permute_axes, reshape_to
from primgraph.operators.variable import Variable, emit, emit_all
from primgraph.primitives.linear_algebra import cholesky as factors
from primgraph.primitives.linear_algebra import systems
from primgraph.primitives.parts import conj


def lapack_dtype(name: str, *operands: ArrayLike) -> DType:
    """Return the dtype in which NumPy computes a function of numpy.linalg on the operands."""
    dtypes = [type_of(x).dtype for x in operands]
    if FLOAT16 in dtypes:
        raise DTypeError(
            f"{name} takes no float16, as numpy.linalg does not", hint="convert it with astype"
        )
    if any(d.kind not in "fc" for d in dtypes):
        return COMPLEX128 if any(d.kind == "c" for d in dtypes) else FLOAT64
    return result_dtype(*operands)


def matrices(name: str, a: ArrayLike) -> Variable:
    """Return a stack of matrices in LAPACK's dtype."""
    value = lift(a, lapack_dtype(name, a))
    if value.ndim < 2:
        raise ShapeError(f"{name} takes matrices, with at least two axes, not {value.type}")
    return value


def square_matrices(name: str, a: ArrayLike) -> Variable:
    """Return a stack of square matrices in LAPACK's dtype."""
    value = matrices(name, a)
    if value.shape[-1] != value.shape[-2]:
        raise NotSquareError(f"{name} takes square matrices, not {value.type}")
    return value


def transpose_matrices(x: Variable) -> Variable:
    """Transpose each matrix."""
    lead = range(x.ndim - 2)
    return permute_axes(x, (*lead, x.ndim - 1, x.ndim - 2))


def conjugate_complex(x: Variable) -> Variable:
    """Conjugate complex numbers; return real ones as they are."""
    return emit(conj, x) if x.type.is_complex else x


def adjoint(x: Variable) -> Variable:
    """Transpose each matrix, and conjugate it if it is complex."""
    return conjugate_complex(transpose_matrices(x))


def symmetric(a: Variable) -> Variable:
    """Return `a` for a function that reads one triangle of it; its gradient is symmetric."""
    return emit(factors.as_symmetric, stop_gradient(a), a)


def _stacks(name: str, a: Variable, b: Variable) -> Shape:
    """Return the leading axes to which those of two stacks broadcast."""
    try:
        return broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ShapeError as error:
        found = f"{name} of {a.type} and {b.type}"
        raise ShapeError(f"{found}: the stacks differ, {error.message}") from None


_Solver: TypeAlias = Callable[[Variable, Variable], Variable]


def _solve(op: _Solver, name: str, a: Variable, b: Variable) -> Variable:
    """Solve with `op` for vectors or stacks of matrices `b`, with the shapes of
    `numpy.linalg.solve`.

    A single matrix is factored once: all right-hand sides are columns of one product.
    """
    if b.ndim == 1:
        return reshape_to(
            _solve(op, name, a, reshape_to(b, (*b.shape, 1))), (*a.shape[:-2], *b.shape)
        )
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"{name} of {a.type} and {b.type}: {a.shape[-1]} unknowns, {b.shape[-2]} rows"
        )
    if a.ndim == 2:
        last = b.ndim - 1
        columns = permute_axes(b, (last - 1, *range(last - 1), last))
        flat = reshape_to(columns, (b.shape[-2], math.prod(columns.shape[1:])))
        parted = reshape_to(op(a, flat), columns.shape)
        return permute_axes(parted, (*range(1, last), 0, last))
    lead = _stacks(name, a, b)
    left = broadcast_to_shape(a, (*lead, *a.shape[-2:]))
    return op(left, broadcast_to_shape(b, (*lead, *b.shape[-2:])))


@namespace_operator
def solve(a: ArrayLike, b: ArrayLike) -> Variable:
    """Return `x` with `a @ x = b`, for each matrix of a stack; `b` has one axis, or is a stack.

    A vector `b` of shape (n,) gives solutions of shape (..., n), any other is a stack of matrices
    (..., n, k); stacks are broadcast. Derivatives are those of `inv(a) @ b`, by solving again.
    Raises `ShapeError` for shapes that do not match; a singular matrix is a `LinAlgError` of the
    run.

    >>> pg.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0])
    tensor([1., 1.])
    """
    dtype = lapack_dtype("solve", a, b)
    matrix, right = square_matrices("solve", lift(a, dtype)), lift(b, dtype)
    if right.ndim == 0:
        raise ShapeError("solve takes right-hand sides with at least one axis")
    return _solve(lambda x, y: emit(systems.solve, x, y), "solve", matrix, right)


# Whether a matrix is transposed, and whether conjugated.
_TRANSPOSED = {
    0: (False, False),
    1: (True, False),
    2: (True, True),
    "N": (False, False),
    "T": (True, False),
    "C": (True, True),
}


@namespace_operator
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
) -> Variable:
    """Return `x` with `t @ x = b` for the upper triangle `t` of `a`, the lower one if `lower`.

    As in scipy.linalg, `trans` 1 or "T" solves with the transpose, 2 or "C" with the adjoint, and
    with `unit_diagonal` the diagonal counts as ones. Elements outside of the triangle are not read,
    and have derivative 0. Shapes are those of `solve`.

    >>> pg.linalg.solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0], lower=True)
    tensor([1., 2.])
    """
    if trans not in _TRANSPOSED:
        raise ArgumentError(
            f"solve_triangular takes trans 0, 1, 2, 'N', 'T' or 'C', not {trans!r:.40}"
        )
    transposed, conjugate = _TRANSPOSED[trans]
    dtype = lapack_dtype("solve_triangular", a, b)
    matrix, right = square_matrices("solve_triangular", lift(a, dtype)), lift(b, dtype)
    if right.ndim == 0:
        raise ShapeError("solve_triangular takes right-hand sides with at least one axis")
    params = {
        "lower": bool(lower),
        "transposed": transposed,
        "unit": bool(unit_diagonal),
    }
    return _solve(
        lambda x, y: emit(systems.triangular_solve, x, y, **params),
        "solve_triangular",
        conjugate_complex(matrix) if conjugate else matrix,
        right,
    )


@namespace_operator
def inv(a: ArrayLike) -> Variable:
    """Return the inverse of each matrix of a stack.

    Raises `ShapeError` for matrices that are not square; a singular one is a `LinAlgError` of the
    run. For `inv(a) @ b`, `solve(a, b)` is faster and more accurate.

    >>> pg.linalg.inv([[2.0, 0.0], [0.0, 4.0]])
    tensor([[0.5 , 0.  ],
            [0.  , 0.25]])
    """
    return emit(systems.inv, square_matrices("inv", a))


@namespace_operator
def cholesky(a: ArrayLike, *, upper: bool = False) -> Variable:
    """Return the lower triangular `l` with `l @ l.T = a` and a positive diagonal; `l.T` if `upper`.

    For complex matrices, which are Hermitian, `l.T` is the adjoint. As in NumPy the lower triangle
    of `a` is read, the upper one if `upper`. The derivative is along symmetric or Hermitian
    matrices, and so is the gradient. Raises `ShapeError` for matrices that are not square; one that
    is not positive definite is a `LinAlgError` of the run.

    >>> pg.linalg.cholesky([[4.0, 2.0], [2.0, 2.0]])
    tensor([[2., 0.],
            [1., 1.]])
    """
    value = square_matrices("cholesky", a)
    value = adjoint(value) if upper else value
    factor = stop_gradient(emit(factors.cholesky, value))
    result = emit(factors.as_cholesky_of, factor, value)
    return adjoint(result) if upper else result


@namespace_operator
def det(a: ArrayLike) -> Variable:
    """Return the determinant of each matrix of a stack; its slope is that by cofactors.

    Singular matrices have a gradient, too; second derivatives need an inverse. Raises `ShapeError`
    for matrices that are not square.

    >>> print(f"{pg.linalg.det([[1.0, 2.0], [3.0, 4.0]]):.4f}")
    -2.0000
    """
    return emit(systems.det, square_matrices("det", a))


class SlogdetResult(NamedTuple):
    """Sign of a determinant, and logarithm of its absolute value.

    >>> pg.linalg.slogdet([[0.0, 1.0], [1.0, 0.0]]).sign
    tensor(-1.)
    """

    sign: Variable
    logabsdet: Variable


@namespace_operator
def _slogdet(a: ArrayLike) -> tuple[Variable, ...]:
    return emit_all(systems.slogdet, square_matrices("slogdet", a))


def slogdet(a: ArrayLike) -> SlogdetResult:
    """Compute the sign and the logarithm of the absolute value of the determinant of each matrix.

    The sign of a complex determinant is its phase, which has a derivative. For singular matrices
    these are 0 and -inf; their derivative is a `LinAlgError` of the run. Raises `ShapeError` for
    matrices that are not square.

    >>> pg.linalg.slogdet(np.eye(2))[1]
    tensor(0.)
    """
    return SlogdetResult(*_slogdet(a))


@namespace_operator
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Variable:
    """Return `x` with `tensordot(a, x, x.ndim) = b`; `axes` of `a` are moved to the right first.

    Raises `ShapeError` unless there are as many equations as unknowns.

    >>> pg.linalg.tensorsolve(np.eye(4).reshape(2, 2, 2, 2), np.ones((2, 2))).shape
    (2, 2)
    """
    dtype = lapack_dtype("tensorsolve", a, b)
    value, right = lift(a, dtype), lift(b, dtype)
    if axes is not None:
        moved = [i % value.ndim for i in axes]
        value = permute_axes(value, (*(i for i in range(value.ndim) if i not in moved), *moved))
    unknown = value.shape[right.ndim :]
    count = math.prod(unknown)
    if math.prod(value.shape[: right.ndim]) != count or right.size != count:
        raise NotSquareError(f"tensorsolve of {value.type} and {right.type}: not as many equations")
    matrix, column = reshape_to(value, (count, count)), reshape_to(right, (count, 1))
    return reshape_to(emit(systems.solve, matrix, column), unknown)


@namespace_operator
def tensorinv(a: ArrayLike, ind: int = 2) -> Variable:
    """Return the inverse of `a` as a map of arrays, whose first `ind` axes end up last.

    `tensordot(tensorinv(a), b, ind)` is `tensorsolve(a, b)`. Raises `ShapeError` unless there are
    as many equations as unknowns, `ArgumentError` if `ind` is not positive.

    >>> pg.linalg.tensorinv(np.eye(4).reshape(2, 2, 2, 2)).shape
    (2, 2, 2, 2)
    """
    value = lift(a, lapack_dtype("tensorinv", a))
    if ind <= 0:
        raise ArgumentError(f"tensorinv takes a positive number of axes, not {ind}")
    rows, columns = value.shape[:ind], value.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise NotSquareError(f"tensorinv of {value.type} with ind {ind}: it is not square")
    flat = reshape_to(value, (math.prod(rows), math.prod(columns)))
    return reshape_to(emit(systems.inv, flat), (*columns, *rows))
