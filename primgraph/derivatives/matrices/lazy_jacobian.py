"""Lazy Jacobian: rows and columns are evaluated on demand, once each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, final

import numpy as np

from primgraph.base.locks import cached_property
from primgraph.base.providers import provider
from primgraph.derivatives.matrices.layout import Layout, Matrix, Passes, only_mode, owned
from primgraph.derivatives.matrices.matrix_index import Selection
from primgraph.derivatives.matrices.row_cache import Pool, picked, zeros_of
from primgraph.derivatives.modes import record
from primgraph.derivatives.subgraph import Path
from primgraph.errors import MissingRuleError
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import recording
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.slices import forward_slice
from primgraph.ir.types import DType, TensorType
from primgraph.operators.elementwise.logic import equal, where
from primgraph.operators.promotion import broadcasted, lift, wrap
from primgraph.operators.shape.creation import eye, iota, one_hot
from primgraph.operators.shape.joining import sliced
from primgraph.operators.shape.shaping import expand_dims, moveaxis, reshape
from primgraph.operators.variable import Variable
from primgraph.primitives.elementwise import add, cast
from primgraph.primitives.parts import real
from primgraph.primitives.shapes import concat, split
from primgraph.primitives.shapes import reshape as reshape_
from primgraph.transforms.dataflow.activity import is_diagonal
from primgraph.transforms.jacobians.strong_zeros import strong_zeros
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.transpose import transpose

# Up to this many rows or columns are evaluated directly.
_FEW = 2


@final
class Slopes(Matrix):
    """Lazy matrix of derivatives of all `outputs` by all `inputs`, concatenated.

    Its shape is `(N, M)`, or `(B, N, M)` for `batch` independent samples. A row is one reverse pass
    for all samples at once, a column one forward pass. Rows or columns requested together are
    evaluated by one vectorised derivative, and cached. If `symmetric`, rows are read from columns.
    `mode`, "forward" or "reverse", selects columns or rows for all.

    `free` and `ends` are the builder's values for the free inputs and outputs of `path`; results
    are recorded in that builder. `places` has for each input of the matrix its index in `path.wrt`,
    None for an unused one.
    """

    def __init__(
        self,
        builder: Builder,
        path: Path,
        free: Sequence[Value],
        ends: Sequence[Value],
        outputs: Layout,
        inputs: Layout,
        places: Sequence[int | None],
        dtype: DType,
        *,
        symmetric: bool = False,
    ) -> None:
        self.builder = builder
        self.path = path
        self.free = list(free)
        self.ends = list(ends)
        self.outputs = outputs
        self.inputs = inputs
        self.places = list(places)
        self.dtype = dtype
        self.symmetric = symmetric
        # Rows of complex outputs by real inputs would have real parts only; so would columns of
        # real outputs by complex inputs.
        self.only = only_mode([v.type for v in path.wrt], [v.type for v in self.ends])
        self.mode: str | None = self.only
        self.passes = Passes()
        # The derivative along tangents, by whether it is to be transposed.
        self._linear: dict[bool, Graph] = {}
        self._forward: Graph | None = None
        self._reverse: dict[tuple[int, ...], Graph] = {}
        self._slope: Variable | None = None
        self._known_whole: Variable | None = None
        self._written: Variable | None = None
        self._is_dense = False
        self._is_diagonal = len(path.moved) == len(inputs.shapes) == len(
            outputs.shapes
        ) == 1 and is_diagonal(path.graph, path.moved)
        self._rows = Pool(builder)
        self._columns = Pool(builder)

    @property
    def name(self) -> str:
        return self.builder.name

    def zeros(self, type: TensorType) -> Variable:
        return zeros_of(self.builder, type)

    def arranged(self, block: Variable, selection: Selection) -> Variable:
        with recording(self.builder):
            if self.outputs.batch is not None:
                block = picked(block, 0, selection.samples)
            if selection.places is None:
                return reshape(block, selection.shape)
            return picked(reshape(block, (block.size,)), 0, selection.places)

    def block(self, rows: Sequence[int], columns: Sequence[int]) -> Variable:
        """Return the elements in `rows` and `columns`, by the mode that takes fewer passes.

        Both may have repetitions; the result has their order.
        """
        if self._is_diagonal:
            return self._diagonal_block(rows, columns)
        axis = len(self.outputs.lead())
        symmetric = self.symmetric and self.goes_forward
        by_rows = self._columns if symmetric else self._rows
        rows_missing, columns_missing = by_rows.missing(rows), self._columns.missing(columns)
        live = self._live_rows(rows_missing), self._live_columns(columns_missing)
        written = self._written_out(min(map(len, live)))
        if written is not None:
            return picked(picked(written, 0, rows), 1, columns)
        if self._is_by_columns(rows_missing, columns_missing):
            self._evaluate_columns(columns_missing)
            return picked(self._columns.joined(columns), axis, rows)
        if symmetric:
            self._evaluate_columns(rows_missing)
            turned = picked(self._columns.joined(rows), axis, columns)
            return moveaxis(turned, axis, axis + 1)
        self._evaluate_rows(rows_missing)
        return picked(self._rows.joined(rows), axis + 1, columns)

    def whole(self, rows: tuple[int, int], columns: tuple[int, int]) -> Variable:
        """Return ranges of rows and columns, given by start and number.

        The whole matrix is evaluated, in one pass vectorised over all unit vectors.
        """
        axis = len(self.outputs.lead())
        if self._known_whole is None or self._known_whole.value not in self.builder:
            self._known_whole = self._all()
        with recording(self.builder):
            return sliced(sliced(self._known_whole, axis, *rows), axis + 1, *columns)

    def _all(self) -> Variable:
        """Evaluate all rows and columns."""
        height, width = self.outputs.offsets()[-1], self.inputs.offsets()[-1]
        lead = self.outputs.lead()
        axis = len(lead)
        if not any(self.path.reached) or not self.path.moved:
            return zeros_of(self.builder, TensorType((*lead, height, width), self.dtype))
        if self._is_diagonal:
            (found,) = self._record(self._flat((0,)), [*self.free, None])
            with recording(self.builder):
                same = equal(iota((height, width), 0), iota((height, width), 1))
                return where(same, expand_dims(Variable(self.builder, found), axis + 1), 0.0)
        forward = self.goes_forward and (
            self.symmetric or self.mode == "forward" or not is_at_least(width, height)
        )
        if forward and self.mode != "reverse":
            return self._along_all(self.forward(), width, height, by_columns=True)
        flat = self._flat(self.outputs_all(), turned=True)
        last = len(self.free)
        turned = strong_zeros(transpose(flat, [last]), last)
        return self._along_all(turned, height, width, by_columns=False)

    def _along_all(
        self, derivative: Graph, count: int, extent: int, *, by_columns: bool
    ) -> Variable:
        """Apply `derivative` to `count` unit vectors; each gives a vector of `extent` elements."""
        lead = self.outputs.lead()
        last = len(self.free)
        with recording(self.builder):
            unit = eye(count, dtype=self.dtype)
            if lead:
                unit = broadcasted(reshape(unit, (count, 1, count)), (count, *lead, count))
            (found,) = self._record(
                derivative,
                [*self.free, unit.value],
                count=count,
                batched=(last,),
                identity=None if lead else last,
            )
            result = reshape(wrap(found), (count, *lead, extent))
            return moveaxis(result, 0, len(lead) + by_columns)

    def products(self, seeds: np.ndarray[Any, Any], *, by_columns: bool) -> Variable:
        """Multiply the matrix, or its transpose, with each row of `seeds`: shape `(k, -1)`,
        unbatched.

        A single row of ones is omitted if products are simpler that way.
        """
        if by_columns:
            derivative = self.forward()
        elif not any(self._moved_outputs):
            return zeros_of(
                self.builder, TensorType((len(seeds), self.inputs.offsets()[-1]), self.dtype)
            )
        else:
            derivative = self._turned(tuple(i for i, m in enumerate(self._moved_outputs) if m))
            seeds = seeds[:, owned(range(seeds.shape[1]), self.outputs, self._moved_outputs)]
        given: list[Value | None] = [*self.free, None]
        with recording(self.builder):
            if len(seeds) == 1:
                if not np.all(seeds == 1):
                    given[-1] = lift(seeds[0]).value
                (found,) = self._record(derivative, given)
                return expand_dims(wrap(found), 0)
            given[-1] = lift(seeds).value
            last, count = len(given) - 1, len(seeds)
            (found,) = self._record(derivative, given, count=count, batched=(last,))
            return wrap(found)

    def tangents(self) -> Graph:
        """Return the graph from free values and one tangent vector to that of all outputs."""
        return self._flat(self.outputs_all())

    def plain_forward(self) -> tuple[Graph, bool]:
        """Return `forward` without strong zeros, and whether these would make a difference."""
        flat, forward = self._flat(self.outputs_all()), self.forward()
        return clean_up(flat), len(flat.body) != len(forward.body)

    def recorded(self, values: Graph) -> Variable:
        """Record a graph of the free values that was made of derivatives."""
        (found,) = self._record(values, self.free)
        return Variable(self.builder, found)

    def outputs_all(self) -> tuple[int, ...]:
        """Indices of all outputs."""
        return tuple(range(len(self.outputs.shapes)))

    def _turned(self, used: tuple[int, ...]) -> Graph:
        """Return the graph from free values and a cotangent vector of `used` outputs to that of the
        inputs."""
        if used not in self._reverse:
            flat = self._flat(used, turned=True)
            last = len(self.free)
            self._reverse[used] = self._with_strong_zeros(transpose(flat, [last]))
        return self._reverse[used]

    def _written_out(self, wanted: int) -> Variable | None:
        """Return the whole matrix, if cached, or if its structure makes it cheap for `wanted`
        rows."""
        if self._written is not None and self._written.value in self.builder:
            return self._written
        if self._is_dense or wanted <= _FEW or self.mode not in (None, "forward"):
            return None
        structured = provider("structured Jacobians")
        found = None if self.only is not None else structured.whole_of(self, wanted)
        if found is None:
            self._is_dense = True
            return None
        self._written, passes = found
        self.passes = Passes(
            self.passes.reverse + passes.reverse, self.passes.forward + passes.forward
        )
        return self._written

    @cached_property
    def _moved_outputs(self) -> list[bool]:
        """Return which outputs have tangents: a reached output may still be constant."""
        if True not in self._linear:
            self._linear[True] = self.path.to_be_turned()
        linear = self._linear[True]
        moved = forward_slice(linear.body, linear.inputs[len(self.free) :])
        return [v in moved or v in linear.inputs for v in linear.outputs]

    def _is_by_columns(self, rows: Sequence[int], columns: Sequence[int]) -> bool:
        """Return whether evaluating these columns is cheaper than these rows."""
        if self.mode is not None:
            return self.mode == "forward"
        fewer = self.is_by_columns(len(self._live_rows(rows)), len(self._live_columns(columns)))
        return fewer and self.goes_forward

    def _diagonal_block(self, rows: Sequence[int], columns: Sequence[int]) -> Variable:
        """Return a block of a diagonal Jacobian: one pass computes the diagonal."""
        if self._slope is None or self._slope.value not in self.builder:
            flat = self._flat((0,))
            (found,) = self._record(flat, [*self.free, None])
            self._slope = Variable(self.builder, found)
            self.passes = Passes(self.passes.reverse, self.passes.forward + 1)
        axis = len(self.outputs.lead())
        down, across = np.array(rows)[:, None], np.array(columns)[None, :]
        with recording(self.builder):
            slope = expand_dims(picked(self._slope, axis, rows), axis + 1)
            return where(equal(lift(down), lift(across)), slope, 0.0)

    def _live_rows(self, numbers: Sequence[int]) -> list[int]:
        """Return the rows of outputs that depend on an input; the others are zero."""
        return owned(numbers, self.outputs, self.path.reached)

    def _live_columns(self, numbers: Sequence[int]) -> list[int]:
        """Return the columns of inputs that an output depends on; the others are zero."""
        return owned(numbers, self.inputs, [p is not None for p in self.places])

    def _evaluate_rows(self, numbers: list[int]) -> None:
        """Evaluate these rows together, through the outputs that they belong to."""
        axis, extent = len(self.outputs.lead()), self.inputs.offsets()[-1]
        live = owned(numbers, self.outputs, self._moved_outputs)
        self._add_zeros(self._rows, numbers, live, axis, extent)
        numbers = live
        if not numbers:
            return
        offsets = self.outputs.offsets()
        owners = np.searchsorted(offsets, numbers, side="right") - 1
        used = tuple(sorted(set(owners.tolist())))
        extents = [self.outputs.extents()[i] for i in used]
        starts = dict(zip(used, accumulate(extents[:-1], initial=0), strict=True))
        local = [starts[o] + n - offsets[o] for o, n in zip(owners.tolist(), numbers, strict=True)]
        found = self._apply(self._turned(used), local, sum(extents))
        self._rows.add(numbers, found, axis)
        self.passes = Passes(self.passes.reverse + len(numbers), self.passes.forward)

    def _evaluate_columns(self, numbers: list[int]) -> None:
        axis, extent = len(self.outputs.lead()), self.outputs.offsets()[-1]
        live = self._live_columns(numbers)
        self._add_zeros(self._columns, numbers, live, axis + 1, extent)
        numbers = live
        if not numbers:
            return
        found = self._apply(self.forward(), numbers, self.inputs.offsets()[-1])
        self._columns.add(numbers, moveaxis(found, axis, axis + 1), axis + 1)
        self.passes = Passes(self.passes.reverse, self.passes.forward + len(numbers))

    def forward(self) -> Graph:
        """Return the graph from free values and one tangent vector to that of the outputs."""
        if self._forward is None:
            flat = self._flat(self.outputs_all())
            self._forward = self._with_strong_zeros(flat)
        return self._forward

    def _with_strong_zeros(self, derivative: Graph) -> Graph:
        return strong_zeros(derivative, len(self.free), self.path.ranges_inside())

    @cached_property
    def goes_forward(self) -> bool:
        """Return whether forward mode exists: it does not for a custom cotangent rule that is not
        linear."""
        try:
            self.forward()
        except MissingRuleError:
            return False
        return True

    def _add_zeros(
        self, pool: Pool, numbers: Sequence[int], live: Sequence[int], axis: int, extent: int
    ) -> None:
        """Cache zeros for the `numbers` not in `live`; each has `extent` elements."""
        dead = sorted(set(numbers) - set(live))
        if dead:
            shape = [*self.outputs.lead(), extent]
            shape.insert(axis, len(dead))
            pool.add(dead, zeros_of(self.builder, TensorType(tuple(shape), self.dtype)), axis)

    def _apply(self, derivative: Graph, numbers: list[int], extent: int) -> Variable:
        """Apply `derivative` to unit vectors: shape `(k, -1)`, or `(B, k, -1)` if batched."""
        batch = self.outputs.batch
        count = len(numbers)
        given: list[Value | None] = [*self.free]
        with recording(self.builder):
            if extent == 1:
                given.append(None)
            else:
                unit = one_hot(np.array(numbers), extent, self.dtype)
                if batch is not None:
                    unit = broadcasted(reshape(unit, (count, 1, extent)), (count, batch, extent))
                given.append((unit[0] if count == 1 else unit).value)
            if count == 1:
                (found,) = self._record(derivative, given)
                result = wrap(found)
                return reshape(result, (*result.shape[:-1], 1, result.shape[-1]))
            last = len(given) - 1
            whole = batch is None and numbers == list(range(extent))
            (found,) = self._record(
                derivative, given, count=count, batched=(last,), identity=last if whole else None
            )
            return wrap(found) if batch is None else moveaxis(wrap(found), 0, 1)

    def _record(self, derivative: Graph, given: Sequence[Value | None], **more: Any) -> list[Value]:
        return record(self.builder, self.path, derivative, given, ends=self.ends, **more)

    def _flat(self, used: tuple[int, ...], *, turned: bool = False) -> Graph:
        """Return the graph from free values and one tangent vector to that of the `used`
        outputs."""
        if turned not in self._linear:
            self._linear[turned] = self.path.to_be_turned() if turned else self.path.jvp()
        linear = self._linear[turned]
        builder = Builder(linear.name, source=NOWHERE)
        free = [builder.input(v.type, v.hint) for v in self.path.graph.inputs]
        lead = self.inputs.lead()
        tangent = builder.input(TensorType((*lead, self.inputs.offsets()[-1]), self.dtype))
        with builder:
            parts = self._parted(tangent)
            tangents = builder.inline(linear, [*free, *parts])
            pieces = []
            for i in used:
                shape = (*lead, self.outputs.extents()[i])
                pieces.append(_cast(reshape_(tangents[i], shape=shape), self.dtype))
            whole = concat(*pieces, axis=len(lead)) if len(pieces) > 1 else pieces[0]
        return builder.graph([whole])

    def _parted(self, tangent: Value) -> list[Value]:
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
