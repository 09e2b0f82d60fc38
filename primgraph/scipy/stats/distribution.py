"""Distributions of one number: what is asked of them, from what each has on its standard scale."""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from primgraph.errors import ArgumentError, unknown_name
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import add, divide, floor, multiply, power, subtract
from primgraph.operators.elementwise.elementary import exp, expm1, log, log1p
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    isinf,
    less,
    logical_and,
    not_equal,
    where,
)
from primgraph.operators.elementwise.special_functions import xlog1py, xlogy
from primgraph.operators.promotion import fractional, lift
from primgraph.operators.variable import Variable, handles

Rule = Callable[..., Variable]
"""A function of a number on the standard scale, and of the parameters of shape."""


@final
@dataclass(frozen=True, slots=True)
class Power:
    """A factor `base**exponent` of a density, or `(1 + base)**exponent` if `plus_one`.

    The logarithm of the density has an infinite slope where the factor is zero. The density does
    not: there it is computed by the power itself.
    """

    exponent: Variable
    base: Variable
    plus_one: bool = False

    def logarithm(self, base: Variable | None = None) -> Variable:
        """Return the logarithm of the factor, or of that of another base."""
        product = xlog1py if self.plus_one else xlogy
        return product(self.exponent, self.base if base is None else base)

    def split(self, unscaled: Variable, scale: Variable | None) -> tuple[Variable, ...]:
        """Return where the factor is zero, that zero, else 1, and the logarithm of the rest.

        The zero is a power of the base times `scale`, which has a slope by the scale that is 0 and
        not a product of 0 and infinity; the rest divides by it.
        """
        base = self.base + 1.0 if self.plus_one else self.base
        vanishes = logical_and(equal(base, 0.0), greater(self.exponent, 0.0))
        rest = self.logarithm(where(vanishes, 0.0 if self.plus_one else 1.0, self.base))
        if scale is not None:
            rest = subtract(rest, where(vanishes, self.exponent, 0.0) * log(scale))
        if self.plus_one:
            unscaled = add(unscaled, 1.0 if scale is None else scale)
        return vanishes, power(where(vanishes, unscaled, 1.0), self.exponent), rest


def original(name: str) -> Any:
    """SciPy's distribution of that name; None where there is no SciPy."""
    try:
        return getattr(importlib.import_module("scipy.stats"), name, None)
    except ImportError:
        return None


def call_method(
    theirs: Any, method: str, own: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Call a method: SciPy's for arrays, if it exists, else primgraph's."""
    if handles((*args, *kwargs.values())):
        return own(*args, **kwargs)
    if theirs is not None:
        return getattr(theirs, method)(*args, **kwargs)
    return np.asarray(own(*args, **kwargs))[()]


@final
class Distribution:
    """A distribution of real or whole numbers, named as SciPy's of that name.

    Its methods take what they are asked at, the parameters of shape, `loc`, and for real numbers
    `scale`, which are broadcast. Where parameters are out of range they give NaN. Called with
    parameters it gives the distribution that has these.

    `logdensity` is the logarithm of the density on the standard scale, without the `powers` that it
    has as factors.

    >>> from primgraph.scipy.stats import gamma, norm
    >>> print(f"{norm.logpdf(pg.tensor(0.0)):.4f}")
    -0.9189
    >>> print(f"{gamma.cdf(pg.tensor(1.0), 2.0, scale=0.5):.4f}")
    0.5940
    """

    def __init__(
        self,
        name: str,
        *,
        logdensity: Rule,
        powers: Callable[..., Sequence[Power]] | None = None,
        below: Rule | None = None,
        above: Rule | None = None,
        log_below: Rule | None = None,
        log_above: Rule | None = None,
        quantile: Rule | None = None,
        support: Callable[..., tuple[Any, Any]],
        valid: Callable[..., Any] | None = None,
        is_discrete: bool = False,
    ) -> None:
        parameters = [*inspect.signature(logdensity).parameters][1:]
        self.name, self.shapes = name, tuple(parameters)
        self._rules = {"density": logdensity, "cdf": below, "sf": above, "logcdf": log_below,
                       "logsf": log_above, "ppf": quantile}  # fmt: skip
        self._powers, self._support, self._valid = powers, support, valid
        self._is_discrete = is_discrete
        density = "pmf" if is_discrete else "pdf"
        self._methods: Mapping[str, Callable[..., Variable]] = {
            density: namespace_operator(self._density),
            f"log{density}": namespace_operator(self._logdensity),
            "cdf": namespace_operator(self._cdf),
            "sf": namespace_operator(self._sf),
            "logcdf": namespace_operator(self._logcdf),
            "logsf": namespace_operator(self._logsf),
        } | ({} if quantile is None else {"ppf": namespace_operator(self._ppf)})

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with these parameters."""
        return Frozen(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("_methods", {}).get(name)
        theirs = None if name.startswith("__") else original(self.__dict__.get("name", ""))
        if own is not None:
            return partial(call_method, theirs, name, partial(self._call_method, name))
        found = getattr(theirs, name, None)
        if found is None:
            raise unknown_name(f"primgraph.scipy.stats.{self.name}", name, [*self._methods])
        return found

    def __repr__(self) -> str:
        return f"<primgraph.scipy.stats.{self.name}>"

    def _call_method(self, method: str, x: Any, *args: Any, **kwargs: Any) -> Any:
        """A method with the parameters in their places."""
        names = [*self.shapes, "loc", *([] if self._is_discrete else ["scale"])]
        given = dict(zip(names, args, strict=False))
        strange = [n for n in kwargs if n not in names or n in given]
        missing = [n for n in self.shapes if n not in given and n not in kwargs]
        if len(args) > len(names) or strange or missing:
            listed = ", ".join([*self.shapes, *[f"{n}=..." for n in names[len(self.shapes) :]]])
            raise ArgumentError(
                f"{self.name}.{method} takes (x, {listed})",
                hint=f"missing are {', '.join(missing)}" if missing else "",
            )
        given |= kwargs
        return self._methods[method](x, *[given.get(n, _STANDARD.get(n)) for n in names])

    # What is recorded, of all parameters in a row.

    def _standardize(self, x: Any, *parameters: Any) -> tuple[Variable, list[Variable], Variable]:
        """The number on the standard scale, the parameters of shape, and the scale."""
        dtype = fractional(x, *parameters)
        value, *rest = [lift(v, dtype) for v in (x, *parameters)]
        shapes, loc = rest[: len(self.shapes)], rest[len(self.shapes)]
        scale = lift(1.0, dtype) if self._is_discrete else rest[-1]
        allowed = greater(scale, 0.0)
        if self._valid is not None:
            allowed = logical_and(allowed, self._valid(*shapes))
        scale = where(allowed, scale, math.nan)
        value = subtract(value, loc)
        return value if self._is_discrete else divide(value, scale), shapes, scale

    def _restrict_rule(self, rule: Rule, at: Sequence[Any], low: float, high: float) -> Variable:
        """`rule` within the support, and numbers below and above; NaN for a NaN."""
        y, shapes, scale = self._standardize(*at)
        first, last = self._support(*shapes)
        inner = y
        if self._is_discrete:
            inner = y = floor(y)
        endless = [sign for bound, sign in ((first, -1.0), (last, 1.0)) if _is_infinite(bound)]
        found_low = None if _is_infinite(first) else less(y, first)
        found_high = None if _is_infinite(last) else self._is_above(y, last)
        if found_high is not None:
            inner = where(found_high, subtract(last, 1.0) if self._is_discrete else 0.5, inner)
        if found_low is not None:
            inner = where(found_low, first if self._is_discrete else 0.5, inner)
        if endless:
            # At infinity only the limit is known to be finite, not what leads there.
            inner = where(isinf(inner), 0.5, inner)
        found = rule(inner, *shapes)
        if found_high is not None:
            found = where(found_high, high, found)
        if found_low is not None:
            found = where(found_low, low, found)
        for sign in endless:
            found = where(equal(y, sign * math.inf), high if sign > 0.0 else low, found)
        return _with_nan_of(scale, found)

    def _is_above(self, y: Variable, last: Any) -> Variable:
        return greater(y, subtract(last, 0.5) if self._is_discrete else last)

    def _logdensity(self, *at: Any) -> Variable:
        y, shapes, scale = self._standardize(*at)
        inner, outside = self._clip_to_support(y, shapes)
        factors = [] if self._powers is None else self._powers(inner, *shapes)
        powers = [factor.logarithm() for factor in factors]
        return self._sum_log_density(powers, inner, shapes, outside, scale)

    def _density(self, *at: Any) -> Variable:
        y, shapes, scale = self._standardize(*at)
        # At infinity SciPy has NaN for a density with powers, and the limit for others.
        inner, outside = self._clip_to_support(y, shapes, is_bounded=self._powers is None)
        parts = []
        if self._powers is not None:
            unscaled = self._powers(subtract(at[0], at[1 + len(shapes)]), *shapes)
            factors = zip(self._powers(inner, *shapes), unscaled, strict=True)
            divisor = None if self._is_discrete else scale
            parts = [factor.split(other.base, divisor) for factor, other in factors]
        logarithms = [rest for _, _, rest in parts]
        density = exp(self._sum_log_density(logarithms, inner, shapes, outside, scale))
        for vanishes, front, _ in parts:
            density = where(vanishes, multiply(density, front), density)
        return density

    def _sum_log_density(
        self,
        powers: Sequence[Variable],
        inner: Variable,
        shapes: Sequence[Variable],
        outside: Variable | None,
        scale: Variable,
    ) -> Variable:
        """Return the logarithm of the density, of which `powers` are parts; -inf outside."""
        rule = self._rules["density"]
        assert rule is not None
        found = rule(inner, *shapes)
        for logarithm in powers:
            found = add(found, logarithm)
        found = found if self._is_discrete else subtract(found, log(scale))
        if outside is not None:
            found = where(outside, -math.inf, found)
        return _with_nan_of(scale, found)

    def _clip_to_support(
        self, y: Variable, shapes: Sequence[Variable], is_bounded: bool = False
    ) -> tuple[Variable, Variable | None]:
        """Return `y`, or a number of the support where it lies outside, and where that is.

        If `is_bounded`, infinities lie outside.
        """
        first, last = self._support(*shapes)
        inner, outside = y, None
        for bound, is_beyond in ((first, less), (last, greater)):
            if not _is_infinite(bound):
                beyond = is_beyond(y, bound)
            elif is_bounded:
                beyond = equal(y, bound)
            else:
                continue
            # Within the support all is finite, so that no slope of what is not chosen is NaN.
            inside = first if self._is_discrete else 0.5
            inner = where(beyond, inside, inner)
            outside = beyond if outside is None else where(outside, True, beyond)
        if self._is_discrete:
            between = logical_and(not_equal(y, floor(y)), equal(y, y))
            inner = where(between, first, inner)
            outside = between if outside is None else where(outside, True, between)
        return inner, outside

    def _cdf(self, *at: Any) -> Variable:
        rule = self._rules["cdf"]
        if rule is None:
            return exp(self._logcdf(*at))
        return self._restrict_rule(rule, at, 0.0, 1.0)

    def _sf(self, *at: Any) -> Variable:
        rule, below = self._rules["sf"], self._rules["cdf"]
        if rule is not None:
            return self._restrict_rule(rule, at, 1.0, 0.0)
        assert below is not None
        return self._restrict_rule(lambda *a: 1.0 - below(*a), at, 1.0, 0.0)

    def _logcdf(self, *at: Any) -> Variable:
        return self._restrict_rule(self._log_rule("logcdf", "cdf", "sf"), at, -math.inf, 0.0)

    def _logsf(self, *at: Any) -> Variable:
        return self._restrict_rule(self._log_rule("logsf", "sf", "cdf"), at, 0.0, -math.inf)

    def _log_rule(self, name: str, part: str, other: str) -> Rule:
        """The logarithm of a part: of what is left of one where that part is the larger one."""
        own, of_part, of_other = self._rules[name], self._rules[part], self._rules[other]
        if own is not None:
            return own
        assert of_part is not None
        assert of_other is not None
        return lambda *at: _log_of(of_part(*at), of_other(*at))

    def _ppf(self, *at: Any) -> Variable:
        q, *parameters = at
        dtype = fractional(*at)
        value, *rest = [lift(v, dtype) for v in (q, *parameters)]
        loc, scale = rest[-2:]
        rule = self._rules["ppf"]
        assert rule is not None
        found = add(loc, where(greater(scale, 0.0), scale, math.nan) * rule(value, *rest[:-2]))
        return found


def _with_nan_of(scale: Variable, found: Variable) -> Variable:
    """Return `found`, with NaN where the scale is NaN, as for parameters out of range."""
    return add(found, where(equal(scale, scale), lift(0.0, found.dtype), math.nan))


def _is_infinite(bound: Any) -> bool:
    return isinstance(bound, float) and math.isinf(bound)


def _log_of(part: Variable, other: Variable) -> Variable:
    is_small = less(part, other)
    return where(is_small, log(where(is_small, part, 1.0)), log1p(-where(is_small, 0.0, other)))


_STANDARD = {"loc": 0.0, "scale": 1.0}


@final
class Frozen:
    """A distribution with its parameters: its methods take what they are asked at."""

    def __init__(self, of: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.dist, self.args, self.kwds = of, args, dict(kwargs)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.dist, name)

        def call_frozen(*first: Any, **more: Any) -> Any:
            return method(*first, *self.args, **self.kwds, **more)

        return call_frozen

    def __repr__(self) -> str:
        return f"<{self.dist!r} with parameters>"


def log1mexp(y: Variable) -> Variable:
    """`log(1 - exp(-y))` of positive numbers, exact for small and large ones (Maechler, 2012)."""
    is_small = less(y, math.log(2.0))
    small = log(-expm1(-where(is_small, y, 0.5)))
    return where(is_small, small, log1p(-exp(-where(is_small, 1.0, y))))
