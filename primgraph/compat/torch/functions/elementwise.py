"""Functions of single elements, with torch's names for them and for their arguments."""

from __future__ import annotations

from primgraph.compat.torch.functions.results import define_functions

_ROWS = """
abs|absolute(input): abs(input)
Compute absolute values.
>>> torch.abs(torch.tensor([-1.0, 2.0]))
tensor([1., 2.])

acos|arccos(input): arccos(input)
Compute inverse cosines.
>>> torch.acos(torch.tensor([1.0, 0.0]))
tensor([0.0000, 1.5708])

acosh|arccosh(input): arccosh(input)
Compute inverse hyperbolic cosines.
>>> torch.acosh(torch.tensor([1.0, 2.0]))
tensor([0.0000, 1.3170])

asin|arcsin(input): arcsin(input)
Compute inverse sines.
>>> torch.asin(torch.tensor([0.0, 1.0]))
tensor([0.0000, 1.5708])

asinh|arcsinh(input): arcsinh(input)
Compute inverse hyperbolic sines.
>>> torch.asinh(torch.tensor([0.0, 1.0]))
tensor([0.0000, 0.8814])

atan|arctan(input): arctan(input)
Compute inverse tangents.
>>> torch.atan(torch.tensor([0.0, 1.0]))
tensor([0.0000, 0.7854])

atanh|arctanh(input): arctanh(input)
Compute inverse hyperbolic tangents.
>>> torch.atanh(torch.tensor([0.0, 0.5]))
tensor([0.0000, 0.5493])

angle(input): angle(input)
Compute angles of complex numbers, in radians.
>>> torch.angle(torch.tensor([1.0, -1.0]))
tensor([0.0000, 3.1416])

ceil(input): ceil(input)
Round up to integers.
>>> torch.ceil(torch.tensor([1.2, -1.2]))
tensor([ 2., -1.])

conj|conj_physical(input): conj(input)
Compute complex conjugates.
>>> torch.conj_physical(torch.tensor([1.0 + 2.0j]))
tensor([1.-2.j])

imag(input): imag(input)
Return imaginary parts.
>>> torch.imag(torch.tensor([1.0 + 2.0j]))
tensor([2.])

real(input): real(input)
Return real parts.
>>> torch.real(torch.tensor([1.0 + 2.0j]))
tensor([1.])

cos(input): cos(input)
Compute cosines.
>>> torch.cos(torch.tensor([0.0, 1.0]))
tensor([1.0000, 0.5403])

cosh(input): cosh(input)
Compute hyperbolic cosines.
>>> torch.cosh(torch.tensor([0.0, 1.0]))
tensor([1.0000, 1.5431])

deg2rad(input): deg2rad(input)
Convert degrees to radians.
>>> torch.deg2rad(torch.tensor([0.0, 180.0]))
tensor([0.0000, 3.1416])

digamma(input): special.digamma(input)
Compute the logarithmic derivative of the gamma function.
>>> torch.digamma(torch.tensor([1.0, 2.0]))
tensor([-0.5772,  0.4228])

erf(input): erf(input)
Compute the error function.
>>> torch.erf(torch.tensor([0.0, 1.0]))
tensor([0.0000, 0.8427])

erfc(input): erfc(input)
Compute `1 - erf(input)`.
>>> torch.erfc(torch.tensor([0.0, 1.0]))
tensor([1.0000, 0.1573])

erfinv(input): special.erfinv(input)
Compute the inverse of the error function.
>>> torch.erfinv(torch.tensor([0.0, 0.5]))
tensor([0.0000, 0.4769])

exp(input): exp(input)
Compute powers of e.
>>> torch.exp(torch.tensor([0.0, 1.0]))
tensor([1.0000, 2.7183])

exp2(input): exp2(input)
Compute powers of two.
>>> torch.exp2(torch.tensor([0.0, 3.0]))
tensor([1., 8.])

expm1(input): expm1(input)
Compute `exp(input) - 1`.
>>> torch.expm1(torch.tensor([0.0, 1.0]))
tensor([0.0000, 1.7183])

fix|trunc(input): trunc(input)
Round towards zero.
>>> torch.trunc(torch.tensor([1.7, -1.7]))
tensor([ 1., -1.])

floor(input): floor(input)
Round down to integers.
>>> torch.floor(torch.tensor([1.2, -1.2]))
tensor([ 1., -2.])

i0(input): special.i0(input)
Compute the modified Bessel function of order zero.
>>> torch.i0(torch.tensor([0.0, 1.0]))
tensor([1.0000, 1.2661])

isfinite(input): isfinite(input)
Return whether elements are finite.
>>> torch.isfinite(torch.tensor([1.0, float("inf"), float("nan")]))
tensor([ True, False, False])

isinf(input): isinf(input)
Return whether elements are infinite.
>>> torch.isinf(torch.tensor([1.0, float("inf"), float("nan")]))
tensor([False,  True, False])

isnan(input): isnan(input)
Return whether elements are NaN.
>>> torch.isnan(torch.tensor([1.0, float("inf"), float("nan")]))
tensor([False, False,  True])

isneginf(input): isneginf(input)
Return whether elements are negative infinity.
>>> torch.isneginf(torch.tensor([-float("inf"), 1.0]))
tensor([ True, False])

isposinf(input): isposinf(input)
Return whether elements are positive infinity.
>>> torch.isposinf(torch.tensor([float("inf"), 1.0]))
tensor([ True, False])

isreal(input): isreal(input)
Return whether elements have no imaginary part.
>>> torch.isreal(torch.tensor([1.0, 1.0j]))
tensor([ True, False])

lgamma(input): special.gammaln(input)
Compute logarithms of absolute values of the gamma function.
>>> torch.lgamma(torch.tensor([1.0, 3.0]))
tensor([0.0000, 0.6931])

log(input): log(input)
Compute natural logarithms.
>>> torch.log(torch.tensor([1.0, 2.0]))
tensor([0.0000, 0.6931])

log10(input): log10(input)
Compute logarithms to base 10.
>>> torch.log10(torch.tensor([1.0, 100.0]))
tensor([0., 2.])

log1p(input): log1p(input)
Compute `log(1 + input)`.
>>> torch.log1p(torch.tensor([0.0, 1.0]))
tensor([0.0000, 0.6931])

log2(input): log2(input)
Compute logarithms to base 2.
>>> torch.log2(torch.tensor([1.0, 8.0]))
tensor([0., 3.])

neg|negative(input): negative(input)
Change signs.
>>> torch.neg(torch.tensor([1.0, -2.0]))
tensor([-1.,  2.])

positive(input): positive(input)
Return the elements as they are.
>>> torch.positive(torch.tensor([1.0, -2.0]))
tensor([ 1., -2.])

rad2deg(input): rad2deg(input)
Convert radians to degrees.
>>> torch.rad2deg(torch.tensor([0.0, 1.0]))
tensor([ 0.0000, 57.2958])

ravel(input): ravel(input)
Return all elements along one axis.
>>> torch.ravel(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
tensor([1., 2., 3., 4.])

reciprocal(input): reciprocal(input)
Compute `1 / input`.
>>> torch.reciprocal(torch.tensor([1.0, 2.0]))
tensor([1.0000, 0.5000])

relu(input): relu(input)
Replace negative elements by zeros.
>>> torch.relu(torch.tensor([-1.0, 2.0]))
tensor([0., 2.])

rsqrt(input): rsqrt(input)
Compute `1 / sqrt(input)`.
>>> torch.rsqrt(torch.tensor([1.0, 4.0]))
tensor([1.0000, 0.5000])

sgn|sign(input): sign(input)
Return signs; of complex numbers `z / abs(z)`.
>>> torch.sign(torch.tensor([-2.0, 0.0, 3.0]))
tensor([-1.,  0.,  1.])

sigmoid(input): sigmoid(input)
Compute `1 / (1 + exp(-input))`.
>>> torch.sigmoid(torch.tensor([0.0, 1.0]))
tensor([0.5000, 0.7311])

signbit(input): signbit(input)
Return whether the sign bit is set.
>>> torch.signbit(torch.tensor([-0.0, 0.0]))
tensor([ True, False])

sin(input): sin(input)
Compute sines.
>>> torch.sin(torch.tensor([0.0, 1.0]))
tensor([0.0000, 0.8415])

sinc(input): sinc(input)
Compute `sin(pi x) / (pi x)`.
>>> torch.sinc(torch.tensor([0.0, 0.5]))
tensor([1.0000, 0.6366])

sinh(input): sinh(input)
Compute hyperbolic sines.
>>> torch.sinh(torch.tensor([0.0, 1.0]))
tensor([0.0000, 1.1752])

sqrt(input): sqrt(input)
Compute square roots.
>>> torch.sqrt(torch.tensor([1.0, 4.0]))
tensor([1., 2.])

square(input): square(input)
Compute squares.
>>> torch.square(torch.tensor([1.0, -2.0]))
tensor([1., 4.])

tan(input): tan(input)
Compute tangents.
>>> torch.tan(torch.tensor([0.0, 1.0]))
tensor([0.0000, 1.5574])

tanh(input): tanh(input)
Compute hyperbolic tangents.
>>> torch.tanh(torch.tensor([0.0, 1.0]))
tensor([0.0000, 0.7616])
"""

__all__ = define_functions(globals(), _ROWS)
