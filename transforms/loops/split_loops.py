"""Loop fission of scans: compute for all iterations at once, before or after the loop."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import final

from primgraph.ir.graph import Equation, Graph, Value, map_bodies
from primgraph.ir.primitive import Primitive
from primgraph.ir.slices import backward_slice, forward_slice
from primgraph.ir.types import FLOAT64, add_leading_axis
from primgraph.ir.views import Slice
from primgraph.primitives.control import REGIONS, Regions
from primgraph.transforms.batch_graphs import batch_graph
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.dataflow.locality import multiplies_sums, view_of
from primgraph.transforms.horizontal_fusion import functions_of_joined, functions_of_slices
from primgraph.transforms.optimize.loop_parts import Loop

# Loops with fewer iterations are not split. Bodies of at most `_FEWEST` elements run on Python
# floats and are not split either.
_LEAST_TRIPS = 8
_FEWEST = 4
# Rows of at most this size cost less than the call that computes them. Longer rows are computed
# together only if all of them fit into the cache.
_FEW_NUMBERS = 256
_CACHE = 1 << 20
# BLAS rounds products of multiples of this many rows alike; other row counts may round differently.
_ROWS = 4


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def split_loops(
    graph: Graph, math: str = "exact", trips: int = _LEAST_TRIPS, fewest: int = _FEWEST
) -> Graph:
    """Move work out of the bodies of scans.

    Equations that depend on rows alone are computed for all rows before the loop. Equations that no
    carry depends on are computed after it. Carries that no other carry needs get a loop of their
    own, which reads its inputs from stacks. Many calls on small arrays become few calls on large
    ones.

    Only equations whose batched form gives the same bits are moved. Of products with a
    loop-invariant matrix these are products of whole groups of rows; at level "fast" all of them.
    Loops of fewer than `trips` iterations are left alone. So are loops without a value of more than
    `fewest` elements, and graphs with symbolic sizes.
    """
    if not graph.has_bodies or graph.sizes:
        return graph
    body: list[Equation] = []
    moved: dict[Value, Value] = {}
    for eqn in graph.body:
        if not moved.keys().isdisjoint(eqn.inputs):
            inputs = tuple([moved.get(v, v) for v in eqn.inputs])
            eqn = Equation(eqn.op, inputs, eqn.params, eqn.outputs, eqn.source)
        if eqn.op.has_bodies:
            plain = map_bodies(eqn, lambda body: split_loops(body, math, trips, fewest))
            body += _Split(moved, math).equations(plain, trips, fewest)
        else:
            body.append(eqn)
    return Graph(graph.inputs, body, [moved.get(v, v) for v in graph.outputs], graph.name)


@final
class _Split:
    """Replacement of one loop; `moved` maps its results to the new values."""

    def __init__(self, moved: dict[Value, Value], math: str) -> None:
        self.moved = moved
        self.math = math
        self.made: list[Equation] = []
        # Values that vary between iterations.
        self.varying: Collection[Value] = ()

    def equations(self, eqn: Equation, trips: int, fewest: int) -> list[Equation]:
        length = Regions.from_equation(eqn).steps if eqn.op.fact(REGIONS) else None
        if type(length) is not int or length < trips:
            return [eqn]
        loop = Loop.from_equation(eqn)
        sizes = [v.type.size for e in loop.body.body for v in e.outputs]
        if any(type(n) is not int for n in sizes) or max(sizes, default=0) <= fewest:
            return [eqn]
        self.length = length
        _, states, xs = loop.inputs
        self.varying = forward_slice(loop.body.body, [*states, *xs])
        body = functions_of_slices(loop.body, _FEW_NUMBERS)
        loop, looks = self._stack_rows(replace(loop, body=body))
        known, _ = self._carry_independent_part(loop)
        body = functions_of_joined(loop.body, known, _FEW_NUMBERS)
        loop = replace(loop, body=body)
        first, second = self._split_late_loop(self._early(loop))
        self._add(first)
        if second is not None:
            self._add(self._early(second))
        for result, part, stack in looks:
            (self.moved[result],) = self._for_all(part, (), [self.moved.get(stack, stack)])
        return self.made

    def _add(self, loop: Loop) -> None:
        if loop.carried or loop.stacked:
            self.made.append(loop.equation())

    def _stack_rows(self, loop: Loop) -> tuple[Loop, list[tuple[Value, Graph, Value]]]:
        """Stack short rows instead of slices of them.

        Return the loop, and for each such result: its value, a graph that slices a row, and the
        stack of rows.
        """
        count, outputs = len(loop.init), loop.body.outputs
        defined = {v: e for e in loop.body.body for v in e.outputs}
        known = dict(zip(outputs[count:], loop.stacked, strict=True))
        looks, stays = [], []
        for k, value in enumerate(outputs[count:]):
            eqn = defined.get(value)
            if eqn is None or not _is_part_of_few(eqn):
                stays.append(k)
                continue
            (row,) = eqn.inputs
            stack = known.setdefault(row, Value(add_leading_axis(self.length, row.type)))
            looks.append((loop.stacked[k], Graph([row], [eqn], [value], loop.body.name), stack))
        if not looks:
            return loop, []
        kept = {outputs[count + k]: None for k in stays}
        new = [v for v in known if v not in kept and v not in outputs[count:]]
        ends = [*outputs[:count], *[outputs[count + k] for k in stays], *new]
        stacks = [*[loop.stacked[k] for k in stays], *[known[v] for v in new]]
        graph = Graph(loop.body.inputs, loop.body.body, ends, loop.body.name)
        return replace(loop, body=graph, stacked=tuple(stacks)), looks

    # Before the loop.

    def _carry_independent_part(self, loop: Loop) -> tuple[set[Value], list[Equation]]:
        """Return the values that do not depend on carries, and the equations that use rows."""
        consts, _, xs = loop.inputs
        varying = forward_slice(loop.body.body, xs)
        known = {*consts, *xs}
        early: list[Equation] = []
        for eqn in loop.body.body:
            if not known.issuperset(eqn.inputs):
                continue
            if varying.isdisjoint(eqn.inputs):
                known.update(eqn.outputs)
            elif self._may_leave(eqn):
                known.update(eqn.outputs)
                early.append(eqn)
        return known, early

    def _early(self, loop: Loop) -> Loop:
        """Return the loop without equations that depend on rows alone; batch those before it."""
        body = loop.body.body
        consts, states, xs = loop.inputs
        _, early = self._carry_independent_part(loop)
        ends, rest = self._boundary(loop, early)
        if not ends:
            return loop
        part = Graph([*consts, *xs], backward_slice(body, ends), ends, loop.body.name)
        found = dict(zip(ends, self._for_all(part, loop.consts, loop.xs), strict=True))
        carried = len(states)
        stays = []
        for k, (result, value) in enumerate(
            zip(loop.stacked, loop.body.outputs[carried:], strict=True)
        ):
            if value in found:
                self.moved[result] = found[value]
            else:
                stays.append(k)
        read = {v for e in rest for v in e.inputs}.union(loop.body.outputs[:carried])
        # Some views of rows are stacked, and are also computed in the iterations.
        read.difference_update([v for e in rest for v in e.outputs])
        rows = list(zip(loop.xs, xs, strict=True))
        rows += [(found[v], v) for v in ends if v in read]
        fixed = list(zip(loop.consts, consts, strict=True))
        return loop.with_operands(fixed, None, rows, stays, rest)

    def _boundary(
        self, loop: Loop, early: Sequence[Equation]
    ) -> tuple[list[Value], list[Equation]]:
        """Return the `early` results that are used or stacked, and the remaining equations.

        A view that the remaining equations read is recomputed in the loop.
        """
        outputs, carried = loop.body.outputs, len(loop.init)
        gone = set(early)
        stays = [e for e in loop.body.body if e not in gone]
        wanted = {v for e in stays for v in e.inputs}.union(outputs[:carried])
        stacked = set(outputs[carried:])
        kept: set[Equation] = set()
        computed = 0
        for eqn in reversed(early):
            if not wanted.isdisjoint(eqn.outputs) and _is_look(eqn):
                kept.add(eqn)
                wanted.update(eqn.inputs)
            elif not wanted.isdisjoint(eqn.outputs) or not stacked.isdisjoint(eqn.outputs):
                computed += not _is_look(eqn)
        ends = [
            v
            for e in early
            if e not in kept or not stacked.isdisjoint(e.outputs)
            for v in e.outputs
            if v in wanted or v in stacked
        ]
        if not computed:
            return [], []
        return ends, [e for e in loop.body.body if e not in gone or e in kept]

    def _for_all(
        self, part: Graph, consts: Sequence[Value], stacks: Sequence[Value]
    ) -> list[Value]:
        """Batch `part`, which takes constants and rows, over all rows."""
        axes = [*[None] * len(consts), *[0] * len(stacks)]
        graph = batch_graph(part, self.length, axes, [True] * len(part.outputs))
        known = dict(zip(graph.inputs, (*consts, *stacks), strict=True))
        # Bodies of two loops may share an equation.
        shared = {v for e in part.body for v in e.outputs}
        for eqn in graph.body:
            inputs = tuple([known.get(v, v) for v in eqn.inputs])
            outputs = tuple([Value(v.type) if v in shared else v for v in eqn.outputs])
            known.update(zip(eqn.outputs, outputs, strict=True))
            self.made.append(Equation(eqn.op, inputs, eqn.params, outputs, eqn.source))
        return [known.get(v, v) for v in graph.outputs]

    def _may_leave(self, eqn: Equation) -> bool:
        op = eqn.op
        # Such a loop runs, so an equation that raises does so in any case.
        if not isinstance(op, Primitive) or op.has_bodies:
            return False
        if multiplies_sums(op):
            return self._is_product_of_rows(eqn) and self._is_small((eqn.inputs[0], eqn.output))
        return op.has_batch_rule and self._is_small((*eqn.inputs, *eqn.outputs))

    def _is_small(self, values: Iterable[Value]) -> bool:
        """Return whether the stacks of these values are small enough to be computed at once."""
        types = [v.type for v in values]
        return all(t.size <= _FEW_NUMBERS or t.nbytes * self.length <= _CACHE for t in types)

    def _is_product_of_rows(self, eqn: Equation) -> bool:
        """Return whether many such products are one product with a loop-invariant matrix."""
        x, y = eqn.inputs
        if x not in self.varying or y in self.varying or len(x.shape) != 2 or len(y.shape) != 2:
            return False
        return self.math == "fast" or (x.dtype == FLOAT64 and x.shape[0] % _ROWS == 0)

    # After the loop.

    def _split_late_loop(self, loop: Loop) -> tuple[Loop, Loop | None]:
        """Split off a second loop for carries that no other carry needs, and for late equations."""
        consts, states, xs = loop.inputs
        body, outputs, count = loop.body.body, loop.body.outputs, len(loop.init)
        reached = [set(_inputs_of(body, [v])) for v in outputs[:count]]
        last = [
            k
            for k, state in enumerate(states)
            if all(state not in reached[j] for j in range(count) if j != k)
        ]
        if len(last) == count:
            last = []
        core = {*backward_slice(body, [outputs[k] for k in range(count) if k not in last])}
        rest = [e for e in body if e not in core]
        # Equations that must stay in the first loop, and those they depend on.
        ends = forward_slice(body, [states[k] for k in last])
        alone = [v for e in rest if not self._may_leave(e) for v in e.outputs if v not in ends]
        core.update(backward_slice(body, alone))
        late = [e for e in rest if e not in core]
        bound = set(late)
        there = {v for e in core for v in e.outputs}.union(
            [v for k, v in enumerate(states) if k not in last]
        )
        late, needed = self._extend_late_equations(loop, late, there)
        new = [v for v in needed if v not in outputs[count:]]
        calls = sum([not _is_look(e) for e in bound if ends.isdisjoint(e.outputs)])
        if not self._is_small(new) or calls <= len(new) + 2 * len(last):
            return loop, None
        made = {v for e in bound for v in e.outputs}.union([states[k] for k in last])
        stays = [k for k, v in enumerate(outputs[count:]) if v not in made]
        goes = [k for k, v in enumerate(outputs[count:]) if v in made]
        stacks = [Value(add_leading_axis(self.length, v.type)) for v in new]
        firsts = [k for k in range(count) if k not in last]
        given = list(zip(loop.consts, consts, strict=True))
        first = loop.with_operands(given, firsts, None, stays, [e for e in body if e in core])
        graph = Graph(
            first.body.inputs,
            first.body.body,
            [*first.body.outputs, *new],
            first.body.name,
        )
        first = replace(first, body=graph, stacked=(*first.stacked, *stacks))
        stack_of = dict(zip(outputs[count:], loop.stacked, strict=True))
        stack_of.update(zip(new, stacks, strict=True))
        rows = [*zip(loop.xs, xs, strict=True), *[(stack_of[v], v) for v in needed]]
        return first, loop.with_operands(given, last, rows, goes, late)

    def _extend_late_equations(
        self, loop: Loop, late: Sequence[Equation], there: Collection[Value]
    ) -> tuple[list[Equation], list[Value]]:
        """Return the late equations with their views, and the values they need from the loop."""
        defined = {v: e for e in loop.body.body for v in e.outputs}
        consts, _, xs = loop.inputs
        given = {*consts, *xs}
        all_of, needed = set(late), dict[Value, None]()
        waiting = [v for e in late for v in e.inputs]
        while waiting:
            value = waiting.pop()
            eqn = defined.get(value)
            if eqn in all_of or value in given or value in needed:
                continue
            if eqn is None:
                if value in there:
                    needed[value] = None
            elif value not in there or _is_look(eqn) or _is_part_of_few(eqn):
                all_of.add(eqn)
                waiting += eqn.inputs
            else:
                needed[value] = None
        return [e for e in loop.body.body if e in all_of], list(needed)


def _is_look(eqn: Equation) -> bool:
    """Return whether an equation is a constant, or a view that is no smaller than its operand."""
    op = eqn.op
    if not eqn.inputs:
        return True
    same = eqn.outputs[0].type.size >= eqn.inputs[0].type.size
    return isinstance(op, Primitive) and op.is_view and same


def _is_part_of_few(eqn: Equation) -> bool:
    if not isinstance(view_of(eqn), Slice):
        return False
    (x,), size = eqn.inputs, sum([v.type.size for v in eqn.outputs])
    return len(eqn.outputs) == 1 and size < x.type.size <= _FEW_NUMBERS


def _inputs_of(body: Sequence[Equation], values: Iterable[Value]) -> set[Value]:
    """Return all values that `values` are computed from, and these."""
    values = list(values)
    part = backward_slice(body, values)
    return {v for e in part for v in e.inputs}.union(values)
