"""Optimization by SciPy's names: SciPy's methods, with exact derivatives of traced functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from primgraph import tree
from primgraph.api.arguments import call_differentiated
from primgraph.api.derivatives.of_functions import value_and_grad
from primgraph.api.derivatives.products import hvp
from primgraph.api.derivatives.sparse import sparse_hessian
from primgraph.api.jit import jit
from primgraph.api.public import hessian, jacobian
from primgraph.errors import unknown_name
from primgraph.scipy.traced import (
    Unknowns,
    arguments_of,
    of_scipy,
    refuse_variables,
    require_vector,
)

__all__ = ["curve_fit", "least_squares", "minimize", "root"]

# Methods of `minimize` in lower case, by the derivatives that they take beside the gradient.
_WITHOUT_GRADIENT = ("nelder-mead", "powell", "cobyla", "cobyqa")
_BY_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov")
_BY_HESSIAN = ("dogleg", "trust-exact")
_BY_SPARSE_HESSIAN = ("trust-constr",)
# Methods of `root` that take a Jacobian.
_BY_JACOBIAN = ("hybr", "lm")


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    **options: Any,
) -> Any:
    """Minimize `fun(x, *args)` by a method of `scipy.optimize.minimize`, with exact derivatives.

    The function is traced. Every method has the derivatives that it can use: one kernel of value
    and gradient; products with the Hessian for Newton-CG, trust-ncg and trust-krylov; the Hessian
    for dogleg and trust-exact, as a sparse matrix for trust-constr. Functions in `constraints`
    without a `jac` are traced, too; they take what `fun` takes, and their Hessians are sparse. `x0`
    is an array of any shape, a number or a container of these, which `fun` and the field `x` of the
    result have as well; other fields are those of the flat vector. `bounds` are those of the flat
    vector, or a pair of ends for each part of a dict.

    If `jac`, `hess` or `hessp` is given, SciPy is called with the arguments as they are. Raises
    `ArgumentError` for variables, `DTypeError` for complex numbers, and as `pg.trace`, `pg.grad`
    and SciPy do.

    >>> from primgraph.scipy import optimize
    >>> start = {"a": np.array([-1.2]), "b": 1.0}
    >>> rosenbrock = lambda x: pg.sum((1 - x["a"]) ** 2 + 100 * (x["b"] - x["a"] ** 2) ** 2)
    >>> found = optimize.minimize(rosenbrock, start, method="trust-exact")
    >>> found.x["a"].round(6).tolist(), found.nfev < 30
    ([1.0], True)
    """
    theirs, args = _theirs("minimize"), arguments_of(args)
    if not (jac is None and hess is None and hessp is None):
        require_vector("minimize", "x0", x0, "with jac, hess or hessp")
        return theirs(fun, x0, args, method, jac, hess, hessp, bounds, constraints, **options)
    unknowns = Unknowns("minimize", x0)
    given = _with_derivatives(unknowns.of_vector(fun, args), method)
    bounds = unknowns.pairs(bounds) if isinstance(bounds, Mapping) else bounds
    is_one = isinstance(constraints, Mapping) or not isinstance(constraints, list | tuple)
    traced = [unknowns.constraint(c) for c in ([constraints] if is_one else constraints)]
    found = theirs(
        x0=unknowns.start, method=method, bounds=bounds, constraints=traced, **given, **options
    )
    return unknowns.restored(found)


def _with_derivatives(fun: Callable[[Any], Any], method: Any) -> dict[str, Any]:
    """Return `fun` and the derivatives that a method of `minimize` takes, as its arguments."""
    name = method.lower() if isinstance(method, str) else ""
    if name in _WITHOUT_GRADIENT:
        value = jit(fun)
        return {"fun": lambda x: np.asarray(value(x)).item()}
    both = jit(value_and_grad(fun))
    given: dict[str, Any] = {"fun": lambda x: _as_pair(*both(x)), "jac": True}
    if name in _BY_PRODUCTS:
        given["hessp"] = jit(lambda x, p: hvp(fun, x, p)[1])
    elif name in _BY_HESSIAN:
        given["hess"] = jit(hessian(fun))
    elif name in _BY_SPARSE_HESSIAN:
        matrix = jit(sparse_hessian(fun))
        given["hess"] = lambda x: matrix(x).to_scipy()
    return given


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = None,
    *,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Minimize the sum of squares of `fun(x, *args, **kwargs)` by `scipy.optimize.least_squares`.

    The function is traced, and its Jacobian is exact. Arguments and errors are those of `minimize`;
    `options` are SciPy's, where both `bounds` may be dicts like `x0`. If
    `jac` is given, SciPy is called with the arguments as they are.

    >>> from primgraph.scipy import optimize
    >>> times = np.array([0.0, 1.0, 2.0])
    >>> residual = lambda p: p["size"] * pg.exp(-p["rate"] * times) - 2.0 * 0.5**times
    >>> found = optimize.least_squares(residual, {"size": 1.0, "rate": 1.0})
    >>> [round(float(v), 6) for v in found.x.values()]
    [2.0, 0.693147]
    """
    theirs, args = _theirs("least_squares"), arguments_of(args)
    named = {} if kwargs is None else dict(kwargs)
    if jac is not None:
        require_vector("least_squares", "x0", x0, "with jac")
        return theirs(fun, x0, jac, args=args, kwargs=named, **options)
    unknowns = Unknowns("least_squares", x0)
    bounds = options.get("bounds")
    if isinstance(bounds, list | tuple) and any(isinstance(end, Mapping) for end in bounds):
        options["bounds"] = tuple([unknowns.spread(v, "least_squares: bounds") for v in bounds])
    of_vector = unknowns.of_vector(fun, args, named)
    found = theirs(jit(of_vector), unknowns.start, jit(jacobian(of_vector)), **options)
    return unknowns.restored(found)


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    **options: Any,
) -> Any:
    """Find `x` with `fun(x, *args) = 0` by a method of `scipy.optimize.root`.

    The function is traced. The methods hybr and lm have its exact Jacobian; others take none. `fun`
    returns as many numbers as `x0` has, in an array or a list; lm takes more. Arguments and errors
    are those of `minimize`, and `ShapeError` for another number of numbers.

    >>> from primgraph.scipy import optimize
    >>> found = optimize.root(lambda x: [x[0] + x[1] - 3.0, x[0] * x[1] - 2.0], [0.0, 5.0])
    >>> found.x.round(6).tolist()
    [1.0, 2.0]
    """
    theirs, args = _theirs("root"), arguments_of(args)
    if jac is not None:
        require_vector("root", "x0", x0, "with jac")
        return theirs(fun, x0, args, method, jac, **options)
    unknowns = Unknowns("root", x0)
    of_vector = unknowns.of_vector(fun, args)
    if method != "lm":
        of_any, of_vector = of_vector, lambda x: unknowns.require_count(of_any(x))
    exact = jit(jacobian(of_vector)) if method.lower() in _BY_JACOBIAN else None
    found = theirs(jit(of_vector), unknowns.start, method=method, jac=exact, **options)
    return unknowns.restored(found)


def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    *,
    jac: Any = None,
    **options: Any,
) -> Any:
    """Fit `f(xdata, *parameters)` to `ydata` by `scipy.optimize.curve_fit`.

    The function is traced, and its Jacobian by the parameters is exact. Parameters are numbers, as
    many as `p0` has or else `f` takes. `options` and results are SciPy's. If `jac` is given, SciPy
    is called with the arguments as they are.

    >>> from primgraph.scipy import optimize
    >>> x = np.linspace(0.0, 3.0, 9)
    >>> decay = lambda x, size, rate: size * pg.exp(-rate * x)
    >>> found, covariance = optimize.curve_fit(decay, x, np.exp(-2 * x))
    >>> found.round(6).tolist()
    [1.0, 2.0]
    """
    theirs = _theirs("curve_fit")
    refuse_variables("curve_fit", tree.leaves((xdata, ydata, p0)))
    if p0 is not None:
        require_vector("curve_fit", "p0", p0, "for the parameters in order")
    if jac is not None:
        return theirs(f, xdata, ydata, p0, jac=jac, **options)

    def of_parameters(p: Any, x: Any) -> Any:
        return call_differentiated(f, x, *[p[i] for i in range(p.shape[0])])

    value, slope = jit(of_parameters), jit(jacobian(of_parameters))

    @wraps(f)
    def of_numbers(x: Any, *parameters: Any) -> Any:
        return value(np.array(parameters, np.float64), x)

    return theirs(
        of_numbers,
        xdata,
        ydata,
        p0,
        jac=lambda x, *parameters: slope(np.array(parameters, np.float64), x),
        **options,
    )


def _as_pair(value: Any, gradient: Any) -> tuple[float, Any]:
    return float(np.asarray(value).item()), gradient


def _theirs(name: str) -> Any:
    found = of_scipy("optimize", name)
    if found is None:
        raise unknown_name("primgraph.scipy.optimize", name, __all__)
    return found


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise unknown_name("primgraph.scipy.optimize", name, __all__)
    return _theirs(name)


def __dir__() -> list[str]:
    return sorted(__all__)
