"""Constraints with sparse derivatives for SciPy's methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, final

import numpy as np

from primgraph.api.arguments import call_differentiated
from primgraph.api.derivatives.sparse import sparse_jacobian
from primgraph.api.jit import jit
from primgraph.base.locks import cached_property
from primgraph.derivatives.matrices.sparse import hessian_plan, matrix_of
from primgraph.errors import ArgumentError, OptionError, ShapeError
from primgraph.ir.frontend.signature import checked_late, checked_methods
from primgraph.ir.types import FLOAT64
from primgraph.operators.promotion import array_of
from primgraph.operators.reduce.reductions import sum as sum_
from primgraph.operators.variable import Variable

Array = np.ndarray[Any, Any]


@checked_late
def constraints(
    function: Callable[..., Any],
    lower: Any,
    upper: Any,
    *,
    sparse: bool = True,
    pattern: Any = None,
    hessian_pattern: Any = None,
) -> Constraints:
    """Return the constraint `lower <= function(x) <= upper` for SciPy, with exact derivatives.

        limits = pg.constraints(function, 0.0, 0.0)
        scipy.optimize.minimize(..., method="trust-constr", constraints=limits.to_scipy())

    `function` takes and returns a float64 vector, and uses operators of primgraph or NumPy. Bounds
    are numbers or vectors: infinite for no bound, equal for an equality. Derivatives are sparse
    matrices of SciPy, or arrays unless `sparse`; `pattern` and `hessian_pattern` replace the
    patterns derived from the function. Each derivative is compiled at its first use.

    Raises `ArgumentError` for what is no function, `ShapeError` for bounds of other shapes than
    those of vectors, and `OptionError` for a lower bound above an upper one, or one that is NaN.

    >>> limits = pg.constraints(lambda x: x[1:] * x[:-1], 0.0, 1.0, sparse=False)
    >>> limits.jac(np.array([1.0, 2.0, 3.0]))
    array([[2., 1., 0.],
           [0., 3., 2.]])
    """
    if not callable(function):
        raise ArgumentError(f"constraints takes a function, not {function!r:.60}")
    below, above = array_of(lower, FLOAT64), array_of(upper, FLOAT64)
    if below.ndim > 1 or above.ndim > 1:
        raise ShapeError(f"bounds are numbers or vectors, not {below.shape} and {above.shape}")
    if below.size != above.size and 1 not in (below.size, above.size):
        raise ShapeError(f"there are {below.size} lower bounds and {above.size} upper ones")
    if np.any(np.isnan(below)) or np.any(np.isnan(above)):
        raise OptionError("a bound is NaN", hint="-np.inf and np.inf stand where there is no bound")
    if np.any(below > above):
        raise OptionError(f"a lower bound is above an upper one: {lower!r:.60}, {upper!r:.60}")
    return Constraints(function, below, above, sparse, pattern, hessian_pattern)


@final
@checked_methods(late=True)
class Constraints:
    """Values, Jacobian and weighted Hessian of constraints at float64 vectors `x`."""

    def __init__(
        self,
        function: Callable[..., Any],
        lower: Array,
        upper: Array,
        sparse: bool,
        pattern: Any,
        hessian_pattern: Any,
    ) -> None:
        self.function = function
        self.lower, self.upper = lower, upper
        self.sparse = sparse
        self._patterns = pattern, hessian_pattern

    def fun(self, x: Any) -> Array:
        """Return the values at `x`, a vector."""
        found: Any = self._values(_vector(x))
        if not isinstance(found, np.ndarray):
            raise ArgumentError(
                f"constraints are a vector, and the function gives a {type(found).__name__}",
                hint="put numbers together by pg.stack, and vectors by pg.concatenate",
            )
        if found.ndim != 1:
            raise ShapeError(f"constraints are a vector, and the function gives {found.shape}")
        for bound in (self.lower, self.upper):
            if bound.size not in (1, found.size):
                raise ShapeError(f"there are {found.size} constraints and {bound.size} bounds")
        return found

    def jac(self, x: Any) -> Any:
        """Return the Jacobian at `x`: a `scipy.sparse.csr_array`, or an array if not `sparse`."""
        return self._convert_matrix(self._slopes(_vector(x)))

    def hess(self, x: Any, v: Any) -> Any:
        """Return the sum of the Hessians of all constraints at `x`, weighted by `v`.

        This is their part of the Hessian of a Lagrangian.
        """
        return self._convert_matrix(self._curvature(_vector(x), _vector(v)))

    def to_scipy(self) -> Any:
        """Return a `scipy.optimize.NonlinearConstraint`, for the method trust-constr.

        Raises `OptionError` if SciPy cannot be imported.
        """
        try:
            optimize = import_module("scipy.optimize")
        except ImportError:
            raise OptionError("to_scipy needs SciPy, which cannot be imported here") from None
        return optimize.NonlinearConstraint(
            self.fun, self.lower, self.upper, jac=self.jac, hess=self.hess
        )

    def to_dicts(self, x: Any) -> list[dict[str, Any]]:
        """Return dicts for SciPy's method SLSQP: equalities, and inequalities `>= 0`.

        `x` is any vector of the right length. SLSQP uses dense matrices.
        """
        count = self.fun(x).size
        low, high = np.broadcast_to(self.lower, count), np.broadcast_to(self.upper, count)
        equal = np.flatnonzero(low == high)
        least = np.flatnonzero((low != high) & (low > -np.inf))
        most = np.flatnonzero((low != high) & (high < np.inf))
        return [
            {
                "type": "eq" if rows is equal else "ineq",
                "fun": partial(self._part, rows, bound, sign),
                "jac": partial(self._slope, rows, sign),
            }
            for rows, bound, sign in ((equal, low, 1.0), (least, low, 1.0), (most, high, -1.0))
            if rows.size
        ]

    def _part(self, rows: Array, bound: Array, sign: float, x: Any) -> Array:
        return sign * (self.fun(x)[rows] - bound[rows])

    def _slope(self, rows: Array, sign: float, x: Any) -> Array:
        found = self._slopes(_vector(x)).to_dense()[rows]
        return np.asarray(sign * found)

    def _convert_matrix(self, matrix: Any) -> Any:
        return matrix.to_scipy() if self.sparse else matrix.to_dense()

    @cached_property
    def _values(self) -> Callable[..., Any]:
        return jit(self.function)

    @cached_property
    def _slopes(self) -> Callable[..., Any]:
        found: Callable[..., Any] = sparse_jacobian(self.function, pattern=self._patterns[0])
        return found

    @cached_property
    def _curvature(self) -> Callable[..., Any]:
        return jit(self._weighted_hessian, rebind=False)

    def _weighted_hessian(self, x: Variable, v: Variable) -> Any:
        def lagrangian(x: Variable) -> Any:
            return sum_(v * call_differentiated(self.function, x))

        return matrix_of(hessian_plan("constraints", lagrangian, x, self._patterns[1]), "csr", None)


def _vector(x: Any) -> Array:
    vector = array_of(x, FLOAT64)
    if vector.ndim != 1:
        raise ShapeError(f"constraints take a vector, not an array of shape {vector.shape}")
    return vector
