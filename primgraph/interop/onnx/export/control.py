"""ONNX's words for branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph.base.providers import late
from primgraph.interop.onnx.export.structure import (
    SymbolicSizeError,
    back,
    counted,
    filled,
    flipped,
    front,
)
from primgraph.interop.onnx.export.words import cast, composes, number, write_equation
from primgraph.interop.onnx.export.writer import Writer, tensor_info, type_in_parts
from primgraph.ir.dims import TRIPS
from primgraph.ir.graph import Equation, Graph
from primgraph.ir.types import BOOL, TensorType

if TYPE_CHECKING:
    import onnx
else:
    onnx = late("onnx")

_INDEX = TensorType((), np.dtype(np.int64))
_TRUTH = TensorType((), BOOL)


def write_body(w: Writer, graph: Graph) -> None:
    """Write the equations of a graph whose inputs have names."""
    for eqn in graph.body:
        write_equation(w, eqn)


def _inline(w: Writer, graph: Graph, names: Sequence[str]) -> list[str]:
    """Write a graph on named operands; return the names of its outputs."""
    w.names.update(zip(graph.inputs, names, strict=True))
    write_body(w, graph)
    return [w.names[v] for v in graph.outputs]


def _subgraph(
    w: Writer, inputs: Sequence[tuple[str, Any]], outputs: Sequence[str], types: Sequence[Any]
) -> Any:
    """Return the subgraph of the nodes of `w`; outputs get names of their own."""
    ends = [w.emit("Identity", name) for name in outputs]
    infos = [tensor_info(name, type_) for name, type_ in zip(ends, types, strict=True)]
    declared = [tensor_info(name, type_) for name, type_ in inputs]
    return onnx.helper.make_graph(w.nodes, w.fresh("body"), declared, infos)


@composes("cond", complex=True)
def _cond(w: Writer, eqn: Equation, index: str, *operands: str) -> list[str]:
    branches = eqn.kwargs["branches"]
    if eqn.inputs[0].dtype == BOOL:
        return _choose(w, index, branches[1], branches[0], operands)
    return _switch(w, cast(w, index, np.int64), branches, operands)


def _switch(w: Writer, index: str, branches: Sequence[Graph], operands: Sequence[str]) -> list[str]:
    """Choose the first branch for indices up to 0, and otherwise among the rest."""
    if len(branches) == 1:
        return _inline(w, branches[0], operands)
    is_first = w.emit("LessOrEqual", index, number(w, 0, np.int64))
    first, other = Writer(w), Writer(w)
    types = [v.type for v in branches[0].outputs]
    yes = _subgraph(first, (), _inline(first, branches[0], operands), types)
    rest = other.emit("Sub", index, number(w, 1, np.int64))
    no = _subgraph(other, (), _switch(other, rest, branches[1:], operands), types)
    return w.emit_several("If", [is_first], len(types), then_branch=yes, else_branch=no)


def _choose(w: Writer, condition: str, yes: Graph, no: Graph, operands: Sequence[str]) -> list[str]:
    types = [v.type for v in yes.outputs]
    parts = []
    for graph in (yes, no):
        inner = Writer(w)
        parts.append(_subgraph(inner, (), _inline(inner, graph, operands), types))
    then, other = parts
    return w.emit_several("If", [condition], len(types), then_branch=then, else_branch=other)


@composes("scan", complex=True)
def _scan(w: Writer, eqn: Equation, *operands: str) -> list[str]:
    """Write a scan; one without rows, or with a computed number of steps, counts them."""
    kwargs = eqn.kwargs
    body, consts, carries = kwargs["body"], kwargs["consts"], kwargs["carries"]
    if kwargs["length"] is TRIPS:
        raise SymbolicSizeError("scan of an unknown number of steps")
    if kwargs["length"] == 0:
        lead = int(kwargs["counted"]) + consts
        stacks = [filled(w, 0, v.shape, v.dtype) for v in eqn.outputs[carries:]]
        return [*operands[lead : lead + carries], *stacks]
    limit, given = (operands[0], operands[1:]) if kwargs["counted"] else ("", operands)
    inner = Writer(w)
    own = [(inner.fresh("x"), v.type) for v in body.inputs[consts:]]
    rows = list(given[consts + carries :])
    names = [*given[:consts], *(name for name, _ in own)]
    if not rows or limit:
        rows.append(counted(w, kwargs["length"]))
        own.append((inner.fresh("k"), _INDEX))
    found = _inline(inner, body, names)
    types = [v.type for v in body.outputs]
    if limit:
        inside = inner.emit("Less", own[-1][0], limit)
        old = [name for name, _ in own[:carries]]
        old += [filled(inner, 0, t.shape, t.dtype) for t in types[carries:]]
        found = [inner.emit("Where", inside, x, y) for x, y in zip(found, old, strict=True)]
    graph = _subgraph(inner, own, found, types)
    if kwargs["reverse"]:
        rows = [flipped(w, name, [0]) for name in rows]
    results = w.emit_several(
        "Scan",
        [*given[consts : consts + carries], *rows],
        len(body.outputs),
        body=graph,
        num_scan_inputs=len(rows),
    )
    if kwargs["reverse"]:
        results[carries:] = [flipped(w, name, [0]) for name in results[carries:]]
    return results


@composes("checkpoint", complex=True)
def _checkpoint(w: Writer, eqn: Equation, *operands: str) -> list[str]:
    return _inline(w, eqn.kwargs["body"], operands)


_RUNNING = {"cumprod": "Mul", "cummax": "Max", "cummin": "Min"}


@composes(*_RUNNING)
def _running(w: Writer, eqn: Equation, x: str) -> str:
    """Write a scan over the rows along an axis."""
    axis, given = eqn.kwargs["axis"], eqn.inputs[0].type
    if given.shape[axis] == 0:
        return x
    row = given.with_shape((*given.shape[:axis], *given.shape[axis + 1 :]))
    inner = Writer(w)
    names = [inner.fresh("x"), inner.fresh("x")]
    found = inner.emit(_RUNNING[eqn.op.name], *names)
    graph = _subgraph(inner, [(name, row) for name in names], [found, found], [row, row])
    first = filled(w, _neutral(eqn.op.name, given.dtype), row.shape, given.dtype)
    rows = front(w, x, given.ndim, axis, 1)
    stacked = w.emit_several("Scan", [first, rows], 2, body=graph, num_scan_inputs=1)[1]
    return back(w, stacked, given.ndim, axis, 1)


def _neutral(name: str, dtype: np.dtype[Any]) -> Any:
    """Return the number that a running product or extremum starts from."""
    if name == "cumprod":
        return 1
    if dtype.kind == "f":
        return -np.inf if name == "cummax" else np.inf
    return np.iinfo(dtype).min if name == "cummax" else np.iinfo(dtype).max


@composes("while_loop", complex=True)
def _while_loop(w: Writer, eqn: Equation, *operands: str) -> list[str]:
    """Write a loop whose body also computes whether it goes on, and counts the steps."""
    test, body, consts = (eqn.kwargs[name] for name in ("test", "body", "consts"))
    limit, fixed = eqn.kwargs["limit"], operands[:consts]
    inner = Writer(w)
    state = [(inner.fresh("x"), v.type) for v in body.inputs[consts:]]
    count = inner.fresh("count")
    given = [(inner.fresh("k"), _INDEX), (inner.fresh("going"), _TRUTH), *state, (count, _INDEX)]
    found = _inline(inner, body, [*fixed, *(name for name, _ in state)])
    carried, rows = found[: len(state)], found[len(state) :]
    (going,) = _inline(inner, test, [*fixed, *carried])
    new = inner.emit("Add", count, number(w, 1, np.int64))
    types = [_TRUTH, *(t for _, t in state), _INDEX, *(v.type for v in body.outputs[len(state) :])]
    graph = _subgraph(inner, given, [going, *carried, new, *rows], types)
    (first,) = _inline(w, test, operands)
    most = "" if limit is None else number(w, limit, np.int64)
    start = [*operands[consts:], number(w, 0, np.int64)]
    results = w.emit_several("Loop", [most, first, *start], len(types) - 1, body=graph)
    if limit is None:
        return results
    kept = len(state) + 1
    padded = [
        _pad_rows(w, name, results[kept - 1], limit, type_in_parts(v.type).ndim)
        for name, v in zip(results[kept:], body.outputs[len(state) :], strict=True)
    ]
    return [*results[:kept], *padded]


def _pad_rows(w: Writer, rows: str, count: str, limit: int, rank: int) -> str:
    """Add rows of zeros for the steps that a loop has not made."""
    missing = w.emit("Sub", w.constant([limit], np.int64), count)
    zeros = w.constant([0] * (rank + 1), np.int64)
    pads = w.emit(
        "Concat", zeros, missing, *([w.constant([0] * rank, np.int64)] if rank else []), axis=0
    )
    return w.emit("Pad", rows, pads)
