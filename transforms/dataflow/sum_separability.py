"""Sum separability: split a function of many samples into sums over samples and a remainder.

This is stricter than `mixing`, which follows derivatives only. Here values are followed too, so
that comparisons, rounding and `stop_gradient` count like everything else. The index of a sample
counts as well: a function that counts samples, or draws a random number for each, gives other
results on chunks of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from primgraph.ir.builder import Builder
from primgraph.ir.dims import names_in
from primgraph.ir.facts.ranges import SAME
from primgraph.ir.graph import COUNTED, Equation, Graph, Value
from primgraph.ir.index_maps import Index, IndexMap, Lookup, variables_of
from primgraph.ir.primitive import Primitive, recording
from primgraph.ir.slices import backward_slice
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.control import Regions
from primgraph.transforms.dataflow.batch_independence import (
    Counts,
    Mixing,
    Place,
    Samples,
    mixing_of,
    places_after,
    spread_over,
)
from primgraph.transforms.dataflow.engine import Facts, Fault, Flow


@final
@dataclass(frozen=True, slots=True)
class Total:
    """A sum over all samples; `more` if a term that depends on no sample was added."""

    more: bool = False


@final
@dataclass(frozen=True, slots=True)
class Parts:
    """A graph split into terms: `each` has the sums over samples, `rest` the other terms.

    `rest` is None if no output has a term that depends on no sample. `rows` are the outputs with
    one row per sample, along axis 0.
    """

    each: Graph
    rest: Graph | None
    rows: frozenset[int]


@final
@dataclass(frozen=True, slots=True)
class Cut:
    """A graph cut at its sums over samples.

    `each` computes these sums for a chunk of samples. `rest` takes the non-sample inputs and the
    sums over all samples, and computes the outputs.
    """

    each: Graph
    rest: Graph


_Kind: TypeAlias = Place | Total

_TWICE = "uses each sample beside a sum over all of them"
_COUNTS = "counts samples from the first on, or draws numbers for them"
_CURVED = "is computed of a sum over all samples in which it is not linear"
_BODY = "goes into a branch or a loop as a sum over all samples"
_PART = "takes some of the samples by where they are"


def cut_at_sums(graph: Graph, wrt: Sequence[Value]) -> Cut | Mixing:
    """Cut `graph` at the sums over axis 0 of its last inputs `wrt`, or return the mixing equation.

    The part behind the sums may be any function of them.
    """
    needed = backward_slice(graph.body, graph.outputs)
    plain = Graph(graph.inputs, needed, graph.outputs, graph.name)
    try:
        kinds = _Kinds(_rows_of(wrt), any_use=True).run(plain, dict.fromkeys(wrt, Place(0))).facts
    except Fault as fault:
        return mixing_of(fault)
    for value in plain.outputs:
        if isinstance(kinds.get(value), Place):
            return Mixing(_maker(plain, value), "gives rows, where a sum over them is needed")
    sums = [
        v
        for eqn in plain.body
        if not any(isinstance(kinds.get(x), Total) for x in eqn.inputs)
        for v in eqn.outputs
        if isinstance(kinds.get(v), Total)
    ]
    before = backward_slice(plain.body, sums)
    each = Graph(plain.inputs, before, sums, graph.name)
    known = set(sums)
    late = [e for e in plain.body if known.isdisjoint(e.outputs)]
    shared = plain.inputs[: len(plain.inputs) - len(wrt)]
    after = backward_slice(late, plain.outputs)
    return Cut(each, Graph([*shared, *sums], after, plain.outputs, graph.name))


def split_samples(graph: Graph, wrt: Sequence[Value]) -> Parts | Mixing:
    """Split `graph`, whose inputs `wrt` have samples along axis 0, or return the mixing equation.

    `graph` consists of primitives. Each output must be a row per sample, or a sum over samples plus
    terms that depend on none.
    """
    needed = backward_slice(graph.body, graph.outputs)
    plain = Graph(graph.inputs, needed, graph.outputs, graph.name)
    try:
        kinds = _Kinds(_rows_of(wrt)).run(plain, dict.fromkeys(wrt, Place(0))).facts
    except Fault as fault:
        return mixing_of(fault)
    rows = set()
    for i, value in enumerate(plain.outputs):
        kind = kinds.get(value)
        if kind == Place(0):
            rows.add(i)
        elif isinstance(kind, Place):
            return Mixing(_maker(plain, value), "moves samples to other places of the result")
    return _split_terms(plain, kinds, frozenset(rows))


def _maker(graph: Graph, value: Value) -> Equation:
    return next(e for e in graph.body if value in e.outputs)


def _rows_of(wrt: Sequence[Value]) -> int:
    return wrt[0].shape[0]


@final
class _Scope:
    """Values of a graph that count samples, and values that are zero, so far."""

    __slots__ = ("counted", "counts", "zeros")

    def __init__(self, graph: Graph) -> None:
        self.counts = Counts(graph)
        self.counted: set[Value] = set()
        self.zeros: set[Value] = set()


@final
class _Kinds(Samples[_Kind]):
    """Kinds of the values that depend on samples, of which there are `rows`.

    With `any_use`, sums may be used in any way that does not combine them with samples again.
    """

    __slots__ = ("any_use", "rows")

    dense = True

    def __init__(self, rows: int, *, any_use: bool = False) -> None:
        self.rows = rows
        self.any_use = any_use

    def scope(self, flow: Flow[_Kind], eqn: Equation | None, outer: Flow[_Kind] | None) -> _Scope:
        return _Scope(flow.graph)

    def run(
        self,
        graph: Graph,
        starts: Mapping[Value, _Kind],
        eqn: Equation | None = None,
        outer: Flow[_Kind] | None = None,
    ) -> Flow[_Kind]:
        flow = super().run(graph, starts, eqn, outer)
        for value in graph.outputs:
            if value in flow.scope.counted:
                raise Fault(_COUNTS, _maker(graph, value))
            if eqn is not None and isinstance(flow.facts.get(value), Total):
                raise Fault("adds up over all samples in a body", _maker(graph, value))
        return flow

    def visit(
        self, eqn: Equation, given: Facts[_Kind], flow: Flow[_Kind]
    ) -> Sequence[_Kind | None]:
        scope, rows = flow.scope, self.rows
        if _is_zero(eqn, scope.zeros):
            scope.zeros.update(eqn.outputs)
        if not any(given):
            return self._sample_free_kinds(eqn, scope)
        if any(isinstance(k, Total) for k in given):
            return [_kind_after_total(eqn, given, self.any_use)] * len(eqn.outputs)
        if not scope.counted.isdisjoint(_not_indices(eqn)):
            raise Fault(_COUNTS)
        places = [k for k in given if not isinstance(k, Total)]
        if _is_sum(eqn, places) or _is_scattered_sum(eqn, places, scope.zeros):
            return [Total()]
        found = super().visit(eqn, given, flow)
        for value, place in zip(eqn.outputs, found, strict=True):
            if isinstance(place, Place) and (
                place.shift or spread_over(value.shape, place) != rows
            ):
                raise Fault(_PART)
        return found

    def transfer(
        self, eqn: Equation, given: Facts[_Kind], flow: Flow[_Kind]
    ) -> Sequence[_Kind | None]:
        places = [k for k in given if not isinstance(k, Total)]
        counts = flow.scope.counts
        if eqn.op.own_slope:
            # The value is that of the first operand; the other operands define its derivative.
            found = places_after(eqn, places[1:], counts) if any(places[1:]) else []
            return [self.join(eqn.output, [places[0], *found])]
        return [given[0]] if eqn.op.formal else places_after(eqn, places, counts)

    def _sample_free_kinds(self, eqn: Equation, scope: _Scope) -> Facts[_Kind]:
        counted = not scope.counted.isdisjoint(eqn.inputs)
        if counted or _tells_rows_apart(eqn, self.rows):
            scope.counted.update(eqn.outputs)
        if not _loses_rows(eqn, self.rows):
            return [None] * len(eqn.outputs)
        if counted or not any(
            _has(v.shape[axis], self.rows)
            for i, v in enumerate(eqn.inputs)
            for axis in _summed_axes(eqn, i)
        ):
            raise Fault(_COUNTS)
        # The number of samples times a constant is a sum over samples.
        return [Total()] * len(eqn.outputs)

    def settle(
        self,
        regions: Regions,
        state: Facts[_Kind],
        eqn: Equation | None = None,
        flow: Flow[_Kind] | None = None,
    ) -> tuple[Facts[_Kind], Facts[_Kind]]:
        state, found = super().settle(regions, state, eqn, flow)
        # The state may have samples after some steps, and the test must not depend on them.
        if regions.test is not None and any(self.follow(regions.test, state, eqn, flow)):
            raise Fault("goes on for all samples by what they are")
        return state, found


def _tells_rows_apart(eqn: Equation, rows: int) -> bool:
    """Return whether the result varies with the sample index without depending on a sample."""
    axis = eqn.held(COUNTED)
    if axis is not None:
        return _has(eqn.output.shape[axis], rows)
    random = isinstance(eqn.op, Primitive) and eqn.op.random
    return random and any(_has(n, rows) for v in eqn.outputs for n in v.shape)


def _loses_rows(eqn: Equation, rows: int) -> bool:
    """Return whether an axis of samples is removed by the equation.

    With a known number of samples, another axis may have the same size by chance: return False.
    """
    if not names_in(rows):
        return False
    before, after = (
        any(_has(n, rows) for v in values for n in v.shape) for values in (eqn.inputs, eqn.outputs)
    )
    return before and not after


def _has(extent: int, rows: int) -> bool:
    """Return whether an axis of size `extent` counts samples."""
    names = names_in(rows)
    return not names.isdisjoint(names_in(extent)) if names else extent == rows


def _not_indices(eqn: Equation) -> list[Value]:
    """Return the operands that are not indices at which other operands are read or written."""
    indices: set[int] = set()
    for i in range(len(eqn.inputs)):
        found = _index_map(eqn, i)
        if found is not None:
            indices |= found.lookups()
    return [v for i, v in enumerate(eqn.inputs) if i not in indices]


def _index_map(eqn: Equation, i: int) -> IndexMap | None:
    """Return the index map of the result and operand `i`, if there is one."""
    found = eqn.dependence(0, i)
    return found if isinstance(found, IndexMap) else None


def _is_zero(eqn: Equation, zeros: set[Value]) -> bool:
    """Return whether the equation shows that all elements of the result are zero."""
    return eqn.number == 0 or (eqn.op.is_view and eqn.inputs[0] in zeros)


def _summed_axes(eqn: Equation, i: int) -> dict[int, int]:
    """Return the axes of operand `i` that the result is summed over, with their variables."""
    op = eqn.op
    if not isinstance(op, Primitive) or op.elementwise:
        return {}
    found = _index_map(eqn, i) if i in op.linear_operands(len(eqn.inputs), eqn.kwargs) else None
    if found is None or found.order is not None or not found.exact:
        return {}
    used, shape = variables_of(found.result), eqn.inputs[i].shape
    return {
        axis: p.variable
        for axis, p in enumerate(found.operand)
        if isinstance(p, Index) and p.variable is not None
        if p.variable not in used and found.extents[p.variable] == shape[axis]
    }


def _is_sum(eqn: Equation, given: Sequence[Place | None]) -> bool:
    """Return whether an equation sums over all samples."""
    along = {
        (_summed_axes(eqn, i).get(p.axis), p.before, p.after, p.shift)
        for i, p in enumerate(given)
        if p is not None
    }
    variable, _, _, shift = next(iter(along))
    return len(along) == 1 and variable is not None and not shift


def _is_scattered_sum(eqn: Equation, given: Sequence[Place | None], zeros: set[Value]) -> bool:
    """Return whether each sample is scattered into zeros, at its own indices."""
    op = eqn.op
    if not isinstance(op, Primitive) or op.elementwise or op.is_view:
        return False
    linear = op.linear_operands(len(eqn.inputs), eqn.kwargs)
    parts = [i for i in linear if given[i] is not None]
    if len(parts) != 1 or any(
        v not in zeros for i, v in enumerate(eqn.inputs) if i in linear and i not in parts
    ):
        return False
    part, found = given[parts[0]], _index_map(eqn, parts[0])
    if part is None or part.shift or found is None:
        return False
    at = found.operand[part.axis]
    variable = at.variable if isinstance(at, Index) else None
    along = [p.variables for p in found.result if isinstance(p, Lookup)]
    if variable is None or not any(variable in variables for variables in along):
        return False
    own = Place(along[0].index(variable), part.before, part.after)
    return all(p is None or p == own for i, p in enumerate(given) if i not in parts)


# Sums, and functions that are linear in them.


def _kind_after_total(eqn: Equation, given: Sequence[_Kind | None], any_use: bool) -> Total:
    if any(isinstance(k, Place) for k in given):
        raise Fault(_TWICE)
    if any_use:
        return Total()
    if eqn.op.has_bodies:
        raise Fault(_BODY)
    places = [i for i, k in enumerate(given) if k is not None]
    together = _linear_together(eqn, places)
    if together is None:
        raise Fault(_CURVED)
    more = any(isinstance(k, Total) and k.more for k in given)
    return Total(more or len(places) < len(together))


def _linear_together(eqn: Equation, places: Sequence[int]) -> tuple[int, ...] | None:
    """Return the operands in which an equation is jointly linear; None unless all `places` are."""
    op = eqn.op
    if op.formal or op.fact(SAME):
        return (0,) if list(places) == [0] else None
    if not isinstance(op, Primitive) or not all(v.type.is_inexact for v in eqn.outputs):
        return None
    if op.linear == "each":
        return (places[0],) if len(places) == 1 else None
    found = op.linear_operands(len(eqn.inputs), eqn.kwargs)
    return found if set(places) <= set(found) else None


def _split_terms(graph: Graph, kinds: Mapping[Value, _Kind], rows: frozenset[int]) -> Parts:
    """Split `graph` in two: the terms that depend on samples, and the others."""
    builder = Builder(graph.name)
    each: dict[Value, Value] = {}
    rest: dict[Value, Value] = {}
    for value in graph.inputs:
        builder.share_input(value)
        (each if value in kinds else rest)[value] = value
    for eqn in graph.body:
        inner = [kinds.get(v) for v in eqn.inputs]
        outer = [kinds.get(v) for v in eqn.outputs]
        if not any(isinstance(k, Total) for k in inner):
            inputs = [each[v] if v in each else rest[v] for v in eqn.inputs]
            found = builder.copy(eqn, tuple(inputs))
            (each if any(outer) else rest).update(zip(eqn.outputs, found, strict=True))
            continue
        places = [i for i, k in enumerate(inner) if k is not None]
        together = _linear_together(eqn, places) or ()
        for part in (each, rest):
            if not any(eqn.inputs[i] in part for i in together):
                continue
            operands = [part.get(v) if i in together else rest[v] for i, v in enumerate(eqn.inputs)]
            part.update(zip(eqn.outputs, _with_zeros(builder, eqn, operands), strict=True))
    ends = [each.get(v) for v in graph.outputs]
    beside = [rest.get(v) for v in graph.outputs]
    with recording(builder):
        own = [_or_zeros(e, v) for e, v in zip(ends, graph.outputs, strict=True)]
        other = [_or_zeros(e, v) for e, v in zip(beside, graph.outputs, strict=True)]
    return Parts(
        builder.part(graph.inputs, own),
        None if all(v is None for v in beside) else builder.part(graph.inputs, other),
        rows,
    )


def _or_zeros(found: Value | None, like: Value) -> Value:
    return filled_constant(0, like.type) if found is None else found


def _with_zeros(
    builder: Builder, eqn: Equation, operands: Sequence[Value | None]
) -> tuple[Value, ...]:
    """Copy an equation with zeros for the operands that are None."""
    builder.source = eqn.source
    with recording(builder):
        present = [i for i, v in enumerate(operands) if v is not None]
        assert isinstance(eqn.op, Primitive)
        rule = eqn.op.jvp_rule(present[0])
        if eqn.op.linear is True and len(present) == 1 and rule is not None:
            # The derivative along one operand is what a linear primitive makes of it alone.
            return (rule(eqn.output, *eqn.inputs, operands[present[0]]),)
        filled_up = [_or_zeros(v, w) for v, w in zip(operands, eqn.inputs, strict=True)]
    builder.source = None
    return builder.copy(eqn, tuple(filled_up))
