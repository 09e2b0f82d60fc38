"""Jacobian entries computed directly, without Jacobian-vector products.

A tangent that is linear in a vector is a sum of terms per element: a factor times one element of
the vector. If equations only move, scale, select and add elements, each term is one array of
factors and one constant array of positions in the vector. The diagonals of a stencil then cost the
operations that one would write by hand. Compressed Jacobian-vector products cost as much for each
colour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.rebuild import NOWHERE, copy, full_value, require_primitive
from primgraph.ir.types import TensorType
from primgraph.primitives.constants import constant_op, filled_constant, zeros_like
from primgraph.primitives.elementwise import SIGNS, add, cast, div, mul, neg, sub
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.logic import select
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import (
    concat,
    reshape,
    slice_,
    slice_assign,
)

Array: TypeAlias = "np.ndarray[Any, Any]"

# Limits on the number of summands that a sum is split into, and of slices that assemble a result.
_SUMMANDS = 8
_SLICES = 24


@final
@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A term of a tangent: per element, a factor and the index of the vector element it multiplies.

    `factor` None stands for ones. An index in `columns` is -1 where the term is absent; `is_zero`
    tells that the factor is zero there.
    """

    factor: Value | None
    columns: Array
    has_gaps: bool
    is_zero: bool

    @property
    def is_clean(self) -> bool:
        """Return whether the factor is zero where the term is absent; such terms can be added."""
        return self.is_zero or not self.has_gaps


class _Unknown(Exception):
    """Raised for an equation whose terms cannot be determined."""


def terms_of(
    graph: Graph, most: float, *, chooses: bool = True
) -> tuple[Builder, Value | None, list[Term]] | None:
    """Return the terms of the only output of `graph`, which is linear in its last input.

    They are recorded in a builder that has the other inputs. The value returned is that of the
    output if it does not depend on the vector. Return None if an equation does not move, scale,
    select or add, or if the terms have more than `most` elements in total. Without `chooses`,
    `select` is not allowed either: it would put zeros beside infinite factors.
    """
    seed = graph.inputs[-1]
    builder = Builder(graph.name, source=NOWHERE)
    moved: dict[Value, Value] = {}
    for value in graph.inputs[:-1]:
        builder.share_input(value)
        moved[value] = value
    places = np.arange(seed.type.size, dtype=np.int64).reshape(seed.shape)
    terms = {seed: [Term(None, places, False, False)]}
    work = _Work(builder, moved, terms)
    with builder:
        for eqn in graph.body:
            if terms.keys().isdisjoint(eqn.inputs):
                copy(builder, eqn, moved)
                continue
            rule = _rule_of(eqn)
            if rule is None or (rule is _select_terms and not chooses):
                return None
            builder.source = eqn.source or NOWHERE
            try:
                found = rule(work, eqn)
            except _Unknown:
                return None
            for value, listed in zip(eqn.outputs, found, strict=True):
                terms[value] = listed
                most -= len(listed) * value.type.size
            if most < 0:
                return None
    (output,) = graph.outputs
    return builder, moved.get(output), terms.get(output, [])


@final
@dataclass(frozen=True, slots=True)
class _Work:
    """Builder of terms, and the values and terms recorded so far."""

    builder: Builder
    moved: dict[Value, Value]
    terms: dict[Value, list[Term]]

    def constant_array(self, value: Value) -> Array:
        """Return the array of a compile-time constant; raise `_Unknown` for other values."""
        eqn = self.builder.definition(self.moved[value])
        if eqn is None or eqn.inputs or eqn.op.stops:
            raise _Unknown
        return np.asarray(require_primitive(eqn).impl(**eqn.kwargs))

    def require_zero(self, value: Value) -> None:
        """Raise `_Unknown` unless `value` is zero: a linear sum has no other constant term."""
        if full_value(self.builder, self.moved[value]) != 0:
            raise _Unknown

    def full(self, term: Term, type: TensorType) -> Value:
        """Return the factor of a term as a value, ones if it is None."""
        if term.factor is not None:
            return term.factor
        return filled_constant(1, type)

    def clean(self, term: Term, type: TensorType) -> Term:
        """Return the term with a factor that is zero where it is absent, or raise `_Unknown`."""
        if term.is_clean:
            return term
        if term.factor is not None:
            raise _Unknown
        op, params = constant_op((term.columns >= 0).astype(type.dtype))
        (mask,) = self.builder.emit(op, [], params)
        return replace(term, factor=mask, is_zero=True)

    def sum(self, parts: Iterable[Sequence[Term]], type: TensorType) -> list[Term]:
        """Return the terms of a sum; merge terms that have compatible columns."""
        found: list[Term] = []
        for term in (t for part in parts for t in part):
            for i, other in enumerate(found):
                joined = self._join_terms(other, term, type)
                if joined is not None:
                    found[i] = joined
                    break
            else:
                found.append(term)
        return found

    def _join_terms(self, a: Term, b: Term, type: TensorType) -> Term | None:
        if a.columns is b.columns or np.array_equal(a.columns, b.columns):
            total = add(self.full(a, type), self.full(b, type))
            return Term(total, a.columns, a.has_gaps, a.is_zero and b.is_zero)
        if not (a.has_gaps and b.has_gaps):
            return None
        both = (a.columns >= 0) & (b.columns >= 0)
        if np.any(a.columns[both] != b.columns[both]):
            return None
        try:
            a, b = self.clean(a, type), self.clean(b, type)
        except _Unknown:
            return None
        columns = np.maximum(a.columns, b.columns)
        total = add(self.full(a, type), self.full(b, type))
        return Term(total, columns, bool(np.any(columns < 0)), True)


def _add_terms(work: _Work, eqn: Equation) -> list[list[Term]]:
    parts = []
    for place, value in enumerate(eqn.inputs):
        listed = work.terms.get(value)
        if listed is None:
            work.require_zero(value)
        elif eqn.op.fact(SIGNS)[place] < 0:
            parts.append([_negative(work, t, value.type) for t in listed])
        else:
            parts.append(listed)
    return [work.sum(parts, eqn.output.type)]


def _negative(work: _Work, term: Term, type: TensorType) -> Term:
    if term.factor is None:
        return replace(term, factor=filled_constant(-1, type))
    return replace(term, factor=neg(term.factor))


def _negate_terms(work: _Work, eqn: Equation) -> list[list[Term]]:
    return [[_negative(work, t, eqn.output.type) for t in work.terms[eqn.inputs[0]]]]


def _scale_terms(work: _Work, eqn: Equation) -> list[list[Term]]:
    x, y = eqn.inputs
    if x in work.terms and y in work.terms:
        raise _Unknown
    if y in work.terms:
        if require_primitive(eqn).linear != "each":
            raise _Unknown
        x, y = y, x
    by = work.moved[y]
    return [[_times(work, t, by, eqn) for t in work.terms[x]]]


def _times(work: _Work, term: Term, by: Value, eqn: Equation) -> Term:
    op = require_primitive(eqn)
    is_new = op.linear == "each" and term.factor is None
    factor = by if is_new else op(work.full(term, eqn.output.type), by)
    return Term(factor, term.columns, term.has_gaps, False)


def _cast(work: _Work, eqn: Equation) -> list[list[Term]]:
    (x,) = eqn.inputs
    if not eqn.output.type.is_float or not x.type.is_float:
        raise _Unknown
    return [[replace(t, factor=_cast_factor(work, eqn, t)) for t in work.terms[x]]]


def _cast_factor(work: _Work, eqn: Equation, term: Term) -> Value | None:
    if term.factor is None:
        return None
    return work.builder.emit(eqn.op, [term.factor], eqn.kwargs)[0]


def _term(factor: Value | None, columns: Array, was_clean: bool) -> Term:
    gaps = bool(np.any(columns < 0))
    return Term(factor, columns, gaps, gaps and factor is not None and was_clean)


def _move_terms(work: _Work, eqn: Equation) -> list[list[Term]]:
    """Apply an equation that moves elements of its first operand, or inserts zeros."""
    op = require_primitive(eqn)
    moving = op.linear_operands(len(eqn.inputs))
    columns: list[Array] = [np.zeros(v.shape, np.int64) for v in eqn.inputs]
    factors: list[Value] = [work.moved.get(v, v) for v in eqn.inputs]
    listed: dict[int, list[Term]] = {}
    for i, value in enumerate(eqn.inputs):
        if value in work.terms and i in moving:
            listed[i] = work.terms[value]
        elif value in work.terms:
            raise _Unknown
        elif i in moving:
            work.require_zero(value)
        else:
            columns[i] = work.constant_array(value)
    found: list[list[Term]] = [[] for _ in eqn.outputs]
    for number in range(max(map(len, listed.values()))):
        chosen = {i: terms[number] for i, terms in listed.items() if number < len(terms)}
        for i in moving:
            term, value = chosen.get(i), eqn.inputs[i]
            columns[i] = np.zeros(value.shape, np.int64) if term is None else term.columns + 1
        plain = len(chosen) == len(moving) and all(t.factor is None for t in chosen.values())
        made: Sequence[Value | None] = [None for _ in eqn.outputs]
        if not plain:
            for i in moving:
                value = eqn.inputs[i]
                full = work.full(chosen[i], value.type) if i in chosen else zeros_like(value)
                factors[i] = full
            made = work.builder.emit(op, factors, eqn.kwargs)
        clean = all(t.is_clean for t in chosen.values())
        for k, places in enumerate(op.evaluate(columns, eqn.kwargs)):
            found[k].append(_term(made[k], np.asarray(places) - 1, clean))
    return found


def _scatter_terms(work: _Work, eqn: Equation) -> list[list[Term]]:
    x, y, *indices = eqn.inputs
    numbers = [work.constant_array(v) for v in indices]
    times = scatter_add.impl(
        np.zeros(x.shape, np.int64), np.ones(y.shape, np.int64), *numbers, **eqn.kwargs
    )
    if np.any(times > 1):
        raise _Unknown
    parts = [work.terms[x]] if x in work.terms else []
    if not parts:
        work.require_zero(x)
    if y not in work.terms:
        work.require_zero(y)
    places = [work.moved[v] for v in indices]
    spread = []
    for term in work.terms.get(y, []):
        operands = [zeros_like(x), work.full(term, y.type), *places]
        (factor,) = work.builder.emit(scatter_add, operands, eqn.kwargs)
        zeros = np.zeros(x.shape, np.int64)
        columns = scatter_add.impl(zeros, term.columns + 1, *numbers, **eqn.kwargs) - 1
        spread.append(_term(factor, columns, term.is_clean))
    return [work.sum([*parts, spread], x.type)]


def _select_terms(work: _Work, eqn: Equation) -> list[list[Term]]:
    condition, *sides = eqn.inputs
    if condition in work.terms:
        raise _Unknown
    parts = []
    for place, value in enumerate(sides):
        if value not in work.terms:
            work.require_zero(value)
            continue
        part = []
        for term in work.terms[value]:
            both = [zeros_like(value), zeros_like(value)]
            both[place] = work.full(term, value.type)
            part.append(replace(term, factor=select(work.moved[condition], *both)))
        parts.append(part)
    return [work.sum(parts, eqn.output.type)]


def _sum_terms(work: _Work, eqn: Equation) -> list[list[Term]]:
    """Split a short sum into one term per summand."""
    (x,) = eqn.inputs
    axes = eqn.kwargs["axes"]
    extents = [x.shape[a] for a in axes]
    if int(np.prod(extents)) > _SUMMANDS:
        raise _Unknown
    parts = []
    for place in product(*map(range, extents)):
        starts, sizes = [0] * len(x.shape), list(x.shape)
        for axis, start in zip(axes, place, strict=True):
            starts[axis], sizes[axis] = start, 1
        part = []
        for term in work.terms[x]:
            at = tuple(slice(s, s + n) for s, n in zip(starts, sizes, strict=True))
            columns = term.columns[at].reshape(eqn.output.shape)
            factor = term.factor
            if factor is not None:
                piece = slice_(
                    factor, starts=tuple(starts), sizes=tuple(sizes), steps=(1,) * len(x.shape)
                )
                factor = reshape(piece, shape=eqn.output.shape)
            part.append(_term(factor, columns, term.is_clean))
        parts.append(part)
    return [work.sum(parts, eqn.output.type)]


_RULES: dict[Op, Callable[[_Work, Equation], list[list[Term]]]] = {
    add: _add_terms,
    sub: _add_terms,
    neg: _negate_terms,
    mul: _scale_terms,
    div: _scale_terms,
    cast: _cast,
    scatter_add: _scatter_terms,
    select: _select_terms,
    reduce_sum: _sum_terms,
}


def _rule_of(eqn: Equation) -> Callable[[_Work, Equation], list[list[Term]]] | None:
    """The rule of a primitive; what moves tangents otherwise than operands has none."""
    op = eqn.op
    moves = isinstance(op, Primitive) and op.moves and op.pushforward_rule is None
    return _move_terms if moves else _RULES.get(op)


def elements_of(
    graph: Graph, keys: Array, wanted: Array, kinds: Array, most: float, *, chooses: bool = True
) -> Graph | None:
    """Return a graph of the `wanted` entries of the matrix that `graph` applies to its last input.

    The graph takes the other inputs. `keys` has, for each possibly nonzero entry in ascending
    order, `row * columns + column`. `wanted` has indices of such entries; those of one of the
    `kinds` may be evenly spaced. Return None as `terms_of` does.
    """
    found = terms_of(graph, most, chooses=chooses)
    if found is None:
        return None
    builder, other, terms = found
    if other is not None and full_value(builder, other) != 0:
        return None
    width = graph.inputs[-1].type.size
    type = graph.outputs[0].type
    parts = []
    for number, term in enumerate(terms):
        rows = np.flatnonzero(term.columns >= 0)
        own = rows * width + term.columns[rows]
        at = np.searchsorted(keys, own)
        inside = at < keys.size
        inside[inside] = keys[at[inside]] == own[inside]
        parts.append(np.stack([at[inside], np.full(inside.sum(), number), rows[inside]]))
    element, number, row = np.concatenate([np.zeros((3, 0), np.int64), *parts], axis=1)
    times = np.bincount(element, minlength=keys.size)
    with builder:
        factors = [filled_constant(1, type) if t.factor is None else t.factor for t in terms]
        if times.max(initial=0) <= 1:
            known = _known_factors(builder, factors)
            result = _join_runs(builder, factors, known, element, number, row, wanted, kinds, type)
        else:
            result = None
        if result is None:
            result = _gather_entries(builder, factors, element, number, row, wanted, times, type)
        return builder.graph([result])


def _known_factors(builder: Builder, factors: Sequence[Value]) -> dict[int, Array]:
    """Evaluate the factors that depend on no input, by their index."""
    body, _ = builder.computing(factors)
    varying = set(builder.inputs)
    for eqn in body:
        if eqn.op.stops or eqn.op.has_bodies or not varying.isdisjoint(eqn.inputs):
            varying.update(eqn.outputs)
    numbers = [i for i, v in enumerate(factors) if v not in varying]
    if not numbers:
        return {}
    with np.errstate(all="ignore"):
        found = interpret(builder.part([], [factors[i] for i in numbers]))
    return dict(zip(numbers, map(np.asarray, found), strict=True))


def _join_runs(
    builder: Builder,
    factors: Sequence[Value],
    known: Mapping[int, Array],
    element: Array,
    number: Array,
    row: Array,
    wanted: Array,
    kinds: Array,
    type: TensorType,
) -> Value | None:
    """Assemble the entries from evenly spaced slices of the factors; None if there are too many."""
    term_of = np.full(element.max(initial=-1) + 1, -1, np.int64)
    row_of = np.zeros_like(term_of)
    term_of[element], row_of[element] = number, row
    within = wanted < term_of.size
    term, place = np.full(wanted.size, -1, np.int64), np.zeros(wanted.size, np.int64)
    term[within], place[within] = term_of[wanted[within]], row_of[wanted[within]]
    runs = []
    base = np.zeros(wanted.size, type.dtype)
    for i, values in known.items():
        base[term == i] = values[place[term == i]]
    for i, kind in product(range(len(factors)), np.unique(kinds).tolist()):
        if i in known:
            continue
        target = np.flatnonzero((term == i) & (kinds == kind))
        for run in _runs(target, place[target]):
            runs.append((i, *run))
            if len(runs) > _SLICES:
                return None
    op, params = constant_op(base)
    (result,) = builder.emit(op, [], params)
    for i, first, start, count, step, stride in runs:
        piece = slice_(factors[i], starts=(start,), sizes=(count,), steps=(stride,))
        result = slice_assign(result, piece, starts=(first,), steps=(step,))
    return result


def _runs(target: Array, source: Array) -> Iterable[tuple[int, int, int, int, int]]:
    """Yield maximal runs of evenly spaced indices: starts, count, and both steps."""
    down, along = np.diff(target), np.diff(source)
    change = np.flatnonzero((down[1:] != down[:-1]) | (along[1:] != along[:-1])) + 1
    i = 0
    while i < target.size:
        if i == target.size - 1 or along[i] == 0:
            yield int(target[i]), int(source[i]), 1, 1, 1
            i += 1
            continue
        after = int(np.searchsorted(change, i, side="right"))
        end = int(change[after]) if after < change.size else down.size
        further = int(change[after + 1]) if after + 1 < change.size else down.size
        if end == i + 1 < further and along[end] != 0:
            # Two indices that belong to no run: the second one begins a longer run.
            end = i
        yield int(target[i]), int(source[i]), end - i + 1, int(down[i]), int(along[i])
        i = end + 1


def _gather_entries(
    builder: Builder,
    factors: Sequence[Value],
    element: Array,
    number: Array,
    row: Array,
    wanted: Array,
    times: Array,
    type: TensorType,
) -> Value:
    """Gather all entries from one vector at constant indices; add entries with several terms."""
    zero = filled_constant(0, type.with_shape((1,)))
    flat = concat(*factors, zero, axis=0)
    order = np.argsort(element, kind="stable")
    place = (number * type.size + row)[order]
    first = np.cumsum(times) - times
    total = None
    for turn in range(max(int(times.max(initial=0)), 1)):
        at = np.full(times.size, len(factors) * type.size, np.int64)
        has = times > turn
        at[has] = place[first[has] + turn]
        op, params = constant_op(at[wanted])
        (index,) = builder.emit(op, [], params)
        part = gather(flat, index, axis=0)
        total = part if total is None else add(total, part)
    assert total is not None
    return total
