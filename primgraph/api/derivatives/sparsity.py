"""Sparsity patterns of derivatives, of functions and of variables of a program."""

from __future__ import annotations

from typing import Any

from primgraph.api.world import handles_in
from primgraph.derivatives.matrices.jacobian import Hessian, Jacobian
from primgraph.derivatives.matrices.lazy_jacobian import LazyJacobian
from primgraph.derivatives.matrices.sparsity_patterns import (
    hessian_pattern,
    jacobian_pattern,
    pattern_of,
    too_large,
)
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.signature import checked_late
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable
from primgraph.sparsity.pattern import Pattern


@checked_late
def jacobian_sparsity(y: Any, x: Any) -> Pattern:
    """Return the pattern of the Jacobian of `y` by `x`: the elements that may be nonzero.

    `y` is a function of arrays, and `x` its argument or a list or tuple of its arguments, of which
    only shapes and dtypes count: arrays, results of `pg.spec`, or containers of these. Or `y` and
    `x` are variables of a program, as in `pg.jacobian`. The pattern has shape `(N, M)`: N elements
    of all results by M elements of all arguments, one array after the other.

    It is derived from the graph, without numbers, and never too small: other elements are zero for
    all inputs. Slices, masks, indices and zeros in constant factors that are known at build time
    are used. Fed or computed indices may be any. All branches count together, and so do all steps
    of a loop.

    Raises `ShapeError` for symbolic sizes, and if more than 2**26 elements may be nonzero;
    `NotDifferentiable` for other dtypes than floats.

    >>> pg.jacobian_sparsity(lambda x: x[1:] * x[:-1], np.ones(4)).nnz
    6
    """
    if _is_function(y) and not _has_variables(x):
        return jacobian_pattern(y, x if isinstance(x, list | tuple) else (x,))
    return _pattern_of_matrix("jacobian_sparsity", Jacobian(y, x))


@checked_late
def hessian_sparsity(y: Any, x: Any) -> Pattern:
    """Return the pattern of the Hessian of `y`, one element: the elements that may be nonzero.

    The pattern has shape `(M, M)` and is symmetric: it is that of the Jacobian of the gradient, so
    linear terms and sums connect no elements. `y` and `x` are as in `jacobian_sparsity`.

    Raises `NotScalarError` for more elements of `y`; otherwise as `jacobian_sparsity`.

    >>> pg.hessian_sparsity(lambda x: pg.sum(x[1:] * x[:-1]), np.ones(4)).nnz
    6
    """
    if _is_function(y) and not _has_variables(x):
        return hessian_pattern(y, x if isinstance(x, list | tuple) else (x,))
    return _pattern_of_matrix("hessian_sparsity", Hessian(y, x))


def _is_function(y: Any) -> bool:
    return callable(y) and not isinstance(y, Handle)


def _has_variables(x: Any) -> bool:
    return any(isinstance(item, Variable) for item in handles_in(x))


def _pattern_of_matrix(name: str, matrix: Jacobian | Hessian) -> Pattern:
    lazy = matrix._matrix
    if not isinstance(lazy, LazyJacobian):
        raise ArgumentError(
            f"{name} takes a function, or variables of a program, not tensors",
            hint=f"write pg.{name}(f, x) with the function that they were computed by",
        )
    found = pattern_of(lazy.operator)
    if found is None:
        raise too_large(name, lazy.operator.shape)
    return found
