"""Programs, executors and derivatives by the names that they have in `paddle.static`."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

import numpy as np

from primgraph.compat.absent import absent
from primgraph.compat.paddle.defaults import dtype_or_default
from primgraph.compat.paddle.framework import (
    CPUPlace,
    as_paddle_raises,
    paddles,
    reject_options,
)
from primgraph.compat.paddle.parameters import create_parameter
from primgraph.derivatives.grad import grad
from primgraph.derivatives.request import Seeds
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.signature import checked_methods
from primgraph.operators.variable import Variable
from primgraph.program.declarations import declare_input as _data
from primgraph.program.program import Program, current_program, default_startup_program, program_of
from primgraph.program.program import program_guard as _program_guard
from primgraph.program.run import Executor as _Executor
from primgraph.program.scope import Scope

__all__ = [
    "Executor",
    "Program",
    "Scope",
    "Variable",
    "append_backward",
    "create_parameter",
    "data",
    "default_main_program",
    "default_startup_program",
    "gradients",
    "program_guard",
]


@paddles
def data(name: str, shape: Any, dtype: Any = None, lod_level: int = 0) -> Variable:
    """Declare an input as `pg.data` does, by default of the default dtype of this package.

    None and -1 are known when arrays are fed. On axis 0 they stand for the batch, which is one size
    in the whole program; on other axes for one of their own.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     x = paddle.static.data("x", [None, 3])
    >>> x.dtype
    dtype('float32')
    """
    reject_options("data", lod_level=lod_level or None)
    if isinstance(shape, list | tuple) and shape and shape[0] in (None, -1):
        shape = ("batch", *shape[1:])
    return _data(name, shape, dtype_or_default(dtype))


def default_main_program() -> Program:
    """Return the program being built, which executors run if none is given.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     paddle.static.default_main_program() is program
    True
    """
    return current_program()


@contextmanager
def program_guard(
    main_program: Program, startup_program: Program | None = None
) -> Iterator[Program]:
    """Build into `main_program`, initialized by `startup_program`, as `pg.program_guard` does.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     x = paddle.static.data("x", [3])
    >>> [v.name for v in program.inputs.values()]
    ['x']
    """
    with _program_guard(main_program, startup_program):
        yield main_program


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

    `parameter_list` defaults to all trainable parameters. Raises `OptionError` for callbacks,
    checkpoints and contexts of several machines, which are not supported.

    >>> with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
    ...     w = paddle.create_parameter([2], "float32", name="w")
    ...     pairs = paddle.static.append_backward(paddle.sum(w * w))
    >>> [parameter.name for parameter, gradient in pairs]
    ['w']
    """
    reject_options(
        "append_backward",
        callbacks=callbacks,
        checkpoints=checkpoints,
        distop_context=distop_context,
    )
    constant = variables_named(loss, no_grad_set) or []
    chosen = variables_named(loss, parameter_list)
    excluded = {v.value for v in constant}
    listed = program_of(loss).parameters() if chosen is None else chosen
    varied = [p for p in listed if p.value not in excluded]
    found = grad(loss, varied, no_grad_vars=constant)
    return [(p, g) for p, g in zip(varied, found, strict=True) if g is not None]


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


@final
@checked_methods(late=True)
class Executor:
    """`pg.Executor` with the arguments of Paddle's.

    Of `place` only the processor exists. Raises `ArgumentError` for another one.

    >>> paddle.enable_static()
    >>> main = paddle.static.Program()
    >>> with paddle.static.program_guard(main):
    ...     x = paddle.static.data("x", [3])
    ...     y = paddle.sum(x * x)
    ...
    >>> exe = paddle.static.Executor()
    >>> exe.run(main, feed={"x": np.ones(3, np.float32)}, fetch_list=[y])
    [array(3., dtype=float32)]
    """

    def __init__(self, place: CPUPlace | None = None) -> None:
        if not isinstance(place, CPUPlace | None):
            raise ArgumentError(f"programs run on CPUPlace() only, not on {place!r:.60}")
        self.place = CPUPlace()

    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, Any] | None = None,
        fetch_list: Any = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        return_merged: bool = True,
        use_prune: bool = False,
    ) -> list[np.ndarray[Any, Any]]:
        """Compute what `fetch_list` names from `feed`, and make the program's updates.

        The program is the one being built unless given. A surplus name in `feed` is ignored,
        with a warning. A tuple in `fetch_list` is what `minimize` returned, which adds nothing
        to the results, or a pair of a parameter and its gradient. A variable of another program,
        such as the one of which this is a clone, stands for what has its name and type here.

        Results are NumPy arrays in any case, programs are always kept compiled, and what neither
        the fetches nor the updates need is never run: all arguments but the first three and the
        scope change nothing.
        Raises what `pg.Executor.run` does.
        """
        chosen = current_program() if program is None else program
        given = feed
        if isinstance(chosen, Program) and isinstance(feed, Mapping):
            surplus = [name for name in feed if name not in chosen.inputs]
            given = {name: array for name, array in feed.items() if name not in surplus}
            if surplus:
                names = ", ".join(map(repr, surplus))
                warnings.warn(f"the program has no inputs {names}: ignored", stacklevel=3)
        return _Executor(scope).run(chosen, given, _in_program(chosen, _fetches(fetch_list)))

    def close(self) -> None:
        """Nothing has to be released."""


def _fetches(fetch_list: Any) -> list[Any] | None:
    """The fetches in the forms that `pg.Executor.run` takes."""
    if fetch_list is None:
        return None
    if isinstance(fetch_list, Variable | str):
        return [fetch_list]
    if isinstance(fetch_list, Mapping | Set):
        raise ArgumentError(f"fetch_list is a list of variables or names, not {fetch_list!r:.60}")
    found: list[Any] = []
    for item in fetch_list:
        if not isinstance(item, tuple):
            found.append(item)
        elif item and all(isinstance(v, Variable) for v in item):
            found.append(list(item))
        elif not item or not isinstance(item[0], list):
            raise ArgumentError(
                f"a tuple in fetch_list is what minimize returned, not {item!r:.60}"
            )
    return found


def _in_program(program: Any, fetches: list[Any] | None) -> list[Any] | None:
    """The fetches with variables of other programs replaced by those of the same name."""
    if fetches is None or not isinstance(program, Program):
        return fetches
    found: list[Any] = []
    for item in fetches:
        if isinstance(item, list):
            found.append(_in_program(program, item))
        elif isinstance(item, Variable) and item.recorder is not program.builder:
            here = program.variable(item.name)
            found.append(item if here is None or here.type != item.type else here)
        else:
            found.append(item)
    return found


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
