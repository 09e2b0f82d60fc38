"""Mantissa, exponent and neighbours of floats."""

from __future__ import annotations

import math

import numpy as np

from primgraph.errors import DTypeError
from primgraph.operators.call import public
from primgraph.operators.elementwise.arithmetic import abs, floor, minimum
from primgraph.operators.elementwise.elementary import exp2, log2
from primgraph.operators.elementwise.logic import (
    equal,
    greater_equal,
    isfinite,
    isinf,
    less,
    logical_and,
    logical_or,
    not_equal,
    where,
)
from primgraph.operators.elementwise.rounding import copysign
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import (
    convert_dtype,
    inexact_dtype,
    lift,
    promote_operands,
    ufunc_dtypes,
)
from primgraph.operators.shape.creation import astype, stop_gradient
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import bits


@public
def nextafter(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return the float next to `x1` in the direction of `x2`, with its slope unless they are equal.

    Raises `ShapeError` if the shapes do not broadcast.

    >>> pg.nextafter(1.0, 2.0) > 1.0
    tensor(True, dtype=bool)
    """
    dtype = ufunc_dtypes(np.nextafter, x1, x2)[-1]
    x, y = promote_operands(x1, x2, dtype=dtype, name="nextafter")
    after = emit(bits.nextafter, x, y)
    ends = logical_or(equal(x, y), logical_or(isinf(x), isinf(after)))
    return where(ends, after, x + stop_gradient(where(ends, 0.0, after - x)))


@public
def spacing(x: ArrayLike) -> Variable:
    """Return the distance to the next float away from zero, with the sign of `x`; it has no slope.

    >>> pg.spacing(1.0) == np.spacing(1.0)
    tensor(True, dtype=bool)
    """
    value = lift(x)
    value = stop_gradient(convert_dtype(value, inexact_dtype(value)))
    size = abs(value)
    up = emit(bits.nextafter, size, lift(np.full(value.shape, math.inf, value.dtype)))
    gap = where(isfinite(size), up - size, math.nan)
    return where(equal(value, 0), gap, copysign(gap, value))


@public
def frexp(x: ArrayLike) -> tuple[Variable, Variable]:
    """Return numbers of a size from 0.5 up to 1, and integers as int32, with `x = m * 2**e`.

    Zeros, infinities and NaN stay as they are, with exponent 0. The derivative of the mantissa is
    that of `x` times `2**-e`. Raises `DTypeError` for float16.

    >>> pg.frexp(6.0)
    (tensor(0.75), tensor(3, dtype=int32))
    """
    value = lift(x)
    value = convert_dtype(value, inexact_dtype(value))
    if value.dtype.itemsize < 4:
        raise DTypeError(f"frexp takes float32 and float64, not {value.type}")
    is_plain = logical_and(isfinite(value), not_equal(value, 0))
    size = stop_gradient(where(is_plain, abs(value), 1.0))
    # The logarithm may be rounded over a power of two, which is corrected afterwards.
    exponent = floor(log2(size)) + 1.0
    part = _scale_by_power_of_two(size, exponent)
    exponent = where(greater_equal(part, 1.0), exponent + 1.0, exponent)
    exponent = where(less(part, 0.5), exponent - 1.0, exponent)
    mantissa = where(is_plain, _scale_by_power_of_two(value, exponent), value)
    return mantissa, astype(where(is_plain, exponent, 0.0), np.int32)


def _scale_by_power_of_two(x: Variable, exponent: Variable) -> Variable:
    """Return `x * 2**-exponent`, in two steps, as a single power of two may overflow."""
    first = minimum(-exponent, 64.0)
    return x * exp2(first) * exp2(-exponent - first)
