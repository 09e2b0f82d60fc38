"""What results of branches and loops depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import Op
from primgraph.primitives.control import checkpoint, cond, scan, while_loop
from primgraph.sparsity.rows import Rows
from primgraph.transforms.dataflow.known_values import Given
from primgraph.transforms.dataflow.sparsity.walk import Reach, Site, Walk


def _given_to(site: Site, body: Graph, operands: Sequence[Value]) -> Given:
    """What of the operands of a body is known."""
    known = site.known
    return {
        v: (lambda value=value: known.array(value))  # type: ignore[misc]
        for v, value in zip(body.inputs, operands, strict=False)
    }


def _into(
    site: Site, body: Graph, operands: Sequence[Reach | None], given: Given | None = None
) -> list[Reach | None]:
    starts = {v: r for v, r in zip(body.inputs, operands, strict=True) if r is not None}
    found = site.walk.through(body, starts, given)
    return [found.get(v) for v in body.outputs]


def _through_checkpoint(site: Site, operands: list[Reach | None]) -> list[Reach | None]:
    (body,) = site.eqn.bodies
    return _into(site, body, operands, _given_to(site, body, site.eqn.inputs))


def _through_cond(site: Site, operands: list[Reach | None]) -> list[Reach | None]:
    """Any branch may be taken, unless it is known which."""
    branches, index = site.eqn.bodies, site.array(0)
    if index is not None:
        branches = (branches[min(max(int(index), 0), len(branches) - 1)],)
    found = [
        _into(site, b, operands[1:], _given_to(site, b, site.eqn.inputs[1:])) for b in branches
    ]
    return _united(site.walk, found, site.eqn.outputs)


def _united(
    walk: Walk, found: Sequence[Sequence[Reach | None]], values: Sequence[Value]
) -> list[Reach | None]:
    return [
        walk.union([r for r in parts if r is not None], v.shape)
        for v, *parts in zip(values, *found, strict=False)
    ]


def _through_scan(site: Site, operands: list[Reach | None]) -> list[Reach | None]:
    """Rows count as one: what any of them depends on, each trip may depend on."""
    params, eqn, walk = site.params, site.eqn, site.walk
    counted, consts, carries = params["counted"], params["consts"], params["carries"]
    given, inputs = operands[counted:], eqn.inputs[counted:]
    end = consts + carries
    rows: list[Reach | None] = []
    for value, reach in zip(inputs[end:], given[end:], strict=True):
        axes = (None, *range(len(value.shape) - 1))
        rows.append(reach and walk.tied(reach, value.shape, value.shape[1:], axes))
    body: Graph = params["body"]
    known = _given_to(site, body, inputs[:consts])
    found = _settled(walk, site, body, given[:consts], given[consts:end], rows, known)
    return [
        *found[:carries],
        *(
            reach and walk.repeated(reach, v.shape[1:], v.shape, (0,))
            for v, reach in zip(eqn.outputs[carries:], found[carries:], strict=True)
        ),
    ]


def _through_while(site: Site, operands: list[Reach | None]) -> list[Reach | None]:
    params, eqn, walk = site.params, site.eqn, site.walk
    consts, body = params["consts"], params["body"]
    carries = len(operands) - consts
    known = _given_to(site, body, eqn.inputs[:consts])
    found = _settled(walk, site, body, operands[:consts], operands[consts:], [], known)
    return [
        *found[:carries],
        None,
        *(
            reach and walk.repeated(reach, v.shape[1:], v.shape, (0,))
            for v, reach in zip(eqn.outputs[carries + 1 :], found[carries:], strict=True)
        ),
    ]


# After so many trips all elements of all carries are taken to depend on the same.
_TRIPS = 6


def _settled(
    walk: Walk,
    site: Site,
    body: Graph,
    fixed: list[Reach | None],
    state: list[Reach | None],
    rows: list[Reach | None],
    known: Given,
) -> list[Reach | None]:
    """What carries and rows depend on after any number of trips."""
    values = body.inputs[len(fixed) : len(fixed) + len(state)]
    shapes = [v.shape for v in values]
    for trip in range(2 * _TRIPS):
        found = _into(site, body, [*fixed, *state, *rows], known)
        after = _united(walk, [state, found[: len(state)]], values)
        if all(map(_is_same, after, state)):
            return [*state, *found[len(state) :]]
        state = after
        if trip >= _TRIPS:
            parts = [walk.whole(r, s) for r, s in zip(state, shapes, strict=True) if r is not None]
            total = walk.union(parts, ())
            assert total is not None
            state = [walk.repeated(total, (), s, tuple(range(len(s)))) for s in shapes]
    state = [walk.everything(s) for s in shapes]
    found = _into(site, body, [*fixed, *state, *rows], known)
    return [*state, *found[len(state) :]]


def _is_same(a: Reach | None, b: Reach | None) -> bool:
    if isinstance(a, Rows) and isinstance(b, Rows):
        return all(map(np.array_equal, a, b))
    return type(a) is type(b) and a == b


BODIES: dict[Op, Callable[[Site, list[Reach | None]], list[Reach | None]]] = {
    checkpoint: _through_checkpoint,
    cond: _through_cond,
    scan: _through_scan,
    while_loop: _through_while,
}
