"""Primitives without operands that carry a tangent: constants, counters, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Value
from primgraph.ir.params import Array, bits
from primgraph.ir.primitive import Linear, Primitive, primitive
from primgraph.ir.types import BOOL, DType, Shape, TensorType, as_shape, check_axis, scalar_of


@primitive(impl=lambda *, value, shape, dtype: np.full(shape, value, dtype), literal=True, flops=0)
def full(*, value: float, shape: Shape, dtype: DType) -> TensorType:
    """An array with all elements equal to `value`, which is a scalar that `dtype` holds exactly."""
    if bits(value) != bits(scalar_of(value, dtype)):
        raise DTypeError(f"{value!r} is not a value of dtype {dtype}")
    return TensorType(as_shape(shape), dtype)


@primitive(impl=lambda *, size, shape, dtype: np.full(shape, size, dtype), literal=True, flops=0)
def extent(*, size: int, shape: Shape, dtype: DType) -> TensorType:
    """An array with all elements equal to an extent, which is known when arrays are fed.

    For given sizes it is `full`.
    """
    if dtype == BOOL:
        raise DTypeError(f"size {size} is a number, and no value of dtype bool")
    if type(size) is not Dim:
        scalar_of(size, dtype)
    return TensorType(as_shape(shape), dtype)


@primitive(impl=lambda *, value: value.data, literal=True, flops=0)
def constant(*, value: Array) -> TensorType:
    """The array `value`."""
    return value.type


@primitive(impl=lambda *, shape, axis, dtype: _iota(shape, axis, dtype), literal=True, flops=0)
def iota(*, shape: Shape, axis: int, dtype: DType) -> TensorType:
    """Each element is its own index along `axis`."""
    result = TensorType(as_shape(shape), dtype)
    check_axis("iota", axis, result)
    if dtype == BOOL:
        raise DTypeError("iota counts in a numeric dtype, not in bool")
    return result


@primitive(
    impl=lambda key, *, shape, dtype, low, high: np.minimum(
        _each_key(key, shape, dtype, lambda rng: low + (high - low) * rng.random(shape)),
        np.nextafter(dtype.type(high), dtype.type(low)),
    ),
    random=True,
    flops=8,
)
def random_uniform(
    key: TensorType, *, shape: Shape, dtype: DType, low: float, high: float
) -> TensorType:
    """Uniform numbers in [low, high), a function of the integer `key` alone (Philox counter)."""
    _require_key("random_uniform", key)
    if dtype.kind != "f":
        raise DTypeError(f"random_uniform makes floats, not {dtype}")
    return TensorType(key.shape + as_shape(shape), dtype)


@primitive(
    impl=lambda key, *, shape, p: _each_key(key, shape, BOOL, lambda rng: rng.random(shape) < p),
    random=True,
    flops=8,
)
def random_bernoulli(key: TensorType, *, shape: Shape, p: float) -> TensorType:
    """True with probability `p`, a function of the integer `key` alone."""
    _require_key("random_bernoulli", key)
    if not 0.0 <= p <= 1.0:
        raise ShapeError(f"a probability lies between 0 and 1, not {p}")
    return TensorType(key.shape + as_shape(shape), BOOL)


for _op in (random_uniform, random_bernoulli):
    _op.opaque("any bit of the key may change any number that is drawn")


@random_uniform.batch
def _random_uniform_batch(batched: tuple[bool, ...], key: Value, **params: Any) -> Value:
    """Extents of `key` lead those of the result, so one more leading axis needs nothing."""
    return random_uniform(key, **params)


@random_bernoulli.batch
def _random_bernoulli_batch(batched: tuple[bool, ...], key: Value, **params: Any) -> Value:
    return random_bernoulli(key, **params)


def filled(value: Any, type: TensorType) -> Value:
    """A constant of that type with all elements equal to `value`, rounded to its dtype."""
    if isinstance(value, Dim):
        return extent(size=value, shape=type.shape, dtype=type.dtype)
    number = scalar_of(value, type.dtype)
    return full(value=number, shape=type.shape, dtype=type.dtype)


def zeros_like(value: Value | Linear) -> Value:
    """Zeros of the same type."""
    return filled(0, value.type)


def uniform_scalar(array: np.ndarray[Any, Any]) -> bool | int | float | None:
    """The scalar that all elements equal bit by bit, if there is one that text can write."""
    if array.size == 0:
        return None
    first = array.reshape(-1)[:1]
    scalar: bool | int | float = first.item()
    rewritten = np.full(1, scalar, array.dtype)
    if scalar != scalar:
        rewritten = np.full(1, np.nan, array.dtype)
    if rewritten.tobytes() != first.tobytes():
        return None
    return scalar if array.tobytes() == first.tobytes() * array.size else None


def constant_op(array: np.ndarray[Any, Any]) -> tuple[Primitive[Value], dict[str, Any]]:
    """The primitive and parameters that stand for `array`: `full` if all elements are equal."""
    scalar = uniform_scalar(array)
    if scalar is None:
        return constant, {"value": Array(array)}
    return full, {"value": scalar, "shape": array.shape, "dtype": array.dtype}


def _iota(shape: Shape, axis: int, dtype: DType) -> np.ndarray[Any, Any]:
    column = [1] * len(shape)
    column[axis] = shape[axis]
    count = np.arange(shape[axis]).astype(dtype).reshape(column)
    return np.array(np.broadcast_to(count, shape))


def iota_shape(shape: Shape, axis: int) -> Shape:
    """The shape of the count before it is repeated along the other axes."""
    return (shape[axis], *(1 for _ in shape[axis + 1 :]))


def _require_key(name: str, key: TensorType) -> None:
    if key.dtype.kind not in "iu":
        raise DTypeError(f"the key of {name} is an integer, not {key}")


def _each_key(key: Any, shape: Shape, dtype: DType, draw: Any) -> np.ndarray[Any, Any]:
    """One independent draw for each element of `key`."""
    keys = np.asarray(key)
    draws = [
        draw(np.random.Generator(np.random.Philox(key=int(k) % 2**64))) for k in keys.reshape(-1)
    ]
    return np.array(draws, dtype).reshape(keys.shape + shape)
