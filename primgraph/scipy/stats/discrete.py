"""Distributions of whole numbers, by SciPy's names and parameters."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, final

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import abs, floor, maximum, minimum, square
from primgraph.operators.elementwise.elementary import exp, expm1, log, log1p, sqrt, tanh
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    where,
)
from primgraph.operators.elementwise.scipy_calls import zeta
from primgraph.operators.elementwise.special_compositions import boxcox
from primgraph.operators.elementwise.special_functions import (
    betainc,
    betaincc,
    betaln,
    gammainc,
    gammaincc,
    gammaln,
    xlog1py,
)
from primgraph.operators.networks.activations import log_softmax
from primgraph.operators.promotion import fractional, lift
from primgraph.operators.reduce.reductions import any, sum
from primgraph.operators.shape.creation import arange
from primgraph.operators.shape.shaping import expand_dims
from primgraph.operators.variable import Variable
from primgraph.scipy.stats.distribution import Distribution, Frozen, call_method
from primgraph.scipy.stats.integrals import LOG_WEIGHTS, PLACES, POSITIVE_NODES
from primgraph.scipy.stats.noncentral import ncx2
from primgraph.scipy.stats.parts import Power, Rule, are_positive, log_sum


def _is_probability(p: Variable) -> Variable:
    return logical_and(greater_equal(p, 0.0), less_equal(p, 1.0))


bernoulli = Distribution(
    "bernoulli",
    logdensity=lambda k, p: 0.0 * (k + p),
    powers=lambda k, p: [Power(k, p), Power(1.0 - k, -p, plus_one=True)],
    below=lambda k, p: 1.0 - p + 0.0 * k,
    above=lambda k, p: p + 0.0 * k,
    support=lambda p: (0.0, 1.0),
    valid=_is_probability,
    is_discrete=True,
)
"""One with probability `p`, else zero."""

binom = Distribution(
    "binom",
    logdensity=lambda k, n, p: -betaln(n - k + 1.0, k + 1.0) - log(n + 1.0) + 0.0 * p,
    powers=lambda k, n, p: [Power(k, p), Power(n - k, -p, plus_one=True)],
    below=lambda k, n, p: betaincc(k + 1.0, n - k, p),
    above=lambda k, n, p: betainc(k + 1.0, n - k, p),
    support=lambda n, p: (0.0, n),
    valid=lambda n, p: logical_and(greater_equal(n, 0.0), _is_probability(p)),
    is_discrete=True,
)
"""How many of `n` trials succeed, each with probability `p`."""

poisson = Distribution(
    "poisson",
    logdensity=lambda k, mu: -gammaln(k + 1.0) - mu,
    powers=lambda k, mu: [Power(k, mu)],
    below=lambda k, mu: gammaincc(k + 1.0, mu),
    above=lambda k, mu: gammainc(k + 1.0, mu),
    support=lambda mu: (0.0, math.inf),
    valid=lambda mu: greater_equal(mu, 0.0),
    is_discrete=True,
)
"""How many events there are where `mu` are expected."""


geom = Distribution(
    "geom",
    logdensity=lambda k, p: xlog1py(k - 1.0, -p) + log(p),
    below=lambda k, p: -expm1(xlog1py(k, -p)),
    above=lambda k, p: exp(xlog1py(k, -p)),
    log_above=lambda k, p: xlog1py(k, -p),
    support=lambda p: (1.0, math.inf),
    valid=lambda p: logical_and(greater(p, 0.0), less_equal(p, 1.0)),
    is_discrete=True,
)
"""How many trials there are until the first success, of probability `p`."""

nbinom = Distribution(
    "nbinom",
    logdensity=lambda k, n, p: -betaln(n, k + 1.0) - log(n + k) + n * log(p) + xlog1py(k, -p),
    below=lambda k, n, p: betainc(n, k + 1.0, p),
    above=lambda k, n, p: betaincc(n, k + 1.0, p),
    support=lambda n, p: (0.0, math.inf),
    valid=lambda n, p: logical_and(
        greater(n, 0.0), logical_and(greater(p, 0.0), less_equal(p, 1.0))
    ),
    is_discrete=True,
)
"""How many trials fail before `n` succeed, each with probability `p`."""

planck = Distribution(
    "planck",
    shapes="lambda_",
    logdensity=lambda k, rate: log(-expm1(-rate)) - rate * k,
    below=lambda k, rate: -expm1(-rate * (k + 1.0)),
    above=lambda k, rate: exp(-rate * (k + 1.0)),
    log_above=lambda k, rate: -rate * (k + 1.0),
    support=lambda rate: (0.0, math.inf),
    is_discrete=True,
)
"""The whole part of an exponential number of rate `lambda_`."""

boltzmann = Distribution(
    "boltzmann",
    shapes="lambda_ N",
    logdensity=lambda k, rate, n: log(expm1(-rate) / expm1(-rate * n)) - rate * k,
    below=lambda k, rate, n: expm1(-rate * (k + 1.0)) / expm1(-rate * n),
    above=lambda k, rate, n: (
        exp(-rate * (k + 1.0)) * expm1(-rate * (n - k - 1.0)) / expm1(-rate * n)
    ),
    support=lambda rate, n: (0.0, n - 1.0),
    is_discrete=True,
)
"""`planck`, below `N`."""


def _dlaplace_below(k: Variable, a: Variable) -> Variable:
    is_left = less(k, 0.0)
    tail = exp(a * where(is_left, k + 1.0, -k)) / (exp(a) + 1.0)
    return where(is_left, tail, 1.0 - tail)


dlaplace = Distribution(
    "dlaplace",
    logdensity=lambda k, a: log(tanh(0.5 * a)) - a * abs(k),
    below=_dlaplace_below,
    above=lambda k, a: _dlaplace_below(-k - 1.0, a),
    support=lambda a: (-math.inf, math.inf),
    is_discrete=True,
)
"""The difference of two numbers of `planck`."""

randint = Distribution(
    "randint",
    logdensity=lambda k, low, high: -log(high - low) + 0.0 * k,
    below=lambda k, low, high: (k - low + 1.0) / (high - low),
    above=lambda k, low, high: (high - k - 1.0) / (high - low),
    support=lambda low, high: (low, high - 1.0),
    valid=less,
    is_discrete=True,
)
"""Equal probabilities from `low` to `high - 1`."""

yulesimon = Distribution(
    "yulesimon",
    logdensity=lambda k, alpha: log(alpha) + betaln(k, alpha + 1.0),
    above=lambda k, alpha: exp(log(k) + betaln(k, alpha + 1.0)),
    support=lambda alpha: (1.0, math.inf),
    is_discrete=True,
)
"""The distribution of Yule and Simon."""

zipf = Distribution(
    "zipf",
    logdensity=lambda k, a: -a * log(k) - log(zeta(a, 1.0)),
    above=lambda k, a: zeta(a, k + 1.0) / zeta(a, 1.0),
    support=lambda a: (1.0, math.inf),
    valid=lambda a: greater(a, 1.0),
    is_discrete=True,
)
"""Zipf's distribution: probabilities `k**-a`."""


def _log_choose(n: Variable, k: Variable) -> Variable:
    return -betaln(n - k + 1.0, k + 1.0) - log(n + 1.0)


def _are_whole(*counts: Variable) -> Variable:
    found = equal(counts[0], floor(counts[0]))
    for other in counts[1:]:
        found = logical_and(found, equal(other, floor(other)))
    return found


betabinom = Distribution(
    "betabinom",
    logdensity=lambda k, n, a, b: _log_choose(n, k) + betaln(k + a, n - k + b) - betaln(a, b),
    support=lambda n, a, b: (0.0, n),
    valid=lambda n, a, b: logical_and(
        logical_and(greater_equal(n, 0.0), _are_whole(n)), are_positive(a, b)
    ),
    middle=lambda n, a, b: n * a / (a + b),
    is_discrete=True,
)
"""How many of `n` trials succeed, with a probability of the beta distribution."""

betanbinom = Distribution(
    "betanbinom",
    logdensity=lambda k, n, a, b: (
        -log(n + k) - betaln(n, k + 1.0) + betaln(a + n, b + k) - betaln(a, b)
    ),
    support=lambda n, a, b: (0.0, math.inf),
    valid=lambda n, a, b: logical_and(
        logical_and(greater_equal(n, 0.0), _are_whole(n)), are_positive(a, b)
    ),
    middle=lambda n, a, b: n * b / a,
    is_discrete=True,
)
"""How many trials fail before `n` succeed, with a probability of the beta distribution."""


def _drawn_range(M: Variable, n: Variable, N: Variable) -> tuple[Variable, Variable]:
    return maximum(N - (M - n), 0.0), minimum(n, N)


def _can_be_drawn(M: Variable, n: Variable, N: Variable) -> Variable:
    found = logical_and(greater(M, 0.0), logical_and(greater_equal(n, 0.0), greater_equal(N, 0.0)))
    return logical_and(found, logical_and(_are_whole(M, n, N), less_equal(maximum(n, N), M)))


hypergeom = Distribution(
    "hypergeom",
    logdensity=lambda k, M, n, N: _log_choose(n, k) + _log_choose(M - n, N - k) - _log_choose(M, N),
    support=_drawn_range,
    valid=_can_be_drawn,
    middle=lambda M, n, N: n * N / M,
    is_discrete=True,
)
"""How many of `n` marked among `M` things are among `N` that are drawn."""


def _log_nhypergeom(k: Variable, M: Variable, n: Variable, r: Variable) -> Variable:
    is_none = equal(r, 0.0)
    count = where(is_none, 1.0, r)
    found = _log_choose(k + count - 1.0, k) + _log_choose(M - count - k, n - k) - _log_choose(M, n)
    return where(is_none, where(equal(k, 0.0), 0.0, -math.inf), found)


nhypergeom = Distribution(
    "nhypergeom",
    logdensity=_log_nhypergeom,
    support=lambda M, n, r: (0.0, n),
    valid=lambda M, n, r: _can_be_drawn(M, n, r + n),
    middle=lambda M, n, r: r * n / (M - n + 1.0),
    is_discrete=True,
)
"""How many of `n` marked among `M` things are drawn before `r` of the others are."""


def _odds_are_valid(M: Variable, n: Variable, N: Variable, odds: Variable) -> Variable:
    return logical_and(_can_be_drawn(M, n, N), greater(odds, 0.0))


def _fisher_mode(M: Variable, n: Variable, N: Variable, odds: Variable) -> Variable:
    """Return the root of the quadratic equation for neighbours of equal probability."""
    half = 0.5 * (M - n - N - (n + N + 2.0) * odds)
    last = (n + 1.0) * (N + 1.0) * odds
    return last / (sqrt(square(half) - (odds - 1.0) * last) - half)


def _log_fisher(k: Variable, M: Variable, n: Variable, N: Variable, odds: Variable) -> Variable:
    return _log_choose(n, k) + _log_choose(M - n, N - k) + k * log(odds)


def _log_fisher_share(k: Variable, *own: Variable) -> Variable:
    wide = [expand_dims(v, -1) for v in own]
    first, last = _drawn_range(*wide[:3])
    at = first + PLACES
    is_in = less_equal(at, last)
    terms = where(is_in, _log_fisher(where(is_in, at, first), *wide), -math.inf)
    whole = where(greater(last - first, PLACES[-1])[..., 0], math.nan, log_sum(terms))
    return _log_fisher(k, *own) - whole


nchypergeom_fisher = Distribution(
    "nchypergeom_fisher",
    logdensity=_log_fisher_share,
    support=lambda M, n, N, odds: _drawn_range(M, n, N),
    shapes="M n N odds",
    valid=_odds_are_valid,
    middle=_fisher_mode,
    is_discrete=True,
)
"""Fisher's noncentral distribution: `hypergeom`, times powers of `odds`; for 1,024 numbers."""


def _log_wallenius(k: Variable, M: Variable, n: Variable, N: Variable, odds: Variable) -> Variable:
    """Return the logarithm of a probability by an integral (A. Fog, 2008)."""
    rest = odds * (n - k) + (M - n - N + k)
    is_whole = equal(rest, 0.0)
    rate = expand_dims(where(is_whole, 1.0, rest), -1)
    marked, others, weight = (expand_dims(v, -1) for v in (k, N - k, odds))
    exponents = marked * log(-expm1(-weight * POSITIVE_NODES))
    exponents = exponents + others * log(-expm1(lift(-POSITIVE_NODES)))
    exponents = exponents + log(rate) - rate * POSITIVE_NODES + LOG_WEIGHTS
    whole = where(is_whole, 0.0, log_sum(exponents))
    return _log_choose(n, k) + _log_choose(M - n, N - k) + whole


nchypergeom_wallenius = Distribution(
    "nchypergeom_wallenius",
    logdensity=_log_wallenius,
    support=lambda M, n, N, odds: _drawn_range(M, n, N),
    valid=_odds_are_valid,
    middle=_fisher_mode,
    is_discrete=True,
)
"""Wallenius' noncentral distribution: marked things are drawn with a weight of `odds`."""

logser = Distribution(
    "logser",
    logdensity=lambda k, p: k * log(p) - log(k) - log(-log1p(-p)),
    support=lambda p: (1.0, math.inf),
    valid=lambda p: logical_and(greater(p, 0.0), less(p, 1.0)),
    middle=lambda p: -p / ((1.0 - p) * log1p(-p)),
    is_discrete=True,
)
"""Probabilities that are the terms of the series of a logarithm."""


def _skellam_operands(
    k: Variable, mu1: Variable, mu2: Variable
) -> tuple[Variable, Variable, Variable, Variable]:
    """Return where `k` is negative, and the means with the one of that side in front."""
    is_left = less(k, 0.0)
    return is_left, where(is_left, -k, k), where(is_left, mu2, mu1), where(is_left, mu1, mu2)


def _log_skellam(k: Variable, mu1: Variable, mu2: Variable) -> Variable:
    _, size, own, other = _skellam_operands(k, mu1, mu2)
    density = ncx2.rule("density")
    return density(2.0 * own, 2.0 * (size + 1.0), 2.0 * other) + math.log(2.0)


def _skellam_part(is_upper: bool) -> Rule:
    def part(k: Variable, mu1: Variable, mu2: Variable) -> Variable:
        is_left, size, own, other = _skellam_operands(k, mu1, mu2)
        count = 2.0 * where(is_left, size, size + 1.0)
        operands = 2.0 * own, count, 2.0 * other
        below, above = ncx2.rule("cdf")(*operands), ncx2.rule("sf")(*operands)
        return where(is_left, above, below) if is_upper else where(is_left, below, above)

    return part


skellam = Distribution(
    "skellam",
    logdensity=_log_skellam,
    below=_skellam_part(False),
    above=_skellam_part(True),
    support=lambda mu1, mu2: (-math.inf, math.inf),
    is_discrete=True,
)
"""The difference of two numbers of `poisson`."""

# Up to here sums of powers are taken term by term, and from here on by Euler's and Maclaurin's sum.
_FIRST = np.arange(1.0, 33.0)


def _sum_of_powers(n: Variable, a: Variable) -> Variable:
    """Return the sum of `k**-a` for `k` from 1 to `n`. DLMF 2.10.1."""
    exponent = expand_dims(a, -1)
    is_in = less_equal(lift(_FIRST), expand_dims(n, -1))
    total = sum(where(is_in, exp(-exponent * np.log(_FIRST)), 0.0), -1)
    start = float(_FIRST[-1])
    end = maximum(n, start)
    total = total + exp((1.0 - a) * math.log(start)) * boxcox(end / start, 1.0 - a)
    low, high = exp(-a * math.log(start)), exp(-a * log(end))
    total = total + 0.5 * (high - low)
    rising: Variable = a
    for j, number in enumerate((1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)):
        power = 2 * j + 1
        total = total + number * rising * (low / start**power - high / end**power)
        rising = rising * (a + float(power)) * (a + float(power + 1))
    return total


zipfian = Distribution(
    "zipfian",
    shapes="a n",
    logdensity=lambda k, a, n: -a * log(k) - log(_sum_of_powers(n, a)),
    below=lambda k, a, n: _sum_of_powers(k, a) / _sum_of_powers(n, a),
    above=lambda k, a, n: 1.0 - _sum_of_powers(k, a) / _sum_of_powers(n, a),
    support=lambda a, n: (1.0, n),
    valid=lambda a, n: logical_and(
        greater_equal(a, 0.0), logical_and(greater_equal(n, 1.0), _are_whole(n))
    ),
    is_discrete=True,
)
"""`zipf`, up to `n`."""


@namespace_operator
def _logpmf(k: Any, p: Any, is_logits: bool) -> Variable:
    """Of each number the logarithm of its probability, which is along the last axis of `p`."""
    given = lift(p, fractional(p))
    if given.ndim == 0:
        raise ArgumentError("categorical: p has an axis of probabilities")
    chosen = equal(expand_dims(lift(k), -1), arange(given.shape[-1]))
    logarithms = log_softmax(given, -1) if is_logits else log(given)
    found = sum(where(chosen, logarithms, 0.0), -1)
    return where(logical_not(any(chosen, -1)), -math.inf, found)


@final
class Categorical:
    """Numbers from 0 on, each with a probability of its own; SciPy has no such distribution.

    `p` are the probabilities, along the last axis; instead there may be `logits`, whose softmax
    they are. Other axes are broadcast against what it is asked at.

    >>> from primgraph.scipy.stats import categorical
    >>> print(f"{categorical.logpmf(pg.tensor(1), np.array([0.25, 0.75])):.4f}")
    -0.2877
    """

    def logpmf(self, k: Any, p: Any = None, *, logits: Any = None) -> Any:
        """The logarithm of the probability of `k`; minus infinity for what there is not."""
        if (p is None) is (logits is None):
            raise ArgumentError("categorical takes either probabilities or logits")
        own = partial(_logpmf, is_logits=p is None)
        return call_method(None, "logpmf", own, k, logits if p is None else p)

    def pmf(self, k: Any, p: Any = None, *, logits: Any = None) -> Any:
        """The probability of `k`."""
        return call_method(None, "pmf", exp, self.logpmf(k, p, logits=logits))

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with these probabilities."""
        return Frozen(self, args, kwargs)

    def __repr__(self) -> str:
        return "<primgraph.scipy.stats.categorical>"


categorical = Categorical()
