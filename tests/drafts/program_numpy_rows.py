"""What random programs in NumPy are made of: expressions and statements, as text.

Letters stand for operands: `a` any array, `b` another of its shape, `n` one with axes, `v` a
vector, `w` another of its length, `m` a matrix, `r` another, `q` a square one, `k` 0, 1 or 2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import primgraph as pg

PRELUDE = '''\
import math
import numpy as np
from numpy import linalg as la
import scipy.linalg
import scipy.special as sc
from scipy import stats
from scipy.special import gammaln


NUMBERS = np.array([0.2, -0.4, 0.7, 1.1])


def positive(x):
    """Numbers from 0.6 to 1.6."""
    return 0.6 + np.tanh(x) ** 2


def unit(x):
    """Numbers between 0 and 1, away from both."""
    return 0.5 + 0.4 * np.tanh(x)


def spd(m):
    """A positive definite matrix."""
    return m @ m.T / (1.0 + np.sum(m * m)) + np.eye(len(m))


def near(m):
    """A matrix near the identity."""
    return np.eye(len(m)) + 0.4 * m / (1.0 + la.norm(m))


def apart(m):
    """A matrix whose eigenvalues are real and apart."""
    return np.diag(np.arange(1.0, len(m) + 1)) + 0.3 * m / (1.0 + la.norm(m))


def even(m):
    """A symmetric one."""
    return apart(m + m.T)


def grown(x, shape):
    """An array of that shape, of which no two elements are equal as they come."""
    count = math.prod(shape)
    return np.resize(x, shape) + 0.3 * np.sin(np.arange(1, count + 1, dtype=x.dtype)).reshape(shape)


def distinct(x):
    """Numbers of which none are equal by their places."""
    return x + 0.0137 * np.arange(x.size).reshape(x.shape)


def of_cov(z, mean, cov):
    """A density, written out."""
    factor = np.linalg.cholesky(cov)
    apart = np.linalg.solve(factor, z - mean)
    return -0.5 * np.dot(apart, apart) - np.sum(np.log(np.diag(factor)))

'''

_UNARY = """
np.sin({a}); np.exp(0.3 * {a}); np.log(1.5 + {a} ** 2); np.sqrt(1 + {a} ** 2); np.sinc({a})
np.arctan2({a}, 2 + {a} ** 2); np.cbrt(2 + {a} ** 2); np.where({a} > 0.2, {a}, -2 * {a})
np.maximum({a}, 0.3); np.clip({a}, -0.7, 0.9); (0.01 + np.abs({a})) ** 1.5; np.nan_to_num({a})
np.hypot({a}, 1.0); np.logaddexp({a}, 0.5); np.expm1(0.1 * {a})
np.float_power(positive({a}), 1.3); np.heaviside({a}, 0.5) * {a}; np.copysign(1.5, {a}) * {a}
np.fmod({a}, 0.7); np.modf({a})[0]; np.divmod({a}, 0.8)[1]; np.mod({a}, 1.3)
np.interp({a}, [-2.0, -0.5, 0.4, 2.5], [1.0, 0.3, 2.0, -1.0])
np.piecewise({a}, [{a} < 0, {a} > 1], [lambda t: t ** 2, lambda t: 2 * t, 0.5])
np.select([{a} < -1, {a} < 1], [{a}, {a} ** 2], 0.5); np.tanh({a}); np.square({a}) - 1j.real
np.exp2({a}); np.log1p({a} ** 2); np.arcsinh({a}); np.deg2rad(40 * {a})
np.reciprocal(2 + {a} ** 2); np.i0(unit({a})); np.fmax({a}, 0.1); np.logaddexp2({a}, 1.0)
np.rint({a}) * {a}; np.trunc({a}) + {a}; math.pi * {a} + math.sqrt(2.0); np.angle({a} + 2j)
np.abs({a} + 1j); np.real(np.exp(1j * {a})); np.positive({a}); np.isclose({a}, 0.1) + {a}
np.sign({a}) * {a} ** 2; np.ldexp({a}, 2); np.float64(2) * {a}; np.polyval([1.0, -0.5, 0.2], {a})
np.power({a}, 3); {a} ** 2 - {a} / (1 + {a} ** 2); np.add({a}, 1, dtype=float)
np.fmod(np.where({a} > 0, -128, 7).astype(np.int8), np.int8(-3)) + {a}
np.ldexp(1e30 * {a}, -2000) + np.ldexp({a}, -140) + {a}; np.abs(np.sign(1e30 * ({a} + 1j)))
np.real(np.reciprocal({a} + 2j)); np.angle(np.sign({a}).astype(np.int8)) + {a}
np.nan_to_num(np.where({a} > 0, np.nan, {a})); np.nansum(np.where({a} > 0, np.nan, {a}))
np.nanmean(np.append(np.where({v} > 0, np.nan, {v}), {v}[0]))
np.round(np.where({a} > 0, 1.5, 0.3), 20) * {a}
"""

_BINARY = """
{a} * {b}; {a} - np.cos({b}); np.hypot({a}, {b}); np.arctan2({a}, 2 + {b} ** 2)
np.where({a} < {b}, {a}, {b}); np.maximum({a}, {b}); np.logaddexp({a}, {b})
np.power(positive({a}), {b}); {a} / positive({b}); np.fmin({a}, {b})
np.float_power(positive({b}), {a}); np.heaviside({a}, 1.0) * {b}; np.vdot({a}, {b})
np.einsum('...,...->...', {a}, {b}); np.mod({a}, positive({b}))
np.multiply({a}, {b}, dtype=float); np.inner({v}, {w}); np.outer({v}, {w}); np.dot({v}, {w})
np.convolve({v}, {w}); np.kron({v}, {w}[:2]); np.correlate({v}, {w}, 'same')
np.convolve({v}, {w}, 'valid'); np.correlate({v}, {w}, 'full'); np.cross({v}[:3], {w}[:3])
np.tensordot({m}, {r}, axes=([0], [0])); np.einsum('ij,kj->ik', {m}, {r})
np.polymul(positive({v}), positive({w}))
np.polyadd({v}, {w}); np.trapezoid({v}, np.cumsum(positive({w})))
np.average({v}, weights=positive({w})); np.cov({v}, {w})
np.interp({v}, np.cumsum(positive({w})), {w})
np.interp({v}, np.cumsum(positive({w})), {w}, period=9.0); np.add.outer({v}, {w})
np.multiply.outer({v}[:2], {m}); np.vecdot({m}, {r}); np.corrcoef(distinct({m}))
np.choose(np.arange(len({v})) % 2, [{v}, {w}]); np.where({v}[:, None] > 0, {w}, 0.5)
np.allclose({a}, {b}) + {a}; np.gradient({v}, np.cumsum(positive({w})))
np.cov({m}, rowvar=False); np.block([[{m}], [{r}]]); np.append({a}, {b})
np.insert({v}, 1, {w}[0]); np.c_[{v}, {w}]; np.r_[{v}, 0.5, {w}]; np.array([{v}, {w}])
np.stack([{a}, {b}], axis=-1); np.hstack([{n}, {n}]); np.column_stack([{v}, {w}])
np.vstack([{v}, {w}]); np.concatenate([{v}, {w}[::-1]])
np.array([[{v}[0], {w}[1]], [-{w}[1], {v}[0]]]); np.meshgrid({v}, {w})[1]
"""

_ARRAYS = """
np.sum({n}, axis=0); np.mean({n}, axis=-1, keepdims=True); np.std({a}); np.var({n}, axis=0)
np.prod({a} * 0.5); np.cumsum({n}, axis=-1); np.cumprod(0.8 * {n}, axis=0); np.sort({n}, axis=-1)
np.median({n}, axis=0); np.ptp({a}); np.quantile({a}, 0.3); np.percentile({n}, [20, 70], axis=-1)
np.max({n}, axis=0); np.min({a}); np.diff({n}); np.nanmean({a}); np.nanmax({n}, axis=0)
np.nansum({a}); np.partition({n}, 1); np.sort({a}, axis=None)
np.take_along_axis({n}, np.argsort({n}, axis=-1), axis=-1)
{n}[np.argsort(distinct({n}), axis=0)[:1].ravel() % len({n})]; np.roll({n}, {k}); np.flip({n})
np.tile({a}, 2); np.repeat({n}, 2, axis=0); np.pad({n}, 1, mode='reflect'); np.pad({n}, 1)
np.pad({n}, 2, 'linear_ramp', end_values=0.3)
np.pad({n}, 3, 'symmetric', reflect_type='odd'); np.pad(distinct({n}), 1, 'maximum')
np.pad({n}, (1, 2), 'mean', stat_length=2); np.pad({v}, 1, constant_values=({v}[0], 0.5))
np.packbits({n} > 0.1, axis=-1) * 0.01 + {n}[..., :1]; {n}.flat[1:4] * np.sum({n}.flat)
np.pad({v}, (1, 2), mode='edge'); np.expand_dims({a}, 0); np.squeeze({n}); np.ravel({a})
np.average({m}, axis=(1, 0), weights=positive({m}).T); np.min({v}[:0], initial=0.7) * {v}
np.max({m}[:0], axis=0, initial=0.7) + {m}; np.linalg.norm({m}, 1); np.linalg.norm({v}, -2)
{n}.ravel(order='F'); {m}.flatten('F'); {m}.reshape((1, -1), order='F')
{n}.T.reshape(-1, order='F')
np.moveaxis({n}, 0, -1); np.atleast_2d({a}); np.diag({v}); np.diag({m}); np.diagonal({m}, 1)
np.trace({m}); np.tril({m}); np.triu({m}, 1); np.rot90({m}); np.fliplr({m})
np.vander({v}[:3], 3); np.swapaxes({n}, 0, -1); np.rollaxis({m}, 1); np.array_split({v}, 2)[0]
np.split({v}, [1])[1]; np.delete({v}, 1); np.unwrap(2 * {v}); np.ediff1d({v}); np.gradient({v})
np.trapezoid({n}); np.logaddexp.reduce({v}); np.add.reduce({n}, axis=0); np.multiply.reduce({v})
np.add.accumulate({v}); np.maximum.accumulate({n}); np.minimum.accumulate({n}); np.polyder({v})
np.polyint({v}); np.cov({m}); np.histogram({v}, bins=3, weights={v})[0]
np.bincount([0, 1, 0], weights={v}[:3], minlength=3); np.count_nonzero({v} > 0) * {v}
np.argmax(distinct({n}), axis=0) + 0.5 * np.sum({n}); np.linalg.norm({n}, axis=0)
np.linalg.norm({a} + 0.1); np.linalg.norm({v}, 3); np.linalg.norm({v}, np.inf)
np.linalg.norm({m}, 'fro'); np.einsum('ii->i', {q}); np.einsum('ij->j', {m})
np.apply_along_axis(lambda t: t / (1 + t @ t), 0, {n})
np.extract(np.array([True, False, True]), {v}[:3]); np.compress([True, False, True], {v}[:3])
{v}[1:-1] * 2; {n}[..., ::-1]; {v}[[0, -1, 0]]; {m}[:, 1]; {m}[1, ::-1]; {m}[[0, 1], [1, 0]]
np.take({n}, [0, 0, -1], axis=0); {m}.T @ {m}; {q} @ {q} @ {q}[0]
np.lib.stride_tricks.sliding_window_view({v}, 2) @ np.array([1.0, -1.0])
np.select([{m} > 0], [{m}], 1.0).sum(axis=1)
np.real(np.fft.ifft(np.fft.fft({v}) * np.fft.fftfreq(len({v}))))
np.fft.irfft(np.fft.rfft({v}) * 1j, len({v})); np.abs(np.fft.fft2({m})) ** 2
np.fft.fftshift({v}); np.imag(np.fft.fft({v})); np.fft.hfft({v} + 0.3j)
np.searchsorted(np.sort({v}), 0.2) * {v}; np.digitize({v}, [-1, 0, 1]) * {v}
np.resize({a}, (2, 3)); np.broadcast_to({v}, (2, len({v}))); np.unravel_index(3, (2, 2))[0] + {a}
np.ix_([0, 1], [1])[0] + {a}; np.tri(len({v}))[1] * {v}; np.apply_over_axes(np.sum, {m}, [0])
"""

_LINEAR = """
la.solve(near({q}), {q}); la.inv(near({q})); la.det(near({q})); la.slogdet(spd({q}))[1]
la.cholesky(spd({q})); la.eigvalsh(even({q}))
(lambda w, u: (u * np.sin(w)) @ u.T)(*la.eigh(even({q}))); la.eigh(even({q}))[1] ** 2
la.eigvals(apart({q})); (lambda w, u: u @ np.diag(w ** 2) @ la.inv(u))(*la.eig(apart({q})))
la.svd(apart({q}))[1]; la.svd({m}, compute_uv=False)
(lambda u, s, v: (u * np.sqrt(s)) @ v)(*la.svd(apart({q})))
(lambda u, s, v: u ** 2 @ s)(*la.svd(apart({q}), full_matrices=False)); la.qr(near({q}))[0]
la.qr(near({q}))[1]; la.qr(near({q}), mode='r'); la.pinv(near({q})[:, :-1])
la.lstsq(near({q})[:, :-1], {q})[0]; la.matrix_power(near({q}), 3)
la.matrix_power(near({q}), -2); la.norm(apart({q}), 2); la.norm(apart({q}), 'nuc')
la.cond(apart({q})); la.multi_dot([{q}, near({q}), {q}]); la.matrix_rank({q}) + {q}
la.solve(near({q}), {q}[0]); la.solve(spd({q}), {q}) @ {q}[1]; la.inv(spd({q})) @ {q}[:, 0]
la.slogdet(near({q}))[0] * {q}; scipy.linalg.expm(0.5 * {q}); scipy.linalg.logm(spd({q}))
scipy.linalg.sqrtm(spd({q})); scipy.linalg.sqrtm(near({q})); scipy.linalg.logm(near({q}))
scipy.linalg.lu(near({q}))[1]; scipy.linalg.lu(near({q}))[2]
scipy.linalg.solve_triangular(near({q}), {q}[0])
scipy.linalg.solve_triangular(near({q}), {q}, lower=True)
scipy.linalg.cho_solve(scipy.linalg.cho_factor(spd({q})), {q})
scipy.linalg.lu_solve(scipy.linalg.lu_factor(near({q})), {q}[0]); scipy.linalg.toeplitz({v})
scipy.linalg.block_diag({m}, {q})
scipy.linalg.solve_toeplitz(np.r_[4.0, 0.3 * np.tanh({v})], np.r_[1.0, {v}])
scipy.linalg.solve_sylvester(spd({q}), near({q}), {q})
scipy.linalg.solve(spd({q}), {q}, assume_a='pos'); scipy.linalg.inv(near({q}))
scipy.linalg.solve_banded((1, 0), np.array([3.0 + np.tanh({v}), 0.4 * {v}]), {v})
scipy.linalg.cholesky(spd({q}), lower=True); scipy.linalg.det(near({q}))
np.linalg.tensorsolve(near({q}), {q}[0]); of_cov({q}[0], {q}[1], spd({q}))
np.linalg.cholesky(np.array([spd({q}), 2 * spd({q})]))
np.linalg.solve(np.stack([near({q}), spd({q})]), np.stack([{q}, {q}]))
np.linalg.matrix_norm(near({q})); np.linalg.vector_norm({q}, axis=0)
"""

_SPECIAL = """
sc.gammainc(positive({a}), positive({b})); sc.gammaincc(positive({a}), positive({b}))
sc.betainc(positive({a}), positive({b}), unit({a})); sc.betaincc(positive({a}), 1.3, unit({b}))
sc.xlogy({a}, positive({b})); sc.xlog1py({a}, unit({b}))
sc.rel_entr(positive({a}), positive({b})); sc.kl_div(positive({a}), positive({b}))
sc.betaln(positive({a}), positive({b})); sc.beta(positive({a}), positive({b}))
sc.binom(3 + {a}, positive({b})); sc.poch(positive({a}), positive({b}))
sc.boxcox(positive({a}), {b}); sc.boxcox1p(positive({a}), unit({b})); sc.huber(0.7, {a})
sc.pseudo_huber(positive({a}), {b}); sc.jv({k}, {a}); sc.iv({k}, {a}); sc.kv({k}, positive({a}))
sc.yv({k}, positive({a})); sc.ive({k}, positive({a})); sc.kve({k}, positive({a}))
sc.expn(2, positive({a})); sc.hyp2f1(0.5, 1.2, 2.1, 0.6 * np.tanh({a}))
sc.polygamma({k}, positive({a})); sc.multigammaln(2 + positive({a}), 2); sc.erf({a})
sc.erfc({a}); sc.erfinv(np.tanh({a}) * 0.8); sc.erfcx({a}); sc.ndtr({a}); sc.ndtri(unit({a}))
sc.log_ndtr({a}); sc.expit({a}); sc.logit(unit({a})); sc.log_expit({a}); gammaln(positive({a}))
sc.gamma(positive({a})); sc.psi(positive({a})); sc.entr(unit({a})); sc.exprel({a}); sc.i0e({a})
sc.i1({a}); sc.j0({a}); sc.j1({a}); sc.y0(positive({a})); sc.k1(positive({a}))
sc.exp1(positive({a})); sc.expi(positive({a})); sc.sici(positive({a}))[0]; sc.dawsn({a})
sc.spence(positive({a})); sc.ellipk(0.5 * unit({a})); sc.ellipe(0.5 * unit({a}))
np.real(sc.lambertw(positive({a}))); sc.logsumexp({a})
sc.logsumexp({n}, axis=-1, b=positive({n}))
sc.logsumexp({a}, b=-positive({b}), return_sign=True)[0]; sc.softmax({n}, axis=0)
sc.log_softmax({n}, axis=-1); sc.erfcinv(2 * unit({a})); sc.comb(5, {k}) * {a}
sc.factorial({k}) + {a}; sc.exp2({a}); sc.erfi(unit({a})); sc.gammasgn({a}) * {a}
"""

_STATISTICS = """
stats.norm.logpdf({a}, {b}, positive({a})); stats.norm.cdf({a}, scale=positive({b}))
stats.norm.logcdf({a} - 3); stats.norm.sf({a}, {b}); stats.norm.ppf(unit({a}), {b})
stats.t.logpdf({a}, 2 + positive({b})); stats.t.cdf({a}, 2 + positive({b}))
stats.t.pdf({a}, 3.5, {b}, positive({a})); stats.beta.logpdf(unit({a}), positive({b}), 2.0)
stats.beta.cdf(unit({a}), positive({b}), positive({a}))
stats.gamma.logpdf(positive({a}), positive({b}))
stats.gamma.cdf(positive({a}), positive({b}), scale=positive({a}))
stats.poisson.logpmf({k}, positive({a})); stats.poisson.cdf({k}, positive({a}))
stats.expon.logpdf(positive({a}), scale=positive({b}))
stats.laplace.logpdf({a}, {b}, positive({a})); stats.laplace.cdf({a}, {b})
stats.lognorm.logpdf(positive({a}), positive({b}))
stats.uniform.logpdf(unit({a}), -1.0, 2 + positive({b}))
stats.chi2.logpdf(positive({a}), 1 + positive({b})); stats.bernoulli.logpmf(1, unit({a}))
stats.binom.logpmf({k}, 4, unit({a})); stats.binom.cdf({k}, 4, unit({a}))
stats.dirichlet.logpdf([0.2, 0.3, 0.5], positive({v}[:3]))
stats.multivariate_normal.logpdf({q}[0], {q}[1], spd({q}))
stats.multivariate_normal.pdf({q}, {q}[0], spd({q})); stats.gamma.sf(positive({a}), 2.0)
stats.expon.cdf(positive({a})); stats.gamma.pdf([0.0, 1.0], 1.2 + positive({v}[0]))
stats.beta.pdf([0.0, 0.4, 1.0], 1.2 + positive({v}[0]), 1.5 + positive({v}[0]))
stats.chi2.pdf([0.0, 1.0], 2.4 + positive({v}[0])); stats.lognorm.sf([0.0, 1.5], positive({v}[0]))
stats.lognorm.cdf([0.0, 1.5], positive({v}[0]), scale=positive({v}[1]))
stats.norm.cdf([-np.inf, 0.3, np.inf], {v}[0], positive({v}[1]))
stats.dirichlet.pdf([0.0, 0.4, 0.6], 1.2 + positive({v}[:3]))
"""

_OWN = """
first_places({v} > 0) * {v}[:2]; {v}[first_places({v} > 0)]; kept({a}, {a} > 0.1)
different(np.round({v})); np.sum(at_places({v} > 0)) * {v}
convolved(np.resize({m}, (1, 2, 5)), np.resize({q}, (2, 2, 3)))
convolved2(np.resize({m}, (1, 1, 4, 4)), np.resize({q}, (2, 1, 2, 2)))
max_pooled(np.resize({m}, (1, 2, 4))); avg_pooled(np.resize({q}, (1, 1, 4, 4))); largest({v})
similar({m}); filler.run({a}); filler.part @ {v}[:2]; np.sum({a}[{a} > 0.1] * {b}[{a} > 0.1])
np.prod({n}[{n} < 0.3], keepdims=True); np.sum(np.sqrt({a}[{a} > 0.1])) * {a}[{a} > 9.0].size
np.sum(np.hypot({a}[{a} > 0.1], 0.5)) * np.dot({n}[{n} > 0.2], {n}[{n} > 0.2])
"""

# What SciPy gives float64 of for float32, which it is not here.
WIDE = ("expn", "hyp2f1", "stats.", "sc.jv", "sc.iv", "sc.kv", "sc.yv", "sc.poly", "sc.multi",
        "lambertw", "solve_toeplitz")  # fmt: skip

EXPRESSIONS = [
    [part.strip() for line in family.strip().splitlines() for part in line.split("; ")]
    for family in (_UNARY, _BINARY, _ARRAYS, _LINEAR, _SPECIAL, _STATISTICS, _OWN)
]
EXPRESSIONS = [[part for part in family if part] for family in EXPRESSIONS]

STATEMENTS = [
    """
{out} = np.zeros_like({v})
{out}[1:-1] = {v}[2:] - {v}[:-2]
{out} += 0.5 * {w}
""",
    """
{out} = {n}.copy()
{out}[0] = 0.3
{out}[-1] *= 2.0
""",
    """
{out} = np.array({a})
{out}[{a} > 0.1] = 0.25
""",
    """
{out} = {a}.copy()
{out}.fill(0.5)
{out} += {a}
""",
    """
{out} = np.zeros(len({v}))
{out}[0] = {v}[0]
for i in range(1, len({v})):
    {out}[i] = 0.5 * {out}[i - 1] + np.sin({v}[i])
""",
    """
{out} = np.zeros({q}.shape)
np.fill_diagonal({out}, np.diag({q}))
{out}[0, 1:] = {q}[1:, 0]
""",
    """
{out} = np.zeros(3)
np.add.at({out}, [0, 2, 0], {v}[:3])
""",
    """
{out} = 0.1 * {n}
np.maximum.at({out}, [0, -1, 0], distinct({n})[:1])
np.multiply.at({out}, [0, 0], {v}[0])
np.putmask({out}, {out} < -0.1, {v})
np.place({out}, {out} > 0.4, {w})
{out}.flat[1::2] += {v}[0]
""",
    """
{out} = np.zeros_like({a})
mask = {a} > 0.1
if mask.any():
    {out}[mask] = np.sqrt({a}[mask]) + np.interp({a}[mask], [0.0, 1.0], [0.5, 2.0])
""",
    """
{out} = np.empty((2,) + np.shape({a}))
{out}[0], {out}[1] = {a}, np.cos({b})
""",
    """
{out} = {n} * 1.0
np.put_along_axis({out}, np.argmax(distinct({n}), axis=0)[None], 0.5, axis=0)
""",
    """
{out} = {v} + 0.0
{out}[[0, -1]] = {w}[:2]
{out}[np.argsort(distinct({v}))[:2]] = [0.5, {w}[1]]
{out}[::2] -= {v}[::2] ** 2
""",
    """
{out} = np.zeros((2, 3))
{out}[np.arange(2), np.argmax(distinct({m}), axis=1)[:2] % 3] = {m}[:2, 0]
{out}[:, np.argmin(distinct({w}[:3]))] = 2.0
""",
    """
{out} = np.concatenate([{v}, {w}])
{out}.sort()
{out} = np.diff({out}) ** 2 + np.max({v})
""",
    """
{out} = {v}.copy()
{out}.put([0, -1], {w}[:2])
{out}.fill({w}[1]) if len({v}) > 6 else None
""",
    """
{out} = 0.0
for row in {m}:
    {out} = {out} * 0.9 + np.sum(row) * np.max(row)
""",
    """
{out} = np.ones_like({n})
np.multiply({out}, {n}, out={out})
{out} **= 2
""",
    """
{out} = [np.tanh(x) for x in {v}]
{out} = np.mean({out}) + np.asarray({out}) * {v}
""",
    """
{out} = {m}.reshape(-1)[:4].sum() + {m}.T.copy()
{out}[:, 0] /= positive({m}[0])[:1]
""",
    """
{out} = {v}
while len({out}) > 2:
    {out} = 0.5 * ({out}[1:] + {out}[:-1])
""",
    # Arrays of numbers, of any origin, to which what is traced is written.
    """
{out} = np.array([0.3, -0.2, 0.5, 0.1])
{out}[1:3] = {v}[:2]
{out}[0] *= {w}[1]
""",
    """
{out} = NUMBERS.copy()
{out} *= np.sum({v})
{out}[0], {out}[-1] = {v}[1], {out}[0]
""",
    """
{out} = np.arange(6.0).reshape(2, 3)
{out}[0][1:] = {v}[:2]
{out}[1] -= {w}[0]
""",
    """
{out} = np.zeros({v}.shape, dtype=int)
{out}[distinct({v}) > 0.2] = 1
{out}[0] += np.sum({w} > 0.1)
{out} = {out} * {w} + np.sum({out}[1:])
""",
    """
{out} = np.sin(NUMBERS) + 0.5
{out}[1:] += {v}[0] * {out}[:-1]
""",
    """
{out} = -2 * NUMBERS
for i in range(len({out})):
    if i % 2:
        {out}[i] -= {v}[i % 3] ** 2
    else:
        {out}[i] = {out}[i - 1] * {w}[0]
""",
    """
{out} = {v} * {w}
{out}[0] = 0.3
{out}[1:] /= positive({v}[1:])
""",
    # Elements that masks choose, which are computed.
    """
{out} = np.zeros_like({a})
{out}[{a} > 0.1] = np.log({a}[{a} > 0.1]) / {a}[{a} > 0.1]
{out}[{a} <= 0.1] = np.exp({a}[{a} <= 0.1]) * {b}[{a} <= 0.1]
""",
    """
{out} = {a} * 1.0
m = {b} > 0.2
{out}[m] *= np.sqrt({b}[m])
np.place({out}, {b} < -0.3, np.extract({b} < -0.3, {a}) ** 2)
np.putmask({out}, {b} < -0.9, {b})
""",
    """
{out} = np.full_like({n}, 0.4)
p = {n}[{n} > 0.1] - 0.2
p[p > 0.3] = np.log(p[p > 0.3])
{out}[{n} > 0.1] = p
""",
]


class _Filler:
    """An object whose methods make arrays and assign to them."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def run(self, x: np.ndarray) -> np.ndarray:
        found = np.zeros_like(x)
        found[...] = self.scale * x
        found[..., :1] += math.cos(self.scale)
        return found

    @property
    def part(self) -> np.ndarray:
        found = np.ones(2)
        found[1] = math.sin(self.scale)
        return found


def _first_places(mask: np.ndarray) -> Any:
    places = np.flatnonzero(mask)[:2]
    return np.concatenate([places, np.zeros(2 - len(places), int)])


def _kept(x: np.ndarray, mask: np.ndarray) -> Any:
    found = np.extract(mask, x)[:2]
    return np.concatenate([found, np.full(2 - len(found), 0.5, x.dtype)])


def _different(x: np.ndarray) -> Any:
    found = np.unique(x)[:3]
    return np.concatenate([found, np.full(3 - len(found), -1.0, x.dtype)])


def _at_places(mask: np.ndarray) -> Any:
    found = np.argwhere(mask)[:3]
    return np.concatenate([found, np.zeros((3 - len(found), 1), int)])


def _convolved(x: np.ndarray, weight: np.ndarray) -> Any:
    count = weight.ndim - 2
    axes = tuple(range(2, 2 + count))
    padded = np.pad(x, [(0, 0), (0, 0)] + [(1, 1)] * count)
    windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], axes)
    windows = windows[(slice(None), slice(None), *[slice(None, None, 2)] * count)]
    letters = "xyz"[:count], "uvw"[:count]
    return np.einsum(f"nc{letters[0]}{letters[1]},oc{letters[1]}->no{letters[0]}", windows, weight)


def _pooled(function: Any, x: np.ndarray) -> Any:
    count = x.ndim - 2
    windows = np.lib.stride_tricks.sliding_window_view(x, (2,) * count, tuple(range(2, x.ndim)))
    windows = windows[(slice(None), slice(None), *[slice(None, None, 2)] * count)]
    return function(windows, axis=tuple(range(-count, 0)))


def _similar(m: np.ndarray) -> Any:
    scores = m @ m.T / np.sqrt(m.shape[1]).astype(m.dtype)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ m


_FILLER = _Filler(0.7)
FOREIGN: dict[str, tuple[Any, Any]] = {
    "filler": (_FILLER, _FILLER),
    "first_places": (_first_places, lambda m: pg.flatnonzero(m, size=2)),
    "kept": (_kept, lambda x, m: pg.extract(m, x, size=2, fill_value=0.5)),
    "different": (_different, lambda x: pg.unique(x, size=3, fill_value=-1.0)),
    "at_places": (_at_places, lambda m: pg.argwhere(m, size=3)),
    "convolved": (_convolved, lambda x, w: pg.conv1d(x, w, stride=2, padding=1)),
    "convolved2": (_convolved, lambda x, w: pg.conv2d(x, w, stride=2, padding=1)),
    "max_pooled": (lambda x: _pooled(np.max, x), lambda x: pg.max_pool1d(x, 2)),
    "avg_pooled": (lambda x: _pooled(np.mean, x), lambda x: pg.avg_pool2d(x, 2)),
    "largest": (lambda v: np.sort(v)[::-1][:2], lambda v: pg.top_k(v, 2).values),
    "similar": (_similar, lambda m: pg.scaled_dot_product_attention(m, m, m)),
}
"""What NumPy has no function for: written out in NumPy, and what it is here."""
