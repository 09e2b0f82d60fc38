"""Structural zeros of a seed: they stay zero in a derivative, whatever they are multiplied by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias, final

from primgraph.ir.builder import Builder
from primgraph.ir.dims import Dim
from primgraph.ir.facts.choices import JOINS, NAN_OF
from primgraph.ir.facts.ranges import Range
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.rebuild import NOWHERE, copy, full_value, rebuild
from primgraph.ir.types import BOOL, INT64
from primgraph.primitives.constants import full, zeros_like
from primgraph.primitives.elementwise import add, cast, div, mul, neg, sub
from primgraph.primitives.indexing import gather, scatter_add
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.logic import logical_and, logical_or, not_equal, select, unless_nan
from primgraph.primitives.parts import complex_, conj, imag, real
from primgraph.primitives.reductions import cumsum, reduce_max, reduce_sum
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
from primgraph.primitives.windows import overlap_add, windows
from primgraph.transforms.dataflow.contract import primitives_only, transform
from primgraph.transforms.dataflow.value_bounds import ranges_of, slope_stays_finite

# Support of each operand: a condition where it may be nonzero, None if unknown.
_Supports: TypeAlias = Sequence[Value | None]


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def strong_zeros(
    graph: Graph, seed: int, given: Mapping[int, Range] = MappingProxyType({})
) -> Graph:
    """Rewrite the derivative `graph` so that zeros of the input at `seed` meet no infinite factor.

    Seed zeros are structural: a Jacobian entry without a path is exactly zero, although 0 * inf
    would be NaN. The support of the seed is propagated as a condition. Products with factors that
    may be infinite or NaN are masked outside the support. A graph without such factors is returned
    unchanged. `given` maps input positions to ranges that differ from finite.
    """
    ranges = ranges_of(graph, {graph.inputs[i]: known for i, known in given.items()})
    if not any(_is_risky(eqn, ranges) for eqn in graph.body):
        return graph
    builder, moved = rebuild(graph)
    place = graph.inputs[seed]
    with builder:
        follow = _SupportPropagation(builder, moved, ranges)
        follow.supports[place] = not_equal(place, zeros_like(place))
        for eqn in graph.body:
            builder.source = eqn.source or NOWHERE
            follow.record(eqn)
        return builder.graph([moved[v] for v in graph.outputs])


def _is_risky(eqn: Equation, ranges: dict[Value, Range]) -> bool:
    """Return whether a product or quotient with zero may be nonzero or NaN."""
    if not isinstance(eqn.op, Primitive):
        return False
    tested = eqn.op.fact(NAN_OF)
    if tested is not None:
        return ranges[eqn.inputs[tested]].nan
    places = eqn.op.linear_operands(len(eqn.inputs), eqn.kwargs)
    return not all(slope_stays_finite(eqn, i, ranges) for i in places)


@final
class _SupportPropagation:
    """Copies equations, and propagates the supports of their results."""

    def __init__(
        self, builder: Builder, moved: dict[Value, Value], ranges: dict[Value, Range]
    ) -> None:
        self.builder = builder
        self.moved = moved
        self.ranges = ranges
        self.supports: dict[Value, Value] = {}

    def record(self, eqn: Equation) -> None:
        copy(self.builder, eqn, self.moved)
        if self.supports.keys().isdisjoint(eqn.inputs) and not self._joins_zeros(eqn):
            return
        rule = _RULES.get(eqn.op)
        found = (
            None
            if rule is None
            else rule(eqn, [self._find_support(v) for v in eqn.inputs], self.moved)
        )
        if found is None:
            return
        listed = found if isinstance(found, tuple) else (found,)
        self.supports.update(zip(eqn.outputs, listed, strict=True))
        if not isinstance(found, tuple) and _is_risky(eqn, self.ranges):
            result = self.moved[eqn.output]
            self.moved[eqn.output] = select(found, result, zeros_like(result))

    def _joins_zeros(self, eqn: Equation) -> bool:
        """Return whether zeros are joined with a derivative: these zeros are structural."""
        return eqn.is_derived and eqn.op.fact(JOINS) and any(map(self._is_zero, eqn.inputs))

    def _is_zero(self, value: Value) -> bool:
        if value.type.is_complex:
            return full_value(self.builder, self.moved[value]) == 0
        known = self.ranges[value]
        return value.type.is_float and known.is_number and known.low == 0

    def _find_support(self, value: Value) -> Value | None:
        """Return the support of `value`, None if it is unknown."""
        if value in self.supports:
            return self.supports[value]
        if self._is_zero(value):
            return full(value=False, shape=value.shape, dtype=BOOL)
        return None


_Found: TypeAlias = "Value | tuple[Value, ...] | None"
_Rule: TypeAlias = Callable[[Equation, _Supports, dict[Value, Value]], _Found]


def _both(eqn: Equation, supports: _Supports, moved: dict[Value, Value]) -> _Found:
    """Return the support of a product: the intersection of the factors' supports."""
    left, right = supports
    if left is None or right is None:
        return right if left is None else left
    return logical_and(left, right)


def _either(eqn: Equation, supports: _Supports, moved: dict[Value, Value]) -> _Found:
    left, right = supports
    if left is None or right is None:
        return None
    return logical_or(left, right)


def _numerator(eqn: Equation, supports: _Supports, moved: dict[Value, Value]) -> _Found:
    return supports[0]


def _select(eqn: Equation, supports: _Supports, moved: dict[Value, Value]) -> _Found:
    _, x, y = map(_or_everywhere, eqn.inputs, supports)
    return select(moved[eqn.inputs[0]], x, y)


def _or_everywhere(value: Value, support: Value | None) -> Value:
    """Return `support`, or true everywhere if it is unknown."""
    return full(value=True, shape=value.shape, dtype=BOOL) if support is None else support


def _move_supports(eqn: Equation, supports: _Supports, moved: dict[Value, Value]) -> _Found:
    """Move supports as the equation moves elements."""
    assert isinstance(eqn.op, Primitive)
    pairs = zip(eqn.inputs, supports, strict=True)
    operands = [_or_everywhere(v, s) if v.type.is_inexact else moved[v] for v, s in pairs]
    found: _Found = eqn.op(*operands, **eqn.kwargs)
    return found


def _scatter_add(eqn: Equation, supports: _Supports, moved: dict[Value, Value]) -> _Found:
    whole, part, *_ = supports
    if whole is None or part is None:
        return None
    indices = [moved[v] for v in eqn.inputs[2:]]
    counts = cast(whole, dtype=INT64), cast(part, dtype=INT64)
    total = scatter_add(*counts, *indices, **eqn.kwargs)
    return not_equal(total, zeros_like(total))


def _reduce_supports(eqn: Equation, supports: _Supports, moved: dict[Value, Value]) -> _Found:
    return _any(supports[0], eqn.kwargs["axes"])


def _cumsum(eqn: Equation, supports: _Supports, moved: dict[Value, Value]) -> _Found:
    """Return the support of a cumulative sum: from the first nonzero element on."""
    (support,) = supports
    if support is None:
        return None
    total = cumsum(cast(support, dtype=INT64), **eqn.kwargs)
    return not_equal(total, zeros_like(total))


def _overlap_add(eqn: Equation, supports: _Supports, moved: dict[Value, Value]) -> _Found:
    (support,) = supports
    if support is None:
        return None
    total = overlap_add(cast(support, dtype=INT64), **eqn.kwargs)
    return not_equal(total, zeros_like(total))


def _any(support: Value | None, axes: tuple[int, ...]) -> Value | None:
    if support is None or support.type.size == 0:
        return None
    if any(type(support.shape[a]) is Dim for a in axes):
        # An empty axis has no maximum.
        total = reduce_sum(cast(support, dtype=INT64), axes=axes)
        return not_equal(total, zeros_like(total))
    return reduce_max(support, axes=axes)


def _matmul(eqn: Equation, supports: _Supports, moved: dict[Value, Value]) -> _Found:
    """Return the support of a product: nonzero rows of the left, columns of the right factor."""
    shape, last = eqn.output.shape, eqn.output.type.ndim - 1
    parts = [_any(s, (a,)) for s, a in zip(supports, (last, last - 1), strict=True)]
    spread: list[Value | None] = [
        None if part is None else broadcast(part, shape=shape, new_axes=(axis,))
        for part, axis in zip(parts, (last, last - 1), strict=True)
    ]
    return _both(eqn, spread, moved)


_RULES: dict[Op, _Rule] = {
    add: _either,
    sub: _either,
    mul: _both,
    matmul: _matmul,
    div: _numerator,
    neg: _numerator,
    unless_nan: _numerator,
    select: _select,
    reduce_sum: _reduce_supports,
    cumsum: _cumsum,
    cast: _numerator,
    real: _numerator,
    imag: _numerator,
    conj: _numerator,
    complex_: _either,
    scatter_add: _scatter_add,
    overlap_add: _overlap_add,
    **dict.fromkeys(
        (broadcast, concat, gather, pad, permute, reshape, reverse, slice_, slice_assign, split),
        _move_supports,
    ),
    windows: _move_supports,
}
