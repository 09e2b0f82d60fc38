"""Sum of a function over samples, with the sum moved as early as linearity allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from primgraph.errors import BuildError, MissingRuleError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.rebuild import NOWHERE, origin_lines, require_primitive
from primgraph.ir.slices import forward_slice
from primgraph.ir.types import TensorType
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.elementwise import mul
from primgraph.primitives.reductions import reduce_sum
from primgraph.transforms.dataflow.contract import primitives_only, transform


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def batch_sum(graph: Graph, size: int, axes: Sequence[int | None]) -> Graph:
    """Turn `f(x) -> y` into `(x_1, ..., x_size) -> f(x_1) + ... + f(x_size)`.

    `axes` has 0 for each input that gets a leading axis of that size and None for one that all
    samples share. The result is that of `batch`, summed over the new axis, up to rounding. An
    equation that is linear in all operands that differ between samples is applied once to the sum,
    instead of `size` times. For second derivatives along several directions that halves the work or
    better (the forward Laplacian; R. Li et al., A computational framework for neural network-based
    variational Monte Carlo with Forward Laplacian, 2024).

    Raises `MissingRuleError` where a primitive has no batching rule.

    >>> graph = pg.trace(lambda a, x: a * x, pg.spec(3), pg.spec(3))
    >>> print(pg.transforms.batch_sum(graph, 4, [None, 0]))
    graph f_sum(%a: f64[3], %x: f64[4,3]) {
      %0: f64[3] = reduce_sum(%x, axes=(0,))
      %1: f64[3] = mul(%a, %0)
      return %1
    }
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
    """Return the batched values of which the sum is needed, and those needed per sample."""
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
    """Return whether the equation is linear in the operands that differ between samples."""
    op = require_primitive(eqn)
    places = [i for i, v in enumerate(eqn.inputs) if v in differing]
    if not set(places) <= set(op.linear_operands(len(eqn.inputs))):
        return False
    if any(_is_narrower(eqn.inputs[i].type, v.type) for i in places for v in eqn.outputs):
        return False
    return len(places) == 1 if op.linear == "each" else all(v.type.is_float for v in eqn.outputs)


def _is_narrower(x: TensorType, y: TensorType) -> bool:
    """Return whether sums of dtype `x` overflow, wrap or round where sums of `y` do not."""
    return x.dtype != y.dtype and not (x.is_float and x.dtype.itemsize > y.dtype.itemsize)


@final
class _Copies:
    """Recorded copies of a graph's values: one per sample, or shared by all, or summed."""

    def __init__(self, builder: Builder, size: int, differing: set[Value]) -> None:
        self.builder = builder
        self.size = size
        self.differing = differing
        self.each: dict[Value, Value] = {}
        self.total: dict[Value, Value] = {}

    def sum_of(self, value: Value) -> Value:
        """Return the sum of `value` over all samples, recorded once."""
        if value in self.total:
            return self.total[value]
        same = self.each[value]
        if value in self.differing:
            result = reduce_sum(same, axes=(0,))
        else:
            result = mul(same, filled_constant(self.size, same.type))
        self.total[value] = result
        return result

    def record(self, eqn: Equation, summed: set[Value], spread: set[Value]) -> None:
        """Record the results of `eqn` that are needed, per sample or summed."""
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
            raise error.located(origin_lines(eqn)) from None
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
