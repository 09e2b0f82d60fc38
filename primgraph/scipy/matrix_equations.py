"""Matrix equations and functions of matrices, of variables and tensors, with SciPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import COMPLEX128
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.complex_numbers import imag, real
from primgraph.operators.index.indexing import take
from primgraph.operators.index.sorting import argsort
from primgraph.operators.linear_algebra.factorizations import (
    eig,
    expm,
    logm,
    solve_banded,
    solve_sylvester,
    sqrtm,
    toeplitz,
)
from primgraph.operators.linear_algebra.matrices import matrix_power
from primgraph.operators.linear_algebra.products import matmul
from primgraph.operators.linear_algebra.systems import (
    adjoint,
    conjugate_complex,
    inv,
    lapack_dtype,
    solve,
    square_matrices,
)
from primgraph.operators.promotion import convert_dtype, lift
from primgraph.operators.shape.creation import eye, stop_gradient
from primgraph.operators.shape.joining import concatenate
from primgraph.operators.shape.shaping import reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives.linear_algebra import matrix_functions
from primgraph.scipy.matrix_forms import circulant

# Functions of matrices.


def _cosine_and_sine(name: str, a: Any) -> tuple[Variable, Variable]:
    """The cosine and the sine of each matrix."""
    value = square_matrices(name, a)
    if not value.type.is_complex:
        wide = COMPLEX128 if value.dtype == np.float64 else np.dtype(np.complex64)
        along = expm(convert_dtype(value, wide) * 1j)
        return real(along), imag(along)
    there, back = expm(value * 1j), expm(value * -1j)
    return (there + back) * 0.5, (there - back) * -0.5j


@namespace_operator
def cosm(A: Any) -> Variable:
    """The cosine of each matrix, of its exponential."""
    return _cosine_and_sine("cosm", A)[0]


@namespace_operator
def sinm(A: Any) -> Variable:
    """The sine of each matrix, of its exponential."""
    return _cosine_and_sine("sinm", A)[1]


@namespace_operator
def tanm(A: Any) -> Variable:
    """The tangent of each matrix."""
    return solve(*_cosine_and_sine("tanm", A))


def _cosh_and_sinh(name: str, a: Any) -> tuple[Variable, Variable]:
    value = square_matrices(name, a)
    there, back = expm(value), expm(-value)
    return (there + back) * 0.5, (there - back) * 0.5


@namespace_operator
def coshm(A: Any) -> Variable:
    """The hyperbolic cosine of each matrix."""
    return _cosh_and_sinh("coshm", A)[0]


@namespace_operator
def sinhm(A: Any) -> Variable:
    """The hyperbolic sine of each matrix."""
    return _cosh_and_sinh("sinhm", A)[1]


@namespace_operator
def tanhm(A: Any) -> Variable:
    """The hyperbolic tangent of each matrix."""
    return solve(*_cosh_and_sinh("tanhm", A))


@namespace_operator
def signm(A: Any) -> Variable:
    """The sign of each matrix, `A @ inv(sqrtm(A @ A))`: no eigenvalue is imaginary."""
    value = square_matrices("signm", A)
    return solve(sqrtm(matmul(value, value)), value)


@namespace_operator
def fractional_matrix_power(A: Any, t: float) -> Variable:
    """The principal power of each matrix: `expm(t * logm(A))`, or products for an integer `t`."""
    value = square_matrices("fractional_matrix_power", A)
    if float(t).is_integer():
        return matrix_power(value, int(t))
    return expm(logm(value) * float(t))


@namespace_operator
def _frechet(a: Any, e: Any) -> tuple[Variable, Variable]:
    dtype = lapack_dtype("expm_frechet", a, e)
    value, along = square_matrices("expm_frechet", lift(a, dtype)), lift(e, dtype)
    if value.type != along.type:
        raise ShapeError(f"expm_frechet of {value.type} along {along.type}: the shapes differ")
    slope = matrix_functions.expm_slope
    assert isinstance(slope, Primitive)
    return expm(value), emit(slope, value, along)


def expm_frechet(A: Any, E: Any, method: Any = None, compute_expm: bool = True) -> Any:
    """The exponential of a matrix, and its derivative along `E`; that alone if not `compute_expm`.

    `method` makes no difference.
    """
    both = _frechet(A, E)
    return both if compute_expm else both[1]


# Equations.


@namespace_operator
def solve_continuous_lyapunov(a: Any, q: Any) -> Variable:
    """`x` with `a @ x + x @ a.T = q`, the adjoint of complex matrices."""
    value = square_matrices("solve_continuous_lyapunov", lift(a, lapack_dtype("lyapunov", a, q)))
    return solve_sylvester(value, adjoint(value), q)


solve_lyapunov = solve_continuous_lyapunov


@namespace_operator
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Variable:
    """`x` with `a @ x @ a.T - x + q = 0`, the adjoint of complex matrices.

    It is solved as one system of all elements; `method` makes no difference.
    """
    dtype = lapack_dtype("solve_discrete_lyapunov", a, q)
    value, side = (square_matrices("solve_discrete_lyapunov", lift(x, dtype)) for x in (a, q))
    if value.type != side.type or value.ndim != 2:
        raise ShapeError(f"solve_discrete_lyapunov of {value.type} and {side.type}: not equal")
    n = value.shape[0]
    both = reshape_to(value, (n, 1, n, 1)) * reshape_to(conjugate_complex(value), (1, n, 1, n))
    whole = eye(n * n, dtype=dtype) - reshape_to(both, (n * n, n * n))
    return reshape_to(solve(whole, reshape_to(side, (n * n,))), (n, n))


# Steps of Newton's method from a constant: two have the first and the second derivative.
_STEPS = 2


def _control(name: str, *given: Any) -> tuple[Variable, ...]:
    """The matrices of a system and of its costs, in one dtype."""
    dtype = lapack_dtype(name, *given)
    state, control, cost, weight = found = tuple(lift(x, dtype) for x in given)
    n, m = control.shape if control.ndim == 2 else (0, 0)
    if not (state.shape == cost.shape == (n, n) and weight.shape == (m, m) and n > 0):
        kinds = ", ".join(str(x.type) for x in found)
        raise ShapeError(f"{name} of {kinds}: the shapes do not fit")
    return found


@namespace_operator
def _continuous(a: Any, b: Any, q: Any, r: Any) -> Variable:
    state, control, cost, weight = _control("solve_continuous_are", a, b, q, r)
    spread = matmul(control, solve(weight, adjoint(control)))
    above = concatenate([state, -spread], 1)
    below = concatenate([-cost, -adjoint(state)], 1)
    x = stop_gradient(_stable_solution(concatenate([above, below], 0), state))
    for _ in range(_STEPS):
        closed = adjoint(state - matmul(spread, x))
        side = -(cost + matmul(x, matmul(spread, x)))
        x = solve_sylvester(closed, adjoint(closed), side)
        x = (x + adjoint(x)) * 0.5
    return x


@namespace_operator
def _discrete(a: Any, b: Any, q: Any, r: Any) -> Variable:
    state, control, cost, weight = _control("solve_discrete_are", a, b, q, r)
    one = eye(state.shape[0], dtype=state.dtype)
    spread = matmul(control, solve(weight, adjoint(control)))
    left = concatenate([concatenate([state, one * 0], 1), concatenate([-cost, one], 1)], 0)
    right = concatenate([concatenate([one, spread], 1),
                         concatenate([one * 0, adjoint(state)], 1)], 0)  # fmt: skip
    # Numbers in the unit circle to such with negative real parts.
    x = stop_gradient(_stable_solution(solve(left + right, left - right), state))
    for _ in range(_STEPS):
        seen = matmul(adjoint(control), x)
        gain = solve(weight + matmul(seen, control), matmul(seen, state))
        closed = adjoint(state - matmul(control, gain))
        side = cost + matmul(adjoint(gain), matmul(weight, gain))
        x = solve_discrete_lyapunov(closed, side)
        x = (x + adjoint(x)) * 0.5
    return x


def _stable_solution(whole: Variable, like: Variable) -> Variable:
    """The solution by those eigenvectors whose values have negative real parts."""
    n = like.shape[0]
    values, vectors = eig(convert_dtype(whole, COMPLEX128))
    chosen = take(vectors, argsort(real(values))[:n], 1)
    found = matmul(chosen[n:], inv(chosen[:n]))
    return convert_dtype(found if like.type.is_complex else real(found), like.dtype)


def solve_continuous_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    """`x` with `a.T @ x + x @ a - x @ b @ inv(r) @ b.T @ x + q = 0` that makes the loop stable.

    It is found by eigenvectors (A. J. Laub, A Schur method for solving algebraic Riccati equations,
    IEEE Trans. Automat. Contr. 24 (1979), 913), and by two steps of D. L. Kleinman's iteration, On
    an iterative technique for Riccati equation computations, IEEE Trans. Automat. Contr. 13 (1968),
    114, through which derivatives go: those to the second order are right.
    """
    if e is not None or s is not None:
        raise ArgumentError("solve_continuous_are takes no e and no s with variables")
    return _continuous(a, b, q, r)


def solve_discrete_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    """`x` with `x = a.T @ x @ a - a.T @ x @ b @ inv(r + b.T @ x @ b) @ b.T @ x @ a + q`.

    As `solve_continuous_are`, with the steps of G. A. Hewer, An iterative technique for the
    computation of the steady state gains for the discrete optimal regulator, IEEE Trans. Automat.
    Contr. 16 (1971), 382.
    """
    if e is not None or s is not None:
        raise ArgumentError("solve_discrete_are takes no e and no s with variables")
    return _discrete(a, b, q, r)


# Systems of a certain form.


@namespace_operator
def solve_circulant(c: Any, b: Any) -> Variable:
    """`x` with `circulant(c) @ x = b`, by elimination."""
    return solve(circulant(c), b)


@namespace_operator
def matmul_toeplitz(c_or_cr: Any, x: Any) -> Variable:
    """`toeplitz(c) @ x`, or `toeplitz(c, r) @ x` of a pair."""
    matrix = toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)
    return matmul(matrix, x)


@namespace_operator
def solveh_banded(ab: Any, b: Any, lower: bool = False) -> Variable:
    """`x` with `a @ x = b` for a Hermitian matrix with diagonals in the rows of `ab`.

    The main one is the last of these, the first if `lower`.
    """
    bands = lift(ab, lapack_dtype("solveh_banded", ab, b))
    if bands.ndim != 2:
        raise ShapeError(f"solveh_banded takes diagonals in rows, not {bands.type}")
    count, n = bands.shape
    upper = _turned_round(bands) if lower else bands
    # Each diagonal below begins where the one above ends.
    rows = [
        concatenate([conjugate_complex(upper[count - 1 - k][k:]), upper[0][:0], upper[0][:k] * 0])
        for k in range(1, count)
    ]
    whole = concatenate([upper, *(reshape_to(row, (1, n)) for row in rows)], 0)
    return solve_banded((count - 1, count - 1), whole, b)


def _turned_round(bands: Variable) -> Variable:
    """Diagonals below the main one as those above it."""
    count, n = bands.shape
    rows = [
        concatenate([bands[k][:k] * 0, conjugate_complex(bands[k][: n - k])])
        for k in reversed(range(count))
    ]
    return concatenate([reshape_to(row, (1, n)) for row in rows], 0)
