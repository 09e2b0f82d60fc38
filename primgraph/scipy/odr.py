"""Orthogonal distance regression by SciPy's names: `Model` with exact derivatives.

What is not here is SciPy's own. SciPy has `scipy.odr` up to version 1.18.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.api.arguments import call_differentiated
from primgraph.api.derivatives.products import jvp
from primgraph.api.jit import jit
from primgraph.api.vmap import vmap
from primgraph.errors import unknown_name
from primgraph.operators.lazy_loading import functions
from primgraph.scipy.traced import of_scipy

__all__ = ["Model"]


def Model(
    fcn: Callable[..., Any],
    fjacb: Any = None,
    fjacd: Any = None,
    extra_args: Any = None,
    **options: Any,
) -> Any:
    """Return a `scipy.odr.Model` of `fcn(beta, x, *extra_args)`, with its exact derivatives.

    The function is traced. `fjacb` and `fjacd`, its derivatives by the parameters `beta` and by the
    variables `x`, are made unless they are given. As in SciPy, `x` has the shape (n,) or (m, n),
    the result (n,) or (q, n), and each of the n observations depends on its own column of `x`.
    Raises as `pg.trace` does, and as SciPy does.

    >>> from primgraph.scipy import odr
    >>> x = np.linspace(0.0, 2.0, 9)
    >>> model = odr.Model(lambda beta, x: beta[0] * np.exp(-beta[1] * x))
    >>> found = odr.ODR(odr.Data(x, 3.0 * np.exp(-x)), model, beta0=[1.0, 0.5]).run()
    >>> found.beta.round(6).tolist()
    [3.0, 1.0]
    """

    def value(beta: Any, x: Any, *args: Any) -> Any:
        return call_differentiated(fcn, beta, x, *args)

    # SciPy calls derivatives with the arrays that are given, which may be of integers.
    def by_parameters(beta: Any, x: Any, *args: Any) -> Any:
        beta = 1.0 * beta
        return _by_units(lambda b: value(b, x, *args), beta, np.eye(beta.shape[0]))

    def by_variables(beta: Any, x: Any, *args: Any) -> Any:
        x = 1.0 * x
        if x.ndim == 1:
            return jvp(lambda v: value(beta, v, *args), (x,), (functions["ones_like"](x),))[1]
        return _by_units(lambda v: value(beta, v, *args), x, np.eye(x.shape[0])[:, :, None])

    fjacb = jit(by_parameters) if fjacb is None else fjacb
    fjacd = jit(by_variables) if fjacd is None else fjacd
    return _theirs("Model")(jit(value), fjacb, fjacd, extra_args, **options)


def _by_units(function: Callable[[Any], Any], point: Any, units: Any) -> Any:
    """Return the derivatives along each of `units`, on the axis before that of observations."""

    def along(unit: Any) -> Any:
        return jvp(function, (point,), (functions["broadcast_to"](unit, point.shape),))[1]

    return functions["moveaxis"](vmap(along)(units), 0, -2)


def _theirs(name: str) -> Any:
    found = None if name.startswith("__") else of_scipy("odr", name)
    if found is None:
        raise unknown_name("primgraph.scipy.odr", name, __all__)
    return found


def __getattr__(name: str) -> Any:
    return _theirs(name)


def __dir__() -> list[str]:
    return sorted(__all__)
