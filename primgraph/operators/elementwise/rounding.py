"""Elementwise NumPy functions composed of others: parts, signs, comparisons."""

from __future__ import annotations

import math

import numpy as np

from primgraph.ir.types import BOOL, FLOAT32, FLOAT64, INT64
from primgraph.operators.call import namespace_operator, public
from primgraph.operators.elementwise.arithmetic import (
    abs,
    ceil,
    clip,
    floor,
    floor_divide,
    logaddexp,
    maximum,
    minimum,
    multiply,
    power,
    remainder,
    round,
)
from primgraph.operators.elementwise.elementary import exp2, sin
from primgraph.operators.elementwise.logic import (
    equal,
    isfinite,
    isinf,
    isnan,
    less,
    logical_and,
    logical_or,
    not_equal,
    where,
)
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import (
    broadcasts_to,
    convert_dtype,
    fractional,
    inexact_dtype,
    lift,
    promote_operands,
    require_flag,
    require_number,
    type_of,
    ufunc_dtypes,
)
from primgraph.operators.reduce.reductions import all
from primgraph.operators.reduce.statistics import norm
from primgraph.operators.shape.creation import full, stop_gradient
from primgraph.operators.shape.joining import stack
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import elementwise as p
from primgraph.primitives import parts

# Below this, sin(y) / y is its series up to the tenth power, to the last bit.
_SMALL = 0.1


def _both(name: str, ufunc: np.ufunc, x1: ArrayLike, x2: ArrayLike) -> list[Variable]:
    """Promote the operands like NumPy's function of that name."""
    return promote_operands(x1, x2, dtype=ufunc_dtypes(ufunc, x1, x2)[0], name=name)


def _lift_as_float(ufunc: np.ufunc, x: ArrayLike) -> Variable:
    return lift(x, ufunc_dtypes(ufunc, x)[0])


def _size_of(x: Variable) -> Variable:
    """Return the absolute value, with derivative 1 at 0."""
    return where(less(x, 0), -x, x)


@public
def hypot(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Compute `sqrt(x1**2 + x2**2)`, without overflow; slope 0 at the origin, as `norm` has.

    >>> pg.hypot(3.0, 4.0)
    tensor(5.)
    """
    x, y = _both("hypot", np.hypot, x1, x2)
    return where(logical_or(isinf(x), isinf(y)), math.inf, norm(stack([x, y]), axis=0))


@public
def cbrt(x: ArrayLike) -> Variable:
    """Return the real cube root. Its slope is infinite at 0.

    >>> pg.cbrt(27.0)
    tensor(3.)
    """
    value = _lift_as_float(np.cbrt, x)
    size = _size_of(value)
    root = power(size, 1 / 3)
    ordinary = logical_and(isfinite(value), size > 0)
    start = where(ordinary, root, 1.0)
    # A Newton step corrects the error of the rounded exponent.
    step = (start - where(ordinary, size, 1.0) / (start * start)) / 3.0
    root = root - stop_gradient(where(ordinary, step, 0.0))
    return where(less(value, 0), -root, root)


@public
def fmod(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Compute the remainder `x1 - trunc(x1 / x2) * x2`, with the sign of `x1`.

    >>> pg.fmod(-7.0, 3.0)
    tensor(-1.)
    """
    x, y = _both("fmod", np.fmod, x1, x2)
    if x.dtype.kind in "ub":
        return remainder(x, y)
    if x.dtype.kind == "i":
        # The smallest integer has no absolute value.
        left = remainder(x, y)
        turned = logical_and(not_equal(left, 0), not_equal(less(x, 0), less(left, 0)))
        return where(turned, left - y, left)
    left = remainder(_size_of(x), abs(y))
    return where(less(x, 0), -left, left)


@public
def fmax(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return the larger of two elements; of a NaN and a number the number.

    >>> pg.fmax([1.0, np.nan], [0.0, 2.0])
    tensor([1., 2.])
    """
    x, y = _both("fmax", np.fmax, x1, x2)
    return where(isnan(y), x, where(isnan(x), y, maximum(x, y)))


@public
def fmin(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return the smaller of two elements; of a NaN and a number the number.

    >>> pg.fmin([1.0, np.nan], [0.0, 2.0])
    tensor([0., 2.])
    """
    x, y = _both("fmin", np.fmin, x1, x2)
    return where(isnan(y), x, where(isnan(x), y, minimum(x, y)))


@public
def heaviside(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return 0 below zero, 1 above, and `x2` at zero; NaN for NaN.

    >>> pg.heaviside([-1.0, 0.0, 1.0], 0.5)
    tensor([0. , 0.5, 1. ])
    """
    x, y = _both("heaviside", np.heaviside, x1, x2)
    return where(isnan(x), x, where(equal(x, 0), y, where(less(x, 0), lift(0.0, x.dtype), 1.0)))


@public
def signbit(x: ArrayLike) -> Variable:
    """Return whether elements are negative, -0.0 included; of a NaN it is false.

    >>> pg.signbit([-1.0, 1.0])
    tensor([ True, False], dtype=bool)
    """
    value = lift(x)
    if value.dtype.kind == "f":
        # The angle of the point (-1, -0.0) is -pi.
        return less(emit(p.arctan2, *promote_operands(value, -1.0)), 0)
    ufunc_dtypes(np.signbit, value)
    return less(value, 0) if value.dtype.kind == "i" else full(value.shape, False, BOOL)


@public
def copysign(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return the size of `x1` with the sign of `x2`, whose -0.0 counts as negative.

    >>> pg.copysign([1.0, 2.0], [-1.0, 1.0])
    tensor([-1.,  2.])
    """
    x, y = _both("copysign", np.copysign, x1, x2)
    size = abs(x)
    return where(signbit(y), -size, size)


@public
def trunc(x: ArrayLike) -> Variable:
    """Return elements rounded towards zero; the derivative is zero. Integers stay as they are.

    >>> pg.trunc([-1.7, 1.7])
    tensor([-1.,  1.])
    """
    value = lift(x)
    if value.dtype.kind != "f":
        ufunc_dtypes(np.trunc, value)
        return value
    return where(less(value, 0), ceil(value), floor(value))


@namespace_operator
def rint(x: ArrayLike) -> Variable:
    """Round `x` to the nearest integer, halves to even, in floats like `np.rint`."""
    return round(lift(x, inexact_dtype(x)))


@public
def fix(x: ArrayLike) -> Variable:
    """Return elements rounded towards zero, as `trunc` rounds them.

    >>> pg.fix([-1.7, 1.7])
    tensor([-1.,  1.])
    """
    return trunc(x)


@public
def fabs(x: ArrayLike) -> Variable:
    """Compute the absolute value as a float, with derivative 0 at 0.

    >>> pg.fabs([-1.0, 2.0])
    tensor([1., 2.])
    """
    return abs(_lift_as_float(np.fabs, x))


@public
def deg2rad(x: ArrayLike) -> Variable:
    """Convert degrees to radians.

    >>> pg.deg2rad(0.0)
    tensor(0.)
    """
    return multiply(_lift_as_float(np.deg2rad, x), math.pi / 180)


@public
def rad2deg(x: ArrayLike) -> Variable:
    """Convert radians to degrees.

    >>> pg.rad2deg(np.pi)
    tensor(180.)
    """
    return multiply(_lift_as_float(np.rad2deg, x), 180 / math.pi)


@public
def logaddexp2(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Compute `log2(2**x1 + 2**x2)`, without overflow.

    >>> pg.logaddexp2(3.0, 3.0)
    tensor(4.)
    """
    x, y = _both("logaddexp2", np.logaddexp2, x1, x2)
    return logaddexp(x * math.log(2), y * math.log(2)) / math.log(2)


@public
def float_power(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return `x1` to the power `x2` in float64, negative whole exponents of integers included.

    With complex operands it is in complex128.

    >>> pg.float_power([2, 3], 2)
    tensor([4., 9.])
    """
    dtype = ufunc_dtypes(np.float_power, x1, x2)[-1]
    base = convert_dtype(lift(x1), dtype)
    exponent = x2 if isinstance(x2, int | float) else convert_dtype(lift(x2), dtype)
    return power(base, exponent)


@public
def divmod(x1: ArrayLike, x2: ArrayLike) -> tuple[Variable, Variable]:
    """Compute quotients rounded down and remainders: `floor_divide` and `remainder`.

    >>> pg.divmod(7, 3)
    (tensor(2, dtype=int64), tensor(1, dtype=int64))
    """
    return floor_divide(x1, x2), remainder(x1, x2)


@public
def modf(x: ArrayLike) -> tuple[Variable, Variable]:
    """Return the fractional and integral parts, both with the sign of `x`.

    >>> pg.modf(1.5)
    (tensor(0.5), tensor(1.))
    """
    value = _lift_as_float(np.modf, x)
    whole = trunc(value)
    left = where(isinf(value), 0.0, value - whole)
    return left, whole


@public
def ldexp(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Compute `x1 * 2**x2`, with integers as `x2`, rounded once.

    The factor is applied as three powers of two, none of which over- or underflows unless the
    result does.

    >>> pg.ldexp(3.0, 2)
    tensor(12.)
    """
    dtype = inexact_dtype(x1)
    if inexact_dtype(x1, x2).kind == "c":
        ufunc_dtypes(np.ldexp, x1, x2)
    if lift(x2).dtype.kind == "f":
        x, exponent = promote_operands(
            x1, convert_dtype(lift(x2), dtype), dtype=dtype, name="ldexp"
        )
        return x * exp2(exponent)
    wide = dtype if dtype.itemsize > 2 else FLOAT32
    info = np.finfo(wide)
    least, most = int(info.minexp), int(info.maxexp) - 1
    # Scale down in steps that leave room for all digits, so that only the last one rounds.
    step = least + int(info.nmant) + 1
    limit = 3 * most
    given = convert_dtype(lift(x2), INT64) if lift(x2).dtype != np.uint64 else minimum(x2, limit)
    left = clip(convert_dtype(given, INT64), -limit, limit)
    x, left = promote_operands(
        convert_dtype(lift(x1, dtype), wide), convert_dtype(left, wide), name="ldexp"
    )
    for _ in range(2):
        power_of = where(less(left, least), float(step), minimum(left, float(most)))
        x, left = x * exp2(power_of), left - power_of
    found = x * exp2(clip(left, float(least), float(most)))
    return convert_dtype(found, dtype)


@public
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Variable:
    """Replace what is not finite in `x`: NaN by `nan`, infinities by the largest floats.

    Replaced elements have no derivative. `copy` has no effect, as values are immutable.

    >>> pg.nan_to_num([1.0, np.nan])
    tensor([1., 0.])
    """
    value = lift(x)
    if value.type.is_complex:
        halves = [emit(part, value) for part in (parts.real, parts.imag)]
        return emit(parts.complex_, *[nan_to_num(v, copy, nan, posinf, neginf) for v in halves])
    if value.dtype.kind != "f":
        return value
    limits = np.finfo(value.dtype)
    high = float(limits.max) if posinf is None else require_number("posinf", posinf)
    low = float(limits.min) if neginf is None else require_number("neginf", neginf)
    found = where(isnan(value), require_number("nan", nan), value)
    found = where(isposinf(value), high, found)
    return where(isneginf(value), low, found)


@public
def isposinf(x: ArrayLike) -> Variable:
    """Return whether elements are infinite and positive.

    >>> pg.isposinf([-np.inf, np.inf])
    tensor([False,  True], dtype=bool)
    """
    return logical_and(isinf(x), lift(x) > 0)


@public
def isneginf(x: ArrayLike) -> Variable:
    """Return whether elements are infinite and negative.

    >>> pg.isneginf([-np.inf, np.inf])
    tensor([ True, False], dtype=bool)
    """
    return logical_and(isinf(x), lift(x) < 0)


@public
def isclose(
    x1: ArrayLike,
    x2: ArrayLike,
    rtol: ArrayLike = 1e-5,
    atol: ArrayLike = 1e-8,
    equal_nan: bool = False,
) -> Variable:
    """Return whether `abs(x1 - x2) <= atol + rtol * abs(x2)`; equal infinities are close.

    Two NaNs are not close, unless `equal_nan`.

    >>> pg.isclose([1.0, 2.0], [1.0, 2.1])
    tensor([ True, False], dtype=bool)
    """
    x, y = promote_operands(x1, x2, name="isclose")
    if not x.type.is_inexact:
        x, y = convert_dtype(x, FLOAT64), convert_dtype(y, FLOAT64)
    near = abs(x - y) <= lift(atol) + lift(rtol) * abs(y)
    near = logical_or(logical_and(near, isfinite(y)), equal(x, y))
    if require_flag("equal_nan", equal_nan):
        near = logical_or(near, logical_and(isnan(x), isnan(y)))
    return near


@public
def allclose(
    x1: ArrayLike,
    x2: ArrayLike,
    rtol: ArrayLike = 1e-5,
    atol: ArrayLike = 1e-8,
    equal_nan: bool = False,
) -> Variable:
    """Return whether all elements of two arrays are close to each other; see `isclose`.

    >>> pg.allclose([1.0], [1.0 + 1e-9])
    tensor(True, dtype=bool)
    """
    return all(isclose(x1, x2, rtol, atol, equal_nan))


@public
def array_equal(x1: ArrayLike, x2: ArrayLike, equal_nan: bool = False) -> Variable:
    """Return whether two arrays have one shape and equal elements, as a 0-d boolean.

    >>> pg.array_equal([1.0, 2.0], [1.0, 2.0])
    tensor(True, dtype=bool)
    """
    if type_of(x1).shape != type_of(x2).shape:
        return full((), False, BOOL)
    same = equal(x1, x2)
    if require_flag("equal_nan", equal_nan):
        same = logical_or(same, logical_and(isnan(x1), isnan(x2)))
    return all(same)


@public
def array_equiv(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return whether two arrays are equal where one is broadcast to the other, as a 0-d boolean.

    >>> pg.array_equiv([1.0, 1.0], 1.0)
    tensor(True, dtype=bool)
    """
    first, second = type_of(x1).shape, type_of(x2).shape
    if not (broadcasts_to(first, second) or broadcasts_to(second, first)):
        return full((), False, BOOL)
    return all(equal(x1, x2))


@public
def sinc(x: ArrayLike) -> Variable:
    """Compute `sin(pi * x) / (pi * x)`, and 1 at 0, where all its derivatives are right too.

    >>> pg.sinc(0.0)
    tensor(1.)
    """
    value = lift(x, fractional(x))
    angle = value * math.pi
    near = abs(angle) < _SMALL
    square = angle * angle
    series = 1.0 + square * 0.0
    for power_of in range(10, 0, -2):
        series = 1.0 - square * (series / (power_of * (power_of + 1.0)))
    far = where(near, 1.0, angle)
    return where(near, series, sin(far) / far)
