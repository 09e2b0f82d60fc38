"""Polynomials as vectors of coefficients, the highest power first, as in NumPy's `polyval`."""

from __future__ import annotations

import numpy as np

from primgraph.errors import ArgumentError, ShapeError
from primgraph.operators.arithmetic import add, divide, multiply, negative
from primgraph.operators.call import public
from primgraph.operators.creation import zeros
from primgraph.operators.differences import convolve
from primgraph.operators.handle import ArrayLike
from primgraph.operators.joining import concatenate
from primgraph.operators.promotion import converted, floating, lift, require_integer, result_dtype
from primgraph.operators.shaping import reshaped
from primgraph.operators.variable import Variable

__all__ = [
    "polyadd",
    "polyder",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
]


def _coefficients(name: str, p: ArrayLike) -> Variable:
    value = lift(p)
    if value.ndim > 1:
        raise ShapeError(f"{name} takes coefficients in a vector, not {value.type}")
    return reshaped(value, (value.size,))


@public
def polyval(p: ArrayLike, x: ArrayLike) -> Variable:
    """The value at `x` of the polynomial with coefficients `p`, the highest power first.

    Computed by Horner's rule. Raises `ShapeError` for coefficients that are no vector.
    """
    coefficients = _coefficients("polyval", p)
    at = lift(x)
    found = zeros(at.shape, result_dtype(coefficients, at))
    for i in range(coefficients.shape[0]):
        found = add(multiply(found, at), coefficients[i])
    return found


def _aligned(name: str, p1: ArrayLike, p2: ArrayLike) -> list[Variable]:
    """Both vectors of coefficients, in the length of the longer one."""
    both = [_coefficients(name, p) for p in (p1, p2)]
    size = max(v.size for v in both)
    return [
        concatenate([zeros((size - v.size,), v.dtype), v]) if v.size < size else v for v in both
    ]


@public
def polyadd(p1: ArrayLike, p2: ArrayLike) -> Variable:
    """The coefficients of the sum of two polynomials."""
    return add(*_aligned("polyadd", p1, p2))


@public
def polysub(p1: ArrayLike, p2: ArrayLike) -> Variable:
    """The coefficients of the difference of two polynomials."""
    first, second = _aligned("polysub", p1, p2)
    return add(first, negative(second))


@public
def polymul(p1: ArrayLike, p2: ArrayLike) -> Variable:
    """The coefficients of the product of two polynomials."""
    return convolve(_coefficients("polymul", p1), _coefficients("polymul", p2))


@public
def polyder(p: ArrayLike, m: int = 1) -> Variable:
    """The coefficients of the derivative of order `m` of a polynomial."""
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
    """The coefficients of the integral of a polynomial, `m` times over, with constants `k`.

    These are 0 unless given, one for all or one for each time.
    """
    value, order = _coefficients("polyint", p), require_integer("polyint", m)
    if order < 0:
        raise ArgumentError(f"polyint takes no integral of order {order}", hint="use pg.polyder")
    constants = zeros((order,), value.dtype) if k is None else lift(k)
    constants = reshaped(constants, (constants.size,))
    if constants.size not in (1, order):
        raise ShapeError(f"polyint takes {order} constants, not {constants.type}")
    value = converted(value, floating(value, constants))
    for i in range(order):
        powers = np.arange(value.size, 0, -1)
        constant = constants[i if constants.size > 1 else 0]
        last = converted(reshaped(constant, (1,)), value.dtype)
        value = concatenate([divide(value, powers), last])
    return value
