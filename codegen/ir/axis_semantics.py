"""Axis semantics: how a primitive acts on the axis along which a region is blocked.

A step works row by row if each row of its result depends on the same rows of its operands, and on
other operands as a whole. It contracts if it reduces over the rows by a sum, product, maximum or
minimum: blocks then give partial results, which are combined in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple, TypeAlias

from primgraph.codegen.ir.schedule import Form, Step
from primgraph.ir.graph import Equation, Value
from primgraph.ir.index_maps import Dependence, Index, IndexMap, Place, RowMajor, variables_of
from primgraph.ir.types import Shape, TensorType


class Role(NamedTuple):
    """How a step takes part in a region: the axes of rows of its result and operands.

    `operands` has the axis of rows of each operand, None for one that is read as a whole. A
    contraction has no `axis`, but a ufunc `combine` that joins partial results.
    """

    axis: int | None
    operands: tuple[int | None, ...]
    combine: str = ""


Axes: TypeAlias = Sequence[int | None]


class Blocking(NamedTuple):
    """How a primitive runs in blocks; its index maps tell which axes of rows belong together.

    If all operands are whole, the rows are those of operand `led_by`. `resized` is the parameter
    with the shape of the result, if there is one; a block has fewer rows. `combine` is the ufunc
    that joins partial results of a contraction, if there may be any; `unsplit` are the dtypes
    without them, by the beginnings of their names.
    """

    led_by: int = 0
    resized: str = ""
    combine: str = ""
    unsplit: tuple[str, ...] = ()


ROWS = Blocking()


def role_of(step: Step, blocking: Blocking, axes: Axes) -> Role | None:
    """Return the role of a step, given the axis of rows of each operand.

    An operand without one is whole: any rows of it are available. Return None if the step needs
    all rows of an operand that is blocked.
    """
    if step.op.elementwise:
        alike = {a for a in axes if a is not None}
        return Role(min(alike), (min(alike),) * len(axes)) if len(alike) == 1 else None
    form, shape = step.form, step.results[0].shape
    if not form.ties:
        pairs = enumerate(form.operands)
        form.ties = [tied_axes(step.dependence(0, i), type.shape, shape) for i, type in pairs]
    targets = {tied.get(a) for a, tied in zip(axes, form.ties, strict=True) if a is not None}
    if targets == {None}:
        return _contraction(step, blocking, axes)
    if len(targets) != 1:
        return None
    axis, operands = targets.pop(), list[int | None]()
    assert axis is not None
    for i, tied in enumerate(form.ties):
        own = next((a for a, place in tied.items() if place == axis), None)
        if own is None and not _is_repeated(step.dependence(0, i), axis, shape[axis]):
            return None
        operands.append(own)
    return Role(axis, tuple(operands))


def _whole_axis(shown: IndexMap, place: Place, extent: int) -> tuple[int, ...]:
    """Return the variable that counts all places along an axis; empty if there is none."""
    variable = place.variable if isinstance(place, Index) and place.start == 0 else None
    return () if variable is None or shown.extents[variable] != extent else (variable,)


def tied_axes(shown: Dependence, source: Shape, shape: Shape) -> dict[int, int]:
    """Return the axes of an operand whose rows are those of an axis of the result, with that axis.

    The operand has the shape `source`, and the result has `shape`.
    """
    places, rows = list[tuple[int, ...]](), list[tuple[int, ...]]()
    if isinstance(shown, RowMajor):
        places = [(prod(shape[:a]), n) for a, n in enumerate(shape)]
        rows = [(prod(source[:a]), n) for a, n in enumerate(source)]
    elif isinstance(shown, IndexMap):
        places = [_whole_axis(shown, p, n) for p, n in zip(shown.result, shape, strict=True)]
        rows = [_whole_axis(shown, p, n) for p, n in zip(shown.operand, source, strict=True)]
    return {a: places.index(row) for a, row in enumerate(rows) if row and row in places}


def _is_repeated(shown: Dependence, axis: int, extent: int) -> bool:
    """Return whether all rows of a result depend on the same elements of an operand, if any."""
    if not isinstance(shown, IndexMap):
        return False
    (variable,) = _whole_axis(shown, shown.result[axis], extent) or (-1,)
    used = variables_of([p for p in shown.operand if isinstance(p, Index)])
    return variable >= 0 and variable not in used


def _contraction(step: Step, blocking: Blocking, axes: Axes) -> Role | None:
    """Return the role of a step that contracts the rows of its operands, if it may be split."""
    if not blocking.combine or step.results[0].dtype.name.startswith(blocking.unsplit):
        return None
    operands = list[int]()
    for i, given in enumerate(axes):
        shown = step.dependence(0, i)
        assert isinstance(shown, IndexMap)
        kept = variables_of(shown.result)
        if given is None:
            lost = [a for a, p in enumerate(shown.operand) if variables_of([p]).isdisjoint(kept)]
            given = lost[0] if len(lost) == 1 else None
        if given is None or not variables_of([shown.operand[given]]).isdisjoint(kept):
            return None
        operands.append(given)
    return Role(None, tuple(operands), blocking.combine)


def restrict_rows(step: Step, blocking: Blocking | None, role: Role, rows: int) -> Step:
    """Return `step` restricted to a block of `rows` rows."""
    eqn = step.eqn
    inputs = tuple(
        Value(_block_type(v.type, a, rows)) for v, a in zip(eqn.inputs, role.operands, strict=True)
    )
    outputs = tuple(Value(_block_type(v.type, role.axis, rows)) for v in eqn.outputs)
    params = eqn.params
    resized = blocking.resized if blocking is not None else ""
    if resized and role.axis is not None:
        params = tuple((k, outputs[0].shape if k == resized else p) for k, p in params)
    local = Equation(eqn.op, inputs, params, outputs, eqn.source)
    return step._replace(eqn=local, form=Form(local))


def _block_type(type: TensorType, axis: int | None, rows: int) -> TensorType:
    if axis is None:
        return type
    return type.with_shape((*type.shape[:axis], rows, *type.shape[axis + 1 :]))
