"""Distributions of one number: what is asked of them, from what each has on its standard scale."""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, final

import numpy as np

from primgraph.errors import ArgumentError, unknown_name
from primgraph.ir.types import FLOAT64
from primgraph.operators.call import namespace_operator
from primgraph.operators.elementwise.arithmetic import add, divide, floor, multiply, subtract
from primgraph.operators.elementwise.elementary import exp, log
from primgraph.operators.elementwise.logic import (
    equal,
    greater,
    greater_equal,
    isinf,
    less,
    less_equal,
    logical_and,
    logical_or,
    not_equal,
    where,
)
from primgraph.operators.promotion import convert_dtype, fractional, lift
from primgraph.operators.variable import Variable, handles
from primgraph.scipy.stats.integrals import integral, sum_of_tail
from primgraph.scipy.stats.parts import (
    Power,
    Rule,
    are_positive,
    is_infinite,
    log_of,
    number_between,
    with_limits,
)
from primgraph.scipy.stats.quantiles import quantile, quantile_of_whole


def original(name: str) -> Any:
    """SciPy's distribution of that name; None where there is no SciPy."""
    try:
        return getattr(importlib.import_module("scipy.stats"), name, None)
    except ImportError:
        return None


def call_method(
    name: str | None, method: str, own: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Call a method of a distribution: for arrays SciPy's of that name, if any, else primgraph's.

    SciPy is imported for arrays only.
    """
    if handles((*args, *kwargs.values())):
        return own(*args, **kwargs)
    theirs = None if name is None else original(name)
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
    has as factors. `limits` are those of it at the lower and the upper end of the support, or None
    where its formula holds.

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
        upper_quantile: Rule | None = None,
        support: Callable[..., tuple[Any, Any]],
        limits: Callable[..., tuple[Any, Any]] | None = None,
        valid: Callable[..., Any] | None = None,
        middle: Callable[..., Any] | None = None,
        shapes: str | None = None,
        is_discrete: bool = False,
    ) -> None:
        parameters = [*inspect.signature(logdensity).parameters][1:]
        self.name = name
        self.shapes = tuple(parameters if shapes is None else shapes.split())
        self._rules = {"density": with_limits(logdensity, support, limits), "cdf": below,
                       "sf": above, "logcdf": log_below, "logsf": log_above,
                       "ppf": quantile, "isf": upper_quantile}  # fmt: skip
        self._powers, self.support = powers, support
        self.middle = self.point_inside if middle is None else middle
        self._valid = are_positive if valid is None and self.shapes else valid
        self._is_discrete, self._is_open = is_discrete, limits is not None
        self._operators: dict[str, Callable[..., Any]] = {}
        density = "pmf" if is_discrete else "pdf"
        names = ("cdf", "sf", "logcdf", "logsf", "ppf", "isf")
        self._methods: dict[str, Callable[..., Variable]] = {
            density: self._density,
            f"log{density}": self._logdensity,
            **{name: getattr(self, f"_{name}") for name in names},
        }

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with these parameters."""
        return Frozen(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_methods", {}):
            return partial(call_method, self.name, name, partial(self._call_method, name))
        theirs = None if name.startswith("__") else original(self.__dict__.get("name", ""))
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
        if method not in self._operators:
            self._operators[method] = namespace_operator(_in_double(self._methods[method]))
        own = self._operators[method]
        return own(x, *[given.get(n, _STANDARD.get(n)) for n in names])

    def _standardize(self, x: Any, *parameters: Any) -> tuple[Variable, list[Variable], Variable]:
        """The number on the standard scale, the parameters of shape, and the scale, or NaN."""
        dtype = fractional(x, *parameters)
        value, *rest = [lift(v, dtype) for v in (x, *parameters)]
        shapes, loc = rest[: len(self.shapes)], rest[len(self.shapes)]
        scale = lift(1.0, dtype) if self._is_discrete else rest[-1]
        allowed = greater(scale, 0.0)
        if self._valid is not None:
            allowed = logical_and(allowed, self._valid(*shapes))
        scale = where(allowed, scale, math.nan)
        value = subtract(value, loc)
        return divide(value, scale), shapes, scale

    def _restrict_rule(self, rule: Rule, at: Sequence[Any], low: float, high: float) -> Variable:
        """`rule` within the support, and numbers below and above; NaN for a NaN."""
        y, shapes, _ = self._standardize(*at)
        first, last = self.support(*shapes)
        y = floor(y) if self._is_discrete else y
        inside = self.point_inside(*shapes)
        is_below, is_above = _beyond(y, first, last, self._is_discrete, self._is_open)
        inner = y
        if is_above is not None:
            inner = where(is_above, subtract(last, 1.0) if self._is_discrete else inside, inner)
        if is_below is not None:
            inner = where(is_below, inside, inner)
        endless = [sign for bound, sign in ((first, -1.0), (last, 1.0)) if is_infinite(bound)]
        if endless:
            # At infinity only the limit is known to be finite, not what leads there.
            inner = where(isinf(inner), inside, inner)
        found = rule(inner, *shapes)
        if is_above is not None:
            found = where(is_above, high, found)
        if is_below is not None:
            found = where(is_below, low, found)
        for sign in endless:
            found = where(equal(y, sign * math.inf), high if sign > 0.0 else low, found)
        return _with_nan_of(y, found)

    def point_inside(self, *shapes: Variable) -> Any:
        """Return a number within the support, where all functions are finite."""
        return number_between(*self.support(*shapes), self._is_discrete)

    def _logdensity(self, *at: Any) -> Variable:
        y, shapes, scale = self._standardize(*at)
        inner, outside = self._clip_to_support(y, shapes)
        factors = [] if self._powers is None else self._powers(inner, *shapes)
        powers = [factor.logarithm() for factor in factors]
        return _with_nan_of(y, self._sum_log_density(powers, inner, shapes, outside, scale))

    def _density(self, *at: Any) -> Variable:
        y, shapes, scale = self._standardize(*at)
        inner, outside = self._clip_to_support(y, shapes)
        parts = []
        if self._powers is not None:
            unscaled = self._powers(subtract(at[0], at[1 + len(shapes)]), *shapes)
            factors = zip(self._powers(inner, *shapes), unscaled, strict=True)
            divisor = None if self._is_discrete else scale
            parts = [factor.split(other.base, divisor) for factor, other in factors]
        logarithms = [rest for _, _, rest in parts]
        found = self._sum_log_density(logarithms, inner, shapes, outside, scale)
        density = exp(_with_nan_of(y, found))
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
        return found if outside is None else where(outside, -math.inf, found)

    def _clip_to_support(
        self, y: Variable, shapes: Sequence[Variable]
    ) -> tuple[Variable, Variable | None]:
        """Return `y`, or a number of the support where it lies outside, and where that is.

        Infinities lie outside. A density with powers is NaN there, as in SciPy.
        """
        first, last = self.support(*shapes)
        inside = self.point_inside(*shapes)
        inner, outside = y, None
        for bound, is_beyond in ((first, less), (last, greater)):
            if not is_infinite(bound):
                beyond = is_beyond(y, bound)
                if isinstance(bound, Variable):
                    beyond = logical_or(beyond, logical_and(isinf(bound), equal(y, bound)))
            elif self._powers is None:
                beyond = equal(y, bound)
            else:
                continue
            # Within the support all is finite, so that no slope of what is not chosen is NaN.
            inner = where(beyond, inside, inner)
            outside = beyond if outside is None else where(outside, True, beyond)
        if self._is_discrete:
            between = logical_and(not_equal(y, floor(y)), equal(y, y))
            inner = where(between, inside, inner)
            outside = between if outside is None else where(outside, True, between)
        return inner, outside

    def _cdf(self, *at: Any) -> Variable:
        return self._restrict_rule(self.rule("cdf"), at, 0.0, 1.0)

    def _sf(self, *at: Any) -> Variable:
        return self._restrict_rule(self.rule("sf"), at, 1.0, 0.0)

    def _logcdf(self, *at: Any) -> Variable:
        return self._restrict_rule(self.rule("logcdf"), at, -math.inf, 0.0)

    def _logsf(self, *at: Any) -> Variable:
        return self._restrict_rule(self.rule("logsf"), at, 0.0, -math.inf)

    def _ppf(self, *at: Any) -> Variable:
        return self._quantile("ppf", at)

    def _isf(self, *at: Any) -> Variable:
        return self._quantile("isf", at)

    def rule(self, name: str) -> Rule:
        """Return the rule of a method on the standard scale: the declared one, or one by others.

        "density" is the logarithm of the density, with the powers.
        """
        own = self._rules[name]
        powers = self._powers
        if name == "density" and own is not None and powers is not None:
            return partial(_with_powers, own, powers)
        if own is not None:
            return own
        if name in ("ppf", "isf"):
            search = quantile_of_whole if self._is_discrete else quantile
            return partial(search, self, name == "isf")
        logarithm, part, other = _PARTS[name]
        if name in ("cdf", "sf"):
            if self._rules[logarithm] is not None:
                return _composed(exp, self.rule(logarithm))
            if self._rules[other] is None:
                whole = sum_of_tail if self._is_discrete else integral
                return partial(whole, self, name == "sf")
            return _composed(_rest_of_one, self.rule(other))
        return lambda *at: log_of(self.rule(part)(*at), self.rule(other)(*at))

    def _quantile(self, name: str, at: Sequence[Any]) -> Variable:
        dtype = fractional(*at)
        q, *parameters = [lift(v, dtype) for v in at]
        shapes, loc = parameters[: len(self.shapes)], parameters[len(self.shapes)]
        _, _, scale = self._standardize(q, *parameters)
        is_probability = logical_and(greater_equal(q, 0.0), less_equal(q, 1.0))
        found = self.rule(name)(where(is_probability, q, 0.5), *shapes)
        return where(is_probability, add(loc, multiply(scale, found)), math.nan)


def _in_double(method: Callable[..., Variable]) -> Callable[..., Variable]:
    """Return a method that computes in float64, with a result of the operands' float dtype."""

    @wraps(method)
    def call_wide(*at: Any) -> Variable:
        dtype = fractional(*at)
        wide = dtype if dtype.itemsize >= FLOAT64.itemsize else FLOAT64
        return convert_dtype(method(*[lift(v, wide) for v in at]), dtype)

    return call_wide


def _beyond(
    y: Variable, first: Any, last: Any, is_whole: bool, is_open: bool
) -> tuple[Variable | None, Variable | None]:
    """Return where a number is below and above the support, or None for an infinite bound."""
    is_below = is_above = None
    if not is_infinite(first):
        at_end = is_open or (isinstance(first, Variable) and not is_whole)
        is_below = (less_equal if at_end else less)(y, first)
    if not is_infinite(last) and is_whole:
        is_above = greater(y, subtract(last, 0.5))
    elif not is_infinite(last):
        at_end = is_open or isinstance(last, Variable)
        is_above = (greater_equal if at_end else greater)(y, last)
    return is_below, is_above


def _with_powers(
    rule: Rule, powers: Callable[..., Sequence[Power]], y: Variable, *shapes: Variable
) -> Variable:
    found = rule(y, *shapes)
    for factor in powers(y, *shapes):
        found = add(found, factor.logarithm())
    return found


def _composed(function: Callable[[Variable], Variable], rule: Rule) -> Rule:
    return lambda *at: function(rule(*at))


def _rest_of_one(part: Variable) -> Variable:
    return subtract(1.0, part)


# For each function: its logarithm, or what it is the logarithm of, and the other part of one.
_PARTS = {
    "cdf": ("logcdf", "cdf", "sf"),
    "sf": ("logsf", "sf", "cdf"),
    "logcdf": ("logcdf", "cdf", "sf"),
    "logsf": ("logsf", "sf", "cdf"),
}


def _with_nan_of(y: Variable, found: Variable) -> Variable:
    """Return `found`, with NaN where `y` is NaN, as for parameters out of range."""
    return add(found, where(equal(y, y), lift(0.0, found.dtype), math.nan))


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
