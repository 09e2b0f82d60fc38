"""Samples of the primitives of `primgraph.primitives.sorting`."""

from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from samples.rows import EVERYTHING, Call, Refused, Row, along_axis, lines


def positions(line: list[Any]) -> list[int]:
    return sorted(range(len(line)), key=lambda i: line[i])


def sort_by_lists(x: np.ndarray, *, axis: int) -> np.ndarray:
    return lines(sorted, x, axis)


def sort_of_complex(x: np.ndarray, *, axis: int) -> np.ndarray:
    """By real parts; no two are equal in the samples."""
    return np.take_along_axis(x, np.argsort(x.real, axis), axis)


def reorder_by_loop(x: np.ndarray, index: np.ndarray, *, axis: int) -> np.ndarray:
    result = np.empty_like(x)
    for place in np.ndindex(x.shape):
        source = tuple(int(index[place]) if i == axis else n for i, n in enumerate(place))
        result[place] = x[source]
    return result


def reorder_back_by_loop(x: np.ndarray, index: np.ndarray, *, axis: int) -> np.ndarray:
    return reorder_by_loop(x, np.argsort(index, axis), axis=axis)


def searchsorted_by_counting(a: np.ndarray, v: np.ndarray, *, right: bool) -> np.ndarray:
    smaller = a <= np.asarray(v)[..., None] if right else a < np.asarray(v)[..., None]
    return np.sum(smaller, -1)


REORDERED = [
    Call("x[4]", np.array([2, 0, 3, 1]), axis=0),
    # Other places of these are permutations along the axis, too.
    Call("x[2,3]", np.array([[2, 1, 0], [2, 1, 0]]), axis=1),
    Call("x[3,2]", np.array([[0, 0], [1, 1], [2, 2]]), axis=0),
    Call("x[1]", np.array([0]), axis=0),
    Call("x[0]", np.array([], np.int64), axis=0),
]
UNFIT = [
    Refused(ShapeError, "f64[3]", "i64[2]", axis=0),
    Refused(ShapeError, "f64[3]", "i64[3]", axis=1),
    Refused(DTypeError, "f64[3]", "i32[3]", axis=0),
]

ROWS: dict[str, Row] = {
    "sort": along_axis(EVERYTHING, reference=sort_by_lists, analytic=sort_of_complex),
    "argsort": along_axis(EVERYTHING, reference=lambda x, *, axis: lines(positions, x, axis, int)),
    "reorder": Row(REORDERED, UNFIT, dtypes=EVERYTHING, reference=reorder_by_loop),
    "reorder_back": Row(REORDERED, UNFIT, dtypes=EVERYTHING, reference=reorder_back_by_loop),
    "sort_by": Row(
        [
            Call(np.array([0.3, -1.2, 0.9, 0.1]), np.array([1, 3, 0, 2]), axis=0),
            Call(np.array([[0.3, -1.2, 0.9]] * 2), np.array([[1, 0, 2]] * 2), axis=1),
            Call(np.array([[0.3, 2.0], [0.1, 4.0]]), np.array([[1, 0], [0, 1]]), axis=0),
            Call("x[0]", np.array([], np.int64), axis=0),
        ],
        UNFIT,
        dtypes=("f64",),
        reference=lambda x, order, *, axis: reorder_by_loop(x, order, axis=axis),
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
}
