"""Samples of the primitives of `primgraph.primitives.shapes`."""

from itertools import pairwise
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from samples.rows import EVERYTHING, Call, Refused, Row


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


def broadcast_by_tiles(x: np.ndarray, *, shape: Any, new_axes: Any) -> np.ndarray:
    for axis in new_axes:
        x = np.repeat(np.expand_dims(x, axis), shape[axis], axis)
    return x


def concat_by_lists(*xs: np.ndarray, axis: int) -> np.ndarray:
    return np.stack([row for x in xs for row in np.moveaxis(x, axis, 0)], axis)


def split_by_take(x: np.ndarray, *, sizes: Any, axis: int) -> list[np.ndarray]:
    ends = np.cumsum([0, *sizes])
    return [np.take(x, np.arange(a, b), axis) for a, b in pairwise(ends)]


ROWS: dict[str, Row] = {
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
}
