"""Following dependencies through graphs, and the steps that rules for it are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.sparsity import affine
from primgraph.sparsity.affine import MOST, Maps, Shape
from primgraph.sparsity.rows import Rows, kept, listed, sent, size_of, taken, united
from primgraph.transforms.dataflow.known_values import Given, Known

# What elements of a value depend on; None for nothing.
Reach: TypeAlias = "Maps | Rows"
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Indices = np.ndarray[Any, np.dtype[np.int64]]


@final
@dataclass(slots=True)
class Site:
    """An equation, what is known while it is built, and what follows dependencies through it."""

    walk: Walk
    eqn: Equation
    known: Known

    @property
    def params(self) -> dict[str, Any]:
        return self.eqn.kwargs

    def shape(self, position: int) -> Shape:
        return self.eqn.inputs[position].shape

    def array(self, position: int) -> Any:
        return self.known.array(self.eqn.inputs[position])


Rule: TypeAlias = Callable[[Site, int, int, "Reach"], "Reach | None"]
Through: TypeAlias = Callable[[Site, "list[Reach | None]"], "list[Reach | None]"]


@final
class Rules(NamedTuple):
    """What says how results depend on operands: of one primitive, of all others, of loops."""

    by_op: Mapping[Op, Rule]
    otherwise: Rule
    bodies: Mapping[Op, Through]


@final
class Walk:
    """Follows dependencies on `width` elements through graphs."""

    def __init__(self, width: int, most: int, rules: Rules) -> None:
        self.width = width
        self.rules = rules
        self.most = most
        # How much may be listed before the rest is given up.
        self.left = 16 * most

    def through(
        self, graph: Graph, starts: dict[Value, Reach], given: Given | None = None
    ) -> dict[Value, Reach]:
        """What the values of `graph` depend on, for those of them that depend on some themselves.

        One inside the graph depends on what it starts with, and on what reaches it from others.
        """
        found = {v: r for v, r in starts.items() if not _is_empty(r)}
        known = Known(graph, given)
        for eqn in graph.body:
            if found.keys().isdisjoint(eqn.inputs) or not _has_slopes(eqn):
                continue
            site = Site(self, eqn, known)
            for value, reach in zip(eqn.outputs, self._behind(site, found), strict=True):
                if reach is None or not value.type.is_inexact or _is_empty(reach):
                    continue
                start = found.get(value)
                both = reach if start is None else self.union([start, reach], value.shape)
                assert both is not None
                found[value] = both
        return found

    def _behind(self, site: Site, found: dict[Value, Reach]) -> list[Reach | None]:
        eqn = site.eqn
        operands = [found.get(v) for v in eqn.inputs]
        if eqn.op.own_slope:
            operands[0] = None
        elif eqn.op.formal:
            operands[1:] = [None] * (len(operands) - 1)
        if any(_is_unknown(v.shape) for v in (*eqn.inputs, *eqn.outputs)):
            return self._at_once(site, operands)
        inside = self.rules.bodies.get(eqn.op)
        if inside is not None:
            return inside(site, operands)
        rule = self.rules.by_op.get(eqn.op) or self.rules.otherwise
        results: list[Reach | None] = []
        for k, value in enumerate(eqn.outputs):
            parts = [rule(site, k, i, r) for i, r in enumerate(operands) if r is not None]
            results.append(self.union([p for p in parts if p is not None], value.shape))
        return results

    def _at_once(self, site: Site, operands: Sequence[Reach | None]) -> list[Reach | None]:
        """All elements of all results with what any of the operands depends on.

        Of values of unknown extent it is kept what their elements depend on together.
        """
        total = self.union(
            [
                self.whole(r, v.shape)
                for v, r in zip(site.eqn.inputs, operands, strict=True)
                if r is not None
            ],
            (),
        )
        if total is None:
            return [None for _ in site.eqn.outputs]
        shapes = [() if _is_unknown(v.shape) else v.shape for v in site.eqn.outputs]
        return [self.repeated(total, (), s, tuple(range(len(s)))) for s in shapes]

    def whole(self, reach: Reach, shape: Shape) -> Reach:
        """What all elements depend on together."""
        if _is_unknown(shape):
            return reach
        return self.tied(reach, shape, (), (None,) * len(shape)) or []

    def everything(self, shape: Shape) -> Maps:
        return affine.everything(shape, self.width)

    def union(self, parts: Sequence[Reach], shape: Shape) -> Reach | None:
        if len(parts) < 2:
            return parts[0] if parts else None
        if not any(isinstance(p, Rows) for p in parts):
            maps = affine.joined([m for p in parts if not isinstance(p, Rows) for m in p])
            if len(maps) <= MOST:
                return maps
            return self.rows(maps, shape) or self.everything(shape)
        rows = []
        for part in parts:
            one = self.rows(part, shape)
            if one is None:
                return self.everything(shape)
            rows.append(one)
        if not self.pays(sum(len(r.columns) for r in rows)):
            return self.everything(shape)
        return united(rows, self.width)

    def rows(self, reach: Reach, shape: Shape) -> Rows | None:
        """`reach` one by one; None where that is too much."""
        if isinstance(reach, Rows):
            return reach
        count = size_of(reach)
        if count > self.most or not self.pays(count + prod(shape)):
            return None
        return listed(reach, shape, self.width)

    def pays(self, work: int) -> bool:
        """Whether so much more may be listed."""
        if work > self.left:
            return False
        self.left -= work
        return True

    # Steps that rules are made of.

    def tied(
        self, reach: Reach, shape: Shape, result: Shape, axes: Sequence[int | None]
    ) -> Reach | None:
        """Elements of `result` with those of `shape` at the same place along tied axes.

        `axes` has the axis of the result for each of the operand, None where all along it meet.
        """
        gone = [i for i, a in enumerate(axes) if a is None]
        order = [a for a in axes if a is not None]
        between = tuple([n for i, n in enumerate(shape) if axes[i] is not None])
        if isinstance(reach, Rows):
            if gone:
                small = tuple([1 if axes[i] is None else n for i, n in enumerate(shape)])
                targets = np.broadcast_to(numbered(small), shape).reshape(-1)
                if not self.pays(2 * len(reach.columns) + prod(shape)):
                    return self.everything(result)
                reach = sent(reach, targets, prod(between), self.width)
        else:
            reach = affine.summed(reach, gone)
        if order != sorted(order):
            places = sorted(range(len(order)), key=order.__getitem__)
            reach = self.permuted(reach, between, places)
            between = tuple([between[i] for i in places])
        new = tuple([i for i in range(len(result)) if i not in order])
        return self.repeated(reach, between, result, new)

    def permuted(self, reach: Reach, shape: Shape, order: Sequence[int]) -> Reach:
        if isinstance(reach, Rows):
            return self.taken(reach, np.transpose(numbered(shape), order))
        return affine.moved(reach, order)

    def repeated(self, reach: Reach, shape: Shape, result: Shape, new: Shape) -> Reach:
        if not new:
            return reach
        if isinstance(reach, Rows):
            return self.taken(reach, np.broadcast_to(np.expand_dims(numbered(shape), new), result))
        return affine.joined(affine.repeated(reach, result, new))

    def taken(self, rows: Rows, places: Indices) -> Reach:
        """The rows at `places`, an array of the shape of the result; none below zero."""
        flat = places.reshape(-1)
        counts = np.append(np.diff(rows.starts), 0)
        total = int(counts[flat].sum()) + flat.size
        if total > self.most or not self.pays(total):
            return self.everything(places.shape)
        return taken(rows, flat)

    def masked(self, reach: Reach, mask: Mask) -> Reach | None:
        """`reach` where `mask` is true."""
        if bool(mask.all()):
            return reach
        if not bool(mask.any()):
            return None
        if isinstance(reach, Rows):
            return kept(reach, mask)
        low, high = [], []
        for axis in range(mask.ndim):
            along = np.flatnonzero(mask.any(axis=tuple(i for i in range(mask.ndim) if i != axis)))
            low.append(int(along[0]))
            high.append(int(along[-1]) + 1)
        box = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        if bool(mask[box].all()):
            return affine.within(reach, tuple(low), tuple(high))
        rows = self.rows(reach, mask.shape)
        return self.everything(mask.shape) if rows is None else kept(rows, mask)

    def composed(
        self, reach: Reach, shape: Shape, pairs: tuple[Indices, Indices], result: Shape
    ) -> Reach:
        """Elements of `result` with what elements of `shape` have, by pairs of both."""
        rows = self.rows(reach, shape)
        if rows is None:
            return self.everything(result)
        targets, sources = pairs
        several = self.taken(rows, sources)
        if not isinstance(several, Rows) or not self.pays(2 * len(several.columns)):
            return self.everything(result)
        return sent(several, targets, prod(result), self.width)


def _is_empty(reach: Reach) -> bool:
    return len(reach.columns if isinstance(reach, Rows) else reach) == 0


def _is_unknown(shape: Shape) -> bool:
    return any(type(n) is not int for n in shape)


def _has_slopes(eqn: Equation) -> bool:
    op = eqn.op
    return not (op.stops or (isinstance(op, Primitive) and (op.constant or op.random)))


def numbered(shape: Shape) -> Indices:
    """The elements of an array of that shape, in row-major order."""
    return np.arange(prod(shape), dtype=np.int64).reshape(shape)
