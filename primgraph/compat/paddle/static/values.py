"""Variables that are kept between runs, averages of parameters, and prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.core.program import building_program
from primgraph.compat.paddle.framework import paddles
from primgraph.compat.paddle.initializers import Constant
from primgraph.compat.paddle.static.scopes import current_scope
from primgraph.compat.paddle.utils import unique_name
from primgraph.errors import BuildError
from primgraph.ir.types import TensorType, as_dtype, as_shape
from primgraph.operators.variable import Variable
from primgraph.program.program import Program


@paddles
def create_global_var(
    shape: Any,
    value: float,
    dtype: Any,
    persistable: bool = False,
    force_cpu: bool = False,
    name: str | None = None,
) -> Any:
    """Create a variable that keeps its value between runs, and that optimizers leave alone.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     step = paddle.static.create_global_var([1], 2.5, "float32", name="step")
    >>> step.name
    'step'
    """
    type = TensorType(as_shape(shape), as_dtype(dtype))
    chosen = name or unique_name.generate("global_var")
    return building_program().state(chosen, type, Constant(float(value)))


def Print(input: Any, first_n: int = -1, message: str | None = None, **options: Any) -> Any:
    """Return `input`; a tensor is printed, and the value of a variable is not known yet.

    >>> _ = paddle.static.Print(paddle.ones([1]), message="x")
    x
    Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
           [1.])
    """
    if not isinstance(input, Variable):
        print(*([] if message is None else [message]), input, sep="\n")
    return input


def py_func(
    func: Callable[..., Any],
    x: Any,
    out: Any,
    backward_func: Callable[..., Any] | None = None,
    skip_vars_in_backward_input: Any = None,
) -> Any:
    """Raise `BuildError`: programs are compiled, and do not call functions of Python.

    >>> try:
    ...     paddle.static.py_func(np.tanh, None, None)
    ... except RuntimeError as error:
    ...     print(str(error).splitlines()[0])
    py_func: a compiled program does not call functions of Python
    """
    raise BuildError(
        "py_func: a compiled program does not call functions of Python",
        hint="write the function with operators, or run it between two programs",
    )


@final
class ExponentialMovingAverage:
    """Averages of the trainable parameters of a program, updated at each run.

    After a step the average is `decay * average + (1 - decay) * parameter`; with `thres_steps` the
    decay is at most `(1 + steps) / (10 + steps)`. Within `apply` parameters hold their averages,
    divided by `1 - decay**steps`.

    >>> with paddle.static.program_guard(paddle.static.Program()) as program:
    ...     w = paddle.create_parameter([1], "float32", attr=paddle.nn.initializer.Constant(2.0))
    ...     average = paddle.static.ExponentialMovingAverage(0.5)
    ...     average.update()
    >>> exe = paddle.static.Executor()
    >>> _ = exe.run(program)
    >>> with average.apply(exe):
    ...     exe.run(program.clone(for_test=True), fetch_list=[w])
    [array([2.], dtype=float32)]
    """

    def __init__(
        self, decay: float = 0.999, thres_steps: Any = None, name: str | None = None
    ) -> None:
        self._decay, self._steps = decay, thres_steps
        self._name = name or ""
        self._program: Program | None = None
        self._averages: dict[str, str] = {}
        self._saved: dict[str, Any] = {}

    def update(self) -> None:
        """Let each run update the averages with the parameters that it ends with."""
        program = self._program = building_program()
        factor = self._state(program, "decay_power", TensorType((), as_dtype("float64")), 1.0)
        decay: Any = self._decay
        if self._steps is not None:
            steps = pg.astype(pg.reshape(self._steps, ()), "float64")
            decay = pg.minimum(decay, (steps + 1.0) / (steps + 10.0))
        program.update(factor, pg.multiply(factor, decay))
        for parameter in program.parameters():
            type = parameter.type
            average = self._state(program, f"{parameter.name}.ema", type, 0.0)
            new = program.next_value(parameter)
            program.update(average, pg.astype(average * decay + new * (1.0 - decay), type.dtype))
            self._averages[parameter.name] = average.name

    def _state(self, program: Any, name: str, type: TensorType, value: float) -> Variable:
        chosen = unique_name.generate(f"{self._name}{name}")
        made: Variable = program.state(chosen, type, Constant(value))
        if name == "decay_power":
            self._power = made.name
        return made

    @contextmanager
    def apply(self, executor: Any, need_restore: bool = True) -> Iterator[None]:
        """Let the parameters hold their averages within this context."""
        assert self._program is not None, "call update first"
        scope = current_scope().storage or self._program.scope
        values = self._program.state_dict(scope=scope)
        correction = max(1.0 - float(values[self._power]), np.finfo(np.float64).tiny)
        self._saved = {name: values[name] for name in self._averages}
        averages = {n: values[a] / correction for n, a in self._averages.items()}
        self._program.set_state_dict(
            {n: a.astype(values[n].dtype) for n, a in averages.items()}, scope=scope
        )
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Any) -> None:
        """Let the parameters hold again what they held before `apply`."""
        assert self._program is not None, "call update first"
        scope = current_scope().storage or self._program.scope
        self._program.set_state_dict(self._saved, scope=scope)
