"""Patterns of derivatives, of functions and of variables of a program."""

from __future__ import annotations

from typing import Any

from primgraph.api.world import handles_in
from primgraph.derivatives.matrices.jacobian import Hessian, Jacobian
from primgraph.derivatives.matrices.lazy_jacobian import Slopes
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
    """Return which derivatives of elements of `y` by elements of `x` may be other than zero.

    `y` is a function of arrays, and `x` its argument or a list or tuple of its arguments, of which
    only shapes and dtypes count: arrays, what `pg.spec` gives, or containers of these. Or `y` and
    `x` are variables of a program, as in `pg.jacobian`. The pattern has shape `(N, M)` for all N
    elements of the results, one result after the other, by all M of the arguments.

    It is found from the graph, without numbers, and never too small: an element that it lacks is
    zero for all inputs. What is known while the program is built is used: slices, masks, indices
    and zeros in constant factors. Indices that are fed, or computed from what is, may be any.
    Branches count together, and so do the trips of a loop.

    Raises `ShapeError` for extents that are not known, and where more than 2**26 elements may be
    other than zero; `NotDifferentiable` for other dtypes than floats.

    >>> pg.jacobian_sparsity(lambda x: x[1:] * x[:-1], np.ones(4)).nnz
    6
    """
    if _is_function(y) and not _has_variables(x):
        return jacobian_pattern(y, x if isinstance(x, list | tuple) else (x,))
    return _of_matrix("jacobian_sparsity", Jacobian(y, x))


@checked_late
def hessian_sparsity(y: Any, x: Any) -> Pattern:
    """Return which second derivatives of `y`, one element, by elements of `x` may be nonzero.

    The pattern has shape `(M, M)` and is symmetric; it is that of the Jacobian of the gradient, so
    that what is linear or only summed lets no elements meet. `y` and `x` are as in
    `jacobian_sparsity`, which tells the rest.

    Raises `NotScalarError` for more elements of `y`; for all else see `jacobian_sparsity`.

    >>> pg.hessian_sparsity(lambda x: pg.sum(x[1:] * x[:-1]), np.ones(4)).nnz
    6
    """
    if _is_function(y) and not _has_variables(x):
        return hessian_pattern(y, x if isinstance(x, list | tuple) else (x,))
    return _of_matrix("hessian_sparsity", Hessian(y, x))


def _is_function(y: Any) -> bool:
    return callable(y) and not isinstance(y, Handle)


def _has_variables(x: Any) -> bool:
    return any(isinstance(item, Variable) for item in handles_in(x))


def _of_matrix(name: str, matrix: Jacobian | Hessian) -> Pattern:
    slopes = matrix._slopes
    if not isinstance(slopes, Slopes):
        raise ArgumentError(
            f"{name} takes a function, or variables of a program, not tensors",
            hint=f"write pg.{name}(f, x) with the function that they were computed by",
        )
    found = pattern_of(slopes)
    if found is None:
        raise too_large(name, (slopes.outputs.offsets()[-1], slopes.inputs.offsets()[-1]))
    return found
