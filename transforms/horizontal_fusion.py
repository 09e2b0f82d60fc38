"""Horizontal fusion: apply a function once to adjacent slices or joined arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.index_maps import Index, IndexMap, axes_at
from primgraph.ir.params import bits, freeze_all
from primgraph.ir.primitive import Primitive
from primgraph.ir.slices import backward_slice
from primgraph.primitives.shapes import JOINED, slice_


def functions_of_slices(graph: Graph, most: int) -> Graph:
    """Fuse an elementwise function of adjacent slices of one array into one call.

    Arrays of more than `most` elements are left alone.
    """
    cuts = {e.output: e for e in graph.body if e.op.is_view and not e.op.multiple}
    groups: dict[object, list[tuple[int, int, Equation]]] = {}
    for eqn in graph.body:
        cut = cuts.get(eqn.inputs[0]) if len(eqn.inputs) == 1 else None
        if cut is None or not (isinstance(eqn.op, Primitive) and eqn.op.elementwise):
            continue
        found = _axis_and_start(cut)
        if found is not None and cut.inputs[0].type.size <= most:
            axis, start = found
            key = (eqn.op, bits(eqn.params), cut.inputs[0], axis)
            groups.setdefault(key, []).append((start, cut.output.shape[axis], eqn))
    made: dict[Equation, list[Equation]] = {}
    for parts in groups.values():
        parts.sort(key=lambda part: part[0])
        starts = [start for start, _, _ in parts]
        ends = [start + size for start, size, _ in parts]
        if len(parts) > 1 and starts[1:] == ends[:-1]:
            first = next(e for e in graph.body if any(e is part for _, _, part in parts))
            made.update({part: [] for _, _, part in parts})
            made[first] = _fuse_slices(parts, starts[0], ends[-1], cuts)
    if not made:
        return graph
    body = [e for eqn in graph.body for e in made.get(eqn, [eqn])]
    return Graph(graph.inputs, body, graph.outputs, graph.name)


def functions_of_joined(graph: Graph, known: Collection[Value], most: int) -> Graph:
    """Fuse functions of arrays that only a `concat` reads into one function of the joined array.

    This is done if fewer equations remain that depend on more than `known`, and if the joined array
    has at most `most` elements.
    """
    if not any(e.op.fact(JOINED) for e in graph.body):
        return graph
    made = {e.output: e for e in graph.body if not e.op.multiple}
    reads = Counter([v for e in graph.body for v in e.inputs])
    reads.update(graph.outputs)
    there = set(known)
    body: list[Equation] = []
    for eqn in reversed(graph.body):
        waiting = [eqn]
        while waiting:
            last = waiting.pop()
            found = _fuse_join(last, made, reads, there, most)
            body.append(last if found is None else found[0])
            waiting += () if found is None else found[1]
    if len(body) == len(graph.body):
        return graph
    body.reverse()
    return Graph(graph.inputs, backward_slice(body, graph.outputs), graph.outputs, graph.name)


def _fuse_join(
    eqn: Equation,
    made: dict[Value, Equation],
    reads: Counter[Value],
    known: set[Value],
    most: int,
) -> tuple[Equation, list[Equation]] | None:
    """Return the function of joined operands that replaces `eqn`, and their joins; or None."""
    if eqn.held(JOINED) is None or eqn.output.type.size > most:
        return None
    parts = [made[v] for v in eqn.inputs if v in made and reads[v] == 1]
    if len(parts) < len(eqn.inputs) or known.issuperset(eqn.inputs):
        return None
    op = parts[0].op
    if not (isinstance(op, Primitive) and op.elementwise and parts[0].inputs):
        return None
    if not all(map(parts[0].applies_as, parts)):
        return None
    columns = list(zip(*[e.inputs for e in parts], strict=True))
    alike = all(v.dtype == column[0].dtype for column in columns for v in column)
    if not alike or sum([not known.issuperset(c) for c in set(columns)]) >= len(parts):
        return None
    joined: dict[tuple[Value, ...], Equation] = {}
    for column in columns:
        if column not in joined:
            whole = Value(column[0].type.with_shape(eqn.output.shape))
            joined[column] = Equation(eqn.op, column, eqn.params, (whole,), eqn.source)
            if known.issuperset(column):
                known.add(whole)
    inputs = tuple([joined[column].output for column in columns])
    function = Equation(op, inputs, parts[0].params, eqn.outputs, parts[0].source)
    return function, list(joined.values())


def _axis_and_start(cut: Equation) -> tuple[int, int] | None:
    """Return the only axis along which a view takes a contiguous part, and where it begins."""
    x, shown = cut.inputs[0].shape, cut.dependence(0, 0)
    if not isinstance(shown, IndexMap) or shown.result != axes_at(range(len(x))):
        return None
    places = [p for p in shown.operand if isinstance(p, Index)]
    found = [i for i, n in enumerate(x) if cut.output.shape[i] != n]
    in_order = [p.variable for p in places] == [*range(len(x))]
    return (found[0], places[found[0]].start) if len(found) == 1 and in_order else None


def _fuse_slices(
    parts: Sequence[tuple[int, int, Equation]], start: int, end: int, cuts: dict[Value, Equation]
) -> list[Equation]:
    """Return the fused function of all slices, and the slices of its result."""
    eqn = parts[0][2]
    cut = cuts[eqn.inputs[0]]
    (x,), place = cut.inputs, _axis_and_start(cut)
    assert place is not None
    axis = place[0]
    shape = (*x.shape[:axis], end - start, *x.shape[axis + 1 :])
    made, whole = [], x
    if shape != x.shape:
        whole = Value(x.type.with_shape(shape))
        made.append(_slice_of(x, axis, start, whole, cut))
    result = Value(eqn.output.type.with_shape(shape))
    made.append(Equation(eqn.op, (whole,), eqn.params, (result,), eqn.source))
    made += [_slice_of(result, axis, at - start, part.output, part) for at, _, part in parts]
    return made


def _slice_of(x: Value, axis: int, start: int, part: Value, near: Equation) -> Equation:
    starts = tuple([start if i == axis else 0 for i in range(len(x.shape))])
    params = [("starts", starts), ("sizes", part.shape), ("steps", (1,) * len(starts))]
    return Equation(slice_, (x,), freeze_all(params), (part,), near.source)
