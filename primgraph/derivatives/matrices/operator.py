"""Jacobian of a request as a linear operator, in both modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from primgraph.base.locks import cached_property
from primgraph.derivatives.matrices.layout import Layout, only_mode, select_kept_numbers
from primgraph.derivatives.modes import record
from primgraph.derivatives.request import Request
from primgraph.errors import MissingRuleError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import recording
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.slices import forward_slice
from primgraph.ir.types import DType, TensorType, as_dtype
from primgraph.operators.promotion import broadcast_to_shape, lift, wrap
from primgraph.operators.shape.creation import eye, one_hot
from primgraph.operators.shape.shaping import expand_dims, moveaxis, reshape
from primgraph.operators.variable import Variable
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.elementwise import add, cast
from primgraph.primitives.parts import real
from primgraph.primitives.shapes import concat, split
from primgraph.primitives.shapes import reshape as reshape_
from primgraph.transforms.jacobians.strong_zeros import strong_zeros
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.transpose import transpose


@final
class JacobianOperator:
    """Linear map from one tangent vector of all inputs to that of all outputs, and its transpose.

    A vector has the elements of all arrays, concatenated; with `batch`, there is one for each of
    the independent samples. If `symmetric`, the map is its own transpose. Products are recorded in
    the builder. `places` has for each input its index in `path.wrt`, None for an unused one.
    """

    def __init__(
        self, request: Request, batch: int | None = None, *, symmetric: bool = False
    ) -> None:
        inputs, outputs, path = request.inputs, request.outputs, request.path
        self.request, self.builder, self.path = request, request.builder, path
        self.symmetric = symmetric
        self.outputs = Layout(tuple([v.shape for v in outputs]), batch)
        self.inputs = Layout(tuple([v.shape for v in inputs]), batch)
        place = {v: i for i, v in enumerate(path.wrt)}
        self.places = [place.get(v) for v in request.sources]
        self.dtype = as_dtype(np.result_type(*(v.dtype for v in (*inputs, *outputs))))
        # Rows of complex outputs by real inputs would have real parts only; so would columns of
        # real outputs by complex inputs.
        self.only = only_mode([v.type for v in path.wrt], [v.type for v in outputs])
        self._turned: dict[tuple[int, ...], Graph] = {}

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.outputs.offsets()[-1], self.inputs.offsets()[-1]

    @property
    def is_diagonal(self) -> bool:
        """Whether one output depends elementwise on one input."""
        return len(self.inputs.shapes) == len(self.outputs.shapes) == 1 and self.path.is_diagonal

    @property
    def is_zero(self) -> bool:
        """Whether no output depends on an input."""
        return not self.path.moved or not any(self.path.reached)

    @cached_property
    def tangents(self) -> Graph:
        """Graph from free values and one tangent vector to that of all outputs."""
        return self._flat(self.path.jvp(), range(len(self.outputs.shapes)))

    @cached_property
    def forward(self) -> Graph:
        """Graph `tangents` with strong zeros."""
        return self._with_strong_zeros(self.tangents)

    @cached_property
    def goes_forward(self) -> bool:
        """Whether forward mode exists: it does not for a custom cotangent rule that is not
        linear."""
        try:
            return self.forward is not None
        except MissingRuleError:
            return False

    def plain_forward(self) -> tuple[Graph, bool]:
        """Return `forward` without strong zeros, and whether these would make a difference."""
        return clean_up(self.tangents), len(self.tangents.body) != len(self.forward.body)

    def reverse(self, used: tuple[int, ...]) -> Graph:
        """Return the graph from free values and a cotangent vector of `used` outputs to that of the
        inputs."""
        if used not in self._turned:
            turned = transpose(self._flat(self._cotangents, used), [len(self.path.free)])
            self._turned[used] = self._with_strong_zeros(turned)
        return self._turned[used]

    @cached_property
    def moved_outputs(self) -> list[bool]:
        """Which outputs have tangents: a reached output may still be constant."""
        linear = self._cotangents
        moved = forward_slice(linear.body, linear.inputs[len(self.path.free) :])
        return [v in moved or v in linear.inputs for v in linear.outputs]

    @cached_property
    def _cotangents(self) -> Graph:
        return self.path.jvp_to_transpose()

    def products(self, seeds: np.ndarray[Any, Any], *, by_columns: bool) -> Variable:
        """Multiply the operator, or its transpose, with each row of `seeds`: shape `(k, -1)`,
        unbatched.

        A single row of ones is omitted if products are simpler that way.
        """
        if by_columns:
            derivative = self.forward
        elif not any(self.moved_outputs):
            return self.zeros(TensorType((len(seeds), self.shape[1]), self.dtype))
        else:
            derivative = self.reverse(tuple(i for i, m in enumerate(self.moved_outputs) if m))
            seeds = seeds[
                :, select_kept_numbers(range(seeds.shape[1]), self.outputs, self.moved_outputs)
            ]
        with recording(self.builder):
            if len(seeds) == 1:
                seed = None if np.all(seeds == 1) else lift(seeds[0]).value
                return expand_dims(self.record_derivative(derivative, [seed]), 0)
            return self.record_derivative(derivative, [lift(seeds).value], len(seeds))

    def apply_to_units(self, derivative: Graph, numbers: list[int], extent: int) -> Variable:
        """Apply `derivative` to unit vectors: shape `(k, -1)`, or `(B, k, -1)` if batched."""
        batch, count = self.outputs.batch, len(numbers)
        with recording(self.builder):
            seed = None
            if extent != 1:
                unit = one_hot(np.array(numbers), extent, self.dtype)
                if batch is not None:
                    unit = broadcast_to_shape(
                        reshape(unit, (count, 1, extent)), (count, batch, extent)
                    )
                seed = (unit[0] if count == 1 else unit).value
            if count == 1:
                result = self.record_derivative(derivative, [seed])
                return reshape(result, (*result.shape[:-1], 1, result.shape[-1]))
            is_whole = batch is None and numbers == list(range(extent))
            found = self.record_derivative(derivative, [seed], count, is_whole)
            return found if batch is None else moveaxis(found, 0, 1)

    def full_matrix(self, *, by_columns: bool) -> Variable:
        """Return all columns, or all rows, of a matrix whose sizes may be symbolic."""
        extent, count = self.shape if by_columns else self.shape[::-1]
        if by_columns:
            derivative = self.forward
        else:
            every, last = range(len(self.outputs.shapes)), len(self.path.free)
            derivative = strong_zeros(transpose(self._flat(self._cotangents, every), [last]), last)
        lead = self.outputs.lead()
        with recording(self.builder):
            unit = eye(count, dtype=self.dtype)
            if lead:
                unit = broadcast_to_shape(reshape(unit, (count, 1, count)), (count, *lead, count))
            found = self.record_derivative(derivative, [unit.value], count, not lead)
            result = reshape(found, (count, *lead, extent))
            return moveaxis(result, 0, len(lead) + by_columns)

    def diagonal(self) -> Variable:
        """Return the diagonal of a diagonal Jacobian, by one forward pass."""
        return self.record_derivative(self.tangents, [None])

    def record_derivative(
        self,
        derivative: Graph,
        seeds: Sequence[Value | None] = (),
        count: int | None = None,
        identity: bool = False,
    ) -> Variable:
        """Record a graph of the free values and `seeds`; see `record`."""
        (found,) = record(self.path, derivative, seeds, count=count, identity=identity)
        return Variable(self.builder, found)

    def zeros(self, type: TensorType) -> Variable:
        """Return zeros of that type in the builder."""
        with recording(self.builder):
            return wrap(filled_constant(0, type))

    def _with_strong_zeros(self, derivative: Graph) -> Graph:
        return strong_zeros(derivative, len(self.path.free), self.path.ranges_inside())

    def _flat(self, linear: Graph, used: Sequence[int]) -> Graph:
        """Return `linear` as a graph from one tangent vector to that of the `used` outputs."""
        builder = Builder(linear.name, source=NOWHERE)
        free = [builder.input(v.type, v.hint) for v in self.path.graph.inputs]
        lead = self.inputs.lead()
        tangent = builder.input(TensorType((*lead, self.shape[1]), self.dtype))
        with builder:
            tangents = builder.inline(linear, [*free, *self._split_tangent(tangent)])
            pieces = []
            for i in used:
                shape = (*lead, self.outputs.extents()[i])
                pieces.append(_cast(reshape_(tangents[i], shape=shape), self.dtype))
            whole = concat(*pieces, axis=len(lead)) if len(pieces) > 1 else pieces[0]
        return builder.graph([whole])

    def _split_tangent(self, tangent: Value) -> list[Value]:
        """Split a tangent vector into tangents of `path.wrt`, added up for an input listed
        twice."""
        axis = len(self.inputs.lead())
        extents = tuple(self.inputs.extents())
        parts = split(tangent, sizes=extents, axis=axis) if len(extents) > 1 else (tangent,)
        found: dict[int, Value] = {}
        for i, place in enumerate(self.places):
            if place is None:
                continue
            shaped = reshape_(parts[i], shape=self.inputs.shapes[i])
            part = _cast(shaped, self.path.wrt[place].dtype)
            found[place] = add(found[place], part) if place in found else part
        return [found[i] for i in range(len(self.path.wrt))]


def _cast(x: Value, dtype: DType) -> Value:
    if x.type.is_complex and dtype.kind != "c":
        x = real(x)
    return x if x.dtype == dtype else cast(x, dtype=dtype)
