"""Functions of single elements, with Paddle's names for them and for their arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import operators as pg
from primgraph import special as special
from primgraph.compat.paddle.core.assignments import assign_to as assign_to
from primgraph.compat.paddle.core.defaults import dtype_or_default
from primgraph.compat.paddle.functions.rows import define_functions
from primgraph.errors import ArgumentError
from primgraph.operators.handle import Handle

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_ROWS_OF_ONE = """
abs|absolute(x): abs
Return absolute values. | [-1.0, 2.0] -> [1.0, 2.0]
acos(x): arccos
Return arccosines. | [1.0, 0.0] ~ [0.    1.571]
acosh(x): arccosh
Return inverse hyperbolic cosines. | [1.0, 2.0] ~ [0.    1.317]
asin(x): arcsin
Return arcsines. | [0.0, 1.0] ~ [0.    1.571]
asinh(x): arcsinh
Return inverse hyperbolic sines. | [0.0, 1.0] ~ [0.    0.881]
atan(x): arctan
Return arctangents. | [0.0, 1.0] ~ [0.    0.785]
atanh(x): arctanh
Return inverse hyperbolic tangents. | [0.0, 0.5] ~ [0.    0.549]
angle(x): angle
Return the angles of complex numbers, in radians. | [1.0, -1.0] ~ [0.    3.142]
ceil(x): ceil
Round up. | [1.5, -1.5] -> [2.0, -1.0]
conj(x): conj
Return complex conjugates. | [1.0, 2.0] -> [1.0, 2.0]
cos(x): cos
Return cosines. | [0.0, 1.0] ~ [1.   0.54]
cosh(x): cosh
Return hyperbolic cosines. | [0.0, 1.0] ~ [1.    1.543]
deg2rad(x) = pg.deg2rad(as_float(x))
Convert degrees to radians. | [0.0, 90.0] ~ [0.    1.571]
digamma(x): special.digamma
Compute the derivative of `lgamma`. | [1.0, 2.0] ~ [-0.577  0.423]
erf(x): erf
Compute the error function. | [0.0, 1.0] ~ [0.    0.843]
erfinv(x): special.erfinv
Compute the inverse of `erf`. | [0.0, 0.5] ~ [0.    0.477]
exp(x): exp
Compute exponentials. | [0.0, 1.0] ~ [1.    2.718]
expm1(x): expm1
Compute `exp(x) - 1`. | [0.0, 1.0] ~ [0.    1.718]
floor(x): floor
Round down. | [1.5, -1.5] -> [1.0, -2.0]
frexp(x) = tuple(pg.cast(part, x.type.dtype) for part in pg.frexp(x))
Return mantissas between 0.5 and 1, and exponents of 2. | [3.0, 0.5] => [[0.75, 0.5], [2.0, 0.0]]
frac(x) = pg.subtract(x, pg.trunc(x))
Return the parts after the decimal point. | [1.5, -1.5] -> [0.5, -0.5]
gammaln|lgamma(x): special.gammaln
Compute logarithms of the gamma function. | [1.0, 4.0] ~ [0.    1.792]
i0(x): special.i0
Compute the modified Bessel function of order 0. | [0.0, 1.0] ~ [1.    1.266]
i0e(x): special.i0e
Compute `i0(x) * exp(-abs(x))`. | [0.0, 1.0] ~ [1.    0.466]
i1(x): special.i1
Compute the modified Bessel function of order 1. | [0.0, 1.0] ~ [0.    0.565]
i1e(x): special.i1e
Compute `i1(x) * exp(-abs(x))`. | [0.0, 1.0] ~ [0.    0.208]
imag(x): imag
Return imaginary parts. | [1j, 2.0] -> [1.0, 0.0]
isfinite(x): isfinite
Return which elements are neither infinite nor NaN. | [1.0, float("inf")] -> [True, False]
isinf(x): isinf
Return which elements are infinite. | [1.0, float("inf")] -> [False, True]
isnan(x): isnan
Return which elements are NaN. | [1.0, float("nan")] -> [False, True]
isneginf(x): isneginf
Return which elements are minus infinity. | [1.0, -float("inf")] -> [False, True]
isposinf(x): isposinf
Return which elements are plus infinity. | [1.0, float("inf")] -> [False, True]
isreal(x): isreal
Return which elements have no imaginary part. | [1j, 2.0] -> [False, True]
log(x): log
Compute natural logarithms. | [1.0, 2.0] ~ [0.    0.693]
log10(x): log10
Compute logarithms to base 10. | [1.0, 100.0] -> [0.0, 2.0]
log1p(x): log1p
Compute `log(1 + x)`. | [0.0, 1.0] ~ [0.    0.693]
log2(x): log2
Compute logarithms to base 2. | [1.0, 8.0] -> [0.0, 3.0]
logical_not(x): logical_not
Return which elements are zero. | [True, False] -> [False, True]
logit(x, eps=None) = special.logit(x if eps is None else pg.clip(x, eps, 1.0 - eps))
Compute `log(x / (1 - x))`, of `x` limited to `[eps, 1 - eps]`. | [0.5, 0.9] ~ [0.    2.197]
bitwise_not|bitwise_invert(x, out=None): invert(x)
Invert all bits. | [0, 5] -> [-1, -6]
multigammaln(x, p): special.multigammaln
Compute the logarithms of the multivariate gamma function. | [2.0, 3.0], 2 ~ [0.452 1.55 ]
nan_to_num(x, nan=0.0, posinf=None, neginf=None): nan_to_num
Replace NaN and infinities by finite numbers. | [1.0, float("nan")] -> [1.0, 0.0]
neg|negative(x): negative
Change signs. | [1.0, -2.0] -> [-1.0, 2.0]
polygamma(x, n): special.polygamma(n, x)
Compute the `n`-th derivative of `digamma`. | [1.0, 2.0], 1 ~ [1.645 0.645]
positive(x): positive
Return the elements. | [1.0, -2.0] -> [1.0, -2.0]
rad2deg(x): rad2deg
Convert radians to degrees. | [0.0, 3.0] ~ [  0.    171.887]
real(x): real
Return real parts. | [1j, 2.0] -> [0.0, 2.0]
reciprocal(x): reciprocal
Compute `1 / x`. | [2.0, 4.0] -> [0.5, 0.25]
round(x, decimals=0): round
Round to `decimals`, halves to even. | [0.5, 1.5] -> [0.0, 2.0]
rsqrt(x): rsqrt
Compute `1 / sqrt(x)`. | [1.0, 4.0] -> [1.0, 0.5]
sgn|sign(x): sign
Return signs, and numbers of magnitude one for complex numbers. | [-3.0, 0.0] -> [-1.0, 0.0]
sigmoid(x): sigmoid
Compute `1 / (1 + exp(-x))`. | [0.0, 1.0] ~ [0.5   0.731]
signbit(x): signbit
Return which elements have a minus sign. | [-3.0, 0.0] -> [True, False]
sin(x): sin
Return sines. | [0.0, 1.0] ~ [0.    0.841]
sinc(x): sinc
Compute `sin(pi * x) / (pi * x)`. | [0.0, 0.5] ~ [1.    0.637]
sinh(x): sinh
Return hyperbolic sines. | [0.0, 1.0] ~ [0.    1.175]
sqrt(x): sqrt
Compute square roots. | [4.0, 9.0] -> [2.0, 3.0]
square(x): square
Compute squares. | [3.0, -2.0] -> [9.0, 4.0]
stanh(x, scale_a=0.67, scale_b=1.7159) = scale_b * pg.tanh(pg.multiply(x, scale_a))
Compute `scale_b * tanh(scale_a * x)`. | [0.0, 1.0] ~ [0.    1.004]
tan(x): tan
Return tangents. | [0.0, 1.0] ~ [0.    1.557]
tanh(x): tanh
Return hyperbolic tangents. | [0.0, 1.0] ~ [0.    0.762]
trunc(input): trunc
Return the parts before the decimal point. | [1.5, -1.5] -> [1.0, -1.0]
clip|clamp(x, min=None, max=None) = limited(x, min, max)
Limit elements to an interval. | [-2.0, 3.0], 0.0, 1.0 -> [0.0, 1.0]
cast(x, dtype): cast
Convert to another dtype. | [1.5, 2.5], "int64" -> [1, 2]
view_as_real(input) = pg.stack([pg.real(input), pg.imag(input)], -1)
Return real and imaginary parts along a new last axis. | [1j, 2.0] -> [[0.0, 1.0], [2.0, 0.0]]
view_as_complex(input) = pg.complex(input[..., 0], input[..., 1])
Return complex numbers from the parts along the last axis. | [[1.0, 2.0]] -> [(1+2j)]
as_real(x) = pg.stack([pg.real(x), pg.imag(x)], -1)
Return real and imaginary parts along a new last axis. | [1j, 2.0] -> [[0.0, 1.0], [2.0, 0.0]]
as_complex(x) = pg.complex(x[..., 0], x[..., 1])
Return complex numbers from the parts along the last axis. | [[1.0, 2.0]] -> [(1+2j)]
"""

_ROWS_OF_TWO = """
add(x, y, *, alpha=1) = pg.add(x, y if alpha == 1 else pg.multiply(y, alpha))
Compute `x + alpha * y`. | [1.0, 2.0], [3.0, 4.0] -> [4.0, 6.0]
subtract|sub(x, y, *, alpha=1) = pg.subtract(x, y if alpha == 1 else pg.multiply(y, alpha))
Compute `x - alpha * y`. | [1.0, 2.0], [3.0, 5.0] -> [-2.0, -3.0]
multiply|mul(x, y): multiply
Compute products. | [1.0, 2.0], [3.0, 4.0] -> [3.0, 8.0]
divide|div(x, y, *, rounding_mode=None) = divided(x, y, rounding_mode)
Compute quotients; `rounding_mode` is "floor" or "trunc". | [1.0, 6.0], [4.0, 3.0] -> [0.25, 2.0]
true_divide(input, other) = divided(input, other, None)
Compute quotients. | [1.0, 6.0], [4.0, 3.0] -> [0.25, 2.0]
floor_divide(x, y): floor_divide
Compute quotients, rounded down. | [7, -7], [2, 2] -> [3, -4]
mod|remainder|floor_mod(x, y): remainder
Compute remainders of `floor_divide`, with the signs of `y`. | [7, -7], [3, 3] -> [1, 2]
pow(x, y): power
Compute powers. | [2.0, 3.0], 2 -> [4.0, 9.0]
maximum(x, y): maximum
Return the larger elements; NaN where there is one. | [1.0, 3.0], [2.0, 2.0] -> [2.0, 3.0]
minimum(x, y): minimum
Return the smaller elements; NaN where there is one. | [1.0, 3.0], [2.0, 2.0] -> [1.0, 2.0]
fmax(x, y): fmax
Return the larger elements that are no NaN. | [1.0, float("nan")], [2.0, 2.0] -> [2.0, 2.0]
fmin(x, y): fmin
Return the smaller elements that are no NaN. | [1.0, float("nan")], [2.0, 2.0] -> [1.0, 2.0]
atan2(x, y): arctan2
Return the angles of points `(y, x)`. | [1.0, 0.0], [1.0, 1.0] ~ [0.785 0.   ]
copysign(x, y): copysign
Return the magnitudes of `x` with the signs of `y`. | [1.0, 2.0], [-1.0, 1.0] -> [-1.0, 2.0]
gcd(x, y): gcd
Return greatest common divisors. | [12, 9], [8, 6] -> [4, 3]
lcm(x, y): lcm
Return least common multiples. | [4, 6], [6, 9] -> [12, 18]
gammainc(x, y): special.gammainc
Compute the regularized lower incomplete gamma function. | [1.0, 2.0], [1.0, 2.0] ~ [0.632 0.594]
gammaincc(x, y): special.gammaincc
Compute the regularized upper incomplete gamma function. | [1.0, 2.0], [1.0, 2.0] ~ [0.368 0.406]
heaviside(x, y): heaviside
Return 0 or 1 by the sign, and `y` for zeros. | [-1.0, 0.0], [0.5, 0.5] -> [0.0, 0.5]
hypot(x, y): hypot
Compute `sqrt(x * x + y * y)`. | [3.0, 6.0], [4.0, 8.0] -> [5.0, 10.0]
ldexp(x, y) = pg.multiply(as_float(x), pg.power(2.0, as_float(y)))
Compute `x * 2**y`. | [1.0, 3.0], [2, 3] -> [4.0, 24.0]
lerp(x, y, weight) = pg.add(x, pg.multiply(weight, pg.subtract(y, x)))
Compute `x + weight * (y - x)`. | [1.0, 2.0], [3.0, 4.0], 0.5 -> [2.0, 3.0]
logaddexp(x, y): logaddexp
Compute `log(exp(x) + exp(y))`. | [0.0, 1.0], [0.0, 1.0] ~ [0.693 1.693]
nextafter(x, y): nextafter
Return the next floats in the direction of `y`. | [1.0, 2.0], [1.0, 2.0] -> [1.0, 2.0]
equal|eq(x, y): equal
Return which elements are equal. | [1, 2], [1, 3] -> [True, False]
not_equal|ne(x, y): not_equal
Return which elements differ. | [1, 2], [1, 3] -> [False, True]
greater_than|greater|gt(x, y): greater
Return where `x > y`. | [1, 3], [2, 2] -> [False, True]
greater_equal|ge(x, y): greater_equal
Return where `x >= y`. | [1, 2], [2, 2] -> [False, True]
less_than|less|lt(x, y): less
Return where `x < y`. | [1, 3], [2, 2] -> [True, False]
less_equal|le(x, y): less_equal
Return where `x <= y`. | [1, 2], [2, 2] -> [True, True]
logical_and(x, y): logical_and
Return where both are nonzero. | [True, False], [True, True] -> [True, False]
logical_or(x, y): logical_or
Return where one is nonzero. | [True, False], [True, True] -> [True, True]
logical_xor(x, y): logical_xor
Return where exactly one is nonzero. | [True, False], [True, True] -> [False, True]
bitwise_and(x, y, out=None): bitwise_and(x, y)
Return the bits that are set in both. | [6, 5], [3, 3] -> [2, 1]
bitwise_or(x, y, out=None): bitwise_or(x, y)
Return the bits that are set in one. | [6, 5], [3, 3] -> [7, 7]
bitwise_xor(x, y, out=None): bitwise_xor(x, y)
Return the bits that are set in exactly one. | [6, 5], [3, 3] -> [5, 6]
bitwise_left_shift(x, y, is_arithmetic=True, out=None): left_shift(x, y)
Shift bits to the left. | [1, 3], [2, 2] -> [4, 12]
bitwise_right_shift(x, y, is_arithmetic=True, out=None): right_shift(x, y)
Shift bits to the right. | [8, 5], [2, 1] -> [2, 2]
isclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False): isclose
Return which elements agree to `atol + rtol * abs(y)`. | [1.0, 2.0], [1.0, 2.1] -> [True, False]
allclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False): allclose
Return whether all elements agree to `atol + rtol * abs(y)`. | [1.0, 2.0], [1.0, 2.1] -> False
equal_all(x, y): array_equal
Return whether shapes and all elements are the same. | [1, 2], [1, 2] -> True
complex(real, imag): complex
Return complex numbers of these parts. | [1.0, 2.0], [3.0, 4.0] -> [(1+3j), (2+4j)]
polar(abs, angle) = pg.complex(pg.multiply(abs, pg.cos(angle)), pg.multiply(abs, pg.sin(angle)))
Return complex numbers of these magnitudes and angles. | [1.0, 2.0], [0.0, 0.0] -> [(1+0j), (2+0j)]
add_n(inputs) = pg.add_n([inputs] if isinstance(inputs, Handle) else inputs)
Add all tensors in a list. | ([1.0, 2.0], [3.0, 4.0]) -> [4.0, 6.0]
where(condition, x=None, y=None) = chosen(condition, x, y)
Choose elements by a condition. | [True, False], [1.0, 2.0], [3.0, 4.0] -> [1.0, 4.0]
masked_fill(x, mask, value) = pg.where(mask, pg.astype(value, x.dtype), x)
Replace elements where the mask is true. | [1.0, 2.0], [True, False], 0.0 -> [0.0, 2.0]
increment(x, value=1.0) = replaced(x, pg.astype(pg.add(x, value), x.dtype))
Add to a tensor of one element, in place. | [1.0] -> [2.0]
isin(x, test_x, assume_unique=False, invert=False): isin(x, test_x, invert=invert)
Return which elements of `x` are in `test_x`. | [1, 2], [2, 3] -> [False, True]
"""


def limited(x: Any, low: Any, high: Any) -> Any:
    """Limit elements to an interval; integers become floats only by limits that are."""
    if x.dtype.kind in "iu" and (isinstance(low, float) or isinstance(high, float)):
        return pg.clip(pg.multiply(x, 1.0), low, high)
    return pg.astype(pg.clip(x, low, high), x.dtype)


def replaced(x: Any, value: Any) -> Any:
    """Show `value` in place of a tensor or variable."""
    return x.replace_by(value) if hasattr(x, "replace_by") else assign_to(x, value)


def divided(x: Any, y: Any, mode: str | None) -> Any:
    """Divide, and round as `mode` says."""
    if mode not in (None, "floor", "trunc"):
        raise ArgumentError(f"divide has no rounding_mode {mode!r:.40}: it is 'floor' or 'trunc'")
    if mode == "floor":
        return pg.floor_divide(x, y)
    found = pg.divide(x, y)
    return pg.trunc(found) if mode else found


def as_float(x: Any) -> Any:
    """Return integers as floats of the default dtype."""
    is_float = isinstance(x, Handle) and x.dtype.kind in "fc"
    return x if is_float else pg.multiply(x, 1.0)


def chosen(condition: Any, x: Any, y: Any) -> Any:
    """Choose elements; without any, return the indices where the condition is true."""
    if (x is None) is not (y is None):
        raise ArgumentError("where takes both x and y, or neither of them")
    if x is None:
        return tuple(pg.nonzero(condition))
    if not (isinstance(x, Handle) or isinstance(y, Handle)) and float in (type(x), type(y)):
        x, y = (np.asarray(v, dtype_or_default(None)) for v in (x, y))
    return pg.where(condition, x, y)


__all__ = [
    *define_functions(globals(), _ROWS_OF_ONE),
    *define_functions(globals(), _ROWS_OF_TWO),
]
