"""Constant folding."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.base.frames import is_interruption
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.ir.types import scalar_of
from primgraph.primitives.constants import constant_op, full
from primgraph.primitives.linear_algebra.products import CONTRACTS
from primgraph.transforms.dataflow.contract import primitives_only, transform

# Larger dense results are left to the kernel, unless an operand is a dense constant of that size:
# folding must not make a graph much larger. The number of elements read, or multiplied in matrix
# products, is bounded as well: folding must not take long.
_SMALL, _LARGEST, _MOST_WORK = 64, 4096, 2**20


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def fold_constants(graph: Graph) -> Graph:
    """Replace equations on constants by their results, computed as the interpreter does.

    Elementwise functions of uniform arrays stay uniform, whatever their size.

    >>> graph = pg.trace(lambda x: x * pg.exp(pg.zeros(3)), pg.spec(3))
    >>> print(pg.transforms.fold_constants(graph))
    graph f(%x: f64[3]) {
      %0: f64[3] = full(dtype=f64, shape=(3,), value=0.0)
      %1: f64[3] = full(dtype=f64, shape=(3,), value=1.0)
      %2: f64[3] = mul(%x, %1)
      return %2
    }
    """
    builder, moved = rebuild(graph)
    with builder, np.errstate(all="ignore"):
        for eqn in graph.body:
            inputs = [moved[v] for v in eqn.inputs]
            builder.source = eqn.source or NOWHERE
            results = fold(builder, eqn, inputs)
            if results is None:
                copy(builder, eqn, moved)
            else:
                moved.update(zip(eqn.outputs, results, strict=True))
    return builder.graph([moved[v] for v in graph.outputs])


def fold(builder: Builder, eqn: Equation, inputs: list[Value]) -> list[Value] | None:
    """Return the results of `eqn` on `inputs` as constants; None if it is not to be folded."""
    assert isinstance(eqn.op, Primitive)
    # Constants are folded already; other ops must stay visible to later transforms.
    if eqn.op.stops or eqn.op.random or eqn.is_known or eqn.size is not None:
        return None
    definitions, scalars = [], []
    for value in inputs:
        made = builder.definition(value)
        number = None if made is None else made.number
        if made is None or (number is None and made.array is None):
            return None
        definitions.append(made)
        scalars.append(number)
    if eqn.op.elementwise and None not in scalars:
        return _fold_uniform(builder, eqn, inputs, scalars)
    sizes = [d.outputs[0].type.size for d in definitions if d.array is not None]
    limit = min(max([_SMALL, *sizes]), _LARGEST)
    if any(v.type.is_larger(limit) for v in eqn.outputs):
        return None
    if any(v.type.names for v in inputs) or _work(eqn) > _MOST_WORK:
        return None
    results = _evaluate(eqn, [_array(d) for d in definitions])
    if results is None:
        return None
    return [_record(np.asarray(r, v.dtype)) for r, v in zip(results, eqn.outputs, strict=True)]


def _work(eqn: Equation) -> int:
    """Return the approximate number of elements read, written or multiplied."""
    moved = sum(v.type.size for v in (*eqn.inputs, *eqn.outputs))
    if not eqn.op.fact(CONTRACTS):
        return moved
    return moved + eqn.output.type.size * eqn.inputs[0].shape[-1]


def _evaluate(eqn: Equation, arrays: list[np.ndarray[Any, Any]]) -> tuple[Any, ...] | None:
    """Evaluate `eqn`; return None if it raises, as the kernel's error names the user's line."""
    try:
        return eqn.op.evaluate(arrays, eqn.kwargs)
    except Exception as error:
        if is_interruption(error):
            raise
        return None


def _fold_uniform(
    builder: Builder, eqn: Equation, inputs: list[Value], scalars: list[Any]
) -> list[Value] | None:
    results = _evaluate(eqn, [np.asarray(s, v.dtype) for s, v in zip(scalars, inputs, strict=True)])
    if results is None:
        return None
    type = eqn.outputs[0].type
    # A NaN of any sign and payload becomes the default NaN of parameters.
    number = scalar_of(np.asarray(results[0], type.dtype).item(), type.dtype)
    params = {"value": number, "shape": type.shape, "dtype": type.dtype}
    return [*builder.emit(full, (), params)]


def _array(definition: Equation) -> np.ndarray[Any, Any]:
    assert isinstance(definition.op, Primitive)
    return np.asarray(definition.op.evaluate([], definition.kwargs)[0])


def _record(array: np.ndarray[Any, Any]) -> Value:
    op, params = constant_op(np.ascontiguousarray(array).reshape(array.shape))
    return op(**params)
