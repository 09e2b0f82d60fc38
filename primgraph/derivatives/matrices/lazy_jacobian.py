"""Lazy Jacobian: rows and columns of an operator, evaluated on demand, once each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, final

import numpy as np

from primgraph.base.providers import provider
from primgraph.derivatives.matrices.layout import Matrix, Passes, Selection, select_kept_numbers
from primgraph.derivatives.matrices.operator import JacobianOperator
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.builder import Builder
from primgraph.ir.primitive import recording
from primgraph.ir.types import TensorType
from primgraph.operators.elementwise.logic import equal, where
from primgraph.operators.index.indexing import take
from primgraph.operators.promotion import lift
from primgraph.operators.shape.creation import iota
from primgraph.operators.shape.joining import concatenate, slice_axis
from primgraph.operators.shape.shaping import expand_dims, moveaxis, reshape
from primgraph.operators.variable import Variable

# Up to this many rows or columns are evaluated directly.
_FEW = 2


@final
class LazyJacobian(Matrix):
    """Matrix of an operator: shape `(N, M)`, or `(B, N, M)` for a batch of B samples.

    A row is one reverse pass for all samples at once, a column one forward pass. Rows or columns
    requested together are evaluated by one vectorised derivative, and cached. Rows of a symmetric
    matrix are read from columns. `mode`, "forward" or "reverse", selects columns or rows for all.
    """

    def __init__(self, operator: JacobianOperator) -> None:
        self.operator = operator
        self.outputs, self.inputs, self.dtype = operator.outputs, operator.inputs, operator.dtype
        self.only = self.mode = operator.only
        self.passes = Passes()
        self._is_dense = False
        # The diagonal, or all elements, if evaluated at once.
        self._known: Variable | None = None
        self._rows = Pool(operator.builder)
        self._columns = Pool(operator.builder)

    @property
    def name(self) -> str:
        return self.operator.builder.name

    def zeros(self, type: TensorType) -> Variable:
        return self.operator.zeros(type)

    def arrange_block(self, block: Variable, selection: Selection) -> Variable:
        with recording(self.operator.builder):
            if self.outputs.batch is not None:
                block = take_entries(block, 0, selection.samples)
            if selection.places is None:
                return reshape(block, selection.shape)
            return take_entries(reshape(block, (block.size,)), 0, selection.places)

    def block(self, rows: Sequence[int], columns: Sequence[int]) -> Variable:
        """Return the elements in `rows` and `columns`, by the mode that takes fewer passes.

        Both may have repetitions; the result has their order.
        """
        if self.operator.is_diagonal:
            return self._diagonal_block(rows, columns)
        axis = len(self.outputs.lead())
        symmetric = self.operator.symmetric and self.operator.goes_forward
        by_rows = self._columns if symmetric else self._rows
        rows_missing, columns_missing = (
            by_rows.missing_numbers(rows),
            self._columns.missing_numbers(columns),
        )
        live = len(self._live_rows(rows_missing)), len(self._live_columns(columns_missing))
        written = self._written_out(min(live))
        if written is not None:
            return take_entries(take_entries(written, 0, rows), 1, columns)
        if self._goes_by_columns(*live):
            self._evaluate_columns(columns_missing)
            return take_entries(self._columns.join_blocks(columns), axis, rows)
        if symmetric:
            self._evaluate_columns(rows_missing)
            turned = take_entries(self._columns.join_blocks(rows), axis, columns)
            return moveaxis(turned, axis, axis + 1)
        self._evaluate_rows(rows_missing)
        return take_entries(self._rows.join_blocks(rows), axis + 1, columns)

    def whole(self, rows: tuple[int, int], columns: tuple[int, int]) -> Variable:
        """Return ranges of rows and columns, given by start and number.

        The whole matrix is evaluated, in one pass vectorised over all unit vectors.
        """
        axis = len(self.outputs.lead())
        known = self._cached_value()
        if known is None:
            known = self._known = self._all()
        with recording(self.operator.builder):
            return slice_axis(slice_axis(known, axis, *rows), axis + 1, *columns)

    def _cached_value(self) -> Variable | None:
        """Return what was evaluated at once, unless it was recorded in a scratch and is gone."""
        known = self._known
        return known if known is not None and known.value in self.operator.builder else None

    def _all(self) -> Variable:
        """Evaluate all rows and columns."""
        operator, (height, width) = self.operator, self.operator.shape
        lead = self.outputs.lead()
        if operator.is_zero:
            return self.zeros(TensorType((*lead, height, width), self.dtype))
        if operator.is_diagonal:
            diagonal = operator.diagonal()
            with recording(operator.builder):
                same = equal(iota((height, width), 0), iota((height, width), 1))
                return where(same, expand_dims(diagonal, len(lead) + 1), 0.0)
        forward = operator.goes_forward and (
            operator.symmetric or self.mode == "forward" or is_at_least(height, width)
        )
        return operator.full_matrix(by_columns=forward and self.mode != "reverse")

    def _written_out(self, wanted: int) -> Variable | None:
        """Return the whole matrix, if cached, or if its structure makes it cheap for `wanted`
        rows."""
        known = self._cached_value()
        if known is not None:
            return known
        if self._is_dense or wanted <= _FEW or self.mode not in (None, "forward"):
            return None
        sparse = provider("sparse Jacobians")
        found = None if self.only is not None else sparse.whole_of(self.operator, self.mode, wanted)
        if found is None:
            self._is_dense = True
            return None
        self._known, passes = found
        self._count(passes.reverse, passes.forward)
        return self._known

    def _count(self, reverse: int, forward: int) -> None:
        self.passes = Passes(self.passes.reverse + reverse, self.passes.forward + forward)

    def _goes_by_columns(self, rows: int, columns: int) -> bool:
        """Return whether evaluating so many columns is cheaper than so many rows."""
        if self.mode is not None:
            return self.mode == "forward"
        return self.is_by_columns(rows, columns) and self.operator.goes_forward

    def _diagonal_block(self, rows: Sequence[int], columns: Sequence[int]) -> Variable:
        """Return a block of a diagonal Jacobian: one pass computes the diagonal."""
        known = self._cached_value()
        if known is None:
            known = self._known = self.operator.diagonal()
            self._count(0, 1)
        axis = len(self.outputs.lead())
        down, across = np.array(rows)[:, None], np.array(columns)[None, :]
        with recording(self.operator.builder):
            diagonal = expand_dims(take_entries(known, axis, rows), axis + 1)
            return where(equal(lift(down), lift(across)), diagonal, 0.0)

    def _live_rows(self, numbers: Sequence[int]) -> list[int]:
        """Return the rows of outputs that depend on an input; the others are zero."""
        return select_kept_numbers(numbers, self.outputs, self.operator.path.reached)

    def _live_columns(self, numbers: Sequence[int]) -> list[int]:
        """Return the columns of inputs that an output depends on; the others are zero."""
        return select_kept_numbers(
            numbers, self.inputs, [p is not None for p in self.operator.places]
        )

    def _evaluate_rows(self, missing: list[int]) -> None:
        """Evaluate these rows together, through the outputs that they belong to."""
        axis = len(self.outputs.lead())
        numbers = select_kept_numbers(missing, self.outputs, self.operator.moved_outputs)
        self._add_zeros(self._rows, missing, numbers, axis)
        if not numbers:
            return
        offsets = self.outputs.offsets()
        owners = (np.searchsorted(offsets, numbers, side="right") - 1).tolist()
        used = tuple(sorted(set(owners)))
        extents = [self.outputs.extents()[i] for i in used]
        starts = dict(zip(used, accumulate(extents[:-1], initial=0), strict=True))
        local = [starts[o] + n - offsets[o] for o, n in zip(owners, numbers, strict=True)]
        found = self.operator.apply_to_units(self.operator.reverse(used), local, sum(extents))
        self._rows.add(numbers, found, axis)
        self._count(len(numbers), 0)

    def _evaluate_columns(self, missing: list[int]) -> None:
        axis, numbers = len(self.outputs.lead()), self._live_columns(missing)
        self._add_zeros(self._columns, missing, numbers, axis + 1)
        if not numbers:
            return
        found = self.operator.apply_to_units(self.operator.forward, numbers, self.operator.shape[1])
        self._columns.add(numbers, moveaxis(found, axis, axis + 1), axis + 1)
        self._count(0, len(numbers))

    def _add_zeros(
        self, pool: Pool, numbers: Sequence[int], live: Sequence[int], axis: int
    ) -> None:
        """Cache zeros for the rows or columns `numbers` that are not `live`."""
        dead = sorted(set(numbers) - set(live))
        if dead:
            shape = [*self.outputs.lead(), *self.operator.shape]
            shape[axis] = len(dead)
            pool.add(dead, self.zeros(TensorType(tuple(shape), self.dtype)), axis)


@final
class Pool:
    """Cache of rows or columns: maps a number to a variable and an index in it."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.axis = 0
        self.known: dict[int, tuple[Variable, int]] = {}

    def missing_numbers(self, numbers: Sequence[int]) -> list[int]:
        """Return the `numbers` that are not cached, sorted and unique.

        Values recorded in a scratch of the builder are gone with it.
        """
        return sorted(
            n
            for n in set(numbers)
            if n not in self.known or self.known[n][0].value not in self.builder
        )

    def add(self, numbers: Sequence[int], found: Variable, axis: int) -> None:
        """Cache the rows or columns `numbers`, which are `found` along `axis`."""
        self.axis = axis
        self.known.update((n, (found, i)) for i, n in enumerate(numbers))

    def join_blocks(self, numbers: Sequence[int]) -> Variable:
        """Return these rows or columns, in this order, as one variable."""
        with recording(self.builder):
            values = {self.known[n][0].value: self.known[n][0] for n in numbers}
            starts = accumulate((v.shape[self.axis] for v in values.values()), initial=0)
            start = dict(zip(values, starts, strict=False))
            parts = list(values.values())
            whole = concatenate(parts, axis=self.axis) if len(parts) > 1 else parts[0]
        places = [start[self.known[n][0].value] + self.known[n][1] for n in numbers]
        return take_entries(whole, self.axis, places)


def take_entries(x: Variable, axis: int, places: Sequence[int] | np.ndarray[Any, Any]) -> Variable:
    """Return the entries of `axis` at `places`, by a slice if they are evenly spaced.

    The axes of `places` replace `axis`.
    """
    numbers = np.asarray(places)
    with recording(x.recorder):
        if numbers.ndim == 1 and len(numbers):
            steps = np.diff(numbers)
            step = int(steps[0]) if len(steps) else 1
            if step != 0 and bool(np.all(steps == step)):
                return slice_axis(x, axis, int(numbers[0]), len(numbers), step)
        return take(x, numbers, axis=axis)
