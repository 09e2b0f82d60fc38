"""Samples of the primitives of `primgraph.primitives.reductions`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from samples.rows import (
    EVERYTHING,
    FLOATS,
    NONZERO,
    NUMBERS,
    POSITIVE,
    REAL,
    Call,
    Refused,
    Row,
    Union,
)


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


def root_of_known_squares(x: Any, squares: Any, *, axes: Any, divisor: float) -> Any:
    """The root of `squares`, moving as a sum of squares of `x` would."""
    total = np.real(squares) + 1j * np.imag(np.sum(x * x, axis=axes))
    return np.sqrt(total / divisor)


def cumsum_by_matrix(x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
    n = x.shape[axis]
    ones = np.tril(np.ones((n, n))) if not reverse else np.triu(np.ones((n, n)))
    return np.moveaxis(np.tensordot(ones, x, (1, axis)), 0, axis).astype(x.dtype)


def extremum_of_complex(real_extremum: Callable[..., Any]) -> Callable[..., Any]:
    """The element with the extreme real part; no two are equal in the samples."""

    def analytic(x: np.ndarray, *, axes: Any) -> np.ndarray:
        if x.size == 0:
            return real_extremum(x.real, axis=axes)
        best = x.real == real_extremum(x.real, axis=axes, keepdims=True)
        return np.sum(np.where(best, x, 0), axis=axes)

    return analytic


ROWS: dict[str, Row] = {
    "reduce_sum": reduction(reference=lambda x, *, axes: np.add.reduce(x, axes)),
    "reduce_prod": reduction(
        reference=lambda x, *, axes: np.multiply.reduce(x, axes, dtype=x.dtype), domain=NONZERO
    ),
    "reduce_max": reduction(EVERYTHING, empty=False, analytic=extremum_of_complex(np.max)),
    "reduce_min": reduction(EVERYTHING, empty=False, analytic=extremum_of_complex(np.min)),
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
}
