"""Distributions of whole numbers, by SciPy's names and parameters."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, final

from primgraph.errors import ArgumentError
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.elementary import exp, log
from primgraph.operators.elementwise.logic import (
    equal,
    greater_equal,
    less_equal,
    logical_and,
    logical_not,
    where,
)
from primgraph.operators.elementwise.special_functions import (
    betainc,
    betaincc,
    betaln,
    gammainc,
    gammaincc,
    gammaln,
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
