"""Gradients in programs: lists of pairs, and gradients by names such as `w@GRAD`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from primgraph.compat.paddle.framework import as_paddle_raises, paddles, reject_options
from primgraph.derivatives.grad import grad
from primgraph.derivatives.request import Seeds
from primgraph.errors import ArgumentError
from primgraph.ir.graph import Value
from primgraph.operators.variable import Variable
from primgraph.program.program import Program, program_of

# The losses that gradients by name are of, and variables that count as constant.
_losses: WeakKeyDictionary[Program, tuple[Value, list[Value]]] = WeakKeyDictionary()
_ENDING = "@GRAD"


@as_paddle_raises
@paddles
def gradients(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: Seeds = None,
    no_grad_set: Collection[Variable | str] | None = None,
) -> list[Variable | None]:
    """Return the gradients of `pg.grad` as a list; variables in `no_grad_set` are constant.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     x = paddle.static.data("x", [2])
    ...     (dx,) = paddle.static.gradients(paddle.sum(x * x), x)
    >>> paddle.static.Executor().run(program, {"x": [1.0, 2.0]}, [dx])
    [array([2., 4.], dtype=float32)]
    """
    listed = [inputs] if isinstance(inputs, Variable) else inputs
    first = targets if isinstance(targets, Variable) else next(iter(targets), None)
    constant = variables_named(first, no_grad_set)
    found: list[Variable | None] = grad(
        targets, listed, target_gradients, allow_unused=True, no_grad_vars=constant
    )
    return found


@as_paddle_raises
@paddles
def append_backward(
    loss: Variable,
    parameter_list: Sequence[Variable | str] | None = None,
    no_grad_set: Collection[Variable | str] | None = None,
    callbacks: None = None,
    checkpoints: None = None,
    distop_context: None = None,
) -> list[tuple[Variable, Variable]]:
    """Return pairs of a parameter that `loss` depends on and its gradient.

    `parameter_list` defaults to all trainable parameters. Gradients of the loss by any variable can
    be fetched by name then: `w@GRAD` for `w`. Raises `OptionError` for callbacks and contexts of
    several machines, which are not supported; `checkpoints` has no effect.

    >>> with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
    ...     w = paddle.create_parameter([2], "float32", name="w")
    ...     pairs = paddle.static.append_backward(paddle.sum(w * w))
    >>> [(parameter.name, gradient.name) for parameter, gradient in pairs]
    [('w', 'w@GRAD')]
    """
    reject_options("append_backward", callbacks=callbacks, distop_context=distop_context)
    constant = variables_named(loss, no_grad_set) or []
    chosen = variables_named(loss, parameter_list)
    excluded = {v.value for v in constant}
    listed = program_of(loss).parameters() if chosen is None else chosen
    varied = [p for p in listed if p.value not in excluded]
    found = grad(loss, varied, no_grad_vars=constant)
    note_loss(loss, constant)
    pairs = zip(varied, found, strict=True)
    return [(p, _named(p, g)) for p, g in pairs if g is not None]


def note_loss(loss: Variable, constant: Sequence[Variable] = ()) -> None:
    """Let gradients by name, such as `w@GRAD`, be those of `loss` from now on."""
    _losses[program_of(loss)] = loss.value, [v.value for v in constant]


def _named(variable: Variable, gradient: Variable) -> Variable:
    """Return the gradient by a variable under its name, unless that is taken."""
    name = variable.name + _ENDING
    program = program_of(gradient)
    if gradient.value.hint or program.builder.named(name) is not None:
        return gradient
    gradient.name = name
    return gradient


def gradient_named(program: Any, name: str) -> Variable | None:
    """Return the gradient of the last loss by the variable that `name` names before `@GRAD`."""
    known = _losses.get(program) if name.endswith(_ENDING) else None
    variable = program.variable(name.removesuffix(_ENDING)) if known is not None else None
    if known is None or variable is None:
        return None
    loss, constant = known
    builder = program.builder
    (found,) = grad(
        Variable(builder, loss),
        [variable],
        allow_unused=True,
        no_grad_vars=[Variable(builder, v) for v in constant],
    )
    return None if found is None else _named(variable, found)


def variables_named(
    of: Variable | None, given: Collection[Variable | str] | None
) -> list[Variable] | None:
    """`given` with the variables of the program of `of` in place of their names.

    Raises `ArgumentError` for a name that the program does not have.
    """
    if given is None or of is None:
        return None
    found: list[Variable] = []
    for item in given:
        variable = program_of(of).variable(item) if isinstance(item, str) else item
        if variable is None:
            raise ArgumentError(f"the program has no variable named {item!r}")
        found.append(variable)
    return found
