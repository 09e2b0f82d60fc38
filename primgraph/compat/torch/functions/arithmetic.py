"""Arithmetic, comparisons and selection, with torch's names for them and for their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.compat.torch.functions.results import define_functions
from primgraph.eager.tensor import Tensor
from primgraph.errors import DTypeError, RunError, UnsupportedDTypeError
from primgraph.operators.handle import Handle

_ROWS = """
atan2|arctan2(input, other): arctan2(input, other)
Compute angles of the points `(other, input)`.
>>> torch.atan2(torch.tensor([1.0, -1.0]), torch.tensor([1.0, 0.0]))
tensor([ 0.7854, -1.5708])

bitwise_and(input, other): bitwise_and(input, other)
Compute bitwise and.
>>> torch.bitwise_and(torch.tensor([6, 5]), torch.tensor([3, 3]))
tensor([2, 1])

bitwise_left_shift(input, other): left_shift(bits(input), bits(other))
Shift bits to the left.
>>> torch.bitwise_left_shift(torch.tensor([1, 2]), torch.tensor([3, 1]))
tensor([8, 4])

bitwise_not(input): invert(input)
Compute the bitwise complement; of booleans the negation.
>>> torch.bitwise_not(torch.tensor([0, 1]))
tensor([-1, -2])

bitwise_or(input, other): bitwise_or(input, other)
Compute bitwise or.
>>> torch.bitwise_or(torch.tensor([6, 5]), torch.tensor([3, 3]))
tensor([7, 7])

bitwise_right_shift(input, other): right_shift(bits(input), bits(other))
Shift bits to the right.
>>> torch.bitwise_right_shift(torch.tensor([8, 2]), torch.tensor([3, 1]))
tensor([1, 1])

bitwise_xor(input, other): bitwise_xor(input, other)
Compute bitwise exclusive or.
>>> torch.bitwise_xor(torch.tensor([6, 5]), torch.tensor([3, 3]))
tensor([5, 6])

clamp_max(input, max): minimum(input, max)
Limit elements from above.
>>> torch.clamp_max(torch.tensor([1.0, 3.0]), 2)
tensor([1., 2.])

clamp_min(input, min): maximum(input, min)
Limit elements from below.
>>> torch.clamp_min(torch.tensor([1.0, 3.0]), 2)
tensor([2., 3.])

complex(real, imag): complex(real_part(real), real_part(imag))
Return complex numbers with these real and imaginary parts.
>>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
tensor([1.+2.j])

copysign(input, other): copysign(input, other)
Return the elements of `input` with the signs of `other`.
>>> torch.copysign(torch.tensor([1.0, 2.0]), torch.tensor([-1.0, 1.0]))
tensor([-1.,  2.])

eq(input, other): equal(input, other)
Return whether elements are equal.
>>> torch.eq(torch.tensor([1.0, 2.0]), 2)
tensor([False,  True])

fmax(input, other): fmax(input, other)
Return the larger elements; a number rather than NaN.
>>> torch.fmax(torch.tensor([1.0, float("nan")]), torch.tensor([0.0, 2.0]))
tensor([1., 2.])

fmin(input, other): fmin(input, other)
Return the smaller elements; a number rather than NaN.
>>> torch.fmin(torch.tensor([1.0, float("nan")]), torch.tensor([0.0, 2.0]))
tensor([0., 2.])

floor_divide(input, other): floor_divide(input, divisor_of(input, other))
Divide and round down.
>>> torch.floor_divide(torch.tensor([7.0, -7.0]), 2)
tensor([ 3., -4.])

fmod(input, other): fmod(input, divisor_of(input, other))
Compute remainders with the sign of `input`.
>>> torch.fmod(torch.tensor([5.0, -5.0]), 3)
tensor([ 2., -2.])

gcd(input, other): gcd(input, other)
Compute greatest common divisors.
>>> torch.gcd(torch.tensor([6, 10]), torch.tensor([4, 5]))
tensor([2, 5])

ge|greater_equal(input, other): greater_equal(input, other)
Return whether elements are greater or equal.
>>> torch.ge(torch.tensor([1.0, 2.0]), 2)
tensor([False,  True])

gt|greater(input, other): greater(input, other)
Return whether elements are greater.
>>> torch.gt(torch.tensor([1.0, 2.0]), 1)
tensor([False,  True])

heaviside(input, values): heaviside(input, values)
Return 0 for negative elements, 1 for positive ones, and `values` for zeros.
>>> torch.heaviside(torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([0.5]))
tensor([0.0000, 0.5000, 1.0000])

hypot(input, other): hypot(input, other)
Compute `sqrt(input**2 + other**2)`.
>>> torch.hypot(torch.tensor([3.0]), torch.tensor([4.0]))
tensor([5.])

igamma(input, other): special.gammainc(input, other)
Compute the regularized lower incomplete gamma function.
>>> torch.igamma(torch.tensor([1.0]), torch.tensor([2.0]))
tensor([0.8647])

igammac(input, other): special.gammaincc(input, other)
Compute the regularized upper incomplete gamma function.
>>> torch.igammac(torch.tensor([1.0]), torch.tensor([2.0]))
tensor([0.1353])

lcm(input, other): lcm(input, other)
Compute least common multiples.
>>> torch.lcm(torch.tensor([6, 10]), torch.tensor([4, 5]))
tensor([12, 10])

ldexp(input, other): ldexp(input, other)
Compute `input * 2**other`.
>>> torch.ldexp(torch.tensor([1.0, 3.0]), torch.tensor([1, 2]))
tensor([ 2., 12.])

le|less_equal(input, other): less_equal(input, other)
Return whether elements are less or equal.
>>> torch.le(torch.tensor([1.0, 2.0]), 1)
tensor([ True, False])

logaddexp(input, other): logaddexp(input, other)
Compute `log(exp(input) + exp(other))`.
>>> torch.logaddexp(torch.tensor([0.0]), torch.tensor([0.0]))
tensor([0.6931])

logaddexp2(input, other): logaddexp2(input, other)
Compute `log2(2**input + 2**other)`.
>>> torch.logaddexp2(torch.tensor([0.0]), torch.tensor([0.0]))
tensor([1.])

logical_and(input, other): logical_and(input, other)
Return whether both elements differ from zero.
>>> torch.logical_and(torch.tensor([True, False]), torch.tensor([True, True]))
tensor([ True, False])

logical_not(input): logical_not(input)
Return whether elements are zero.
>>> torch.logical_not(torch.tensor([True, False]))
tensor([False,  True])

logical_or(input, other): logical_or(input, other)
Return whether one of the elements differs from zero.
>>> torch.logical_or(torch.tensor([True, False]), torch.tensor([True, False]))
tensor([ True, False])

logical_xor(input, other): logical_xor(input, other)
Return whether exactly one of the elements differs from zero.
>>> torch.logical_xor(torch.tensor([True, False]), torch.tensor([True, True]))
tensor([False,  True])

lt|less(input, other): less(input, other)
Return whether elements are less.
>>> torch.lt(torch.tensor([1.0, 2.0]), 2)
tensor([ True, False])

maximum(input, other): maximum(input, other)
Return the larger elements.
>>> torch.maximum(torch.tensor([1.0, 4.0]), torch.tensor([3.0, 2.0]))
tensor([3., 4.])

minimum(input, other): minimum(input, other)
Return the smaller elements.
>>> torch.minimum(torch.tensor([1.0, 4.0]), torch.tensor([3.0, 2.0]))
tensor([1., 2.])

mul|multiply(input, other): multiply(input, other)
Compute products.
>>> torch.mul(torch.tensor([1.0, 2.0]), 3)
tensor([3., 6.])

mvlgamma(input, p): special.multigammaln(input, p)
Compute logarithms of the multivariate gamma function of dimension `p`.
>>> torch.mvlgamma(torch.tensor([2.0]), 2)
tensor([0.4516])

nan_to_num(input, nan=0.0, posinf=None, neginf=None): nan_to_num(input, True, nan, posinf, neginf)
Replace NaN and infinities, by the largest numbers by default.
>>> torch.nan_to_num(torch.tensor([float("nan"), 1.0]), nan=2.0)
tensor([2., 1.])

ne|not_equal(input, other): not_equal(input, other)
Return whether elements differ.
>>> torch.ne(torch.tensor([1.0, 2.0]), 2)
tensor([ True, False])

nextafter(input, other): nextafter(input, other)
Return the next floats from `input` towards `other`.
>>> torch.nextafter(torch.tensor([0.0]), torch.tensor([1.0])) > 0
tensor([True])

polygamma(n, input): special.polygamma(n, input)
Compute the derivative of order `n` of the digamma function.
>>> torch.polygamma(1, torch.tensor([1.0, 0.5]))
tensor([1.6449, 4.9348])

pow(input, exponent): power(input, exponent)
Compute `input` to the power of `exponent`.
>>> torch.pow(torch.tensor([2.0, 3.0]), 2)
tensor([4., 9.])

remainder(input, other): remainder(input, divisor_of(input, other))
Compute remainders with the sign of `other`.
>>> torch.remainder(torch.tensor([5.0, -5.0]), 3)
tensor([2., 1.])

round(input, *, decimals=0): round(input, decimals)
Round elements, halves to even.
>>> torch.round(torch.tensor([0.5, 1.5]))
tensor([0., 2.])

xlogy(input, other): special.xlogy(input, other)
Compute `input * log(other)`, which is 0 where `input` is.
>>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 2.0]))
tensor([0.0000, 1.3863])
"""

__all__ = define_functions(globals(), _ROWS)


def divisor_of(input: Any, other: Any) -> Any:
    """Return the divisor. Raises `RunError` where integers are divided by the integer 0.

    In functions that are traced the elements of variables are not known, and such quotients are 0.
    """
    if _is_integral(other) and _is_integral(input) and _has_zero(other):
        raise RunError("ZeroDivisionError", hint="convert to floats: x / 0.0 is infinite")
    return other


def _is_integral(given: Any) -> bool:
    """Return whether a number or a tensor is of integers or booleans."""
    if isinstance(given, Handle):
        return given.type.dtype.kind in "biu"
    return isinstance(given, int | np.integer)


def _has_zero(given: Any) -> bool:
    if isinstance(given, Tensor):
        return not bool(np.all(given._array()))
    return not isinstance(given, Handle) and given == 0


def bits(given: Any) -> Any:
    """Return an operand of a shift. Raises `UnsupportedDTypeError` for booleans."""
    if isinstance(given, Handle) and given.type.dtype.kind == "b":
        raise UnsupportedDTypeError(
            "shifts are not implemented for booleans", hint="convert it: x.to(torch.int64)"
        )
    return given


def real_part(given: Any) -> Any:
    """Return a part of complex numbers. Raises `DTypeError` for integers."""
    if isinstance(given, Handle) and given.type.dtype.kind != "f":
        raise DTypeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {given.dtype}",
            hint="convert it: x.float()",
        )
    return given
