"""Fits of statsmodels, lmfit and uncertainties, by functions as users write them.

Each log-likelihood has the maximum that statsmodels' own fit finds, which is recorded here, and
found anew where statsmodels is installed. Exact gradients take at most 0.4 times the evaluations of
SciPy's differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph.scipy import optimize

theirs = pytest.importorskip("scipy.optimize")
special = pytest.importorskip("scipy.special")
stats = pytest.importorskip("scipy.stats")

COUNT = 200


def uniform(prime: int) -> Any:
    """Numbers that are spread evenly over (0, 1), the same with all versions of NumPy."""
    return np.mod(np.sqrt(prime) * np.arange(1, COUNT + 1), 1.0)


X = np.stack([np.ones(COUNT), special.ndtri(uniform(2)), special.ndtri(uniform(3))], axis=1)
LINE = X @ np.array([0.3, 0.8, -0.5])
CHANCE = special.expit(LINE)
BINARY = (uniform(5) < CHANCE).astype(float)
COUNTS = stats.poisson.ppf(uniform(7), np.exp(LINE))
SPREAD = stats.nbinom.ppf(uniform(7), 2.0, 2.0 / (2.0 + np.exp(LINE)))
INFLATED = np.where(uniform(11) < 0.3, 0.0, COUNTS)
PARTS = stats.beta.ppf(uniform(13), 3 * CHANCE, 3 * (1 - CHANCE))
POSITIVE = stats.gamma.ppf(uniform(17), 2.0, scale=np.exp(LINE) / 2)
VALUES = LINE + 0.5 * special.ndtri(uniform(19))
GRADES = np.digitize(LINE + special.logit(uniform(23)), [-0.5, 1.0])
KINDS = np.argmax(
    [special.ndtri(uniform(29)), LINE + special.ndtri(uniform(31)), special.ndtri(uniform(37))], 0
)
SERIES = special.ndtri(uniform(41)) + 0.6 * np.roll(special.ndtri(uniform(41)), 1)


def logit(b: Any) -> Any:
    z = X @ b
    return np.sum(np.log1p(np.exp(z)) - BINARY * z)


def probit(b: Any) -> Any:
    return -np.sum(special.log_ndtr((2 * BINARY - 1) * (X @ b)))


def poisson(b: Any) -> Any:
    z = X @ b
    return np.sum(np.exp(z) - COUNTS * z + special.gammaln(COUNTS + 1))


def negative_binomial(p: Any) -> Any:
    mean, size = np.exp(X @ p[:3]), np.exp(-p[3])
    ways = special.gammaln(SPREAD + size) - special.gammaln(size) - special.gammaln(SPREAD + 1)
    return -np.sum(
        ways + size * np.log(size / (size + mean)) + SPREAD * np.log(mean / (size + mean))
    )


def zero_inflated_poisson(p: Any) -> Any:
    share, mean = special.expit(p[0]), np.exp(X @ p[1:])
    zero = np.log(share + (1 - share) * np.exp(-mean))
    other = np.log(1 - share) - mean + INFLATED * np.log(mean) - special.gammaln(INFLATED + 1)
    return -np.sum(np.where(INFLATED == 0, zero, other))


def multinomial_logit(p: Any) -> Any:
    z = np.concatenate([np.zeros((COUNT, 1)), X @ np.reshape(p, (3, 2))], axis=1)
    return np.sum(special.logsumexp(z, axis=1) - z[np.arange(COUNT), KINDS])


def beta(p: Any) -> Any:
    mean, precision = special.expit(X @ p[:3]), np.exp(p[3])
    a, b = mean * precision, (1 - mean) * precision
    return np.sum(
        special.betaln(a, b) - special.xlogy(a - 1, PARTS) - special.xlog1py(b - 1, -PARTS)
    )


def gamma(p: Any) -> Any:
    mean, shape = np.exp(X @ p[:3]), np.exp(p[3])
    rate = shape / mean
    return -np.sum(
        shape * np.log(rate)
        - special.gammaln(shape)
        + (shape - 1) * np.log(POSITIVE)
        - rate * POSITIVE
    )


def normal(p: Any) -> Any:
    scale = np.exp(p[3])
    return -np.sum(-0.5 * ((VALUES - X @ p[:3]) / scale) ** 2 - np.log(scale * np.sqrt(2 * np.pi)))


def ordered_logit(p: Any) -> Any:
    z = X[:, 1:] @ p[:2]
    low, high = special.expit(p[2] - z), special.expit(p[2] + np.exp(p[3]) - z)
    return -np.sum(np.log(np.where(GRADES == 0, low, np.where(GRADES == 1, high - low, 1 - high))))


def autoregression(p: Any) -> Any:
    by, scale = np.tanh(p[0]), np.exp(p[1])
    first = (1 - by**2) * SERIES[0] ** 2
    squares = np.sum((SERIES[1:] - by * SERIES[:-1]) ** 2) + first
    constant = COUNT * np.log(scale * np.sqrt(2 * np.pi))
    return 0.5 * squares / scale**2 - 0.5 * np.log(1 - by**2) + constant


def of_statsmodels(name: str) -> float:
    """The negative log-likelihood of statsmodels' own fit."""
    api = pytest.importorskip("statsmodels.api")
    options = {"disp": 0, "method": "bfgs", "maxiter": 300, "gtol": 1e-8}
    tsa, miscmodels = api.tsa, pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    othermod = pytest.importorskip("statsmodels.othermod.betareg")
    fits: dict[str, Callable[[], Any]] = {
        "logit": lambda: api.Logit(BINARY, X).fit(**options),
        "probit": lambda: api.Probit(BINARY, X).fit(**options),
        "poisson": lambda: api.Poisson(COUNTS, X).fit(**options),
        "negative_binomial": lambda: api.NegativeBinomial(SPREAD, X).fit(**options),
        "zero_inflated_poisson": lambda: api.ZeroInflatedPoisson(INFLATED, X).fit(**options),
        "multinomial_logit": lambda: api.MNLogit(KINDS, X).fit(**options),
        "beta": lambda: othermod.BetaModel(PARTS, X).fit(**options),
        "normal": lambda: api.OLS(VALUES, X).fit(),
        "ordered_logit": lambda: miscmodels.OrderedModel(GRADES, X[:, 1:], distr="logit").fit(
            **options
        ),
        "autoregression": lambda: tsa.ARIMA(SERIES, order=(1, 0, 0), trend="n").fit(),
    }
    return float(-fits[name]().llf)


# The functions, the number of parameters, and the values of statsmodels 0.15 at its optimum; for
# the gamma density statsmodels estimates the shape by another method.
LIKELIHOODS: dict[str, tuple[Callable[[Any], Any], int, float | None]] = {
    "logit": (logit, 3, 121.77581958),
    "probit": (probit, 3, 121.67530406),
    "poisson": (poisson, 3, 290.4873223),
    "negative_binomial": (negative_binomial, 4, 327.18655846),
    "zero_inflated_poisson": (zero_inflated_poisson, 4, 267.47203035),
    "multinomial_logit": (multinomial_logit, 6, 197.25948676),
    "beta": (beta, 4, -81.69606618),
    "normal": (normal, 4, 141.47971392),
    "ordered_logit": (ordered_logit, 4, 198.78764066),
    "autoregression": (autoregression, 2, 278.38649964),
    "gamma": (gamma, 4, None),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_likelihoods_have_the_maximum_of_statsmodels_in_fewer_evaluations(name: str) -> None:
    function, count, recorded = LIKELIHOODS[name]
    start = np.zeros(count)
    plain = theirs.minimize(function, start, method="BFGS")
    found = optimize.minimize(function, start, method="BFGS")
    exact = optimize.minimize(function, start, method="trust-exact")
    expected = plain.fun if recorded is None else recorded
    for result in (plain, found, exact):
        assert abs(result.fun - expected) <= 1e-6 * abs(expected)
    assert found.nfev <= 0.4 * plain.nfev
    assert exact.nfev <= found.nfev


@pytest.mark.parametrize("name", [k for k, row in LIKELIHOODS.items() if row[2] is not None])
def test_recorded_maxima_are_those_of_statsmodels(name: str) -> None:
    recorded = LIKELIHOODS[name][2]
    assert recorded is not None
    assert abs(of_statsmodels(name) - recorded) <= 1e-6 * abs(recorded)


T = np.linspace(0.0, 10.0, COUNT)
NOISE = 0.05 * special.ndtri(uniform(43))


def peak(p: Any) -> Any:
    return p["height"] * np.exp(-0.5 * ((T - p["center"]) / p["width"]) ** 2) + p["base"]


def decays(p: Any) -> Any:
    return p["a"] * np.exp(-p["k"] * T) + p["b"] * np.exp(-p["l"] * T)


def oscillation(p: Any) -> Any:
    return p["size"] * np.sin(p["omega"] * T + p["phase"]) * np.exp(-p["rate"] * T)


# Models, parameters of the data, parameters to begin with.
CURVES: dict[str, tuple[Any, dict[str, float], dict[str, float]]] = {
    "peak": (
        peak,
        {"height": 3.0, "center": 4.2, "width": 1.3, "base": 0.4},
        {"height": 1.0, "center": 5.0, "width": 1.0, "base": 0.0},
    ),
    "decays": (
        decays,
        {"a": 2.0, "k": 0.3, "b": 1.0, "l": 2.0},
        {"a": 1.0, "k": 0.2, "b": 2.0, "l": 1.0},
    ),
    "oscillation": (
        oscillation,
        {"size": 5.0, "omega": 2.0, "phase": 0.3, "rate": 0.15},
        {"size": 3.0, "omega": 1.9, "phase": 0.0, "rate": 0.1},
    ),
}


@pytest.mark.parametrize("name", CURVES)
def test_fits_by_named_parameters_are_those_of_lmfit(name: str) -> None:
    lmfit = pytest.importorskip("lmfit")
    model, true, start = CURVES[name]
    data = model(true) + NOISE
    parameters = lmfit.Parameters()
    for key, value in start.items():
        parameters.add(key, value=value)
    expected = lmfit.minimize(lambda p: model(p.valuesdict()) - data, parameters)
    found = optimize.least_squares(lambda p: model(p) - data, start, ftol=1e-12, xtol=1e-12)
    covariance = np.linalg.inv(found.jac.T @ found.jac) * 2 * found.cost / (COUNT - len(start))
    for i, key in enumerate(start):
        wanted = expected.params[key]
        assert abs(found.x[key] - wanted.value) <= 1e-3 * wanted.stderr
        assert abs(np.sqrt(covariance[i, i]) - wanted.stderr) <= 1e-3 * wanted.stderr
    assert found.nfev <= 0.4 * expected.nfev


def test_errors_propagate_as_by_uncertainties() -> None:
    uncertainties = pytest.importorskip("uncertainties")
    umath = pytest.importorskip("uncertainties.umath")
    values, covariance = np.array([2.0, 0.5]), np.array([[0.04, 0.01], [0.01, 0.09]])
    a, b = uncertainties.correlated_values(values, covariance)
    slope = pg.jacobian(lambda p: p[0] * pg.exp(-p[1]) + pg.sin(p[0] * p[1]))(values)
    expected = a * umath.exp(-b) + umath.sin(a * b)
    np.testing.assert_allclose(np.sqrt(slope @ covariance @ slope), expected.std_dev, rtol=1e-12)
