"""Taylor coefficients of eigenvalues and eigenvectors, from `a(t) @ v(t) = v(t) @ diag(w(t))`.

In coefficient k of both sides, the terms with `v_k` and `w_k` are `a_0 @ v_k`, `v_k * w_0` and
`v_0 * w_k`; the rest are sums over coefficients below k. In the basis of the eigenvectors `v_0` the
equation is diagonal. That the rate of each eigenvector is orthogonal to the vector fixes its part
along `v_0`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primgraph.ir.graph import Value
from primgraph.primitives.elementwise import mul
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.linear_algebra.ties import column_sums, diagonal_of, in_columns
from primgraph.primitives.linear_algebra.triangles import cast_like, conjugate, real_part


def eigenvalue_coefficients(
    jets: Any, k: int, z: tuple[Any, Any], a: Any, basis: Callable[[Value, Value], Sequence[Value]]
) -> tuple[Value | None, Value | None]:
    """Return coefficient `k` of eigenvalues and eigenvectors.

    `basis` returns, for `w_0` and `v_0`, the inverse of `v_0`, and `1 / (w[j] - w[i])` in row `i`
    and column `j`, with a zero for equal values.
    """
    w, v = z
    columns = jets.expand_function(_columns_like, w, v)
    rest = jets.difference(
        jets.convolution(matmul, a, v, k, k, 1), jets.convolution(mul, v, columns, k, k - 1, 1)
    )
    if rest is None:
        return None, None
    start = v.first()
    inverse, quotients = basis(w.first(), start)
    within = matmul(inverse, rest)
    moved = matmul(start, within * quotients)
    along = jets.total([conjugate(start) * moved, _known_part(jets, k, v)])
    value = diagonal_of(within)
    value = value if w.type.is_complex else real_part(value)
    return value, moved - start * in_columns(column_sums(along), start.shape[-2])


def _columns_like(w: Value, v: Value) -> Value:
    return cast_like(in_columns(w, v.shape[-2]), v)


def _known_part(jets: Any, k: int, v: Any) -> Value | None:
    """Return `sum(i * conj(v_{k-i}) * v_i) / k`, for i from 1 to k - 1."""
    if not v.type.is_complex:
        squares: Value | None = jets.square(mul, v, k, 1)
        return None if squares is None else squares * 0.5
    pairs = [(v[k - i], v[i], i / k) for i in range(1, k)]
    terms = [conjugate(x) * y * part for x, y, part in pairs if x is not None and y is not None]
    total: Value | None = jets.total(terms)
    return total
