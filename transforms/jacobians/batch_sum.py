"""The sum of a function over samples, with the sum taken as early as linearity allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from primgraph.errors import BuildError, MissingRuleError
from primgraph.ir.builder import Builder
from primgraph.ir.contract import primitives_only, transform
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.rebuild import NOWHERE, require_primitive, written
from primgraph.ir.slices import forward_slice
from primgraph.ir.types import TensorType
from primgraph.primitives.constants import filled
from primgraph.primitives.elementwise import mul
from primgraph.primitives.reductions import reduce_sum


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def batch_sum(graph: Graph, size: int, axes: Sequence[int | None]) -> Graph:
    """Turn `f(x) -> y` into `(x_1, ..., x_size) -> f(x_1) + ... + f(x_size)`.

    `axes` has 0 for each input that gets a leading axis of that size and None for one that all
    samples share. The result is that of `batch`, summed over the new axis, but for rounding.
    What is linear in all that differs between samples is applied once, to the sum, instead of
    `size` times: for second derivatives along several directions that is half of the work and
    more (the forward Laplacian; R. Li et al., A computational framework for neural network-based
    variational Monte Carlo with Forward Laplacian, 2024).

    Raises `MissingRuleError` where a primitive has no batching rule.
    """
    if len(axes) != len(graph.inputs) or not set(axes) <= {0, None}:
        raise BuildError(f"axes are 0 or None, one for each of {len(graph.inputs)} inputs")
    batched = [v for v, axis in zip(graph.inputs, axes, strict=True) if axis == 0]
    differing = forward_slice(graph.body, batched)
    summed, spread = _demands(graph, differing)
    builder = Builder(f"{graph.name}_sum", source=NOWHERE)
    copies = _Copies(builder, size, differing)
    with builder:
        for value in graph.inputs:
            lead = (size,) if value in differing else ()
            moved = builder.input(TensorType((*lead, *value.shape), value.dtype), value.hint)
            copies.each[value] = moved
            if value in summed:
                copies.total[value] = copies.sum_of(value)
        for eqn in graph.body:
            builder.source = eqn.source or NOWHERE
            copies.record(eqn, summed, spread)
        return builder.graph([copies.sum_of(v) for v in graph.outputs])


def _demands(graph: Graph, differing: set[Value]) -> tuple[set[Value], set[Value]]:
    """Which differing values are wanted as a sum, and which for each sample."""
    summed = {v for v in graph.outputs if v in differing}
    spread: set[Value] = set()
    for eqn in reversed(graph.body):
        if not differing.isdisjoint(eqn.outputs):
            inputs = {v for v in eqn.inputs if v in differing}
            if not summed.isdisjoint(eqn.outputs):
                (summed if _is_linear(eqn, differing) else spread).update(inputs)
            if not spread.isdisjoint(eqn.outputs):
                spread |= inputs
    return summed, spread


def _is_linear(eqn: Equation, differing: set[Value]) -> bool:
    """Whether the equation is linear in the operands that differ between samples."""
    op = require_primitive(eqn)
    places = [i for i, v in enumerate(eqn.inputs) if v in differing]
    if not set(places) <= set(op.linear_operands(len(eqn.inputs))):
        return False
    if any(_is_narrower(eqn.inputs[i].type, v.type) for i in places for v in eqn.outputs):
        return False
    return len(places) == 1 if op.linear == "each" else all(v.type.is_float for v in eqn.outputs)


def _is_narrower(x: TensorType, y: TensorType) -> bool:
    """Whether sums of `x` overflow, wrap round or are rounded where sums of `y` are not."""
    return x.dtype != y.dtype and not (x.is_float and x.dtype.itemsize > y.dtype.itemsize)


@final
class _Copies:
    """Where the values of a graph went: one for each sample, the same for all, or their sum."""

    def __init__(self, builder: Builder, size: int, differing: set[Value]) -> None:
        self.builder = builder
        self.size = size
        self.differing = differing
        self.each: dict[Value, Value] = {}
        self.total: dict[Value, Value] = {}

    def sum_of(self, value: Value) -> Value:
        """The sum over all samples of `value`."""
        if value in self.total:
            return self.total[value]
        same = self.each[value]
        if value in self.differing:
            result = reduce_sum(same, axes=(0,))
        else:
            result = mul(same, filled(self.size, same.type))
        self.total[value] = result
        return result

    def record(self, eqn: Equation, summed: set[Value], spread: set[Value]) -> None:
        """Record what is wanted of the results of `eqn`."""
        if self.differing.isdisjoint(eqn.outputs):
            found = self.builder.copy(eqn, tuple(self.each[v] for v in eqn.inputs))
            self.each.update(zip(eqn.outputs, found, strict=True))
            return
        wants_sum = not summed.isdisjoint(eqn.outputs)
        linear = wants_sum and _is_linear(eqn, self.differing)
        if not spread.isdisjoint(eqn.outputs) or (wants_sum and not linear):
            self._record_each(eqn)
        if linear:
            self._record_sum(eqn)

    def _record_each(self, eqn: Equation) -> None:
        op = require_primitive(eqn)
        flags = tuple(v in self.differing for v in eqn.inputs)
        try:
            rule = op.batch_rule
        except MissingRuleError as error:
            raise error.located(written(eqn)) from None
        found = rule(flags, *(self.each[v] for v in eqn.inputs), **eqn.kwargs)
        self.each.update(zip(eqn.outputs, found if op.multiple else (found,), strict=True))

    def _record_sum(self, eqn: Equation) -> None:
        op = require_primitive(eqn)
        linear = op.linear_operands(len(eqn.inputs))
        one_each = op.linear == "each"
        operands = [
            self.sum_of(v) if v in self.differing or (i in linear and not one_each)
            else self.each[v]
            for i, v in enumerate(eqn.inputs)
        ]  # fmt: skip
        sums = self.builder.emit(op, operands, eqn.kwargs)
        self.total.update(zip(eqn.outputs, sums, strict=True))
