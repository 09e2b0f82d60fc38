"""Distributions of torch and Paddle: samples, traced functions, and divergences by quadrature.

Values of densities and moments are compared with torch's in `tests/recorded`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import primgraph as pg
import primgraph.compat.paddle as paddle
import primgraph.compat.torch as torch
from primgraph.compat.torch import distributions as D
from primgraph.errors import MissingMethodError

A, B = torch.tensor([0.5, 2.0]), torch.tensor([1.5, 3.0])
CONTINUOUS = {
    "normal": lambda: D.Normal(A, B),
    "uniform": lambda: D.Uniform(A, A + B),
    "laplace": lambda: D.Laplace(A, B),
    "exponential": lambda: D.Exponential(A),
    "gamma": lambda: D.Gamma(A, B),
    "beta": lambda: D.Beta(A, B),
    "lognormal": lambda: D.LogNormal(A, 0.1 * B),
    "half normal": lambda: D.HalfNormal(B),
    "gumbel": lambda: D.Gumbel(A, B),
    "weibull": lambda: D.Weibull(A, B),
    "kumaraswamy": lambda: D.Kumaraswamy(A, B),
    "dirichlet": lambda: D.Dirichlet(torch.tensor([0.5, 1.0, 2.0])),
    "multivariate normal": lambda: D.MultivariateNormal(A, torch.tensor([[2.0, 0.5], [0.5, 1.0]])),
    "low rank normal": lambda: D.LowRankMultivariateNormal(A, B.reshape(2, 1), B),
    "independent": lambda: D.Independent(D.Normal(A, B), 1),
    "affine": lambda: D.TransformedDistribution(D.Normal(A, B), [D.AffineTransform(1.0, -2.0)]),
}
DISCRETE = {
    "bernoulli": lambda: D.Bernoulli(A / 3),
    "geometric": lambda: D.Geometric(A / 3),
    "binomial": lambda: D.Binomial(5, A / 3),
    "negative binomial": lambda: D.NegativeBinomial(4.0, A / 4),
    "poisson": lambda: D.Poisson(A),
    "one hot": lambda: D.OneHotCategorical(torch.tensor([0.2, 0.3, 0.5])),
    "multinomial": lambda: D.Multinomial(4, torch.tensor([0.2, 0.3, 0.5])),
}


def moments(d):
    if isinstance(d, D.TransformedDistribution) and type(d) is D.TransformedDistribution:
        return 1.0 - 2.0 * d.base_dist.mean, 4.0 * d.base_dist.variance
    return d.mean, d.variance


@pytest.mark.parametrize("name", CONTINUOUS | DISCRETE)
def test_samples_have_the_moments_of_their_distribution(name):
    torch.manual_seed(0)
    d = (CONTINUOUS | DISCRETE)[name]()
    x = d.sample((20000,)).double()
    mean, variance = (m.double() for m in moments(d))
    assert x.shape == (20000, *d.batch_shape, *d.event_shape)
    assert bool(((x.mean(0) - mean).abs() < 0.05 * (1 + variance.sqrt())).all())
    assert bool(((x.var(0) - variance).abs() < 0.15 * (0.1 + variance)).all())
    assert not x.requires_grad


@pytest.mark.parametrize("name", CONTINUOUS)
def test_densities_are_those_of_traced_functions_and_samples_are_new(name):
    make = CONTINUOUS[name]
    x = make().sample()
    found = pg.jit(lambda v: make().log_prob(v))(x)
    assert torch.allclose(found, make().log_prob(x), rtol=1e-5, atol=1e-6)
    draw = pg.jit(lambda v: v + (make().sample() ** 2).sum())
    assert float(draw(torch.zeros(()))) != float(draw(torch.zeros(())))


@pytest.mark.parametrize("kind", [D.Gamma, D.Beta, D.Normal, D.Gumbel, D.Laplace])
def test_samples_have_derivatives_of_their_mean(kind):
    """The mean of derivatives of samples is the derivative of the mean."""
    torch.manual_seed(0)
    a, b = torch.tensor(1.5, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    found = torch.autograd.grad(kind(a, b).rsample((40000,)).mean(), (a, b))
    exact = torch.autograd.grad(kind(a, b).mean, (a, b), allow_unused=True)
    for x, y in zip(found, exact, strict=True):
        assert abs(float(x) - (0.0 if y is None else float(y))) < 0.03


def test_second_derivatives_and_batches():
    a = torch.tensor([1.5, 2.0])
    value = torch.tensor([0.3, 0.6])
    found = torch.func.hessian(lambda t: D.Gamma(t, t).log_prob(value).sum())(a)
    step = 1e-3
    for i in range(2):
        unit = torch.eye(2)[i] * step
        slopes = [
            torch.func.grad(lambda t: D.Gamma(t, t).log_prob(value).sum())(a + s)
            for s in (unit, -unit)
        ]
        assert torch.allclose((slopes[0] - slopes[1]) / (2 * step), found[i], atol=1e-2)
    rows = torch.func.vmap(lambda t: D.Normal(t, 1.0).log_prob(2 * t))(torch.arange(3.0))
    assert torch.allclose(rows, D.Normal(torch.arange(3.0), 1.0).log_prob(2 * torch.arange(3.0)))


PAIRS = [
    (D.Normal(0.5, 1.5), D.Laplace(0.0, 1.0)),
    (D.Uniform(0.0, 1.0), D.Normal(0.5, 1.5)),
    (D.Cauchy(0.0, 1.0), D.Cauchy(1.0, 2.0)),
    (D.Beta(2.0, 3.0), D.Beta(1.5, 2.0)),
    (D.Gumbel(0.0, 1.0), D.Gumbel(1.0, 2.0)),
    (D.Gamma(2.0, 3.0), D.Gamma(1.0, 2.0)),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: type(p[0]).__name__)
def test_divergences_are_their_integrals(pair):
    p, q = (copy_without_checks(d) for d in pair)
    bounds = {
        "Uniform": (0.0, 1.0),
        "Beta": (0.0, 1.0),
        "Gamma": (0.0, 15.0),
        "Gumbel": (-9.0, 60.0),
    }
    low, high = bounds.get(type(p).__name__, (-4000.0, 4000.0))
    count = 2_000_001 if high > 100 else 200_001
    x = torch.linspace(low, high, count + 2, dtype=torch.float64)[1:-1]
    log_p, log_q = (np.asarray(d.log_prob(x), np.float64) for d in (p, q))
    terms = np.where(np.exp(log_p) > 0, np.exp(log_p) * (log_p - log_q), 0.0)
    integral = np.sum(terms) * (high - low) / (count + 1)
    assert math.isclose(integral, float(D.kl_divergence(p, q)), rel_tol=3e-3, abs_tol=3e-3)


def copy_without_checks(d):
    found = d.expand(())
    found._validate_args = False
    return found


def test_divergences_of_subclasses_and_unknown_pairs():
    class Mine(D.Normal):
        pass

    assert float(D.kl_divergence(Mine(0.0, 1.0), D.Normal(1.0, 1.0))) == 0.5
    with pytest.raises(NotImplementedError, match="No KL"):
        D.kl_divergence(D.Poisson(1.0), D.Normal(0.0, 1.0))


def test_values_and_parameters_are_checked():
    with pytest.raises(ValueError, match=r"parameter scale .* GreaterThan\(lower_bound=0.0\)"):
        D.Normal(0.0, torch.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match="within the support"):
        D.Exponential(1.0).log_prob(torch.tensor(-1.0))
    with pytest.raises(ValueError, match="must be a Tensor"):
        D.Normal(0.0, 1.0).log_prob(0.5)
    with pytest.raises(ValueError, match="not broadcastable"):
        D.Normal(torch.zeros(3), 1.0).log_prob(torch.zeros(2))
    with pytest.raises(MissingMethodError, match="has no cdf"):
        D.Dirichlet(torch.ones(2)).cdf(torch.ones(2) / 2)
    D.Normal(0.0, -1.0, validate_args=False)


def test_distributions_of_paddle_in_programs():
    paddle.enable_static()
    try:
        program = paddle.static.Program()
        with paddle.static.program_guard(program):
            x = paddle.static.data("x", [2])
            d = paddle.distribution.Normal(x, paddle.ones([2]))
            results = [d.log_prob(x), d.sample([3])]
        run = paddle.static.Executor().run
        feed = {"x": np.array([1.0, 2.0], "float32")}
        first = run(program, feed=feed, fetch_list=results)
        second = run(program, feed=feed, fetch_list=results)
    finally:
        paddle.disable_static()
    assert np.allclose(first[0], -0.5 * math.log(2 * math.pi))
    assert first[1].shape == (3, 2)
    assert not np.array_equal(first[1], second[1])
