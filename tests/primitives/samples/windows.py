"""Samples of the primitives of `primgraph.primitives.windows`."""

import math
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from samples.rows import EVERYTHING, NUMBERS, Call, Refused, Row


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


ROWS: dict[str, Row] = {
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
}
