"""Dependencies of elements as the lattice of an analysis, and the operations that rules use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from primgraph.ir.graph import Equation, Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.control import Regions, branch_taken
from primgraph.sparsity import affine, effects
from primgraph.sparsity.affine import MOST, Maps, Shape
from primgraph.sparsity.rows import (
    Rows,
    list_columns,
    mask_rows,
    scatter_rows,
    size_of,
    take_rows,
    unite_rows,
)
from primgraph.transforms.dataflow.engine import Analysis, Facts, Flow
from primgraph.transforms.dataflow.known_values import Known

# Dependencies of the elements of a value; None for none.
Reach: TypeAlias = "Maps | Rows"
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Indices = np.ndarray[Any, np.dtype[np.int64]]


# After this many steps of a loop all carries are assumed to depend on the union of all.
_STEPS = 6


class Patterns(Analysis[Reach]):
    """Dependencies on `width` elements as a lattice, and the operations that rules use.

    `scope` of a graph are its compile-time constants.
    """

    __slots__ = ("left", "most", "width")

    def __init__(self, width: int, most: int) -> None:
        self.width = width
        self.most = most
        # Remaining budget of listed index pairs, before patterns become dense.
        self.left = 16 * most

    def visit(self, eqn: Equation, given: Facts[Reach], flow: Flow[Reach]) -> list[Reach | None]:
        if not _has_slopes(eqn):
            return [None for _ in eqn.outputs]
        if eqn.op.own_slope:
            given[0] = None
        elif eqn.op.formal:
            given[1:] = [None] * (len(given) - 1)
        if any(_is_unknown(v.shape) for v in (*eqn.inputs, *eqn.outputs)):
            found: Sequence[Reach | None] = self._dense_reach(eqn, given)
        else:
            found = super().visit(eqn, given, flow)
        return [
            None if r is None or not v.type.is_inexact or is_empty(r) else r
            for v, r in zip(eqn.outputs, found, strict=True)
        ]

    def scope(self, flow: Flow[Reach], eqn: Equation | None, outer: Flow[Reach] | None) -> Known:
        graph = flow.graph
        if eqn is None or outer is None:
            return Known(graph)
        regions, known = Regions.from_equation(eqn), outer.scope
        fixed = eqn.inputs[regions.lead : regions.lead + regions.consts]
        return Known(
            graph,
            {
                v: (lambda value=value: known.array(value))  # type: ignore[misc]
                for v, value in zip(graph.inputs, fixed, strict=False)
            },
        )

    def regions(self, eqn: Equation, flow: Flow[Reach] | None) -> Regions:
        """Follow one branch only if the index is constant."""
        regions = Regions.from_equation(eqn)
        if flow is None or len(regions.bodies) == 1:
            return regions
        index = flow.scope.array(eqn.inputs[0])
        if index is None:
            return regions
        return replace(regions, bodies=(regions.bodies[branch_taken(index, len(regions.bodies))],))

    def join(self, value: Value, facts: Sequence[Reach | None]) -> Reach | None:
        everything = None if _is_unknown(value.shape) else self.all_columns(value.shape)
        if any(not isinstance(r, Rows) and r == everything for r in facts):
            return everything
        return self.union([r for r in facts if r is not None], value.shape)

    def same(self, one: Reach | None, other: Reach | None) -> bool:
        if isinstance(one, Rows) and isinstance(other, Rows):
            return all(map(np.array_equal, one, other))
        return type(one) is type(other) and one == other

    def row(self, fact: Reach, stack: Value, row: Value) -> Reach | None:
        """All rows are merged, so that each step depends on all of them."""
        return self.map_tied_axes(fact, stack.shape, row.shape, (None, *range(len(row.shape))))

    def stack(self, fact: Reach, row: Value, stack: Value) -> Reach:
        return self.repeat_reach(fact, row.shape, stack.shape, (0,))

    def widen(self, values: Sequence[Value], state: Facts[Reach], step: int) -> Facts[Reach]:
        if step <= _STEPS:
            return state
        if step >= 2 * _STEPS:
            return [self.all_columns(v.shape) for v in values]
        parts = [
            self.whole(r, v.shape) for v, r in zip(values, state, strict=True) if r is not None
        ]
        total = self.union(parts, ())
        if total is None:
            return state
        return [self.repeat_reach(total, (), v.shape, tuple(range(len(v.shape)))) for v in values]

    def _dense_reach(self, eqn: Equation, operands: Sequence[Reach | None]) -> list[Reach | None]:
        """Make all result elements depend on the union of all operands.

        Values of unknown size have one common dependency for all elements.
        """
        parts = [
            self.whole(r, v.shape)
            for v, r in zip(eqn.inputs, operands, strict=True)
            if r is not None
        ]
        total = self.union(parts, ())
        if total is None:
            return [None for _ in eqn.outputs]
        shapes = [() if _is_unknown(v.shape) else v.shape for v in eqn.outputs]
        return [self.repeat_reach(total, (), s, tuple(range(len(s)))) for s in shapes]

    def whole(self, reach: Reach, shape: Shape) -> Reach:
        """Return the union of the dependencies of all elements."""
        if _is_unknown(shape):
            return reach
        return self.map_tied_axes(reach, shape, (), (None,) * len(shape)) or []

    def all_columns(self, shape: Shape) -> Maps:
        return affine.all_columns(shape, self.width)

    def union(self, parts: Sequence[Reach], shape: Shape) -> Reach | None:
        if len(parts) < 2:
            return parts[0] if parts else None
        if not any(isinstance(p, Rows) for p in parts):
            maps = affine.merge_maps([m for p in parts if not isinstance(p, Rows) for m in p])
            if len(maps) <= MOST:
                return maps
            return self.rows(maps, shape) or self.all_columns(shape)
        rows = []
        for part in parts:
            one = self.rows(part, shape)
            if one is None:
                return self.all_columns(shape)
            rows.append(one)
        if not self.pays(sum(len(r.columns) for r in rows)):
            return self.all_columns(shape)
        return unite_rows(rows, self.width)

    def rows(self, reach: Reach, shape: Shape) -> Rows | None:
        """Return `reach` as explicit rows; None if they are too many."""
        if isinstance(reach, Rows):
            return reach
        count = size_of(reach)
        if count > self.most or not self.pays(count + prod(shape)):
            return None
        return list_columns(reach, shape, self.width)

    def pays(self, work: int) -> bool:
        """Take `work` from the budget, and return whether it was left."""
        if work > self.left:
            return False
        self.left -= work
        return True

    # Operations that rules use.

    def map_tied_axes(
        self, reach: Reach, shape: Shape, result: Shape, axes: Sequence[int | None]
    ) -> Reach | None:
        """Map elements of `shape` to elements of `result` with the same index along tied axes.

        `axes` has the result axis of each operand axis; None joins all elements along the axis.
        """
        gone = [i for i, a in enumerate(axes) if a is None]
        order = [a for a in axes if a is not None]
        between = tuple([n for i, n in enumerate(shape) if axes[i] is not None])
        if isinstance(reach, Rows):
            if gone:
                small = tuple([1 if axes[i] is None else n for i, n in enumerate(shape)])
                targets = np.broadcast_to(element_numbers(small), shape).reshape(-1)
                if not self.pays(2 * len(reach.columns) + prod(shape)):
                    return self.all_columns(result)
                reach = scatter_rows(reach, targets, prod(between), self.width)
        else:
            reach = effects.sum_maps(reach, gone)
        if order != sorted(order):
            places = sorted(range(len(order)), key=order.__getitem__)
            reach = self.permute_reach(reach, between, places)
            between = tuple([between[i] for i in places])
        new = tuple([i for i in range(len(result)) if i not in order])
        return self.repeat_reach(reach, between, result, new)

    def permute_reach(self, reach: Reach, shape: Shape, order: Sequence[int]) -> Reach:
        if isinstance(reach, Rows):
            return self.take_reach(reach, np.transpose(element_numbers(shape), order))
        return effects.permute_maps(reach, order)

    def repeat_reach(self, reach: Reach, shape: Shape, result: Shape, new: Shape) -> Reach:
        if not new:
            return reach
        if isinstance(reach, Rows):
            return self.take_reach(
                reach, np.broadcast_to(np.expand_dims(element_numbers(shape), new), result)
            )
        return affine.merge_maps(effects.repeat_maps(reach, result, new))

    def take_reach(self, rows: Rows, places: Indices) -> Reach:
        """Return the rows at `places`, an array of the result's shape; empty if negative."""
        flat = places.reshape(-1)
        counts = np.append(np.diff(rows.starts), 0)
        total = int(counts[flat].sum()) + flat.size
        if total > self.most or not self.pays(total):
            return self.all_columns(places.shape)
        return take_rows(rows, flat)

    def mask_reach(self, reach: Reach, mask: Mask) -> Reach | None:
        """Keep `reach` where `mask` is true."""
        if bool(mask.all()):
            return reach
        if not bool(mask.any()):
            return None
        if isinstance(reach, Rows):
            return mask_rows(reach, mask)
        low, high = [], []
        for axis in range(mask.ndim):
            along = np.flatnonzero(mask.any(axis=tuple(i for i in range(mask.ndim) if i != axis)))
            low.append(int(along[0]))
            high.append(int(along[-1]) + 1)
        box = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        if bool(mask[box].all()):
            return effects.clip_to_box(reach, tuple(low), tuple(high))
        rows = self.rows(reach, mask.shape)
        return self.all_columns(mask.shape) if rows is None else mask_rows(rows, mask)

    def compose_reach(
        self, reach: Reach, shape: Shape, pairs: tuple[Indices, Indices], result: Shape
    ) -> Reach:
        """Map dependencies of `shape` to `result` along (target, source) pairs of elements."""
        rows = self.rows(reach, shape)
        if rows is None:
            return self.all_columns(result)
        targets, sources = pairs
        several = self.take_reach(rows, sources)
        if not isinstance(several, Rows) or not self.pays(2 * len(several.columns)):
            return self.all_columns(result)
        return scatter_rows(several, targets, prod(result), self.width)


def is_empty(reach: Reach) -> bool:
    return len(reach.columns if isinstance(reach, Rows) else reach) == 0


def _is_unknown(shape: Shape) -> bool:
    return any(type(n) is not int for n in shape)


def _has_slopes(eqn: Equation) -> bool:
    op = eqn.op
    return not (op.stops or (isinstance(op, Primitive) and (op.constant or op.random)))


def element_numbers(shape: Shape) -> Indices:
    """Return the numbers of the elements of an array of that shape, in row-major order."""
    return np.arange(prod(shape), dtype=np.int64).reshape(shape)
