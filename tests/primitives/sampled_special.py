"""What special functions are, by mpmath: references that share no code with primitives."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np


def each(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """`function` of one number from each operand, and parameters, with 30 digits."""

    def reference(*arrays: np.ndarray, **params: Any) -> np.ndarray:
        flat = [np.asarray(a).reshape(-1) for a in arrays]
        with mpmath.workdps(30):
            found = [
                float(function(*(mpmath.mpf(float(v)) for v in row), **params))
                for row in zip(*flat, strict=True)
            ]
        return np.array(found).reshape(np.shape(arrays[0]))

    return reference


def log_abs_gamma(x: Any) -> Any:
    return mpmath.re(mpmath.loggamma(x)) if x > 0 else mpmath.log(abs(mpmath.gamma(x)))


def log_beta(a: Any, b: Any) -> Any:
    return log_abs_gamma(a) + log_abs_gamma(b) - log_abs_gamma(a + b)


def gamma_moment(a: Any, x: Any, *, k: int, upper: bool) -> Any:
    """The definition, integrated piece by piece in the logarithm."""
    mean, scale = mpmath.digamma(a), mpmath.loggamma(a)

    def density(u: Any) -> Any:
        return mpmath.exp(a * u - mpmath.exp(u) - scale) * (u - mean) ** k

    u = mpmath.log(x)
    if upper:
        return mpmath.quad(density, [u, u + 1, u + 2, max(u, 0) + 5])
    return mpmath.quad(density, [u - 70 / a, u - 30 / a, u - 10 / a, u - 3 / a, u - 1 / a, u])


def _gamma_slope(a: Any, z: Any) -> Any:
    density = z ** (a - 1) * mpmath.exp(-z) / mpmath.gamma(a)
    return -gamma_moment(a, z, k=1, upper=False) / density


# How the quantile `z` of a gamma distribution goes with its shape.
gamma_slope = each(_gamma_slope)


def beta_moment(a: Any, b: Any, x: Any, *, j: int, k: int, upper: bool) -> Any:
    first, second = (mpmath.digamma(v) - mpmath.digamma(a + b) for v in (a, b))
    scale = mpmath.beta(a, b)

    def density(t: Any) -> Any:
        powers = (mpmath.log(t) - first) ** j * (mpmath.log1p(-t) - second) ** k
        return t ** (a - 1) * (1 - t) ** (b - 1) / scale * powers

    return mpmath.quad(density, [x, 1] if upper else [0, x])


def bessel_or_integral(x: Any, *, name: str, part: int) -> Any:
    return mpmath.ci(x) if part else mpmath.besselj(0, x)


def scaled_erfc(x: Any, *, n: int) -> Any:
    """Derivative `n` without its sign, by the integral."""
    factor = 2 / mpmath.sqrt(mpmath.pi)
    end = max(-x, 0) + 9

    def integrand(t: Any) -> Any:
        return factor * (2 * t) ** n * mpmath.exp(-t * t - 2 * x * t)

    return mpmath.quad(integrand, [0, end / 4, end / 2, end])


def inverse_erfc(p: Any) -> Any:
    return mpmath.erfinv(1 - p)


def log_normal(x: Any) -> Any:
    return mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2)
