"""Kullback-Leibler divergences, by pairs of classes, as in torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from primgraph import operators as pg
from primgraph import special as sp
from primgraph.compat.torch.distributions import categorical as k
from primgraph.compat.torch.distributions import continuous as c
from primgraph.compat.torch.distributions import discrete as d
from primgraph.compat.torch.distributions import multivariate as m
from primgraph.compat.torch.distributions import transformed as t
from primgraph.compat.torch.distributions.composite import Independent, TransformedDistribution
from primgraph.compat.torch.distributions.distribution import sum_last
from primgraph.errors import ArgumentError, MissingMethodError

Rule = Callable[[Any, Any], Any]

_rules: dict[tuple[type, type], Rule] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """Register the decorated function of two distributions for a pair of classes.

    >>> class MyNormal(torch.distributions.Normal): ...
    >>> @torch.distributions.register_kl(MyNormal, MyNormal)
    ... def kl(p, q):
    ...     return p.loc - q.loc
    >>> torch.distributions.kl_divergence(MyNormal(3.0, 1.0), MyNormal(1.0, 1.0))
    tensor(2.)
    """
    if not (isinstance(type_p, type) and isinstance(type_q, type)):
        raise ArgumentError("register_kl takes two subclasses of Distribution")

    def add(rule: Rule) -> Rule:
        _rules[type_p, type_q] = rule
        return rule

    return add


def kl_divergence(p: Any, q: Any) -> Any:
    """Return the Kullback-Leibler divergence of two distributions.

    Raises `MissingMethodError`, a NotImplementedError, where there is no rule for their classes.

    >>> D = torch.distributions
    >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    found = [
        (type(p).__mro__.index(a) + type(q).__mro__.index(b), rule)
        for (a, b), rule in _rules.items()
        if isinstance(p, a) and isinstance(q, b)
    ]
    if not found:
        raise MissingMethodError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}",
            hint="register_kl adds one, and samples of p estimate it",
        )
    return min(found, key=lambda row: row[0])[1](p, q)


@register_kl(c.Normal, c.Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale) ** 2
    moved = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + moved - 1.0 - pg.log(ratio))


@register_kl(t.HalfNormal, t.HalfNormal)
@register_kl(t.LogNormal, t.LogNormal)
def _of_bases(p: Any, q: Any) -> Any:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p._event_shape != q._event_shape:
        raise MissingMethodError("kl_divergence of different transforms is not implemented")
    extra = len(p._event_shape) - len(p.base_dist._event_shape)
    return sum_last(kl_divergence(p.base_dist, q.base_dist), extra)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise MissingMethodError("kl_divergence of different reinterpreted_batch_ndims")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(d.Bernoulli, d.Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    a, both = p.probs, (p.logits, q.logits)
    return a * (both[0] - both[1]) - pg.softplus(both[0]) + pg.softplus(both[1])


@register_kl(d.Binomial, d.Binomial)
def _binomial(p: Any, q: Any) -> Any:
    found = p.total_count * _bernoulli(p, q)
    return pg.where(p.total_count > q.total_count, math.inf, found)


@register_kl(d.Geometric, d.Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - pg.log1p(-q.probs) / p.probs - q.logits


@register_kl(k.Categorical, k.Categorical)
def _categorical(p: Any, q: Any) -> Any:
    a, b = p.probs, q.probs
    terms = pg.where(a == 0.0, 0.0, a * (p.logits - q.logits))
    return pg.sum(pg.where((b == 0.0) & (a > 0.0), math.inf, terms), -1)


@register_kl(k.OneHotCategorical, k.OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(d.Poisson, d.Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return sp.xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(c.Exponential, c.Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - pg.log(ratio) - 1.0


@register_kl(c.Gamma, c.Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    found = b * pg.log(p.rate / q.rate) + sp.gammaln(b) - sp.gammaln(a)
    return found + (a - b) * sp.digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(c.Beta, c.Beta)
def _beta(p: Any, q: Any) -> Any:
    a, b, x, y = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    found = sp.gammaln(x) + sp.gammaln(y) + sp.gammaln(a + b)
    found = found - sp.gammaln(x + y) - sp.gammaln(a) - sp.gammaln(b)
    found = found + (a - x) * sp.digamma(a) + (b - y) * sp.digamma(b)
    return found + (x + y - a - b) * sp.digamma(a + b)


@register_kl(m.Dirichlet, m.Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = pg.sum(a, -1)
    found = sp.gammaln(total) - sp.gammaln(pg.sum(b, -1))
    found = found - pg.sum(sp.gammaln(a) - sp.gammaln(b), -1)
    return found + pg.sum((a - b) * (sp.digamma(a) - pg.expand_dims(sp.digamma(total), -1)), -1)


@register_kl(c.Laplace, c.Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, distance = p.scale / q.scale, pg.abs(p.loc - q.loc)
    return -pg.log(ratio) + distance / q.scale + ratio * pg.exp(-distance / p.scale) - 1.0


@register_kl(c.Cauchy, c.Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    both = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return pg.log(both / (4.0 * p.scale * q.scale))


@register_kl(c.Uniform, c.Uniform)
def _uniform(p: Any, q: Any) -> Any:
    found = pg.log((q.high - q.low) / (p.high - p.low))
    return pg.where((q.low > p.low) | (q.high < p.high), math.inf, found)


@register_kl(c.Uniform, c.Normal)
def _uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    squares = width**2 / 12.0 + ((p.high + p.low - 2.0 * q.loc) / 2.0) ** 2
    return pg.log(math.sqrt(2.0 * math.pi) * q.scale / width) + 0.5 * squares / q.scale**2


@register_kl(c.Normal, c.Uniform)
@register_kl(c.Normal, c.Gamma)
@register_kl(c.Normal, c.Beta)
@register_kl(c.Normal, t.Pareto)
def _infinite(p: Any, q: Any) -> Any:
    return pg.full_like(p.loc, math.inf)


@register_kl(c.Normal, c.Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    moved, ratio = p.loc - q.loc, p.scale / q.scale
    z = moved / p.scale
    first = math.sqrt(2.0 / math.pi) * p.scale * pg.exp(-0.5 * z * z)
    mean = first + moved * pg.erf(math.sqrt(0.5) * z)
    return -pg.log(ratio) + mean / q.scale - (0.5 + 0.5 * math.log(0.5 * math.pi))


@register_kl(t.Gumbel, t.Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, euler = p.scale / q.scale, t._EULER
    first, second = q.loc / q.scale, p.loc / q.scale
    growth = pg.exp(first + sp.gammaln(1.0 + ratio) - second)
    return -pg.log(ratio) - first + second + ratio * euler + growth - (1.0 + euler)


@register_kl(t.Pareto, t.Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio, power = p.scale / q.scale, q.alpha / p.alpha
    found = q.alpha * pg.log(ratio) - pg.log(power) + power - 1.0
    return pg.where(p.scale < q.scale, math.inf, found)


@register_kl(m.MultivariateNormal, m.MultivariateNormal)
@register_kl(m.MultivariateNormal, m.LowRankMultivariateNormal)
@register_kl(m.LowRankMultivariateNormal, m.MultivariateNormal)
@register_kl(m.LowRankMultivariateNormal, m.LowRankMultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    if p._event_shape != q._event_shape:
        raise ArgumentError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be "
            "computed"
        )
    factor, count = q.scale_tril, p._event_shape[0]
    solved = m.solve_lower(factor, p.scale_tril)
    trace = pg.sum(solved * solved, (-2, -1))
    squares = m.mahalanobis(factor, q.loc - p.loc)
    half = m.half_log_det(factor) - m.half_log_det(p.scale_tril)
    return half + 0.5 * (trace + squares - count)
