"""Primitives whose operands carry no tangent: constants, index arrays, random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.dims import Dim, bounds
from primgraph.ir.facts.matrices import (
    DEFINITE,
    DIAGONAL,
    NOTHING,
    POSITIVE,
    STRUCTURE,
    Definition,
    Structure,
)
from primgraph.ir.facts.ranges import RANGE, Range, array_range
from primgraph.ir.graph import ARRAY, COUNTED, NUMBER, SIZE, Equation, Value
from primgraph.ir.params import Array, bits
from primgraph.ir.primitive import Linear, Primitive, primitive
from primgraph.ir.types import BOOL, DType, Shape, TensorType, as_shape, check_axis, scalar_of


@primitive(impl=lambda *, value, shape, dtype: np.full(shape, value, dtype), literal=True, flops=0)
def full(*, value: float, shape: Shape, dtype: DType) -> TensorType:
    """Return an array filled with `value`, a scalar that `dtype` represents exactly."""
    if bits(value) != bits(scalar_of(value, dtype)):
        raise DTypeError(f"{value!r} is not a value of dtype {dtype}")
    return TensorType(as_shape(shape), dtype)


full.declare(RANGE, lambda *, value, shape, dtype: array_range(np.asarray(value)))


@primitive(impl=lambda *, size, shape, dtype: np.full(shape, size, dtype), literal=True, flops=0)
def extent(*, size: int, shape: Shape, dtype: DType) -> TensorType:
    """Return an array filled with a symbolic size, whose value is known at run time.

    For a concrete size this is `full`.
    """
    if dtype == BOOL:
        raise DTypeError(f"size {size} is a number, and no value of dtype bool")
    if type(size) is not Dim:
        scalar_of(size, dtype)
    return TensorType(as_shape(shape), dtype)


extent.declare(RANGE, lambda *, size, shape, dtype: Range(*bounds(size)))


@primitive(impl=lambda *, value: value.data, literal=True, flops=0)
def constant(*, value: Array) -> TensorType:
    """Return the array `value`, embedded in the graph."""
    return value.type


constant.declare(RANGE, lambda *, value: array_range(value.data))


@primitive(impl=lambda *, shape, axis, dtype: _iota(shape, axis, dtype), literal=True, flops=0)
def iota(*, shape: Shape, axis: int, dtype: DType) -> TensorType:
    """Return an array whose elements are their own indices along `axis`."""
    result = TensorType(as_shape(shape), dtype)
    check_axis("iota", axis, result)
    if dtype == BOOL:
        raise DTypeError("iota counts in a numeric dtype, not in bool")
    return result


full.declare(NUMBER, "value")
extent.declare(SIZE, "size")
constant.declare(ARRAY, "value")
iota.declare(COUNTED, "axis")


@full.declares(STRUCTURE)
def _full_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    value = eqn.kwargs["value"]
    sign = POSITIVE if value > 0 else Structure.NOT_NEGATIVE if value >= 0 else NOTHING
    shape = eqn.output.shape
    return sign | (Structure.SYMMETRIC if len(shape) > 1 and shape[-1] == shape[-2] else NOTHING)


# Larger constants are not inspected.
_LARGEST = 4096


@constant.declares(STRUCTURE)
def _constant_structure(eqn: Equation, definition: Definition, *facts: Structure) -> Structure:
    data = eqn.kwargs["value"].data
    if data.dtype.kind != "f" or data.size > _LARGEST or not data.size:
        return NOTHING
    found = POSITIVE if np.all(data > 0) else NOTHING
    if np.all(data >= 0):
        found |= Structure.NOT_NEGATIVE
    if data.ndim < 2 or data.shape[-1] != data.shape[-2]:
        return found
    if np.array_equal(data, np.tril(data)):
        found |= Structure.LOWER
    if np.array_equal(data, np.triu(data)):
        found |= Structure.UPPER
    if np.array_equal(data, np.swapaxes(data, -1, -2)):
        found |= Structure.SYMMETRIC
    if DIAGONAL in found and np.all(np.diagonal(data, 0, -2, -1) > 0):
        found |= DEFINITE
    return found


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
    """Return uniform numbers in [low, high), a function of the integer `key` (Philox counter)."""
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
    """Return booleans that are True with probability `p`, determined by the integer `key` alone."""
    _require_key("random_bernoulli", key)
    if not 0.0 <= p <= 1.0:
        raise ShapeError(f"a probability lies between 0 and 1, not {p}")
    return TensorType(key.shape + as_shape(shape), BOOL)


random_uniform.declare(RANGE, lambda key, *, shape, dtype, low, high: Range(low, high))

for _op in (random_uniform, random_bernoulli):
    _op.opaque("any bit of the key may change any number that is drawn")


@random_uniform.batch
def _random_uniform_batch(batched: tuple[bool, ...], key: Value, **params: Any) -> Value:
    """Return one draw per key; the axes of `key` lead, so a batch axis needs no change."""
    return random_uniform(key, **params)


@random_bernoulli.batch
def _random_bernoulli_batch(batched: tuple[bool, ...], key: Value, **params: Any) -> Value:
    return random_bernoulli(key, **params)


def filled_constant(value: Any, type: TensorType) -> Value:
    """Return a constant of the given type filled with `value`, rounded to its dtype."""
    if isinstance(value, Dim):
        return extent(size=value, shape=type.shape, dtype=type.dtype)
    number = scalar_of(value, type.dtype)
    return full(value=number, shape=type.shape, dtype=type.dtype)


def zeros_like(value: Value | Linear) -> Value:
    """Return zeros of the type of `value`.

    >>> from primgraph.extend import Builder, TensorType, zeros_like
    >>> builder = Builder("f")
    >>> x = builder.input(TensorType((2, 3), np.dtype("float64")), "x")
    >>> with builder:
    ...     print(zeros_like(x).type)
    f64[2,3]
    """
    return filled_constant(0, value.type)


def uniform_scalar(array: np.ndarray[Any, Any]) -> bool | int | float | None:
    """Return the scalar that all elements equal bitwise, or None (also if text cannot write it)."""
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


def constant_op(
    array: np.ndarray[Any, Any], name: Callable[[], str] = str
) -> tuple[Primitive[Value], dict[str, Any]]:
    """Return the primitive and parameters that produce `array`: `full` for equal elements.

    `name()` returns the user's name of the array.
    """
    scalar = uniform_scalar(array)
    if scalar is None:
        return constant, {"value": Array(array, name())}
    return full, {"value": scalar, "shape": array.shape, "dtype": array.dtype}


def _iota(shape: Shape, axis: int, dtype: DType) -> np.ndarray[Any, Any]:
    column = [1] * len(shape)
    column[axis] = shape[axis]
    count = np.arange(shape[axis]).astype(dtype).reshape(column)
    return np.array(np.broadcast_to(count, shape))


def _require_key(name: str, key: TensorType) -> None:
    if key.dtype.kind not in "iu":
        raise DTypeError(f"the key of {name} is an integer, not {key}")


def _each_key(key: Any, shape: Shape, dtype: DType, draw: Any) -> np.ndarray[Any, Any]:
    """Return one independent draw per element of `key`."""
    keys = np.asarray(key)
    draws = [
        draw(np.random.Generator(np.random.Philox(key=int(k) % 2**64))) for k in keys.reshape(-1)
    ]
    return np.array(draws, dtype).reshape(keys.shape + shape)
