"""Sparsity patterns of Jacobians and Hessians, found from graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph.derivatives.grad import grad
from primgraph.derivatives.matrices.layout import Layout
from primgraph.derivatives.matrices.operator import JacobianOperator
from primgraph.errors import NotDifferentiable, NotScalarError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.types import TensorType
from primgraph.operators.variable import Variable
from primgraph.program.trace import trace
from primgraph.sparsity.pattern import Indices, Pattern
from primgraph.sparsity.rows import Rows, from_pairs, places_of
from primgraph.transforms.dataflow.sparsity import MOST_PAIRS, pattern_rows
from primgraph.transforms.lower import lower


def pattern_of(operator: JacobianOperator, most: int = MOST_PAIRS) -> Pattern | None:
    """Return the pattern of a derivative matrix, `(N, M)`; for a batch, the union over samples.

    None if more than `most` elements may be nonzero. Raises `ShapeError` for symbolic sizes.
    """
    outputs, inputs, path = operator.outputs, operator.inputs, operator.path
    _require_known([*outputs.shapes, *inputs.shapes])
    rows = pattern_rows(path.graph, path.moved, most)
    if rows is None:
        return None
    if outputs.batch is not None or operator.places != list(range(len(path.moved))):
        offsets = np.cumsum([0, *(v.type.size for v in path.moved)])
        spans = [None if p is None else (offsets[p], offsets[p + 1]) for p in operator.places]
        rows = _map_to_matrix(rows, outputs, inputs, spans)
    pattern = _pattern(operator.shape, rows)
    return pattern.union(pattern.T) if operator.symmetric else pattern


def sample_pattern(graph: Graph, wrt: Value, batch: int | None, most: int) -> Pattern | None:
    """Return the pattern of the only result of `graph`, which has the type of `wrt`, by `wrt`.

    With a `batch` of samples, the union of the patterns within each sample. None if more than
    `most` elements, of all samples, may be nonzero.
    """
    layout = Layout((wrt.shape,), batch)
    rows = pattern_rows(graph, [wrt], most)
    if rows is None:
        return None
    if batch is not None:
        rows = _map_to_matrix(rows, layout, layout, [(0, wrt.type.size)])
    return _pattern((layout.offsets()[-1], layout.offsets()[-1]), rows)


def _map_to_matrix(
    rows: Rows, outputs: Layout, inputs: Layout, spans: Sequence[tuple[Any, Any] | None]
) -> Rows:
    """Convert rows and columns of elements of arrays to those of a derivative matrix.

    `spans` has the columns of each input; two inputs may have the same ones.
    """
    row, sample = _numbers(outputs)
    column, of_sample = _numbers(inputs)
    offsets = np.cumsum([0, *(np.prod(s, dtype=np.int64) for s in inputs.shapes)])
    found, across = places_of(rows), rows.columns
    pairs = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for start, span in zip(offsets, spans, strict=False):
        if span is not None:
            inside = (across >= span[0]) & (across < span[1])
            down, place = found[inside], across[inside] - span[0] + start
            apart = sample[down] == of_sample[place]
            pairs.append((row[down[apart]], column[place[apart]]))
    rows_found, columns_found = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return from_pairs(rows_found, columns_found, outputs.offsets()[-1], inputs.offsets()[-1])


def _numbers(layout: Layout) -> tuple[Indices, Indices]:
    """Return for each element of all arrays its row or column in the matrix, and its sample."""
    numbers, samples = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for extent, start in zip(layout.extents(), layout.offsets(), strict=False):
        every = np.arange(extent * (1 if layout.batch is None else layout.batch), dtype=np.int64)
        numbers.append(start + every % max(extent, 1))
        samples.append(every // max(extent, 1))
    return np.concatenate(numbers), np.concatenate(samples)


def _pattern(shape: tuple[int, int], rows: Rows) -> Pattern:
    return Pattern._from_arrays(shape, rows.starts, rows.columns)


def _require_known(shapes: Sequence[tuple[int, ...]]) -> None:
    if any(type(n) is not int for shape in shapes for n in shape):
        raise ShapeError(
            f"a pattern needs extents that are known, not {', '.join(map(str, shapes))}",
            hint="find it for arrays of the size that is meant",
        )


def jacobian_pattern(function: Callable[..., Any], arguments: Sequence[Any]) -> Pattern:
    """Return the pattern of all results of a function of arrays by all elements of its
    arguments."""
    graph = lower(_trace_function("jacobian_sparsity", function, arguments))
    return _pattern_of_graph("jacobian_sparsity", graph)


def hessian_pattern(function: Callable[..., Any], arguments: Sequence[Any]) -> Pattern:
    """Return the pattern of the Hessian of a function of arrays by all elements of its
    arguments."""
    graph = _trace_function("hessian_sparsity", function, arguments)
    if len(graph.outputs) != 1 or graph.outputs[0].type.size != 1:
        types = ", ".join(str(v.type) for v in graph.outputs)
        raise NotScalarError(f"hessian_sparsity takes a function of one element, not of {types}")
    builder = Builder(graph.name)
    with builder:
        inputs = [Variable(builder, builder.input(v.type, v.hint)) for v in graph.inputs]
        (value,) = builder.inline(graph, [v.value for v in inputs])
        slopes = grad(Variable(builder, value), inputs, materialize_grads=True)
    found = builder.part(builder.inputs, [v.value for v in slopes if v is not None])
    pattern = _pattern_of_graph("hessian_sparsity", lower(found))
    return pattern.union(pattern.T)


def _trace_function(name: str, function: Callable[..., Any], arguments: Sequence[Any]) -> Graph:
    graph = trace(function, *[_example(a) for a in arguments])
    for role, values in (("argument", graph.inputs), ("result", graph.outputs)):
        for i, value in enumerate(values):
            if not value.type.is_inexact:
                raise NotDifferentiable(
                    f"{name}: {role} {i} of {graph.name} is {value.type}, and only floats have "
                    "derivatives"
                )
    _require_known([v.shape for v in (*graph.inputs, *graph.outputs)])
    return graph


def _example(argument: Any) -> Any:
    """Return the type of a tensor as example for `trace`; other arguments as they are."""
    found = getattr(argument, "type", None)
    return found if isinstance(found, TensorType) else argument


def _pattern_of_graph(name: str, graph: Graph) -> Pattern:
    rows = pattern_rows(graph, graph.inputs)
    shape = sum(v.type.size for v in graph.outputs), sum(v.type.size for v in graph.inputs)
    if rows is None:
        raise too_large(name, shape)
    return _pattern(shape, rows)


def too_large(name: str, shape: tuple[int, int]) -> ShapeError:
    """Return the error for more nonzero elements than can be listed."""
    return ShapeError(
        f"{name}: of a matrix of {shape[0]} x {shape[1]} more than {MOST_PAIRS} elements may be "
        "other than zero",
        hint="it is dense, or nearly so: products with it cost far less than its elements",
    )
