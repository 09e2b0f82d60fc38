"""Independence of the samples of a batch, checked by structure, else on given arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from primgraph.codegen.runtime.feeds import as_feed
from primgraph.derivatives.matrices.operator import JacobianOperator
from primgraph.derivatives.modes import record
from primgraph.derivatives.subgraph import Path
from primgraph.errors import BuildError, FeedError, MixedSamplesError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.types import TensorType
from primgraph.operators.variable import Variable
from primgraph.program.compile import compile
from primgraph.program.program import program_of
from primgraph.transforms.dataflow.batch_independence import Mixing, find_mixing

# Values below this fraction of the largest derivative count as rounding errors.
_ROUNDING = 1e-9


def require_independent_samples(path: Path) -> None:
    """Raise `MixedSamplesError` unless the structure of `path` keeps samples independent."""
    fault = find_mixing(path.graph, path.moved)
    if fault is not None:
        raise _mixed_samples_error(
            fault,
            "each sample of the results is taken to depend on its own sample only; pass "
            "check=False if you know that it does, or leave out is_batched",
        )


def require_independent(operator: JacobianOperator, feed: Mapping[str, Any] | None) -> None:
    """Raise `MixedSamplesError` if samples mix, or may mix and no `feed` is given to test it."""
    fault = find_mixing(operator.path.graph, operator.path.moved)
    if fault is None:
        return
    if feed is None:
        raise _mixed_samples_error(fault, "pass a feed to see whether they do at these arrays")
    _require_zeros(operator, feed, _source_lines(fault))


def _mixed_samples_error(fault: Mixing, hint: str) -> MixedSamplesError:
    name = fault.equation.op.name
    message = f"samples may mix in {name}, which {fault.why}"
    return MixedSamplesError(message, origin=_source_lines(fault), hint=hint)


def _source_lines(fault: Mixing) -> list[str]:
    """Return the source line of the equation at which samples mix."""
    source = fault.equation.source
    return [] if source is None else [f"written here:  {source}   {source.text}"]


def _require_zeros(operator: JacobianOperator, feed: Mapping[str, Any], place: list[str]) -> None:
    """Raise if one sample's outputs vary along random directions in another sample."""
    batch, extent = operator.inputs.lead()[0], operator.shape[1]
    graph = _build_tangent_graph(operator, batch, extent)
    tangents = np.zeros((batch, batch, extent))
    own = np.arange(batch)
    tangents[own, own] = np.random.default_rng(0).standard_normal((batch, extent))
    arrays = _input_arrays(operator.builder, graph.inputs[:-1], feed)
    (found,) = compile(graph)(*arrays, tangents.astype(operator.dtype))
    largest = np.max(np.abs(found), axis=2, initial=0.0)
    limit = _ROUNDING * np.max(largest, initial=0.0)
    mixed = np.argwhere(~(largest <= limit) & ~np.eye(batch, dtype=bool))
    if len(mixed):
        source, target = mixed[0].tolist()
        raise MixedSamplesError(
            f"samples mix: sample {target} of the outputs changes with sample {source} of the "
            f"inputs, by up to {largest[source, target]:.3g} along a random direction",
            origin=place,
        )


def _build_tangent_graph(operator: JacobianOperator, batch: int, extent: int) -> Graph:
    """Return the graph from inputs and tangents of `batch` directions to tangents of the
    outputs."""
    builder = operator.builder
    with builder.scratch():
        type = TensorType((batch, batch, extent), operator.dtype)
        tangents = builder.argument(Value(type))
        found = record(operator.path, operator.forward, [tangents], count=batch)
        body, found = builder.computing(found)
        used = {v for e in body for v in e.inputs}
        return Graph([*(v for v in builder.inputs if v in used), tangents], body, found)


def _input_arrays(
    builder: Builder, inputs: Sequence[Value], feed: Mapping[str, Any]
) -> list[np.ndarray[Any, Any]]:
    """Return an array for each input: from `feed`, or the parameter's value in the program."""
    known = dict(feed)
    try:
        states = program_of(Variable(builder, inputs[0])).state_dict() if inputs else {}
    except BuildError:
        states = {}
    known = {**states, **known}
    missing = [repr(v.hint) for v in inputs if v.hint not in known]
    if missing:
        raise FeedError(f"feed: missing {', '.join(missing)}")
    return [as_feed(known[v.hint], v.type, v.hint) for v in inputs]
