"""Diagonals of sparse Jacobians and Hessians by coloured directions.

The axes of one colour form one direction: all off-diagonal elements that would be added in its
product are structural zeros. Only axes that meet need different colours. A tridiagonal matrix or an
arrowhead needs two colours, whatever its size.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from primgraph.derivatives.matrices.operator import JacobianOperator
from primgraph.derivatives.matrices.sparse import Plan
from primgraph.derivatives.matrices.sparsity_patterns import sample_pattern
from primgraph.derivatives.modes import record, reverse
from primgraph.derivatives.request import Request
from primgraph.errors import MissingRuleError
from primgraph.ir.dims import names_in
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import recording
from primgraph.ir.slices import forward_slice
from primgraph.ir.types import Shape
from primgraph.operators.elementwise.logic import where
from primgraph.operators.promotion import lift
from primgraph.operators.reduce.reductions import sum as sum_
from primgraph.operators.shape.shaping import reshape
from primgraph.operators.variable import Variable
from primgraph.sparsity.coloring import Coloring
from primgraph.sparsity.greedy import vertex_colors
from primgraph.sparsity.pattern import Indices, Pattern
from primgraph.transforms.jacobians.element_rules import terms_of
from primgraph.transforms.jacobians.strong_zeros import strong_zeros
from primgraph.transforms.linearize import linearize_with_map
from primgraph.transforms.optimize.clean_up import clean_up

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"

# Required ratio of axes to directions, and limits for the pattern: the fraction of its elements
# that may be nonzero, and the number of listed elements of all samples.
_FEWER = 3
_SHARE = 6
_LISTED, _MOST = 2**14, 2**22


def axis_colors(graph: Graph, wrt: Value, lead: Shape) -> Indices | None:
    """Return a colour for each element of a sample of `wrt`; no row of `graph` has two of one
    colour.

    `graph` has one result, of the type of `wrt`: its row at an index is the gradient of that
    element. A row counts for the colour of its own element. None if too many colours are needed.
    """
    shape = wrt.shape
    if names_in(shape) or graph.outputs[0].type != wrt.type:
        return None
    width, batch = prod(shape[len(lead) :]), lead[0] if lead else None
    most = max(wrt.type.size * width // _SHARE, _LISTED)
    pattern = sample_pattern(graph, wrt, batch, min(most, _MOST))
    if pattern is None or pattern.nnz * _SHARE > width * width:
        return None
    colors = vertex_colors(pattern.union(pattern.T))
    return colors if count_of(colors) * _FEWER <= width else None


def count_of(colors: Indices) -> int:
    """Return the number of colours."""
    return int(colors.max(initial=0)) + 1


def directions_of(
    gradient: Graph, wrt: Value, colors: Indices, lead: Shape
) -> np.ndarray[Any, Any] | None:
    """Return for each colour the sum of the unit vectors of its axes, for all samples.

    None if the diagonal has a cheaper form, of moved and scaled elements.
    """
    if not lead:
        jvp, _ = linearize_with_map(gradient, [gradient.inputs.index(wrt)])
        along = clean_up(jvp.with_outputs(jvp.outputs[len(gradient.outputs) :]))
        moving = forward_slice(along.body, along.inputs[-1:])
        most = count_of(colors) * sum(
            v.type.size for e in along.body for v in e.outputs if v in moving
        )
        if terms_of(along, most) is not None:
            return None
    return _seeds(_masks(colors, wrt.shape, lead), wrt)


def _masks(colors: Indices, shape: Shape, lead: Shape) -> Mask:
    """Return for each colour its mask, in a shape that broadcasts with the value."""
    masks: Mask = np.arange(count_of(colors))[:, None] == colors[None, :]
    return masks.reshape(-1, *(1 for _ in lead), *shape[len(lead) :])


def _seeds(masks: Mask, wrt: Value) -> np.ndarray[Any, Any]:
    return np.broadcast_to(masks, (len(masks), *wrt.shape)).astype(wrt.dtype)


def hessian_diagonal(request: Request, colors: Indices, lead: Shape) -> Variable | None:
    """Return the second derivatives of the output by each element of the input twice.

    None if forward mode over the gradient is not available.
    """
    (gradient,) = reverse(request, [None], None, lenient=True)
    if gradient is None:
        return None
    return jacobian_diagonal(replace(request, outputs=[gradient]), colors, lead, symmetric=True)


def jacobian_diagonal(
    request: Request, colors: Indices, lead: Shape, *, symmetric: bool = False
) -> Variable | None:
    """Return the derivatives of each element of the output by the input element at its index.

    None if forward mode is not available.
    """
    if not request.path.wrt:
        return None
    try:
        return (
            _from_products(request, colors, lead)
            if lead
            else _from_elements(request, colors, symmetric)
        )
    except MissingRuleError:
        return None


def _from_elements(request: Request, colors: Indices, symmetric: bool) -> Variable | None:
    """Compute the diagonal by elementwise formulas if these are simpler than products."""
    operator = JacobianOperator(request, symmetric=symmetric)
    if not operator.goes_forward:
        return None
    numbers = np.arange(colors.size)
    pattern = Pattern.from_coo(numbers, numbers, (colors.size, colors.size))
    places = colors * colors.size + numbers
    found = Plan(operator, Coloring(pattern, colors, None, places), True, False).values()
    return reshape(found, request.inputs[0].shape)


def _from_products(request: Request, colors: Indices, lead: Shape) -> Variable:
    """Compute the diagonal from products with the matrices of all samples at once."""
    (x,), path = request.inputs, request.path
    along = strong_zeros(clean_up(path.jvp()), len(path.free), path.ranges_inside())
    masks = _masks(colors, x.shape, lead)
    with recording(request.builder):
        (found,) = record(path, along, [lift(_seeds(masks, x)).value], count=len(masks))
        products = Variable(request.builder, found)
        return sum_(where(lift(masks), products, 0.0), axis=0)
