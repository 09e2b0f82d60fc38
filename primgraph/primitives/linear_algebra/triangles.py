"""Parts of matrices: conjugates, adjoints and triangles of stacks of matrices.

For complex matrices read Hermitian for symmetric. Transposes of linear maps are not conjugated.
"""

from __future__ import annotations

from primgraph.errors import DTypeError, NotSquareError, ShapeError
from primgraph.ir.graph import Value
from primgraph.ir.types import FLOAT16, INT64, TensorType, real_dtype
from primgraph.primitives.constants import filled_constant, iota, zeros_like
from primgraph.primitives.elementwise import cast
from primgraph.primitives.linear_algebra.products import swap_last
from primgraph.primitives.logic import greater_equal, select
from primgraph.primitives.parts import conj, real
from primgraph.primitives.shapes import broadcast


def require_matrices(name: str, a: TensorType) -> None:
    """Refuse values that are not stacks of matrices of a dtype that LAPACK takes."""
    if a.ndim < 2:
        raise ShapeError(f"{name} takes matrices, not {a}")
    if not a.is_inexact or a.dtype == FLOAT16:
        raise DTypeError(
            f"{name} takes matrices of float64, float32, complex128 or complex64, not {a}"
        )


def require_square(name: str, a: TensorType) -> None:
    """Refuse values that are not stacks of square matrices."""
    require_matrices(name, a)
    if a.shape[-1] != a.shape[-2]:
        raise NotSquareError(f"{name} takes square matrices, not {a}")


def conjugate(x: Value) -> Value:
    """Return the conjugates of complex numbers; real ones unchanged."""
    return conj(x) if x.type.is_complex else x


def adjoint(x: Value) -> Value:
    """Return each matrix transposed, and conjugated if it is complex."""
    return conjugate(swap_last(x))


def real_part(x: Value) -> Value:
    """Return the real parts of complex numbers; real ones unchanged."""
    return real(x) if x.type.is_complex else x


def cast_like(x: Value, like: Value) -> Value:
    """Return `x`, cast to the complex dtype of `like` if that is complex."""
    return cast(x, dtype=like.dtype) if like.type.is_complex else x


def real_type(a: TensorType) -> TensorType:
    """Return the type of the absolute values of `a`: its shape with the real dtype."""
    return a.with_dtype(real_dtype(a.dtype)) if a.is_complex else a


def _triangle_mask(type: TensorType, k: int) -> Value:
    """Return the mask of elements at most `k` columns to the right of the diagonal."""
    shape = type.shape[-2:]
    row, column = (iota(shape=shape, axis=i, dtype=INT64) for i in (0, 1))
    if k:
        row = row + filled_constant(k, row.type)
    mask = greater_equal(row, column)
    lead = tuple(range(type.ndim - 2))
    return broadcast(mask, shape=type.shape, new_axes=lead) if lead else mask


def lower_triangle(x: Value, k: int = 0) -> Value:
    """Return `x` with zeros above diagonal `k`."""
    return select(_triangle_mask(x.type, k), x, zeros_like(x))


def upper_triangle(x: Value, k: int = 0) -> Value:
    """Return `x` with zeros below diagonal `k`."""
    return select(_triangle_mask(x.type, k - 1), zeros_like(x), x)


def from_lower(x: Value) -> Value:
    """Return the symmetric matrix with the lower triangle of `x`.

    A complex result is Hermitian; imaginary parts on the diagonal are ignored.
    """
    if not x.type.is_complex:
        return select(_triangle_mask(x.type, 0), x, swap_last(x))
    below = lower_triangle(x, -1)
    diagonal = select(_triangle_mask(x.type, -1), zeros_like(x), lower_triangle(x))
    return below + adjoint(below) + cast(real(diagonal), dtype=x.dtype)


def symmetric_part(x: Value) -> Value:
    """Return the mean of `x` and its adjoint."""
    return (x + adjoint(x)) * 0.5


def half_lower(x: Value) -> Value:
    """Return the lower triangle of `x` with its diagonal halved: Murray's function Φ."""
    halves = select(
        _triangle_mask(x.type, -1), filled_constant(1.0, x.type), filled_constant(0.5, x.type)
    )
    return x * lower_triangle(halves)
