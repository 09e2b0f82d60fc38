"""Samples of the primitives of `primgraph.primitives.special_functions`."""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

from primgraph.errors import ArgumentError, DTypeError, ShapeError, UnsupportedDTypeError
from samples.rows import ABOVE_ONE, DIFFERENCES, REAL, Call, Refused, Row, Union


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


_BESSEL = {"jv": mpmath.besselj, "kve": lambda v, x: mpmath.exp(x) * mpmath.besselk(v, x)}


def bessel_slope(v: Any, x: Any, *, n: int, name: str) -> Any:
    return mpmath.diff(lambda order: _BESSEL[name](order, x), v, n)


def kummer_slope(a: Any, b: Any, x: Any, **orders: int) -> Any:
    return mpmath.diff(lambda a, b: mpmath.hyp1f1(a, b, x), (a, b), tuple(orders.values()))


def gauss_slope(a: Any, b: Any, c: Any, x: Any, **orders: int) -> Any:
    return mpmath.diff(lambda a, b, c: mpmath.hyp2f1(a, b, c, x), (a, b, c), tuple(orders.values()))


def zeta_slope(s: Any, x: Any, *, n: int) -> Any:
    return mpmath.diff(lambda s: mpmath.zeta(s, x), s, n)


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


def special(
    function: Callable[..., Any],
    operands: int = 1,
    *,
    domain: Sequence[Union] = (ABOVE_ONE,),
    params: Sequence[dict[str, Any]] = ({},),
    wrong: dict[str, Any] | None = None,
    refusal: type[DTypeError] = DTypeError,
) -> Row:
    """The row of a special function that mpmath knows as `function`; `wrong` is refused."""
    calls = [
        Call(*[f"x[{shape}]"] * operands, **given) for shape in ("", "0", "2,3") for given in params
    ]
    refused = [Refused(refusal, *["i64[3]"] * operands, **params[0])]
    if wrong is not None:
        refused.append(Refused(ArgumentError, *["f64[3]"] * operands, **wrong))
    if operands > 1:
        kinds = ["f64[3]"] * (operands - 1)
        refused.append(Refused(ShapeError, "f64[2]", *kinds, **params[0]))
    return Row(calls, refused, domain=domain, reference=each(function), analytic=DIFFERENCES)


def drawn_in_order(key: np.ndarray, *params: np.ndarray, name: str) -> np.ndarray:
    """One number after the other, by the method of that name of each key's generator."""
    results = []
    for place in np.ndindex(key.shape):
        rng = np.random.Generator(np.random.Philox(key=int(key[place]) % 2**64))
        flat = [p[place].reshape(-1) for p in params]
        results.append([getattr(rng, name)(*numbers) for numbers in zip(*flat, strict=True)])
    return np.array(results).reshape(params[0].shape)


ROWS: dict[str, Row] = {
    "random_variate": Row(
        [
            Call("i64[]", "x[]", name="standard_gamma"),
            Call("i64[2]", "x[2,3]", name="standard_gamma"),
            Call("i32[1]", "x[1,2,0]", name="poisson"),
            Call("u8[2]", "x[2]", name="poisson"),
            Call("i64[2]", "i64[2,3]", "x[2,3]", name="binomial"),
        ],
        [
            Refused(DTypeError, "f64[]", "f64[]", name="poisson"),
            Refused(DTypeError, "i64[]", "bool[]", name="poisson"),
            Refused(DTypeError, "i64[]", "i64[]", name="standard_gamma"),
            Refused(ShapeError, "i64[2]", "f64[3]", name="poisson"),
            Refused(ShapeError, "i64[]", "f64[3]", "f64[2]", name="binomial"),
            Refused(ShapeError, "i64[]", "f64[3]", name="binomial"),
            Refused(ArgumentError, "i64[]", "f64[3]", name="cauchy"),
        ],
        domain=(((0, 99),), ((0.1, 0.9), (1, 9)), ((0.1, 0.9),)),
        reference=drawn_in_order,
    ),
    "gammaln": special(log_abs_gamma),
    "gamma_function": special(mpmath.gamma),
    "polygamma": special(
        lambda x, *, n: mpmath.psi(n, x),
        params=[{"n": 0}, {"n": 1}],
        wrong={"n": -1},
        refusal=UnsupportedDTypeError,
    ),
    "betaln": special(log_beta, 2),
    "beta": special(mpmath.beta, 2),
    "poch": special(mpmath.rf, 2),
    "by_scipy": special(
        bessel_or_integral,
        domain=[ABOVE_ONE],
        params=[{"name": "j0", "part": 0}, {"name": "sici", "part": 1}],
        wrong={"name": "j7", "part": 0},
        refusal=UnsupportedDTypeError,
    ),
    "bessel_by_order": special(
        bessel_slope,
        2,
        params=[{"n": 1, "name": "jv"}, {"n": 2, "name": "kve"}],
        wrong={"n": 1, "name": "hv"},
        refusal=UnsupportedDTypeError,
    ),
    "kummer_by_parameters": special(
        kummer_slope,
        3,
        params=[{"i": 1, "j": 0}, {"i": 0, "j": 1}],
        wrong={"i": 1, "j": -1},
        refusal=UnsupportedDTypeError,
    ),
    "gauss_by_parameters": special(
        gauss_slope,
        4,
        domain=[ABOVE_ONE, ABOVE_ONE, ((3.0, 4.0),), ((0.1, 0.3),)],
        params=[{"i": 1, "j": 0, "k": 0}, {"i": 0, "j": 1, "k": 1}],
        wrong={"i": 1, "j": -1, "k": 0},
        refusal=UnsupportedDTypeError,
    ),
    "zeta_by_exponent": special(
        zeta_slope,
        2,
        domain=[((3.0, 4.0),), ABOVE_ONE],
        params=[{"n": 1}, {"n": 2}],
        wrong={"n": -1},
        refusal=UnsupportedDTypeError,
    ),
    "gammainc": special(
        gamma_moment,
        2,
        params=[{"k": 0, "upper": False}, {"k": 1, "upper": True}],
        wrong={"k": -1, "upper": True},
        refusal=UnsupportedDTypeError,
    ),
    "betainc": special(
        beta_moment,
        3,
        domain=[ABOVE_ONE, ABOVE_ONE, ((0.3, 0.6),)],
        params=[{"j": 0, "k": 0, "upper": False}, {"j": 1, "k": 1, "upper": True}],
        wrong={"j": 0, "k": -1, "upper": True},
        refusal=UnsupportedDTypeError,
    ),
    "erfinv": special(mpmath.erfinv, domain=[((-0.4, 0.4),)]),
    "erfcinv": special(inverse_erfc, domain=[((0.6, 1.4),)]),
    "erfcx": special(
        scaled_erfc, params=[{"n": 0}, {"n": 1}], wrong={"n": -1}, refusal=UnsupportedDTypeError
    ),
    "log_ndtr": special(log_normal, domain=[REAL]),
    "xlogy": special(lambda x, y: x * mpmath.log(y), 2),
    "xlog1py": special(lambda x, y: x * mpmath.log1p(y), 2),
    "logit": special(lambda x: mpmath.log(x / (1 - x)), domain=[((0.3, 0.7),)]),
    # Sums of squares that are fit to be used; `x` matters to derivatives only.
    "as_gamma_of": Row(
        [Call("x[]", "x[]"), Call("x[2,3]", "x[2,3]"), Call("x[0]", "x[0]")],
        [
            Refused(ShapeError, "f64[3]", "f64[2]"),
            Refused(ShapeError, "f32[3]", "f64[3]"),
            Refused(DTypeError, "i64[3]", "i64[3]"),
        ],
        domain=(((0.3, 4.0),),),
        reference=lambda z, a: z,
        analytic=lambda z, a: z.real + 1j * a.imag * gamma_slope(a.real, z.real),
    ),
}
