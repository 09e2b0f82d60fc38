"""Polynomials as vectors of coefficients, the highest power first, as in NumPy's `polyval`."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.types import FLOAT64
from primgraph.operators.call import public
from primgraph.operators.elementwise.arithmetic import add, divide, multiply, negative
from primgraph.operators.elementwise.elementary import sqrt
from primgraph.operators.handle import ArrayLike
from primgraph.operators.index.known_elements import constant, elements, public_by_elements
from primgraph.operators.linear_algebra.spectra import lstsq
from primgraph.operators.linear_algebra.systems import inv
from primgraph.operators.promotion import (
    convert_dtype,
    inexact_dtype,
    lift,
    require_integer,
    result_dtype,
)
from primgraph.operators.reduce.differences import convolve
from primgraph.operators.reduce.reductions import sum
from primgraph.operators.shape.creation import zeros
from primgraph.operators.shape.joining import concatenate, stack
from primgraph.operators.shape.matrix_building import vander
from primgraph.operators.shape.shaping import reshape_to
from primgraph.operators.variable import Variable, handles


def _coefficients(name: str, p: ArrayLike) -> Variable:
    value = lift(p)
    if value.ndim > 1:
        raise ShapeError(f"{name} takes coefficients in a vector, not {value.type}")
    return reshape_to(value, (value.size,))


@public
def polyval(p: ArrayLike, x: ArrayLike) -> Variable:
    """Return the value at `x` of the polynomial with coefficients `p`, the highest power first.

    Computed by Horner's rule. Coefficients may be arrays, along the first axis of `p`, which are
    broadcast with `x`.

    >>> pg.polyval([2.0, 1.0], 3.0)
    tensor(7.)
    """
    coefficients = lift(p)
    if coefficients.ndim == 0:
        coefficients = reshape_to(coefficients, (1,))
    at = lift(x)
    found = zeros(at.shape, result_dtype(coefficients, at))
    for i in range(coefficients.shape[0]):
        found = add(multiply(found, at), coefficients[i])
    return found


def _pad_coefficients(name: str, p1: ArrayLike, p2: ArrayLike) -> list[Variable]:
    """Pad both vectors of coefficients to the length of the longer one."""
    both = [_coefficients(name, p) for p in (p1, p2)]
    size = max(v.size for v in both)
    return [
        concatenate([zeros((size - v.size,), v.dtype), v]) if v.size < size else v for v in both
    ]


@public
def polyadd(p1: ArrayLike, p2: ArrayLike) -> Variable:
    """Return the coefficients of the sum of two polynomials.

    >>> pg.polyadd([1.0, 2.0], [3.0])
    tensor([1., 5.])
    """
    return add(*_pad_coefficients("polyadd", p1, p2))


@public
def polysub(p1: ArrayLike, p2: ArrayLike) -> Variable:
    """Return the coefficients of the difference of two polynomials.

    >>> pg.polysub([1.0, 2.0], [3.0])
    tensor([ 1., -1.])
    """
    first, second = _pad_coefficients("polysub", p1, p2)
    return add(first, negative(second))


@public
def polymul(p1: ArrayLike, p2: ArrayLike) -> Variable:
    """Return the coefficients of the product of two polynomials.

    Leading zeros are kept, which NumPy drops: shapes do not depend on values here.

    >>> pg.polymul([1.0, 1.0], [1.0, -1.0])
    tensor([ 1.,  0., -1.])
    """
    return convolve(_coefficients("polymul", p1), _coefficients("polymul", p2))


@public
def polyder(p: ArrayLike, m: int = 1) -> Variable:
    """Return the coefficients of the derivative of order `m` of a polynomial.

    >>> pg.polyder([1.0, 2.0, 3.0])
    tensor([2., 2.])
    """
    value, order = _coefficients("polyder", p), require_integer("polyder", m)
    if order < 0:
        raise ArgumentError(f"polyder takes no derivative of order {order}", hint="use pg.polyint")
    for _ in range(order):
        count = value.size - 1
        if count < 1:
            return zeros((0,), value.dtype)
        value = multiply(value[:count], np.arange(count, 0, -1))
    return value


@public
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Variable:
    """Return the coefficients of the integral of a polynomial, `m` times over, with constants `k`.

    These are 0 by default, one for all or one for each integration.

    >>> pg.polyint([2.0, 2.0])
    tensor([1., 2., 0.])
    """
    value, order = _coefficients("polyint", p), require_integer("polyint", m)
    if order < 0:
        raise ArgumentError(f"polyint takes no integral of order {order}", hint="use pg.polyder")
    constants = zeros((order,), value.dtype) if k is None else lift(k)
    constants = reshape_to(constants, (constants.size,))
    if constants.size not in (1, order):
        raise ShapeError(f"polyint takes {order} constants, not {constants.type}")
    value = convert_dtype(value, inexact_dtype(value, constants))
    for i in range(order):
        powers = np.arange(value.size, 0, -1)
        constant = constants[i if constants.size > 1 else 0]
        last = convert_dtype(reshape_to(constant, (1,)), value.dtype)
        value = concatenate([divide(value, powers), last])
    return value


@public
def polydiv(u: ArrayLike, v: ArrayLike) -> tuple[Variable, Variable]:
    """Compute the quotient and the remainder of two polynomials.

    The remainder keeps its leading zeros, unlike NumPy's, as shapes are fixed.

    Raises `ShapeError` for a divisor without coefficients.

    >>> pg.polydiv([1.0, 3.0, 2.0], [1.0, 1.0])
    (tensor([1., 2.]), tensor([0.]))
    """
    dtype = inexact_dtype(u, v)
    left, divisor = (convert_dtype(_coefficients("polydiv", p), dtype) for p in (u, v))
    count, width = left.size, divisor.size
    if width == 0:
        raise ShapeError("polydiv takes a divisor with coefficients")
    if count < width:
        return zeros((1,), dtype), left
    found = []
    for _ in range(count - width + 1):
        factor = left[0] / divisor[0]
        found.append(factor)
        front = left[:width] - factor * divisor
        left = concatenate([front[1:], left[width:]])
    rest = left if width > 1 else zeros((1,), dtype)
    return stack(found), rest


@public
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """Return the coefficients of the best polynomial of degree `deg`, the highest power first.

    It minimises the sum of squares of `w * (polyval(p, x) - y)`; `y` has one column for each
    polynomial, or is a vector. `full` adds sums of squares, rank, singular values and `rcond`;
    `cov` adds the covariance matrix, scaled by the residuals, or by `w` only for "unscaled". Raises
    `ShapeError` for shapes that do not match, `ArgumentError` for a negative degree.

    >>> pg.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).numpy().round(6)
    array([2., 1.])
    """
    order = require_integer("polyfit", deg)
    if order < 0:
        raise ArgumentError(f"polyfit takes a degree from 0 on, not {order}")
    at, values = convert_dtype(lift(x), FLOAT64), convert_dtype(lift(y), FLOAT64)
    if at.ndim != 1 or at.size == 0 or values.ndim not in (1, 2) or values.shape[0] != at.size:
        raise ShapeError(f"polyfit takes a vector and a value for each, not {at.type} and "
                         f"{values.type}")  # fmt: skip
    powers, right = vander(at, order + 1), values
    if w is not None:
        weights = reshape_to(convert_dtype(lift(w), FLOAT64), (at.size, 1))
        powers = powers * weights
        right = right * (weights if right.ndim == 2 else weights[:, 0])
    limit = at.size * float(np.finfo(np.float64).eps) if rcond is None else rcond
    scale = sqrt(sum(powers * powers, 0))
    fitted = lstsq(powers / scale, right, limit)
    columns = scale if right.ndim == 1 else reshape_to(scale, (order + 1, 1))
    found = fitted.x / columns
    if full:
        return found, fitted.residuals, fitted.rank, fitted.singular_values, limit
    if not cov:
        return found
    gram = powers.T @ powers
    base = inv(gram / (scale[:, None] * scale)) / (scale[:, None] * scale)
    factor: Any = 1.0
    if cov != "unscaled":
        if at.size <= order + 1:
            raise ArgumentError("polyfit: covariances take more points than coefficients")
        factor = fitted.residuals / (at.size - order - 1.0)
    if right.ndim == 1:
        return found, base * (factor if cov == "unscaled" else reshape_to(factor, ()))
    return found, reshape_to(base, (*base.shape, 1)) * factor


@public_by_elements
def roots(p: ArrayLike) -> Variable:
    """Return the zeros of a polynomial that is known; leading zeros make them less, as in NumPy.

    There is no derivative: raises `ArgumentError` for a tensor that requires a gradient, and for a
    variable.

    >>> pg.roots([1.0, -3.0, 2.0]).numpy().round(6)
    array([2., 1.])
    """
    if any(getattr(v, "requires_grad", False) for v in handles((p,))):
        raise ArgumentError("roots has no derivative", hint="pg.roots(p.detach()) gives numbers")
    known = elements("roots", p, "")
    if known.ndim != 1:
        raise ShapeError(f"roots takes a vector as p, not an array of shape {known.shape}")
    found: Variable = constant(np.roots(known))
    return found
