"""Branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import primgraph.numpy as pnp
from primgraph.control.branches import cond
from primgraph.control.loops import scan, while_loop
from primgraph.interop.onnx.node import Node, Optional, Value
from primgraph.interop.onnx.table import means
from primgraph.operators.variable import Variable

# Steps of a loop up to which it is unrolled if its number of steps is known.
_UNROLLED = 8


@means("If")
def _if(node: Node, condition: Value) -> Any:
    """Compute one of two subgraphs; both are recorded if the condition is unknown."""
    yes, no = node.get("then_branch"), node.get("else_branch")
    if isinstance(condition, np.ndarray):
        return tuple(node.run(yes if condition.all() else no))
    found = cond(
        pnp.reshape(condition, ()),
        lambda: tuple(map(_lifted, node.run(yes))),
        lambda: tuple(map(_lifted, node.run(no))),
    )
    return tuple(found)


def _lifted(value: Value) -> Any:
    return value if isinstance(value, Variable) else pnp.asarray(value)


@means("Loop")
def _loop(node: Node, count: Optional, condition: Optional, *state: Value) -> Any:
    """Repeat the body while its condition holds, at most `count` times; stack scan outputs."""
    limit = None if count is None else int(node.known((count,), 0, "trip count").reshape(()))
    body = node.get("body")
    kept = len(state)
    if len(body.output) - 1 > kept and condition is not None:
        node.known((count, condition), 1, "condition")
    if _runs_through(body) and (condition is None or _is_true(condition)) and limit is not None:
        if limit > _UNROLLED:
            return _counted(node, body, limit, state)
    elif isinstance(condition, Variable):
        return _while(node, body, limit, condition, state)
    goes, rows, step = condition is None or _is_true(condition), [], 0
    current: list[Any] = list(state)
    while goes and (limit is None or step < limit):
        going, *found = node.run(body, np.int64(step), np.asarray(True), *current)
        if not isinstance(going, np.ndarray):
            return _while(node, body, limit, condition, state)
        current, goes = found[:kept], bool(going.all())
        rows.append(found[kept:])
        step += 1
    return (*current, *_stacked(body, rows, len(body.output) - 1 - kept))


def _stacked(body: Any, rows: Sequence[Sequence[Value]], count: int) -> list[Any]:
    return (
        [pnp.stack([row[k] for row in rows]) for k in range(count)]
        if rows
        else [np.zeros((0,)) for _ in range(count)]
    )


def _is_true(condition: Value) -> bool:
    return isinstance(condition, np.ndarray) and bool(condition.all())


def _runs_through(body: Any) -> bool:
    """Return whether the condition that a body returns is the one that it takes."""
    names = {body.input[1].name}
    for node in body.node:
        if node.op_type == "Identity" and node.input[0] in names:
            names.add(node.output[0])
    return body.output[0].name in names


def _counted(node: Node, body: Any, limit: int, state: Sequence[Value]) -> Any:
    """Run a loop with a known number of steps as a scan over the step numbers."""

    def step(carry: Any, k: Any) -> Any:
        _, *found = node.run(body, k, np.asarray(True), *carry)
        lifted = [_lifted(x) for x in found]
        return tuple(lifted[: len(state)]), tuple(lifted[len(state) :])

    last, rows = scan(step, tuple(map(_lifted, state)), pnp.asarray(np.arange(limit)))
    return (*last, *rows)


def _while(
    node: Node, body: Any, limit: int | None, condition: Optional, state: Sequence[Value]
) -> Any:
    """Run a loop whose condition is computed; its number of steps is unknown."""
    if len(body.output) - 1 > len(state):
        raise node.unsupported("a stack of results of an unknown number of steps")
    first = np.asarray(True) if condition is None else condition

    def step(carry: Any) -> Any:
        k, going, *current = carry
        goes, *found = node.run(body, k, going, *current)
        return (k + 1, pnp.reshape(_lifted(goes), ()), *map(_lifted, found))

    def goes_on(carry: Any) -> Any:
        return carry[1] if limit is None else pnp.logical_and(carry[1], carry[0] < limit)

    start = (np.int64(0), pnp.reshape(_lifted(first), ()), *map(_lifted, state))
    return tuple(while_loop(goes_on, step, start, max_trips=limit)[2:])


@means("Scan")
def _scan_with_batch(node: Node, lengths: Optional, *inputs: Value) -> Any:
    """Scan each sample of a batch, as before version 9."""
    if lengths is not None:
        raise node.unsupported("a scan over sequences of several lengths")
    samples = [_scan_rows(node, [x[k] for x in inputs]) for k in range(inputs[0].shape[0])]
    return tuple(pnp.stack(list(parts)) for parts in zip(*samples, strict=True))


@means("Scan", since=9)
def _scan(node: Node, *inputs: Value) -> Any:
    return _scan_rows(node, inputs)


def _scan_rows(node: Node, inputs: Sequence[Value]) -> tuple[Any, ...]:
    """Apply the body to each row of the scanned inputs, which may run backwards."""
    body, count = node.get("body"), node.get("num_scan_inputs")
    kept = len(inputs) - count
    outputs = len(body.output) - kept
    into = node.get("scan_input_directions", node.get("directions", [0] * count))
    out = node.get("scan_output_directions", [0] * outputs)
    in_axes = node.get("scan_input_axes", [0] * count)
    out_axes = node.get("scan_output_axes", [0] * outputs)
    scanned = [pnp.moveaxis(x, axis, 0) for x, axis in zip(inputs[kept:], in_axes, strict=True)]
    scanned = [pnp.flip(x, 0) if back else x for x, back in zip(scanned, into, strict=True)]

    def step(carry: Any, row: Any) -> Any:
        found = [_lifted(x) for x in node.run(body, *carry, *row)]
        return tuple(found[:kept]), tuple(found[kept:])

    last, rows = scan(step, tuple(map(_lifted, inputs[:kept])), tuple(map(_lifted, scanned)))
    turned = [pnp.flip(x, 0) if back else x for x, back in zip(rows, out, strict=True)]
    moved = [pnp.moveaxis(x, 0, axis) for x, axis in zip(turned, out_axes, strict=True)]
    return (*last, *moved)
