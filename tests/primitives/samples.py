"""Samples of every primitive: one row a primitive, which the registry test runs through.

A row tells on what the primitive is called, where its operands are drawn from, and what is
refused. Types are texts as in `f64[2,3]`; the dtype `x` stands for each dtype of the row. What a
row leaves out has a default that suits elementwise functions of floats.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import complex_samples
import mpmath
import numpy as np
import scipy.linalg
from sampled_loops import (
    BELOW_FOUR,
    BY_NEWTON,
    CUBIC,
    GROWING,
    KEEPING,
    NEARING,
    NEVER,
    ROOT,
    SINE,
    SQUARED,
    STEP,
    TWICE,
    checkpoint_by_hand,
    cond_by_hand,
    scan_by_hand,
    solution_by_hand,
    while_by_hand,
)
from sampled_special import (
    bessel_or_integral,
    beta_moment,
    each,
    gamma_moment,
    gamma_slope,
    inverse_erfc,
    log_abs_gamma,
    log_beta,
    log_normal,
    scaled_erfc,
)

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.params import Array
from primgraph.ir.text import brief_text
from primgraph.ir.types import BOOL, FLOAT32, FLOAT64, INT64

Interval = tuple[float, float]
Union = tuple[Interval, ...]

FLOATS = ("f64", "f32", "f16")
INTS = ("i64", "i32", "i8", "u64", "u8")
NUMBERS = FLOATS + INTS
EVERYTHING = (*NUMBERS, "bool")

REAL: Union = ((-2.0, 2.0),)
POSITIVE: Union = ((0.3, 2.5),)
NONZERO: Union = ((-2.0, -0.4), (0.4, 2.0))
INSIDE: Union = ((-0.9, 0.9),)
ABOVE_ONE: Union = ((1.2, 3.0),)
NATURAL: Union = ((0.0, 5.0),)

SHAPES = ("", "0", "1", "3", "2,3", "2,0,3")

# Derivatives of such a function are compared with differences, for want of an analytic one.
DIFFERENCES = "differences"


class Call:
    """The operands of one call, types or arrays, and its parameters."""

    def __init__(self, *operands: str | np.ndarray, **params: Any) -> None:
        self.operands = operands
        self.params = params

    def __str__(self) -> str:
        shown = [a if isinstance(a, str) else f"{a.dtype}{list(a.shape)}" for a in self.operands]
        return " ".join([*shown, *(f"{k}={brief_text(v)}" for k, v in self.params.items())])


class Refused:
    """A call with this type rule's error."""

    def __init__(self, error: type[Exception], *operands: str, **params: Any) -> None:
        self.error = error
        self.call = Call(*operands, **params)


@dataclass(frozen=True)
class Row:
    """All samples of one primitive.

    `domain` has an interval, or several, for each operand, the last one serving the rest.
    `reference` is an expression that shares no code with the primitive; None where the primitive
    is the NumPy function of the same name. `analytic` agrees with the primitive on real arrays
    and takes complex ones; None where the primitive's own meaning does. `made_fit` makes of the
    numbers that were drawn for operand `i` such as the primitive takes.
    """

    calls: Sequence[Call]
    refused: Sequence[Refused]
    dtypes: Sequence[str] = FLOATS
    domain: Sequence[Union] = (REAL,)
    reference: Callable[..., Any] | None = None
    analytic: Callable[..., Any] | str | None = None
    made_fit: Callable[[int, np.ndarray], np.ndarray] = lambda i, x: x


def elementwise(
    operands: int = 1,
    domain: Union | Sequence[Union] = REAL,
    dtypes: Sequence[str] = FLOATS,
    **details: Any,
) -> Row:
    """The row of a primitive on `operands` equal types; `details` are those of `Row`."""
    refused = []
    if "bool" not in dtypes:
        refused.append(Refused(DTypeError, *["bool[3]"] * operands))
    if "i64" not in dtypes:
        refused.append(Refused(DTypeError, *["i64[3]"] * operands))
    if operands == 2:
        refused += _unequal("f64[3]")
    intervals = domain if isinstance(domain[0][0], tuple) else (domain,)
    calls = [Call(*[f"x[{shape}]"] * operands) for shape in SHAPES]
    return Row(calls, refused, dtypes, intervals, **details)


def special(
    function: Callable[..., Any],
    operands: int = 1,
    *,
    domain: Sequence[Union] = (ABOVE_ONE,),
    params: Sequence[dict[str, Any]] = ({},),
    wrong: dict[str, Any] | None = None,
) -> Row:
    """The row of a special function that mpmath knows as `function`; `wrong` is refused."""
    calls = [
        Call(*[f"x[{shape}]"] * operands, **given) for shape in ("", "0", "2,3") for given in params
    ]
    refused = [Refused(DTypeError, *["i64[3]"] * operands, **params[0])]
    if wrong is not None:
        refused.append(Refused(ArgumentError, *["f64[3]"] * operands, **wrong))
    if operands > 1:
        kinds = ["f64[3]"] * (operands - 1)
        refused.append(Refused(ShapeError, "f64[2]", *kinds, **params[0]))
    return Row(calls, refused, domain=domain, reference=each(function), analytic=DIFFERENCES)


def comparison() -> Row:
    """The row of a comparison."""
    calls = [Call(f"x[{shape}]", f"x[{shape}]") for shape in SHAPES]
    return Row(calls, _unequal("f64[3]"), EVERYTHING)


def logical(operands: int) -> Row:
    """The row of a function of booleans."""
    calls = [Call(*[f"bool[{shape}]"] * operands) for shape in SHAPES]
    refused = [Refused(DTypeError, *["i64[3]"] * operands)]
    if operands == 2:
        refused += _unequal("bool[3]")
    return Row(calls, refused, ["bool"])


def _unequal(type: str) -> list[Refused]:
    """Pairs of types that are not broadcast and not promoted."""
    other = "i8[3]" if type != "i8[3]" else "f64[3]"
    return [
        Refused(ShapeError, type, "f64[1]"),
        Refused(ShapeError, "f64[]", type),
        Refused(ShapeError, type, "f64[1,3]"),
        Refused(DTypeError, type, other),
    ]


def reduction(
    dtypes: Sequence[str] = NUMBERS, empty: bool = True, domain: Union = REAL, **details: Any
) -> Row:
    """The row of a reduction; without `empty`, it refuses to reduce over no elements."""
    calls = [
        Call("x[]", axes=()),
        Call("x[1]", axes=(0,)),
        Call("x[3]", axes=()),
        Call("x[3]", axes=(0,)),
        Call("x[2,3]", axes=(0,)),
        Call("x[2,3]", axes=(1,)),
        Call("x[2,3]", axes=(0, 1)),
        Call("x[2,3,5]", axes=(0, 2)),
        Call("x[2,0,3]", axes=(0,)),
        Call("x[0]", axes=()),
    ]
    over_nothing = [Call("x[0]", axes=(0,)), Call("x[2,0,3]", axes=(1, 2))]
    refused = [
        Refused(ShapeError, "f64[3]", axes=(1,)),
        Refused(ShapeError, "f64[3]", axes=(-1,)),
        Refused(ShapeError, "f64[3]", axes=(0, 0)),
        Refused(ShapeError, "f64[2,3]", axes=(1, 0)),
    ]
    if empty:
        calls += over_nothing
    else:
        refused += [Refused(ShapeError, "f64[2,0,3]", axes=(1,))]
    if "bool" not in dtypes:
        refused.append(Refused(DTypeError, "bool[3]", axes=(0,)))
    return Row(calls, refused, dtypes, [domain], **details)


def position() -> Row:
    """The row of the index of an extremum."""
    calls = [
        Call("x[1]", axis=0),
        Call("x[4]", axis=0),
        Call("x[2,3]", axis=0),
        Call("x[2,3]", axis=1),
        Call("x[0,3]", axis=1),
        Call("x[2,3,2]", axis=1),
    ]
    refused = [
        Refused(ShapeError, "f64[]", axis=0),
        Refused(ShapeError, "f64[3]", axis=1),
        Refused(ShapeError, "f64[3]", axis=-1),
        Refused(ShapeError, "f64[0,3]", axis=0),
    ]
    return Row(calls, refused, EVERYTHING)


# References and analytic versions.


def by_mpmath(function: Callable[[Any], Any]) -> Callable[..., np.ndarray]:
    """`function` of one number, applied to each element with 40 digits."""

    def reference(x: np.ndarray) -> np.ndarray:
        with mpmath.workdps(40):
            flat = [float(function(mpmath.mpf(float(v)))) for v in np.asarray(x).reshape(-1)]
        return np.array(flat).reshape(np.shape(x))

    return reference


def each_sample(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """`function(n, **params)` for every element `n` of the key."""

    def reference(key: np.ndarray, *, shape: tuple[int, ...], **params: Any) -> np.ndarray:
        rows = [function(int(n), shape, **params) for n in key.reshape(-1)]
        return np.array(rows).reshape(key.shape + shape)

    return reference


def philox(key: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.Generator(np.random.Philox(key=key % 2**64)).random(shape)


def drawn_in_order(key: np.ndarray, *params: np.ndarray, name: str) -> np.ndarray:
    """One number after the other, by the method of that name of each key's generator."""
    results = []
    for place in np.ndindex(key.shape):
        rng = np.random.Generator(np.random.Philox(key=int(key[place]) % 2**64))
        flat = [p[place].reshape(-1) for p in params]
        results.append([getattr(rng, name)(*numbers) for numbers in zip(*flat, strict=True)])
    return np.array(results).reshape(params[0].shape)


def gather_by_loop(x: np.ndarray, *indices: np.ndarray, axis: int) -> np.ndarray:
    tail = x.shape[axis + len(indices) :]
    result = np.zeros(x.shape[:axis] + indices[0].shape + tail, x.dtype)
    for lead in np.ndindex(x.shape[:axis]):
        for place in np.ndindex(indices[0].shape):
            result[lead + place] = x[lead + tuple(int(i[place]) for i in indices)]
    return result


def scatter_by_loop(x: np.ndarray, y: np.ndarray, *indices: np.ndarray, axis: int) -> np.ndarray:
    result = x.copy()
    for lead in np.ndindex(x.shape[:axis]):
        for place in np.ndindex(indices[0].shape):
            result[lead + tuple(int(i[place]) for i in indices)] += y[lead + place]
    return result


def pad_by_assignment(x: np.ndarray, *, low: Any, high: Any) -> np.ndarray:
    result = np.zeros([a + n + b for a, n, b in zip(low, x.shape, high, strict=True)], x.dtype)
    result[tuple(slice(a, a + n) for a, n in zip(low, x.shape, strict=True))] = x
    return result


def _positions(starts: Any, sizes: Any, steps: Any) -> Any:
    ranges = zip(starts, sizes, steps, strict=True)
    return np.ix_(*([start + i * step for i in range(n)] for start, n, step in ranges))


def slice_by_positions(x: np.ndarray, *, starts: Any, sizes: Any, steps: Any) -> np.ndarray:
    if not starts:
        return x
    return x[tuple(i.astype(int) for i in _positions(starts, sizes, steps))]


def assign_by_positions(x: np.ndarray, y: np.ndarray, *, starts: Any, steps: Any) -> np.ndarray:
    if not starts:
        return y
    result = x.copy()
    result[tuple(i.astype(int) for i in _positions(starts, y.shape, steps))] = y
    return result


def place_one_by_one(*xs: np.ndarray, shape: Any, starts: Any, strides: Any) -> np.ndarray:
    result = np.zeros(shape, xs[0].dtype)
    for x, start, steps in zip(xs, starts, strides, strict=True):
        lead = x.ndim - len(steps)
        for index in np.ndindex(x.shape):
            place = start + sum(i * s for i, s in zip(index[lead:], steps, strict=True))
            result[(*index[:lead], *np.unravel_index(place, shape[lead:]))] = x[index]
    return result


def root_of_known_squares(x: Any, squares: Any, *, axes: Any, divisor: float) -> Any:
    """The root of `squares`, moving as a sum of squares of `x` would."""
    total = np.real(squares) + 1j * np.imag(np.sum(x * x, axis=axes))
    return np.sqrt(total / divisor)


def cumsum_by_matrix(x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
    n = x.shape[axis]
    ones = np.tril(np.ones((n, n))) if not reverse else np.triu(np.ones((n, n)))
    return np.moveaxis(np.tensordot(ones, x, (1, axis)), 0, axis).astype(x.dtype)


def windows_by_indices(
    x: np.ndarray, *, axis: int, sizes: Any, steps: Any, dilations: Any
) -> np.ndarray:
    """Each axis in turn by an index array of elements and windows."""
    number = len(sizes)
    for i, (size, step, dilation) in enumerate(zip(sizes, steps, dilations, strict=True)):
        count = (x.shape[axis + i] - dilation * (size - 1) - 1) // step + 1
        index = dilation * np.arange(size)[:, None] + step * np.arange(count)
        x = np.moveaxis(np.take(x, index, axis + i), axis + i + 1, -1)
        x = np.moveaxis(x, axis + i, -2)
        x = np.moveaxis(x, (-2, -1), (axis + i, axis + number))
    counted = range(axis + number, axis + 2 * number)
    return np.moveaxis(x, counted, tuple(reversed(counted)))


def sums_of_windows(
    x: np.ndarray, *, axis: int, extents: Any, steps: Any, dilations: Any
) -> np.ndarray:
    """The transpose of the matrix of windows."""
    number = len(extents)
    sizes = x.shape[axis : axis + number]
    shape = (*x.shape[:axis], *extents, *x.shape[axis + 2 * number :])
    numbers = np.arange(math.prod(shape)).reshape(shape)
    places = windows_by_indices(numbers, axis=axis, sizes=sizes, steps=steps, dilations=dilations)
    total = np.zeros(math.prod(shape), np.float64)
    np.add.at(total, places.reshape(-1), x.reshape(-1))
    return total.reshape(shape).astype(x.dtype)


def broadcast_by_tiles(x: np.ndarray, *, shape: Any, new_axes: Any) -> np.ndarray:
    for axis in new_axes:
        x = np.repeat(np.expand_dims(x, axis), shape[axis], axis)
    return x


def concat_by_lists(*xs: np.ndarray, axis: int) -> np.ndarray:
    return np.stack([row for x in xs for row in np.moveaxis(x, axis, 0)], axis)


def split_by_take(x: np.ndarray, *, sizes: Any, axis: int) -> list[np.ndarray]:
    ends = np.cumsum([0, *sizes])
    return [np.take(x, np.arange(a, b), axis) for a, b in pairwise(ends)]


def extremum_of_complex(real_extremum: Callable[..., Any]) -> Callable[..., Any]:
    """The element with the extreme real part; no two are equal in the samples."""

    def analytic(x: np.ndarray, *, axes: Any) -> np.ndarray:
        if x.size == 0:
            return real_extremum(x.real, axis=axes)
        best = x.real == real_extremum(x.real, axis=axes, keepdims=True)
        return np.sum(np.where(best, x, 0), axis=axes)

    return analytic


def regular(i: int, x: np.ndarray) -> np.ndarray:
    """The first operand with a large diagonal, so that matrices are far from singular."""
    return x + 4 * np.eye(x.shape[-1], dtype=x.dtype) if i == 0 else x


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


def factor(i: int, x: np.ndarray) -> np.ndarray:
    """The first operand as a factor of Cholesky: a lower triangle with a real diagonal."""
    x = regular(i, np.tril(x))
    return np.tril(x, -1) + x.real * np.eye(x.shape[-1], dtype=x.dtype) if i == 0 else x


FACTORS = [Call(f"x[{s}]", f"x[{s}]") for s in ("3,3", "1,1", "2,2,2", "0,0", "0,2,2")]
UNFIT_FACTORS = [
    Refused(ShapeError, "f64[3,3]", "f64[3,2]"),
    Refused(ShapeError, "f64[2,3]", "f64[2,3]"),
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
    Refused(ShapeError, "f64[3,2]", "f64[3,2]"),
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
        Refused(ShapeError, "f64[2,3]"),
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


def lines(
    function: Callable[[list[Any]], list[Any]], x: np.ndarray, axis: int, dtype: Any = None
) -> np.ndarray:
    """What `function` makes of each line along `axis`."""
    turned = np.moveaxis(np.asarray(x), axis, -1)
    flat = turned.reshape(-1, turned.shape[-1]) if turned.size else turned.reshape(0, 1)
    found = np.array([function(line.tolist()) for line in flat], dtype or np.asarray(x).dtype)
    return np.moveaxis(found.reshape(turned.shape), -1, axis)


def positions(line: list[Any]) -> list[int]:
    return sorted(range(len(line)), key=lambda i: line[i])


def sort_by_lists(x: np.ndarray, *, axis: int) -> np.ndarray:
    return lines(sorted, x, axis)


def sort_of_complex(x: np.ndarray, *, axis: int) -> np.ndarray:
    """By real parts; no two are equal in the samples."""
    return np.take_along_axis(x, np.argsort(x.real, axis), axis)


def cumprod_by_loop(x: np.ndarray, *, axis: int) -> np.ndarray:
    return lines(lambda line: list(accumulate(line, lambda a, b: a * b)), x, axis)


def running_by_loop(extreme: Callable[..., Any]) -> Callable[..., np.ndarray]:
    return lambda x, *, axis: lines(lambda line: list(accumulate(line, extreme)), x, axis)


def reorder_by_loop(x: np.ndarray, index: np.ndarray, *, axis: int) -> np.ndarray:
    result = np.empty_like(x)
    for place in np.ndindex(x.shape):
        source = tuple(int(index[place]) if i == axis else n for i, n in enumerate(place))
        result[place] = x[source]
    return result


def searchsorted_by_counting(a: np.ndarray, v: np.ndarray, *, right: bool) -> np.ndarray:
    smaller = a <= np.asarray(v)[..., None] if right else a < np.asarray(v)[..., None]
    return np.sum(smaller, -1)


def along_axis(dtypes: Sequence[str], **details: Any) -> Row:
    """The row of a function along one axis."""
    calls = [
        Call("x[1]", axis=0),
        Call("x[5]", axis=0),
        Call("x[2,3]", axis=0),
        Call("x[2,3]", axis=1),
        Call("x[2,0,3]", axis=1),
    ]
    refused = [
        Refused(ShapeError, "f64[]", axis=0),
        Refused(ShapeError, "f64[3]", axis=1),
        Refused(ShapeError, "f64[3]", axis=-1),
    ]
    if "bool" not in dtypes:
        refused.append(Refused(DTypeError, "bool[3]", axis=0))
    return Row(calls, refused, dtypes, **details)


def matmul_by_einsum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...jk->...ik", x, y)


STEPPING = {
    "body": STEP, "consts": 1, "carries": 2, "length": 3, "reverse": False, "counted": False,
}  # fmt: skip

REPEATED = {
    "body": NEARING, "step": None, "consts": 1, "linear": 0, "lead": 0, "method": "repeat",
    "tolerance": 1e-15, "damping": 1.0, "limit": 200, "strict": True,
}  # fmt: skip
NEWTON = {**REPEATED, "body": CUBIC, "method": "newton"}

ROWS: dict[str, Row] = {
    # Without operands that carry a tangent.
    "full": Row(
        [
            Call(value=2.5, shape=(), dtype=FLOAT64),
            Call(value=-0.0, shape=(2, 3), dtype=FLOAT32),
            Call(value=math.inf, shape=(0,), dtype=FLOAT64),
            Call(value=7, shape=(3,), dtype=INT64),
            Call(value=True, shape=(1,), dtype=BOOL),
        ],
        [
            Refused(DTypeError, value=1, shape=(), dtype=FLOAT64),
            Refused(DTypeError, value=0.1, shape=(), dtype=FLOAT32),
            Refused(DTypeError, value=1.0, shape=(), dtype=INT64),
            Refused(ShapeError, value=1.0, shape=(-1,), dtype=FLOAT64),
        ],
        reference=lambda *, value, shape, dtype: np.zeros(shape, dtype) + np.array(value, dtype),
    ),
    "extent": Row(
        [
            Call(size=7, shape=(), dtype=FLOAT64),
            Call(size=0, shape=(2, 3), dtype=FLOAT32),
            Call(size=3, shape=(1,), dtype=INT64),
        ],
        [
            Refused(DTypeError, size=1, shape=(), dtype=BOOL),
            Refused(DTypeError, size=300, shape=(), dtype=np.dtype(np.int8)),
            Refused(ShapeError, size=1, shape=(-1,), dtype=FLOAT64),
        ],
        reference=lambda *, size, shape, dtype: np.zeros(shape, dtype) + np.array(size, dtype),
    ),
    "constant": Row(
        [
            Call(value=Array(np.array(1.5))),
            Call(value=Array(np.arange(6, dtype=np.int8).reshape(2, 3))),
            Call(value=Array(np.zeros((2, 0, 3), np.float16))),
        ],
        [],
        reference=lambda *, value: np.array(value.data),
    ),
    "iota": Row(
        [
            Call(shape=(3,), axis=0, dtype=INT64),
            Call(shape=(2, 3), axis=1, dtype=FLOAT32),
            Call(shape=(2, 0, 3), axis=2, dtype=FLOAT64),
        ],
        [
            Refused(ShapeError, shape=(), axis=0, dtype=INT64),
            Refused(ShapeError, shape=(3,), axis=1, dtype=INT64),
            Refused(ShapeError, shape=(3,), axis=-1, dtype=INT64),
            Refused(ShapeError, shape=(-3,), axis=0, dtype=INT64),
            Refused(DTypeError, shape=(3,), axis=0, dtype=BOOL),
        ],
        reference=lambda *, shape, axis, dtype: np.indices(shape)[axis].astype(dtype),
    ),
    "random_uniform": Row(
        [
            Call("x[]", shape=(), dtype=FLOAT64, low=0.0, high=1.0),
            Call("x[2]", shape=(3,), dtype=FLOAT64, low=-1.0, high=2.0),
            Call("x[0]", shape=(3,), dtype=FLOAT32, low=0.0, high=1.0),
            Call("x[1]", shape=(2, 0), dtype=FLOAT64, low=0.0, high=1.0),
        ],
        [
            Refused(DTypeError, "f64[]", shape=(), dtype=FLOAT64, low=0.0, high=1.0),
            Refused(DTypeError, "i64[]", shape=(), dtype=INT64, low=0.0, high=1.0),
            Refused(ShapeError, "i64[]", shape=(-1,), dtype=FLOAT64, low=0.0, high=1.0),
        ],
        dtypes=INTS,
        reference=each_sample(
            lambda n, shape, dtype, low, high: low + (high - low) * philox(n, shape)
        ),
    ),
    "random_bernoulli": Row(
        [
            Call("x[]", shape=(), p=0.5),
            Call("x[2]", shape=(3,), p=0.25),
            Call("x[0]", shape=(3,), p=1.0),
            Call("x[1]", shape=(2, 0), p=0.0),
        ],
        [
            Refused(DTypeError, "bool[]", shape=(), p=0.5),
            Refused(ShapeError, "i64[]", shape=(-1,), p=0.5),
        ],
        dtypes=INTS,
        reference=each_sample(lambda n, shape, p: philox(n, shape) < p),
    ),
    "random_variate": Row(
        [
            Call("i64[]", "x[]", name="standard_gamma"),
            Call("i64[2]", "x[2,3]", name="standard_gamma"),
            Call("i32[1]", "x[1,2,0]", name="poisson"),
            Call("u8[2]", "x[2]", name="poisson"),
            Call("i64[2]", "i64[2,3]", "x[2,3]", name="binomial"),
        ],
        [
            Refused(DTypeError, "f64[]", "f64[]", name="poisson"),
            Refused(DTypeError, "i64[]", "bool[]", name="poisson"),
            Refused(DTypeError, "i64[]", "i64[]", name="standard_gamma"),
            Refused(ShapeError, "i64[2]", "f64[3]", name="poisson"),
            Refused(ShapeError, "i64[]", "f64[3]", "f64[2]", name="binomial"),
            Refused(ShapeError, "i64[]", "f64[3]", name="binomial"),
            Refused(ArgumentError, "i64[]", "f64[3]", name="cauchy"),
        ],
        domain=(((0, 99),), ((0.1, 0.9), (1, 9)), ((0.1, 0.9),)),
        reference=drawn_in_order,
    ),
    # Arithmetic.
    "add": elementwise(2, dtypes=NUMBERS),
    "sub": elementwise(2, dtypes=NUMBERS),
    "neg": elementwise(dtypes=NUMBERS),
    "mul": elementwise(2, dtypes=NUMBERS),
    "div": elementwise(2, (REAL, NONZERO)),
    "remainder": elementwise(
        2, (REAL, NONZERO), NUMBERS, analytic=lambda x, y: x - y * np.floor(x.real / y.real)
    ),
    "floor_divide": elementwise(2, (REAL, NONZERO), NUMBERS),
    "power": elementwise(2, (POSITIVE, NATURAL), NUMBERS),
    "integer_pow": Row(
        [
            *(Call(f"x[{shape}]", n=3) for shape in SHAPES),
            *(Call("x[2,3]", n=n) for n in (0, 1, 2, 5)),
            *(Call(f"{dtype}[3]", n=n) for n in (-1, -2) for dtype in FLOATS),
        ],
        [Refused(DTypeError, "i64[3]", n=-1), Refused(DTypeError, "bool[3]", n=2)],
        dtypes=NUMBERS,
        domain=[NONZERO],
        analytic=lambda x, *, n: (1 / x if n < 0 else x) ** abs(n),
    ),
    "sqrt": elementwise(1, POSITIVE),
    "rsqrt": elementwise(1, POSITIVE, reference=lambda x: x**-0.5),
    # Exponentials and logarithms.
    "exp": elementwise(),
    "expm1": elementwise(),
    "log": elementwise(1, POSITIVE),
    "log1p": elementwise(1, INSIDE),
    "sigmoid": elementwise(
        reference=by_mpmath(lambda x: 1 / (1 + mpmath.exp(-x))),
        analytic=lambda x: 1 / (1 + np.exp(-x)),
    ),
    "logaddexp": elementwise(2, analytic=lambda x, y: np.log(np.exp(x) + np.exp(y))),
    # Circular and hyperbolic functions.
    "sin": elementwise(),
    "cos": elementwise(),
    "tan": elementwise(1, INSIDE),
    "sinh": elementwise(),
    "cosh": elementwise(),
    "tanh": elementwise(),
    "arcsin": elementwise(1, INSIDE),
    "arccos": elementwise(1, INSIDE),
    "arctan": elementwise(),
    "arcsinh": elementwise(),
    "arccosh": elementwise(1, ABOVE_ONE),
    "arctanh": elementwise(1, INSIDE),
    "arctan2": elementwise(
        2, NONZERO, analytic=lambda x, y: np.arctan(x / y) + np.pi * np.sign(x.real) * (y.real < 0)
    ),
    "erf": elementwise(reference=by_mpmath(mpmath.erf), analytic=DIFFERENCES),
    "erfc": elementwise(reference=by_mpmath(mpmath.erfc), analytic=DIFFERENCES),
    # Special functions.
    "gammaln": special(log_abs_gamma),
    "gamma_function": special(mpmath.gamma),
    "polygamma": special(
        lambda x, *, n: mpmath.psi(n, x), params=[{"n": 0}, {"n": 1}], wrong={"n": -1}
    ),
    "betaln": special(log_beta, 2),
    "beta": special(mpmath.beta, 2),
    "poch": special(mpmath.rf, 2),
    "by_scipy": special(
        bessel_or_integral,
        domain=[ABOVE_ONE],
        params=[{"name": "j0", "part": 0}, {"name": "sici", "part": 1}],
        wrong={"name": "j7", "part": 0},
    ),
    "gammainc": special(
        gamma_moment,
        2,
        params=[{"k": 0, "upper": False}, {"k": 1, "upper": True}],
        wrong={"k": -1, "upper": True},
    ),
    "betainc": special(
        beta_moment,
        3,
        domain=[ABOVE_ONE, ABOVE_ONE, ((0.3, 0.6),)],
        params=[{"j": 0, "k": 0, "upper": False}, {"j": 1, "k": 1, "upper": True}],
        wrong={"j": 0, "k": -1, "upper": True},
    ),
    "erfinv": special(mpmath.erfinv, domain=[((-0.4, 0.4),)]),
    "erfcinv": special(inverse_erfc, domain=[((0.6, 1.4),)]),
    "erfcx": special(scaled_erfc, params=[{"n": 0}, {"n": 1}], wrong={"n": -1}),
    "log_ndtr": special(log_normal, domain=[REAL]),
    "xlogy": special(lambda x, y: x * mpmath.log(y), 2),
    "xlog1py": special(lambda x, y: x * mpmath.log1p(y), 2),
    "logit": special(lambda x: mpmath.log(x / (1 - x)), domain=[((0.3, 0.7),)]),
    # With kinks, and with derivative zero.
    "abs": elementwise(1, NONZERO, NUMBERS, analytic=lambda x: x * np.sign(x.real)),
    "maximum": elementwise(
        2, dtypes=EVERYTHING, analytic=lambda x, y: np.where(x.real > y.real, x, y)
    ),
    "minimum": elementwise(
        2, dtypes=EVERYTHING, analytic=lambda x, y: np.where(x.real < y.real, x, y)
    ),
    "sign": elementwise(dtypes=NUMBERS),
    "floor": elementwise(),
    "ceil": elementwise(),
    "round": elementwise(reference=lambda x: np.copysign(np.round(x), x)),
    "stop_gradient": elementwise(dtypes=EVERYTHING, reference=lambda x: x),
    "as_function_of": Row(
        [Call("x[]", "x[]"), Call("x[3]", "x[2,3]"), Call("x[2,3]", "x[]"), Call("x[0,3]", "x[1]")],
        [Refused(DTypeError, "i64[3]", "f64[3]"), Refused(DTypeError, "bool[3]", "f64[3]")],
        reference=lambda x, y: x,
        analytic=lambda x, y: x,
    ),
    "cast": Row(
        [
            *(Call(f"x[{shape}]", dtype=FLOAT64) for shape in SHAPES),
            Call("x[2,3]", dtype=FLOAT32),
            Call("x[2,3]", dtype=INT64),
            Call("x[2,3]", dtype=BOOL),
        ],
        [],
        dtypes=EVERYTHING,
        reference=lambda x, *, dtype: np.array(x, dtype),
        analytic=lambda x, *, dtype: x,
    ),
    # Bits of integers.
    "bitwise_and": elementwise(2, dtypes=INTS),
    "bitwise_or": elementwise(2, dtypes=INTS),
    "bitwise_xor": elementwise(2, dtypes=INTS),
    "bitwise_not": elementwise(dtypes=INTS),
    "left_shift": elementwise(2, NATURAL, INTS),
    "right_shift": elementwise(2, NATURAL, INTS),
    "gcd": elementwise(2, NATURAL, INTS),
    "nextafter": elementwise(2),
    # Comparisons, logic, choice.
    "equal": comparison(),
    "not_equal": comparison(),
    "greater": comparison(),
    "greater_equal": comparison(),
    "less": comparison(),
    "less_equal": comparison(),
    "logical_and": logical(2),
    "logical_or": logical(2),
    "logical_xor": logical(2),
    "logical_not": logical(1),
    "unless_nan": Row(
        [Call(f"x[{shape}]", f"x[{shape}]") for shape in SHAPES],
        [
            Refused(DTypeError, "i64[3]", "i64[3]"),
            Refused(DTypeError, "f64[3]", "f32[3]"),
            Refused(ShapeError, "f64[]", "f64[3]"),
        ],
        reference=lambda x, y: np.where(np.isnan(y), y, x),
        analytic=lambda x, y: x,
    ),
    "select": Row(
        [Call(f"bool[{shape}]", f"x[{shape}]", f"x[{shape}]") for shape in SHAPES],
        [
            Refused(DTypeError, "f64[3]", "f64[3]", "f64[3]"),
            Refused(DTypeError, "bool[3]", "f64[3]", "f32[3]"),
            Refused(ShapeError, "bool[]", "f64[3]", "f64[3]"),
            Refused(ShapeError, "bool[3]", "f64[3]", "f64[]"),
        ],
        dtypes=EVERYTHING,
        reference=lambda c, x, y: np.choose(c.astype(int), [y, x]),
    ),
    # Moving elements.
    "reshape": Row(
        [
            Call("x[]", shape=()),
            Call("x[]", shape=(1, 1)),
            Call("x[1]", shape=()),
            Call("x[6]", shape=(2, 3)),
            Call("x[2,3]", shape=(3, 2)),
            Call("x[2,0,3]", shape=(0, 5)),
        ],
        [
            Refused(ShapeError, "f64[6]", shape=(4,)),
            Refused(ShapeError, "f64[6]", shape=(-1,)),
            Refused(ShapeError, "f64[6]", shape=(-2, -3)),
        ],
        dtypes=EVERYTHING,
        reference=lambda x, *, shape: np.array(x.reshape(-1).tolist(), x.dtype).reshape(shape),
    ),
    "permute": Row(
        [
            Call("x[]", axes=()),
            Call("x[3]", axes=(0,)),
            Call("x[2,3]", axes=(1, 0)),
            Call("x[2,3,4]", axes=(2, 0, 1)),
            Call("x[2,0,3]", axes=(1, 2, 0)),
        ],
        [
            Refused(ShapeError, "f64[2,3]", axes=(0,)),
            Refused(ShapeError, "f64[2,3]", axes=(0, 0)),
            Refused(ShapeError, "f64[2,3]", axes=(0, -1)),
        ],
        dtypes=EVERYTHING,
        reference=lambda x, *, axes: np.moveaxis(x, axes, range(x.ndim)),
    ),
    "broadcast": Row(
        [
            Call("x[]", shape=(), new_axes=()),
            Call("x[]", shape=(3,), new_axes=(0,)),
            Call("x[]", shape=(0,), new_axes=(0,)),
            Call("x[3]", shape=(2, 3), new_axes=(0,)),
            Call("x[3]", shape=(3, 2), new_axes=(1,)),
            Call("x[2,3]", shape=(1, 2, 4, 3), new_axes=(0, 2)),
            Call("x[0,3]", shape=(2, 0, 3), new_axes=(0,)),
        ],
        [
            Refused(ShapeError, "f64[3]", shape=(2, 4), new_axes=(0,)),
            Refused(ShapeError, "f64[1]", shape=(3,), new_axes=()),
            Refused(ShapeError, "f64[3]", shape=(3,), new_axes=(1,)),
            Refused(ShapeError, "f64[3]", shape=(3, 2), new_axes=(-1,)),
            Refused(ShapeError, "f64[3]", shape=(-1, 3), new_axes=(0,)),
            Refused(ShapeError, "f64[]", shape=(2, 3), new_axes=(1, 0)),
        ],
        dtypes=EVERYTHING,
        reference=broadcast_by_tiles,
    ),
    "reverse": Row(
        [
            Call("x[]", axes=()),
            Call("x[3]", axes=(0,)),
            Call("x[2,3]", axes=(1,)),
            Call("x[2,3]", axes=(0, 1)),
            Call("x[2,0,3]", axes=(1, 2)),
        ],
        [
            Refused(ShapeError, "f64[2,3]", axes=(2,)),
            Refused(ShapeError, "f64[2,3]", axes=(-1,)),
            Refused(ShapeError, "f64[2,3]", axes=(0, 0)),
        ],
        dtypes=EVERYTHING,
        reference=lambda x, *, axes: x[
            tuple(slice(None, None, -1 if i in axes else 1) for i in range(x.ndim))
        ],
    ),
    "pad": Row(
        [
            Call("x[]", low=(), high=()),
            Call("x[3]", low=(1,), high=(2,)),
            Call("x[0]", low=(2,), high=(0,)),
            Call("x[2,3]", low=(0, 1), high=(2, 0)),
            Call("x[2,0,3]", low=(1, 0, 0), high=(0, 0, 1)),
        ],
        [
            Refused(ShapeError, "f64[3]", low=(1, 0), high=(0, 0)),
            Refused(ShapeError, "f64[3]", low=(-1,), high=(0,)),
        ],
        dtypes=EVERYTHING,
        reference=pad_by_assignment,
    ),
    "slice": Row(
        [
            Call("x[]", starts=(), sizes=(), steps=()),
            Call("x[3]", starts=(1,), sizes=(2,), steps=(1,)),
            Call("x[5]", starts=(4,), sizes=(3,), steps=(-2,)),
            Call("x[5]", starts=(4,), sizes=(5,), steps=(-1,)),
            Call("x[2,3]", starts=(1, 0), sizes=(1, 2), steps=(1, 2)),
            Call("x[2,3]", starts=(0, 3), sizes=(2, 0), steps=(1, 1)),
            Call("x[2,0,3]", starts=(1, 0, 2), sizes=(1, 0, 2), steps=(1, 1, -1)),
        ],
        [
            Refused(ShapeError, "f64[3]", starts=(0,), sizes=(4,), steps=(1,)),
            Refused(ShapeError, "f64[3]", starts=(-1,), sizes=(1,), steps=(1,)),
            Refused(ShapeError, "f64[3]", starts=(0,), sizes=(2,), steps=(-1,)),
            Refused(ShapeError, "f64[3]", starts=(0,), sizes=(2,), steps=(0,)),
            Refused(ShapeError, "f64[3]", starts=(0,), sizes=(-1,), steps=(1,)),
            Refused(ShapeError, "f64[2,3]", starts=(0,), sizes=(1,), steps=(1,)),
        ],
        dtypes=EVERYTHING,
        reference=slice_by_positions,
    ),
    "slice_assign": Row(
        [
            Call("x[]", "x[]", starts=(), steps=()),
            Call("x[3]", "x[2]", starts=(1,), steps=(1,)),
            Call("x[5]", "x[3]", starts=(4,), steps=(-2,)),
            Call("x[2,3]", "x[1,2]", starts=(1, 0), steps=(1, 2)),
            Call("x[2,3]", "x[2,0]", starts=(0, 3), steps=(1, 1)),
        ],
        [
            Refused(ShapeError, "f64[3]", "f64[4]", starts=(0,), steps=(1,)),
            Refused(ShapeError, "f64[3]", "f64[1,1]", starts=(0,), steps=(1,)),
            Refused(DTypeError, "f64[3]", "f32[2]", starts=(0,), steps=(1,)),
        ],
        dtypes=EVERYTHING,
        reference=assign_by_positions,
    ),
    "concat": Row(
        [
            Call("x[3]", axis=0),
            Call("x[3]", "x[0]", "x[1]", axis=0),
            Call("x[2,3]", "x[2,1]", axis=1),
            Call("x[2,3]", "x[1,3]", axis=0),
            Call("x[2,0,3]", "x[2,0,1]", axis=2),
        ],
        [
            Refused(ShapeError, axis=0),
            Refused(ShapeError, "f64[]", "f64[]", axis=0),
            Refused(ShapeError, "f64[2,3]", "f64[3,3]", axis=1),
            Refused(ShapeError, "f64[2,3]", "f64[3]", axis=0),
            Refused(ShapeError, "f64[2,3]", "f64[2,3]", axis=-1),
            Refused(DTypeError, "f64[3]", "f32[3]", axis=0),
        ],
        dtypes=EVERYTHING,
        reference=concat_by_lists,
    ),
    "split": Row(
        [
            Call("x[3]", sizes=(3,), axis=0),
            Call("x[4]", sizes=(1, 0, 3), axis=0),
            Call("x[2,3]", sizes=(1, 2), axis=1),
            Call("x[2,0,3]", sizes=(2, 1), axis=2),
        ],
        [
            Refused(ShapeError, "f64[3]", sizes=(1, 1), axis=0),
            Refused(ShapeError, "f64[3]", sizes=(), axis=0),
            Refused(ShapeError, "f64[3]", sizes=(4, -1), axis=0),
            Refused(ShapeError, "f64[3]", sizes=(3,), axis=1),
            Refused(ShapeError, "f64[2,3]", sizes=(1, 2), axis=-1),
        ],
        dtypes=EVERYTHING,
        reference=split_by_take,
    ),
    "windows": Row(
        [
            Call("x[4]", axis=0, sizes=(2,), steps=(1,), dilations=(1,)),
            Call("x[2,5,3]", axis=1, sizes=(2,), steps=(2,), dilations=(2,)),
            Call("x[5,4,2]", axis=0, sizes=(2, 3), steps=(1, 1), dilations=(2, 1)),
            Call("x[2,0,3]", axis=2, sizes=(3,), steps=(1,), dilations=(1,)),
            Call("x[30]", axis=0, sizes=(29,), steps=(1,), dilations=(1,)),
        ],
        [
            Refused(ShapeError, "f64[3]", axis=0, sizes=(4,), steps=(1,), dilations=(1,)),
            Refused(ShapeError, "f64[3]", axis=1, sizes=(1,), steps=(1,), dilations=(1,)),
            Refused(ShapeError, "f64[3]", axis=0, sizes=(2,), steps=(0,), dilations=(1,)),
            Refused(ShapeError, "f64[3]", axis=0, sizes=(2,), steps=(1, 1), dilations=(1,)),
        ],
        dtypes=EVERYTHING,
        reference=windows_by_indices,
    ),
    "overlap_add": Row(
        [
            Call("x[2,3]", axis=0, extents=(4,), steps=(1,), dilations=(1,)),
            Call("x[2,2,2,3]", axis=1, extents=(6,), steps=(2,), dilations=(2,)),
            Call("x[2,3,3,2,2]", axis=0, extents=(5, 4), steps=(1, 1), dilations=(2, 1)),
            Call("x[2,0,3,1]", axis=2, extents=(3,), steps=(1,), dilations=(1,)),
            Call("x[29,2]", axis=0, extents=(30,), steps=(1,), dilations=(1,)),
        ],
        [
            Refused(ShapeError, "f64[2,3]", axis=0, extents=(5,), steps=(1,), dilations=(1,)),
            Refused(ShapeError, "f64[2]", axis=0, extents=(3,), steps=(1,), dilations=(1,)),
            Refused(DTypeError, "bool[2,3]", axis=0, extents=(4,), steps=(1,), dilations=(1,)),
        ],
        dtypes=NUMBERS,
        reference=sums_of_windows,
    ),
    "gather": Row(
        [
            Call("x[4]", np.array(2), axis=0),
            Call("x[4]", np.array([3, 0, 3, -1]), axis=0),
            Call("x[2,3]", np.array([[2, 1], [0, 0]], np.int32), axis=1),
            Call("x[2,3]", np.array([1, 0, 1], np.uint8), np.array([2, 2, 0], np.uint64), axis=0),
            Call("x[2,3,4]", np.array([1, 1]), np.array([3, 3]), axis=1),
            Call("x[3,2]", np.array([], np.int64), axis=0),
            Call("x[2,0,3]", np.array([2, 0]), axis=2),
        ],
        [
            Refused(DTypeError, "f64[4]", "f64[2]", axis=0),
            Refused(ShapeError, "f64[4]", axis=0),
            Refused(ShapeError, "f64[4]", "i64[2]", axis=1),
            Refused(ShapeError, "f64[4]", "i64[2]", axis=-1),
            Refused(ShapeError, "f64[4]", "i64[2]", "i64[2]", axis=0),
            Refused(ShapeError, "f64[4,4]", "i64[2]", "i64[1]", axis=0),
        ],
        dtypes=EVERYTHING,
        reference=gather_by_loop,
    ),
    "placed": Row(
        [
            Call(
                "x[3]", "x[2]", "x[2]", shape=(3, 3), starts=(0, 1, 3), strides=((4,), (4,), (4,))
            ),
            Call("x[2,2]", "x[]", shape=(4, 3), starts=(1, 11), strides=((6, 1), ())),
            Call("x[2,3]", "x[2,0]", shape=(2, 2, 4), starts=(7, 0), strides=((-2,), (1,))),
            Call("x[2,1,2]", shape=(2, 5), starts=(1,), strides=((2, 3),)),
            Call("x[0,2]", shape=(0, 4), starts=(0,), strides=((2,),)),
        ],
        [
            Refused(ShapeError, shape=(3,), starts=(), strides=()),
            Refused(ShapeError, "f64[3]", shape=(3, 2), starts=(1, 2), strides=((1,),)),
            Refused(ShapeError, "f64[3]", shape=(3, 2), starts=(1,), strides=((3,),)),
            Refused(ShapeError, "f64[3]", shape=(3, 2), starts=(1,), strides=((-1,),)),
            Refused(ShapeError, "f64[2,3]", shape=(3, 9), starts=(1,), strides=((1,),)),
            Refused(
                DTypeError, "f64[3]", "f32[1]", shape=(9,), starts=(0, 8), strides=((1,), (1,))
            ),
        ],
        dtypes=EVERYTHING,
        reference=place_one_by_one,
    ),
    "scatter_add": Row(
        [
            Call("x[4]", "x[]", np.array(2), axis=0),
            Call("x[4]", "x[4]", np.array([3, 0, 3, -1]), axis=0),
            Call("x[2,3]", "x[2,2,2]", np.array([[2, 1], [0, 0]], np.int32), axis=1),
            Call("x[2,3]", "x[3]", np.array([1, 0, 1]), np.array([2, 2, 2], np.uint8), axis=0),
            Call("x[2,3,4]", "x[2,2]", np.array([1, 1]), np.array([3, 3]), axis=1),
            Call("x[3,2]", "x[0,2]", np.array([], np.int64), axis=0),
        ],
        [
            Refused(DTypeError, "f64[4]", "f64[2]", "f64[2]", axis=0),
            Refused(DTypeError, "f64[4]", "f32[2]", "i64[2]", axis=0),
            Refused(ShapeError, "f64[4]", "f64[3]", "i64[2]", axis=0),
            Refused(ShapeError, "f64[4]", "f64[2]", axis=0),
            Refused(ShapeError, "f64[4]", "f64[2]", "i64[2]", axis=1),
        ],
        dtypes=EVERYTHING,
        reference=scatter_by_loop,
    ),
    # Reductions and products.
    "reduce_sum": reduction(reference=lambda x, *, axes: np.add.reduce(x, axes)),
    "reduce_prod": reduction(
        reference=lambda x, *, axes: np.multiply.reduce(x, axes, dtype=x.dtype), domain=NONZERO
    ),
    "reduce_max": reduction(EVERYTHING, empty=False, analytic=extremum_of_complex(np.max)),
    "reduce_min": reduction(EVERYTHING, empty=False, analytic=extremum_of_complex(np.min)),
    "as_another": Row(
        [
            Call("x[]", "x[]", number=1),
            Call("x[2,3]", "x[2,3]", number=2),
            Call("x[0]", "x[0]", number=1),
        ],
        [
            Refused(ShapeError, "f64[3]", "f64[2]", number=1),
            Refused(DTypeError, "i64[3]", "i64[3]", number=1),
        ],
        reference=lambda z, x, *, number: z,
        analytic=lambda z, x, *, number: x,
    ),
    "steady": Row(
        [Call("x[]"), Call("x[2,3]"), Call("x[0]")],
        [Refused(DTypeError, "i64[3]")],
        reference=lambda z: z,
        analytic=lambda z: z.real + 0j,
    ),
    # Sums of squares that are fit to be used; `x` matters to derivatives only.
    "as_gamma_of": Row(
        [Call("x[]", "x[]"), Call("x[2,3]", "x[2,3]"), Call("x[0]", "x[0]")],
        [
            Refused(ShapeError, "f64[3]", "f64[2]"),
            Refused(ShapeError, "f32[3]", "f64[3]"),
            Refused(DTypeError, "i64[3]", "i64[3]"),
        ],
        domain=(((0.3, 4.0),),),
        reference=lambda z, a: z,
        analytic=lambda z, a: z.real + 1j * a.imag * gamma_slope(a.real, z.real),
    ),
    "as_softmax_of": Row(
        [
            Call("x[]", "x[]", axes=()),
            Call("x[3]", "x[3]", axes=(0,)),
            Call("x[2,3]", "x[2,3]", axes=(1,)),
            Call("x[2,3]", "x[2,3]", axes=(0, 1)),
            Call("x[2,3,5]", "x[2,3,5]", axes=(0, 2)),
            Call("x[2,0,3]", "x[2,0,3]", axes=(1,)),
        ],
        [
            Refused(ShapeError, "f64[3]", "f64[3]", axes=(1,)),
            Refused(ShapeError, "f64[3]", "f64[2]", axes=(0,)),
            Refused(ShapeError, "f64[3]", "f32[3]", axes=(0,)),
            Refused(DTypeError, "i64[3]", "i64[3]", axes=(0,)),
        ],
        reference=lambda z, x, *, axes: z,
        analytic=lambda z, x, *, axes: z.real * (x - np.sum(z.real * x, axis=axes, keepdims=True)),
    ),
    "root_of_squares": Row(
        [
            Call("x[]", "x[]", axes=(), divisor=1.0),
            Call("x[3]", "x[]", axes=(0,), divisor=1.0),
            Call("x[3]", "x[3]", axes=(), divisor=1.0),
            Call("x[2,3]", "x[3]", axes=(0,), divisor=2.0),
            Call("x[2,3]", "x[]", axes=(0, 1), divisor=5.0),
            Call("x[2,3,5]", "x[3]", axes=(0, 2), divisor=1.0),
            Call("x[2,0,3]", "x[0,3]", axes=(0,), divisor=1.0),
            Call("x[2,0,3]", "x[2]", axes=(1, 2), divisor=1.0),
        ],
        [
            Refused(ShapeError, "f64[3]", "f64[]", axes=(1,), divisor=1.0),
            Refused(ShapeError, "f64[3]", "f64[3]", axes=(0,), divisor=1.0),
            Refused(ShapeError, "f64[3]", "f32[]", axes=(0,), divisor=1.0),
            Refused(DTypeError, "i64[3]", "i64[]", axes=(0,), divisor=1.0),
        ],
        dtypes=FLOATS,
        domain=[REAL, POSITIVE],
        reference=lambda x, squares, *, axes, divisor: np.sqrt(squares / divisor),
        analytic=root_of_known_squares,
    ),
    "argmax": position(),
    "argmin": position(),
    "cumsum": Row(
        [
            Call("x[1]", axis=0, reverse=False),
            Call("x[4]", axis=0, reverse=True),
            Call("x[2,3]", axis=0, reverse=False),
            Call("x[2,3]", axis=1, reverse=True),
            Call("x[2,0,3]", axis=1, reverse=True),
        ],
        [
            Refused(ShapeError, "f64[]", axis=0, reverse=False),
            Refused(ShapeError, "f64[3]", axis=1, reverse=False),
            Refused(ShapeError, "f64[3]", axis=-1, reverse=False),
            Refused(DTypeError, "bool[3]", axis=0, reverse=False),
        ],
        dtypes=NUMBERS,
        reference=cumsum_by_matrix,
    ),
    "cumprod": along_axis(NUMBERS, reference=cumprod_by_loop),
    "cummax": along_axis(NUMBERS, reference=running_by_loop(max), analytic=DIFFERENCES),
    "cummin": along_axis(NUMBERS, reference=running_by_loop(min), analytic=DIFFERENCES),
    # Sorting and searching.
    "sort": along_axis(EVERYTHING, reference=sort_by_lists, analytic=sort_of_complex),
    "argsort": along_axis(EVERYTHING, reference=lambda x, *, axis: lines(positions, x, axis, int)),
    "reorder": Row(
        [
            Call("x[4]", np.array([2, 0, 3, 1]), axis=0),
            # Other places of these are permutations along the axis, too.
            Call("x[2,3]", np.array([[2, 1, 0], [2, 1, 0]]), axis=1),
            Call("x[3,2]", np.array([[0, 0], [1, 1], [2, 2]]), axis=0),
            Call("x[1]", np.array([0]), axis=0),
            Call("x[0]", np.array([], np.int64), axis=0),
        ],
        [
            Refused(ShapeError, "f64[3]", "i64[2]", axis=0),
            Refused(ShapeError, "f64[3]", "i64[3]", axis=1),
            Refused(DTypeError, "f64[3]", "i32[3]", axis=0),
        ],
        dtypes=EVERYTHING,
        reference=reorder_by_loop,
    ),
    "searchsorted": Row(
        [
            Call("x[4]", "x[3]", right=False),
            Call("x[4]", "x[2,3]", right=True),
            Call("x[6]", "x[]", right=True),
            Call("x[0]", "x[3]", right=False),
        ],
        [
            Refused(ShapeError, "f64[2,3]", "f64[3]", right=False),
            Refused(DTypeError, "f64[3]", "f32[3]", right=False),
        ],
        dtypes=EVERYTHING,
        reference=searchsorted_by_counting,
        made_fit=lambda i, x: np.sort(x) if i == 0 else x,
    ),
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
    # Systems of equations.
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
            Refused(ShapeError, "f64[3,3]", "f64[3,2]"),
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
            Refused(ShapeError, "f64[3,3]", "f64[3,2]"),
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
                ShapeError,
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
                ShapeError,
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
    "cond": Row(
        [
            Call(np.array(True), "f64[3]", "f64[3]", branches=(SINE, TWICE)),
            Call(np.array(False), "f64[3]", "f64[3]", branches=(SINE, TWICE)),
            Call(np.array(1), "f64[3]", "f64[3]", branches=(TWICE, SINE, ROOT)),
            Call(np.array(7), "f64[3]", "f64[3]", branches=(TWICE, SINE, ROOT)),
            Call(np.array(-1), "f64[3]", "f64[3]", branches=(TWICE,)),
        ],
        [
            Refused(DTypeError, "f64[]", "f64[3]", "f64[3]", branches=(SINE, TWICE)),
            Refused(DTypeError, "bool[1]", "f64[3]", "f64[3]", branches=(SINE, TWICE)),
            Refused(ShapeError, "bool[]", "f64[3]", "f64[3]", branches=(SINE, TWICE, ROOT)),
            Refused(ShapeError, "i64[]", "f64[3]", "f64[3]", branches=()),
            Refused(ShapeError, "i64[]", "f64[3]", "f64[2]", branches=(SINE, TWICE)),
            Refused(ShapeError, "i64[]", "f64[2]", branches=(SQUARED, SINE)),
        ],
        dtypes=("f64",),
        reference=cond_by_hand,
        analytic=DIFFERENCES,
    ),
    "scan": Row(
        [
            *[
                Call(
                    "f64[2,2]",
                    "f64[1,2]",
                    np.array(2),
                    f"f64[{length},1,2]",
                    **{**STEPPING, "length": length, "reverse": reverse},
                )
                for length, reverse in ((4, False), (3, True), (1, False), (0, False))
            ],
            Call(
                np.array(2),
                "f64[2,2]",
                "f64[1,2]",
                np.array(0),
                "f64[3,1,2]",
                **{**STEPPING, "counted": True},
            ),
            Call("f64[3,2]", **{**STEPPING, "body": SQUARED, "consts": 0, "carries": 0}),
        ],
        [
            Refused(ShapeError, "f64[2,2]", "f64[1,2]", "i64[]", "f64[2,1,2]", **STEPPING),
            Refused(ShapeError, "f64[2,2]", "f64[1,2]", "i64[]", "f64[]", **STEPPING),
            Refused(ShapeError, "f64[2,2]", "f64[1,2]", "f64[]", "f64[3,1,2]", **STEPPING),
            Refused(ShapeError, "f64[2,2]", **STEPPING),
            Refused(ShapeError, "f64[2]", **{**STEPPING, "body": SQUARED, "length": -1}),
        ],
        dtypes=("f64",),
        reference=scan_by_hand,
        analytic=DIFFERENCES,
    ),
    "checkpoint": Row(
        [Call("f64[3]", "f64[3]", body=body) for body in (TWICE, SINE, ROOT)],
        [
            Refused(ShapeError, "f64[3]", body=TWICE),
            Refused(ShapeError, "f64[3]", "f64[2]", body=TWICE),
        ],
        dtypes=("f64",),
        reference=checkpoint_by_hand,
        analytic=DIFFERENCES,
    ),
    "while_loop": Row(
        [
            Call("f64[]", "f64[]", np.array(1), test=test, body=body, consts=1, limit=limit)
            for test, body, limit in (
                (BELOW_FOUR, GROWING, 9),
                (BELOW_FOUR, GROWING, 2),
                (NEVER, GROWING, 3),
                (BELOW_FOUR, KEEPING, 6),
            )
        ],
        [
            Refused(ShapeError, *operands, test=test, body=body, consts=consts, limit=limit)
            for operands, test, body, consts, limit in (
                (("f64[]", "f64[]", "f64[]"), BELOW_FOUR, GROWING, 1, 9),
                (("f64[]", "f64[]", "i64[]"), GROWING, GROWING, 1, 9),
                (("f64[]", "f64[]", "i64[]"), BELOW_FOUR, GROWING, 0, 9),
                (("f64[]", "f64[]", "i64[]"), BELOW_FOUR, GROWING, 1, -1),
            )
        ],
        dtypes=("f64",),
        domain=[INSIDE],
        reference=while_by_hand,
        analytic=DIFFERENCES,
    ),
    "solution": Row(
        [
            Call("f64[2]", "f64[2]", **REPEATED),
            Call("f64[2]", "f64[2]", **{**REPEATED, "strict": False}),
            Call("f64[]", "f64[]", **NEWTON),
            Call("f64[]", "f64[]", **{**NEWTON, "method": "given", "step": BY_NEWTON}),
        ],
        [
            Refused(ArgumentError, "f64[2]", "f64[2]", **{**REPEATED, "method": "chance"}),
            Refused(ShapeError, "f64[2]", "f64[2]", **{**REPEATED, "consts": 2}),
            Refused(ShapeError, "f64[2]", "f64[2]", **{**REPEATED, "linear": 2}),
            Refused(ShapeError, "f64[2]", "f64[2]", **{**REPEATED, "limit": 0}),
            Refused(ShapeError, "f64[2]", "f64[2]", **{**REPEATED, "lead": 2}),
            Refused(ShapeError, "f64[2]", "f64[2]", **NEWTON),
            Refused(DTypeError, "f64[2]", "i64[2]", **REPEATED),
        ],
        dtypes=("f64",),
        domain=[((-0.7, 0.7),)],
        reference=solution_by_hand,
        analytic=DIFFERENCES,
    ),
}

# The same, and a few of their own, of complex numbers.

_NO_PARTS = [Refused(DTypeError, t) for t in ("f64[3]", "i64[3]", "bool[3]")]

ROWS |= {
    "real": Row([Call(f"c128[{s}]") for s in SHAPES], _NO_PARTS, reference=lambda z: z.real),
    "imag": Row([Call(f"c128[{s}]") for s in SHAPES], _NO_PARTS, reference=lambda z: z.imag),
    "conj": Row([Call(f"c128[{s}]") for s in SHAPES], _NO_PARTS,
                reference=lambda z: z.real - 1j * z.imag),
    "modulus": Row([Call(f"c128[{s}]") for s in SHAPES], _NO_PARTS,
                   reference=lambda z: np.hypot(z.real, z.imag)),
    "complex": Row(
        [Call(f"f64[{s}]", f"f64[{s}]") for s in SHAPES],
        [
            *(Refused(DTypeError, t, t) for t in ("f16[3]", "i64[3]", "bool[3]", "c128[3]")),
            Refused(DTypeError, "f64[3]", "f32[3]"),
            Refused(ShapeError, "f64[3]", "f64[1]"),
        ],
        reference=lambda x, y: x + 1j * y,
    ),
}  # fmt: skip

ROWS |= {
    "fft": Row(
        [
            *(Call("c128[5]", axes=(0,), inverse=i, norm="ortho") for i in (False, True)),
            Call("c128[2,4]", axes=(1,), inverse=True, norm="backward"),
            Call("c128[2,3,2]", axes=(0, 2), inverse=False, norm="forward"),
            Call("c128[0,2]", axes=(1,), inverse=False, norm="backward"),
        ],
        [
            Refused(DTypeError, "f64[3]", axes=(0,), inverse=False, norm="ortho"),
            Refused(ShapeError, "c128[3]", axes=(1,), inverse=False, norm="ortho"),
            Refused(ShapeError, "c128[3]", axes=(), inverse=False, norm="ortho"),
            Refused(ShapeError, "c128[0]", axes=(0,), inverse=False, norm="ortho"),
            Refused(ArgumentError, "c128[3]", axes=(0,), inverse=False, norm="both"),
        ],
        reference=complex_samples.transform_by_matrix,
    ),
    "rfft": Row(
        [
            Call("f64[5]", axis=0, norm="ortho"),
            Call("f64[2,4]", axis=1, norm="backward"),
            Call("f64[6,2]", axis=0, norm="forward"),
            Call("f64[1]", axis=0, norm="backward"),
        ],
        [
            Refused(DTypeError, "c128[3]", axis=0, norm="ortho"),
            Refused(DTypeError, "f16[3]", axis=0, norm="ortho"),
            Refused(ShapeError, "f64[0]", axis=0, norm="ortho"),
        ],
        reference=complex_samples.half_by_matrix,
        analytic=DIFFERENCES,
    ),
    "irfft": Row(
        [
            Call("c128[3]", n=5, axis=0, norm="ortho"),
            Call("c128[2,3]", n=4, axis=1, norm="backward"),
            Call("c128[1,2]", n=1, axis=0, norm="forward"),
        ],
        [
            Refused(DTypeError, "f64[3]", n=4, axis=0, norm="ortho"),
            Refused(ShapeError, "c128[3]", n=6, axis=0, norm="ortho"),
        ],
        reference=complex_samples.real_by_matrix,
    ),
}

for _name, _calls in complex_samples.CALLS.items():
    _more = [Call(*operands, **params) for operands, params in _calls]
    ROWS[_name] = replace(ROWS[_name], calls=[*ROWS[_name].calls, *_more])
for _name, _calls in complex_samples.REFUSED.items():
    _more = [Refused(DTypeError, *operands, **params) for operands, params in _calls]
    ROWS[_name] = replace(ROWS[_name], refused=[*ROWS[_name].refused, *_more])
