"""Distributions of whole numbers, by SciPy's names and parameters."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, final

from primgraph.errors import ArgumentError
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import abs
from primgraph.operators.elementwise.elementary import exp, expm1, log, tanh
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
from primgraph.scipy.stats.parts import Power


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
"""Zipf's distribution: probabilities `k**-a`. SciPy's zeta function has no derivative by `a`."""


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
