"""Elementwise arithmetic: sums, products, powers, extrema, rounding."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, DTypeError
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import BOOL, FLOAT64, scalar_of
from primgraph.operators.call import operator, public
from primgraph.operators.call_cache import decided_by_types
from primgraph.operators.elementwise.logic import (
    greater_equal,
    isinf,
    less_equal,
    logical_and,
    logical_or,
    not_equal,
    propagate_nan,
    where,
)
from primgraph.operators.handle import ArrayLike, Handle
from primgraph.operators.promotion import (
    SCALARS,
    array_of,
    convert_dtype,
    describe_operand,
    either,
    lift,
    pair_of_floats,
    promote_operands,
    require_flag,
    type_of,
    ufunc_dtypes,
    wrap,
)
from primgraph.operators.variable import Variable, emit, keep_weak
from primgraph.primitives import elementwise as p
from primgraph.primitives import logic, parts
from primgraph.primitives.constants import zeros_like

# Beyond this exponent `x**n` is a power with a constant exponent.
_LARGEST_INTEGER_POWER = 1024

# Functions of Python's operators, which return Python numbers for such.
_OF_NUMBERS = ("add", "subtract", "multiply", "divide", "floor_divide", "remainder")


def _binary(
    name: str,
    ufunc: np.ufunc,
    op: Primitive[Value],
    doc: str,
    example: str,
    *,
    of_bools: Primitive[Value] | None = None,
) -> Callable[[ArrayLike, ArrayLike], Variable]:
    """Declare a function of two arrays; `of_bools` is its primitive on booleans."""

    def function(x1: ArrayLike, x2: ArrayLike) -> Variable:
        alike = pair_of_floats(ufunc, x1, x2)
        if alike is not None:
            return emit(op, *alike)
        dtype = ufunc_dtypes(ufunc, x1, x2)[-1]
        applied = of_bools if dtype == BOOL and of_bools is not None else op
        operands = promote_operands(x1, x2, dtype=dtype, name=name)
        if dtype.kind == "c" and name in ("maximum", "minimum"):
            return _choose_complex(name, *operands)
        found = emit(applied, *operands)
        return keep_weak(found, x1, x2) if name in _OF_NUMBERS else found

    function.__name__ = function.__qualname__ = name
    arguments, result = example.split(" -> ")
    function.__doc__ = f"""{doc}

    The operands are broadcast, and promoted as `np.{name}` promotes them. Raises `ShapeError`
    if the shapes do not broadcast, `DTypeError` for dtypes that `np.{name}` refuses and for a
    Python integer that the dtype cannot hold.

    >>> pg.{name}({arguments})
    {result}
    """
    return public(decided_by_types(function))


def _choose_complex(name: str, x1: Variable, x2: Variable) -> Variable:
    """Return the larger or smaller complex number, the first of equal ones, or that with a NaN."""
    is_first = greater_equal(x1, x2) if name == "maximum" else less_equal(x1, x2)
    return emit(logic.select, logical_or(is_first, not_equal(x1, x1)), x1, x2)


add = _binary(
    "add", np.add, p.add, "Sum of two arrays; of booleans, whether either is true.",
    "7.0, 2.0 -> tensor(9.)",
    of_bools=logic.logical_or,
)  # fmt: skip
subtract = _binary(
    "subtract", np.subtract, p.sub, "Compute the difference of two arrays.",
    "7.0, 2.0 -> tensor(5.)",
)  # fmt: skip
multiply = _binary(
    "multiply", np.multiply, p.mul, "Compute the product of two arrays; of booleans, the `and`.",
    "7.0, 2.0 -> tensor(14.)",
    of_bools=logic.logical_and,
)  # fmt: skip
divide = _binary(
    "divide", np.divide, p.div, "Compute the quotient of two arrays, always a float.",
    "7.0, 2.0 -> tensor(3.5)",
)  # fmt: skip
floor_divide = _binary(
    "floor_divide", np.floor_divide, p.floor_divide,
    "Compute the quotient of two arrays, rounded down. Its derivative is zero.",
    "7.0, 2.0 -> tensor(3.)",
)  # fmt: skip
remainder = _binary(
    "remainder", np.remainder, p.remainder,
    "Remainder of `floor_divide`: `x1 - floor(x1 / x2) * x2`, with the sign of `x2`.",
    "7.0, 2.0 -> tensor(1.)",
)  # fmt: skip
maximum = _binary(
    "maximum", np.maximum, p.maximum,
    "Return the larger of two elements; NaN if either is. At a tie each gets half the derivative.",
    "7.0, 2.0 -> tensor(7.)",
)  # fmt: skip
minimum = _binary(
    "minimum", np.minimum, p.minimum,
    "Return the smaller of two elements; NaN if either is. At a tie each gets half the derivative.",
    "7.0, 2.0 -> tensor(2.)",
)  # fmt: skip
arctan2 = _binary(
    "arctan2", np.arctan2, p.arctan2,
    "Compute the angle of the point (x2, x1) in radians, in the right quadrant.",
    "0.0, 1.0 -> tensor(0.)",
)  # fmt: skip
logaddexp = _binary(
    "logaddexp", np.logaddexp, p.logaddexp,
    "Compute `log(exp(x1) + exp(x2))`, without overflow.",
    "1000.0, 0.0 -> tensor(1000.)",
)  # fmt: skip
mod = remainder


@public
@decided_by_types
def power(x1: ArrayLike, x2: ArrayLike) -> Variable:
    """Return `x1` to the power `x2`, element by element; 0 to the power 0 is 1.

    A whole Python number as exponent has its own rule of differentiation, which is right at
    negative and zero `x1`. The number 0.5 as exponent is the square root, as for `**` of NumPy's
    arrays, with NaN at -inf and -0.0 at -0.0; in an array it is a power, with inf and 0.0.
    Raises `DTypeError` for a negative constant exponent of integers.

    >>> pg.power([2.0, 3.0], 2)
    tensor([4., 9.])
    """
    dtype = ufunc_dtypes(np.power, x1, x2)[-1]
    constant_exponent = not isinstance(x2, Handle | Dim)
    if dtype.kind in "iub" and constant_exponent and np.any(np.less(array_of(x2), 0)):
        raise DTypeError(
            f"integers have no negative powers: {describe_operand(x1)} to the power "
            f"{describe_operand(x2)}",
            hint="make the base a float, with pg.astype",
        )
    exponent = _whole_number(x2)
    if exponent is not None and type(x1) not in SCALARS:
        if dtype.kind not in "fc":
            scalar_of(exponent, dtype)
        if dtype.kind not in "fc" or -_LARGEST_INTEGER_POWER <= exponent <= _LARGEST_INTEGER_POWER:
            return emit(p.integer_pow, lift(x1, dtype), n=exponent)
    if constant_exponent and dtype.kind in "fc" and np.ndim(x2) == 0 and array_of(x2) == 0.5:
        return emit(p.sqrt, lift(x1, dtype))
    return emit(p.power, *promote_operands(x1, x2, dtype=dtype, name="power"))


def _whole_number(x: Any) -> int | None:
    """Return `x` as an integer if it is a Python number with an integer value."""
    if type(x) is int:
        return x
    return int(x) if type(x) is float and x.is_integer() else None


def _unary(
    name: str,
    ufunc: np.ufunc,
    op: Primitive[Value] | None,
    doc: str,
    example: str,
    *,
    unchanged: str = "",
    of_complex: Callable[[Variable], Variable] | None = None,
) -> Callable[[ArrayLike], Variable]:
    """Declare a function of one array; dtype kinds in `unchanged` are returned as they are."""

    def function(x: ArrayLike) -> Variable:
        kind = type_of(x).dtype.kind
        if kind == "c" and of_complex is not None:
            return of_complex(lift(x))
        if op is None or kind in unchanged:
            if kind not in unchanged:
                ufunc_dtypes(ufunc, x)
            return lift(x)
        return emit(op, lift(x, ufunc_dtypes(ufunc, x)[-1]))

    function.__name__ = function.__qualname__ = name
    arguments, result = example.split(" -> ")
    function.__doc__ = f"""{doc}

    Raises `DTypeError` for dtypes that `np.{ufunc.__name__}` refuses.

    >>> pg.{name}({arguments})
    {result}
    """
    return public(decided_by_types(function))


def _modulus(z: Variable) -> Variable:
    return emit(parts.modulus, z)


def _unit(z: Variable) -> Variable:
    """Return `z / abs(z)`, and 0 for 0, without over- or underflow of the absolute value.

    For an infinite part it is the unit in its direction, for two NaN, as in NumPy.
    """
    x, y = emit(parts.real, z), emit(parts.imag, z)
    half = int(np.finfo(z.dtype).maxexp) // 2
    infinite = logical_or(isinf(x), isinf(y))
    x, y = (where(infinite, where(isinf(v), emit(p.sign, v), 0.0), v) for v in (x, y))
    # A power of two, so that scaling is exact.
    larger = emit(p.maximum, emit(p.abs_, x), emit(p.abs_, y))
    scale = where(larger > 2.0**half, 2.0**-half, where(larger < 2.0**-half, 2.0**half, 1.0))
    scale = convert_dtype(scale, x.dtype)
    x, y = multiply(x, scale), multiply(y, scale)
    size = emit(parts.modulus, emit(parts.complex_, x, y))
    both = where(logical_and(infinite, size > 1.0), math.nan, size)
    none = emit(logic.equal, size, wrap(zeros_like(size.value)))
    return emit(
        parts.complex_, *[where(none, 0.0, divide(v, where(none, 1.0, both))) for v in (x, y)]
    )


def _reciprocal_of_complex(z: Variable) -> Variable:
    """Return `1 / z` by Smith's method (R. L. Smith, Algorithm 116, 1962), like NumPy."""
    x, y = emit(parts.real, z), emit(parts.imag, z)
    wide = emit(p.abs_, y) <= emit(p.abs_, x)
    big, small = where(wide, x, y), where(wide, y, x)
    ratio = divide(small, big)
    size = add(big, multiply(small, ratio))
    one, other = divide(1.0, size), divide(ratio, size)
    return emit(parts.complex_, where(wide, one, other), negative(where(wide, other, one)))


negative = _unary(
    "negative", np.negative, p.neg, "Compute `-x`.", "[-1.5, 2.0] -> tensor([ 1.5, -2. ])"
)
positive = _unary(
    "positive", np.positive, None, "Compute `+x`, that is, `x` itself.",
    "[-1.5, 2.0] -> tensor([-1.5,  2. ])",
)  # fmt: skip
abs = _unary(
    "abs", np.absolute, p.abs_,
    "Compute the absolute value, with derivative 0 at 0; of complex numbers a real one.",
    "[-1.5, 2.0] -> tensor([1.5, 2. ])",
    unchanged="b",
    of_complex=_modulus,
)  # fmt: skip
sign = _unary(
    "sign", np.sign, p.sign,
    "Return -1, 0 or 1, and NaN for NaN, with derivative zero; of complex numbers `z / abs(z)`.",
    "[-1.5, 2.0] -> tensor([-1.,  1.])",
    of_complex=_unit,
)  # fmt: skip
floor = _unary(
    "floor", np.floor, p.floor, "Return the largest integer not above x. Its derivative is zero.",
    "[-1.5, 2.0] -> tensor([-2.,  2.])",
    unchanged="iub",
)  # fmt: skip
ceil = _unary(
    "ceil", np.ceil, p.ceil, "Return the smallest integer not below x. Its derivative is zero.",
    "[-1.5, 2.0] -> tensor([-1.,  2.])",
    unchanged="iub",
)  # fmt: skip


@public
@decided_by_types
def round(x: ArrayLike, decimals: int = 0) -> Variable:
    """Return `x` rounded to `decimals` places, halves to even, as `np.round` does.

    Where the power of ten itself overflows and NumPy has NaN, numbers are rounded all the same:
    to `x` for many decimals, to 0 for tens beyond the largest number. Integers stay as they are.
    The derivative is zero. Raises `DTypeError` for integers that are to be rounded to tens,
    hundreds and so on, `ArgumentError` for decimals that are no integer.

    >>> pg.round([1.25, 2.5], 1)
    tensor([1.2, 2.5])
    """
    if type(decimals) is not int:
        raise ArgumentError(f"decimals is an integer, not {decimals!r}")
    kind = type_of(x).dtype.kind
    if kind == "c":
        value = lift(x)
        halves = [round(emit(part, value), decimals) for part in (parts.real, parts.imag)]
        return emit(parts.complex_, *halves)
    if kind in "iu":
        if decimals < 0:
            raise DTypeError(
                f"round of {describe_operand(x)} to {decimals} decimals is not supported"
            )
        return lift(x)
    value = lift(x, ufunc_dtypes(np.rint, x)[-1])
    if decimals == 0:
        return emit(p.round_, value)
    # 10**400 as a product of powers that do not overflow.
    most = int(np.log10(float(np.finfo(value.dtype).max)))
    places = min(builtins.abs(decimals), 3 * most)
    powers = [10.0 ** min(most, places - k) for k in range(0, places, most)]
    if decimals < 0:
        found = emit(p.round_, reduce(divide, powers, value))
        return reduce(multiply, reversed(powers), found)
    scaled = reduce(multiply, powers, value)
    found = reduce(divide, reversed(powers), emit(p.round_, scaled))
    return found if len(powers) == 1 else where(isinf(scaled), emit(p.stop_gradient, value), found)


@public
@decided_by_types
def square(x: ArrayLike) -> Variable:
    """Compute `x * x`, element by element, in the dtype that `np.square` gives.

    >>> pg.square([1.0, -3.0])
    tensor([1., 9.])
    """
    value = lift(x, ufunc_dtypes(np.square, x)[-1])
    return emit(p.mul, value, value)


@public
@decided_by_types
def reciprocal(x: ArrayLike) -> Variable:
    """Compute `1 / x`; of integers and booleans its integer part, which is 0 except for 1 and -1.

    The result for the integer 0 depends on the machine, as in NumPy.

    >>> pg.reciprocal([2.0, 4.0])
    tensor([0.5 , 0.25])
    """
    dtype = ufunc_dtypes(np.reciprocal, x)[-1]
    if dtype.kind == "c":
        return _reciprocal_of_complex(lift(x, dtype))
    if dtype.kind == "f":
        return divide(1.0, lift(x, dtype))
    return convert_dtype(divide(1.0, lift(x, FLOAT64)), dtype)


@public
def add_n(inputs: Any) -> Variable:
    """Return the sum of all arrays in a list, broadcast and promoted; `ArgumentError` if it is
    empty.

    >>> pg.add_n([np.ones(2), np.ones(2), np.ones(2)])
    tensor([3., 3.])
    """
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ArgumentError(f"add_n takes a list of at least one array, not {inputs!r:.60}")
    return lift(inputs[0]) if len(inputs) == 1 else lift(reduce(add, inputs))


@operator("x", "min", "max")
def clip_(x: ArrayLike, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Variable:
    """Decomposition of `clip`."""
    bounds = [b for b in (min, max) if b is not None]
    dtype = ufunc_dtypes(np.maximum, x, bounds[0])[-1] if bounds else type_of(x).dtype
    if len(bounds) == 2:
        dtype = ufunc_dtypes(np.maximum, lift(x, dtype), bounds[1])[-1]
    result = lift(x, dtype)
    if min is not None:
        result = where(_outside(result < min, min), min, result)
    if max is not None:
        result = where(_outside(result > max, max), max, result)
    return propagate_nan(convert_dtype(result, dtype), x)


@public
@decided_by_types
def clip(
    x: ArrayLike,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    *,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
) -> Variable:
    """Return `x` limited to the interval from `min` to `max`; either may be None.

    The derivative with respect to `x` is 1 inside and at the bounds, 0 outside, and NaN at NaN,
    which stays NaN; where `min` exceeds `max`, the result is `max`. The bounds may also be named
    `a_min` and `a_max`, as in `np.clip`; giving one by both names is an `ArgumentError`.

    >>> pg.clip([-1.0, 0.5, 2.0], 0.0, 1.0)
    tensor([0. , 0.5, 1. ])
    """
    low = either("clip", min=min, a_min=a_min)
    return clip_(x, low, either("clip", max=max, a_max=a_max))


def _outside(beyond: Variable, bound: ArrayLike) -> Variable:
    """Return where the bound applies: where `x` is beyond it, and where the bound is NaN."""
    if type(bound) in SCALARS and bound == bound:
        return beyond
    return logical_or(beyond, not_equal(bound, bound))


@operator("x", "scale", "bias")
def scale(
    x: ArrayLike,
    scale: ArrayLike = 1.0,
    bias: ArrayLike = 0.0,
    bias_after_scale: bool = True,
) -> Variable:
    """Compute `scale * x + bias`, or `scale * (x + bias)` with `bias_after_scale` False.

    >>> pg.scale([1.0, 2.0], 3.0, 1.0)
    tensor([4., 7.])
    """
    if require_flag("bias_after_scale", bias_after_scale):
        return add(multiply(x, scale), bias)
    return multiply(add(x, bias), scale)
