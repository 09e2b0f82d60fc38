"""Programs with the methods that they have in `paddle.static`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, final

import numpy as np

from primgraph.compat.paddle.core.methods import Variable
from primgraph.compat.paddle.core.parameter_attributes import Declaration
from primgraph.errors import OptionError
from primgraph.ir.primitive import innermost
from primgraph.operators.variable import Variable as _Variable
from primgraph.operators.variable import in_manner
from primgraph.program.block import Block as _Block
from primgraph.program.block import Operation
from primgraph.program.program import Program as _Program
from primgraph.program.program import current_program

# Operations of a startup program, by the class of an initializer.
_OPERATIONS = {
    "Constant": "fill_constant",
    "Assign": "assign_value",
    "Bilinear": "assign_value",
    "TruncatedNormal": "truncated_gaussian_random",
    **dict.fromkeys(("Normal", "XavierNormal", "KaimingNormal"), "gaussian_random"),
    **dict.fromkeys(("Uniform", "XavierUniform", "KaimingUniform"), "uniform_random"),
}


@final
class Program(_Program):
    """`pg.Program` with the arguments and results of Paddle's methods.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     w = paddle.create_parameter([2], "float32", name="w")
    >>> [p.name for p in program.all_parameters()]
    ['w']
    """

    def __init__(self, name: str = "program") -> None:
        super().__init__(name)

    def variable(self, name: str) -> Variable | None:
        """Return the input, parameter or variable of that name, or None."""
        found: Variable | None = in_manner(Variable, super().variable(name))
        return found

    def parameters(self) -> list[Variable]:  # type: ignore[override]
        """Return the trainable parameters, in the order of their creation."""
        found: list[Variable] = in_manner(Variable, super().parameters())
        return found

    def all_parameters(self) -> list[Variable]:  # type: ignore[override]
        """Return the parameters, those that are not trainable among them."""
        found = [
            _Variable(self.builder, value)
            for value, state in self.states.items()
            if state.trainable or isinstance(state.initializer, Declaration)
        ]
        listed: list[Variable] = in_manner(Variable, found)
        return listed

    def list_vars(self) -> Iterator[Variable]:
        """Iterate over all variables, in the order of their definition."""
        return iter(in_manner(Variable, self.variables()))

    def global_block(self) -> Block:  # type: ignore[override]
        """Return the only block, with `ops`, `vars` and `var(name)`."""
        return Block(self)

    current_block = global_block  # type: ignore[assignment]

    def block(self, index: int) -> Block:  # type: ignore[override]
        """Return the block at `index`, which must be 0."""
        super().block(index)
        return Block(self)

    @property
    def blocks(self) -> list[Block]:  # type: ignore[override]
        """The single block, in a list."""
        return [Block(self)]

    def state_dict(  # type: ignore[override]
        self, mode: Any = "all", scope: Any = None
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Return copies of the values of states, by name.

        `mode` is "all", "param" for parameters, or "opt" for all others.
        """
        if not isinstance(mode, str):
            mode, scope = "all", scope or mode
        if mode not in ("all", "param", "opt"):
            raise OptionError(f"mode is 'all', 'param' or 'opt', not {mode!r:.60}")
        found = super().state_dict(getattr(scope, "storage", scope))
        wanted = {
            s.name: s.trainable or isinstance(s.initializer, Declaration)
            for s in self.states.values()
        }
        if mode == "all":
            return found
        return {n: array for n, array in found.items() if wanted[n] is (mode == "param")}

    def set_state_dict(self, state_dict: Mapping[str, Any], scope: Any = None) -> None:
        """Store values by name; other states keep their values."""
        super().set_state_dict(
            {name: np.asarray(value) for name, value in state_dict.items()},
            getattr(scope, "storage", scope),
        )

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """Return the text of the program."""
        return str(self)


class Block(_Block[Program]):  # type: ignore[type-var]
    """The only block of a program; that of a startup program has operations that initialize."""

    __slots__ = ()

    @property
    def ops(self) -> list[Operation]:
        """All equations, in order, after initializers of the parameters created under it."""
        found = [
            Operation(_operation(s.initializer), [], [s.name], {"shape": list(s.type.shape)})
            for states in self.program.starts.values()
            for s in states
        ]
        return [*found, *super().ops]

    @property
    def vars(self) -> dict[str, Variable]:  # type: ignore[override]
        """All variables by name, with automatic names for unnamed ones."""
        found: dict[str, Variable] = in_manner(Variable, super().vars)
        return found

    def var(self, name: str) -> Variable:
        """Return the variable of that name. Raises `MissingVariableError`, a ValueError."""
        found: Variable = in_manner(Variable, super().var(name))
        return found

    def all_parameters(self) -> list[Variable]:  # type: ignore[override]
        """Return the trainable parameters, in the order of creation."""
        return self.program.all_parameters()

    def iter_parameters(self) -> Iterator[Variable]:
        """Iterate over the trainable parameters."""
        return iter(self.program.all_parameters())


def _operation(initializer: Any) -> str:
    rule = initializer.rule if isinstance(initializer, Declaration) else initializer
    return _OPERATIONS.get(type(rule).__name__, "fill_constant")


_main: list[Program] = [Program("main")]


def building_program() -> Any:
    """Return the program being built; outside of all, the default one of this package.

    Raises `BuildError` while a function is traced.
    """
    return _main[0] if innermost.get() is None else current_program()
