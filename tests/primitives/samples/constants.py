"""Samples of the primitives of `primgraph.primitives.constants`."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.params import Array
from primgraph.ir.types import BOOL, FLOAT32, FLOAT64, INT64
from samples.rows import INTS, Call, Refused, Row


def each_sample(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """`function(n, **params)` for every element `n` of the key."""

    def reference(key: np.ndarray, *, shape: tuple[int, ...], **params: Any) -> np.ndarray:
        rows = [function(int(n), shape, **params) for n in key.reshape(-1)]
        return np.array(rows).reshape(key.shape + shape)

    return reference


def philox(key: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.Generator(np.random.Philox(key=key % 2**64)).random(shape)


ROWS: dict[str, Row] = {
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
}
