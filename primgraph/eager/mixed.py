"""Mix tensors with variables of a program being built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primgraph.eager.derivatives.reverse import collect_tape, holder_of
from primgraph.eager.inplace.adoption import Adoption, adopting
from primgraph.eager.inplace.shared_storage import create_shared_state, label_of, state_of
from primgraph.eager.node import Node
from primgraph.eager.run import compute, source_of
from primgraph.eager.tensor import Tensor
from primgraph.errors import BuildError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.ir.primitive import recording
from primgraph.operators.call import called, handle_operator
from primgraph.operators.promotion import lift
from primgraph.operators.variable import Variable, handles
from primgraph.program.program import Program, belongs_to_program, program_guard, program_of


def in_program_of(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Apply `function` in the program of the variables among its arguments.

    A leaf that requires a gradient becomes a parameter of the program. Tensors computed from such
    leaves are recomputed from these parameters. All other tensors are constants, as are all tensors
    in traced functions, which have no parameters.
    """
    variable = next(v for v in handles((*args, *kwargs.values())) if isinstance(v, Variable))
    arguments = [replace_tensors(variable, a) for a in args]
    options = {n: replace_tensors(variable, a) for n, a in kwargs.items()}
    return _handle_operator(function)(*arguments, **options)


def apply_tracing(
    adoption: Adoption[Tensor],
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    """Apply `function` while tracing, to the variables that stand for tensors."""
    arguments = [_in_trace(adoption, a) for a in args]
    options = {n: _in_trace(adoption, a) for n, a in kwargs.items()}
    with recording(adoption.builder):
        return _handle_operator(function)(*arguments, **options)


def _in_trace(adoption: Adoption[Tensor], argument: Any) -> Any:
    kind = type(argument)
    if kind is list or kind is tuple:
        return kind([_in_trace(adoption, a) for a in argument])
    return adoption.variable(argument) if isinstance(argument, Tensor) else argument


def _handle_operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the public operator of `function`, or the user's function applied to handles."""
    return called.get(function) or handle_operator(function, users=True)


def replace_tensors(variable: Variable, argument: Any) -> Any:
    """Replace tensors in `argument` by their variables in the program of `variable`."""
    kind = type(argument)
    if kind is list or kind is tuple:
        return kind([replace_tensors(variable, a) for a in argument])
    if not isinstance(argument, Tensor):
        return argument
    recorder = variable.recorder
    if argument.requires_grad and isinstance(recorder, Builder) and recorder.closed:
        raise BuildError(f"a tensor {argument.type} that requires grad comes from outside")
    if not (argument.requires_grad and belongs_to_program(variable)):
        return argument._array().copy()
    program = program_of(variable)
    if argument.is_leaf:
        return parameter_of(program, argument)
    with program_guard(program):
        return Variable(program.builder, _record_tape(program, argument.node))


def adopt_around(outer: Builder, adoption: Adoption[Tensor]) -> None:
    """Let a body capture the values that stand for its tensors in the enclosing program."""
    around = adopting.get()
    for tensor, value in zip(adoption.tensors, adoption.values, strict=True):
        if around is not None and around.builder is outer:
            variable: Any = around.variable(tensor)
        else:
            variable = lift(replace_tensors(Variable(outer, value), tensor))
        adoption.builder.captured[variable.value] = value


def parameter_of(program: Program, tensor: Tensor) -> Variable:
    """Return the parameter that stands for a leaf, on the same array."""
    known = state_of(tensor, program)
    if known is not None:
        return known
    return create_shared_state(tensor, program, program.free_name(label_of(tensor) or "weight"))


def _record_tape(program: Program, end: Node) -> Value:
    """Record the tape of a node in the program, and return its value."""
    builder = program.builder
    values: dict[Node, Value] = {}

    def value_of(node: Node) -> Value:
        if node not in values:
            if node.array is None:
                compute([node])
            values[node] = lift(node.array).value  # type: ignore[arg-type]
        return values[node]

    before = builder.source
    try:
        for node in sorted(collect_tape([end]), key=lambda n: n.number):
            builder.source = source_of(node)
            if not node.is_leaf and node.step is not None:
                operands = [value_of(n) for n in node.inputs]
                values[node] = node.step.record(builder, operands)[node.step.place]
                continue
            holder = holder_of(node)
            if isinstance(holder, Tensor):
                values[node] = parameter_of(program, holder).value
    finally:
        builder.source = before
    return values[end]
