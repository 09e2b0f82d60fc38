"""Axes of size 1 that a person would write differently than the graph has them.

Reductions that are only broadcast back keep their axes: `np.sum(x, axis=1, keepdims=True)`. A
matrix-vector product is written as such, `a @ x`, not with a matrix of one column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, final

import numpy as np

from primgraph.codegen.ir.schedule import Schedule, Step, is_repetition, seen_shape
from primgraph.ir.dims import names_in
from primgraph.ir.facts.choices import JOINS
from primgraph.ir.facts.passes import SOLVES
from primgraph.ir.primitive import Op
from primgraph.ir.types import Shape
from primgraph.ir.views import Permute, Reshape, Slice
from primgraph.primitives.indexing import places_in
from primgraph.primitives.linear_algebra.products import CONTRACTS
from primgraph.primitives.reductions import REDUCES


def shown_shapes(schedule: Schedule, aligned: Collection[Op]) -> dict[int, Shape]:
    """Return the shapes of values that are written with other axes of size 1.

    `aligned` are the elementwise primitives that are written as expressions of any operands. Values
    joined by these have a common shape. It may differ from the graph's if all definitions and uses
    of these values support that.
    """
    # Only these can be written in another shape.
    if not any(map(_may_change, schedule.steps)):
        return {}
    groups = _Groups(schedule)
    numbers = groups.numbers
    joining = [_joins(s, aligned) for s in schedule.steps]
    for step, joins in zip(schedule.steps, joining, strict=True):
        if joins:
            operands = [v for v in step.inputs if v not in numbers]
            for value in operands:
                groups.join(value, step.outputs[0])
            if not operands:
                groups.record_shape(step.outputs[0], None)
    for value in (*range(schedule.inputs), *schedule.outputs):
        groups.record_shape(value, None)
    for step, joins in zip(schedule.steps, joining, strict=True):
        if not joins:
            _ask(groups, step)
    return groups.answers()


def _may_change(step: Step) -> bool:
    """Return whether a step may be written in another shape by itself."""
    op = step.op
    return op.fact(REDUCES) or op.fact(CONTRACTS) or takes_numbers(step) or _reshapes(step)


def _reshapes(step: Step) -> bool:
    return step.op.is_view and isinstance(step.form.seen[0], Reshape)


def _turns_vector(step: Step) -> bool:
    """Return whether a step transposes a matrix of a single row or column."""
    how = step.form.seen[0] if step.op.is_view else None
    return isinstance(how, Permute) and len(how.axes) == 2 and 1 in step.operands[0].shape


def _joins(step: Step, aligned: Collection[Op]) -> bool:
    """Return whether the operands and the result of a step are written in one shape."""
    return step.op.stops or (step.op.elementwise and step.op in aligned)


@final
class _Groups:
    """Groups of values (union-find) whose axes of size 1 change together, or not at all."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.numbers = {v for s in schedule.steps if s.number is not None for v in s.outputs}
        self._leader = list(range(len(schedule.types)))
        # Required shapes; None forbids a change.
        self._asked: dict[int, set[Shape | None]] = defaultdict(set)
        # Preferred shapes, as others need a reshape.
        self._wished: dict[int, set[Shape]] = defaultdict(set)
        # Values that are reshaped, and the results.
        self._reshaped: list[tuple[int, int]] = []
        # Shapes that a value may have instead of its own, one for each step that allows it.
        self._allowed: dict[int, list[Shape]] = defaultdict(list)
        # Distinct values whose shapes change together.
        self._tied: list[tuple[int, int]] = []

    def join(self, value: int, other: int) -> None:
        """Unify the shapes of two values."""
        self._leader[self._find(value)] = self._find(other)

    def tie(self, value: int, other: int) -> None:
        """Let a value change its shape only if the other one does, too."""
        self._tied.append((value, other))

    def record_shape(self, value: int, shape: Shape | None) -> None:
        """Record a shape in which a value is computed or read."""
        self._asked[value].add(shape)

    def allow_shape(self, value: int, shape: Shape) -> None:
        """Record that a step computes or reads a value in its own shape or in another one."""
        self._allowed[value].append(shape)

    def record_reshape(self, value: int, result: int) -> None:
        """Record a reshape, which is not written if the value has the shape of the result.

        A value without axes of size 1 is preferred, whatever it is reshaped to.
        """
        self._wished[value].add(self.schedule.types[result].shape)
        self._reshaped.append((value, result))

    def _find(self, value: int) -> int:
        leader = self._leader
        while leader[value] != value:
            leader[value] = leader[leader[value]]
            value = leader[value]
        return value

    def answers(self) -> dict[int, Shape]:
        """Return the agreed shapes that differ from the values' own."""
        types = self.schedule.types
        wanted: dict[int, set[Shape | None]] = defaultdict(set)
        for value, shapes in self._asked.items():
            wanted[self._find(value)] |= shapes
        wished: dict[int, set[Shape]] = defaultdict(set)
        for value, hoped in self._wished.items():
            wished[self._find(value)] |= hoped
        allowed: dict[int, set[Shape]] = defaultdict(set)
        for value, options in self._allowed.items():
            allowed[self._find(value)].update(options)
        agreed: dict[int, Shape] = {}
        for group in {**wanted, **allowed}:
            shapes = {*wanted[group], *allowed[group]}
            shape = next(iter(shapes))
            alone = len(shapes) == 1 and shape is not None and shape != types[group].shape
            if alone and shape is not None and (1 not in shape or wished[group] <= {shape}):
                agreed[group] = shape
        for value, result in self._reshaped:
            one, other = self._find(value), self._find(result)
            if agreed.get(one) == types[other].shape and agreed.get(other) == types[one].shape:
                # The result has the shape of the value already.
                agreed.pop(one)
        beside: dict[int, list[int]] = defaultdict(list)
        for pair in self._tied:
            one, other = map(self._find, pair)
            beside[one].append(other)
            beside[other].append(one)
        waiting = [g for g in beside if g not in agreed]
        while waiting:
            for other in beside.pop(waiting.pop(), ()):
                if agreed.pop(other, None) is not None:
                    waiting.append(other)
        found = {v: agreed.get(self._find(v)) for v in range(len(types))}
        return {v: shape for v, shape in found.items() if shape is not None}


def _ask(groups: _Groups, step: Step) -> None:
    """Record the shapes that a step supports which is not elementwise."""
    x, result = step.inputs[:1], step.outputs[0]
    if step.op.fact(REDUCES):
        groups.record_shape(x[0], None)
        groups.record_shape(result, _keepdims_shape(step))
    elif is_repetition(step):
        groups.record_shape(x[0], seen_shape(step, 0))
        groups.record_shape(result, None)
    elif _turns_vector(step) or (_reshapes(step) and _is_alike(step)):
        groups.record_reshape(x[0], result)
        groups.record_shape(result, _squeeze_shape(step.operands[0].shape))
    elif step.op.fact(CONTRACTS) and _vectors(step):
        _ask_product(groups, step)
    elif takes_vector(step):
        groups.record_shape(x[0], None)
        for value in (step.inputs[1], result):
            groups.record_shape(value, step.operands[1].shape[:1])
        groups.tie(step.inputs[1], result)
    elif step.eqn.array is not None and result not in groups.schedule.outputs:
        # A constant is written in any shape.
        return
    elif step.op.is_view and isinstance(step.form.seen[0], Slice):
        groups.record_shape(x[0], None)
        for k, value in enumerate(step.outputs):
            _allow_dropped(groups, step, k, value)
    elif joins_parts(step):
        _ask_joined(groups, step)
    elif takes_numbers(step):
        groups.record_shape(result, None)
        for value, type in zip(step.inputs, step.operands, strict=True):
            if type.shape == (1,) and assigned_indices(step) is not None:
                groups.allow_shape(value, ())
            else:
                groups.record_shape(value, None)
    elif step.number is None:
        for value in (*step.inputs, *step.outputs):
            groups.record_shape(value, None)


def _allow_dropped(groups: _Groups, step: Step, k: int, value: int) -> None:
    """Allow a slice without the axes of which it takes one of several elements: `x[:, 0]`."""
    dropped = dropped_axes(step, k)
    shape = step.results[k].shape
    if dropped:
        groups.allow_shape(value, tuple(n for a, n in enumerate(shape) if a not in dropped))
    else:
        groups.record_shape(value, None)


def dropped_axes(step: Step, k: int) -> tuple[int, ...]:
    """Return the axes of which result `k`, a slice, takes one of several elements."""
    how, whole, part = step.form.seen[k], step.operands[0].shape, step.results[k].shape
    if not isinstance(how, Slice):
        return ()
    cut = [(n, m) for n, m in zip(whole, part, strict=True)]
    return tuple(a for a, (n, m) in enumerate(cut) if m == 1 and n != 1 and type(n) is int)


def _ask_joined(groups: _Groups, step: Step) -> None:
    """Allow parts of one row each without that axis, as `np.stack` and `np.array` take them.

    One-dimensional parts of one element may be numbers, whatever the others are.
    """
    axis, parts = step.params["axis"], step.operands
    groups.record_shape(step.outputs[0], None)
    alone = [t.shape[axis] == 1 for t in parts]
    values = [v for v in step.inputs if v not in groups.numbers]
    if not (all(alone) or (parts[0].ndim == 1 and any(alone))):
        for value in step.inputs:
            groups.record_shape(value, None)
        return
    for value, type, single in zip(step.inputs, parts, alone, strict=True):
        if value in groups.numbers:
            # A number is written as its neighbours are.
            continue
        if single:
            groups.allow_shape(value, (*type.shape[:axis], *type.shape[axis + 1 :]))
        else:
            groups.record_shape(value, None)
    if parts[0].ndim > 1:
        for value in values[1:]:
            groups.tie(values[0], value)


def _keepdims_shape(step: Step) -> Shape:
    axes = step.params["axes"]
    return tuple(1 if a in axes else n for a, n in enumerate(step.operands[0].shape))


def _is_alike(step: Step) -> bool:
    """Return whether a reshape only adds or removes axes of size 1."""
    return _squeeze_shape(step.operands[0].shape) == _squeeze_shape(step.params["shape"])


def _squeeze_shape(shape: Shape) -> Shape:
    return tuple(n for n in shape if n != 1)


def _vectors(step: Step) -> tuple[int, ...]:
    """Return the operands of a matrix product that have a single row or column.

    Products with one term each are left alone: a product of vectors may have a zero of another
    sign.
    """
    x, y = step.operands
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] == 1:
        return ()
    return (0,) * (x.shape[0] == 1) + (1,) * (y.shape[1] == 1)


def _ask_product(groups: _Groups, step: Step) -> None:
    single, result = _vectors(step), step.outputs[0]
    for k, value in enumerate(step.inputs):
        if k in single:
            groups.record_shape(value, (step.operands[0].shape[1],))
            groups.tie(value, result)
        else:
            groups.record_shape(value, None)
    n, m = step.results[0].shape
    groups.record_shape(result, (n,) * (0 not in single) + (m,) * (1 not in single))


Indices = tuple[np.ndarray[Any, Any], ...]


def joins_parts(step: Step) -> bool:
    """Return whether a step joins its operands along an axis."""
    return step.op.fact(JOINS) and step.op.moves and step.params.keys() == {"axis"}


def takes_vector(step: Step) -> bool:
    """Return whether a step solves a linear system whose right-hand side may be a vector."""
    if not step.op.fact(SOLVES) or len(step.operands) != 2 or step.params:
        return False
    return step.operands[1].ndim == 2 and step.operands[1].shape[1] == 1


def _is_assembled(step: Step) -> bool:
    """Return whether a step assembles an array from parts at their own positions."""
    return step.op.moves and {"starts", "strides"} <= step.params.keys()


def takes_numbers(step: Step) -> bool:
    """Return whether parts of one element of a step may be numbers."""
    return joins_parts(step) or _is_assembled(step)


def assigned_indices(step: Step) -> list[Indices] | None:
    """Return the positions of the parts of a step that assembles an array from them.

    Return None for other steps, and unless each part has the positions of slices, or a diagonal.
    """
    if not _is_assembled(step):
        return None
    result, starts, strides = step.results[0], step.params["starts"], step.params["strides"]
    if names_in((*result.shape, *(n for t in step.operands for n in t.shape))):
        return None
    if step.operands[0].ndim > len(strides[0]):
        return None
    found = [
        np.unravel_index(places_in(t.shape, start, steps), result.shape)
        for t, start, steps in zip(step.operands, starts, strides, strict=True)
    ]
    fits = all(
        _is_sliced(indices, t.shape) or is_diagonal(indices, result.shape)
        for indices, t in zip(found, step.operands, strict=True)
    )
    return found if fits else None


def varying_axes(indices: Indices) -> list[int]:
    """Return the axes of the result along which the positions differ."""
    return [a for a, index in enumerate(indices) if index.size and index.min() != index.max()]


def is_diagonal(indices: Indices, shape: Sequence[int]) -> bool:
    """Return whether positions are the whole diagonal of a square matrix."""
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        return False
    return all(np.array_equal(index, np.arange(shape[0])) for index in indices)


def _is_sliced(indices: Indices, shape: Sequence[int]) -> bool:
    """Return whether the positions are those of slices, in the order of the axes of the part."""
    axes = varying_axes(indices)
    along = [np.unique(indices[a]) for a in axes]
    sizes = [index.size for index in along]
    # NumPy drops leading axes of one element in an assignment, and no others.
    if sizes != list(shape[len(shape) - len(sizes) :]) or any(
        n != 1 for n in shape[: len(shape) - len(sizes)]
    ):
        return False
    steps = [np.diff(index) for index in along]
    if any(len(set(step.tolist())) > 1 for step in steps):
        return False
    grid = np.meshgrid(*along, indexing="ij")
    return all(
        index.size == whole.size and np.array_equal(index.reshape(-1), whole.reshape(-1))
        for index, whole in zip((indices[a] for a in axes), grid, strict=True)
    )
