"""Sum separability: split a function of many samples into sums over samples and a remainder.

This is stricter than `mixing`, which follows derivatives only. Here values are followed too, so
that comparisons, rounding and `stop_gradient` count like everything else. The index of a sample
counts as well: a function that counts samples, or draws a random number for each, gives other
results on chunks of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from primgraph.ir.builder import Builder
from primgraph.ir.dims import names_in
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive, recording
from primgraph.ir.slices import backward_slice
from primgraph.primitives.constants import filled, full, iota
from primgraph.primitives.control import checkpoint, cond, scan, while_loop
from primgraph.primitives.elementwise import add, neg, stop_gradient, sub
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import broadcast, reshape
from primgraph.transforms.dataflow.batch_independence import (
    Counts,
    Mixing,
    Place,
    places_after,
    spread_over,
)
from primgraph.transforms.dataflow.body_transfer import (
    Analysis,
    Fault,
    through_checkpoint,
    through_cond,
    through_scan,
    through_while,
)


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


_Kind: TypeAlias = "Place | Total"
_Kinds: TypeAlias = "dict[Value, _Kind]"

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
        kinds = _followed(plain, dict.fromkeys(wrt, Place(0)), _rows_of(wrt), any_use=True)
    except _Mixed as found:
        return found.mixing
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


def taken_apart(graph: Graph, wrt: Sequence[Value]) -> Parts | Mixing:
    """Split `graph`, whose inputs `wrt` have samples along axis 0, or return the mixing equation.

    `graph` consists of primitives. Each output must be a row per sample, or a sum over samples plus
    terms that depend on none.
    """
    needed = backward_slice(graph.body, graph.outputs)
    plain = Graph(graph.inputs, needed, graph.outputs, graph.name)
    try:
        kinds = _followed(plain, dict.fromkeys(wrt, Place(0)), _rows_of(wrt))
    except _Mixed as found:
        return found.mixing
    rows = set()
    for i, value in enumerate(plain.outputs):
        kind = kinds.get(value)
        if kind == Place(0):
            rows.add(i)
        elif isinstance(kind, Place):
            return Mixing(_maker(plain, value), "moves samples to other places of the result")
    return _divided(plain, kinds, frozenset(rows))


def _maker(graph: Graph, value: Value) -> Equation:
    return next(e for e in graph.body if value in e.outputs)


def _rows_of(wrt: Sequence[Value]) -> int:
    return wrt[0].shape[0]


class _Mixed(Exception):
    """Raised at an equation that combines samples in a way that is not a sum."""

    def __init__(self, eqn: Equation, why: str) -> None:
        super().__init__(why)
        self.mixing = Mixing(eqn, why)


def _followed(
    graph: Graph, starts: Mapping[Value, _Kind], rows: int, any_use: bool = False
) -> _Kinds:
    """Classify each value that depends on samples; raise `_Mixed` if samples are mixed.

    With `any_use`, sums may be used in any way that does not combine them with samples again.
    """
    kinds: _Kinds = dict(starts)
    counted: set[Value] = set()
    counts = Counts(graph)
    zeros: set[Value] = set()
    for eqn in graph.body:
        if _is_zero(eqn, zeros):
            zeros.update(eqn.outputs)
        given = [kinds.get(v) for v in eqn.inputs]
        if not any(given):
            if not counted.isdisjoint(eqn.inputs) or _tells_rows_apart(eqn, rows):
                counted.update(eqn.outputs)
            if _loses_rows(eqn, rows):
                if eqn.op not in (reduce_sum, matmul) or not counted.isdisjoint(eqn.inputs):
                    raise _Mixed(eqn, _COUNTS)
                # The number of samples times a constant is a sum over samples.
                kinds.update(dict.fromkeys(eqn.outputs, Total()))
            continue
        found: Sequence[_Kind | None]
        if any(isinstance(k, Total) for k in given):
            found = [_after_total(eqn, given, any_use)] * len(eqn.outputs)
        else:
            if not counted.isdisjoint(_not_indices(eqn)):
                raise _Mixed(eqn, _COUNTS)
            places = [k for k in given if not isinstance(k, Total)]
            found = _after_rows(eqn, places, counts, rows, zeros)
        kinds.update((v, k) for v, k in zip(eqn.outputs, found, strict=True) if k is not None)
    for value in graph.outputs:
        if value in counted:
            raise _Mixed(_maker(graph, value), _COUNTS)
    return kinds


def _tells_rows_apart(eqn: Equation, rows: int) -> bool:
    """Return whether the result varies with the sample index without depending on a sample."""
    if eqn.op is iota:
        return bool(_has(eqn.kwargs["shape"][eqn.kwargs["axis"]], rows))
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


def _not_indices(eqn: Equation) -> tuple[Value, ...]:
    """Return the operands that are not indices."""
    if eqn.op is gather:
        return eqn.inputs[:1]
    return eqn.inputs[:2] if eqn.op is scatter_add else eqn.inputs


def _is_zero(eqn: Equation, zeros: set[Value]) -> bool:
    """Return whether the equation shows that all elements of the result are zero."""
    if eqn.op is full:
        return bool(eqn.kwargs["value"] == 0)
    return eqn.op in (broadcast, reshape) and eqn.inputs[0] in zeros


def _after_rows(
    eqn: Equation, given: Sequence[Place | None], counts: Counts, rows: int, zeros: set[Value]
) -> Sequence[_Kind | None]:
    """Classify the results of an equation whose operands have independent samples."""
    if _is_sum(eqn, given) or _is_scattered_sum(eqn, given, zeros):
        return [Total()]
    found = _places(eqn, given, counts, rows)
    if isinstance(found, Mixing):
        raise _Mixed(found.equation, found.why)
    if isinstance(found, str):
        raise _Mixed(eqn, found)
    for value, place in zip(eqn.outputs, found, strict=True):
        if place is not None and (place.shift or spread_over(value.shape, place) != rows):
            raise _Mixed(eqn, _PART)
    return found


def _places(
    eqn: Equation, given: Sequence[Place | None], counts: Counts, rows: int
) -> Sequence[Place | None] | str | Mixing:
    found: Sequence[Place | None] | str | Mixing
    if eqn.op in _BODIES:
        found = _through(eqn, given, rows)
        return found
    if eqn.op.own_slope:
        # The value is that of the first operand; the other operands define its derivative.
        found = places_after(eqn, given[1:], counts) if any(given[1:]) else [given[0]]
        return _one([given[0], *found]) if isinstance(found, list) else found
    if eqn.op.formal:
        return [given[0]]
    return places_after(eqn, given, counts)


def _one(places: Sequence[Place | None]) -> list[Place] | str:
    different = {p for p in places if p is not None}
    return [different.pop()] if len(different) == 1 else "joins different samples of its operands"


def _is_sum(eqn: Equation, given: Sequence[Place | None]) -> bool:
    """Return whether an equation sums over all samples."""
    if eqn.op is reduce_sum:
        (place,) = given
        return place is not None and place.axis in eqn.kwargs["axes"] and not place.shift
    if eqn.op is matmul:
        left, right = given
        last = eqn.inputs[0].type.ndim - 1
        along = [p for p, axis in ((left, last), (right, last - 1)) if p and p.axis == axis]
        placed = [p for p in given if p is not None]
        if len(along) != len(placed) or any(p.shift for p in along):
            return False
        return len({(p.before, p.after) for p in along}) == 1
    return False


def _is_scattered_sum(eqn: Equation, given: Sequence[Place | None], zeros: set[Value]) -> bool:
    """Return whether each sample is scattered into zeros, at its own indices."""
    if eqn.op is not scatter_add or eqn.inputs[0] not in zeros:
        return False
    _, part, *indices = given
    first, rank = eqn.kwargs["axis"], eqn.inputs[2].type.ndim
    if part is None or part.shift or not first <= part.axis < first + rank:
        return False
    own = Place(part.axis - first, part.before, part.after)
    return all(p is None or p == own for p in indices)


# Branches and loops.

_BODIES: dict[Op, Callable[..., list[Place | None]]] = {
    cond: through_cond,
    checkpoint: through_checkpoint,
    scan: through_scan,
    while_loop: through_while,
}


def _through(eqn: Equation, given: Sequence[Place | None], rows: int) -> Any:
    """Classify the results of a branch or a loop whose bodies keep samples independent."""

    def follow(body: Graph, places: list[Place | None]) -> list[Place | None]:
        starts = {v: p for v, p in zip(body.inputs, places, strict=True) if p is not None}
        try:
            found = _followed(body, starts, rows)
        except _Mixed as fault:
            raise Fault(fault.mixing) from None
        ends = [found.get(v) for v in body.outputs]
        for value, end in zip(body.outputs, ends, strict=True):
            if isinstance(end, Total):
                raise Fault(Mixing(_maker(body, value), "adds up over all samples in a body"))
        return [e for e in ends if not isinstance(e, Total)]

    if eqn.op is cond and given[0] is not None:
        return "chooses one branch for all samples by what they are"
    different = "moves samples from trip to trip, or in some branches only"
    analysis = Analysis(follow, _row, _stack, different)
    try:
        found = _BODIES[eqn.op](eqn, list(given), analysis)
        if eqn.op is while_loop:
            # The state may have samples after some iterations, and the loop test must not depend on
            # them.
            count = eqn.kwargs["consts"]
            test = eqn.kwargs["test"]
            states = found[: len(test.inputs) - count]
            if any(follow(test, [*given[:count], *states])):
                return "goes on for all samples by what they are"
    except Fault as fault:
        return fault.cause
    return found


def _row(place: Place) -> Place:
    if place.axis == 0:
        raise Fault("goes along the axis of the samples")
    return Place(place.axis - 1, place.before, place.after, place.shift)


def _stack(place: Place) -> Place:
    return Place(place.axis + 1, place.before, place.after, place.shift)


# Sums, and functions that are linear in them.


def _after_total(eqn: Equation, given: Sequence[_Kind | None], any_use: bool) -> Total:
    if any(isinstance(k, Place) for k in given):
        raise _Mixed(eqn, _TWICE)
    if any_use:
        return Total()
    if eqn.op.has_bodies:
        raise _Mixed(eqn, _BODY)
    places = [i for i, k in enumerate(given) if k is not None]
    together = _linear_together(eqn, places)
    if together is None:
        raise _Mixed(eqn, _CURVED)
    more = any(isinstance(k, Total) and k.more for k in given)
    return Total(more or len(places) < len(together))


def _linear_together(eqn: Equation, places: Sequence[int]) -> tuple[int, ...] | None:
    """Return the operands in which an equation is jointly linear; None unless all `places` are."""
    op = eqn.op
    if op is stop_gradient or op.formal:
        return (0,) if list(places) == [0] else None
    if not isinstance(op, Primitive) or not all(v.type.is_inexact for v in eqn.outputs):
        return None
    if op.linear == "each":
        return (places[0],) if len(places) == 1 else None
    found = op.linear_operands(len(eqn.inputs), eqn.kwargs)
    return found if set(places) <= set(found) else None


def _divided(graph: Graph, kinds: _Kinds, rows: frozenset[int]) -> Parts:
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
    return filled(0, like.type) if found is None else found


def _with_zeros(
    builder: Builder, eqn: Equation, operands: Sequence[Value | None]
) -> tuple[Value, ...]:
    """Copy an equation with zeros for the operands that are None."""
    builder.source = eqn.source
    with recording(builder):
        if eqn.op in (add, sub) and None in operands:
            left, right = operands
            if left is not None:
                return (left,)
            assert right is not None
            return (right,) if eqn.op is add else (neg(right),)
        filled_up = [_or_zeros(v, w) for v, w in zip(operands, eqn.inputs, strict=True)]
    builder.source = None
    return builder.copy(eqn, tuple(filled_up))
