"""Rewrites equations into simpler ones that give the same bits.

Every rule here is exact for NaN, infinities and both zeros: `x + 0` is not `x` for x = -0, so
only `x + (-0)` is rewritten; `x * 0` is not 0 for an infinite x, so it stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive, recording
from primgraph.ir.types import TensorType
from primgraph.primitives.constants import filled
from primgraph.primitives.elementwise import add, cast, div, integer_pow, mul, neg, sub
from primgraph.primitives.logic import logical_not, select
from primgraph.primitives.shapes import broadcast, concat, permute, reshape, reverse, slice_
from primgraph.transforms.contract import primitives_only, transform
from primgraph.transforms.dead_code import dead_code
from primgraph.transforms.rebuild import NOWHERE, copy, full_value, rebuild

# A rule sees the operands in the new graph and answers with a replacement, or None.
SimplifyRule: TypeAlias = Callable[["_Seen", list[Value], dict[str, Any]], Value | None]

# Gives the results of an equation as constants of the builder, or None.
Fold: TypeAlias = Callable[[Builder, Equation, list[Value]], list[Value] | None]

rules: dict[Op, list[SimplifyRule]] = {}


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def simplify(graph: Graph) -> Graph:
    """Apply the exact rules of this file in one pass, in order of definition, and clean up."""
    return simplified(graph, lambda builder, eqn, inputs: None)


def simplified(graph: Graph, fold: Fold) -> Graph:
    """Rewrite each equation by `fold`, else by the rules, else copy it; then clean up."""
    builder, moved = rebuild(graph)
    seen = _Seen(builder)
    with recording(seen), np.errstate(all="ignore"):
        for eqn in graph.body:
            inputs = [moved[v] for v in eqn.inputs]
            builder.source = eqn.source or NOWHERE
            results = fold(builder, eqn, inputs)
            if results is None and eqn.op in rules:
                results = seen.rewrite(eqn.op, inputs, eqn.kwargs, eqn.outputs[0].type)
            if results is None:
                copy(builder, eqn, moved)
            else:
                moved.update(zip(eqn.outputs, results, strict=True))
    return dead_code(builder.graph([moved[v] for v in graph.outputs]))


@final
class _Seen:
    """What the rules may ask: about the operands, and the type of the result.

    What they record is rewritten by the rules in its turn.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.source = builder.source
        self.expands = builder.expands
        self.stopped = builder.stopped
        self.rename = builder.rename
        self.hold = builder.hold
        self.type: TensorType

    def emit(self, op: Op, inputs: Sequence[Value], params: dict[str, Any]) -> tuple[Value, ...]:
        type = op.infer(tuple(v.type for v in inputs), params)[0]
        better = self.rewrite(op, list(inputs), params, type)
        return self.builder.emit(op, inputs, params) if better is None else tuple(better)

    def rewrite(
        self, op: Op, inputs: list[Value], params: dict[str, Any], type: TensorType
    ) -> list[Value] | None:
        for rule in rules.get(op, ()):
            self.type = type
            better = rule(self, inputs, params)
            if better is not None:
                return [better]
        return None

    def scalar(self, value: Value) -> bool | int | float | None:
        """The scalar that all elements of `value` equal, if that is known."""
        return full_value(self.builder, value)

    def made_by(self, op: Primitive, value: Value) -> Equation | None:
        """The equation that computes `value`, if it applies `op`."""
        eqn = self.builder.definition(value)
        return eqn if eqn is not None and eqn.op is op else None

    def inside(self, op: Primitive, value: Value) -> Value | None:
        """`x` if `value` is `op(x)`."""
        eqn = self.made_by(op, value)
        return eqn.inputs[0] if eqn is not None else None


def rule(*ops: Primitive) -> Callable[[SimplifyRule], SimplifyRule]:
    """Declare a rule for these primitives; rules of one primitive are tried in order."""

    def declare(function: SimplifyRule) -> SimplifyRule:
        for op in ops:
            rules.setdefault(op, []).append(function)
        return function

    return declare


def _is_zero(scalar: bool | int | float | None, sign: float) -> bool:
    """Whether `scalar` is a zero of that sign; integers have one zero only."""
    if scalar is None or scalar != 0:
        return False
    return not isinstance(scalar, float) or math.copysign(1.0, scalar) == sign


# Arithmetic.


@rule(add)
def _add(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x + (-0)` is `x`; `x + (-y)` is `x - y`."""
    x, y = inputs
    for left, right in ((x, y), (y, x)):
        if _is_zero(seen.scalar(right), -1.0):
            return left
        negated = seen.inside(neg, right)
        if negated is not None:
            return left - negated
    return None


@rule(sub)
def _sub(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x - 0` is `x`; `x - (-y)` is `x + y`."""
    x, y = inputs
    if _is_zero(seen.scalar(y), 1.0):
        return x
    negated = seen.inside(neg, y)
    return None if negated is None else x + negated


@rule(neg)
def _neg(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`-(-x)` is `x`; `-(c * x)` is `(-c) * x`."""
    negated = seen.inside(neg, inputs[0])
    if negated is not None:
        return negated
    product = seen.made_by(mul, inputs[0])
    if product is not None and product.inputs[0].type.is_float:
        for c, x in (product.inputs, product.inputs[::-1]):
            scalar = seen.scalar(c)
            if scalar is not None:
                return x * -scalar
    return None


@rule(mul)
def _mul(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`1 * x` is `x`; `-1 * x` is `-x`; signs move out of products."""
    x, y = inputs
    for c, other in ((x, y), (y, x)):
        scalar = seen.scalar(c)
        if scalar == 1:
            return other
        if scalar == -1:
            return -other
        negated = seen.inside(neg, other)
        if negated is not None and x.type.is_float:
            return negated * -scalar if scalar is not None else -(c * negated)
    return None


@rule(div)
def _div(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x / 1` is `x`; signs move out of quotients."""
    x, y = inputs
    if seen.scalar(y) == 1:
        return x
    negated = seen.inside(neg, x)
    if negated is not None:
        return -(negated / y)
    negated = seen.inside(neg, y)
    return None if negated is None else -(x / negated)


@rule(integer_pow)
def _integer_pow(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`x**1` is `x`; `x**0` is 1, for NaN too."""
    if params["n"] == 0:
        return filled(1, inputs[0].type)
    return inputs[0] if params["n"] == 1 else None


@rule(cast)
def _cast(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """A cast to the dtype that is there already."""
    return inputs[0] if inputs[0].dtype == params["dtype"] else None


@rule(logical_not)
def _logical_not(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    return seen.inside(logical_not, inputs[0])


@rule(select)
def _select(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """A choice between equals, by a constant, or once more by the same condition."""
    condition, x, y = inputs
    known = seen.scalar(condition)
    if known is not None:
        return x if known else y
    if x is y:
        return x
    inner = seen.made_by(select, x)
    if inner is not None and inner.inputs[0] is condition:
        return _chosen(condition, inner.inputs[1], y)
    inner = seen.made_by(select, y)
    if inner is not None and inner.inputs[0] is condition:
        return _chosen(condition, x, inner.inputs[2])
    return None


def _chosen(condition: Value, x: Value, y: Value) -> Value:
    if x is y:
        return x
    result: Value = select(condition, x, y)
    return result


# Structure.


@rule(reshape, permute, broadcast, reverse, slice_)
def _of_uniform(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Moving the elements of a uniform array gives a uniform array."""
    scalar = seen.scalar(inputs[0])
    if scalar is None:
        return None
    return filled(scalar, seen.type)


@rule(reshape)
def _reshape(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """A reshape to the same shape, or of a reshape."""
    if inputs[0].shape == params["shape"]:
        return inputs[0]
    inner = seen.inside(reshape, inputs[0])
    if inner is None:
        return None
    return inner if inner.shape == params["shape"] else _reshaped(inner, params["shape"])


def _reshaped(x: Value, shape: tuple[int, ...]) -> Value:
    result: Value = reshape(x, shape=shape)
    return result


@rule(permute)
def _permute(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """A permutation that changes nothing, or of a permutation."""
    axes = params["axes"]
    if list(axes) == sorted(axes):
        return inputs[0]
    inner = seen.made_by(permute, inputs[0])
    if inner is None:
        return None
    both = tuple(inner.kwargs["axes"][a] for a in axes)
    if list(both) == sorted(both):
        return inner.inputs[0]
    result: Value = permute(inner.inputs[0], axes=both)
    return result


@rule(broadcast)
def _broadcast(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """A broadcast along no axis, or of a broadcast."""
    new_axes, shape = params["new_axes"], params["shape"]
    if not new_axes:
        return inputs[0]
    inner = seen.made_by(broadcast, inputs[0])
    if inner is None:
        return None
    old = [i for i in range(len(shape)) if i not in new_axes]
    both = (*new_axes, *(old[a] for a in inner.kwargs["new_axes"]))
    result: Value = broadcast(inner.inputs[0], shape=shape, new_axes=tuple(sorted(both)))
    return result


@rule(reverse)
def _reverse(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """A reversal of nothing, or back again."""
    if not params["axes"]:
        return inputs[0]
    inner = seen.made_by(reverse, inputs[0])
    same = inner is not None and sorted(inner.kwargs["axes"]) == sorted(params["axes"])
    return inner.inputs[0] if same and inner is not None else None


@rule(slice_)
def _slice(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """A slice that takes everything in order."""
    whole = inputs[0].shape == params["sizes"] and all(s == 1 for s in params["steps"])
    return inputs[0] if whole else None


@rule(concat)
def _concat(seen: _Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """One operand alone."""
    return inputs[0] if len(inputs) == 1 else None
