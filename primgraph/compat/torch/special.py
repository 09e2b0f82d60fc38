"""Special functions by the names that they have in `torch.special`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.torch.functions.compositions import logit
from primgraph.compat.torch.functions.reductions import log_softmax, softmax
from primgraph.compat.torch.functions.results import define_functions

_ROWS = """
bessel_j0(input): special.j0(input)
Compute the Bessel function of the first kind of order zero.
>>> torch.special.bessel_j0(torch.tensor([0.0, 1.0]))
tensor([1.0000, 0.7652])

bessel_j1(input): special.j1(input)
Compute the Bessel function of the first kind of order one.
>>> torch.special.bessel_j1(torch.tensor([0.0, 1.0]))
tensor([0.0000, 0.4401])

bessel_y0(input): special.y0(input)
Compute the Bessel function of the second kind of order zero.
>>> torch.special.bessel_y0(torch.tensor([1.0, 2.0]))
tensor([0.0883, 0.5104])

bessel_y1(input): special.y1(input)
Compute the Bessel function of the second kind of order one.
>>> torch.special.bessel_y1(torch.tensor([1.0, 2.0]))
tensor([-0.7812, -0.1070])

digamma|psi(input): special.digamma(input)
Compute the logarithmic derivative of the gamma function.
>>> torch.special.digamma(torch.tensor([1.0, 2.0]))
tensor([-0.5772,  0.4228])

entr(input): special.entr(input)
Compute `-input * log(input)`.
>>> torch.special.entr(torch.tensor([0.2, 0.5]))
tensor([0.3219, 0.3466])

erf(input): erf(input)
Compute the error function.
>>> torch.special.erf(torch.tensor([0.0, 1.0]))
tensor([0.0000, 0.8427])

erfc(input): erfc(input)
Compute `1 - erf(input)`.
>>> torch.special.erfc(torch.tensor([0.0, 1.0]))
tensor([1.0000, 0.1573])

erfcx(input): special.erfcx(input)
Compute `exp(input**2) * erfc(input)`.
>>> torch.special.erfcx(torch.tensor([0.0, 1.0]))
tensor([1.0000, 0.4276])

erfinv(input): special.erfinv(input)
Compute the inverse of the error function.
>>> torch.special.erfinv(torch.tensor([0.0, 0.5]))
tensor([0.0000, 0.4769])

exp2(input): exp2(input)
Compute powers of two.
>>> torch.special.exp2(torch.tensor([0.0, 3.0]))
tensor([1., 8.])

expit(input): sigmoid(input)
Compute `1 / (1 + exp(-input))`.
>>> torch.special.expit(torch.tensor([0.0, 1.0]))
tensor([0.5000, 0.7311])

expm1(input): expm1(input)
Compute `exp(input) - 1`.
>>> torch.special.expm1(torch.tensor([0.0, 1.0]))
tensor([0.0000, 1.7183])

gammainc(input, other): special.gammainc(input, other)
Compute the regularized lower incomplete gamma function.
>>> torch.special.gammainc(torch.tensor([1.0]), torch.tensor([2.0]))
tensor([0.8647])

gammaincc(input, other): special.gammaincc(input, other)
Compute the regularized upper incomplete gamma function.
>>> torch.special.gammaincc(torch.tensor([1.0]), torch.tensor([2.0]))
tensor([0.1353])

gammaln(input): special.gammaln(input)
Compute logarithms of absolute values of the gamma function.
>>> torch.special.gammaln(torch.tensor([1.0, 3.0]))
tensor([0.0000, 0.6931])

i0|modified_bessel_i0(input): special.i0(input)
Compute the modified Bessel function of order zero.
>>> torch.special.i0(torch.tensor([0.0, 1.0]))
tensor([1.0000, 1.2661])

i0e(input): special.i0e(input)
Compute `exp(-abs(input)) * i0(input)`.
>>> torch.special.i0e(torch.tensor([0.0, 1.0]))
tensor([1.0000, 0.4658])

i1|modified_bessel_i1(input): special.i1(input)
Compute the modified Bessel function of order one.
>>> torch.special.i1(torch.tensor([0.0, 1.0]))
tensor([0.0000, 0.5652])

i1e(input): special.i1e(input)
Compute `exp(-abs(input)) * i1(input)`.
>>> torch.special.i1e(torch.tensor([0.0, 1.0]))
tensor([0.0000, 0.2079])

log1p(input): log1p(input)
Compute `log(1 + input)`.
>>> torch.special.log1p(torch.tensor([0.0, 1.0]))
tensor([0.0000, 0.6931])

log_ndtr(input): special.log_ndtr(input)
Compute logarithms of the normal distribution function.
>>> torch.special.log_ndtr(torch.tensor([0.0, 1.0]))
tensor([-0.6931, -0.1728])

logsumexp(input, dim, keepdim=False): logsumexp(input, dim, keepdim)
Compute `log(sum(exp(input)))` over `dim`.
>>> torch.special.logsumexp(torch.zeros(2), 0)
tensor(0.6931)

modified_bessel_k0(input): special.k0(input)
Compute the modified Bessel function of the second kind of order zero.
>>> torch.special.modified_bessel_k0(torch.tensor([1.0, 2.0]))
tensor([0.4210, 0.1139])

modified_bessel_k1(input): special.k1(input)
Compute the modified Bessel function of the second kind of order one.
>>> torch.special.modified_bessel_k1(torch.tensor([1.0, 2.0]))
tensor([0.6019, 0.1399])

multigammaln(input, p): special.multigammaln(input, p)
Compute logarithms of the multivariate gamma function of dimension `p`.
>>> torch.special.multigammaln(torch.tensor([2.0]), 2)
tensor([0.4516])

ndtr(input): special.ndtr(input)
Compute the normal distribution function.
>>> torch.special.ndtr(torch.tensor([0.0, 1.0]))
tensor([0.5000, 0.8413])

ndtri(input): special.ndtri(input)
Compute the inverse of the normal distribution function.
>>> torch.special.ndtri(torch.tensor([0.2, 0.8]))
tensor([-0.8416,  0.8416])

polygamma(n, input): special.polygamma(n, input)
Compute the derivative of order `n` of the digamma function.
>>> torch.special.polygamma(1, torch.tensor([1.0, 0.5]))
tensor([1.6449, 4.9348])

round(input, *, decimals=0): round(input, decimals)
Round elements, halves to even.
>>> torch.special.round(torch.tensor([0.5, 1.5]))
tensor([0., 2.])

scaled_modified_bessel_k0(input): special.k0e(input)
Compute `exp(input)` times the modified Bessel function of the second kind of order zero.
>>> torch.special.scaled_modified_bessel_k0(torch.tensor([1.0, 2.0]))
tensor([1.1445, 0.8416])

scaled_modified_bessel_k1(input): special.k1e(input)
Compute `exp(input)` times the modified Bessel function of the second kind of order one.
>>> torch.special.scaled_modified_bessel_k1(torch.tensor([1.0, 2.0]))
tensor([1.6362, 1.0335])

sinc(input): sinc(input)
Compute `sin(pi x) / (pi x)`.
>>> torch.special.sinc(torch.tensor([0.0, 0.5]))
tensor([1.0000, 0.6366])

xlog1py(input, other): special.xlog1py(input, other)
Compute `input * log1p(other)`, which is 0 where `input` is.
>>> torch.special.xlog1py(torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 2.0]))
tensor([0.0000, 2.1972])

xlogy(input, other): special.xlogy(input, other)
Compute `input * log(other)`, which is 0 where `input` is.
>>> torch.special.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 2.0]))
tensor([0.0000, 1.3863])

zeta(input, other): special.zeta(input, other)
Compute the Hurwitz zeta function.
>>> torch.special.zeta(torch.tensor([2.0]), torch.tensor([1.0]))
tensor([1.6449])
"""

__all__ = [
    *define_functions(globals(), _ROWS, "torch.special"),
    "log_softmax",
    "logit",
    "softmax",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
