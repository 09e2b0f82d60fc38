"""Declarations of inputs and parameters of the program being built."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from primgraph.base.user_lines import caller
from primgraph.defaults import get_default_dtype
from primgraph.errors import ArgumentError, BuildError, DTypeError
from primgraph.initializers import Constant, Initializer, Xavier
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.primitive import active_recorder
from primgraph.ir.types import TensorType, as_dtype, as_shape, declared_shape
from primgraph.operators.variable import Variable, checked_name, refuse_twin
from primgraph.program.program import current_program, is_default_main


class HiddenProgramWarning(UserWarning):
    """Warning that the default program is extended because no program is entered."""


_told: list[bool] = []


def _tell_of_hidden_program() -> None:
    """Warn once per process that the implicit default program is used."""
    if not _told:
        _told.append(True)
        place = caller()
        warnings.warn_explicit(
            "no program is entered: pg.data builds into pg.default_main_program(), which goes on "
            "growing, and in a notebook knows the names of all former runs of a cell; write "
            "`with pg.Program() as program:` around it",
            HiddenProgramWarning,
            place.file,
            place.line,
        )


@check_arguments
def data(name: str, shape: Any, dtype: Any = None) -> Variable:
    """Declare an input of the current program, to be fed by `name` at each run.

    `shape` is an integer or a sequence of integers; `dtype` is the default dtype unless given. A
    symbolic size has a name, as in `("N", 3)`, or is an expression, as `"2*N+1"`. The same name is
    the same size everywhere. None and -1 are sizes with names of their own.
    Raises `BuildError` for a name that is taken, resembles a taken one, or is invisible;
    `ShapeError` for a negative size; `DTypeError` for an unsupported dtype.

    >>> with pg.Program() as program:
    ...     y = 2.0 * pg.data("x", (2,))
    >>> pg.Executor().run(program, {"x": [1.0, 2.0]}, [y])
    [array([2., 4.])]
    """
    if is_default_main(active_recorder()):
        _tell_of_hidden_program()
    return declare_input(name, shape, dtype)


def declare_input(name: str, shape: Any, dtype: Any = None) -> Variable:
    """Like `data`, without a warning if no program is entered."""
    builder = active_recorder()
    if not isinstance(builder, Builder):
        raise BuildError("inputs are declared in a program, not in an operator's decomposition")
    refuse_twin(builder, checked_name(name))
    chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
    taken = frozenset().union(*(v.type.names for v in builder.inputs))
    extents = declared_shape(shape, name, taken)
    return Variable(builder, builder.input(TensorType(extents, chosen), name))


@check_arguments
def create_parameter(
    shape: Any,
    dtype: Any = None,
    name: str | None = None,
    initializer: Initializer | Callable[..., Any] | None = None,
    is_bias: bool = False,
) -> Variable:
    """Create a trainable parameter of the program being built.

    Its value is kept in the program's scope, and made at first use by `initializer`: by default
    Xavier's rule, or zeros for a bias. Raises `BuildError` for a name that is taken, `DTypeError`
    for other dtypes than floats, `ArgumentError` for what is no initializer.

    >>> with pg.Program() as program:
    ...     w = pg.create_parameter((2,), "float64", "w", pg.initializers.Constant(1.0))
    >>> pg.Executor().run(program, {}, [2.0 * w])
    [array([2., 2.])]
    """
    program = current_program()
    type, rule = parameter_kind(shape, dtype, initializer, is_bias)
    stem = "bias" if is_bias else "weight"
    chosen = program.free_name(stem) if name is None else name
    return program.state(chosen, type, rule, trainable=True)


def parameter_kind(
    shape: Any, dtype: Any, initializer: Initializer | Callable[..., Any] | None, is_bias: bool
) -> tuple[TensorType, Initializer]:
    """Return type and initializer of a parameter: by default Xavier's rule, or zeros for a bias."""
    chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
    if chosen.kind != "f":
        raise DTypeError(
            f"a parameter is of a float dtype, not {chosen}",
            hint="optimizers change parameters; Program.state makes values that they leave alone",
        )
    if initializer is not None and not callable(initializer):
        raise ArgumentError(
            f"an initializer is a function of shape, dtype and generator, not {initializer!r:.80}",
            hint=f"write pg.initializers.{_initializer_of(initializer)}(...) of it",
        )
    rule = initializer or (Constant(0.0) if is_bias else Xavier())
    return TensorType(as_shape(shape), chosen), rule


def _initializer_of(given: Any) -> str:
    return "Constant" if isinstance(given, int | float) else "Assign"
