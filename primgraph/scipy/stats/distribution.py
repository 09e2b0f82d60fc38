"""Distributions of one number: what is asked of them, from what each has on its standard scale."""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, final

import numpy as np

from primgraph.errors import ArgumentError, unknown_name
from primgraph.operators.arithmetic import add, divide, floor, subtract
from primgraph.operators.call import of_namespace
from primgraph.operators.elementary import exp, expm1, log, log1p
from primgraph.operators.logic import equal, greater, less, logical_and, not_equal, where
from primgraph.operators.promotion import fractional, lift
from primgraph.operators.variable import Variable, handles

Rule = Callable[..., Variable]
"""A function of a number on the standard scale, and of the parameters of shape."""


def original(name: str) -> Any:
    """SciPy's distribution of that name; None where there is no SciPy."""
    try:
        return getattr(importlib.import_module("scipy.stats"), name, None)
    except ImportError:
        return None


def on_arrays(theirs: Any, method: str, own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a method gives: SciPy's of arrays alone, where there is one, and else our own."""
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
    """

    def __init__(
        self,
        name: str,
        *,
        logdensity: Rule,
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
        self._support, self._valid = support, valid
        self._is_discrete = is_discrete
        density = "pmf" if is_discrete else "pdf"
        self._methods: Mapping[str, Callable[..., Variable]] = {
            density: of_namespace(self._density),
            f"log{density}": of_namespace(self._logdensity),
            "cdf": of_namespace(self._cdf),
            "sf": of_namespace(self._sf),
            "logcdf": of_namespace(self._logcdf),
            "logsf": of_namespace(self._logsf),
        } | ({} if quantile is None else {"ppf": of_namespace(self._ppf)})

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with these parameters."""
        return Frozen(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__.get("_methods", {}).get(name)
        theirs = None if name.startswith("__") else original(self.__dict__.get("name", ""))
        if own is not None:
            return partial(on_arrays, theirs, name, partial(self._called, name))
        found = getattr(theirs, name, None)
        if found is None:
            raise unknown_name(f"primgraph.scipy.stats.{self.name}", name, [*self._methods])
        return found

    def __repr__(self) -> str:
        return f"<primgraph.scipy.stats.{self.name}>"

    def _called(self, method: str, x: Any, *args: Any, **kwargs: Any) -> Any:
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

    def _brought(self, x: Any, *parameters: Any) -> tuple[Variable, list[Variable], Variable]:
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

    def _bounded(self, rule: Rule, at: Sequence[Any], low: float, high: float) -> Variable:
        """`rule` within the support, and numbers below and above; NaN for a NaN."""
        y, shapes, scale = self._brought(*at)
        first, last = self._support(*shapes)
        inner = y
        if self._is_discrete:
            inner = y = floor(y)
        found_low = None if _is_infinite(first) else less(y, first)
        found_high = None if _is_infinite(last) else self._beyond(y, last)
        if found_high is not None:
            inner = where(found_high, subtract(last, 1.0) if self._is_discrete else 0.5, inner)
        if found_low is not None:
            inner = where(found_low, first if self._is_discrete else 0.5, inner)
        found = rule(inner, *shapes)
        if found_high is not None:
            found = where(found_high, high, found)
        if found_low is not None:
            found = where(found_low, low, found)
        return _with_nan_of(scale, found)

    def _beyond(self, y: Variable, last: Any) -> Variable:
        return greater(y, subtract(last, 0.5) if self._is_discrete else last)

    def _logdensity(self, *at: Any) -> Variable:
        y, shapes, scale = self._brought(*at)
        first, last = self._support(*shapes)
        inner, outside = y, None
        for bound, is_beyond in ((first, less), (last, greater)):
            if not _is_infinite(bound):
                beyond = is_beyond(y, bound)
                # Within the support all is finite, so that no slope of what is not chosen is NaN.
                inner = where(beyond, bound if self._is_discrete else 0.5, inner)
                outside = beyond if outside is None else where(outside, True, beyond)
        if self._is_discrete:
            between = logical_and(not_equal(y, floor(y)), equal(y, y))
            inner = where(between, first, inner)
            outside = between if outside is None else where(outside, True, between)
        rule = self._rules["density"]
        assert rule is not None
        found = rule(inner, *shapes)
        found = found if self._is_discrete else subtract(found, log(scale))
        if outside is not None:
            found = where(outside, -math.inf, found)
        return _with_nan_of(scale, found)

    def _density(self, *at: Any) -> Variable:
        return exp(self._logdensity(*at))

    def _cdf(self, *at: Any) -> Variable:
        rule = self._rules["cdf"]
        if rule is None:
            return exp(self._logcdf(*at))
        return self._bounded(rule, at, 0.0, 1.0)

    def _sf(self, *at: Any) -> Variable:
        rule, below = self._rules["sf"], self._rules["cdf"]
        if rule is not None:
            return self._bounded(rule, at, 1.0, 0.0)
        assert below is not None
        return self._bounded(lambda *a: 1.0 - below(*a), at, 1.0, 0.0)

    def _logcdf(self, *at: Any) -> Variable:
        return self._bounded(self._logged("logcdf", "cdf", "sf"), at, -math.inf, 0.0)

    def _logsf(self, *at: Any) -> Variable:
        return self._bounded(self._logged("logsf", "sf", "cdf"), at, 0.0, -math.inf)

    def _logged(self, name: str, part: str, other: str) -> Rule:
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
    """What was found, and NaN where parameters out of range have made the scale NaN."""
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

        def of_parameters(*first: Any, **more: Any) -> Any:
            return method(*first, *self.args, **self.kwds, **more)

        return of_parameters

    def __repr__(self) -> str:
        return f"<{self.dist!r} with parameters>"


def log1mexp(y: Variable) -> Variable:
    """`log(1 - exp(-y))` of positive numbers, exact for small and large ones (Maechler, 2012)."""
    is_small = less(y, math.log(2.0))
    small = log(-expm1(-where(is_small, y, 0.5)))
    return where(is_small, small, log1p(-exp(-where(is_small, 1.0, y))))
