"""Jacobians with few diagonals or blocks, each entry computed once.

A tangent is represented by terms: coefficients for the elements of a box, and an affine map to the
input elements that they multiply. Unit vectors are never formed. Equations that are linear in a
tangent are applied to coefficients, as in a derivation by hand. Elsewhere compressed
Jacobian-vector products are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.rebuild import NOWHERE, copy
from primgraph.ir.types import Shape, TensorType
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.elementwise import add as add_
from primgraph.primitives.elementwise import as_function_of, cast, div, mul, neg, sub
from primgraph.primitives.indexing import placed, places_in
from primgraph.primitives.logic import select
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import (
    broadcast,
    concat,
    pad,
    permute,
    reshape,
    reverse,
    slice_,
    slice_assign,
    split,
)
from primgraph.sparsity import affine, effects
from primgraph.sparsity.affine import Affine, Maps
from primgraph.transforms.dataflow.activity import dependent_values

# With more terms, compressed products are used.
_MOST_TERMS = 24
# Larger sets of positions are not compared.
_MOST_PLACES = 2**22


class Term(NamedTuple):
    """`coefficient[i]` times the input element to which `map` sends index `low + i`.

    Axes behind those of the value are summed over. The coefficient has the shape of the map's box;
    None stands for ones.
    """

    map: Affine
    coefficient: Value | None

    @property
    def box(self) -> Shape:
        return tuple([b - a for a, b in zip(self.map.low, self.map.high, strict=True)])


Terms: TypeAlias = list[Term]


class _Unknown(Exception):
    """Raised for an equation that has no rule for terms."""


def explicit_matrix(graph: Graph, seed: int) -> tuple[Graph, int] | None:
    """Return the matrix of `graph`, linear in the vector at `seed`, and its number of diagonals.

    The only result, a vector, becomes a matrix with one column per element of that input, which is
    removed from the inputs. Return None if an equation has no rule for terms, or if there are too
    many terms.
    """
    width = graph.inputs[seed].type.size
    height = graph.outputs[0].type.size
    tangent = graph.inputs[seed]
    builder = Builder(graph.name, source=NOWHERE)
    moved = {v: v for v in graph.inputs if v is not tangent}
    for value in moved:
        builder.share_input(value)
    walk = _Walk(builder, moved, tangent.type)
    first = affine.diagonal(tangent.shape, 0)
    terms: dict[Value, Terms] = {tangent: [Term(m, None) for m in first]}
    with builder:
        try:
            for eqn in graph.body:
                if terms.keys().isdisjoint(eqn.inputs):
                    copy(builder, eqn, moved)
                    continue
                builder.source = eqn.source or NOWHERE
                terms.update(walk.apply_rule(eqn, terms))
            found = walk.split_terms(terms.get(graph.outputs[0], []))
        except _Unknown:
            return None
        whole = _matrix(found, graph.outputs[0].type, (height, width))
    if whole is None:
        return None
    return builder.graph([whole]), len({(t.map.strides, t.map.offset) for t in found})


def may_be_written_out(graph: Graph, wrt: Sequence[Value]) -> bool:
    """Return whether all active equations are elementwise or have a rule for terms."""
    active = dependent_values(graph, wrt)
    for eqn in graph.body:
        if active.isdisjoint(eqn.inputs) or active.isdisjoint(eqn.outputs):
            continue
        op = eqn.op
        if op not in _RULES and not (isinstance(op, Primitive) and op.elementwise):
            return False
    return True


def _matrix(terms: Terms, type: TensorType, shape: tuple[int, int]) -> Value | None:
    """Assemble the matrix from terms whose entries do not overlap; None if that fails."""
    places = []
    for term in terms:
        # The row is the index in the vector; matrix strides combine row and column strides.
        m = term.map
        strides = (m.strides[0] + shape[1], *m.strides[1:])
        places.append(Affine(m.offset, strides, m.low, m.high, ()))
    count = sum(m.places for m in places)
    if count > _MOST_PLACES:
        return None
    if not terms:
        return filled_constant(0, type.with_shape(shape))
    if any(s < 0 for m in places for s in m.strides) or not _are_apart(places, count, shape):
        return None
    return placed(
        *[_full(t, type) for t in terms],
        shape=shape,
        starts=tuple([m.first for m in places]),
        strides=tuple([m.strides for m in places]),
    )


def _are_apart(places: Maps, count: int, shape: tuple[int, int]) -> bool:
    """Return whether all `count` entries have distinct positions in a matrix of that shape."""
    size = prod(shape)
    if count > size:
        return False
    starts = [(m.first, tuple([b - a for a, b in zip(m.low, m.high, strict=True)])) for m in places]
    found = [
        places_in(box, start, m.strides) for m, (start, box) in zip(places, starts, strict=True)
    ]
    if size > 64 * count:
        return len(np.unique(np.concatenate([p.ravel() for p in found]))) == count
    taken = np.zeros(size, np.bool_)
    for p in found:
        taken[p] = True
    return int(np.count_nonzero(taken)) == count


def _full(term: Term, type: TensorType) -> Value:
    if term.coefficient is None:
        return filled_constant(1, type.with_shape(term.box))
    return term.coefficient


@final
class _Walk:
    """Forward propagation of terms; other operands are values of a new builder."""

    def __init__(self, builder: Builder, moved: dict[Value, Value], type: TensorType) -> None:
        self.builder = builder
        self.moved = moved
        self.type = type

    def apply_rule(self, eqn: Equation, terms: dict[Value, Terms]) -> dict[Value, Terms]:
        rule = _RULES.get(eqn.op)
        if rule is None or any(v.dtype != self.type.dtype for v in eqn.outputs):
            raise _Unknown
        found: Any = rule(self, eqn, [terms.get(v) for v in eqn.inputs])
        results: list[Terms] = found if eqn.op.multiple else [found]
        for one in results:
            if len(one) > _MOST_TERMS:
                raise _Unknown
        return dict(zip(eqn.outputs, results, strict=True))

    # Slices of coefficients.

    def part(self, term: Term, low: Shape, high: Shape) -> Term:
        """Restrict a term to a smaller box."""
        m = term.map
        if (low, high) == (m.low, m.high):
            return term
        coefficient = term.coefficient
        if coefficient is not None:
            coefficient = slice_(
                coefficient,
                starts=tuple([a - b for a, b in zip(low, m.low, strict=True)]),
                sizes=tuple([b - a for a, b in zip(low, high, strict=True)]),
                steps=(1,) * len(low),
            )
        return Term(m._replace(low=low, high=high), coefficient)

    def other(self, value: Value, term: Term) -> Value:
        """Return another operand, sliced and broadcast to the box of a term."""
        found, box = self.moved[value], term.box
        rank = found.type.ndim
        m = term.map
        if box[:rank] != found.shape:
            found = slice_(found, starts=m.low[:rank], sizes=box[:rank], steps=(1,) * rank)
        return self.broadcast_value(found, box)

    def broadcast_value(self, value: Value, box: Shape) -> Value:
        """Broadcast `value` along the axes that are summed over."""
        rank = value.type.ndim
        if rank == len(box):
            return value
        return broadcast(value, shape=box, new_axes=tuple(range(rank, len(box))))

    def scale_term(self, term: Term, by: Callable[[Value], Value], one: Value | None) -> Term:
        if term.coefficient is None and one is not None:
            return term._replace(coefficient=one)
        return term._replace(coefficient=by(_full(term, self.type)))

    def merge_terms(self, terms: Terms) -> Terms:
        """Add terms that have equal maps and boxes."""
        found: dict[Affine, Term] = {}
        for term in terms:
            known = found.get(term.map)
            if known is not None:
                term = Term(term.map, add_(_full(known, self.type), _full(term, self.type)))
            found[term.map] = term
        return list(found.values())

    def split_terms(self, terms: Terms) -> Terms:
        """Split terms into disjoint boxes; add terms of one map where they overlap."""
        cells: Terms = []
        waiting = self.merge_terms(terms)[::-1]
        while waiting:
            term = waiting.pop()
            place, both = _find_overlap(cells, term.map)
            if both is None:
                cells.append(term)
                if len(cells) > 2 * _MOST_TERMS:
                    raise _Unknown
                continue
            cell = cells.pop(place)
            one, two = (self.part(t, both.low, both.high) for t in (cell, term))
            total = add_(_full(one, self.type), _full(two, self.type))
            cells += [*self._remove_overlap(cell, both), Term(one.map, total)]
            waiting += self._remove_overlap(term, both)
        return cells

    def _remove_overlap(self, term: Term, m: Affine) -> Terms:
        pieces = effects.cut_out_box([term.map], m.low, m.high)
        return [self.part(term, p.low, p.high) for p in pieces]


def _find_overlap(cells: Terms, m: Affine) -> tuple[int, Affine | None]:
    """Return the first of `cells` that overlaps `m` under the same map, and the overlap."""
    for place, cell in enumerate(cells):
        if (cell.map.strides, cell.map.offset) == (m.strides, m.offset):
            both = effects.clip_to_box([m], cell.map.low, cell.map.high)
            if both:
                return place, both[0]
    return -1, None


# Rules: terms of the result, given terms of the operands.

_Rule: TypeAlias = Callable[[_Walk, Equation, "Sequence[Terms | None]"], "Terms | list[Terms]"]


def _add(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    return walk.merge_terms([t for part in terms for t in part or ()])


def _neg(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    return [_negative(walk, t) for t in terms[0] or ()]


def _negative(walk: _Walk, term: Term) -> Term:
    return walk.scale_term(term, neg, filled_constant(-1, walk.type.with_shape(term.box)))


def _sub(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    left, right = terms
    return walk.merge_terms([*(left or ()), *(_negative(walk, t) for t in right or ())])


def _mul(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    found = []
    for i, part in enumerate(terms):
        for term in part or ():
            other = walk.other(eqn.inputs[1 - i], term)
            found.append(walk.scale_term(term, lambda c, other=other: mul(c, other), other))  # type: ignore[misc]
    return found


def _div(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    if terms[1] is not None:
        raise _Unknown
    found = []
    for term in terms[0] or ():
        other = walk.other(eqn.inputs[1], term)
        found.append(walk.scale_term(term, lambda c, other=other: div(c, other), None))  # type: ignore[misc]
    return found


def _select(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    found = []
    for i in (1, 2):
        for term in terms[i] or ():
            chosen = walk.other(eqn.inputs[0], term)
            zeros = filled_constant(0, walk.type.with_shape(term.box))
            parts = [_full(term, walk.type), zeros]
            found.append(Term(term.map, select(chosen, *(parts if i == 1 else parts[::-1]))))
    return walk.merge_terms(found)


def _same(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    if terms[0] is None:
        raise _Unknown
    return terms[0]


def _cast(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    return _same(walk, eqn, terms)


def _extend_by_zeros(m: Affine, rank: int, numbers: Shape) -> Shape:
    """Extend `numbers` with zeros for the axes that are summed over."""
    return (*numbers, *[0] * (len(m.low) - rank))


def _shift_term(term: Term, starts: Shape) -> Term:
    (m,) = effects.shift_maps([term.map], _extend_by_zeros(term.map, len(starts), starts))
    return Term(m, term.coefficient)


def _pad(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    return [_shift_term(t, eqn.kwargs["low"]) for t in terms[0] or ()]


def _concat(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    axis, start, found = eqn.kwargs["axis"], 0, []
    for value, part in zip(eqn.inputs, terms, strict=True):
        rank = value.type.ndim
        starts = tuple([start if a == axis else 0 for a in range(rank)])
        found += [_shift_term(t, starts) for t in part or ()]
        start += value.shape[axis]
    return walk.merge_terms(found)


def _slice(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    starts, sizes, steps = (eqn.kwargs[n] for n in ("starts", "sizes", "steps"))
    return _slice_terms(terms[0] or [], starts, sizes, steps)


def _slice_terms(terms: Terms, starts: Shape, sizes: Shape, steps: Shape) -> Terms:
    found = []
    for term in terms:
        m, rank = term.map, len(starts)
        behind = len(m.low) - rank
        first = (*starts, *[0] * behind)
        by = (*steps, *[1] * behind)
        for new in effects.slice_maps([m], first, (*sizes, *m.high[rank:]), by):
            coefficient = term.coefficient
            box = tuple([b - a for a, b in zip(new.low, new.high, strict=True)])
            if coefficient is not None and (box != term.box or by != (1,) * len(by)):
                begin = [
                    s + a * d - b for s, a, d, b in zip(first, new.low, by, m.low, strict=True)
                ]
                coefficient = slice_(coefficient, starts=tuple(begin), sizes=box, steps=by)
            found.append(Term(new, coefficient))
    return found


def _split(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> list[Terms]:
    axis, start, found = eqn.kwargs["axis"], 0, []
    for value in eqn.outputs:
        rank = value.type.ndim
        starts = tuple([start if a == axis else 0 for a in range(rank)])
        found.append(_slice_terms(terms[0] or [], starts, value.shape, (1,) * rank))
        start += value.shape[axis]
    return found


def _reverse(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    shape, axes = eqn.inputs[0].shape, eqn.kwargs["axes"]
    starts = tuple([n - 1 if a in axes else 0 for a, n in enumerate(shape)])
    steps = tuple([-1 if a in axes else 1 for a in range(len(shape))])
    return _slice_terms(terms[0] or [], starts, shape, steps)


def _slice_assign(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    starts, steps = eqn.kwargs["starts"], eqn.kwargs["steps"]
    part = eqn.inputs[1].shape
    if any(step != 1 and n > 1 for step, n in zip(steps, part, strict=True)) or 0 in part:
        raise _Unknown
    found = [_shift_term(t, starts) for t in terms[1] or ()]
    high = tuple([a + n for a, n in zip(starts, part, strict=True)])
    for term in terms[0] or ():
        m = term.map
        behind = len(m.low) - len(starts)
        pieces = effects.cut_out_box(
            [m], (*starts, *m.low[len(starts) :]), (*high, *m.high[len(starts) :])
        )
        assert behind >= 0
        found += [walk.part(term, p.low, p.high) for p in pieces]
    return walk.merge_terms(found)


def _permute(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    axes, found = eqn.kwargs["axes"], []
    for term in terms[0] or ():
        order = (*axes, *range(len(axes), len(term.map.low)))
        (m,) = effects.permute_maps([term.map], order)
        coefficient = term.coefficient
        found.append(Term(m, None if coefficient is None else permute(coefficient, axes=order)))
    return found


def _broadcast(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    shape, new = eqn.kwargs["shape"], eqn.kwargs["new_axes"]
    found = []
    for term in terms[0] or ():
        rank = eqn.inputs[0].type.ndim
        hidden = term.map.high[rank:]
        for m in effects.repeat_maps([term.map], (*shape, *hidden), new):
            box = tuple([b - a for a, b in zip(m.low, m.high, strict=True)])
            coefficient = term.coefficient
            if coefficient is not None and new:
                coefficient = broadcast(coefficient, shape=box, new_axes=new)
            found.append(Term(m, coefficient))
    return found


def _reshape(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    old, new, found = eqn.inputs[0].shape, eqn.output.shape, []
    for term in terms[0] or ():
        if len(term.map.low) != len(old):
            raise _Unknown
        maps = effects.reshape_maps([term.map], old, new)
        if maps is None or len(maps) != 1 or maps[0].places != term.map.places:
            raise _Unknown
        (m,) = maps
        coefficient = term.coefficient
        box = tuple([b - a for a, b in zip(m.low, m.high, strict=True)])
        if coefficient is not None and box != term.box:
            coefficient = reshape(coefficient, shape=box)
        found.append(Term(m, coefficient))
    return found


def _reduce_sum(walk: _Walk, eqn: Equation, terms: Sequence[Terms | None]) -> Terms:
    """Move the reduced axes last; sum coefficients along axes that map to one element."""
    axes, found = eqn.kwargs["axes"], []
    for term in terms[0] or ():
        m = term.map
        gone = [a for a in axes if not m.strides[a]]
        if gone:
            total = reduce_sum(_full(term, walk.type), axes=tuple(gone))
            (m,) = effects.sum_maps([m], gone)
            term = Term(m, total)
        rank = eqn.inputs[0].type.ndim
        names = [a for a in range(rank) if a not in gone]
        summed = [i for i, a in enumerate(names) if a in axes]
        kept = [i for i in range(len(m.low)) if i not in summed]
        order = (*kept[: rank - len(axes)], *summed, *kept[rank - len(axes) :])
        (m,) = effects.permute_maps([term.map], order)
        coefficient = term.coefficient
        if coefficient is not None and order != tuple(range(len(order))):
            coefficient = permute(coefficient, axes=order)
        found.append(Term(m, coefficient))
    return walk.merge_terms(found)


_RULES: dict[Op, _Rule] = {
    add_: _add,
    as_function_of: _same,
    broadcast: _broadcast,
    cast: _cast,
    concat: _concat,
    div: _div,
    mul: _mul,
    neg: _neg,
    pad: _pad,
    permute: _permute,
    reduce_sum: _reduce_sum,
    reshape: _reshape,
    reverse: _reverse,
    select: _select,
    slice_: _slice,
    slice_assign: _slice_assign,
    split: _split,
    sub: _sub,
}
