"""Loops on tensors: the body is called once for each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primgraph import tree
from primgraph.api.tracing import trace_function as trace_function
from primgraph.api.world import as_tensor
from primgraph.base.frames import is_interruption
from primgraph.control.bodies import inputs_of
from primgraph.control.carried import Carried, weak_leaves
from primgraph.control.checkpoints import OnTensors
from primgraph.control.recorded_loops import trace_stable_carry
from primgraph.errors import ArgumentError
from primgraph.ir.builder import Builder
from primgraph.ir.types import TensorType
from primgraph.operators.shape.creation import zeros
from primgraph.operators.shape.joining import stack
from primgraph.operators.variable import Variable


def tensor_loop(build: Callable[..., Any], init: Any, place: int = 0) -> Callable[..., Any]:
    """Return the recorded loop as a function of tensors; Python numbers in `init`, the argument at
    `place`, stay weak."""
    numbers, structure = tree.flatten(init)
    weak = weak_leaves(init)

    def build_with_numbers(*arguments: Any) -> Any:
        given = list(arguments)
        arrays = tree.leaves(given[place])
        begun = [x if w else y for x, y, w in zip(numbers, arrays, weak, strict=True)]
        given[place] = tree.unflatten(structure, begun)
        return build(*given)

    return OnTensors(build_with_numbers)


def scan_tensors(
    f: Callable[..., Any], length: int, reverse: bool, given: Any, init: Any, xs: Any
) -> Any:
    leaves, rows = tree.flatten(xs)
    types = [TensorType(leaf.type.shape[1:], leaf.type.dtype) for leaf in leaves]
    init = _convert_init("scan", f, given, init, types, rows)
    order = range(length)
    found, carry, structure = [], init, None
    carried = Carried("scan", _name_of(f), init, weak_leaves(given))
    for k in reversed(order) if reverse else order:
        carry, y = _pair(f(carry, tree.unflatten(rows, [leaf[k] for leaf in leaves])))
        carry = carried.check_step(carry)
        parts, structure = tree.flatten(y)
        found.append(parts)
    if structure is None:
        # Without steps, the types of stacked results come from a discarded step on a row of zeros.
        row = [zeros(leaf.type.shape[1:], leaf.type.dtype) for leaf in leaves]
        parts, structure = tree.flatten(_pair(f(init, tree.unflatten(rows, row)))[1])
        return init, tree.unflatten(structure, [stack([part])[:0] for part in parts])
    if reverse:
        found.reverse()
    stacked = [stack(list(column)) for column in zip(*found, strict=True)]
    return carry, tree.unflatten(structure, stacked)


def _convert_init(
    operator: str,
    step: Callable[..., Any],
    given: Any,
    init: Any,
    types: Sequence[TensorType] = (),
    rows: tree.Structure | None = None,
) -> Any:
    """`init` with the numbers of Python in `given` in the dtypes that they have in a program.

    The body is traced for that. One that cannot be traced leaves them in their own dtypes.
    """
    weak = weak_leaves(given)
    if not any(weak):
        return init
    dtypes: list[Any] = []

    def more(builder: Builder) -> list[Any]:
        if rows is None:
            return []
        made = inputs_of(builder, types, [""] * len(types))
        return [tree.unflatten(rows, [Variable(builder, v) for v in made])]

    def begin(_: Any) -> Any:
        state, _, _ = trace_stable_carry(operator, step, given, more)
        dtypes.extend(v.type.dtype for v in state)
        return [state[0]]

    try:
        trace_function(operator, begin, [])
    except Exception as error:
        if is_interruption(error):
            raise
        return init
    leaves, structure = tree.flatten(init)
    begun = [
        as_tensor(x).astype(dtype) if w and as_tensor(x).type.dtype != dtype else x
        for x, w, dtype in zip(leaves, weak, dtypes, strict=True)
    ]
    return tree.unflatten(structure, begun)


def _pair(given: Any) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ArgumentError(
            f"scan: the function returned {given!r:.60}, not a pair carry, y",
            hint="return carry, y; or return carry, None to stack nothing",
        )
    carry, y = given
    return carry, y


def fori_tensors(body_fun: Callable[..., Any], order: range, given: Any, init: Any) -> Any:
    init = _convert_init("fori_loop", lambda v: (body_fun(order.start, v), None), given, init)
    carried = Carried("fori_loop", _name_of(body_fun), init, weak_leaves(given))
    for i in order:
        init = carried.check_step(body_fun(i, init))
    return init


def while_tensors(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., Any],
    limit: int | None,
    given: Any,
    init: Any,
) -> Any:
    init = _convert_init("while_loop", lambda val: (body_fun(val), None), given, init)
    trips, carried = 0, Carried("while_loop", _name_of(body_fun), init, weak_leaves(given))
    while (limit is None or trips < limit) and bool(cond_fun(init)):
        init = carried.check_step(body_fun(init))
        trips += 1
    return init


def _name_of(function: Callable[..., Any]) -> str:
    """Return the name of a body for errors, as in programs."""
    name = getattr(function, "__name__", "body")
    return name if name.isidentifier() else "body"
