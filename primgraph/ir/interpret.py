"""Reference interpreter: slow, simple, and independent of the code generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.errors import FeedError, InternalError
from primgraph.ir.dims import is_open
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.graph import Graph, Value
from primgraph.ir.sizes import fit_to_arrays
from primgraph.ir.types import Shape


@check_arguments
def interpret(graph: Graph, *arrays: Any) -> list[np.ndarray[Any, Any]]:
    """Evaluate `graph` equation by equation with the plain NumPy implementation of each op.

    `arrays` are in the order of the inputs and must have their shapes; the results have the types
    that the graph declares. Raises `FeedError` for a wrong number or shape of arrays, and for sizes
    that contradict each other or the assumptions of the graph.

    >>> pg.interpret(pg.trace(lambda x: 2.0 * x, pg.spec(2)), np.array([1.0, 2.0]))
    [array([2., 4.])]
    """
    if len(arrays) != len(graph.inputs):
        raise FeedError(f"{graph.name} takes {len(graph.inputs)} arrays, {len(arrays)} given")
    graph = fit_to_arrays(graph, arrays)
    known: dict[Value, np.ndarray[Any, Any]] = {}
    for value, array in zip(graph.inputs, arrays, strict=True):
        try:
            known[value] = np.array(array, value.dtype, order="C")
        except (TypeError, ValueError) as error:
            raise FeedError(
                f"input {value.hint!r} of {graph.name} is {value.type}: {error}"
            ) from None
        if known[value].shape != value.shape:
            raise FeedError(
                f"input {value.hint!r} of {graph.name} is {value.type}, "
                f"an array of shape {known[value].shape} is given"
            )
    with np.errstate(all="ignore"):
        for eqn in graph.body:
            results = eqn.op.evaluate([known[v] for v in eqn.inputs], dict(eqn.params))
            for value, result in zip(eqn.outputs, results, strict=True):
                type = value.type
                known[value] = found = np.asarray(result, dtype=type.dtype)
                if found.shape != type.shape and not _fits(found.shape, type.shape):
                    raise InternalError(f"{eqn.op.name} gave shape {found.shape}, not {type.shape}")
    return [np.array(known[v]) for v in graph.outputs]


def _fits(found: Shape, wanted: Shape) -> bool:
    """Return whether a shape is as wanted except for the number of rows of a growing stack."""
    return is_open(wanted) and found[1:] == wanted[1:]
