"""Branches: compute one of several functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from primgraph import tree
from primgraph.control.bodies import (
    Body,
    captured_values,
    inputs_of,
    record,
    require_equal,
    require_function,
    takes,
    trace_body,
)
from primgraph.control.world import call_in_world, own
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.rebuild import full_value
from primgraph.ir.types import INT64, DType, TensorType
from primgraph.operators.promotion import convert_dtype
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import control
from primgraph.primitives.constants import full
from primgraph.primitives.elementwise import minimum


@check_arguments
def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """Return `true_fun(*operands)` if `pred` is true, else `false_fun(*operands)`.

    Only one of the two is computed. `pred` is a single boolean. Operands and results are containers
    of arrays. Both functions return the same containers, with arrays of the same types, and may use
    variables from around them.

    Raises `DTypeError` or `ShapeError` for a predicate that is no single boolean, and where the
    results of both differ, with the place.

    >>> pg.cond(True, lambda x: 2.0 * x, lambda x: -x, 3.0)
    array(6.)
    """
    for function in (true_fun, false_fun):
        require_function("cond", function, _operands(operands))
    return call_in_world(
        partial(_cond, true_fun, false_fun),
        partial(_cond_of_tensors, true_fun, false_fun),
        (pred, *operands),
    )


@check_arguments
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Return `branches[index](*operands)`, computing only that branch.

    `index` is a single integer; out of range, it takes the nearest branch. Other rules are those of
    `pg.cond`.

    >>> pg.switch(1, [lambda x: x, lambda x: 2.0 * x, lambda x: 3.0 * x], 5.0)
    array(10.)
    """
    listed = list(branches)
    if not listed:
        raise ArgumentError("switch: there are no branches")
    for function in listed:
        require_function("switch", function, _operands(operands))
    return call_in_world(
        partial(_switch, listed), partial(_switch_of_tensors, listed), (index, *operands)
    )


def _operands(operands: Sequence[Any]) -> str:
    return f"({', '.join([f'operand{i}' for i in range(len(operands))])})"


def _cond(
    true_fun: Callable[..., Any], false_fun: Callable[..., Any], pred: Any, *operands: Any
) -> Any:
    if isinstance(pred, bool | np.bool_):
        return (true_fun if pred else false_fun)(*operands)
    chosen = own(pred)
    _require_scalar("cond", "a boolean", chosen.type, "b")
    return _record_branches("cond", chosen, [false_fun, true_fun], operands)


def _cond_of_tensors(
    true_fun: Callable[..., Any], false_fun: Callable[..., Any], pred: Any, *operands: Any
) -> Any:
    found = np.asarray(pred)
    _require_scalar("cond", "a boolean", TensorType(found.shape, found.dtype), "b")
    return (true_fun if found.item() else false_fun)(*operands)


def _switch(branches: Sequence[Callable[..., Any]], index: Any, *operands: Any) -> Any:
    if isinstance(index, int | np.integer) and not isinstance(index, bool):
        return branches[control.branch_taken(index, len(branches))](*operands)
    chosen = own(index)
    _require_scalar("switch", "an integer", chosen.type, "iu")
    if len(branches) == 1:
        # A single branch is selected by every index.
        return branches[0](*operands)
    if chosen.dtype == np.uint64:
        # The largest unsigned values do not fit into a signed integer.
        last = emit(full, value=len(branches) - 1, shape=(), dtype=chosen.dtype)
        chosen = emit(minimum, chosen, last)
    return _record_branches("switch", convert_dtype(chosen, INT64), branches, operands)


def _switch_of_tensors(branches: Sequence[Callable[..., Any]], index: Any, *operands: Any) -> Any:
    found = np.asarray(index)
    _require_scalar("switch", "an integer", TensorType(found.shape, found.dtype), "iu")
    return branches[control.branch_taken(found.item(), len(branches))](*operands)


def _record_branches(
    operator: str, chosen: Variable, branches: Sequence[Callable[..., Any]], operands: Any
) -> Any:
    leaves, structure = tree.flatten(list(operands))
    given = [own(leaf) for leaf in leaves]
    types, hints = [v.type for v in given], [v.value.hint for v in given]

    def arguments(builder: Any) -> list[Any]:
        made = inputs_of(builder, types, hints)
        found: list[Any] = tree.unflatten(structure, [Variable(builder, v) for v in made])
        return found

    bodies = _alike([trace_body(operator, branch, arguments) for branch in branches])
    first, *others = bodies
    for other in others:
        function, zeroth = _title(operator, bodies.index(other)), _title(operator, 0)
        wanted, found = (first.structure, first.types), (other.structure, other.types)
        require_equal(operator, function, f"{zeroth} returned", wanted, found)
    if not first.found:
        return tree.unflatten(first.structure, [])
    outside = captured_values(bodies)
    graphs = tuple([body.graph(outside) for body in bodies])
    values = [chosen.value, *outside, *[v.value for v in given]]
    results = record(values, partial(control.cond, branches=graphs))
    return tree.unflatten(first.structure, results)


def _title(operator: str, k: int) -> str:
    """Return the name of branch `k` for messages."""
    return ("false_fun", "true_fun")[k] if operator == "cond" else f"branch {k}"


def _alike(bodies: Sequence[Body]) -> list[Body]:
    """Return the bodies with Python numbers converted to the dtypes of other branches."""
    if any(body.structure != bodies[0].structure for body in bodies):
        return list(bodies)
    strong: dict[int, DType] = {}
    numbers: dict[int, DType] = {}
    for body in bodies:
        for k, (type, weak) in enumerate(zip(body.types, body.weak, strict=True)):
            if not weak:
                strong.setdefault(k, type.dtype)
            elif type.is_inexact:
                numbers.setdefault(k, type.dtype)
    strong = numbers | strong
    made = []
    for body in bodies:
        found = list(body.found)
        for k, weak in enumerate(body.weak):
            if not weak or k not in strong:
                continue
            number = full_value(body.builder, found[k])
            if takes(strong[k], body.types[k].dtype, number):
                with body.builder:
                    found[k] = convert_dtype(Variable(body.builder, found[k]), strong[k]).value
        made.append(
            Body(body.name, body.builder, body.inputs, tuple(found), body.structure, body.weak)
        )
    return made


def _require_scalar(operator: str, what: str, type: TensorType, kinds: str) -> None:
    name = "pred" if kinds == "b" else "index"
    message = f"{operator}: {name} is {what}, not {type}"
    if type.shape:
        hint = "pg.any(p) and pg.all(p) are one; pg.where(p, x, y) chooses element by element"
        raise ShapeError(message, hint=hint if kinds == "b" else "give one element of it")
    if type.dtype.kind not in kinds:
        hint = "compare, such as p > 0" if kinds == "b" else "write pg.astype(i, 'int64')"
        raise DTypeError(message, hint=hint)
