"""Traced bodies of branches and loops, with captured values of the enclosing program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from primgraph import tree
from primgraph.api.arguments import call_differentiated
from primgraph.api.world import is_array
from primgraph.base.grad_mode import enable_tracking
from primgraph.base.interpreter_limits import require_nesting
from primgraph.eager.inplace.adoption import Adoption, adopting
from primgraph.eager.mixed import adopt_around
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import active_recorder
from primgraph.ir.types import DType, TensorType
from primgraph.operators.promotion import SCALARS, lift
from primgraph.operators.variable import Variable
from primgraph.program.trace import with_flags


@final
@dataclass(frozen=True, slots=True)
class Body:
    """Trace of a function on arrays of given types.

    `found` are the leaves of its result in the containers of `structure`, as values of `builder`.
    `weak` says which leaves were Python numbers, and gives their dtypes.
    """

    name: str
    builder: Builder
    inputs: tuple[Value, ...]
    found: tuple[Value, ...]
    structure: tree.Structure
    weak: tuple[bool, ...]

    @property
    def types(self) -> tuple[TensorType, ...]:
        return tuple([v.type for v in self.found])

    def graph(self, captured: Sequence[Value]) -> Graph:
        """Return the graph of the body; its inputs are the captured values, then its arguments."""
        known = self.builder.captured
        consts = [known[v] if v in known else Value(v.type) for v in captured]
        part = self.builder.part([*consts, *self.inputs], self.found, self.name)
        graph = with_flags(part, self.builder) if self.builder.stopped else part
        return graph.titled(())


def require_function(operator: str, function: Any, arguments: str) -> None:
    """Raise `ArgumentError` unless `function` can be called with these arguments.

    `arguments` lists them as in a call, such as "(i, val)".
    """
    if not callable(function):
        raise ArgumentError(f"{operator} takes a function, not {function!r:.60}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    names = arguments.strip("()")
    given = names.split(", ") if names else []
    try:
        signature.bind(*given)
    except TypeError:
        name = getattr(function, "__name__", "the function")
        forgotten = "; operands come after the branches" if not given else ""
        packed = "; a tuple is passed as one argument" if len(given) == 1 else ""
        raise ArgumentError(
            f"{operator} calls {name}{arguments}, but it takes {signature}",
            hint=f"write a function of {arguments}{forgotten}{packed}",
        ) from None


def active_builder() -> Builder:
    """Return the active builder."""
    recorder = active_recorder()
    if not isinstance(recorder, Builder):
        raise ArgumentError("branches and loops are built in a program or a traced function")
    return recorder


def trace_body(
    operator: str,
    function: Callable[..., Any],
    arguments: Callable[[Builder], Sequence[Any]],
    title: str = "",
) -> Body:
    """Trace `function` once, on `arguments` created in a new builder.

    Raises `ArgumentError` if it returns anything but containers of arrays.
    """
    outer = active_builder()
    around: Builder | None = outer
    depth = 0
    while around is not None:
        around, depth = around.outer, depth + 1
    require_nesting(depth)
    name = title or getattr(function, "__name__", "body")
    builder = Builder(name if name.isidentifier() else "body", expands=outer.expands)
    given = arguments(builder)
    inputs = tuple(builder.inputs)
    builder.outer = outer
    builder.owner = "body"
    builder.written = True
    adoption: Adoption[Tensor] = Adoption(builder)
    before = adopting.get()
    try:
        adopting.set(adoption)
        with builder, enable_tracking():
            result = call_differentiated(function, *given)
            leaves, structure = tree.flatten(result)
            found = [_result(operator, name, leaf) for leaf in leaves]
            own = [v if v.recorder is builder else v.captured_by(builder) for v in found]
            values = tuple([v.value for v in own])
    finally:
        adopting.set(before)
    adopt_around(outer, adoption)
    weak = tuple([type(leaf) in SCALARS for leaf in leaves])
    return Body(builder.name, builder, inputs, values, structure, weak)


def _result(operator: str, name: str, leaf: Any) -> Variable:
    if not is_array(leaf):
        raise ArgumentError(
            f"{operator}: {name} returned {type(leaf).__name__} {leaf!r:.60}, not an array"
        )
    if isinstance(leaf, Tensor):
        adoption = adopting.get()
        assert adoption is not None
        return adoption.variable(leaf)
    return lift(leaf)


def captured_values(bodies: Sequence[Body]) -> list[Value]:
    """Return the captured values of all bodies, without duplicates."""
    return list(dict.fromkeys(v for body in bodies for v in body.builder.captured))


def record(operands: Sequence[Value], apply: Callable[..., tuple[Value, ...]]) -> list[Variable]:
    """Record an equation on `operands`, and return its results as variables."""
    builder = active_builder()
    return [Variable(builder, v) for v in apply(*[builder.own(v) for v in operands])]


def inputs_of(builder: Builder, types: Sequence[TensorType], hints: Sequence[str]) -> list[Value]:
    """Add inputs of these types, named by `hints` if unused."""
    made = []
    for type, hint in zip(types, hints, strict=True):
        made.append(builder.input(type, hint if hint and hint not in builder.names else ""))
    return made


def takes(dtype: DType, given: DType, number: Any) -> bool:
    """Return whether a Python number of dtype `given` can be converted to `dtype` exactly.

    A float is not an integer, and an integer must be in range; `number` is None if unknown.
    """
    if given.kind == "c" or dtype.kind == "c":
        return dtype.kind == "c"
    if dtype.kind == "f" or dtype.kind == given.kind == "b":
        return True
    if dtype.kind == "b" or given.kind == "f":
        return False
    info = np.iinfo(dtype)
    return number is None or info.min <= number <= info.max


def require_equal(
    operator: str,
    function: str,
    given: str,
    wanted: tuple[tree.Structure, Sequence[TensorType]],
    found: tuple[tree.Structure, Sequence[TensorType]],
) -> None:
    """Raise the error for different containers or types, with the leaf that differs.

    `function` has returned `found`; `given`, such as "init_val is", names the `wanted` one.
    """
    said = f"{operator}: {function} returned"
    rule = _RULES.get(operator, "")
    if wanted[0] != found[0]:
        grown = wanted[0].kind is list and found[0].kind is list
        hint = f"{_GROWN}; {rule}" if grown else rule
        raise ArgumentError(
            f"{said} {format_types(*found)}, but {given} {format_types(*wanted)}", hint=hint
        )
    paths = tree.paths_of(wanted[0])
    for path, before, after in zip(paths, wanted[1], found[1], strict=True):
        if before == after:
            continue
        at, there = (f" at {path}", " there") if path else ("", "")
        message = f"{said} {after}{at}, but {given} {before}{there}"
        if before.shape == after.shape:
            hint = f"write pg.astype(x, {str(before.dtype)!r}) for it; {rule}"
            raise DTypeError(message, hint=hint)
        raise ShapeError(message, hint=rule)


def format_types(structure: tree.Structure, types: Sequence[TensorType]) -> str:
    """Return containers as Python would print them, with the types of their arrays."""
    text = structure.format_leaves(iter([str(t) for t in types]))
    return text if len(text) <= 200 else text[:197] + "..."


_KEEPS = "keeps its containers, shapes and dtypes"
_RULES = {
    "fori_loop": f"body_fun(i, val) returns the next val, which {_KEEPS}; the index i comes first",
    "while_loop": f"body_fun(val) returns the next val, which {_KEEPS}; cond_fun comes first",
    "scan": f"f(carry, x) returns carry, y, and the carry {_KEEPS}",
    "cond": "both functions return the same containers, shapes and dtypes",
    "switch": "all branches return the same containers, shapes and dtypes",
    "associative_scan": "f(a, b) returns the same containers, shapes and dtypes as a and b",
    "root": "f(x) returns the same containers, shapes and dtypes as x0",
    "fixed_point": "f(x) returns the same containers, shapes and dtypes as x0",
}
_GROWN = "a list cannot grow in a loop: pg.scan stacks the y of all iterations"
