"""Equations along one index of an axis: the axes of operands, and parameters without the axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph.codegen.ir.axis_semantics import tied_axes
from primgraph.codegen.ops.c.spellings import FUNCTIONS, FUNCTIONS_OF_TWO, SPELLINGS, c_type
from primgraph.ir.graph import Equation
from primgraph.ir.index_maps import IndexMap, variables_of
from primgraph.ir.primitive import Op
from primgraph.ir.types import drop_axes
from primgraph.primitives.constants import full
from primgraph.primitives.elementwise import add, maximum, minimum, mul
from primgraph.primitives.reductions import reduce_max, reduce_min, reduce_prod, reduce_sum
from primgraph.primitives.shapes import broadcast, permute, slice_

_COMBINE: dict[Op, Op] = {
    reduce_sum: add,
    reduce_prod: mul,
    reduce_max: maximum,
    reduce_min: minimum,
}
_ELEMENTWISE = frozenset([*SPELLINGS, *FUNCTIONS, *FUNCTIONS_OF_TWO])


def axes_of_operand(eqn: Equation) -> dict[int, int | None]:
    """Return the axis of all operands for each axis of the result along which it can be split.

    It is None for an axis that is new.
    """
    known = eqn.op in _PARAMS or eqn.op in _ELEMENTWISE
    if not known or not all(c_type(v.dtype) for v in (*eqn.inputs, *eqn.outputs)):
        return {}
    shape = eqn.outputs[0].shape
    if not eqn.inputs:
        return dict.fromkeys(range(len(shape)))
    shown = eqn.dependence(0, 0)
    assert isinstance(shown, IndexMap)
    tied = {p: a for a, p in tied_axes(shown, eqn.inputs[0].shape, shape).items()}
    read = variables_of(shown.operand)
    # Of an axis of which a part is taken, or in reverse, there is no whole.
    return {
        axis: tied.get(axis)
        for axis, place in enumerate(shown.result)
        if axis in tied or variables_of([place]).isdisjoint(read)
    }


def _without_new_axis(params: dict[str, Any], axis: int, old: int | None) -> dict[str, Any]:
    kept = [a - (a > axis) for a in params["new_axes"] if a != axis]
    return {"shape": drop_axes(params["shape"], (axis,)), "new_axes": tuple(kept)}


def _without_old_axis(params: dict[str, Any], axis: int, old: int | None) -> dict[str, Any]:
    assert old is not None
    return {"axes": tuple([a - (a > old) for a in params["axes"] if a != old])}


def _without_axis(params: dict[str, Any], axis: int, old: int | None) -> dict[str, Any]:
    return {name: drop_axes(p, (axis,)) if type(p) is tuple else p for name, p in params.items()}


# The parameters of equations whose result has lost an axis, which was `old` in operands.
_PARAMS: dict[Op, Callable[[dict[str, Any], int, int | None], dict[str, Any]]] = {
    full: _without_axis,
    slice_: _without_axis,
    broadcast: _without_new_axis,
    permute: _without_old_axis,
    **dict.fromkeys(_COMBINE, _without_old_axis),
}


def combination(eqn: Equation) -> Op | None:
    """Return the op of two elements by which a reduction combines all of them; None for others."""
    return _COMBINE.get(eqn.op)


def params_without_axis(eqn: Equation, axis: int, old: int | None) -> dict[str, Any]:
    """Return the parameters for one index along `axis` of the result, `old` of operands."""
    change = _PARAMS.get(eqn.op)
    return eqn.kwargs if change is None else change(eqn.kwargs, axis, old)
