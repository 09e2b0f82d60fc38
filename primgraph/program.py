"""Programs: what a user builds, and which of them is being built."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

from primgraph.defaults import get_default_dtype
from primgraph.errors import ArgumentError, BuildError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph
from primgraph.ir.primitive import active_recorder, record_by_default_into
from primgraph.ir.text import to_text
from primgraph.ir.types import TensorType, as_dtype, as_shape
from primgraph.operators.variable import Variable, checked_name


@final
class Program:
    """A program under construction: named inputs, and everything computed from them.

    As a context it is what `pg.data` and the operators build into. Programs nest and stand side
    by side; each grows only, so what was built or fetched once stays as it is.

        with pg.Program() as program:
            x = pg.data("x", shape=(3,))
            y = pg.tanh(x)
    """

    def __init__(self, name: str = "program") -> None:
        self.builder = Builder(checked_name(name))
        self.kernels: dict[Any, Any] = {}

    def __enter__(self) -> Program:
        self.builder.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.builder.__exit__()

    @property
    def name(self) -> str:
        return self.builder.name

    @property
    def inputs(self) -> dict[str, Variable]:
        """The inputs by name, in the order of their declaration."""
        return {v.hint: Variable(self.builder, v) for v in self.builder.inputs}

    def variable(self, name: str) -> Variable | None:
        """The input or named variable of that name, if there is one."""
        value = self.builder.names.get(name)
        return None if value is None else Variable(self.builder, value)

    def graph(self, outputs: Sequence[Variable] | None = None) -> Graph:
        """What the program computes, as a graph, with all its inputs.

        By default the outputs are the values that nothing else is computed from.
        """
        if outputs is not None:
            values = [v.value for v in outputs]
            return Graph(self.builder.inputs, self.builder.slice(values), values, self.name)
        used = {v for eqn in self.builder.body for v in eqn.inputs}
        ends = [v for eqn in self.builder.body for v in eqn.outputs if v not in used]
        return self.builder.graph(ends, self.name)

    def __str__(self) -> str:
        return to_text(self.graph())

    def __repr__(self) -> str:
        names = ", ".join(f"{n}: {v.type}" for n, v in self.inputs.items())
        return f"<Program {self.name!r} ({names}), {len(self.builder)} equations>"


_main: list[Program] = [Program("main")]
record_by_default_into(lambda: _main[0].builder)


def default_main_program() -> Program:
    """The program that is built into where no other is entered."""
    return _main[0]


@contextmanager
def program_guard(program: Program) -> Iterator[Program]:
    """Build into `program` inside this context.

    Raises `ArgumentError` for anything but a `Program`.
    """
    if not isinstance(program, Program):
        raise ArgumentError(f"program_guard takes a Program, not {type(program).__name__}")
    with program:
        yield program


def data(name: str, shape: Any, dtype: Any = None) -> Variable:
    """Declare an input of the program being built, to be fed by `name` at each run.

    `shape` is an integer or a sequence of integers, `dtype` the default dtype unless given.
    Raises `BuildError` for a name that is taken, looks like one that is, or cannot be seen;
    `ShapeError` for a negative extent; `DTypeError` for an unsupported dtype.
    """
    builder = active_recorder()
    if not isinstance(builder, Builder):
        raise BuildError("inputs are declared in a program, not in an operator's decomposition")
    _refuse_twin(builder, checked_name(name))
    chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
    value = builder.input(TensorType(as_shape(shape), chosen), name)
    return Variable(builder, value)


def _refuse_twin(builder: Builder, name: str) -> None:
    """Refuse a name that is taken, or that only a computer could tell from one that is."""
    folded = unicodedata.normalize("NFKC", name)
    for other in builder.names:
        if other == name:
            raise BuildError(f"the program has an input or variable named {name!r} already")
        if unicodedata.normalize("NFKC", other) == folded:
            raise BuildError(f"the name {name!r} looks like {other!r}, which is taken")
