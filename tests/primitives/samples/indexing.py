"""Samples of the primitives of `primgraph.primitives.indexing`."""

from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from samples.rows import EVERYTHING, Call, Refused, Row


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


def place_one_by_one(*xs: np.ndarray, shape: Any, starts: Any, strides: Any) -> np.ndarray:
    result = np.zeros(shape, xs[0].dtype)
    for x, start, steps in zip(xs, starts, strides, strict=True):
        lead = x.ndim - len(steps)
        for index in np.ndindex(x.shape):
            place = start + sum(i * s for i, s in zip(index[lead:], steps, strict=True))
            result[(*index[:lead], *np.unravel_index(place, shape[lead:]))] = x[index]
    return result


ROWS: dict[str, Row] = {
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
}
