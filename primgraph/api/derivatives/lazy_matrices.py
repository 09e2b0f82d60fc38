"""Lazy Jacobians and Hessians of tensors, evaluated by indexing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from primgraph import operators as pg
from primgraph.derivatives.matrices.layout import Layout, Matrix, Passes, Selection, only_mode
from primgraph.derivatives.request import require_direction, require_scalar
from primgraph.eager.derivatives import recording
from primgraph.eager.derivatives.other_modes import (
    answers,
    argument,
    dependent_nodes,
    depends_beyond,
)
from primgraph.eager.node import Node, array_node
from primgraph.eager.tensor import Tensor, family_of, tensors_in
from primgraph.errors import NotDifferentiable, ShapeError
from primgraph.ir.frontend.signature import call_user_function
from primgraph.ir.types import TensorType, as_dtype


@final
class LazyTensorJacobian(Matrix):
    """Lazy matrix of derivatives of all `outputs` by all `inputs`, which are tensors.

    It is differentiable if `tracked`.

    Requested rows and columns are cached, as lazy tensors. The rows of a Hessian are its columns.
    """

    def __init__(
        self,
        name: str,
        outputs: Sequence[Node],
        inputs: Sequence[Node],
        family: type[Tensor],
        batch: int | None,
        *,
        check: bool,
        tracked: bool,
    ) -> None:
        self._name = name
        self._outputs, self._inputs = list(outputs), list(inputs)
        self._family = family
        self._check = check
        self._tracked = tracked
        ends = self._inputs if name == "Hessian" else self._outputs
        self.outputs = Layout(tuple(n.type.shape for n in ends), batch)
        self.inputs = Layout(tuple(n.type.shape for n in inputs), batch)
        self.dtype = as_dtype(np.result_type(*(n.type.dtype for n in (*outputs, *inputs))))
        self.passes = Passes()
        inner = [n.type for n in inputs], [n.type for n in outputs]
        self.only = self.mode = None if name == "Hessian" else only_mode(*inner)
        known = dependent_nodes(outputs, inputs)
        self._depends = any(n in known for n in outputs)
        self._kept: tuple[dict[int, tuple[Tensor, int]], ...] = ({}, {})

    @property
    def name(self) -> str:
        return "tensors"

    def zeros(self, type: TensorType) -> Tensor:
        return self._family(array_node(np.zeros(type.shape, type.dtype)))

    def arrange_block(self, block: Any, selection: Selection) -> Any:
        if self.outputs.batch is not None:
            block = pg.take(block, np.array(selection.samples), axis=0)
        if selection.places is None:
            return pg.reshape(block, selection.shape)
        return pg.take(pg.ravel(block), np.asarray(selection.places))

    def block(self, rows: Sequence[int], columns: Sequence[int]) -> Any:
        lead = len(self.outputs.lead())
        if self._name == "Hessian":
            if len(self._missing_numbers(1, rows)) < len(self._missing_numbers(1, columns)):
                turned = pg.take(self._strips(1, rows), np.array(columns), axis=lead)
                return pg.swapaxes(turned, lead, lead + 1)
            return pg.take(self._strips(1, columns), np.array(rows), axis=lead)
        missing = len(self._missing_numbers(0, rows)), len(self._missing_numbers(1, columns))
        by_columns = self.is_by_columns(*missing) if self.mode is None else self.mode == "forward"
        if by_columns:
            return pg.take(self._strips(1, columns), np.array(rows), axis=lead)
        return pg.take(self._strips(0, rows), np.array(columns), axis=lead + 1)

    def _missing_numbers(self, axis: int, numbers: Sequence[int]) -> list[int]:
        return sorted(set(numbers) - self._kept[axis].keys())

    def _strips(self, axis: int, numbers: Sequence[int]) -> Any:
        """Return these rows (axis 0) or columns (axis 1), in order; missing ones are evaluated."""
        kept, missing = self._kept[axis], self._missing_numbers(axis, numbers)
        if missing:
            found = self._evaluate(axis, missing)
            kept.update((n, (found, i)) for i, n in enumerate(missing))
            counts = [self.passes.reverse, self.passes.forward]
            counts[axis] += len(missing)
            self.passes = Passes(*counts)
        along = len(self.outputs.lead()) + axis
        parts = list({id(kept[n][0]): kept[n][0] for n in numbers}.values())
        starts, start = {}, 0
        for part in parts:
            starts[id(part)] = start
            start += part.shape[along]
        whole = pg.concatenate(parts, along) if len(parts) > 1 else parts[0]
        places = [starts[id(kept[n][0])] + kept[n][1] for n in numbers]
        return pg.take(whole, np.array(places), axis=along)

    def _evaluate(self, axis: int, numbers: Sequence[int]) -> Tensor:
        shape = [self.outputs.offsets()[-1], self.inputs.offsets()[-1]]
        shape[axis] = len(numbers)
        type = TensorType((*self.outputs.lead(), *shape), self.dtype)
        if not self._depends:
            return self.zeros(type)
        options = {
            "of": self._name,
            "axis": axis,
            "numbers": tuple(numbers),
            "is_batched": self.outputs.batch is not None,
            "check": self._check,
        }
        tracked = self._tracked and recording.is_on.get()
        outputs, inputs = self._outputs, self._inputs
        (found,) = answers("strips", outputs, inputs, [type], tracked=tracked, options=options)
        return self._family(found)


def matrix_of(
    name: str, function: Any, inputs: Any, is_batched: bool, check: bool, holomorphic: bool
) -> tuple[Matrix, bool]:
    """Return the matrix of a function of tensors, or of computed tensors, and whether there is one
    output.

    Raises `NotDifferentiable` for dtypes other than floats and for tensors that do not require
    gradients, `NotScalarError` for a Hessian of several elements, `ShapeError` for arrays without
    samples.
    """
    tensors = tensors_in(inputs)
    family = family_of(tensors)
    starts = [t.node for t in tensors]
    made = function
    if callable(function) and not isinstance(function, Tensor):
        starts = [argument(n) for n in starts]
        with recording.enable_grad(), recording.mark_differentiated():
            made = call_user_function(function, *[family(n) for n in starts])
    results = tensors_in(made)
    ends = [t.node for t in results]
    for role, nodes in (("input", starts), ("output", ends)):
        for i, node in enumerate(nodes):
            if not node.type.is_inexact:
                raise NotDifferentiable(
                    f"{name}: {role} {i} is {node.type}, and only floats have derivatives"
                )
    types = [n.type for n in starts], [n.type for n in ends]
    require_direction(name, *types, holomorphic, of_one=name == "Hessian")
    if name == "Hessian" and any(t.is_complex for t in types[0]):
        raise NotDifferentiable(
            "Hessian: a gradient by complex numbers is not holomorphic, and has no derivative by "
            "them that is a single number",
            hint="take the Hessian by real and imaginary parts: z = pg.complex(x, y)",
        )
    if not all(n.tracked for n in starts):
        raise NotDifferentiable(
            f"{name}: an input does not require grad",
            hint="set requires_grad=True before computing with it, or give a function",
        )
    batch = _batch_extent(name, [*starts, *ends]) if is_batched else None
    if name == "Hessian":
        if len(ends) != 1:
            raise ShapeError(f"Hessian takes one output, not {len(ends)}")
        require_scalar(name, results[0], int(is_batched))
    tracked = made is function or depends_beyond(ends, starts)
    found = LazyTensorJacobian(name, ends, starts, family, batch, check=check, tracked=tracked)
    return found, isinstance(made, Tensor)


def _batch_extent(name: str, nodes: Sequence[Node]) -> int:
    """Return the size of axis 0, which all share."""
    extents = {n.type.shape[:1] for n in nodes}
    if len(extents) != 1 or extents == {()}:
        types = ", ".join(str(n.type) for n in nodes)
        raise ShapeError(f"{name}: with is_batched, axis 0 has one extent in {types}")
    ((extent,),) = extents
    return extent
