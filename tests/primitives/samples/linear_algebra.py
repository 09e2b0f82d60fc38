"""Samples of the primitives of `primgraph.primitives.linear_algebra`."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import scipy.linalg

from primgraph.errors import ArgumentError, DTypeError, NotSquareError, ShapeError
from samples.rows import DIFFERENCES, NUMBERS, Call, Refused, Row, factor, regular


def spread(i: int, x: np.ndarray) -> np.ndarray:
    """Matrices whose eigenvalues, and singular values, are apart from each other and from 0."""
    rows, columns = x.shape[-2:]
    far = 8 * np.arange(1, min(rows, columns) + 1)
    return x + np.eye(rows, columns, dtype=x.dtype)[:, : len(far)] @ np.pad(
        np.diag(far), ((0, 0), (0, columns - len(far)))
    )


def positive_definite(i: int, x: np.ndarray) -> np.ndarray:
    """A symmetric matrix with eigenvalues from 1 on."""
    return x @ np.swapaxes(np.conj(x), -1, -2) + np.eye(x.shape[-1], dtype=x.dtype)


FACTORS = [Call(f"x[{s}]", f"x[{s}]") for s in ("3,3", "1,1", "2,2,2", "0,0", "0,2,2")]
UNFIT_FACTORS = [
    Refused(ShapeError, "f64[3,3]", "f64[3,2]"),
    Refused(NotSquareError, "f64[2,3]", "f64[2,3]"),
    Refused(DTypeError, "f16[3,3]", "f16[3,3]"),
]

SYSTEMS = [
    Call("x[3,3]", "x[3,2]"),
    Call("x[1,1]", "x[1,1]"),
    Call("x[2,3,3]", "x[2,3,1]"),
    Call("x[3,3]", "x[3,0]"),
    Call("x[0,0]", "x[0,2]"),
    Call("x[0,2,2]", "x[0,2,2]"),
]
UNFIT_SYSTEMS = [
    Refused(ShapeError, "f64[3]", "f64[3]"),
    Refused(NotSquareError, "f64[3,2]", "f64[3,2]"),
    Refused(ShapeError, "f64[3,3]", "f64[2,3]"),
    Refused(ShapeError, "f64[2,3,3]", "f64[3,1]"),
    Refused(DTypeError, "f64[3,3]", "f32[3,3]"),
    Refused(DTypeError, "f16[3,3]", "f16[3,3]"),
    Refused(DTypeError, "i64[3,3]", "i64[3,3]"),
]
TRIANGLES = [
    {"lower": lower, "transposed": transposed, "unit": unit}
    for lower in (True, False)
    for transposed in (True, False)
    for unit in (False, True)
]


def of_square(**details: Any) -> Row:
    """The row of a function of stacks of square matrices."""
    shapes = ("3,3", "1,1", "2,2,2", "0,0", "0,2,2")
    refused = [
        Refused(ShapeError, "f64[3]"),
        Refused(NotSquareError, "f64[2,3]"),
        Refused(DTypeError, "f16[3,3]"),
        Refused(DTypeError, "i64[3,3]"),
    ]
    return Row([Call(f"x[{s}]") for s in shapes], refused, dtypes=("f64", "f32"), **details)


def of_matrices(*params: dict[str, Any]) -> Row:
    """The row of a function of stacks of matrices that need not be square."""
    shapes = ("3,3", "1,1", "3,2", "2,3", "2,2,2", "3,0", "0,2,2")
    refused = [
        Refused(error, *operands, **params[0])
        for error, *operands in (
            (ShapeError, "f64[3]"),
            (DTypeError, "f16[3,3]"),
            (DTypeError, "i64[3,3]"),
        )
    ]
    calls = [Call(f"x[{s}]", **p) for p in params for s in shapes]
    return Row(calls, refused, dtypes=("f64", "f32"), analytic=DIFFERENCES, made_fit=spread)


def triangular_by_inverse(
    a: np.ndarray, b: np.ndarray, *, lower: bool, transposed: bool, unit: bool
) -> np.ndarray:
    n = a.shape[-1]
    kept = np.fromfunction(lambda i, j: (i >= j) if lower else (i <= j), (n, n))
    t = np.where(kept, a, 0)
    t = np.where(np.eye(n) * unit, 1, t)
    return np.linalg.inv(np.swapaxes(t, -1, -2) if transposed else t) @ b


def entries(i: int, x: np.ndarray) -> np.ndarray:
    """Elements far from zero, as on a diagonal, and their rows and columns in order."""
    return np.where(x.real < 0, x - 2, x + 2) if i == 0 else np.sort(x) if i > 1 else x


def sparse_by_inverse(
    data: np.ndarray, b: np.ndarray, rows: np.ndarray, columns: np.ndarray, *, reverse: bool
) -> np.ndarray:
    n = b.shape[-2]
    t = np.zeros((*data.shape[:-1], n, n), data.dtype)
    np.add.at(t, (..., rows, columns), data)
    ends = np.isin(np.arange(n), rows[rows == columns])
    return np.linalg.inv(t + np.diag(~ends)) @ b


def sparse_calls() -> list[Call]:
    """Lower and upper triangles, one without a diagonal, and empty systems."""
    rows, columns = np.array([0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 2])
    none = np.array([], np.int64)
    return [
        Call("x[5]", "x[3,2]", rows, columns, reverse=False),
        Call("x[5]", "x[3,1]", columns, rows, reverse=True),
        Call("x[2]", "x[3,1]", rows[[1, 3]], columns[[1, 3]], reverse=False),
        Call("x[2,5]", "x[2,3,2]", rows, columns, reverse=False),
        Call("x[2,5]", "x[2,3,1]", columns, rows, reverse=True),
        Call("x[5]", "x[3,0]", rows, columns, reverse=False),
        Call("x[0]", "x[0,2]", none, none, reverse=True),
    ]


def cholesky_by_rows(a: np.ndarray, conj: Any = lambda x: x) -> np.ndarray:
    """Cholesky and Banachiewicz: one element after the other."""
    rows = np.zeros_like(a)
    for i in range(a.shape[-1]):
        for j in range(i + 1):
            rest = a[..., i, j] - np.sum(rows[..., i, :j] * conj(rows[..., j, :j]), -1)
            rows[..., i, j] = np.sqrt(rest) if i == j else rest / rows[..., j, j]
    return rows


def cholesky_known(z: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The factor of `z @ z.T`, moving as that of the symmetric part of `a` would."""
    known = z.real @ np.swapaxes(z.real, -1, -2)
    return cholesky_by_rows(known + 0.5j * (a.imag + np.swapaxes(a.imag, -1, -2)))


def turned_from_unit(a: np.ndarray) -> np.ndarray:
    """Vectors of a diagonal matrix, turned as the imaginary part of the lower triangle of `a`
    would turn them."""
    w = np.diagonal(a.real, 0, -2, -1)
    part = a.imag * np.tri(a.shape[-1], k=-1)
    apart = w[..., None, :] - w[..., :, None]
    quotient = (part + np.swapaxes(part, -1, -2)) / np.where(apart == 0, 1, apart)
    return np.eye(a.shape[-1]) + 1j * quotient


def turned_from_known(a: np.ndarray, hermitian: bool) -> tuple[np.ndarray, np.ndarray]:
    """Left and right vectors of a diagonal matrix, as columns, turned as the imaginary part of `a`
    would turn them."""
    if hermitian:
        v = turned_from_unit(a)
        return v, v
    *_, m, n = a.shape
    k, d = min(m, n), a.imag
    w = np.diagonal(a.real, 0, -2, -1)
    u, v = np.eye(m, k) + 0j * a[..., :, :k], np.eye(n, k) + 0j * np.swapaxes(a[..., :k, :], -1, -2)
    for i, j in np.ndindex(m, k):
        if i != j:
            other = w[..., i] * d[..., j, i] if i < k else 0
            u[..., i, j] += 1j * (w[..., j] * d[..., i, j] + other) / _apart(w, i, j)
    for i, j in np.ndindex(n, k):
        if i != j:
            other = w[..., i] * d[..., i, j] if i < k else 0
            v[..., i, j] += 1j * (w[..., j] * d[..., j, i] + other) / _apart(w, i, j)
    return u, v


def _apart(w: np.ndarray, i: int, j: int) -> np.ndarray:
    return w[..., j] ** 2 - (w[..., i] ** 2 if i < w.shape[-1] else 0)


def tangent_of_known(
    z: Any, a: Any, w: Any, u: Any, v: Any, d: Any, *, hermitian: bool
) -> np.ndarray:
    u, v = turned_from_known(a, hermitian)
    return np.einsum("...ki,...kl,...li->...i", u, d, v)


def gradient_of_known(
    z: Any, a: Any, w: Any, u: Any, v: Any, g: Any, *, hermitian: bool
) -> np.ndarray:
    u, v = turned_from_known(a, hermitian)
    return (u * g[..., None, :]) @ np.swapaxes(v, -1, -2)


def of_unit_vectors(i: int, x: np.ndarray) -> np.ndarray:
    """A diagonal matrix, its values and its vectors; other operands as they are."""
    if i not in (1, 2, 3, 4):
        return x
    if i == 2:
        return np.ones_like(x) * np.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    unit = np.zeros_like(x) + np.eye(*x.shape[-2:], dtype=x.dtype)
    return unit * np.arange(1, x.shape[-1] + 1, dtype=x.dtype) if i == 1 else unit


def near_identity(i: int, x: np.ndarray) -> np.ndarray:
    """Matrices with eigenvalues around 2."""
    return x * 0.25 + 2 * np.eye(x.shape[-1], dtype=x.dtype)


def each_matrix(function: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    """A function of mpmath's of one matrix, of each of a stack."""

    def apply(a: np.ndarray) -> np.ndarray:
        found = np.zeros_like(a)
        for place in np.ndindex(a.shape[:-2]):
            if a.size:
                with mpmath.workdps(30):
                    found[place] = np.array(function(mpmath.matrix(a[place].tolist())).tolist())
        return found

    return apply


def slope_of_matrices(function: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    """The derivative along the second operand, in the upper right of a matrix of blocks."""

    def slope(a: np.ndarray, d: np.ndarray) -> np.ndarray:
        n = a.shape[-1]
        rows = [np.concatenate([a, d], -1), np.concatenate([np.zeros_like(a), a], -1)]
        return function(np.concatenate(rows, -2))[..., :n, n:]

    return slope


def lu_of_each(a: np.ndarray) -> list[np.ndarray]:
    """Those of SciPy."""
    p, left, right = scipy.linalg.lu(a)
    return [
        np.argmax(p, -2) if p.size else np.zeros(a.shape[:-1], int),
        left.astype(a.dtype),
        right.astype(a.dtype),
    ]


def cholesky_tangent_by_rows(z: np.ndarray, d: np.ndarray) -> np.ndarray:
    """How each element of the elimination by rows moves with those before."""
    z, moved = np.tril(z), np.zeros_like(d)
    d = (d + np.conj(np.swapaxes(d, -1, -2))) / 2
    for i in range(z.shape[-1]):
        for j in range(i + 1):
            products = moved[..., i, :j] * np.conj(z[..., j, :j])
            products = products + z[..., i, :j] * np.conj(moved[..., j, :j])
            rest = d[..., i, j] - np.sum(products, -1)
            own = rest.real / 2 if i == j else rest - z[..., i, j] * moved[..., j, j]
            moved[..., i, j] = own / z[..., j, j]
    return moved


def cholesky_slope_by_tangents(z: np.ndarray, ct: np.ndarray) -> np.ndarray:
    """The sum of what each element of a symmetric matrix moves, and each imaginary part."""
    result = np.zeros_like(ct)
    for i, j in np.ndindex(z.shape[-2:]):
        for one in (1, 1j)[: 1 + (z.dtype.kind == "c")]:
            unit = np.zeros_like(z)
            unit[..., i, j] = one
            product = np.conj(ct) * cholesky_tangent_by_rows(z, unit)
            result[..., i, j] += one * np.sum(product, (-1, -2)).real
    return result


def det_by_minors(a: np.ndarray) -> np.ndarray:
    """Laplace's expansion by the first row."""
    n = a.shape[-1]
    if n == 0:
        return np.ones(a.shape[:-2], a.dtype)
    rest = [np.delete(a[..., 1:, :], j, -1) for j in range(n)]
    return sum((-1) ** j * a[..., 0, j] * det_by_minors(rest[j]) for j in range(n))


def cofactors_by_minors(a: np.ndarray) -> np.ndarray:
    n, result = a.shape[-1], np.zeros_like(a)
    for i in range(n):
        for j in range(n):
            minor = np.delete(np.delete(a, i, -2), j, -1)
            result[..., i, j] = (-1) ** (i + j) * det_by_minors(minor)
    return result


def matmul_by_einsum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...jk->...ik", x, y)


ROWS: dict[str, Row] = {
    "matmul": Row(
        [
            Call("x[2,3]", "x[3,4]"),
            Call("x[1,1]", "x[1,1]"),
            Call("x[2,0]", "x[0,3]"),
            Call("x[0,2]", "x[2,3]"),
            Call("x[2,2,3]", "x[2,3,1]"),
            Call("x[0,2,3]", "x[0,3,2]"),
        ],
        [
            Refused(ShapeError, "f64[3]", "f64[3]"),
            Refused(ShapeError, "f64[2,3]", "f64[4,2]"),
            Refused(ShapeError, "f64[2,3]", "f64[5,3,2]"),
            Refused(ShapeError, "f64[2,2,3]", "f64[1,3,2]"),
            Refused(DTypeError, "f64[2,3]", "f32[3,2]"),
            Refused(DTypeError, "bool[2,3]", "bool[3,2]"),
        ],
        dtypes=NUMBERS,
        reference=matmul_by_einsum,
    ),
    "solve": Row(
        SYSTEMS,
        UNFIT_SYSTEMS,
        dtypes=("f64", "f32"),
        reference=lambda a, b: np.linalg.inv(a) @ b,
        made_fit=regular,
    ),
    "triangular_solve": Row(
        [
            *(Call(*c.operands, **p) for c in SYSTEMS[:1] for p in TRIANGLES),
            *(Call(*c.operands, **TRIANGLES[0]) for c in SYSTEMS[1:]),
        ],
        [Refused(r.error, *r.call.operands, **TRIANGLES[0]) for r in UNFIT_SYSTEMS],
        dtypes=("f64", "f32"),
        reference=triangular_by_inverse,
        made_fit=regular,
    ),
    "sparse_triangular_solve": Row(
        sparse_calls(),
        [
            Refused(ShapeError, "f64[5]", "f64[3]", "i64[5]", "i64[5]", reverse=False),
            Refused(ShapeError, "f64[2,5]", "f64[1,3,1]", "i64[5]", "i64[5]", reverse=False),
            Refused(ShapeError, "f64[5]", "f64[3,1]", "i64[5]", "i64[4]", reverse=False),
            Refused(DTypeError, "f64[5]", "f64[3,1]", "i64[5]", "i32[5]", reverse=False),
            Refused(DTypeError, "f64[5]", "f32[3,1]", "i64[5]", "i64[5]", reverse=False),
            Refused(DTypeError, "f16[5]", "f16[3,1]", "i64[5]", "i64[5]", reverse=False),
        ],
        dtypes=("f64", "f32"),
        reference=sparse_by_inverse,
        made_fit=entries,
    ),
    "inv": of_square(
        reference=lambda a: np.linalg.solve(a, np.zeros_like(a) + np.eye(a.shape[-1])),
        made_fit=regular,
    ),
    "cholesky": of_square(
        reference=lambda a: cholesky_by_rows(a, np.conj),
        analytic=DIFFERENCES,
        made_fit=positive_definite,
    ),
    "slogdet": of_square(
        reference=lambda a: [np.sign(det_by_minors(a)), np.log(abs(det_by_minors(a)))],
        analytic=DIFFERENCES,
        made_fit=regular,
    ),
    "det": of_square(reference=det_by_minors, made_fit=regular),
    "cofactors": of_square(
        reference=cofactors_by_minors, analytic=cofactors_by_minors, made_fit=regular
    ),
    "cholesky_tangent": Row(
        FACTORS,
        UNFIT_FACTORS,
        dtypes=("f64", "f32"),
        analytic=DIFFERENCES,
        reference=cholesky_tangent_by_rows,
        made_fit=factor,
    ),
    "cholesky_slope": Row(
        FACTORS,
        UNFIT_FACTORS,
        dtypes=("f64", "f32"),
        analytic=DIFFERENCES,
        reference=cholesky_slope_by_tangents,
        made_fit=factor,
    ),
    **{
        name: of_square(
            reference=each_matrix(getattr(mpmath, name)),
            analytic=DIFFERENCES,
            made_fit=near_identity,
        )
        for name in ("expm", "sqrtm", "logm")
    },
    **{
        f"{name}_slope": Row(
            FACTORS,
            UNFIT_FACTORS,
            dtypes=("f64", "f32"),
            reference=slope_of_matrices(each_matrix(getattr(mpmath, name))),
            analytic=DIFFERENCES,
            made_fit=lambda i, x: near_identity(i, x) if i == 0 else x,
        )
        for name in ("expm", "sqrtm", "logm")
    },
    "lu": Row(
        [Call(f"x[{s}]") for s in ("3,3", "1,1", "3,2", "2,3", "2,2,2", "0,2,2")],
        [Refused(ShapeError, "f64[3]"), Refused(DTypeError, "i64[3,3]")],
        dtypes=("f64", "f32"),
        reference=lu_of_each,
        analytic=DIFFERENCES,
        made_fit=spread,
    ),
    "eig": of_square(
        reference=lambda a: np.linalg.eig(a),
        analytic=DIFFERENCES,
        made_fit=lambda i, x: spread(i, x + np.swapaxes(x, -1, -2)),
    ),
    "assumed": Row(
        [Call(f"x[{s}]", facts=("symmetric",)) for s in ("3,3", "2,2,2", "0,0")],
        [
            Refused(ShapeError, "f64[3,2]", facts=("symmetric",)),
            Refused(DTypeError, "i64[3,3]", facts=("symmetric",)),
            Refused(ArgumentError, "f64[3,3]", facts=("large",)),
        ],
        dtypes=("f64", "f32"),
        reference=lambda x, *, facts: x,
        analytic=lambda x, *, facts: x,
        made_fit=lambda i, x: x + np.swapaxes(x, -1, -2),
    ),
    "as_symmetric": Row(
        [Call("x[3,3]", "x[3,3]"), Call("x[2,2,2]", "x[2,2,2]"), Call("x[0,0]", "x[0,0]")],
        [
            Refused(NotSquareError, "f64[3,3]", "f64[3,2]"),
            Refused(ShapeError, "f64[2,2]", "f64[3,3]"),
            Refused(DTypeError, "i64[3,3]", "i64[3,3]"),
        ],
        dtypes=("f64", "f32"),
        reference=lambda z, a: z,
        analytic=lambda z, a: (a + np.swapaxes(a, -1, -2)) / 2,
    ),
    "as_cholesky_of": Row(
        [Call("x[3,3]", "x[3,3]"), Call("x[2,2,2]", "x[2,2,2]"), Call("x[0,0]", "x[0,0]")],
        [
            Refused(NotSquareError, "f64[3,3]", "f64[3,2]"),
            Refused(ShapeError, "f64[2,2]", "f64[3,3]"),
            Refused(DTypeError, "i64[3,3]", "i64[3,3]"),
        ],
        dtypes=("f64", "f32"),
        reference=lambda z, a: z,
        analytic=cholesky_known,
        made_fit=lambda i, x: regular(i, np.tril(x)),
    ),
    "if_distinct": Row(
        [
            Call("x[3,3]", "x[3,3]", np.zeros((3, 3), bool)),
            Call("x[2,3,2]", "x[2,3,2]", np.zeros((2, 3, 2), bool)),
        ],
        [
            Refused(ShapeError, "f64[3,3]", "f64[3,2]", "bool[3,3]"),
            Refused(ShapeError, "f64[3,3]", "f64[3,3]", "bool[3]"),
            Refused(DTypeError, "f64[3,3]", "f64[3,3]", "f64[3,3]"),
            Refused(DTypeError, "i64[3,3]", "i64[3,3]", "bool[3,3]"),
        ],
        dtypes=("f64", "f32"),
        reference=lambda z, x, bad: z,
        analytic=lambda z, x, bad: x,
    ),
    "unless_any": Row(
        [
            Call("x[3]", np.zeros(3, bool), message="bad"),
            Call("x[2,3]", np.zeros((2, 3), bool), message="bad"),
            Call("x[]", np.zeros((), bool), message="bad"),
        ],
        [
            Refused(ShapeError, "f64[3]", "bool[2]", message="bad"),
            Refused(DTypeError, "f64[3]", "i64[3]", message="bad"),
        ],
        reference=lambda x, bad, *, message: x,
        analytic=lambda x, bad, *, message: x,
    ),
    "as_spectral_tangent": Row(
        [
            Call("x[3]", "x[3,3]", "x[3]", "x[3,3]", "x[3,3]", "x[3,3]", hermitian=True),
            Call(
                "x[2,2]", "x[2,2,2]", "x[2,2]", "x[2,2,2]", "x[2,2,2]", "x[2,2,2]", hermitian=True
            ),
            Call("x[2]", "x[2,2]", "x[2]", "x[2,2]", "x[2,2]", "x[2,2]", hermitian=False),
            Call("x[3]", "x[4,3]", "x[3]", "x[4,3]", "x[3,3]", "x[4,3]", hermitian=False),
            Call(
                "x[2,2]", "x[2,2,3]", "x[2,2]", "x[2,2,2]", "x[2,3,2]", "x[2,2,3]", hermitian=False
            ),
        ],
        [
            Refused(
                ShapeError,
                "f64[2]",
                "f64[3,2]",
                "f64[3]",
                "f64[3,2]",
                "f64[2,2]",
                "f64[3,2]",
                hermitian=False,
            ),
            Refused(
                ShapeError,
                "f64[2]",
                "f64[3,2]",
                "f64[2]",
                "f64[3,3]",
                "f64[2,2]",
                "f64[3,2]",
                hermitian=False,
            ),
            Refused(
                ShapeError,
                "f64[2]",
                "f64[3,2]",
                "f64[2]",
                "f64[3,2]",
                "f64[2,2]",
                "f64[2]",
                hermitian=False,
            ),
            Refused(
                NotSquareError,
                "f64[2]",
                "f64[3,2]",
                "f64[2]",
                "f64[3,2]",
                "f64[2,2]",
                "f64[3,2]",
                hermitian=True,
            ),
        ],
        dtypes=("f64", "f32"),
        reference=lambda z, a, w, u, v, d, *, hermitian: z,
        analytic=tangent_of_known,
        made_fit=of_unit_vectors,
    ),
    "as_spectral_gradient": Row(
        [
            Call("x[3,3]", "x[3,3]", "x[3]", "x[3,3]", "x[3,3]", "x[3]", hermitian=True),
            Call(
                "x[2,2,2]", "x[2,2,2]", "x[2,2]", "x[2,2,2]", "x[2,2,2]", "x[2,2]", hermitian=True
            ),
            Call("x[2,2]", "x[2,2]", "x[2]", "x[2,2]", "x[2,2]", "x[2]", hermitian=False),
            Call("x[4,3]", "x[4,3]", "x[3]", "x[4,3]", "x[3,3]", "x[3]", hermitian=False),
            Call(
                "x[2,2,3]", "x[2,2,3]", "x[2,2]", "x[2,2,2]", "x[2,3,2]", "x[2,2]", hermitian=False
            ),
        ],
        [
            Refused(
                ShapeError,
                "f64[3,2]",
                "f64[3,2]",
                "f64[3]",
                "f64[3,2]",
                "f64[2,2]",
                "f64[2]",
                hermitian=False,
            ),
            Refused(
                ShapeError,
                "f64[3,2]",
                "f64[3,2]",
                "f64[2]",
                "f64[3,3]",
                "f64[2,2]",
                "f64[2]",
                hermitian=False,
            ),
            Refused(
                ShapeError,
                "f64[3,2]",
                "f64[3,2]",
                "f64[2]",
                "f64[3,2]",
                "f64[2,2]",
                "f64[3,2]",
                hermitian=False,
            ),
            Refused(
                NotSquareError,
                "f64[3,2]",
                "f64[3,2]",
                "f64[2]",
                "f64[3,2]",
                "f64[2,2]",
                "f64[2]",
                hermitian=True,
            ),
        ],
        dtypes=("f64", "f32"),
        reference=lambda z, a, w, u, v, g, *, hermitian: z,
        analytic=gradient_of_known,
        made_fit=of_unit_vectors,
    ),
    # Orthogonal factors. Those of NumPy are the only ones with NumPy's signs.
    "eigh": of_square(analytic=DIFFERENCES, made_fit=spread),
    "eigvalsh": of_square(analytic=DIFFERENCES, made_fit=spread),
    "svd": of_matrices({"full": True}, {"full": False}),
    "svdvals": of_matrices({}),
    "pinv": of_matrices({"rcond": 1e-6}),
    "qr": of_matrices({"complete": True}, {"complete": False}),
}
