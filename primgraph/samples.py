"""Whether the samples of a batch stay apart: by structure, else on given arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from primgraph.codegen.feeds import as_feed
from primgraph.compiler import compile
from primgraph.errors import BuildError, FeedError, MixedSamplesError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import TensorType
from primgraph.operators.variable import Variable
from primgraph.paths import Path, record
from primgraph.program import program_of
from primgraph.slopes import Slopes
from primgraph.transforms.linearize import depending

# Where the samples lie in each operand, None for one that does not depend on them.
Axes: TypeAlias = Sequence[int | None]

# What is below this part of the largest derivative is taken for rounding.
_ROUNDING = 1e-9


def require_independent(slopes: Slopes, feed: Mapping[str, Any] | None) -> None:
    """Raise `MixedSamplesError` if samples mix, or may mix and there is no `feed` to tell."""
    fault = mixing_equation(slopes.path)
    if fault is None:
        return
    place = [] if fault.source is None else [f"written here:  {fault.source}   {fault.source.text}"]
    if feed is None:
        raise MixedSamplesError(
            f"samples may mix in {fault.op.name}, which does not keep their axis",
            origin=place,
            hint="pass a feed to see whether they do at these arrays",
        )
    _require_zeros(slopes, feed, place)


def mixing_equation(path: Path) -> Equation | None:
    """The first equation of `path` that does not keep axis 0 of what it starts from apart.

    None if there is no such equation, and the axis of the samples is the first of all outputs.
    """
    axis: dict[Value, int] = dict.fromkeys(path.moved, 0)
    active = depending(path.graph, path.moved)
    made: dict[Value, Equation] = {}
    for eqn in path.graph.body:
        outputs = [v for v in eqn.outputs if v in active]
        if not outputs or active.isdisjoint(eqn.inputs):
            continue
        found = _axis_after(eqn, [axis.get(v) if v in active else None for v in eqn.inputs])
        if found is None:
            return eqn
        for value in outputs:
            axis[value], made[value] = found, eqn
    wrong = (v for v in path.graph.outputs if v in active and axis[v] != 0)
    return next((made[v] for v in wrong), None)


def _axis_after(eqn: Equation, axes: Axes) -> int | None:
    """The axis of the samples in the results of `eqn`; None if it does not keep them apart."""
    rule = _RULES.get(eqn.op.name)
    if rule is not None:
        return rule(eqn, axes)
    return _same(axes) if isinstance(eqn.op, Primitive) and eqn.op.elementwise else None


def _same(axes: Axes) -> int | None:
    """The axis that all operands with samples have them in."""
    different = {a for a in axes if a is not None}
    return different.pop() if len(different) == 1 else None


def _if_kept(kept: Callable[[Equation, int], bool]) -> Callable[[Equation, Axes], int | None]:
    """A rule for what leaves the axis where it is, if `kept`."""

    def rule(eqn: Equation, axes: Axes) -> int | None:
        axis = _same(axes)
        return axis if axis is not None and kept(eqn, axis) else None

    return rule


def _broadcast(eqn: Equation, axes: Axes) -> int | None:
    new = eqn.kwargs["new_axes"]
    return [i for i in range(eqn.output.type.ndim) if i not in new][_only(axes)]


def _permute(eqn: Equation, axes: Axes) -> int | None:
    found: int = eqn.kwargs["axes"].index(_only(axes))
    return found


def _reshape(eqn: Equation, axes: Axes) -> int | None:
    """The axis that has as many elements before it and the same extent."""
    before, after, axis = eqn.inputs[0].shape, eqn.output.shape, _only(axes)
    lead = int(np.prod(before[:axis]))
    for i, extent in enumerate(after):
        if extent == before[axis] and int(np.prod(after[:i])) == lead:
            return i
    return None


def _reduce(eqn: Equation, axes: Axes) -> int | None:
    axis, gone = _only(axes), eqn.kwargs["axes"]
    return None if axis in gone else axis - sum(a < axis for a in gone)


def _matmul(eqn: Equation, axes: Axes) -> int | None:
    """Rows of the left and columns of the right factor stay apart, and what lies before both."""
    left, right = axes
    last = eqn.output.type.ndim - 1
    if left is not None and right is not None:
        return left if left == right < last - 1 else None
    axis = left if right is None else right
    inner = last if right is None else last - 1
    return None if axis == inner else axis


def _gather(eqn: Equation, axes: Axes) -> int | None:
    axis, first, count = _only(axes), eqn.kwargs["axis"], len(eqn.inputs) - 1
    if axis < first:
        return axis
    return None if axis < first + count else axis - count + eqn.inputs[1].type.ndim


def _scatter_add(eqn: Equation, axes: Axes) -> int | None:
    """The axes of the indices in the second operand stand for the indexed ones of the first."""
    whole, part, *_ = axes
    first, count, rank = eqn.kwargs["axis"], len(eqn.inputs) - 2, eqn.inputs[2].type.ndim
    if part is not None and part >= first:
        part = first if part < first + rank else part - rank + count
    axis = _same((whole, part))
    return None if axis is None or first <= axis < first + count else axis


def _only(axes: Axes) -> int:
    return next(a for a in axes if a is not None)


def _covers(eqn: Equation, axis: int) -> bool:
    """Whether what is assigned goes to all samples, each to its own."""
    x, y = eqn.inputs
    return eqn.kwargs["steps"][axis] == 1 and x.shape[axis] == y.shape[axis]


_RULES: dict[str, Callable[[Equation, Axes], int | None]] = {
    "broadcast": _broadcast,
    "concat": _if_kept(lambda e, a: e.kwargs["axis"] != a),
    "cumsum": _if_kept(lambda e, a: e.kwargs["axis"] != a),
    "gather": _gather,
    "matmul": _matmul,
    "pad": _if_kept(lambda e, a: e.kwargs["low"][a] == e.kwargs["high"][a] == 0),
    "permute": _permute,
    "reduce_max": _reduce,
    "reduce_min": _reduce,
    "reduce_prod": _reduce,
    "reduce_sum": _reduce,
    "reshape": _reshape,
    "reverse": _if_kept(lambda e, a: a not in e.kwargs["axes"]),
    "scatter_add": _scatter_add,
    "slice": _if_kept(
        lambda e, a: e.kwargs["steps"][a] == 1 and e.kwargs["sizes"][a] == e.inputs[0].shape[a]
    ),
    "slice_assign": _if_kept(_covers),
    "split": _if_kept(lambda e, a: e.kwargs["axis"] != a),
}


def _require_zeros(slopes: Slopes, feed: Mapping[str, Any], place: list[str]) -> None:
    """Refuse derivatives of one sample by another, along a random direction in each sample."""
    batch, extent = slopes.inputs.lead()[0], slopes.inputs.offsets()[-1]
    graph = _between_samples(slopes, batch, extent)
    tangents = np.zeros((batch, batch, extent))
    own = np.arange(batch)
    tangents[own, own] = np.random.default_rng(0).standard_normal((batch, extent))
    arrays = _fed(slopes.builder, graph.inputs[:-1], feed)
    (found,) = compile(graph)(*arrays, tangents.astype(slopes.dtype))
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


def _between_samples(slopes: Slopes, batch: int, extent: int) -> Graph:
    """From inputs of the program and tangents to those of the outputs, `batch` of each."""
    builder = slopes.builder
    with builder.scratch():
        type = TensorType((batch, batch, extent), slopes.dtype)
        tangents = builder.argument(Value(type))
        given = [*slopes.free, tangents]
        found = record(builder, slopes.forward(), given, count=batch, batched=(len(slopes.free),))
        body = builder.slice(found)
        used = {v for e in body for v in e.inputs}
        return Graph([*(v for v in builder.inputs if v in used), tangents], body, found)


def _fed(
    builder: Builder, inputs: Sequence[Value], feed: Mapping[str, Any]
) -> list[np.ndarray[Any, Any]]:
    """An array for each input: from `feed`, or for a parameter what the program has."""
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
